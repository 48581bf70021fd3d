package org.icebergwritercompat.report

import org.icebergwritercompat.contract.{Rule, TableState, Violation}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.{Location, SchemaNode}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.ActionRules

/**
 * A violation as a report shows it.
 *
 * @param remedy
 *   the statements that fix it
 * @param files
 *   the number of files concerned, if it is about files
 * @param firstVersion
 *   the version that broke the requirement, as for the four that follow it
 */
final case class Finding(
    rule: String,
    clauses: Seq[String],
    severity: Severity,
    place: Place,
    files: Option[Long],
    examples: Seq[String],
    found: String,
    required: String,
    why: String,
    remedy: Remedy,
    firstVersion: Option[Long] = None,
    firstTimestamp: Option[String] = None,
    operation: Option[String] = None,
    mendedVersion: Option[Long] = None
)

object Finding {

  /** The maximal number of files that a finding lists. */
  val MaxExamples = 5

  /** The finding for a rule; its statement, reason and clauses are taken from the rule. */
  def about(
      rule: Rule,
      severity: Severity,
      place: Place,
      found: String,
      remedy: Remedy,
      files: Option[Long] = None,
      examples: Seq[String] = Nil
  ): Finding =
    Finding(
      rule = rule.id,
      clauses = rule.clauses.map(_.toString),
      severity = severity,
      place = place,
      files = files,
      examples = examples,
      found = found,
      required = rule.statement,
      why = rule.why,
      remedy = remedy
    )

  /** The finding for `violation`. */
  def of(table: TableState, violation: Violation, severity: Severity): Finding =
    about(
      violation.rule,
      severity,
      Place.of(violation.location),
      IcebergWriterCompatException.explanation(table, violation),
      violation.remedy
    )

  /** The finding for live files outside of the folder of the table. */
  def elsewhere(files: Long, examples: Seq[String]): Finding =
    about(
      ActionRules.PathsAreWithinReach,
      Severity.Info,
      Place.Files,
      s"$files live file(s) have absolute paths, as in a shallow clone",
      Remedy.Nothing,
      Some(files),
      examples
    ).copy(why = "The table is readable only as long as these files exist at these paths.")

  /** The finding for a problem of the published Iceberg metadata. */
  def published(problem: PublishProblem): Finding =
    Finding(
      rule = "Iceberg",
      clauses = Nil,
      severity = Severity.Warning,
      place = Place("metadata", ""),
      files = None,
      examples = Nil,
      found = problem.text,
      required = "Iceberg readers can open the published metadata, and it belongs to this table.",
      why = "Otherwise readers fail, or see other rows than in the Delta table.",
      remedy = problem.remedy
    )

  /** The finding for a statement that Delta itself refuses. */
  def refusedByDelta(message: String): Finding =
    Finding(
      rule = "Delta",
      clauses = Nil,
      severity = Severity.Error,
      place = Place("statement", ""),
      files = None,
      examples = Nil,
      found = message.linesIterator.nextOption().getOrElse(""),
      required = "Delta Spark runs the statement.",
      why = "The statement fails, with or without the feature, and changes nothing.",
      remedy = Remedy.Nothing
    )
}

/**
 * The subject of a finding: a column, property, feature, the protocol, a file, files, the published
 * metadata or a statement.
 */
final case class Place(
    kind: String,
    name: String,
    id: Option[Long] = None,
    physicalName: Option[String] = None,
    value: Option[String] = None
)

object Place {

  /** The place of a violation. */
  def of(location: Location): Place = location match {
    case column: Location.Column =>
      Place("column", SchemaNode.sqlPath(column.path), column.id, column.physicalName)
    case Location.Property(key, value) => Place("property", key, value = value)
    case Location.Feature(name)        => Place("feature", name)
    case Location.Protocol             => Place("protocol", "")
    case Location.File(path)           => Place("file", path)
    case _: Location.Files             => Files
  }

  /** The data files of a table. */
  val Files: Place = Place("files", "")
}
