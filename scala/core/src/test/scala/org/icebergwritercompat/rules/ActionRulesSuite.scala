package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{ActionRule, TableState}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.{DataAction, FileStatistics, Location}
import org.icebergwritercompat.model.DataAction._
import org.icebergwritercompat.rules.ActionRules._
import org.icebergwritercompat.rules.CompliantTable.shapes

class ActionRulesSuite extends StepSuite {

  private val file = Added(
    "part-0.parquet",
    Map.empty,
    Some(FileStatistics(Some(3), Set.empty)),
    hasDeletionVector = false,
    repeated = false,
    size = 742
  )

  // The most rows that pages of so many bytes can say they have.
  private val mostRows = (742L << 31) - 1

  private val copy = "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
    "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
  private def partitionedCopy(columns: String) =
    copy.replace("USING delta", s"USING delta PARTITIONED BY ($columns)")

  private def bad(rule: ActionRule, found: String, fix: String): Expected =
    expect("INCOMPATIBLE_FILE_ACTION", Location.File("part-0.parquet"), fix)(
      "file" -> "part-0.parquet",
      "found" -> found,
      "required" -> rule.statement
    )

  private def set(key: String, value: String) =
    s"ALTER TABLE db.t SET TBLPROPERTIES ('$key' = '$value')"

  private val harmless: Seq[DataAction] = Seq(
    file,
    Removed("part-0.parquet", dataChange = true),
    Removed("part-0.parquet", dataChange = false),
    Clustered(Nil)
  )
  for (shape <- shapes; action <- harmless; rule <- V1.rules.action)
    passes(rule, s"$action with ${shape.name}")(CompliantTable.of(shape.schema))(action)

  for (shape <- shapes) {
    val table = CompliantTable.of(shape.schema)

    // D1
    Seq(None, Some(FileStatistics(None, Set.empty))).foreach { statistics =>
      refuses(FilesHaveRowCount, s"a file with the statistics $statistics, with ${shape.name}")(
        table
      )(file.copy(statistics = statistics)) {
        bad(
          FilesHaveRowCount,
          "it has no numRecords, or a negative one",
          "SET spark.databricks.delta.stats.collect=true"
        )
      }
    }

    // D1s
    passes(SizesArePossible, s"the greatest size, with ${shape.name}")(table)(
      file.copy(size = (1L << 53) - 1)
    )
    passes(SizesArePossible, s"as many rows as fit, with ${shape.name}")(table)(
      file.copy(statistics = Some(FileStatistics(Some(mostRows), Set.empty)))
    )
    Seq(mostRows + 1, Long.MaxValue).foreach { rows =>
      refuses(SizesArePossible, s"$rows rows, with ${shape.name}")(table)(
        file.copy(statistics = Some(FileStatistics(Some(rows), Set.empty)))
      )(bad(SizesArePossible, s"its numRecords is $rows, in 742 bytes", copy))
    }
    Seq(-1L, 0L, 1L << 53, Long.MaxValue).foreach { size =>
      refuses(SizesArePossible, s"a size of $size, with ${shape.name}")(table)(
        file.copy(size = size)
      )(bad(SizesArePossible, s"its size is $size byte(s)", "DESCRIBE HISTORY db.t"))
    }

    // D2
    refuses(PartitionValuesByPhysicalName, s"a value too many, with ${shape.name}")(table)(
      file.copy(partitionValues = Map("col-1" -> "1"))
    ) {
      bad(
        PartitionValuesByPhysicalName,
        "it has partition values of col-1 instead of no column",
        copy
      )
    }

    // D5
    refuses(NoDeletionVectors, s"a deletion vector, with ${shape.name}")(table)(
      file.copy(hasDeletionVector = true)
    ) {
      bad(NoDeletionVectors, "it has a deletion vector", "REORG TABLE db.t APPLY (PURGE)")
    }

    // D6
    refuses(PathsOnce, s"a path given twice, with ${shape.name}")(table)(
      file.copy(repeated = true)
    )(bad(PathsOnce, "the commit adds it twice", copy))

    // B7+
    refuses(NoChangeData, s"a change data file, with ${shape.name}")(table)(
      ChangeData("part-0.parquet")
    ) {
      bad(NoChangeData, "it is a change data file", set("delta.enableChangeDataFeed", "false"))
    }

    // B11
    val appended = table.copy(properties = table.properties + ("delta.appendOnly" -> "TRUE"))
    refuses(AppendOnlyKeepsRows, s"rows that leave, with ${shape.name}")(appended)(
      Removed("part-0.parquet", dataChange = true)
    ) {
      bad(
        AppendOnlyKeepsRows,
        "it is removed together with its rows",
        set("delta.appendOnly", "false")
      )
    }
    passes(AppendOnlyKeepsRows, s"files that are rewritten, with ${shape.name}")(appended)(
      Removed("part-0.parquet", dataChange = false)
    )
    passes(AppendOnlyKeepsRows, s"files that are added, with ${shape.name}")(appended)(file)
  }
  passes(FilesHaveRowCount, "a file without rows")(CompliantTable.of("a INT"))(
    file.copy(statistics = Some(FileStatistics(Some(0), Set.empty)))
  )
  Seq("false", "yes", "").foreach { value =>
    passes(AppendOnlyKeepsRows, s"rows that leave where delta.appendOnly is '$value'") {
      val table = CompliantTable.of("a INT")
      table.copy(properties = table.properties + ("delta.appendOnly" -> value))
    }(Removed("part-0.parquet", dataChange = true))
  }

