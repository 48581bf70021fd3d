package org.icebergwritercompat.remedy

import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.types._
import org.icebergwritercompat.model.WriterCompat

/**
 * The statements that fix a violation or another problem.
 *
 * A remedy has three renderings (SQL, Python and commands), each a list of statements to be run in
 * order.
 */
sealed trait Remedy {

  /** In SQL; if SQL has no statement for it, the Python call or the command. */
  protected def inSql: Seq[String]

  /** In Python. */
  def python: Seq[String] = sql.map(Remedy.inPython)

  /** As commands; SQL if the command line has no subcommand for it. */
  def command: Seq[String] = sql

  /** What the user must know before running it. */
  def note: Option[String] = None

  /** What to do with the statements: `Run` them, or `Use` them as settings. */
  def verb: String = "Run"

  /** The changes of the refused statement, if the fault is in a statement. */
  def changes: Seq[Change] = Nil

  /** In SQL, without the substitution of variables. */
  final def sql: Seq[String] = {
    // Spark would substitute it as a variable; there is no other escape.
    val verbatim = keepsVariables || !inSql.exists(_.contains("${"))
    if (verbatim) inSql else "SET spark.sql.variable.substitute=false" +: inSql
  }

  /** Whether `${name}` in the statements is a variable, as in a statement that a user wrote. */
  protected def keepsVariables: Boolean = false

  /** The statements, one per line. */
  final def text: String = sql.mkString("\n")

  /** Whether there is nothing to do. */
  final def isEmpty: Boolean = inSql.isEmpty
}

/** A change of an existing table, by an ALTER TABLE statement that loses no row. */
sealed trait Alteration extends Remedy {

  /** The table, as written in statements. */
  def table: String

  /** The clauses after ALTER TABLE and the name. */
  protected def clauses: Seq[String]

  final override protected def inSql: Seq[String] = statements

  /** The statements, to be run without the substitution of variables. */
  final def statements: Seq[String] =
    clauses.map(clause => s"ALTER TABLE $table $clause")
}

object Remedy {

  /** No statement. */
  case object Nothing extends Remedy {
    override protected def inSql: Seq[String] = scala.Nil
  }

  /**
   * Sets properties of a table.
   *
   * @param without
   *   properties that are removed from a refused statement that sets them
   */
  final case class SetProperties(
      table: String,
      properties: Seq[(String, String)],
      without: Seq[String] = scala.Nil
  ) extends Alteration {
    override protected def clauses: Seq[String] = Seq(
      s"SET TBLPROPERTIES (${properties.map { case (k, v) => s"${literal(k)} = ${literal(v)}" }.mkString(", ")})"
    )
    override def changes: Seq[Change] = properties.map { case (key, value) =>
      Change.Property(key, Some(value))
    } ++ without.map(Change.Property(_, None))
  }

  object SetProperty {
    def apply(table: String, key: String, value: String): SetProperties =
      SetProperties(table, Seq(key -> value))
  }

  /** Unsets a property of a table. */
  final case class UnsetProperty(table: String, key: String) extends Alteration {
    override protected def clauses: Seq[String] = Seq(s"UNSET TBLPROPERTIES (${literal(key)})")
    override def changes: Seq[Change] = Seq(Change.Property(key, None))
  }

  /** Drops a CHECK constraint of a table. */
  final case class DropConstraint(table: String, constraint: String) extends Alteration {
    override protected def clauses: Seq[String] = Seq(
      s"DROP CONSTRAINT ${quoteIfNeeded(constraint)}"
    )
  }

  /**
   * Adds a column or a field.
   *
   * @param features
   *   features that the type requires, and that are added first
   * @param instead
   *   the changes of a refused statement that adds the column
   */
  final case class AddColumn(
      table: String,
      path: Seq[String],
      dataType: DataType,
      features: Seq[String],
      instead: Seq[Change]
  ) extends Alteration {
    override protected def clauses: Seq[String] =
      supporting(features) :+ s"ADD COLUMNS (${sqlPath(path)} ${dataType.sql})"
    override def changes: Seq[Change] = instead
  }

  private def supporting(features: Seq[String]): Seq[String] =
    features.map(feature => s"SET TBLPROPERTIES ('delta.feature.$feature' = 'supported')")

