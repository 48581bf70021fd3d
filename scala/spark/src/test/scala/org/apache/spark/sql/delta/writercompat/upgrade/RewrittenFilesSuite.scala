package org.apache.spark.sql.delta.writercompat.upgrade

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path => HadoopPath, RawLocalFileSystem}
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.NanoTime
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.Row
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{AddFile, Metadata, Protocol}
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.delta.writercompat.feature.WriterCompatTableFeature
import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{Lifecycle, Profile, TableState}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{FolderListing, ForeignFiles, TestTable}
import org.apache.spark.sql.delta.writercompat.datafiles.DataFileAudit
import org.apache.spark.sql.delta.writercompat.read.{PhysicalNames, TableStates}

import java.net.URI
import java.nio.file.{Files, Path}
import java.time.{Instant, LocalDate}
import java.util.concurrent.atomic.AtomicInteger
import scala.jdk.CollectionConverters._
import scala.util.Using

/** The local file system under another name, where a file is another one once it was opened. */
class SwappingFileSystem extends RawLocalFileSystem {

  override def getUri: URI = URI.create("swapping:///")

  override def open(path: HadoopPath, bufferSize: Int): FSDataInputStream =
    super.open(
      if (SwappingFileSystem.opened.getAndIncrement() == 0) path
      else new HadoopPath(path.getParent, "other"),
      bufferSize
    )

  override def getFileStatus(path: HadoopPath): FileStatus =
    super.getFileStatus(
      if (SwappingFileSystem.opened.get == 0 || !path.getName.endsWith(".parquet")) path
      else new HadoopPath(path.getParent, "other")
    )
}

object SwappingFileSystem {
  val opened = new AtomicInteger
}

/** Live files are rewritten, and their rows do not change. */
class RewrittenFilesSuite extends TableSuite {

  /** Delta's transaction with other metadata and protocol, past Delta's checks and the guard. */
  private final class Retargeted(snapshot: Snapshot, target: Metadata, features: Protocol)
      extends OptimisticTransaction(snapshot.deltaLog, None, snapshot) {
    newMetadata = Some(target)
    newProtocol = Some(features)
  }

  private def snapshotOf(table: TestTable): Snapshot =
    DeltaLog.forTable(spark, table.folder.toString).update()

  private def filesOf(table: TestTable): Seq[AddFile] = snapshotOf(table).allFiles.collect().toSeq

  private def widened(dataType: DataType): DataType = dataType match {
    case ByteType | ShortType => IntegerType
    case struct: StructType   =>
      StructType(struct.map(field => field.copy(dataType = widened(field.dataType))))
    case array: ArrayType => array.copy(elementType = widened(array.elementType))
    case map: MapType     =>
      map.copy(keyType = widened(map.keyType), valueType = widened(map.valueType))
    case other => other
  }

  /** A transaction that gives the table the feature as it would have it from its creation. */
  private def retargeted(snapshot: Snapshot): OptimisticTransaction = {
    val before = snapshot.metadata
    val plain = before.copy(
      schemaString = widened(before.schema).json,
      configuration = before.configuration - "delta.enableDeletionVectors" ++ Seq(
        "delta.columnMapping.mode" -> "id",
        "delta.enableIcebergCompatV2" -> "true",
        "delta.enableIcebergWriterCompatV1" -> "true"
      )
    )
    val withIds = DeltaColumnMapping.assignColumnIdAndPhysicalName(
      newMetadata = plain,
      oldMetadata = plain,
      isChangingModeOnExistingTable = false,
      isOverwritingSchema = false
    )
    val features = Seq(
      InvariantsTableFeature,
      ColumnMappingTableFeature,
      IcebergCompatV2TableFeature,
      TimestampNTZTableFeature,
      WriterCompatTableFeature.of(V1.contract)
    )
    val merged = snapshot.protocol.merge(Protocol(3, 7).withFeatures(features))
    // The files that are written have no vectors, and no table with the feature may.
    val vectors = DeletionVectorsTableFeature.name
    new Retargeted(
      snapshot,
      PhysicalNames.followIds(withIds, settled = Set.empty),
      merged.copy(
        readerFeatures = merged.readerFeatures.map(_ - vectors),
        writerFeatures = merged.writerFeatures.map(_ - vectors)
      )
    )
  }

  private def written(
      table: TestTable,
      files: AddFile => Boolean = _ => true
  ): RewrittenFiles = {
    val snapshot = snapshotOf(table)
    val chosen = snapshot.allFiles.collect().toSeq.filter(files)
    RewrittenFiles.write(spark, retargeted(snapshot), snapshot, chosen)
  }

