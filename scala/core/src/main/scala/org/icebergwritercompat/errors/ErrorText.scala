package org.icebergwritercompat.errors

import org.icebergwritercompat.remedy.{Remedy, Rendering}

/**
 * What an error says, in any rendering of its remedies.
 *
 * @param remedy
 *   what mends it
 * @param also
 *   what else is wrong with the refused statement
 * @param findings
 *   what the parameter `findings` of the text lists, each with what mends it
 */
private[errors] final case class ErrorText(
    condition: String,
    parameters: Map[String, String],
    remedy: Remedy = Remedy.Nothing,
    also: Seq[String] = Nil,
    findings: Seq[(String, Remedy)] = Nil
) {

  /** The whole text. */
  def message(rendering: Rendering): String = {
    val offered = rendering.of(remedy).map(Rendering.shown).mkString("\n")
    explanation(rendering) + (if (offered.isEmpty) "" else s"\n${remedy.verb}: $offered")
  }

  /** The text without what mends it. */
  def explanation(rendering: Rendering): String = {
    val rest =
      if (also.isEmpty) ""
      else s"\nThe statement also breaks these rules:${ErrorText.list(also)}"
    Conditions.body(condition, allParameters(rendering), hasRemedy = !remedy.isEmpty) + rest +
      remedy.note.fold("")("\n" + _)
  }

  /** The parameters of the text, those among them that follow from remedies. */
  def allParameters(rendering: Rendering): Map[String, String] =
    parameters ++
      Option.unless(findings.isEmpty)("findings" -> ErrorText.list(findings.map {
        case (found, mending) =>
          found + rendering
            .of(mending)
            .map(statement => s" ${mending.verb}: ${Rendering.shown(statement)}")
            .mkString
      })) ++
      Option.unless(remedy.isEmpty)("fix" -> rendering.of(remedy).mkString("\n"))
}

private[errors] object ErrorText {

  // A table with thousands of columns breaks a rule thousands of times.
  private val mostListed = 50

  /** The items, one a line; of very many the first ones. */
  def list(items: Seq[String]): String = {
    val left = items.size - mostListed
    (items.take(mostListed).map(item => s"\n- $item") ++
      Option.when(left > 0)(s"\n- and $left more")).mkString
  }
}