  /**
   * Renames a column.
   *
   * @param mapped
   *   whether the table has column mapping, which Delta requires to rename columns
   */
  final case class RenameColumn(
      table: String,
      path: Seq[String],
      name: String,
      mapped: Boolean = true
  ) extends Alteration {
    override protected def clauses: Seq[String] =
      Option
        .unless(mapped)(s"SET TBLPROPERTIES ('${WriterCompat.ColumnMappingMode}' = 'name')")
        .toSeq :+
        s"RENAME COLUMN ${sqlPath(path)} TO ${quoteIfNeeded(name)}"
  }

  /** Drops the default of a column. */
  final case class DropDefault(table: String, path: Seq[String]) extends Alteration {
    override protected def clauses: Seq[String] = Seq(s"ALTER COLUMN ${sqlPath(path)} DROP DEFAULT")
  }

  /** Makes a column nullable. */
  final case class DropNotNull(table: String, path: Seq[String]) extends Alteration {
    override protected def clauses: Seq[String] = Seq(
      s"ALTER COLUMN ${sqlPath(path)} DROP NOT NULL"
    )
  }

  /** Changes a column to a wider type; Delta records the change. */
  final case class WidenColumn(table: String, path: Seq[String], dataType: DataType)
      extends Alteration {
    override protected def clauses: Seq[String] = Seq(
      s"SET TBLPROPERTIES ('${WriterCompat.TypeWideningEnabled}' = 'true')",
      s"ALTER COLUMN ${sqlPath(path)} TYPE ${dataType.sql}"
    )
  }

  /**
   * Drops a feature from the protocol.
   *
   * @param period
   *   the time since its last use that Delta requires; `None` if it can be dropped at once
   * @param asked
   *   the feature that is removed from a refused statement that adds it
   */
  final case class DropFeature(
      table: String,
      feature: String,
      period: Option[String],
      asked: Option[String] = None
  ) extends Alteration {
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

  /** Switches the feature on by an upgrade, which can rewrite data files. */
  final case class Enable(table: String, rewrite: Boolean = false, drop: Seq[String] = scala.Nil)
      extends Remedy {

    override protected def inSql: Seq[String] = python

    override def python: Seq[String] = {
      val arguments = Option.when(rewrite)("rewrite=True") ++
        Option.when(drop.nonEmpty)(drop.mkString("drop=[\"", "\", \"", "\"]"))
      Seq(call("enable_iceberg_writer_compat", table, arguments.toSeq))
    }

    override def command: Seq[String] = {
      val options = Option.when(rewrite)("--rewrite") ++ drop.map(name => s"--drop $name")
      Seq(commandLine("enable", table, options.toSeq))
    }

    // The text is not a SQL statement, so nothing is substituted.
    override protected def keepsVariables: Boolean = true
  }

  /**
   * Publishes a table as Iceberg.
   *
   * @param options
   *   the options of the call, each with its value if it has one
   */
  final case class Publish(table: String, options: Seq[(String, Option[String])] = scala.Nil)
      extends Remedy {
    override protected def inSql: Seq[String] = command
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
    override protected def keepsVariables: Boolean = true
  }

  /** Shows the published version of a table. */
  final case class Status(table: String) extends Remedy {
    override protected def inSql: Seq[String] = command
    override def python: Seq[String] = Seq(call("status", table, scala.Nil))
    override def command: Seq[String] = Seq(commandLine("status", table, scala.Nil))
    override protected def keepsVariables: Boolean = true
  }

  /**
   * Copies rows into a new table with the feature; the old table is kept.
   *
   * @param verb
   *   `CREATE TABLE`, or another form that the user wrote
   * @param selected
   *   the columns after SELECT
   * @param source
   *   the table to read, with the version if it is not the newest
   * @param location
   *   the folder, if the user gave one
   */
  final case class CopyInto(
      target: String,
      selected: Seq[String],
      source: String,
      partitionedBy: Seq[String],
      properties: Seq[(String, String)] = Seq(WriterCompat.Enabled -> "true"),
      location: Option[String] = None,
      created: String = "CREATE TABLE"
  ) extends Remedy {
    override protected def inSql: Seq[String] = {
      val what = if (selected.isEmpty) "*" else selected.mkString(", ")
      Seq(
        s"$created $target USING delta${partitioning(partitionedBy)}" +
          location.fold("")(folder => s" LOCATION ${literal(folder)}") +
          s" TBLPROPERTIES (${set(properties)}) AS SELECT $what FROM $source"
      )
    }
  }

  private def set(properties: Seq[(String, String)]): String =
    properties.map { case (key, value) => s"${literal(key)} = ${literal(value)}" }.mkString(", ")

  private[remedy] def partitioning(columns: Seq[String]): String =
    if (columns.isEmpty) "" else columns.map(quoteIfNeeded).mkString(" PARTITIONED BY (", ", ", ")")

  /** The columns of a table with the changes, as in a CREATE TABLE statement. */
  private[remedy] def columnsOf(declared: Declared, changes: Seq[Change]): String = {
    val fields = declared.schema.fields
      .map(field => Change.of(changes, Seq(field.name), field)) ++ changes.collect {
      case Change.Added(name, dataType) => StructField(name, dataType)
    }
    fields
      .map { field =>
        val notNull = if (field.nullable) "" else " NOT NULL"
        val comment = field.getComment().fold("")(text => s" COMMENT ${literal(text)}")
        s"${quoteIfNeeded(field.name)} ${field.dataType.sql}$notNull$comment"
      }
      .mkString(", ")
  }

  /** Its partition columns with the changes. */
  private[remedy] def partitionsOf(declared: Declared, changes: Seq[Change]): Seq[String] =
    changes
      .collectFirst { case Change.Partitioning(names) => names }
      .getOrElse(declared.partitionColumns)
      .map(name => Change.of(changes, Seq(name), StructField(name, StringType)).name)

  /**
   * The table that a refused statement would create or replace, or the table that it would change.
   *
   * @param name
   *   as a statement spells it
   */
  final case class Declared(
      name: String,
      replacing: Boolean,
      schema: StructType,
      partitionColumns: Seq[String]
  )

  /** The form of a refused statement. */
  sealed trait Door

  object Door {

    /**
     * A SQL statement with this text.
     *
     * @param isClustered
     *   whether PARTITIONED BY means CLUSTER BY, because Delta's parser replaced it
     */
    final case class Sql(text: String, isClustered: Boolean = false) extends Door

    /** A call of a DataFrame writer. */
    case object Writer extends Door

    /** A call of the builder of `DeltaTable`. */
    case object Builder extends Door
  }

  /** The statement that creates or replaces the table, with changes. */
  final case class Create(
      declared: Declared,
      override val changes: Seq[Change],
      door: Option[Door] = None
  ) extends Remedy {

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
      val columns = columnsOf(declared, changes)
      val list = if (columns.isEmpty) "" else s"($columns) "
      val partitions = partitionsOf(declared, changes)
      val properties = changes.collect { case Change.Property(key, Some(value)) => key -> value }
      s"$verb ${declared.name} ${list}USING delta${partitioning(partitions)} " +
        s"TBLPROPERTIES (${set((properties.toMap + (WriterCompat.Enabled -> "true")).toSeq.sorted)})"
    }
  }