  // D4n
  private val marker = "__HIVE_DEFAULT_PARTITION__"
  private val marked = CompliantTable
    .of("a INT, s STRING, b BINARY, n INT, must STRING NOT NULL")
    .copy(partitionColumns = Seq("s", "b", "n", "must"))
  private def withValue(column: Int, value: String) = {
    val others = (2 to 5).map(i => s"col-$i" -> null.asInstanceOf[String]).toMap
    file.copy(partitionValues = others + (s"col-$column" -> value))
  }
  Seq(
    (2, "s", "UPDATE db.t SET s = NULL WHERE CAST(s AS STRING) = '" + marker + "'"),
    (3, "b", "UPDATE db.t SET b = NULL WHERE CAST(b AS STRING) = '" + marker + "'"),
    (4, "n", "UPDATE db.t SET n = NULL WHERE n IS NULL"),
    (5, "must", "UPDATE db.t SET must = 'none' WHERE CAST(must AS STRING) = '" + marker + "'")
  ).foreach { case (id, column, fix) =>
    refuses(NoMarkersOfNull, s"the marker for null of $column")(marked)(withValue(id, marker)) {
      expect(
        "INCOMPATIBLE_FILE_ACTION",
        Location.Column(Seq(column), Some(id.toLong), Some(s"col-$id")),
        fix
      )(
        "file" -> "part-0.parquet",
        "found" -> s"the partition value of $column is $marker",
        "required" -> NoMarkersOfNull.statement
      )
    }
  }
  Seq(marker.toLowerCase, s" $marker", null, "").foreach { value =>
    passes(NoMarkersOfNull, s"the value '$value'")(marked)(withValue(2, value))
  }

  // D2
  private val partitioned =
    CompliantTable.of("v INT, p INT, q STRING").copy(partitionColumns = Seq("q", "p"))
  passes(PartitionValuesByPhysicalName, "values of all partition columns, a null too")(partitioned)(
    file.copy(partitionValues = Map("col-2" -> "1", "col-3" -> null))
  )
  passes(PartitionValuesByPhysicalName, "a partition column in other letters") {
    partitioned.copy(partitionColumns = Seq("Q", "P"))
  }(file.copy(partitionValues = Map("col-2" -> "1", "col-3" -> "")))
  Seq(
    Map("p" -> "1", "q" -> "x") -> "p, q",
    Map("col-2" -> "1") -> "col-2",
    Map("col-1" -> "1", "col-2" -> "1", "col-3" -> "x") -> "col-1, col-2, col-3",
    Map("COL-2" -> "1", "COL-3" -> "x") -> "COL-2, COL-3",
    Map.empty[String, String] -> "no column"
  ).foreach { case (values, found) =>
    refuses(PartitionValuesByPhysicalName, s"values of $found")(partitioned)(
      file.copy(partitionValues = values)
    ) {
      bad(
        PartitionValuesByPhysicalName,
        s"it has partition values of $found instead of col-2, col-3",
        partitionedCopy("q, p")
      )
    }
  }
  refuses(PartitionValuesByPhysicalName, "a file without partition values")(partitioned)(
    file.copy(partitionValues = null)
  ) {
    bad(
      PartitionValuesByPhysicalName,
      "it has partition values of no column instead of col-2, col-3",
      partitionedCopy("q, p")
    )
  }

