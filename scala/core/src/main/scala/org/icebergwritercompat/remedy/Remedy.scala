package org.icebergwritercompat.remedy

import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.types._
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.Quoting._

/**
 * What mends a fault.
 *
 * SQL, Python and the command line have renderings of it, each a list of statements, to be run in
 * this order.
 */
sealed trait Remedy {

  /** What it does, for those who put the remedies of several faults in order. */
  def kind: RemedyKind

  /** What it is in SQL. */
  protected def inSql: Seq[String]

  /** What it is in Python. */
  def python: Seq[String] = sql.map(inPython)

  /** What it is at the command line; SQL where the command line has no verb for it. */
  def command: Seq[String] = sql

  /** What has to be known before it is run. */
  def note: Option[String] = None

  /** What is to be done with the statements: run them, or use them as settings. */
  def verb: String = "Run"

  /** What a statement has to have instead, where the fault is in a statement that was not run. */
  def changes: Seq[Change] = Nil

  /** What it is in SQL, to be taken to the letter. */
  final def sql: Seq[String] = {
    // Spark would take it for a variable, and has no other escape for it.
    val verbatim = keepsVariables || !inSql.exists(_.contains("${"))
    if (verbatim) inSql else "SET spark.sql.variable.substitute=false" +: inSql
  }

  /** Whether what looks like a variable is one, as in a statement that a user wrote. */
  protected def keepsVariables: Boolean = false

  /** The statements, one a line. */
  final def text: String = sql.mkString("\n")

  /** Whether there is something to do. */
  final def isEmpty: Boolean = inSql.isEmpty
}

/** A change to a table that exists, by a statement of SQL that loses no row. */
sealed trait Alteration extends Remedy {

  /** The table, as a statement spells it. */
  def table: String

  /** What stands after ALTER TABLE and the name. */
  protected def clauses: Seq[String]

  /** Whether columns are told apart by the case of letters alone. */
  protected def exactCase: Boolean = false

  final override protected def inSql: Seq[String] = statements

  /** The statements, to be run to the letter. */
  final def statements: Seq[String] =
    Remedy.inExactCase(exactCase)(clauses.map(clause => s"ALTER TABLE $table $clause"): _*)
}

object Remedy {

  /** The catalog of SQL whose procedures do what the Python package does. */
  val ProcedureCatalog = "iceberg_writer_compat"

  /** The namespace of that catalog. */
  val ProcedureNamespace = "system"

  /** The statements, if need be in a session that tells names apart by the case of letters. */
  private[remedy] def inExactCase(exact: Boolean)(statements: String*): Seq[String] =
    if (exact) s"SET $caseSensitive=true" +: statements :+ s"RESET $caseSensitive"
    else statements

  private val caseSensitive = "spark.sql.caseSensitive"

  /** Nothing that anybody could run. */
  case object Nothing extends Remedy {
    override val kind: RemedyKind = RemedyKind.Change
    override protected def inSql: Seq[String] = scala.Nil
  }

  /**
   * Gives a table properties.
   *
   * @param without
   *   properties that a statement may set, and that are to be left out of it
   */
  final case class SetProperties(
      table: String,
      properties: Seq[(String, String)],
      without: Seq[String] = scala.Nil
  ) extends Alteration {
    override val kind: RemedyKind = RemedyKind.Properties
    override protected def clauses: Seq[String] = Seq(
      s"SET TBLPROPERTIES (${Quoting.properties(properties)})"
    )
    override def changes: Seq[Change] = properties.map { case (key, value) =>
      Change.Property(key, Some(value))
    } ++ without.map(Change.Property(_, None))
  }

  object SetProperty {
    def apply(table: String, key: String, value: String): SetProperties =
      SetProperties(table, Seq(key -> value))
  }

  /** Takes a property from a table. */
  final case class UnsetProperty(table: String, key: String) extends Alteration {
    override val kind: RemedyKind = RemedyKind.Properties
    override protected def clauses: Seq[String] = Seq(s"UNSET TBLPROPERTIES (${literal(key)})")
    override def changes: Seq[Change] = Seq(Change.Property(key, None))
  }

  /** Takes a CHECK constraint from a table. */
  final case class DropConstraint(table: String, constraint: String) extends Alteration {
    override val kind: RemedyKind = RemedyKind.Constraint
    override protected def clauses: Seq[String] = Seq(
      s"DROP CONSTRAINT ${quoteIfNeeded(constraint)}"
    )
  }

