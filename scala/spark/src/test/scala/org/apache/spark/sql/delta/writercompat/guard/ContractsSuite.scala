package org.apache.spark.sql.delta.writercompat.guard

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.delta.writercompat.{Offered, TableSuite}
import org.apache.spark.sql.delta.writercompat.feature.WriterCompatProperty
import org.apache.spark.sql.delta.writercompat.publish.SparkPublishing
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.rules.SchemaRules
import org.icebergwritercompat.testing.{SecondContract, SharedSpark, TestTable}
import org.scalatest.BeforeAndAfterAll

import java.net.URI
import java.nio.file.Path

/** A second contract, which is one value: version 1 with SMALLINT, TINYINT and other types. */
class ContractsSuite extends TableSuite with BeforeAndAfterAll {

  private val property = "delta.enableToyWriterCompat"

  private val toy = V1.contract.copy(
    feature = "toyWriterCompat",
    property = property,
    formatVersion = 1,
    features = V1.contract.features
      .copy(allowed = V1.contract.features.allowed - V1.contract.feature + "toyWriterCompat"),
    rules = V1.rules.without(SchemaRules.TypesAreSupported)
  )

  override def beforeAll(): Unit = {
    super.beforeAll()
    // The session installs the guard first.
    assert(spark.sessionState != null)
    SecondContract.add(toy)
    WriterCompatProperty.register()
  }

