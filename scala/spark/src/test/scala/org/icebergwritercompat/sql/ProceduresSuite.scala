package org.icebergwritercompat.sql

import org.apache.spark.{SparkConf, SparkException}
import org.apache.spark.sql.{AnalysisException, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.delta.writercompat.{OnThread, TableSuite}
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{FolderListing, SharedSpark, TestTable}

/** The procedures of SQL, on real tables. */
class ProceduresSuite extends TableSuite {

  private def call(procedure: String, arguments: String): Seq[Row] =
    spark.sql(s"CALL iceberg_writer_compat.system.$procedure($arguments)").collect().toSeq

  private def one(procedure: String, arguments: String): Map[String, Any] = {
    val rows = call(procedure, arguments)
    assert(rows.sizeIs == 1, rows)
    rows.head.getValuesMap(rows.head.schema.fieldNames.toSeq)
  }

  private def of(table: TestTable, more: String = ""): String = s"table => '${table.name}'$more"

  private def isOn(table: TestTable): Boolean = IcebergWriterCompat.isEnabled(spark, table.name)

  /** A table whose data file can be kept. */
  private def mapped(table: TestTable = managed()): TestTable = {
    sql(
      s"CREATE TABLE ${table.name} (id INT, name STRING) USING delta " +
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 'n')")
    table
  }

  test("enable and disable change the table once, and say what they did") {
    val table = mapped()
    val done = one("enable", of(table))
    assert(done("table_name") == s"default.${table.name}" && done("changed") == true)
    assert(done("contract") == "icebergWriterCompatV1" && done("mode") == "metadata")
    assert(done("version") == table.log.version && done("files_rewritten") == 0L)
    assert(done("files_kept").asInstanceOf[Long] > 0)
    assertCompliant(table)
    assert(one("enable", of(table))("changed") == false)
    assert(
      one("disable", of(table)) == Map[String, Any](
        "table_name" -> s"default.${table.name}",
        "changed" -> true
      )
    )
    assert(!table.log.writerFeatures("icebergWriterCompatV1"))
    assert(one("disable", of(table))("changed") == false)
  }

  test("a dry run shows the steps, and changes nothing") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING delta AS SELECT 1S AS s, 2 AS b")
    val before = FolderListing.of(table.folder)
    val rows = call("enable", of(table, ", rewrite => true, dry_run => true"))
    assert(rows.map(_.getAs[String]("mode")).distinct == Seq("rewrite"))
    assert(rows.map(_.getAs[String]("step")).contains("commit"))
    val files = rows.filter(_.getAs[String]("step") == "files: rewrite")
    assert(files.map(_.getAs[Long]("files")).sum == table.log.liveFiles.size)
    assert(files.flatMap(_.getSeq[String](6)).nonEmpty)
    assert(FolderListing.of(table.folder) == before && !isOn(table))
    assert(one("enable", of(table, ", rewrite => true"))("files_rewritten") == files.size)
    assertCompliant(table)
    assert(content(table) == Set("[1,2]"))
    assert(one("enable", of(table, ", dry_run => true"))("step") == "none")
  }

  private def content(table: TestTable): Set[String] = rows(s"SELECT * FROM ${table.name}")

  test("what stands in the way is offered as calls and statements, and drop removes it") {
    val table = mapped()
    sql(s"ALTER TABLE ${table.name} ADD CONSTRAINT `my low` CHECK (id < 9)")
    val blockers = call("enable", of(table, ", dry_run => true"))
      .filter(_.getAs[String]("step") == "blocker")
    assert(blockers.map(_.getSeq[String](6)) == Seq(Seq("B8")))
    assert(blockers.head.getAs[String]("mode") == "blocked")
    assert(
      blockers.head.getSeq[String](7) == Seq(
        s"ALTER TABLE default.${table.name} DROP CONSTRAINT `my low`"
      )
    )
    val refusal = refused(table)(call("enable", of(table)))
    assert(refusal.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UPGRADE_BLOCKED")
    val offer = s"CALL iceberg_writer_compat.system.enable(table => 'default.${table.name}', " +
      "drop => array('constraints'))"
    assert(refusal.getMessage.endsWith(s"Run: $offer"), refusal.getMessage)
    sql(offer)
    assertCompliant(table)
  }

  test("a refused ALTER TABLE offers the call, which keeps all rows") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING delta AS SELECT 1S AS s, 2 AS b")
    val refusal = refused(table) {
      sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
    }
    val offer =
      s"CALL iceberg_writer_compat.system.enable(table => 'default.${table.name}', rewrite => true)"
    assert(refusal.getMessage.endsWith(s"Run: $offer"), refusal.getMessage)
    assert(refusal.getMessageParameters.get("fix") == offer)
    sql(offer)
    assertCompliant(table)
    assert(content(table) == Set("[1,2]"))
  }

  test("reports have the rows of the table functions") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING delta AS SELECT 1S AS s")
    for (procedure <- Seq("check", "verify", "history")) {
      val byFunction =
        spark.sql(s"SELECT * FROM iceberg_writer_compat_$procedure('${table.name}')")
      val byCall = spark.sql(s"CALL iceberg_writer_compat.system.$procedure('${table.name}')")
      assert(byCall.schema == byFunction.schema, procedure)
      assert(byCall.collect().toSeq == byFunction.collect().toSeq, procedure)
      assert(!byCall.isEmpty, procedure)
    }
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    def versions(procedure: String, more: String) =
      call(procedure, of(table, more)).map(_.getAs[Long]("table_version")).distinct
    assert(versions("check", ", version => 0") == Seq(0L) && versions("check", "") == Seq(1L))
    assert(versions("verify", ", version => 0, files => 1") == Seq(0L))
  }

  test("would_break takes a statement, or a table and a schema") {
    val table = compliant()
    val before = table.log.version
    def broken(arguments: String) =
      call("would_break", arguments).map(row =>
        row.getAs[String]("rule") -> row.getAs[String]("place")
      )
    val statement = s"ALTER TABLE ${table.name} ADD COLUMN small SMALLINT"
    assert(broken(s"'$statement'") == Seq("C7" -> "small"))
    assert(broken(s"statement => 'ALTER TABLE ${table.name} ADD COLUMN small INT'") == Nil)
    val wider = s"$columns, small SMALLINT"
    assert(broken(of(table, s", schema => '$wider'")) == Seq("C7" -> "small"))
    assert(table.log.version == before)
    for (arguments <- Seq("", of(table), s"'$statement', table => '${table.name}'"))
      assert(optionOf(intercept[IcebergWriterCompatException](broken(arguments))) == "statement")
  }

  test("a count that is NULL is its default") {
    val asked = new Arguments(Seq(Parameter.count("tables", "", 7)), InternalRow(null))
    assert(asked.count("tables") == 7)
  }

  test("what is no name is named, and so is what is meant") {
    for (
      (call, name, spelling) <- Seq(
        ("check('my table')", "my table", "`my table` for a name, or ./my table for a path"),
        ("check('db.1')", "db.1", "db.`1` for a name, or ./db.1 for a path"),
        ("check('a`b')", "a`b", "`a``b` for a name, or ./a`b for a path"),
        ("check(' ')", " ", "a name such as db.orders, or a path such as ./orders"),
        ("enable_all('my schema')", "my schema", "`my schema`"),
        ("enable_all('')", "", "a name such as sales")
      )
    ) {
      val error = intercept[IcebergWriterCompatException] {
        sql(s"CALL iceberg_writer_compat.system.$call")
      }
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_WRONG_NAME")
      assert(error.getMessageParameters.get("name") == name)
      assert(error.getMessageParameters.get("spelling") == spelling)
    }
  }

  private def optionOf(error: IcebergWriterCompatException): String = {
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_WRONG_OPTION")
    error.getMessageParameters.get("option")
  }

  test("publish and status") {
    val table = compliant()
    assert(one("status", of(table))("published_version") == null)
    val first = one("publish", of(table))
    assert(first("changed") == true && first("delta_version") == table.log.version)
    assert(first("previous_version") == null && first("snapshots") == 1L)
    assert(
      table.folder.resolve("metadata").toFile.listFiles.exists(_.getName.endsWith(".metadata.json"))
    )
    assert(one("publish", s"'${table.name}'")("changed") == false)
    insert(table)
    val state = one("status", of(table))
    assert(state("lag") == 1L && state("metadata_location") == first("metadata_location"))
    assert(state("problems") == Nil)
    assert(one("publish", of(table, ", anew => true"))("previous_version") == null)
    val both = of(table, ", take_snapshot => 1, mend => true")
    assert(optionOf(intercept[IcebergWriterCompatException](call("publish", both))) == "mend")
    val wrong = intercept[IcebergWriterCompatException] {
      call("publish", of(table, ", take_snapshot => 42"))
    }
    val offer = s"CALL iceberg_writer_compat.system.status(table => 'default.${table.name}')"
    assert(wrong.remedy.sql == Seq(offer), wrong.getMessage)
    sql(offer)
  }

  test("enable_all takes the tables of a schema, and one that fails does not stop the others") {
    val schema = SharedSpark.freshName()
    sql(s"CREATE SCHEMA $schema")
    try {
      sql(s"CREATE TABLE $schema.`1d` USING delta AS SELECT 1 AS a")
      sql(s"CREATE TABLE $schema.blocked (a INT) USING delta")
      sql(s"ALTER TABLE $schema.blocked ADD CONSTRAINT low CHECK (a < 9)")
      sql(s"CREATE TABLE $schema.other (a INT) USING parquet")
      val mine = mapped()
      val arguments = s"'$schema', tables => array('${mine.name}'), rewrite => true"
      def states(rows: Seq[Row]) =
        rows.map(row => row.getAs[String]("table_name") -> row.getAs[String]("state")).toMap
      val planned = call("enable_all", s"$arguments, dry_run => true")
      val names = Seq(mine.name, s"$schema.`1d`", s"$schema.blocked")
      assert(planned.map(_.getAs[String]("table_name")) == names)
      assert(planned.map(_.getAs[String]("mode")) == Seq("metadata", "rewrite", "blocked"))
      assert(planned.map(_.getAs[Long]("files_to_rewrite")) == Seq(0L, 1L, 0L))
      assert(!isOn(mine))
      val done = call("enable_all", s"$arguments, parallelism => 3")
      assert(states(done) == Map(names(0) -> "done", names(1) -> "done", names(2) -> "failed"))
      val failed = done.last
      assert(
        failed.getAs[String](
          "error_condition"
        ) == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UPGRADE_BLOCKED"
      )
      assert(failed.getAs[Any]("version") == null && failed.getAs[String]("error").contains("low"))
      failed.getSeq[String](failed.fieldIndex("fix")).foreach(sql)
      assert(names.forall(IcebergWriterCompat.isEnabled(spark, _)))
      assert(rows(s"SELECT * FROM $schema.`1d`") == Set("[1]"))
    } finally sql(s"DROP SCHEMA $schema CASCADE")
    assert(optionOf(intercept[IcebergWriterCompatException](call("enable_all", ""))) == "schema")
    assert(
      intercept[AnalysisException](
        call("enable_all", "'nowhere'")
      ).getCondition == "SCHEMA_NOT_FOUND"
    )
    assert(
      intercept[AnalysisException](
        call("enable_all", "catalog => 'nowhere'")
      ).getCondition == "CATALOG_NOT_FOUND"
    )
  }

  test("tables by path, with odd characters, in another schema, and of the current one") {
    val schema = SharedSpark.freshName()
    sql(s"CREATE SCHEMA $schema")
    try {
      sql(s"CREATE TABLE $schema.`1d` (a INT) USING delta")
      assert(one("enable", s"'spark_catalog.`$schema`.`1d`'")("changed") == true)
      sql(s"USE $schema")
      assert(one("disable", "table => '`1d`'")("changed") == true)
    } finally {
      sql("USE default")
      sql(s"DROP SCHEMA $schema CASCADE")
    }
    val folder = SharedSpark.freshFolder().resolve("x.y z'ü")
    sql(s"CREATE TABLE delta.`$folder` (a INT) USING delta")
    val text = folder.toString.replace("'", "\\'")
    assert(one("enable", s"table => 'delta.`$text`'")("changed") == true)
    assert(one("enable", s"'$text'")("changed") == false)
    val refusal = intercept[IcebergWriterCompatException] {
      one("publish", s"'$text', discard_snapshot => 7")
    }
    refusal.remedy.sql.foreach(sql)
  }

  test("Spark checks the names, number and types of arguments") {
    val table = plain()
    val wrong = Seq(
      "" -> "REQUIRED_PARAMETER_NOT_FOUND",
      of(table, ", rewrites => true") -> "UNRECOGNIZED_PARAMETER_NAME",
      of(
        table,
        ", table => 'x'"
      ) -> "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.DOUBLE_NAMED_ARGUMENT_REFERENCE",
      of(table, ", rewrite => array(1)") -> "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
      s"'${table.name}', 'auto', true, true, array('defaults'), 'x', 7" -> "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"
    )
    for ((arguments, condition) <- wrong)
      assert(intercept[AnalysisException](call("enable", arguments)).getCondition == condition)
    assert(
      intercept[AnalysisException](call("enabel", of(table))).getCondition == "ROUTINE_NOT_FOUND"
    )
    for (
      (procedure, arguments, option) <- Seq(
        ("enable", "table => NULL", "table"),
        ("enable", of(table, ", mode => 'quick'"), "mode"),
        ("enable", of(table, ", drop => array('rows', NULL)"), "drop"),
        ("enable", of(table, ", contract => 'x'"), "contract"),
        ("enable_all", s"tables => array('${table.name}'), parallelism => 0", "parallelism"),
        ("check", of(table, ", version => -1"), "version"),
        ("verify", of(table, ", files => 0"), "files")
      )
    ) {
      val error = intercept[IcebergWriterCompatException](call(procedure, arguments))
      assert(optionOf(error) == option, error.getMessage)
    }
    assert(
      intercept[AnalysisException](
        call("check", "'nowhere'")
      ).getCondition == "TABLE_OR_VIEW_NOT_FOUND"
    )
    assert(!isOn(table))
    val nulls = ", mode => NULL, rewrite => true, dry_run => NULL, drop => NULL, contract => NULL"
    assert(one("enable", of(table, nulls))("changed") == true)
  }

  test("variables and expressions are arguments, and EXPLAIN calls nothing") {
    val table = mapped()
    sql(s"EXPLAIN CALL iceberg_writer_compat.system.enable('${table.name}')")
    assert(!isOn(table))
    sql("DECLARE OR REPLACE VARIABLE wanted STRING")
    sql(s"SET VAR wanted = '${table.name}'")
    try assert(one("enable", "wanted, rewrite => 1 > 2")("changed") == true)
    finally sql("DROP TEMPORARY VARIABLE wanted")
  }

  test("each session has the catalog, also after RESET, unless it has another of this name") {
    val table = mapped()
    val key = "spark.sql.catalog.iceberg_writer_compat"
    def status(session: org.apache.spark.sql.SparkSession) =
      session.sql(s"CALL iceberg_writer_compat.System.Check('${table.name}')").count()
    val session = spark.newSession()
    assert(OnThread(status(session)) == call("check", of(table)).size)
    session.sql("RESET")
    assert(status(session) > 0)
    val own = spark.newSession()
    own.conf.set(key, "no.such.Catalog")
    assert(intercept[SparkException](status(own)).getMessage.contains("no.such.Catalog"))
    own.sql(s"RESET $key")
    assert(status(own) > 0)
    val configured = new SparkConf(false).set(key, "my.Catalog")
    WriterCompatProcedures.install(configured)
    assert(configured.get(key) == "my.Catalog")
    val procedures = spark.sql("SHOW PROCEDURES IN iceberg_writer_compat.system").collect()
    assert(
      procedures.map(_.getAs[String]("procedure_name")).toSeq.sorted == Procedures.all
        .map(_.name)
        .sorted
    )
    sql("DESCRIBE PROCEDURE iceberg_writer_compat.system.enable")
  }
}