  // D9
  private val plainTable = CompliantTable.of("a INT")
  Seq(
    "a/b=c%2Fd/part-0.parquet",
    "a/../part-0.parquet",
    "./part-0.parquet",
    "a%20b%25.parquet",
    "..part-0.parquet",
    "%5C.parquet",
    "/lake/part-0.parquet",
    "//host/lake/part-0.parquet",
    "file:///lake/part-0.parquet",
    "s3a://bucket/a%20b/part-0.parquet"
  ).foreach { path =>
    passes(PathsAreWithinReach, s"the path $path")(plainTable)(file.copy(path = path))
  }
  private val leaving = "its path leaves the folder of the table"
  Seq(
    "../secret.parquet" -> leaving,
    "a/../../secret.parquet" -> leaving,
    "a/b/../../../t/secret.parquet" -> leaving,
    "%2e%2e/secret.parquet" -> leaving,
    "a/%2E./..%2fsecret.parquet" -> leaving,
    "..%5Csecret.parquet" -> leaving,
    "jar:file:/x!/y" -> "its path is a URI without a file path",
    "mailto:x" -> "its path is a URI without a file path",
    "" -> "it has no path",
    " " -> "it has no path",
    "%zz" -> "its path is not a URI",
    "a b.parquet" -> "its path is not a URI",
    "a\\b.parquet" -> "its path is not a URI",
    "a%0Ab.parquet" -> "its path has a control character",
    "a.parquet?b" -> "its path has a query or a fragment",
    "a.parquet#b" -> "its path has a query or a fragment",
    "a/.." -> "its path is not that of a file",
    "file:///" -> "its path is not that of a file",
    "/../etc/passwd" -> "its path goes above the root",
    "file:///a/../../etc/passwd" -> "its path goes above the root",
    "file://host/a.parquet" -> "its path is a local file on another host",
    "a:b" -> "its path is a URI without a file path",
    "." -> "its path is not that of a file"
  ).foreach { case (path, found) =>
    refuses(PathsAreWithinReach, s"the path '$path'")(plainTable)(file.copy(path = path)) {
      expect("INCOMPATIBLE_FILE_ACTION", Location.File(path), copy)(
        "file" -> path,
        "found" -> found,
        "required" -> PathsAreWithinReach.statement
      )
    }
  }
  refuses(PathsAreWithinReach, "a scheme that nobody knows")(plainTable)(
    file.copy(isWithinReach = false)
  ) {
    bad(
      PathsAreWithinReach,
      "the session has no file system for the scheme and host of its path",
      copy
    )
  }
  test("D9 refuses no path, and control characters, in one line") {
    Seq(null, "a\nb", "a\tb", "\u0000").foreach { path =>
      val found = theOne(PathsAreWithinReach.check(plainTable, file.copy(path = path)))
      assert(!found.parameters("file").exists(_.isControl))
      assert(found.parameters.values.forall(_ != null))
    }
  }

  // D3, from the JSON in the log
  private val wide = CompliantTable.of("a INT, s STRUCT<x: INT, y: STRUCT<z: INT>>, l ARRAY<INT>")
  private val dropped =
    wide.copy(properties = wide.properties + ("delta.columnMapping.maxColumnId" -> "20"))
  private def stats(table: TableState)(json: String) =
    file.copy(statistics = FileStatistics.parse(json, table.physicalNames))
  Seq(
    "counts alone" -> """{"numRecords":1}""",
    "names at every depth" ->
      ("""{"numRecords":1,"minValues":{"col-1":1,"col-2":{"col-3":1,"col-4":{"col-5":1}}},""" +
        """"nullCount":{"col-1":0,"col-2":{"col-3":0},"col-6":0},"tightBounds":true}"""),
    "unknown keys of statistics" -> """{"numRecords":1,"madeUp":{"a":1}}"""
  ).foreach { case (what, json) =>
    passes(StatisticsByPhysicalName, what)(wide)(stats(wide)(json))
  }
  Seq(
    "a logical name" -> """{"numRecords":1,"minValues":{"a":1}}""" -> "a",
    "a logical name below" -> """{"numRecords":1,"maxValues":{"col-2":{"x":1}}}""" -> "col-2.x",
    "a name at the top instead of below" -> """{"nullCount":{"col-5":1}}""" -> "col-5",
    "an id that was never given out" -> """{"nullCount":{"col-21":1}}""" -> "col-21",
    "a name that is no id" -> """{"nullCount":{"col-07":1}}""" -> "col-07",
    "a very long number" -> """{"nullCount":{"col-99999999999999999999":1}}""" ->
      "col-99999999999999999999",
    "the first of several by name" -> """{"minValues":{"b":1},"maxValues":{"a":1}}""" -> "a"
  )
    .foreach { case ((what, json), name) =>
      refuses(StatisticsByPhysicalName, what)(dropped)(stats(dropped)(json)) {
        bad(
          StatisticsByPhysicalName,
          s"its statistics have the key $name, which is not a " +
            "physical name",
          copy
        )
      }
    }
  passes(StatisticsByPhysicalName, "a column that was dropped")(dropped)(
    stats(dropped)("""{"minValues":{"col-8":1},"nullCount":{"col-2":{"col-20":{"col-9":0}}}}""")
  )
  refuses(StatisticsByPhysicalName, "a wrong name beside a dropped column")(dropped)(
    stats(dropped)("""{"minValues":{"col-8":1,"a":1}}""")
  ) {
    bad(
      StatisticsByPhysicalName,
      "its statistics have the key a, which is not a physical name",
      copy
    )
  }

