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

/** A section of a document, from which a requirement is taken. */
final case class Clause(source: Source, section: String) {
  override def toString: String = s"${source.title}, $section"
}

/** What a violation means for a table that does not have the feature yet. */
sealed trait Obstacle

object Obstacle {

  /** None: the commit that switches the feature on fixes it. */
  case object None extends Obstacle

  /** Data files have to be rewritten. */
  case object Rewrite extends Obstacle

  /** The user has to fix it first. */
  case object Blocker extends Obstacle
}

/** A requirement that can prevent the feature from being switched on. */
trait Obstructing {

  /**
   * What has to be done about `violation` to switch the feature on for `table`, which does not have
   * it.
   *
   * @param hasFiles
   *   whether the table has data files, whose columns have certain names and ids
   */
  def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
    Obstacle.Blocker
}

/**
 * One requirement of the contract.
 *
 * A rule is a pure function from a table, change, action or file to violations. It throws nothing,
 * and does not depend on its caller: a commit is refused at the first violation, a report lists all
 * of them. It is a singleton, also after Spark has deserialized it.
 */
sealed trait Rule extends Obstructing with Serializable {

  /**
   * The id, such as `C2`. A `+` marks the part of a rule that applies to changes or actions, an `f`
   * the part that applies to footers.
   */
  def id: String

  /** The requirement, in one sentence. */
  def statement: String

  /** What goes wrong if it is not met, in one sentence. */
  def why: String

  /** The sources of the requirement. */
  def clauses: Seq[Clause]

  /** Whether a table that has the feature may break the rule; a report then has a warning. */
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

/** A rule that every table keeps after the commit that switches the feature on. */
trait FixedByActivation extends Obstructing {
  override def obstacle(
      table: TableState,
      violation: Violation,
      hasFiles: Boolean
  ): Obstacle = Obstacle.None
}

/**
 * A rule on names and ids that the commit which switches the feature on assigns, for a table
 * without files or with files that already have column mapping.
 */
trait AssignedByActivation extends Obstructing {
  override def obstacle(
      table: TableState,
      violation: Violation,
      hasFiles: Boolean
  ): Obstacle = if (hasFiles && !table.isMapped) Obstacle.Rewrite else Obstacle.None
}

/** A rule on ids in data files: existing files that lack them have to be rewritten. */
trait FixedByRewrite extends Obstructing {
  override def obstacle(
      table: TableState,
      violation: Violation,
      hasFiles: Boolean
  ): Obstacle = if (hasFiles) Obstacle.Rewrite else Obstacle.None
}

/** A requirement on a single version of a table. */
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

/** A requirement on each action of a commit other than protocol and metadata. */
abstract class ActionRule(
    val id: String,
    val statement: String,
    val why: String,
    val clauses: Clause*
) extends Rule {

  override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
    Obstacle.Rewrite

  /** The violations of this rule in `action`, an action of a commit to `table`. */
  def check(table: TableState, action: DataAction): Seq[Violation]
}

/** A requirement on the footer of each live data file. */
abstract class FooterRule(
    val id: String,
    val statement: String,
    val why: String,
    val clauses: Clause*
) extends Rule {

  override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
    Obstacle.Rewrite

  /** The violations of this rule in a file, given its columns. */
  def check(columns: FileColumns): Seq[Violation]

  /** The violations of this rule in `file`, which belongs to `table`. */
  final def check(table: TableState, file: DataFile): Seq[Violation] =
    check(FileColumns.of(table, file))

  /** The remedy of all violations of this rule in the files of `table`. */
  def remedy(table: TableState): Remedy = Fix.copyInto(table)
}
