package org.icebergwritercompat.errors

import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.Remedy

/** The remedies of the reasons for which a table cannot be published. */
private[errors] object PublishRemedies {

  /**
   * The remedy for a reason and the parameters of its text.
   *
   * @param contract
   *   the contract of the table, or the one that it is to have
   */
  def of(reason: String, parameters: Map[String, String], contract: Contract): Remedy = {
    def table = parameters("table")
    reason match {
      case "AHEAD" | "NOT_OURS" | "ENTRY_UNREADABLE" => Remedy.Publish(table, Seq("anew" -> None))
      case "FEATURE_OFF" => Remedy.Enable(table, feature = contract.feature)
      case "FOLDER"      =>
        Remedy.CopyInto(
          "copy_to_publish",
          Nil,
          table,
          Nil,
          Seq(contract.property -> "true")
        )
      case "NAME_IN_USE" =>
        Remedy.SetProperty(table, WriterCompat.PublishTable, parameters("free"))
      case "NAME_TAKEN" | "NO_NAME" =>
        Remedy.SetProperty(table, WriterCompat.PublishTable, "namespace.name")
      case "NO_SUCH_COMMIT" | "NO_SUCH_CHANGE" => Remedy.Status(table)
      case "UNIFORM"                           =>
        Remedy.SetProperty(table, WriterCompat.UniversalFormats, parameters("others"))
      case _ => Remedy.Nothing
    }
  }
}
