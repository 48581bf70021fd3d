package org.icebergwritercompat.testing

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.conf.Configuration
import org.apache.parquet.crypto.FileEncryptionProperties
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.SimpleGroupFactory
import org.apache.parquet.hadoop.example.ExampleParquetWriter
import org.apache.parquet.hadoop.util.HadoopOutputFile
import org.apache.parquet.schema.MessageTypeParser

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Data files that neither Delta nor Spark wrote. */
object ForeignFiles {

  private val mapper = new ObjectMapper

  /** Writes a Parquet file with these fields; each row is filled by one function. */
  def write(file: Path, fields: String*)(rows: (Group => Any)*): Path =
    writeWith(file, None, Map.empty, fields: _*)(rows: _*)

  /** The same, encrypted or with these keys in the footer. */
  def writeWith(
      file: Path,
      encryption: Option[FileEncryptionProperties],
      keys: Map[String, String],
      fields: String*
  )(rows: (Group => Any)*): Path = {
    val schema = MessageTypeParser.parseMessageType(s"message file { ${fields.mkString(" ")} }")
    val groups = new SimpleGroupFactory(schema)
    val output = HadoopOutputFile.fromPath(new HadoopPath(file.toUri), new Configuration(false))
    val builder = ExampleParquetWriter
      .builder(output)
      .withType(schema)
      .withExtraMetaData(keys.asJava)
    encryption.foreach(builder.withEncryption)
    Using.resource(builder.build()) { writer =>
      rows.foreach { fill =>
        val group = groups.newGroup()
        fill(group)
        writer.write(group)
      }
    }
    file
  }

  /** A copy of the table in a folder of its own. */
  def copyOf(table: TestTable): TestTable = {
    val folder = SharedSpark.freshFolder()
    Using.resource(Files.walk(table.folder)) {
      _.iterator.asScala.foreach { from =>
        val to = folder.resolve(table.folder.relativize(from).toString)
        if (Files.isDirectory(from)) Files.createDirectories(to) else Files.copy(from, to)
      }
    }
    TestTable(s"delta.`$folder`", folder)
  }

  /** The line of the log that adds a file of the table's folder. */
  def add(
      path: String,
      size: Long,
      rows: Long,
      partitionValues: Map[String, String] = Map.empty
  ) = {
    val add = mapper.createObjectNode()
    add.put("path", path).put("size", size).put("modificationTime", 0L).put("dataChange", true)
    add.put("stats", s"""{"numRecords": $rows}""")
    val values = add.putObject("partitionValues")
    partitionValues.foreach { case (name, value) => values.put(name, value) }
    mapper.createObjectNode().set[com.fasterxml.jackson.databind.JsonNode]("add", add).toString
  }

  /** A copy of the table in which the next commit has these lines alone. */
  def committed(table: TestTable)(lines: TestTable => Seq[String]): TestTable = {
    val copy = copyOf(table)
    val next = copy.folder.resolve("_delta_log").resolve(f"${copy.log.version + 1}%020d.json")
    Files.write(next, lines(copy).asJava)
    copy
  }
}

/** All that is in a folder, with sizes and times. */
object FolderState {

  def of(folder: Path): Map[String, (Long, FileTime)] =
    Using.resource(Files.walk(folder)) {
      _.iterator.asScala
        .map { path =>
          val size = if (Files.isDirectory(path)) 0L else Files.size(path)
          folder.relativize(path).toString -> ((size, Files.getLastModifiedTime(path)))
        }
        .toMap
    }
}