  private def create(columns: String, more: String = ""): TestTable = {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} ($columns) USING delta TBLPROPERTIES ('$property' = 'true'$more)"
    )
    table
  }

  test("a table of the second contract has its feature, and what that requires") {
    val table = create("a SMALLINT, b STRING")
    val log = table.log
    assert(Set("toyWriterCompat", "icebergCompatV2", "columnMapping").subsetOf(log.writerFeatures))
    assert(!log.writerFeatures("icebergWriterCompatV1"))
    assert(log.properties(property) == "true")
    assert(log.properties("delta.columnMapping.mode") == "id")
    assert(!log.properties.contains("delta.enableIcebergWriterCompatV1"))
    sql(s"INSERT INTO ${table.name} VALUES (1, 'x')")
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[1,x]"))
  }

  test("the rule it leaves out is not kept, and still is by the first contract") {
    val table = create("a INT")
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (b SMALLINT)")
    val first = managed()
    refusedFor("UNSUPPORTED_DATA_TYPE", "C7", first) {
      sql(
        s"CREATE TABLE ${first.name} (a SMALLINT) USING delta " +
          "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
      )
    }
  }

  test("its other rules are kept at every commit, and name its own property and feature") {
    val table = create("a INT")
    refusedFor("INCOMPATIBLE_TABLE_FEATURE", "B8", table) {
      sql(s"ALTER TABLE ${table.name} ADD CONSTRAINT positive CHECK (a > 0)")
    }
    val off = refusedFor("DISABLING_REQUIRED_TABLE_FEATURE", "B1+", table) {
      sql(s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES ('$property')")
    }
    assert(off.getMessageParameters.get("property") == property)
    assert(
      off.getMessage.contains(s"ALTER TABLE default.${table.name} DROP FEATURE toyWriterCompat")
    )
    refusedFor("WRONG_REQUIRED_TABLE_PROPERTY", "B6", table) {
      sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    }
  }

  test("the feature leaves the table as the statement says") {
    val table = create("a INT")
    sql(s"ALTER TABLE ${table.name} DROP FEATURE toyWriterCompat")
    assert(!table.log.writerFeatures("toyWriterCompat"))
    assert(!table.log.properties.contains(property))
  }

  private val toyIsOn = s"'$property' = 'true'"

  private def assertIsToy(table: TestTable): Unit = {
    val log = table.log
    assert(log.writerFeatures("toyWriterCompat") && log.properties(property) == "true")
    assert(!log.writerFeatures("icebergWriterCompatV1"))
    assert(!log.properties.contains("delta.enableIcebergWriterCompatV1"))
    ()
  }

  private def assertNamesToy(error: IcebergWriterCompatException): Unit = {
    assert(error.getMessageParameters.get("contract") == "toyWriterCompat")
    assert(error.getMessage.contains("a table with toyWriterCompat that is not safe"))
    val said = error.getMessage.replace("DELTA_ICEBERG_WRITER_COMPAT", "")
    assert(!said.toLowerCase(java.util.Locale.ROOT).contains("icebergwritercompatv1"), said)
    ()
  }

  test("a refused CREATE names it, and is offered with it") {
    val table = managed()
    val error = refused(table) {
      sql(
        s"CREATE TABLE ${table.name} (a INT) USING delta " +
          s"TBLPROPERTIES ($toyIsOn, 'delta.enableRowTracking' = 'true')"
      )
    }
    assertNamesToy(error)
    Offered.run(spark, error.remedy)
    assertIsToy(table)
    val declared = managed()
    val byBuilder = refused(declared) {
      spark
        .sql("SELECT 1 AS _file")
        .write
        .format("delta")
        .option(property, "true")
        .saveAsTable(declared.name)
    }
    assertNamesToy(byBuilder)
  }

  test("a table that exists gets it by what is offered, in each language") {
    val table = plain()
    val error = intercept[IcebergWriterCompatException] {
      sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($toyIsOn)")
    }
    assertNamesToy(error)
    val before = rows(s"SELECT * FROM ${table.name}")
    val name = s"default.${table.name}"
    assert(
      error.remedy.python == Seq(
        s"""enable_iceberg_writer_compat(spark, "$name", rewrite=True, contract="toyWriterCompat")"""
      )
    )
    assert(
      error.remedy.command ==
        Seq(s"iceberg-writer-compat enable '$name' --rewrite --contract toyWriterCompat")
    )
    Offered.run(spark, error.remedy)
    assertIsToy(table)
    assert(rows(s"SELECT * FROM ${table.name}") == before)
  }

  test(
    "an upgrade to it that is blocked names it, and so does the call that takes the block away"
  ) {
    val table = plain()
    sql(s"ALTER TABLE ${table.name} ADD CONSTRAINT c CHECK (id >= 0)")
    def upgrade() =
      TableUpgrade.of(spark, table.name, "auto", rewrite = true, Nil, Some("toyWriterCompat")).run()
    val error = intercept[IcebergWriterCompatException](upgrade())
    assertNamesToy(error)
    assert(error.remedy.isInstanceOf[Remedy.Enable])
    Offered.run(spark, error.remedy)
    assertIsToy(table)
    assert(!upgrade().changed)
    val other = intercept[IcebergWriterCompatException] {
      TableUpgrade
        .of(spark, table.name, "auto", rewrite = true, Nil, Some("icebergWriterCompatV1"))
        .run()
    }
    assert(other.getCondition == "ICEBERG_WRITER_COMPAT_WRONG_OPTION")
    assert(other.getMessageParameters.get("allowed") == "toyWriterCompat")
  }

  test("a clone and a converted table are offered as copies that have it") {
    val source = plain()
    val target = managed()
    val clone = refused(target) {
      sql(
        s"CREATE TABLE ${target.name} SHALLOW CLONE ${source.name} " +
          s"TBLPROPERTIES ($toyIsOn)"
      )
    }
    assertNamesToy(clone)
    Offered.run(spark, clone.remedy)
    assertIsToy(target)
    val folder = SharedSpark.freshFolder()
    spark.range(1).write.parquet(folder.toString)
    val default = "spark.databricks.delta.properties.defaults.enableToyWriterCompat"
    withConf(default -> "true") {
      val convert = intercept[IcebergWriterCompatException] {
        sql(s"CONVERT TO DELTA parquet.`$folder`")
      }
      assertNamesToy(convert)
      assert(convert.getMessageParameters.get("setting") == default)
      Offered.run(spark, convert.remedy)
    }
    val copied = Path.of(s"${folder}_iceberg")
    assertIsToy(TestTable(s"delta.`$copied`", copied))
  }

  test("what refusals to publish offer switches it on") {
    def refusal(table: TestTable) =
      intercept[IcebergWriterCompatException](SparkPublishing.of(spark, table.name).publish())
    val folder = SharedSpark.freshFolder().resolve("a#b")
    val odd = TestTable(s"delta.`$folder`", folder)
    sql(s"CREATE TABLE ${odd.name} USING delta TBLPROPERTIES ($toyIsOn) AS SELECT 1 AS a")
    val ofFolder = refusal(odd)
    assert(ofFolder.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.FOLDER")
    val copying = s"CREATE TABLE copy_to_publish USING delta TBLPROPERTIES ($toyIsOn) AS SELECT"
    assert(ofFolder.remedy.sql.map(_.take(copying.length)) == Seq(copying))
    Offered.run(spark, ofFolder.remedy)
    val copy = TestTable("copy_to_publish", SharedSpark.warehouse.resolve("copy_to_publish"))
    assertIsToy(copy)
    sql(s"DROP TABLE ${copy.name}")
    val off = managed()
    sql(
      s"CREATE TABLE ${off.name} (a INT) USING delta " +
        "TBLPROPERTIES ('delta.feature.toyWriterCompat' = 'supported')"
    )
    val ofProperty = refusal(off)
    assert(ofProperty.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.FEATURE_OFF")
    Offered.run(spark, ofProperty.remedy)
    assertIsToy(off)
    val published = SparkPublishing.of(spark, off.name).publish()
    // The contract decides by which version of Iceberg's format.
    val file = Path.of(new URI(published.metadataLocation).getPath)
    val metadata = new ObjectMapper().readTree(file.toFile)
    assert(metadata.get("format-version").asInt == 1)
    val wrong = refused(off) {
      sql(s"ALTER TABLE ${off.name} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'yes')")
    }
    assert(wrong.getMessageParameters.get("contract") == "toyWriterCompat")
  }

  test("reports say by which contract a table is guarded") {
    val (toyTable, first, none) = (create("a SMALLINT"), compliant(), plain())
    assert(Reports.check(spark, toyTable.name, None).contract.contains("toyWriterCompat"))
    assert(Reports.check(spark, first.name, None).contract.contains("icebergWriterCompatV1"))
    assert(Reports.check(spark, none.name, None).contract.isEmpty)
    assert(Reports.check(spark, toyTable.name, None).findings == Nil)
  }
}