  /**
   * The refused statement with changes.
   *
   * @param before
   *   the remedy to be run first
   */
  final case class Again(
      override val changes: Seq[Change],
      statement: String,
      before: Seq[Alteration]
  ) extends Remedy {
    override protected def inSql: Seq[String] = before.flatMap(_.sql) :+ statement
    override protected def keepsVariables: Boolean = true
  }

  /** Sets a session setting, or unsets it with `None`. */
  final case class SetSetting(settings: Seq[(String, String)]) extends Remedy {
    override protected def inSql: Seq[String] =
      settings.map { case (key, value) => s"SET $key=$value" }
    override def command: Seq[String] =
      settings.map { case (key, value) => s"--conf ${shellWord(s"$key=$value")}" }
  }

  /** A setting for the start of a session. */
  final case class UseSetting(what: String) extends Remedy {
    override protected def inSql: Seq[String] = Seq(what)
    override def python: Seq[String] = Seq(what)
    override def verb: String = "Use"
    override protected def keepsVariables: Boolean = true
  }

  /** Updates a column of some rows. */
  final case class UpdateRows(table: String, column: String, value: String, condition: String)
      extends Remedy {
    override protected def inSql: Seq[String] =
      Seq(s"UPDATE $table SET $column = $value WHERE $condition")
  }

  /** Switches the clustering of new rows off. */
  final case class Uncluster(table: String) extends Alteration {
    override protected def clauses: Seq[String] = Seq("CLUSTER BY NONE")
  }

