package org.apache.spark.sql.delta.writercompat.guard

import io.delta.tables.DeltaTable
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.icebergwritercompat.testing.{FolderListing, TestTable}

import scala.util.{Failure, Try}

/** What SQL refuses, programs are refused in the same words, and neither commits anything. */
class DoorsSuite extends TableSuite {

  /** A statement, and the call that does the same. */
  private case class Door(statement: String)(val call: () => Any)

  private lazy val table: TestTable = {
    val made = managed()
    sql(
      s"CREATE TABLE ${made.name} USING delta TBLPROPERTIES ($on, 'delta.checkpointPolicy' = 'v2', " +
        "'delta.enableTypeWidening' = 'true', 'delta.feature.vacuumProtocolCheck' = 'supported', " +
        s"'delta.enableInCommitTimestamps' = 'true') AS $someRows"
    )
    made
  }

  private def program(of: TestTable): DeltaTable = DeltaTable.forName(spark, of.name)

  private def conditionOf(door: => Any): String = Try[Any](door) match {
    case Failure(error: SparkThrowable) => error.getCondition
    case Failure(error)                 => error.toString
    case other                          => fail(s"not refused: $other")
  }

  /** Both ways are refused with the same condition, and the folders are as before. */
  private def assertAlike(tables: TestTable*)(doors: Door*): Unit = {
    val before = tables.map(table => FolderListing.of(table.folder))
    doors.foreach { door =>
      withClue(door.statement) {
        val conditions =
          Seq(conditionOf(sql(door.statement)), conditionOf(door.call()))
        assert(conditions.distinct.size == 1, conditions)
        assert(tables.map(table => FolderListing.of(table.folder)) == before)
      }
    }
  }

  test("features are dropped, added and upgraded alike") {
    val name = table.name
    val dropped =
      Seq("v2Checkpoint", "typeWidening", "vacuumProtocolCheck", "icebergCompatV2", "columnMapping")
    val added =
      Seq("deletionVectors", "rowTracking", "allowColumnDefaults", "icebergCompatV1", "unheardOf")
    assertAlike(table)(
      dropped.map { feature =>
        Door(s"ALTER TABLE $name DROP FEATURE $feature") { () =>
          program(table).dropFeatureSupport(feature)
        }
      } ++ added.map { feature =>
        Door(s"ALTER TABLE $name SET TBLPROPERTIES ('delta.feature.$feature' = 'supported')") { () =>
          program(table).addFeatureSupport(feature)
        }
      }: _*
    )
    val refused = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.INCOMPATIBLE_TABLE_FEATURE"
    dropped.take(3).foreach { feature =>
      assert(conditionOf(program(table).dropFeatureSupport(feature)) == refused)
    }
    // In tables by path too.
    val path = s"delta.`${table.folder}`"
    assertAlike(table)(
      Door(s"ALTER TABLE $path DROP FEATURE v2Checkpoint") { () =>
        DeltaTable.forPath(spark, table.folder.toString).dropFeatureSupport("v2Checkpoint")
      }
    )
    // What is allowed is done.
    program(table).addFeatureSupport("appendOnly")
    program(table).dropFeatureSupport("inCommitTimestamp")
    assertCompliant(table)
    val plainOne = plain(Seq("delta.checkpointPolicy" -> "v2"))
    program(plainOne).dropFeatureSupport("v2Checkpoint")
    assert(plainOne.log.writerFeatures("checkpointProtection"))
  }

  test("tables are restored, cloned and replaced alike") {
    val upgraded = plain(rows = false)
    sql(s"ALTER TABLE ${upgraded.name} SET TBLPROPERTIES ($on)")
    val (source, target) = (plain(), compliant())
    sql(s"DELETE FROM ${target.name}")
    val created =
      program(upgraded).history().where("version = 0").select("timestamp").first().get(0).toString
    assertAlike(upgraded, source, target)(
      Door(s"RESTORE TABLE ${upgraded.name} TO VERSION AS OF 0") { () =>
        program(upgraded).restoreToVersion(0)
      },
      Door(s"RESTORE TABLE ${upgraded.name} TO TIMESTAMP AS OF '$created'") { () =>
        program(upgraded).restoreToTimestamp(created)
      },
      Door(s"CREATE OR REPLACE TABLE ${target.name} SHALLOW CLONE ${source.name}") { () =>
        program(source).clone(target.name, isShallow = true, replace = true)
      },
      Door(
        s"CREATE OR REPLACE TABLE ${target.name} SHALLOW CLONE ${source.name} TBLPROPERTIES ($on)"
      ) { () =>
        program(source).clone(
          target.name,
          isShallow = true,
          replace = true,
          Map("delta.enableIcebergWriterCompatV1" -> "true")
        )
      },
      Door(s"REPLACE TABLE ${target.name} (id SMALLINT) USING delta") { () =>
        DeltaTable.replace(spark).tableName(target.name).addColumn("id", "SMALLINT").execute()
      },
      Door(s"CREATE OR REPLACE TABLE ${source.name} (id SMALLINT) USING delta TBLPROPERTIES ($on)") {
        () =>
          DeltaTable
            .createOrReplace(spark)
            .tableName(source.name)
            .addColumn("id", "SMALLINT")
            .property("delta.enableIcebergWriterCompatV1", "true")
            .execute()
      }
    )
    val fresh = managed()
    assertAlike(fresh)(
      Door(s"CREATE TABLE ${fresh.name} (id SMALLINT) USING delta TBLPROPERTIES ($on)") { () =>
        DeltaTable
          .create(spark)
          .tableName(fresh.name)
          .addColumn("id", "SMALLINT")
          .property("delta.enableIcebergWriterCompatV1", "true")
          .execute()
      }
    )
  }

  test("rows are merged, updated and deleted alike") {
    val target = compliant()
    val source = managed()
    sql(s"CREATE TABLE ${source.name} USING parquet AS SELECT 9L AS id, 1S AS small")
    assertAlike(target)(
      Door(
        s"MERGE WITH SCHEMA EVOLUTION INTO ${target.name} t USING ${source.name} s " +
          "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
      ) { () =>
        program(target)
          .as("t")
          .merge(spark.table(source.name).as("s"), "t.id = s.id")
          .withSchemaEvolution()
          .whenNotMatched()
          .insertAll()
          .execute()
      }
    )
    sql(s"ALTER TABLE ${target.name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    assertAlike(target)(
      Door(s"DELETE FROM ${target.name}")(() => program(target).delete()),
      Door(s"UPDATE ${target.name} SET name = 'x'") { () =>
        program(target).updateExpr(Map("name" -> "'x'"))
      }
    )
    val twin = compliant()
    program(twin).optimize().executeCompaction()
    program(twin).vacuum()
    program(twin).delete("id = 1")
    program(twin).updateExpr(Map("name" -> "'y'"))
    assertCompliant(twin)
    assert(rows(s"SELECT id, name FROM ${twin.name}") == Set("[0,y]"))
  }
}
