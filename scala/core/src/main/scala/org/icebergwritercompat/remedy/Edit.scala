package org.icebergwritercompat.remedy

import org.antlr.v4.runtime.{ParserRuleContext, Token}

/** Puts `text` in place of what is from `start` up to, and without, `end`. */
private[remedy] final case class Edit(start: Int, end: Int, text: String)

private[remedy] object Edit {

  /** The text with all edits, which do not overlap. */
  def applied(text: String, edits: Seq[Edit]): String =
    edits.distinct.sortBy(edit => (-edit.start, -edit.end)).foldLeft(text) { (all, edit) =>
      all.substring(0, edit.start) + edit.text + all.substring(edit.end)
    }

  /** Where a node begins; the parser counts code points. */
  def startOf(text: String, node: ParserRuleContext): Int =
    text.offsetByCodePoints(0, node.getStart.getStartIndex)

  /** Where a word ends. */
  def endOf(text: String, token: Token): Int =
    text.offsetByCodePoints(0, token.getStopIndex + 1)

  /** Where a node ends. */
  def endOf(text: String, node: ParserRuleContext): Int = endOf(text, node.getStop)

  /** The text of a node. */
  def textOf(text: String, node: ParserRuleContext): String =
    text.substring(startOf(text, node), endOf(text, node))

  /** Puts another text in place of a node. */
  def replaced(text: String, node: ParserRuleContext, by: String): Edit =
    Edit(startOf(text, node), endOf(text, node), by)

  /** Takes a node away, and the space before it. */
  def removed(text: String, node: ParserRuleContext): Edit = {
    val start = startOf(text, node)
    val space = text.substring(0, start).reverseIterator.takeWhile(_.isWhitespace).size
    Edit(start - space, endOf(text, node), "")
  }
}
