package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{Clause, Fix, Obstacle, TableRule, TableState, Violation}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{Condition, Location, WriterCompat}

/** Requirements on data files. */
object FileRules {

  /**
   * What the log shows about live files that were added before the feature was switched on.
   *
   * @param unproven
   *   how many of them may have been written without field ids
   */
  final case class Provenance(unproven: Long, example: Option[String])

  object LiveFilesWereWrittenById
      extends TableRule(
        "E1",
        "Every live data file was written with field ids for all columns, elements, keys and " +
          "values.",
        "Iceberg finds a column in a file only by its id; without ids it reads nulls.",
        Clause(DeltaProtocol, "Column Mapping"),
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      // Without column mapping all files are rewritten; with it, the footers decide.
      if (table.isMapped) Obstacle.None else Obstacle.Rewrite

    /** Never broken by the table state alone. */
    override def check(table: TableState): Seq[Violation] = Nil

    /** The violation, if the log does not prove that all files were written with field ids. */
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
