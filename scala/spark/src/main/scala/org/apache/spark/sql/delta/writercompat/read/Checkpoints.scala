package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.schema.{GroupType, MessageType, Type}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._
import org.icebergwritercompat.errors.MalformedField

/**
 * Tells which checkpoints of a log Delta cannot read.
 *
 * @param files
 *   all files of the log
 */
private[writercompat] final class Checkpoints(files: Seq[Path], configuration: Configuration) {

  import Checkpoints._

  /** What is wrong with them, by version and file, the newest first. */
  def malformed: Iterator[(Long, Path, MalformedField)] =
    files.reverseIterator.flatMap { file =>
      file.getName match {
        case part(version, _, count) =>
          missingPart(file, version, count.toInt)
            .orElse(inFile(file))
            .map { case (where, field) => (version.toLong, where, field) }
        case whole(version) =>
          inFile(file).map { case (where, field) => (version.toLong, where, field) }
        case _ => None
      }
    }

  private lazy val names = files.map(_.getName).toSet

  private def missingPart(file: Path, version: String, count: Int): Option[(Path, MalformedField)] =
    (1 to count).iterator
      .map(i => i -> f"$version.checkpoint.$i%010d.$count%010d.parquet")
      .collectFirst {
        case (i, name) if !names(name) =>
          new Path(file.getParent, name) ->
            MalformedField("checkpoint", "no such file", s"part $i of $count")
      }

  private def inFile(file: Path): Option[(Path, MalformedField)] = {
    val uri = file.toUri.toString
    Footers.read(uri, uri, configuration) match {
      case Left(unreadable) =>
        val found = s"${unreadable.reason} (${unreadable.detail})"
        Some(file -> MalformedField("checkpoint", found, "a Parquet file"))
      case Right(footer) => ofOtherType(footer.schema).map(file -> _)
    }
  }

  private def ofOtherType(schema: MessageType): Option[MalformedField] =
    types.collectFirst {
      case (path, wanted) if find(schema, path).exists(isOther(_, wanted)) =>
        val found = find(schema, path).fold("")(_.toString)
        MalformedField(path.mkString("."), found, wanted.fold("a group")(_.toString))
    }

  private def isOther(found: Type, wanted: Option[PrimitiveTypeName]): Boolean =
    Option.when(found.isPrimitive)(found.asPrimitiveType.getPrimitiveTypeName) != wanted

  private def find(schema: GroupType, path: Seq[String]): Option[Type] =
    Option.when(schema.containsField(path.head))(schema.getType(path.head)).flatMap { found =>
      if (path.tail.isEmpty) Some(found)
      else Option.unless(found.isPrimitive)(found.asGroupType).flatMap(find(_, path.tail))
    }
}

private[writercompat] object Checkpoints {

  private val whole = """(\d{20})\.checkpoint\.parquet""".r

  private val part = """(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet""".r

  /** How the fields are stored that Delta needs of a table and its files; none for a group. */
  private val types: Seq[(Seq[String], Option[PrimitiveTypeName])] = Seq(
    "protocol" -> None,
    "protocol.minReaderVersion" -> Some(INT32),
    "protocol.minWriterVersion" -> Some(INT32),
    "metaData" -> None,
    "metaData.id" -> Some(BINARY),
    "metaData.schemaString" -> Some(BINARY),
    "metaData.partitionColumns" -> None,
    "metaData.configuration" -> None,
    "add" -> None,
    "add.path" -> Some(BINARY),
    "add.partitionValues" -> None,
    "add.size" -> Some(INT64),
    "add.modificationTime" -> Some(INT64),
    "add.dataChange" -> Some(BOOLEAN),
    "add.stats" -> Some(BINARY)
  ).map { case (path, wanted) => path.split('.').toSeq -> wanted }
}
