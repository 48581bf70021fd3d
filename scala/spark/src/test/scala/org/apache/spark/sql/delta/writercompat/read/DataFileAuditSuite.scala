package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.fs.{FSDataInputStream, Path => HadoopPath, RawLocalFileSystem}
import org.apache.hadoop.security.AccessControlException
import org.apache.parquet.crypto.FileEncryptionProperties
import org.apache.parquet.example.data.Group
import org.apache.spark.sql.delta.writercompat.{Serialized, TableSuite}
import org.icebergwritercompat.contract.{Lifecycle, Profile, TableState}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.DataFile
import org.icebergwritercompat.testing.{FolderState, ForeignFiles, TestTable}
import org.apache.spark.sql.delta.writercompat.datafiles.DataFileAudit

import java.net.URI
import java.nio.file.{Files, Path}

/** The local file system under another name, where nothing may be opened. */
class DenyingFileSystem extends RawLocalFileSystem {
  override def getUri: URI = URI.create("denying:///")
  override def open(path: HadoopPath, bufferSize: Int): FSDataInputStream =
    throw new AccessControlException(s"no access to $path")
}

class DataFileAuditSuite extends TableSuite {

  private def stateOf(table: TestTable): (TableState, org.apache.spark.sql.delta.Snapshot) = {
    val delta = DeltaTables.find(spark, table.name)
    val snapshot = delta.update()
    val state = TableStates.of(
      TableStates.nameOf(delta),
      Lifecycle.Changing,
      snapshot.protocol,
      snapshot.metadata,
      Profile.Rfc
    )
    (state, snapshot)
  }

  /** What is found, and that the folder is as it was. */
  private def audit(table: TestTable, files: Option[Long] = None): DataFileAudit = {
    val before = FolderState.of(table.folder)
    val (state, snapshot) = stateOf(table)
    val result = DataFileAudit.run(spark, snapshot, state, files)
    assert(FolderState.of(table.folder) == before)
    result
  }

  /** The findings as rule, column, text without the column, and number of files. */
  private def found(table: TestTable): Seq[(String, String, String, Long)] =
    audit(table).findings.map { f =>
      val column = f.column.fold("")(_.path.mkString("."))
      assert(column.isEmpty || f.found.startsWith(s"column $column "))
      (f.rule.id, column, f.found.stripPrefix(s"column $column "), f.files)
    }

  private def assertClean(table: TestTable): Unit = {
    val live = table.log.liveFiles
    val result = audit(table)
    assert(result.findings == Nil)
    assert(result.filesLive == live.size)
    assert(result.filesRead == live.size)
    assert(result.bytesRead == live.keys.toSeq.map(Files.size(_)).sum)
    assert(live.nonEmpty)
    ()
  }

  // Right tables

  test("files of every kind of nesting have nothing wrong") {
    assertClean(compliant())
  }

  private val depths = Seq(
    "STRUCT<x: INT, y: @>",
    "ARRAY<@>",
    "MAP<STRING, @>",
    "MAP<STRUCT<k: INT>, @>"
  )

  test("files of types nested three deep have nothing wrong") {
    val types =
      for (a <- depths; b <- depths; c <- depths)
        yield a.replace("@", b.replace("@", c.replace("@", "TIMESTAMP")))
    val table = managed()
    val columns = types.zipWithIndex.map { case (dataType, i) => s"c$i $dataType" }
    sql(s"CREATE TABLE ${table.name} (${columns.mkString(", ")}) USING delta TBLPROPERTIES ($on)")
    sql(s"INSERT INTO ${table.name} VALUES (${types.map(_ => "null").mkString(", ")})")
    assertClean(table)
  }

  private val partitionTypes = Seq(
    "INT" -> Seq("1", "-2", "null"),
    "BIGINT" -> Seq("5000000000"),
    "BOOLEAN" -> Seq("true", "false", "null"),
    "FLOAT" -> Seq("CAST('1.1' AS FLOAT)", "CAST('NaN' AS FLOAT)", "CAST('-0.0' AS FLOAT)"),
    "DOUBLE" -> Seq("1.0E-5D", "CAST('-Infinity' AS DOUBLE)"),
    "STRING" -> Seq("'a b'", "'Zürich/北%20'", "'x=1'", "null", s"'${"long" * 50}'"),
    "BINARY" -> Seq("X'6162'", "X'FF00'"),
    "DATE" -> Seq("DATE'2026-11-18'", "DATE'1582-10-15'", "DATE'0001-01-01'", "null"),
    "TIMESTAMP" -> Seq(
      "TIMESTAMP'2026-11-18 12:00:00.123456 Europe/Zurich'",
      "TIMESTAMP'1899-12-31 23:59:59Z'",
      "null"
    ),
    "TIMESTAMP_NTZ" -> Seq("TIMESTAMP_NTZ'2026-03-29 02:30:00'", "null")
  )