  /** Rewrites every file and commits that. */
  private def rewrite(table: TestTable): RewrittenFiles = {
    val snapshot = snapshotOf(table)
    val txn = retargeted(snapshot)
    val old = snapshot.allFiles.collect().toSeq
    val result = RewrittenFiles.write(spark, txn, snapshot, old)
    val removed = old.map(_.removeWithTimestamp(dataChange = false))
    txn.commitLarge(
      spark,
      removed.iterator ++ result.added,
      Some(txn.protocol),
      DeltaOperations.ManualUpdate,
      Map.empty,
      Map.empty
    )
    result
  }

  // Bytes and shorts are the same numbers as the ints they become; floats are told by their bits.
  private def exact(value: Any): String = value match {
    case null                            => "null"
    case row: Row                        => row.toSeq.map(exact).mkString("{", ", ", "}")
    case bytes: Array[Byte]              => bytes.map("%02x".format(_)).mkString("x", "", "")
    case seq: scala.collection.Seq[_]    => seq.map(exact).mkString("[", ", ", "]")
    case map: scala.collection.Map[_, _] =>
      map.toSeq.map { case (k, v) => s"${exact(k)}: ${exact(v)}" }.sorted.mkString("(", ", ", ")")
    case float: Float   => s"f${java.lang.Float.floatToRawIntBits(float)}"
    case double: Double => s"d${java.lang.Double.doubleToRawLongBits(double)}"
    case text: String   => s"'$text'"
    case other          => other.toString
  }

  // Dates and times as java.time has them are proleptic Gregorian at every age.
  private def content(table: TestTable): Seq[String] =
    withConf("spark.sql.datetime.java8API.enabled" -> "true") {
      spark.read.format("delta").load(table.folder.toString).collect().map(exact).toSeq.sorted
    }

  /** What the table has after the rewrite is what it had, and nothing stands against the files. */
  private def assertRewritten(table: TestTable): RewrittenFiles = {
    val before = content(table)
    val old = table.log.liveFiles.keySet
    assert(before.nonEmpty)
    val result = rewrite(table)
    assert(content(table) == before)
    assertCompliant(table)
    val live = table.log.liveFiles
    assert(live.keySet.intersect(old).isEmpty)
    assert(live.keys.forall(_.startsWith(table.folder.resolve(result.folder))))
    assert(live.values.forall(!_.get("dataChange").asBoolean))
    val audit = DataFileAudit.run(spark, snapshotOf(table), stateOf(table))
    assert(audit.findings == Nil)
    assert(audit.filesRead == live.size)
    result
  }

  private def stateOf(table: TestTable): TableState = {
    val snapshot = snapshotOf(table)
    TableStates.of(
      table.name,
      Lifecycle.Changing,
      snapshot.protocol,
      snapshot.metadata,
      Profile.Rfc
    )
  }

  private val everyType: String =
    "id BIGINT, i INT, h SMALLINT, t TINYINT, f FLOAT, d DOUBLE, d9 DECIMAL(9, 2), " +
      "d18 DECIMAL(18, 4), d38 DECIMAL(38, 10), s STRING, b BINARY, z BOOLEAN, day DATE, " +
      "ts TIMESTAMP, n TIMESTAMP_NTZ, " +
      "st STRUCT<x: SMALLINT, y: STRUCT<z: TINYINT, t: TIMESTAMP>, `a.b`: STRING>, " +
      "l ARRAY<TINYINT>, ll ARRAY<ARRAY<STRUCT<v: SMALLINT, w: DATE>>>, " +
      "m MAP<SMALLINT, STRUCT<v: TINYINT, w: ARRAY<TIMESTAMP>>>, `odd.name` STRING"