  /**
   * Adds a column or a field.
   *
   * @param features
   *   what the table has to support before, for the type
   * @param instead
   *   what to change in a statement that adds it otherwise
   */
  final case class AddColumn(
      table: String,
      path: Seq[String],
      dataType: DataType,
      features: Seq[String],
      instead: Seq[Change]
  ) extends Alteration {
    override val kind: RemedyKind = RemedyKind.Change
    override protected def clauses: Seq[String] =
      supporting(features) :+ s"ADD COLUMNS (${sqlPath(path)} ${dataType.sql})"
    override def changes: Seq[Change] = instead
  }

  private def supporting(features: Seq[String]): Seq[String] =
    features.map(feature => s"SET TBLPROPERTIES ('delta.feature.$feature' = 'supported')")

  /**
   * Gives a column another name.
   *
   * @param mapped
   *   whether the table has column mapping, which Delta renames columns by
   * @param exactCase
   *   whether another column has the same name in letters of another case
   */
  final case class RenameColumn(
      table: String,
      path: Seq[String],
      name: String,
      mapped: Boolean = true,
      override protected val exactCase: Boolean = false
  ) extends Alteration {
    override val kind: RemedyKind = RemedyKind.Rename
    override protected def clauses: Seq[String] =
      Option
        .unless(mapped)(s"SET TBLPROPERTIES ('${WriterCompat.ColumnMappingMode}' = 'name')")
        .toSeq :+
        s"RENAME COLUMN ${sqlPath(path)} TO ${quoteIfNeeded(name)}"
  }

  /** Takes the default from a column. */
  final case class DropDefault(table: String, path: Seq[String]) extends Alteration {
    override val kind: RemedyKind = RemedyKind.Default
    override protected def clauses: Seq[String] = Seq(s"ALTER COLUMN ${sqlPath(path)} DROP DEFAULT")
  }

  /** Lets a column hold nulls. */
  final case class DropNotNull(table: String, path: Seq[String]) extends Alteration {
    override val kind: RemedyKind = RemedyKind.Nulls
    override protected def clauses: Seq[String] = Seq(
      s"ALTER COLUMN ${sqlPath(path)} DROP NOT NULL"
    )
  }

  /** Gives a column a wider type, with a record of it. */
  final case class WidenColumn(table: String, path: Seq[String], dataType: DataType)
      extends Alteration {
    override val kind: RemedyKind = RemedyKind.Type
    override protected def clauses: Seq[String] = Seq(
      s"SET TBLPROPERTIES ('${WriterCompat.TypeWideningEnabled}' = 'true')",
      s"ALTER COLUMN ${sqlPath(path)} TYPE ${dataType.sql}"
    )
  }

  /**
   * Takes a feature out of the protocol.
   *
   * @param period
   *   how long ago its last use has to be; `None` if it may go at once
   * @param asked
   *   the feature that a statement may have asked for, and that is to be left out of it
   */
  final case class DropFeature(
      table: String,
      feature: String,
      period: Option[String],
      asked: Option[String] = None
  ) extends Alteration {
    override val kind: RemedyKind =
      if (period.isDefined) RemedyKind.DropFeatureLater else RemedyKind.DropFeature
    override def changes: Seq[Change] =
      asked.toSeq.map(name => Change.Property(s"delta.feature.$name", None))
    override protected def clauses: Seq[String] = Seq(
      s"DROP FEATURE $feature" + period.fold("")(_ => " TRUNCATE HISTORY")
    )
    override def note: Option[String] = period.map { time =>
      s"Delta drops $feature only if no version of the last $time has used it. If it refuses, " +
        "run the statement again after that time."
    }
  }

  /**
   * Switches a contract on for an existing table by the call of this project, which can write data
   * files anew.
   *
   * @param rewrite
   *   whether data files may be written anew
   * @param drop
   *   what may be taken away that stands in the way
   * @param feature
   *   the feature of the contract
   */
  final case class Enable(
      table: String,
      rewrite: Boolean = false,
      drop: Seq[String] = scala.Nil,
      feature: String = WriterCompat.Feature
  ) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Enable

