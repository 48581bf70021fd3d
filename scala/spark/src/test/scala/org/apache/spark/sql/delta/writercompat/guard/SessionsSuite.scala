package org.apache.spark.sql.delta.writercompat.guard

import io.delta.tables.DeltaTable
import org.apache.spark.sql.delta.writercompat.OnThread
import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.{classic, DataFrame, Row, SparkSession}
import org.icebergwritercompat.errors.{Causes, IcebergWriterCompatException}
import org.icebergwritercompat.testing.{Compliance, FolderListing, SharedSpark, TestTable}
import org.scalatest.funsuite.AnyFunSuite

import scala.util.Try

/**
 * Sessions of each kind are guarded at every door, and have the procedures; for every Spark line.
 */
class SessionsSuite extends AnyFunSuite with SharedSpark {

  private val property = "'delta.enableIcebergWriterCompatV1' = 'true'"

  // It begins anew in the Spark context of the other session, as a JVM can have one.
  private lazy val hive: SparkSession = {
    val shared = SharedSpark.session
    try
      SparkSession
        .builder()
        .config("spark.sql.catalogImplementation", "hive")
        .config("javax.jdo.option.ConnectionURL", "jdbc:derby:memory:sessions;create=true")
        .create()
    finally {
      SparkSession.setDefaultSession(shared)
      SparkSession.setActiveSession(shared)
    }
  }

  private def cloned(session: SparkSession): SparkSession =
    session.asInstanceOf[classic.SparkSession].cloneSession()

  /** Runs `body` with a session of each kind, on a new thread, as a server does for its clients. */
  private def inEach(body: SparkSession => Any): Unit =
    for {
      (catalog, first) <- Seq("in-memory" -> SharedSpark.session, "hive" -> hive)
      (kind, session) <- Seq("new" -> first.newSession(), "cloned" -> cloned(first))
    } withClue(s"in a $kind session with the catalog $catalog: ") {
      Try(OnThread(body(session))).failed.foreach(e => fail(e.toString, e))
    }

  private def call(session: SparkSession, procedure: String, arguments: String): Seq[Row] =
    session.sql(s"CALL iceberg_writer_compat.system.$procedure($arguments)").collect().toSeq

  test("a session with Hive's catalog keeps its tables there") {
    assert(hive.conf.get("spark.sql.catalogImplementation") == "hive")
    val table = managed()
    hive.sql(s"CREATE TABLE ${table.name} (a INT) USING delta")
    assert(hive.catalog.tableExists(table.name) && !spark.catalog.tableExists(table.name))
    assert(table.log.version == 0)
  }

  test("procedures switch the feature on in a session with Hive's catalog") {
    val (session, table) = (hive.newSession(), managed())
    session.sql(s"CREATE TABLE ${table.name} USING delta AS SELECT 1S AS a, 'x' AS b")
    val done = call(session, "enable", s"table => '${table.name}', rewrite => true")
    assert(done.map(_.getAs[Long]("files_rewritten")) == Seq(1L))
    assert(Compliance.problems(table) == Nil)
    assert(session.table(table.name).collect().toSeq == Seq(Row(1, "x")))
    val wrong = intercept[IcebergWriterCompatException] {
      call(session, "enable", s"'${table.name}', mode => 'quick'")
    }
    assert(wrong.getCondition == "ICEBERG_WRITER_COMPAT_WRONG_OPTION")
  }

  test("each has the procedures and reads tables with the feature, also after RESET") {
    val table = byPath()
    sql(s"CREATE TABLE ${table.name} (a INT) USING delta TBLPROPERTIES ($property)")
    sql(s"INSERT INTO ${table.name} VALUES (1)")
    inEach { session =>
      def statement = s"ALTER TABLE ${table.name} ADD COLUMN b SMALLINT"
      def broken = call(session, "would_break", s"'$statement'").map(_.getAs[String]("rule"))
      assert(broken == Seq("C7"))
      session.sql("RESET")
      assert(broken == Seq("C7"))
      assert(session.sql(s"SELECT a FROM ${table.name}").collect().toSeq == Seq(Row(1)))
    }
  }

  test("each is guarded at every door") {
    val source = byPath()
    sql(s"CREATE TABLE ${source.name} USING delta AS SELECT 5L AS id, 1S AS small")
    inEach { session =>
      val table = managed()
      session.sql(s"CREATE TABLE ${table.name} (id BIGINT) USING delta TBLPROPERTIES ($property)")
      val rows = session.range(1).toDF()
      val wider = rows.selectExpr("id", "1S AS small")
      def stream() = session.readStream
        .format("delta")
        .load(source.folder.toString)
        .writeStream
        .format("delta")
        .option("checkpointLocation", SharedSpark.freshFolder().toString)
        .option("mergeSchema", "true")
        .trigger(Trigger.AvailableNow())
        .toTable(table.name)
        .awaitTermination()
      assertRefused(table)(
        "ALTER TABLE" -> (() =>
          session.sql(s"ALTER TABLE ${table.name} ADD COLUMN small SMALLINT")
        ),
        "EXECUTE IMMEDIATE" -> (() =>
          session.sql(s"EXECUTE IMMEDIATE 'ALTER TABLE ${table.name} ADD COLUMN small SMALLINT'")
        ),
        "saveAsTable" -> (() => merging(wider).saveAsTable(table.name)),
        "save" -> (() => merging(wider).save(table.folder.toString)),
        "writeTo" -> (() => wider.writeTo(table.name).option("mergeSchema", "true").append()),
        "merge" -> (() =>
          DeltaTable
            .forName(session, table.name)
            .as("t")
            .merge(wider.as("s"), "t.id = s.id")
            .withSchemaEvolution()
            .whenNotMatched()
            .insertAll()
            .execute()
        ),
        "mergeInto" -> (() =>
          wider
            .as("s")
            .mergeInto(table.name, expr(s"s.id = ${table.name}.id"))
            .withSchemaEvolution()
            .whenNotMatched()
            .insertAll()
            .merge()
        ),
        "stream" -> (() => stream())
      )
      session.sql(s"INSERT INTO ${table.name} VALUES (1)")
      rows.selectExpr("id + 2 AS id").write.mode("append").format("delta").saveAsTable(table.name)
      rows.selectExpr("id + 3 AS id").writeTo(table.name).append()
      DeltaTable.forName(session, table.name).updateExpr("id = 3", Map("id" -> "4"))
      assert(session.table(table.name).collect().map(_.getLong(0)).toSet == Set(1, 2, 4))
      assert(Compliance.problems(table) == Nil)
    }
  }

  private def merging(rows: DataFrame) =
    rows.write.format("delta").mode("append").option("mergeSchema", "true")

  private def assertRefused(table: TestTable)(doors: (String, () => Any)*): Unit = {
    val before = FolderListing.of(table.folder)
    for ((door, through) <- doors) withClue(s"$door: ") {
      val refusal = intercept[Exception](through())
      // A stream wraps it.
      val conditions = Causes.of(refusal).collect { case e: IcebergWriterCompatException =>
        e.getCondition
      }
      assert(
        conditions == Seq("DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE"),
        refusal
      )
      assert(FolderListing.of(table.folder) == before)
    }
  }
}
