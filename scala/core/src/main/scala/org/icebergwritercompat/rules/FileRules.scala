package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{Clause, Fix, Obstacle, TableRule, TableState, Violation}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{Condition, Location, WriterCompat}

/** Requirements on data files. */
object FileRules {

  /**
   * What the log tells about the live files that the feature's own commits did not add.
   *
   * @param unproven
   *   how many of them may have been written without field ids
   */
  final case class Provenance(unproven: Long, example: Option[String])

  object LiveFilesWereWrittenById
      extends TableRule(
        "E1",
        "Every live data file was written with a field id for each column, element, key and value.",
        "Iceberg finds a column in a file by its id alone, so without it the values read as null.",
        Clause(DeltaProtocol, "Column Mapping"),
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      // Without column mapping nothing in the footers counts, with it they tell.
      if (table.isMapped) Obstacle.None else Obstacle.Rewrite

    /** Asks nothing of a table whose files are not in question. */
    override def check(table: TableState): Seq[Violation] = Nil

    /** The violation, if the log leaves files in question when the feature is switched on. */
    def check(table: TableState, provenance: Provenance): Seq[Violation] =
      if (provenance.unproven == 0) Nil
      else {
        val example = provenance.example.getOrElse("")
        Seq(
          violation(
            Condition.UnprovenDataFiles,
            Location.Files(provenance.unproven, example),
            Fix.copyInto(table),
            "count" -> provenance.unproven.toString,
            "example" -> example,
            "property" -> WriterCompat.IcebergCompatV2Enabled
          )
        )
      }
  }
}