  // D4
  private val timed =
    CompliantTable.of("v INT, p TIMESTAMP, q TIMESTAMP_NTZ").copy(partitionColumns = Seq("p", "q"))
  private def at(p: String) =
    file.copy(partitionValues = Map("col-2" -> p, "col-3" -> "2026-01-01"))
  Seq(
    "2026-01-01T00:00:00.000000Z",
    "2026-01-01T00:00:00Z",
    "-0044-03-15T12:00:00.5Z",
    "12026-01-01T00:00:00.123456789Z",
    "",
    null
  ).foreach { value =>
    passes(TimestampPartitionsInUtc, s"the timestamp $value")(timed)(at(value))
  }
  Seq(
    "2026-01-01 00:00:00",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00+01:00",
    "2026-01-01T00:00:00.Z",
    "2026-01-01",
    "0"
  ).foreach { value =>
    refuses(TimestampPartitionsInUtc, s"the timestamp $value")(timed)(at(value)) {
      bad(
        TimestampPartitionsInUtc,
        s"the partition value of p is $value",
        "SET spark.databricks.delta.write.utcTimestampPartitionValues=true"
      )
    }
  }
  passes(TimestampPartitionsInUtc, "a file without the value, which is D2's business")(timed)(file)

  // D8
  private val clustered = CompliantTable.of("a INT, s STRUCT<x: INT, y: STRUCT<z: INT>>")
  Seq(Seq(Seq("col-1")), Seq(Seq("col-2", "col-3"), Seq("col-2", "col-4", "col-5")), Nil).foreach {
    columns =>
      passes(ClusteringByPhysicalName, s"the columns $columns")(clustered)(Clustered(columns))
  }
  Seq(Seq("a"), Seq("col-2", "x"), Seq("col-3"), Seq("col-1", "col-3"), Seq("COL-1")).foreach {
    path =>
      refuses(ClusteringByPhysicalName, s"the column ${path.mkString(".")}")(clustered)(
        Clustered(Seq(Seq("col-1"), path))
      ) {
        expect(
          "INCOMPATIBLE_PARTITIONING",
          Location.Column(path, None, None),
          "ALTER TABLE db.t CLUSTER BY NONE"
        )(
          "columns" -> path.mkString("."),
          "reason" -> s"the clustering column ${path.mkString(".")} is not a physical name"
        )
      }
  }

  // C16
  passes(ClusteredOrPartitioned, "a clustered table without partitions")(clustered)(
    Clustered(Seq(Seq("col-1")))
  )
  passes(ClusteredOrPartitioned, "a partitioned table that is no longer clustered")(partitioned)(
    Clustered(Nil)
  )
  refuses(ClusteredOrPartitioned, "a partitioned table that is clustered")(partitioned)(
    Clustered(Seq(Seq("col-1")))
  ) {
    expect(
      "INCOMPATIBLE_PARTITIONING",
      Location.Column(Seq("q", "p"), None, None),
      "ALTER TABLE db.t CLUSTER BY NONE"
    )("columns" -> "q, p", "reason" -> "the table is clustered as well")
  }
}