  private val values: Seq[String] = Seq(
    "1, 2147483647, 32767S, 127Y, CAST('NaN' AS FLOAT), CAST('-Infinity' AS DOUBLE), 9999999.99, " +
      "99999999999999.9999, 9999999999999999999999999999.9999999999, 'Zürich 北\\u0000', X'00FF', " +
      "true, DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999', " +
      "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', named_struct('x', 32767S, 'y', " +
      "named_struct('z', 127Y, 't', TIMESTAMP'1969-12-31 23:59:59.999999'), 'a.b', 'p'), " +
      "array(1Y, null, -128Y), array(array(named_struct('v', 1S, 'w', DATE'1582-10-15')), null), " +
      "map(-32768S, named_struct('v', 1Y, 'w', array(TIMESTAMP'1900-01-01 00:00:00.000001'))), 'q'",
    "2, -2147483648, -32768S, -128Y, CAST('-0.0' AS FLOAT), CAST('NaN' AS DOUBLE), -9999999.99, " +
      "-99999999999999.9999, -9999999999999999999999999999.9999999999, '', X'', false, " +
      "DATE'0001-01-01', TIMESTAMP'0001-01-03 00:00:00', TIMESTAMP_NTZ'0001-01-01 00:00:00', " +
      "named_struct('x', null, 'y', null, 'a.b', ''), array(), array(), map(), ''",
    "3, 0, 0S, 0Y, CAST(1.4E-45 AS FLOAT), 4.9E-324D, 0, 0, 0, repeat('x', 5000), " +
      "CAST(repeat('y', 3000) AS BINARY), null, DATE'1582-10-04', TIMESTAMP'1582-10-04 01:02:03.4', " +
      "TIMESTAMP_NTZ'1500-02-28 00:00:00', null, array(null), array(null), " +
      "map(1S, null, 2S, named_struct('v', null, 'w', null)), null",
    "4, " + Seq.fill(19)("null").mkString(", ")
  )

  private def created(
      columns: String,
      properties: Seq[(String, String)],
      partitionedBy: String = ""
  ): TestTable = {
    val table = managed()
    val list = properties.map { case (key, value) => s"'$key' = '$value'" }
    val clause = if (list.isEmpty) "" else list.mkString("TBLPROPERTIES (", ", ", ")")
    sql(s"CREATE TABLE ${table.name} ($columns) USING delta $partitionedBy $clause")
    table
  }

  private def insertAll(table: TestTable): Unit =
    sql(s"INSERT INTO ${table.name} VALUES ${values.mkString("(", "), (", ")")}")

  // Everything that older writers did otherwise.
  private val legacy: Seq[(String, String)] = Seq(
    "spark.sql.parquet.outputTimestampType" -> "INT96",
    "spark.sql.parquet.int96RebaseModeInWrite" -> "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite" -> "LEGACY",
    "spark.sql.parquet.writeLegacyFormat" -> "true"
  )

  for (
    (mode, properties) <- Seq(
      "none" -> Nil,
      "name" -> Seq("delta.columnMapping.mode" -> "name"),
      "id" -> Seq("delta.columnMapping.mode" -> "id")
    )
  )
    test(s"every type, as old and new writers store it, in mode $mode with deletion vectors") {
      val table = created(everyType, properties :+ ("delta.enableDeletionVectors" -> "true"))
      insertAll(table)
      withConf(legacy: _*)(insertAll(table))
      sql(s"DELETE FROM ${table.name} WHERE id = 2")
      assert(filesOf(table).exists(_.deletionVector != null))
      val result = assertRewritten(table)
      assert(result.added.flatMap(_.numLogicalRecords).sum == 6)
      // Calendars of old are not in the new files.
      val keys = table.log.liveFiles.keys.flatMap(file => keysOf(file))
      assert(keys.exists(_.contains("spark")) && !keys.exists(_.contains("legacy")))
    }

  test("a session that writes in old forms does not write these files so") {
    val table = created(everyType, Nil)
    insertAll(table)
    withConf(
      legacy ++ Seq(
        "spark.databricks.delta.stats.collect" -> "false",
        "spark.sql.files.ignoreMissingFiles" -> "true"
      ): _*
    )(assertRewritten(table))
    assert(spark.conf.get("spark.sql.maxConcurrentOutputFileWriters") == "0")
  }

  private def footer(file: Path): ParquetMetadata = {
    val input = HadoopInputFile.fromPath(new HadoopPath(file.toUri), new Configuration(false))
    Using.resource(ParquetFileReader.open(input))(_.getFooter)
  }

  private def keysOf(file: Path): Set[String] =
    footer(file).getFileMetaData.getKeyValueMetaData.keySet.asScala.toSet

  // Partitions