    // The call and the command switch this contract on unless they name another.
    private val contract: Option[String] = Some(feature).filter(_ != WriterCompat.Feature)

    override protected def inSql: Seq[String] = {
      val arguments = Option.when(rewrite)("rewrite" -> "true") ++
        Option.when(drop.nonEmpty)("drop" -> drop.map(literal).mkString("array(", ", ", ")")) ++
        contract.map(name => "contract" -> literal(name))
      Seq(procedureCall("enable", table, arguments.toSeq))
    }

    override def python: Seq[String] = {
      val arguments = Option.when(rewrite)("rewrite=True") ++
        Option.when(drop.nonEmpty)(drop.mkString("drop=[\"", "\", \"", "\"]")) ++
        contract.map(name => s"contract=${pythonText(name)}")
      Seq(call("enable_iceberg_writer_compat", table, arguments.toSeq))
    }

    override def command: Seq[String] = {
      val options = Option.when(rewrite)("--rewrite") ++ drop.map(name => s"--drop $name") ++
        contract.map(name => s"--contract ${shellWord(name)}")
      Seq(commandLine("enable", table, options.toSeq))
    }
  }

  /**
   * Publishes a table as Iceberg.
   *
   * @param options
   *   the options of the call, each with the value that it has beside its name
   */
  final case class Publish(table: String, options: Seq[(String, Option[String])] = scala.Nil)
      extends Remedy {
    override val kind: RemedyKind = RemedyKind.Metadata
    override protected def inSql: Seq[String] = Seq(
      procedureCall(
        "publish",
        table,
        options.map { case (name, value) =>
          val argument =
            value.map(text => if (text.toLongOption.isDefined) text else literal(text))
          name.replace('-', '_') -> argument.getOrElse("true")
        }
      )
    )
    override def python: Seq[String] = Seq(
      call(
        "publish",
        table,
        options.map { case (name, value) =>
          val argument = value.map(text => if (text.toLongOption.isDefined) text else s"\"$text\"")
          s"${name.replace('-', '_')}=${argument.getOrElse("True")}"
        }
      )
    )
    override def command: Seq[String] = Seq(
      commandLine(
        "publish",
        table,
        options.map { case (name, value) => (s"--$name" +: value.toSeq).mkString(" ") }
      )
    )
  }

  /** Shows how far a table is published as Iceberg. */
  final case class Status(table: String) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Metadata
    override protected def inSql: Seq[String] = Seq(procedureCall("status", table, scala.Nil))
    override def python: Seq[String] = Seq(call("status", table, scala.Nil))
    override def command: Seq[String] = Seq(commandLine("status", table, scala.Nil))
  }

  /**
   * Copies rows into a new table that has the feature; the old table stays as it is.
   *
   * @param selected
   *   the columns, as they stand after SELECT; all columns if there are none
   * @param source
   *   the table to read, with the version if it is not the newest
   * @param properties
   *   of the new table, the one that switches the contract on among them
   * @param location
   *   the folder, if the user named one
   * @param created
   *   `CREATE TABLE`, or what else the user wrote for it
   * @param exactCase
   *   whether the columns are told apart by the case of letters alone
   */
  final case class CopyInto(
      target: String,
      selected: Seq[String],
      source: String,
      partitionedBy: Seq[String],
      properties: Seq[(String, String)],
      location: Option[String] = None,
      created: String = "CREATE TABLE",
      exactCase: Boolean = false
  ) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Copy
    override protected def inSql: Seq[String] = {
      val what = if (selected.isEmpty) "*" else selected.mkString(", ")
      inExactCase(exactCase)(
        s"$created $target USING delta${Quoting.partitionedBy(partitionedBy)}" +
          location.fold("")(folder => s" LOCATION ${literal(folder)}") +
          s" TBLPROPERTIES (${Quoting.properties(properties)}) AS SELECT $what FROM $source"
      )
    }
  }

  /** The statement that creates or replaces the table, with changes. */
  final case class Create(
      declared: Declared,
      override val changes: Seq[Change],
      door: Option[Door] = None
  ) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Change

    override def verb: String = door match {
      case Some(Door.Writer | Door.Builder) => "Use"
      case _                                => super.verb
    }

    override protected def keepsVariables: Boolean = door.isDefined

    override protected def inSql: Seq[String] = door match {
      case Some(sql: Door.Sql) =>
        WrittenStatement.changed(sql, declared, changes) match {
          case Some(statement)            => Seq(statement)
          case None if declared.replacing => calls(Calls.ofWriter)
          case None                       => Seq(declaredStatement)
        }
      case Some(Door.Writer)  => calls(Calls.ofWriter)
      case Some(Door.Builder) => calls(Calls.ofBuilder)
      case None               => Seq(declaredStatement)
    }

    override def python: Seq[String] = if (verb == "Use") sql else super.python

    private def calls(of: (StructType, Seq[Change]) => Seq[String]): Seq[String] = {
      val all = of(declared.schema, changes)
      if (all.isEmpty) Seq(declaredStatement) else all
    }

    private def declaredStatement: String = {
      val verb = if (declared.replacing) "CREATE OR REPLACE TABLE" else "CREATE TABLE"
      val columns = declared.columns(changes)
      val list = if (columns.isEmpty) "" else s"($columns) "
      val set = changes.collect { case Change.Property(key, Some(value)) => key -> value }.toMap
      s"$verb ${declared.name} ${list}USING delta" +
        Quoting.partitionedBy(declared.partitions(changes)) +
        s" TBLPROPERTIES (${Quoting.properties((set + (declared.property -> "true")).toSeq.sorted)})"
    }
  }

  /**
   * The statement that was refused, with changes.
   *
   * @param before
   *   what has to be done before it
   */
  final case class Again(
      override val changes: Seq[Change],
      statement: String,
      before: Seq[Alteration]
  ) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Change
    override protected def inSql: Seq[String] = before.flatMap(_.sql) :+ statement
    override protected def keepsVariables: Boolean = true
  }

  /** Sets a setting of the session; with `None` it gets no value. */
  final case class SetSetting(settings: Seq[(String, String)]) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Change
    override protected def inSql: Seq[String] =
      settings.map { case (key, value) => s"SET $key=$value" }
    override def command: Seq[String] =
      settings.map { case (key, value) => s"--conf ${shellWord(s"$key=$value")}" }
  }

  /** A setting of a session that is to be started, in place of what it has. */
  final case class UseSetting(what: String) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Change
    override protected def inSql: Seq[String] = Seq(what)
    override def python: Seq[String] = Seq(what)
    override def verb: String = "Use"
    override protected def keepsVariables: Boolean = true
  }

  /** Gives a column of some rows another value. */
  final case class UpdateRows(table: String, column: String, value: String, condition: String)
      extends Remedy {
    override val kind: RemedyKind = RemedyKind.Rows
    override protected def inSql: Seq[String] =
      Seq(s"UPDATE $table SET $column = $value WHERE $condition")
  }

  /** Leaves clustering of rows that are still to be written. */
  final case class Uncluster(table: String) extends Alteration {
    override val kind: RemedyKind = RemedyKind.Change
    override protected def clauses: Seq[String] = Seq("CLUSTER BY NONE")
  }

  /** Writes files anew whose rows were deleted by deletion vectors. */
  final case class Purge(table: String) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Purge
    override protected def inSql: Seq[String] = Seq(s"REORG TABLE $table APPLY (PURGE)")
  }

  /** Runs a statement of a table once more. */
  final case class RunAgain(statement: String) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Change
    override protected def inSql: Seq[String] = Seq(statement)
  }

  /** Removes files that belong to no version. */
  final case class Vacuum(table: String) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Change
    override protected def inSql: Seq[String] = Seq(s"VACUUM $table")
  }

  /** Shows who wrote what when, where no statement can bring lost values back. */
  final case class History(table: String) extends Remedy {
    override val kind: RemedyKind = RemedyKind.Look
    override protected def inSql: Seq[String] = Seq(s"DESCRIBE HISTORY $table")
  }

  /** The columns of one schema as those of another, which has the same number of them. */
  def selected(
      from: StructType,
      to: StructType,
      cast: StructField => Boolean = _ => false
  ): Seq[String] =
    from.fields.toSeq.zip(to.fields).map { case (was, is) =>
      val (name, wanted) = (quoteIfNeeded(was.name), quoteIfNeeded(is.name))
      if (was.dataType != is.dataType || cast(was)) s"CAST($name AS ${is.dataType.sql}) AS $wanted"
      else if (name == wanted) name
      else s"$name AS $wanted"
    }
}
