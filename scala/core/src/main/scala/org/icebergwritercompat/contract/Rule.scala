package org.icebergwritercompat.contract

import org.icebergwritercompat.model.{Condition, DataAction, DataFile, Location}
import org.icebergwritercompat.remedy.Remedy

/** A document that states requirements. */
sealed abstract class Source(val title: String)

/** The documents the rules are taken from. */
object Source {
  case object Rfc extends Source("protocol_rfcs/iceberg-writer-compat-v1.md")
  case object DeltaProtocol extends Source("PROTOCOL.md")
  case object IcebergSpec extends Source("format/spec.md")
  case object IcebergCode extends Source("the Iceberg library")
  case object DeltaSpark extends Source("Delta Spark 4.4.0")
  case object ParquetFormat extends Source("Parquet LogicalTypes.md")
}

/** The place a requirement is taken from. */
final case class Clause(source: Source, section: String) {
  override def toString: String = s"${source.title}, $section"
}

/** What a violation means for a table that does not have the feature yet. */
sealed trait Obstacle

object Obstacle {

  /** None: the commit that switches the feature on mends it. */
  case object None extends Obstacle

  /** Data files have to be written again. */
  case object Rewrite extends Obstacle

  /** Somebody has to mend it first. */
  case object Blocker extends Obstacle
}

/** Tells what stands in the way of switching the feature on. */
trait Obstructing {

  /**
   * What `violation` means for `table`, which does not have the feature: what it takes to switch it
   * on.
   *
   * @param hasFiles
   *   whether the table has data files, which bind the layout of columns
   */
  def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
    Obstacle.Blocker
}

/**
 * One requirement of the contract.
 *
 * A rule is a pure function from what it checks to the violations it finds. It neither throws nor
 * knows who asks: the commit hook refuses on the first violation, a report lists them all. It is a
 * singleton, also where Spark sends what an executor found.
 */
sealed trait Rule extends Obstructing with Serializable {

  /**
   * The number of the requirement, such as `C2`; a `+` marks the part of it that compares with the
   * version before, an `f` the part that is read in the footers of data files.
   */
  def id: String

  /** What must hold, in one sentence. */
  def statement: String

  /** What goes wrong where it does not hold, in one sentence. */
  def why: String

  /** Where the requirement comes from. */
  def clauses: Seq[Clause]

  /** Whether a table that has the feature may be as it is, and is warned of only. */
  def isAdvice: Boolean = false

  /** A violation of this rule. */
  final protected def violation(
      condition: Condition,
      location: Location,
      remedy: Remedy,
      parameters: (String, String)*
  ): Violation =
    Violation(this, condition, location, remedy, parameters.toMap)
}

/** A rule that every table keeps once the feature is switched on. */
trait FollowsFromTheSwitch extends Obstructing {
  override def obstacle(
      table: TableState,
      violation: Violation,
      hasFiles: Boolean
  ): Obstacle = Obstacle.None
}

/**
 * A rule on names and ids that switching the feature on gives to a table without files, and to one
 * whose files have column mapping already.
 */
trait LaidOutByTheSwitch extends Obstructing {
  override def obstacle(
      table: TableState,
      violation: Violation,
      hasFiles: Boolean
  ): Obstacle = if (hasFiles && !table.isMapped) Obstacle.Rewrite else Obstacle.None
}

/** A rule on ids that only new files can have where there are files. */
trait BoundByFiles extends Obstructing {
  override def obstacle(
      table: TableState,
      violation: Violation,
      hasFiles: Boolean
  ): Obstacle = if (hasFiles) Obstacle.Rewrite else Obstacle.None
}

/** A requirement that one version of a table meets or breaks by itself. */
abstract class TableRule(
    val id: String,
    val statement: String,
    val why: String,
    val clauses: Clause*
) extends Rule {

  /** The violations of this rule in `table`. */
  def check(table: TableState): Seq[Violation]
}

/** A requirement on how a table may change from one version to the next. */
abstract class ChangeRule(
    val id: String,
    val statement: String,
    val why: String,
    val clauses: Clause*
) extends Rule {

  /** The violations of this rule in `change`. */
  def check(change: TableChange): Seq[Violation]
}

/** A requirement on each action that a commit has besides protocol and metadata. */
abstract class ActionRule(
    val id: String,
    val statement: String,
    val why: String,
    val clauses: Clause*
) extends Rule {

  override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
    Obstacle.Rewrite

  /** The violations of this rule in `action`, which is to be committed to `table`. */
  def check(table: TableState, action: DataAction): Seq[Violation]
}

/** A requirement on each live data file, which only its footer tells of. */
abstract class FooterRule(
    val id: String,
    val statement: String,
    val why: String,
    val clauses: Clause*
) extends Rule {

  override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
    Obstacle.Rewrite

  /** The violations of this rule in a file, whose columns have been found. */
  def check(columns: FileColumns): Seq[Violation]

  /** The violations of this rule in `file`, which belongs to `table`. */
  final def check(table: TableState, file: DataFile): Seq[Violation] =
    check(FileColumns.of(table, file))

  /** What mends all violations of this rule in the files of `table`. */
  def remedy(table: TableState): Remedy = Fix.copyInto(table)
}