  test("partition columns that are not in the files come from the log, each file in its own") {
    val table = created(
      "a INT, p STRING, h SMALLINT, day DATE, t TIMESTAMP, d DOUBLE",
      Nil,
      "PARTITIONED BY (p, h, day, t, d)"
    )
    Seq(
      "1, 'a b/ü=%', -5S, DATE'1582-10-04', TIMESTAMP'1899-12-31 23:59:59.123456', 1.0E-5D",
      "2, null, null, null, null, null",
      "3, '__x', 7S, DATE'9999-12-31', TIMESTAMP'2026-03-29 01:30:00', CAST('-Infinity' AS DOUBLE)"
    ).foreach(row => sql(s"INSERT INTO ${table.name} SELECT $row FROM range(0, 2, 1, 1)"))
    assert(filesOf(table).size == 3)
    val result = assertRewritten(table)
    assert(result.added.map(_.partitionValues).distinct.size == 3)
    assert(result.added.size == 3)
  }

  test("a large file is written in pieces, small ones stay one file each, in the order they had") {
    val table = created("id BIGINT, p INT, x STRING", Nil, "PARTITIONED BY (p)")
    withConf("parquet.block.size" -> "20000", "spark.sql.files.openCostInBytes" -> "0") {
      spark
        .range(0, 4000, 1, 1)
        .selectExpr("id", "0 AS p", "repeat(md5(string(id)), 4) AS x")
        .write
        .format("delta")
        .mode("append")
        .saveAsTable(table.name)
    }
    sql(
      s"INSERT INTO ${table.name} SELECT 9 - i, p, 'a' FROM range(1, 6, 1, 1) AS t(p), " +
        "range(0, 2, 1, 1) AS u(i)"
    )
    val large = filesOf(table).map(_.size).max
    assert(large > 100000)
    withConf("spark.sql.files.maxPartitionBytes" -> (large / 3 + 1).toString) {
      val result = assertRewritten(table)
      val counts = result.added.groupMapReduce(_.partitionValues.values.head)(_ => 1)(_ + _)
      assert(counts - "0" == (1 to 5).map(p => p.toString -> 1).toMap)
      assert(counts("0") == 3)
    }
    assert(rows(s"SELECT first(id) FROM ${table.name} WHERE p = 3") == Set("[9]"))
  }

  test("pieces are large enough that files are split only for cores without work") {
    val (mib, gib) = (1L << 20, 1L << 30)
    def size(bytes: Long, cores: Int) = RewrittenFiles.pieceSize(bytes, cores, 128 * mib, gib)
    assert(size(10 * mib, 8) == 128 * mib)
    assert(size(16 * gib, 8) == 512 * mib)
    assert(size(1000 * gib, 8) == gib)
  }

  // Files by other writers

  private def foreign(columns: String, key: (String, String)*)(fields: String*)(
      rows: (Group => Any)*
  ): TestTable =
    ForeignFiles.committed(created(columns, Nil)) { copy =>
      val file = copy.folder.resolve("foreign.parquet")
      ForeignFiles.writeWith(file, None, key.toMap, fields: _*)(rows: _*)
      Seq(ForeignFiles.add("foreign.parquet", Files.size(file), rows.size.toLong))
    }

  test("Spark 2 counted days and int96 by the Julian calendar before 1582, and no file does now") {
    // The first of January of the year 1000 as the Julian calendar has it.
    val (julian, gregorian) = (-354280, LocalDate.of(1000, 1, 1).toEpochDay.toInt)
    val table = foreign("day DATE, ts TIMESTAMP", "org.apache.spark.version" -> "2.4.8")(
      "optional int32 day (DATE);",
      "optional int96 ts;"
    ) { row =>
      row.append("day", julian)
      row.append("ts", new NanoTime(julian + 2440588, 0))
    }
    withConf("spark.sql.session.timeZone" -> "UTC") {
      assert(gregorian - julian == -5)
      assert(content(table) == Seq("{1000-01-01, 1000-01-01T00:00:00Z}"))
      assertRewritten(table)
    }
    val chunks = footer(table.log.liveFiles.keys.head).getBlocks.get(0).getColumns.asScala
    val micros = Instant.parse("1000-01-01T00:00:00Z").getEpochSecond * 1000000L
    assert(chunks.map(_.getStatistics.genericGetMin) == Seq(gregorian, micros))
  }

  test("lists of two levels, and a file that lacks a column and has one too many") {
    val table = foreign("a INT, l ARRAY<STRING>, missing STRUCT<x: BIGINT>")(
      "optional group l (LIST) { repeated binary array (STRING); }",
      "optional int64 other;",
      "optional int32 a;"
    )(
      row => {
        row.append("a", 1)
        row.addGroup("l").append("array", "p").append("array", "q")
        row.append("other", 5L)
      },
      row => row.append("a", 2)
    )
    assert(content(table) == Seq("{1, ['p', 'q'], null}", "{2, null, null}"))
    assertRewritten(table)
  }

