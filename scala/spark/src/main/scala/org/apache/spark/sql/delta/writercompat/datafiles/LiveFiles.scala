package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.icebergwritercompat.contract.{ActionRule, TableState, Violation}
import org.icebergwritercompat.model.{DataAction, FileLocation, Location}
import org.icebergwritercompat.report.{Assessment, Finding, Place}
import org.icebergwritercompat.rules.ActionRules
import org.icebergwritercompat.iceberg.source.FileSystemsInReach

/**
 * What the log says about the live files of a version. No file is opened.
 *
 * @param rows
 *   the rows in all of them; `None` if the log has no row count for one
 */
final case class LiveFiles(
    files: Long,
    bytes: Long,
    rows: Option[Long],
    deletionVectors: Long,
    violations: Seq[FilesViolation],
    elsewhere: Option[Elsewhere] = None
)

/** Live files that the log has by absolute paths. */
final case class Elsewhere(files: Long, examples: Vector[String]) {

  private[writercompat] def and(other: Elsewhere): Elsewhere =
    Elsewhere(files + other.files, (examples ++ other.examples).take(Finding.MaxExamples))

  /** The same as a finding, which breaks no rule. */
  def finding: Finding = Finding.elsewhere(files, examples)
}

/** A rule that live files break: the first such violation, and which files. */
final case class FilesViolation(violation: Violation, files: Long, examples: Vector[String]) {

  private[writercompat] def and(other: FilesViolation): FilesViolation =
    FilesViolation(
      violation,
      files + other.files,
      (examples ++ other.examples).take(Finding.MaxExamples)
    )

  /** The same as a finding about these files. */
  def finding(judgement: Assessment): Finding = {
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
        val shown = new DataActionConverter(table)
        Iterator.single(files.foldLeft(Found.nothing)(_.and(_, shown, table)))
      }
      .fold(Found.nothing)(_ and _)
    val reached = new FileSystemsInReach(snapshot.deltaLog.newDeltaHadoopConf())
    val (known, unknown) = found.elsewhere.partition { case (root, _) => reached(root) }
    LiveFiles(
      found.files,
      found.bytes,
      Option.when(found.withoutRows == 0)(found.rows),
      found.deletionVectors,
      table.contract.rules.action.flatMap(found.and(unreachable(table, unknown)).broken.get),
      known.values.reduceOption(_ and _)
    )
  }

  private def unreachable(table: TableState, files: Map[String, Elsewhere]): Found =
    files.values.foldLeft(Found.nothing) { (all, where) =>
      val rule = ActionRules.PathsAreWithinReach
      val file = DataAction
        .Added(where.examples.head, Map.empty, None, false, false, 0L, isWithinReach = false)
      val broken = rule.check(table, file).map(FilesViolation(_, where.files, where.examples))
      all.and(Found.nothing.copy(broken = broken.map(rule -> _).toMap))
    }

  private final case class Found(
      files: Long,
      bytes: Long,
      rows: Long,
      withoutRows: Long,
      deletionVectors: Long,
      broken: Map[ActionRule, FilesViolation],
      elsewhere: Map[String, Elsewhere]
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
        },
        other.elsewhere.foldLeft(elsewhere) { case (all, (scheme, more)) =>
          all.updated(scheme, all.get(scheme).fold(more)(_ and more))
        }
      )

    def and(file: AddFile, shown: DataActionConverter, table: TableState): Found = {
      val action = shown.ofLive(file)
      val violations = for {
        rule <- table.contract.rules.action
        violation <- rule.check(table, action).headOption
      } yield rule -> FilesViolation(violation, 1, Vector(example(file, violation)))
      // Delta's own count parses the statistics of each file once more, as a tree.
      val hidden = if (file.deletionVector == null) 0 else file.deletionVector.cardinality
      // A negative or impossibly large size would make the sum wrong.
      val isPossible = !violations.exists(_._1 == ActionRules.SizesArePossible)
      val rows = action.statistics.flatMap(_.rowCount).map(_ - hidden).filterNot { rows =>
        rows < 0 || !isPossible
      }
      and(
        Found(
          1,
          if (isPossible) file.size else 0,
          rows.getOrElse(0L),
          if (rows.isEmpty) 1 else 0,
          if (file.deletionVector == null) 0 else 1,
          violations.toMap,
          action.location match {
            case FileLocation.Absolute(root) =>
              Map(root -> Elsewhere(1, Vector(FileLocation.printable(file.path))))
            case _ => Map.empty
          }
        )
      )
    }

    private def example(file: AddFile, violation: Violation): String =
      FileLocation.printable(file.path) + violation.parameters.get("found").fold("")(": " + _)
  }

  private object Found {
    val nothing: Found = Found(0, 0, 0, 0, 0, Map.empty, Map.empty)
  }
}