  partitionTypes.foreach { case (dataType, values) =>
    test(s"files of a table partitioned by $dataType have nothing wrong") {
      val table = managed()
      sql(
        s"CREATE TABLE ${table.name} (a INT, p $dataType) USING delta PARTITIONED BY (p) " +
          s"TBLPROPERTIES ($on)"
      )
      values.foreach(value => sql(s"INSERT INTO ${table.name} VALUES (1, $value), (2, $value)"))
      assertClean(table)
    }
  }

  test("files from before columns were renamed, dropped, added and promoted have nothing wrong") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, f FLOAT, d DECIMAL(5, 2), s STRUCT<x: INT, y: INT>, " +
        "l ARRAY<STRUCT<k: INT>>, gone INT, p INT) USING delta PARTITIONED BY (p) " +
        s"TBLPROPERTIES ($on, 'delta.enableTypeWidening' = 'true')"
    )
    val row = "1, 1.5, 2.25, named_struct('x', 1, 'y', 2), array(named_struct('k', 3)), 4"
    sql(s"INSERT INTO ${table.name} VALUES ($row, 7)")
    Seq(
      "RENAME COLUMN a TO b",
      "RENAME COLUMN s.x TO z",
      "DROP COLUMN gone",
      "DROP COLUMN s.y",
      "ADD COLUMNS (gone STRING, s.y STRING, l.element.n DATE)",
      "ALTER COLUMN b TYPE BIGINT",
      "ALTER COLUMN f TYPE DOUBLE",
      "ALTER COLUMN d TYPE DECIMAL(20, 2)",
      "ALTER COLUMN l.element.k TYPE BIGINT",
      "ALTER COLUMN p TYPE BIGINT"
    ).foreach(change => sql(s"ALTER TABLE ${table.name} $change"))
    assertClean(table)
    sql(
      s"INSERT INTO ${table.name} VALUES (1, 1.5, 2.25, named_struct('z', 1, 'y', 'n'), " +
        "array(named_struct('k', 3, 'n', DATE'2026-11-18')), 7, 'new')"
    )
    assertClean(table)
  }

  // The log has no way to tell them from nulls, so nor may the file.
  test("empty strings in a partition column are stored as null, whatever writes them") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, p STRING) USING delta PARTITIONED BY (p) " +
        s"TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, ''), (2, 'x'), (3, NULL), (4, 'x')")
    sql(s"UPDATE ${table.name} SET p = '' WHERE a = 2")
    sql(
      s"MERGE INTO ${table.name} t USING (SELECT 4 AS a, '' AS p UNION ALL SELECT 5, '') s " +
        "ON t.a = s.a WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT *"
    )
    withConf("spark.databricks.delta.optimizeWrite.enabled" -> "true") {
      sql(s"INSERT INTO ${table.name} VALUES (6, '')")
    }
    assertClean(table)
    assert(rows(s"SELECT a, p FROM ${table.name}") == (1 to 6).map(i => s"[$i,null]").toSet)
  }

  test("an empty table has nothing wrong") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (a INT) USING delta TBLPROPERTIES ($on)")
    assert(audit(table) == DataFileAudit(Nil, 0, 0, 0))
  }

  test("files of a clone, which has them by absolute path, are found") {
    val source = compliant()
    val clone = managed()
    sql(s"CREATE TABLE ${clone.name} SHALLOW CLONE ${source.name}")
    assertClean(clone)
  }

  test("rows that a deletion vector hides are rows of the file") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'id', " +
        "'delta.enableDeletionVectors' = 'true') AS SELECT id FROM range(0, 10, 1, 1)"
    )
    sql(s"DELETE FROM ${table.name} WHERE id = 3")
    assert(table.log.actions(table.log.version).exists(_._2.has("deletionVector")))
    val result = audit(table)
    assert((result.findings, result.filesRead) == ((Nil, 1)))
  }

  // Files of writers that know nothing of the feature

  private val byId = "'delta.columnMapping.mode' = 'id'"

  test("INT96 of Spark is found, at every depth") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (t TIMESTAMP, s STRUCT<t: TIMESTAMP>, l ARRAY<TIMESTAMP>) " +
        s"USING delta TBLPROPERTIES ($byId)"
    )
    val row = "SELECT now() AS t, named_struct('t', now()) AS s, array(now()) AS l"
    withConf("spark.sql.parquet.outputTimestampType" -> "INT96") {
      sql(s"INSERT INTO ${table.name} $row")
    }
    withConf("spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MILLIS") {
      sql(s"INSERT INTO ${table.name} $row")
    }
    withConf("spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MICROS") {
      sql(s"INSERT INTO ${table.name} $row")
    }
    val required = "not as int64 (TIMESTAMP(MICROS,true))"
    assert(
      found(table).toSet == (for {
        place <- Set("t", "s.t", "l.element")
        form <- Set("int96", "int64 (TIMESTAMP(MILLIS,true))")
      } yield ("E4", place, s"is stored as $form, $required", 1L))
    )
  }

  test("files without column mapping have no ids, and no partition column") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, l ARRAY<INT>, p INT) USING delta PARTITIONED BY (p) " +
        "TBLPROPERTIES ('delta.writePartitionColumnsToParquet' = 'false')"
    )
    (1 to 7).foreach(p => sql(s"INSERT INTO ${table.name} VALUES (1, array(2), $p)"))
    assert(
      found(table) == Seq(
        ("E1f", "", "none of its columns has a field id", 7),
        ("E5", "p", "is a partition column, but is not in the file", 7)
      )
    )
    val examples = audit(table).findings.map(_.examples)
    assert(examples.map(_.size) == Seq(5, 5))
    assert(examples.forall(list => list == list.sorted && list.distinct == list))
    assert(examples(1).forall(_.matches("p=(\\d)/part-.*\\.parquet: \\1 in the log")), examples(1))
  }

  test("lists of two levels and decimals of Spark's legacy format are found") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (l ARRAY<INT>, m MAP<STRING, INT>, d DECIMAL(9, 2), " +
        s"e DECIMAL(18, 2)) USING delta TBLPROPERTIES ($byId)"
    )
    withConf("spark.sql.parquet.writeLegacyFormat" -> "true") {
      sql(s"INSERT INTO ${table.name} VALUES (array(1), map('a', 1), 1.25, 2.5)")
    }
    assert(
      found(table).toSet == Set(
        ("E6", "l", "is not stored as a list of three levels", 1L),
        (
          "E7",
          "d",
          "is stored as fixed_len_byte_array(4) (DECIMAL(9,2)), not as int32 (DECIMAL(9,2))",
          1L
        ),
        (
          "E7",
          "e",
          "is stored as fixed_len_byte_array(8) (DECIMAL(18,2)), not as int64 (DECIMAL(18,2))",
          1L
        )
      )
    )
  }

  // Files put into the log by hand

  private val ddl = "(a INT NOT NULL, t TIMESTAMP, s STRUCT<x: INT>, p STRING)"

  private def target(): TestTable = {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} $ddl USING delta PARTITIONED BY (p) TBLPROPERTIES ($on)")
    sql(s"INSERT INTO ${table.name} VALUES (1, now(), named_struct('x', 1), 'q')")
    table
  }

  private val fields = Seq(
    "optional int32 col-1 = 1;",
    "optional int64 col-2 (TIMESTAMP(MICROS,true)) = 2;",
    "optional group col-3 = 3 { optional int32 col-4 = 4; }",
    "optional binary col-5 (STRING) = 5;"
  )

  private val right: Group => Any = { row =>
    row.append("col-1", 1).append("col-2", 2L).append("col-5", "q")
    row.addGroup("col-3").append("col-4", 3)
  }

  /** The table with another file, which `write` puts there. */
  private def with1(path: String = "foreign.parquet", rows: Long = 1)(
      write: Path => Any
  ): TestTable =
    ForeignFiles.committed(target()) { copy =>
      val file = copy.folder.resolve(path)
      write(file)
      val size = if (Files.exists(file)) Files.size(file) else 742
      Seq(ForeignFiles.add(path, size, rows, Map("col-5" -> "q")))
    }

  test("a right file of another writer has nothing wrong") {
    assertClean(with1()(ForeignFiles.write(_, fields: _*)(right)))
  }

  test("a file of another writer by names of its own has nothing wrong") {
    assertClean(with1() {
      ForeignFiles.write(_, fields.map(_.replace("col-", "c")): _*) { row =>
        row.append("c1", 1).append("c5", "q")
      }
    })
  }

  test("wrong and missing ids, other units and other columns of another writer are found") {
    val table = with1() {
      ForeignFiles.write(
        _,
        "optional int32 col-1 = 1;",
        "optional int64 col-2 (TIMESTAMP(MILLIS,true)) = 2;",
        "optional group col-3 = 3 { optional int32 col-4 = 77; }",
        "optional binary col-5 (STRING);",
        "optional binary _change_type (STRING);"
      )(_.append("col-1", 1))
    }
    assert(
      found(table) == Seq(
        ("E1f", "p", "has no field id", 1),
        ("E1f", "s.x", "has the field id 77, not 4", 1),
        (
          "E4",
          "t",
          "is stored as int64 (TIMESTAMP(MILLIS,true)), not as int64 (TIMESTAMP(MICROS,true))",
          1
        ),
        ("E5", "p", "is a partition column, but has other values than the log", 1),
        ("E9", "", "it has the column _change_type, which is not a column of the table", 1)
      )
    )
  }

  test("other rows than the log says, partition values and nulls are found") {
    val table = with1(rows = 5) {
      ForeignFiles.write(_, fields: _*)(_.append("col-5", "q"), _.append("col-5", "r"))
    }
    val result = audit(table)
    assert(
      result.findings.map(f => (f.rule.id, f.found, f.examples)) == Seq(
        (
          "D1f",
          "the log has another number of rows",
          Seq("foreign.parquet: 2 rows, 5 in the log")
        ),
        (
          "E5",
          "column p is a partition column, but has other values than the log",
          Seq("foreign.parquet: values from q to r, 0 nulls of 2, q in the log")
        ),
        ("E10", "column a is required, but has nulls", Seq("foreign.parquet: at least 2 nulls"))
      )
    )
    assert(result.filesRead == 2)
  }

  test("nulls of a nested field are told from those of the struct around it") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (s STRUCT<x: INT NOT NULL, y: INT>) USING delta " +
        s"TBLPROPERTIES ($on)"
    )
    def withRows(rows: (Group => Any)*) = ForeignFiles.committed(table) { copy =>
      val file = ForeignFiles.write(
        copy.folder.resolve("foreign.parquet"),
        "optional group col-1 = 1 { optional int32 col-2 = 2; optional int32 col-3 = 3; }"
      )(rows: _*)
      Seq(ForeignFiles.add("foreign.parquet", Files.size(file), rows.size.toLong))
    }
    assertClean(withRows(_ => (), _.addGroup("col-1").append("col-2", 1)))
    assert(
      found(withRows(_ => (), _.addGroup("col-1").append("col-3", 1))) ==
        Seq(("E10", "s.x", "is required, but has nulls", 1))
    )
  }

  // Files that cannot be read

  private def unreadable(reason: String, detail: String)(table: TestTable): Unit = {
    val result = audit(table)
    assert(
      result.findings.map(f => (f.rule.id, f.column, f.found, f.files)) ==
        Seq(("E0", None, reason, 1))
    )
    val example = result.findings.head.examples.head
    assert(example.matches(s"(?i)\\S*foreign\\S*\\.parquet: .*$detail.*"), example)
    assert(!example.exists(_.isControl))
    assert(result.findings.head.remedy.text == s"DESCRIBE HISTORY ${stateOf(table)._1.name}")
    assert((result.filesLive, result.filesRead) == ((2, 2)))
  }

  test("a file that is not there is found") {
    unreadable("it is not there", "foreign.parquet")(with1()(_ => ()))
  }

  test("a folder in place of a file is found") {
    unreadable("it is not there", "directory")(with1()(Files.createDirectory(_)))
  }

  private def bytesOf(file: Path): Array[Byte] = {
    ForeignFiles.write(file, fields: _*)(right)
    val bytes = Files.readAllBytes(file)
    // Nor is there to be the checksum of what was in it.
    Files.delete(file.resolveSibling(s".${file.getFileName}.crc"))
    Files.delete(file)
    bytes
  }

  test("a file that was cut off is found") {
    unreadable("it is not a whole Parquet file", "not a Parquet file")(with1() { file =>
      Files.write(file, bytesOf(file).dropRight(100))
    })
  }

  test("an empty file is found") {
    unreadable("it is not a whole Parquet file", "length is too low")(
      with1()(Files.createFile(_))
    )
  }

  test("a text file is found") {
    unreadable("it is not a whole Parquet file", "not a Parquet file")(
      with1()(Files.writeString(_, "a,b\n" * 100))
    )
  }

  test("a damaged footer is found") {
    unreadable("its footer is damaged or cannot be fetched", "")(with1() { file =>
      val bytes = bytesOf(file)
      (bytes.length - 108 until bytes.length - 8).foreach(bytes(_) = 0xff.toByte)
      Files.write(file, bytes)
    })
  }

  test("whatever a footer holds is found wrong or right") {
    val table = compliant()
    val (state, _) = stateOf(table)
    val file = table.log.liveFiles.keys.head
    val whole = Files.readAllBytes(file)
    val length = java.nio.ByteBuffer
      .wrap(whole, whole.length - 8, 4)
      .order(java.nio.ByteOrder.LITTLE_ENDIAN)
      .getInt
    val random = new scala.util.Random(42)
    val damaged = Files.createTempFile("damaged", ".parquet")
    val configuration = spark.sessionState.newHadoopConf()
    try
      (1 to 2000).foreach { _ =>
        val bytes = whole.clone
        (0 to random.nextInt(4)).foreach { _ =>
          bytes(whole.length - 8 - length + random.nextInt(length)) = random.nextInt().toByte
        }
        Files.write(damaged, bytes)
        val footer = Footers.read("file:/nowhere", damaged.toUri.toString, configuration)
        val data = DataFile(damaged.toString, Map.empty, whole.length.toLong, Some(2), footer)
        V1.rules.check(state, data).foreach(v => assert(v.parameters("found").nonEmpty))
      }
    finally Files.delete(damaged)
  }

  private val key = Array.tabulate[Byte](16)(_.toByte)

  test("an encrypted footer is found") {
    unreadable("it is encrypted", "encrypted footer")(with1() {
      val encryption = FileEncryptionProperties.builder(key).build()
      ForeignFiles.writeWith(_, Some(encryption), Map.empty, fields: _*)(right)
    })
  }

  test("encrypted columns below a plain footer are found") {
    unreadable("it is encrypted", "keys")(with1() {
      val encryption = FileEncryptionProperties.builder(key).withPlaintextFooter().build()
      ForeignFiles.writeWith(_, Some(encryption), Map.empty, fields: _*)(right)
    })
  }

  test("a file that may not be read is found") {
    withConf("fs.denying.impl" -> classOf[DenyingFileSystem].getName) {
      val table = ForeignFiles.committed(target()) { copy =>
        val file = copy.folder.resolve("foreign.parquet")
        ForeignFiles.write(file, fields: _*)(right)
        val path = s"denying://${file.toUri.getPath}"
        Seq(ForeignFiles.add(path, Files.size(file), 1, Map("col-5" -> "q")))
      }
      unreadable("the permission to read it is denied", "no access to")(table)
    }
  }

  // As a job

  private def manyFiles(count: Int): TestTable = {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($byId) AS " +
        s"SELECT id, id % 2 AS p FROM range(0, $count, 1, $count)"
    )
    assert(table.log.liveFiles.size == count)
    table
  }

  test("a sample has the size that was asked for, and is the same each time") {
    val table = manyFiles(12)
    val live = table.log.liveFiles.keySet
    def missing(files: Long) = {
      val result = audit(table, Some(files))
      assert(result.filesLive == 12)
      assert(result.filesRead == math.min(files, 12))
      result.findings.flatMap(_.examples)
    }
    live.foreach(Files.delete)
    assert(missing(3).size == 3)
    assert(missing(3) == missing(3))
    assert(missing(3).toSet.subsetOf(missing(5).toSet))
    assert(missing(100).size == 5)
    assert(missing(0) == Nil)
  }

  test("what a task takes along survives the way to an executor") {
    val (state, _) = stateOf(compliant())
    state.nodes.foreach(_ => ())
    assert(Serialized(state) == state)
  }
}