  test("files whose number of rows the log has wrong are right afterwards") {
    val table = ForeignFiles.committed(created("a INT", Nil)) { copy =>
      val file = copy.folder.resolve("foreign.parquet")
      ForeignFiles.write(file, "optional int32 a;")(_.append("a", 1), _.append("a", 2))
      Seq(ForeignFiles.add("foreign.parquet", Files.size(file), rows = 7))
    }
    assertRewritten(table)
    assert(filesOf(table).flatMap(_.numLogicalRecords) == Seq(2L))
  }

  // Refusals and failures

  private def failing(table: TestTable)(body: => Any): IcebergWriterCompatException = {
    val (version, live) = (table.log.version, table.log.liveFiles.keySet)
    val error = intercept[IcebergWriterCompatException](body)
    assert((table.log.version, table.log.liveFiles.keySet) == (version, live))
    assert(error.getMessage.contains(table.name.stripPrefix("delta.`")))
    val fix = error.getMessage.linesIterator.toSeq.last
    assert(fix == s"Run: VACUUM ${error.getMessageParameters.get("table")}")
    error
  }

  /** The files of a folder that an error names. */
  private def orphans(table: TestTable, error: IcebergWriterCompatException): Set[String] =
    FolderListing.of(table.folder.resolve(error.getMessageParameters.get("folder")))

  test("a file that cannot be read leaves the table as it was, and again is enough") {
    val table = created("a INT, s STRING", Nil)
    Seq(1000, 1000, 1).foreach { i =>
      sql(s"INSERT INTO ${table.name} SELECT id, uuid() FROM range(0, $i, 1, 1)")
    }
    val (before, file) = (content(table), table.log.liveFiles.keys.minBy(Files.size(_)))
    val bytes = Files.readAllBytes(file)
    // The footer is whole and the values are not.
    val damaged = bytes.clone
    (4 until 60).foreach(i => damaged(i) = 0x7f)
    Files.write(file, damaged)
    Files.delete(file.resolveSibling(s".${file.getFileName}.crc"))
    val error = failing(table)(withConf("spark.sql.files.ignoreCorruptFiles" -> "true") {
      written(table)
    })
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_REWRITE_FAILED.NOT_COMMITTED")
    assert(error.getMessageParameters.get("folder").startsWith("rewritten-"))
    assert(orphans(table, error).exists(_.endsWith(".parquet")), error)
    Files.write(file, bytes)
    assertRewritten(table)
    assert(content(table) == before)
  }

  test("a file that is not there is named before anything is written") {
    val table = created("a INT", Nil)
    sql(s"INSERT INTO ${table.name} VALUES (1)")
    val file = table.log.liveFiles.keys.head
    Files.delete(file)
    val error = failing(table)(written(table))
    assert(
      error.getMessageParameters.get("cause").contains(s"${file.getFileName}: it is not there")
    )
    assert(orphans(table, error) == Set("(no folder)"))
  }

  test("files with other rows than before are not handed out") {
    withConf("fs.swapping.impl" -> classOf[SwappingFileSystem].getName) {
      val table = ForeignFiles.committed(created("a INT", Nil)) { copy =>
        val file = copy.folder.resolve("foreign.parquet")
        ForeignFiles.write(file, "optional int32 a;")(_.append("a", 1), _.append("a", 2))
        ForeignFiles.write(copy.folder.resolve("other"), "optional int32 a;")(_.append("a", 1))
        Seq(ForeignFiles.add(s"swapping://$file", Files.size(file), rows = 2))
      }
      SwappingFileSystem.opened.set(0)
      val error = failing(table)(written(table))
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_REWRITE_FAILED.OTHER_ROWS")
      val figures = Seq("files", "rows", "written").map(error.getMessageParameters.get)
      assert(figures == Seq("1", "2", "1"))
      assert(orphans(table, error).size == 1)
    }
  }

  test("only the given files are rewritten, and none if none are given") {
    val table = created("a INT", Nil)
    (1 to 3).foreach(i => sql(s"INSERT INTO ${table.name} SELECT $i FROM range(0, $i, 1, 1)"))
    val result = written(table, _.numLogicalRecords.contains(2L))
    assert(result.added.flatMap(_.numLogicalRecords) == Seq(2L))
    assert(written(table, _ => false).added == Nil)
  }
}
