package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.delta.writercompat.feature.WriterCompatProperty
import org.icebergwritercompat.contracts.{Contracts, V1}
import org.icebergwritercompat.rules.SchemaRules
import org.icebergwritercompat.testing.TestTable
import org.scalatest.BeforeAndAfterAll

/** A second contract, which is one value: version 1 with SMALLINT, TINYINT and other types. */
class ContractsSuite extends TableSuite with BeforeAndAfterAll {

  private val property = "delta.enableToyWriterCompat"

  private val toy = V1.contract.copy(
    feature = "toyWriterCompat",
    property = property,
    features = V1.contract.features
      .copy(allowed = V1.contract.features.allowed - V1.contract.feature + "toyWriterCompat"),
    rules = V1.rules.without(SchemaRules.TypesAreSupported)
  )

  override def beforeAll(): Unit = {
    super.beforeAll()
    // The session installs the guard first.
    assert(spark.sessionState != null)
    Contracts.add(toy)
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
}
