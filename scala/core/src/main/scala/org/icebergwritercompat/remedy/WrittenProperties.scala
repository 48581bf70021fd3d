package org.icebergwritercompat.remedy

import org.antlr.v4.runtime.ParserRuleContext
import org.antlr.v4.runtime.tree.TerminalNode
import org.icebergwritercompat.remedy.Edit._
import org.icebergwritercompat.remedy.StatementTree._

/** Changes the properties and options that a statement sets. */
private[remedy] object WrittenProperties {

  /**
   * The edits of the lists TBLPROPERTIES and OPTIONS of a statement.
   *
   * @param end
   *   where a list of properties can begin; `None` if there is one for certain
   */
  def of(
      text: String,
      node: ParserRuleContext,
      end: Option[Int],
      changes: Seq[Change]
  ): Seq[Edit] = {
    val wanted = changes.collect { case Change.Property(key, value) => key -> value }
    val options = directly(node, "expressionPropertyList").headOption
    val list = directly(node, "propertyList").headOption
    def entries(all: Option[ParserRuleContext]) = all.toSeq
      .flatMap(parts)
      .map(entry => keyIn(entry) -> textOf(text, entry))
    def set(key: String, value: String) = s"${Quoting.literal(key)} = ${Quoting.literal(value)}"
    def valueOf(key: String) = wanted.find(_._1.equalsIgnoreCase(key))
    def kept(all: Seq[(String, String)]) = all.flatMap { case (key, entry) =>
      valueOf(key).fold(Option(entry))(_._2.map(set(key, _)))
    }
    if (wanted.isEmpty) Nil
    else {
      val known = (entries(options) ++ entries(list)).map(_._1)
      val more = wanted.collect {
        case (key, Some(value)) if !known.exists(_.equalsIgnoreCase(key)) => set(key, value)
      }
      def rebuilt(old: ParserRuleContext, entries: Seq[String]): Edit =
        if (entries.nonEmpty) replaced(text, old, entries.mkString("(", ", ", ")"))
        else {
          val siblings = children(old.getParent)
          val word = siblings(siblings.indexOf(old) - 1).asInstanceOf[TerminalNode].getSymbol
          Edit(text.offsetByCodePoints(0, word.getStartIndex), endOf(text, old), "")
        }
      val ofOptions = options
        .filter(_ => entries(options).exists { case (key, _) => valueOf(key).isDefined })
        .map(old => rebuilt(old, kept(entries(options))))
      val ofList = (list, end) match {
        case (Some(old), _)                    => Some(rebuilt(old, kept(entries(list)) ++ more))
        case (None, Some(at)) if more.nonEmpty =>
          Some(Edit(at, at, more.mkString(" TBLPROPERTIES (", ", ", ")")))
        case _ => None
      }
      (ofOptions ++ ofList).toSeq
    }
  }

  private def keyIn(entry: ParserRuleContext): String = {
    val key = parts(entry).head.getText
    if (key.length > 1 && "'\"".contains(key.head)) key.substring(1, key.length - 1) else key
  }
}
