package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.icebergwritercompat.report.{Finding, Judgement, Place}
import org.icebergwritercompat.rules._

/**
 * What the log tells about the live files of a version, without opening one of them.
 *
 * @param rows
 *   the rows in all of them; `None` if a file does not tell
 */
final case class LiveFiles(
    files: Long,
    bytes: Long,
    rows: Option[Long],
    deletionVectors: Long,
    violations: Seq[FilesViolation]
)

/** A rule that live files break: the first such violation, and which files. */
final case class FilesViolation(violation: Violation, files: Long, examples: Vector[String]) {

  private[writercompat] def and(other: FilesViolation): FilesViolation =
    FilesViolation(
      violation,
      files + other.files,
      (examples ++ other.examples).take(Finding.MaxExamples)
    )

  /** The same as a finding about these files. */
  def finding(judgement: Judgement): Finding = {
    val place = violation.location match {
      case _: Location.File => Place.Files
      case other            => Place.of(other)
    }
    judgement
      .finding(violation)
      .copy(
        place = place,
        files = Some(files),
        examples = examples,
        found = s"$files live file(s) break the rule"
      )
  }
}

object LiveFiles {

  /** The files of a table that has none. */
  val none: LiveFiles = LiveFiles(0, 0, Some(0), 0, Nil)

  /** Looks at every live file in the log, on the executors. */
  def of(snapshot: Snapshot, table: TableState): LiveFiles = {
    val found = snapshot.allFiles.rdd
      .mapPartitions { files =>
        val shown = new DataActions(table)
        Iterator.single(files.foldLeft(Found.nothing)(_.and(_, shown, table)))
      }
      .fold(Found.nothing)(_ and _)
    LiveFiles(
      found.files,
      found.bytes,
      Option.when(found.withoutRows == 0)(found.rows),
      found.deletionVectors,
      WriterCompatRules.actionRules.flatMap(found.broken.get)
    )
  }

  private final case class Found(
      files: Long,
      bytes: Long,
      rows: Long,
      withoutRows: Long,
      deletionVectors: Long,
      broken: Map[ActionRule, FilesViolation]
  ) {

    def and(other: Found): Found =
      Found(
        files + other.files,
        bytes + other.bytes,
        rows + other.rows,
        withoutRows + other.withoutRows,
        deletionVectors + other.deletionVectors,
        other.broken.foldLeft(broken) { case (all, (rule, more)) =>
          all.updated(rule, all.get(rule).fold(more)(_ and more))
        }
      )

    def and(file: AddFile, shown: DataActions, table: TableState): Found = {
      val action = shown.of(file)
      val violations = for {
        rule <- WriterCompatRules.actionRules
        violation <- rule.check(table, action).headOption
      } yield rule -> FilesViolation(violation, 1, Vector(example(file, violation)))
      val rows = file.numLogicalRecords
      and(
        Found(
          1,
          file.size,
          rows.getOrElse(0L),
          if (rows.isEmpty) 1 else 0,
          if (file.deletionVector == null) 0 else 1,
          violations.toMap
        )
      )
    }

    private def example(file: AddFile, violation: Violation): String =
      file.path + violation.parameters.get("found").fold("")(": " + _)
  }

  private object Found {
    val nothing: Found = Found(0, 0, 0, 0, 0, Map.empty)
  }
}
