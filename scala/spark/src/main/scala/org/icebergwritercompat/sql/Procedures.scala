package org.icebergwritercompat.sql

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.connector.read.LocalScan
import org.apache.spark.sql.delta.writercompat.publish.SparkPublishing
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, MalformedLog, TableStates}
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.apache.spark.sql.types._
import org.icebergwritercompat.errors.IcebergWriterCompatException.{inOneLine, wrongOption}
import org.icebergwritercompat.iceberg.IcebergLibrary
import org.icebergwritercompat.iceberg.publish.PublishWay
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report._
import org.icebergwritercompat.reports.Reports

/**
 * The procedures of SQL: what the Python package does, by the same names and parameters.
 *
 * {{{
 * CALL iceberg_writer_compat.system.enable(table => 'db.t', rewrite => true)
 * }}}
 */
private[sql] object Procedures {

  /** The catalog that has them. */
  val catalog: String = Remedy.ProcedureCatalog

  /** The namespace of the catalog. */
  val namespace: String = Remedy.ProcedureNamespace

  private val table = Parameter.needed("table", "the name or path of a Delta table")

  private val enableOptions = Seq(
    Parameter.text("mode", "auto, metadata or rewrite", "'auto'"),
    Parameter.flag("rewrite", "whether auto may rewrite data files"),
    Parameter.flag("dry_run", "only show what would be done"),
    Parameter.texts("drop", "the blockers to remove"),
    Parameter.text("contract", "the feature, if it is not icebergWriterCompatV1")
  )

  private val enable = new Procedure(
    "enable",
    "Switches the feature on for a table.",
    table +: enableOptions,
    { (spark, asked) =>
      val options = Options(asked)
      if (asked.flag("dry_run"))
        planned.scan("enable")(Plans.rows(options.plan(spark, asked.table)))
      else done(enabled, "enable")(options.run(spark, asked.table))
    }
  )

  private val disable = new Procedure(
    "disable",
    "Takes the feature out of a table.",
    Seq(table),
    (spark, asked) =>
      done(disabled, "disable")(about(spark, asked.table) {
        val found = DeltaTables.find(spark, asked.table)
        Disabled(TableStates.nameOf(found), DeltaTables.disable(spark, found))
      })
  )

  private val publish = new Procedure(
    "publish",
    "Publishes the newest version of a table as Iceberg.",
    Seq(
      table,
      Parameter.number("take_snapshot", "the last snapshot of an Iceberg writer to append"),
      Parameter.number("discard_snapshot", "the last snapshot of an Iceberg writer to discard"),
      Parameter.text("discard_changes", "the metadata file whose changes are discarded"),
      Parameter.flag("mend", "read all snapshots, and remove those that cannot be read"),
      Parameter.flag("anew", "begin a new line of metadata")
    ),
    (spark, asked) =>
      done(published, "publish")(about(spark, asked.table) {
        val ways = Seq[(String, Option[SparkPublishing => PublishResult])](
          "take_snapshot" -> asked.number("take_snapshot", 0).map(id => _.take(id)),
          "discard_snapshot" -> asked
            .number("discard_snapshot", 0)
            .map(id => _.publish(PublishWay.Settled(id))),
          "discard_changes" -> asked
            .text("discard_changes")
            .map(file => _.publish(PublishWay.Discarding(file))),
          "mend" -> Option.when(asked.flag("mend"))(_.publish(PublishWay.Mending)),
          "anew" -> Option.when(asked.flag("anew"))(_.publish(PublishWay.Anew))
        ).collect { case (name, Some(asks)) => name -> asks }
        if (ways.sizeIs > 1) {
          val (first, second) = (ways.head._1, ways(1)._1)
          throw wrongOption(second, "given together with " + first, Seq("only one of both"))
        }
        val way = ways.headOption.fold[SparkPublishing => PublishResult](_.publish())(_._2)
        IcebergLibrary.needed(way(SparkPublishing.of(spark, asked.table)))
      })
  )

  private val status = new Procedure(
    "status",
    "Shows how far a table is published as Iceberg.",
    Seq(table),
    (spark, asked) =>
      done(publishing, "status")(about(spark, asked.table) {
        IcebergLibrary.needed(SparkPublishing.of(spark, asked.table).status())
      })
  )

  private val version = Parameter.number("version", "the version to look at; the newest if NULL")

  private val check = new Procedure(
    "check",
    "Shows the rules that the log of a table breaks.",
    Seq(table, version),
    (spark, asked) => found("check")(Reports.check(spark, asked.table, asked.number("version", 0)))
  )

  private val verify = new Procedure(
    "verify",
    "Shows the rules that the log and the data files of a table break.",
    Seq(table, version, Parameter.number("files", "the most files to open; all if NULL")),
    (spark, asked) =>
      found("verify")(
        Reports
          .verify(spark, asked.table, asked.number("version", 0), asked.number("files", 1))
      )
  )

  private val wouldBreak = new Procedure(
    "would_break",
    "Shows the rules that a change of a table would break.",
    Seq(
      Parameter.text("statement", "an ALTER, CREATE or REPLACE statement"),
      Parameter.text("table", "instead of a statement, the name or path of a table"),
      Parameter.text("schema", "the columns that the table would have, as in CREATE TABLE")
    ),
    (spark, asked) =>
      found("would_break")(
        (asked.text("statement"), asked.text("table"), asked.text("schema")) match {
          case (Some(statement), None, None)   => Reports.wouldBreak(spark, statement)
          case (None, Some(name), Some(asDdl)) =>
            Reports.wouldBreak(spark, name, StructType.fromDDL(asDdl))
          case (statement, _, _) =>
            val allowed = "either a statement, or NULL with table and schema"
            throw wrongOption("statement", statement.getOrElse("NULL"), Seq(allowed))
        }
      )
  )

  private val history = new Procedure(
    "history",
    "Shows the versions of a table that first broke each rule.",
    Seq(table),
    (spark, asked) => {
      val report = Reports.history(spark, asked.table)
      Findings.historyColumns.scan("history")(Findings.in(report))
    }
  )

  private val enableAll = new Procedure(
    "enable_all",
    "Switches the feature on for many tables.",
    Seq(
      Parameter.text("schema", "all Delta tables of this schema"),
      Parameter.texts("tables", "in addition, these names and paths"),
      Parameter.text("catalog", "in addition, all Delta tables of this catalog")
    ) ++ enableOptions :+ Parameter.count(
      "parallelism",
      "how many tables at a time",
      ManyTables.AtATime
    ),
    { (spark, asked) =>
      val (schema, more, catalog) =
        (asked.text("schema"), asked.texts("tables"), asked.text("catalog"))
      if (schema.isEmpty && more.isEmpty && catalog.isEmpty)
        throw wrongOption("schema", "NULL", Seq("a schema, unless tables or catalog is given"))
      val names = (more ++ schema.toSeq.flatMap(TableNames.inSchema(spark, _)) ++
        catalog.toSeq.flatMap(TableNames.inCatalog(spark, _))).distinct
      val (options, atATime) = (Options(asked), asked.count("parallelism"))
      if (asked.flag("dry_run")) {
        val rows = ManyTables.each(spark, names, atATime)(options.plan(spark, _))
        allPlanned.scan("enable_all")(rows)
      } else {
        val rows = ManyTables.each(spark, names, atATime)(options.run(spark, _))
        allEnabled.scan("enable_all")(rows)
      }
    }
  )

  /** All of them. */
  val all: Seq[Procedure] =
    Seq(enable, disable, publish, status, check, verify, wouldBreak, history, enableAll)

  /** What a call allows, to switch the feature on. */
  private final case class Options(
      mode: String,
      rewrite: Boolean,
      drop: Seq[String],
      contract: Option[String]
  ) {
    def plan(spark: SparkSession, table: String): TableReport =
      Reports.plan(spark, table, mode, rewrite, drop, contract)

    def run(spark: SparkSession, table: String): UpgradeResult =
      about(spark, table)(TableUpgrade.of(spark, table, mode, rewrite, drop, contract).run())
  }

  private object Options {
    def apply(asked: Arguments): Options = new Options(
      asked.text("mode").getOrElse("auto"),
      asked.flag("rewrite"),
      asked.texts("drop"),
      asked.text("contract")
    )
  }

  private final case class Disabled(table: String, changed: Boolean)

  // Errors of a malformed log name the field; other errors are not changed.
  private def about[T](spark: SparkSession, table: String)(answer: => T): T =
    MalformedLog.explained(spark, table)(identity)(answer)

  private def done[A](columns: ResultSet[A], name: String)(result: A): LocalScan =
    columns.scan(name)(Seq(result))

  private def found(name: String)(report: TableReport): LocalScan =
    Findings.columns.scan(name)(Findings.in(report))

  private val texts = ArrayType(StringType)

  private val mending =
    ArrayType(StructType(Seq(StructField("text", StringType), StructField("fix", texts))))

  private val upgraded: ResultSet[UpgradeResult] = ResultSet
    .rowsOf[UpgradeResult]
    .and("changed", BooleanType)(_.changed)
    .and("contract", StringType)(_.contract)
    .and("version", LongType)(_.version)
    .and("mode", StringType)(_.mode.name)
    .and("files_rewritten", LongType)(_.filesRewritten)
    .and("bytes_rewritten", LongType)(_.bytesRewritten)
    .and("files_kept", LongType)(_.filesKept)
    .and("orphans", texts)(_.orphans)
    .and("warnings", mending)(_.warnings.map(one => Row(one.text, one.remedy.sql)))

  private val enabled: ResultSet[UpgradeResult] =
    ResultSet.rowsOf[UpgradeResult].and("table_name", StringType)(_.table).and(upgraded)

  private val disabled: ResultSet[Disabled] = ResultSet
    .rowsOf[Disabled]
    .and("table_name", StringType)(_.table)
    .and("changed", BooleanType)(_.changed)

  private val published: ResultSet[PublishResult] = ResultSet
    .rowsOf[PublishResult]
    .and("table_name", StringType)(_.table)
    .and("changed", BooleanType)(done => !done.previousVersion.contains(done.deltaVersion))
    .and("metadata_location", StringType)(_.metadataLocation)
    .and("delta_version", LongType)(_.deltaVersion)
    .and("previous_version", LongType)(_.previousVersion)
    .and("snapshot_id", LongType)(_.snapshotId)
    .and("snapshots", LongType)(_.snapshots.toLong)
    .and("files_added", LongType)(_.filesAdded)
    .and("files_removed", LongType)(_.filesRemoved)
    .and("catalog_table", StringType)(_.catalogTable)
    .and("mended", texts)(_.mended)
    .and("set_aside", texts)(_.setAside)

  private val publishing: ResultSet[PublishStatus] = ResultSet
    .rowsOf[PublishStatus]
    .and("table_name", StringType)(_.table)
    .and("delta_version", LongType)(_.deltaVersion)
    .and("published_version", LongType)(_.publishedVersion)
    .and("lag", LongType)(_.lag)
    .and("snapshot_id", LongType)(_.snapshotId)
    .and("metadata_location", StringType)(_.metadataLocation)
    .and("catalog_table", StringType)(_.catalogTable)
    .and("problems", mending)(_.problems.map(one => Row(one.text, one.remedy.sql)))

  private val planned: ResultSet[PlanRow] = ResultSet
    .rowsOf[PlanRow]
    .and("table_name", StringType)(_.table)
    .and("mode", StringType)(_.mode.name)
    .and("step", StringType)(_.step)
    .and("what", StringType)(_.what)
    .and("files", LongType)(_.files)
    .and("bytes", LongType)(_.bytes)
    .and("rules", texts)(_.rules)
    .and("fix", texts)(_.remedy.sql)

  private def ofMany[A](whenDone: String): ResultSet[OneOfMany[A]] = ResultSet
    .rowsOf[OneOfMany[A]]
    .and("table_name", StringType)(_.table)
    .and("state", StringType)(one => if (one.outcome.isSuccess) whenDone else "failed")

  private def withError[A](columns: ResultSet[OneOfMany[A]]): ResultSet[OneOfMany[A]] = columns
    .and("error_condition", StringType)(_.condition)
    .and("error", StringType)(_.failure.map(inOneLine(_)._1))
    .and("fix", texts)(_.failure.flatMap(inOneLine(_)._2).fold(Seq.empty[String])(_.sql))

  private val allEnabled: ResultSet[OneOfMany[UpgradeResult]] =
    withError(ofMany[UpgradeResult]("done").andIf(_.outcome.toOption, upgraded))

  private val allPlanned: ResultSet[OneOfMany[TableReport]] = withError(
    ofMany[TableReport]("planned").andIf(
      _.outcome.toOption.flatMap(_.plan),
      ResultSet
        .rowsOf[PlanFact]
        .and("mode", StringType)(_.mode.name)
        .and("files_to_rewrite", LongType)(_.filesToRewrite)
        .and("bytes_to_rewrite", LongType)(_.bytesToRewrite)
    )
  )
}