  /** Rewrites files that have deletion vectors. */
  final case class Purge(table: String) extends Remedy {
    override protected def inSql: Seq[String] = Seq(s"REORG TABLE $table APPLY (PURGE)")
  }

  /** Runs a statement on a table again. */
  final case class RunAgain(statement: String) extends Remedy {
    override protected def inSql: Seq[String] = Seq(statement)
  }

  /** Removes files that belong to no version. */
  final case class Vacuum(table: String) extends Remedy {
    override protected def inSql: Seq[String] = Seq(s"VACUUM $table")
  }

  /** Shows the history of the table, if no statement can restore lost values. */
  final case class History(table: String) extends Remedy {
    override protected def inSql: Seq[String] = Seq(s"DESCRIBE HISTORY $table")
  }

  /** A shell command, such as one that installs a package. */
  final case class Shell(line: String) extends Remedy {
    override protected def inSql: Seq[String] = Seq(line)
    override def python: Seq[String] = Seq(line)
    override protected def keepsVariables: Boolean = true
  }

  /** Several remedies, in this order. */
  final case class InOrder(steps: Seq[Remedy]) extends Remedy {
    override protected def inSql: Seq[String] = steps.flatMap(_.sql)
    override def python: Seq[String] = steps.flatMap(_.python)
    override def command: Seq[String] = steps.flatMap(_.command)
    override def note: Option[String] = steps.flatMap(_.note).headOption
    override protected def keepsVariables: Boolean = true
  }

  /**
   * One remedy for all violations of a statement.
   *
   * @param remedies
   *   the remedies of the violations, in the order of the violations
   * @param door
   *   the form of the statement, if it is known
   */
  def together(remedies: Seq[Remedy], door: Option[Door]): Remedy = remedies match {
    case (create: Create) +: _ =>
      val changes = remedies.collect { case other: Create => other.changes }.flatten.distinct
      // An incomplete statement would be wrong; the calls to change are offered instead.
      create.copy(changes = changes, door = door.orElse(Some(Door.Writer)))
    case first +: _ =>
      val all = remedies.flatMap(_.changes).distinct
      val features = remedies.collect { case add: AddColumn => add.features.map(add.table -> _) }
      door match {
        case Some(sql @ Door.Sql(text, _)) if first.changes.nonEmpty =>
          WrittenStatement
            .changed(sql, Declared("", replacing = false, new StructType, scala.Nil), all)
            // The statement itself has no fault.
            .filter(_ != text)
            .fold(first) { statement =>
              val before = features.flatten.distinct.map { case (table, feature) =>
                SetProperty(table, s"delta.feature.$feature", "supported")
              }
              Again(all, statement, before)
            }
        case _ => first
      }
    case _ => Nothing
  }

  /** The columns of one schema with the names and types of another of the same size. */
  def selected(from: StructType, to: StructType): Seq[String] =
    from.fields.toSeq.zip(to.fields).map { case (was, is) =>
      val (name, wanted) = (quoteIfNeeded(was.name), quoteIfNeeded(is.name))
      if (was.dataType != is.dataType) s"CAST($name AS ${is.dataType.sql}) AS $wanted"
      else if (name == wanted) name
      else s"$name AS $wanted"
    }

  /** A text as a SQL literal. */
  private[remedy] def literal(text: String): String =
    "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

  private def sqlPath(path: Seq[String]): String = path.map(quoteIfNeeded).mkString(".")

  private def inPython(statement: String): String = s"spark.sql(${pythonText(statement)})"

  private def call(function: String, table: String, arguments: Seq[String]): String =
    s"$function(spark, ${(pythonText(table) +: arguments).mkString(", ")})"

  private def pythonText(text: String): String =
    if (text.contains("\n")) "\"\"\"" + escaped(text) + "\"\"\""
    else "\"" + escaped(text) + "\""

  private def escaped(text: String): String = text.replace("\\", "\\\\").replace("\"", "\\\"")

  private def commandLine(verb: String, table: String, options: Seq[String]): String =
    (Seq("iceberg-writer-compat", verb, shellQuoted(table)) ++ options).mkString(" ")

  private def shellWord(word: String): String =
    if (word.matches("[A-Za-z0-9_./=:@%+,-]+")) word else shellQuoted(word)

  private def shellQuoted(word: String): String = "'" + word.replace("'", "'\\''") + "'"
}
