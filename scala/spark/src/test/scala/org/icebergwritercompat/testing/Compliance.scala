package org.icebergwritercompat.testing

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.schema.{GroupType, MessageType, Type}

import java.nio.file.Path
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Judges a table by its log and its files' footers alone. */
object Compliance {

  private val required = Set("columnMapping", "icebergCompatV2", "icebergWriterCompatV1")

  /** What is wrong with the table; `Nil` if it is as it should be. */
  def problems(table: TestTable): Seq[String] = {
    val log = table.log
    problems(log, _ => true, file => !log.filesBefore(file))
  }

  /**
   * Judges one table again and again, and reads the footer of each file once. Iceberg's clients
   * write the files, so columns have any name in them, and are known by their ids.
   */
  final class OfClients {

    private val judged = scala.collection.mutable.HashSet.empty[Path]

    /** What is wrong with the table. */
    def problems(log: LoggedTable): Seq[String] = Compliance.problems(log, judged.add, _ => false)
  }

  /**
   * @param isAsked
   *   whether the footer of a file is looked at
   * @param isNamed
   *   whether the columns of a file have the names that follow from the ids
   */
  private def problems(
      log: LoggedTable,
      isAsked: Path => Boolean,
      isNamed: Path => Boolean
  ): Seq[String] =
    protocolProblems(log) ++ propertyProblems(log) ++ schemaProblems(log) ++ log.liveFiles
      .filter { case (file, _) => isAsked(file) }
      .flatMap { case (file, add) =>
        val deletionVector = Option.when(add.has("deletionVector"))("deletion vector")
        val stats =
          Option.unless(add.path("stats").asText.contains("\"numRecords\""))("no numRecords")
        (deletionVector ++ stats ++ fileProblems(log, file, isNamed(file)))
          .map(problem => s"${file.getFileName}: $problem")
      }

  private val configuration = new Configuration(false)

  /** The schema of a Parquet file. */
  def footer(file: Path): MessageType = {
    val input = HadoopInputFile.fromPath(new HadoopPath(file.toUri), configuration)
    Using.resource(ParquetFileReader.open(input))(_.getFileMetaData.getSchema)
  }

  private def protocolProblems(log: LoggedTable): Seq[String] = {
    val reader = log.readerVersion match {
      case 2 => log.readerFeatures.map(feature => s"readerFeatures has $feature").toSeq
      case 3 =>
        Option.unless(log.readerFeatures("columnMapping"))("columnMapping is not for readers") ++
          log.readerFeatures.intersect(required - "columnMapping").map(f => s"$f is for readers")
      case version => Seq(s"reader version $version")
    }
    reader.toSeq ++
      Option.unless(log.writerVersion == 7)(s"writer version ${log.writerVersion}") ++
      (required -- log.writerFeatures).map(feature => s"no feature $feature")
  }

  private def propertyProblems(log: LoggedTable): Seq[String] =
    Seq(
      "delta.enableIcebergWriterCompatV1" -> "true",
      "delta.enableIcebergCompatV2" -> "true",
      "delta.columnMapping.mode" -> "id"
    )
      .filterNot { case (key, value) => log.properties.get(key).contains(value) }
      .map { case (key, _) => s"$key is ${log.properties.get(key)}" }

  private def schemaProblems(log: LoggedTable): Seq[String] = {
    val fields = log.columns.flatMap(_.below)
    val ids = fields.flatMap { case (_, column) => column.id +: column.nestedIds }
    val max = log.properties.get("delta.columnMapping.maxColumnId").map(_.toLong)
    fields.collect {
      case (path, column) if column.id.isEmpty => s"$path has no id"
      case (path, column) if column.physicalName != column.id.map(id => s"col-$id") =>
        s"$path has the id ${column.id} and the name ${column.physicalName}"
      case (path, column) if column.nestedIds.exists(_.isEmpty) => s"$path lacks nested ids"
    } ++ ids.flatten.diff(ids.flatten.distinct).map(id => s"the id $id is given twice") ++
      Option.unless(max.exists(_ >= ids.flatten.max))(s"maxColumnId is $max, ids are $ids")
  }

  private def fileProblems(log: LoggedTable, path: Path, named: Boolean): Seq[String] = {
    val file = footer(path)
    val max = log.properties.get("delta.columnMapping.maxColumnId").map(_.toLong).getOrElse(0L)
    val partitions = log.columns.filter(column => log.partitionColumns.contains(column.name))
    structProblems(log.columns, file, new Given(max, named)) ++ partitions.collect {
      case column if !file.getFields.asScala.exists(idOf(_) == column.id) =>
        s"the partition column ${column.name} is not in the file"
    }
  }

  /**
   * What the table gave to the file.
   *
   * @param max
   *   the highest id
   * @param named
   *   whether columns have the names that follow from the ids
   */
  private final class Given(val max: Long, val named: Boolean)

  private def idOf(field: Type): Option[Long] = Option(field.getId).map(_.intValue.toLong)

  // A column that was added later is not in the file, and a dropped one still is.
  private def structProblems(
      columns: Seq[LoggedColumn],
      group: GroupType,
      made: Given
  ): Seq[String] =
    group.getFields.asScala.toSeq.flatMap { found =>
      val id = idOf(found)
      columns.find(column => id.isDefined && column.id == id) match {
        case Some(column) =>
          Option.when(made.named && !column.physicalName.contains(found.getName)) {
            s"${column.name} is called ${found.getName}"
          } ++ typeProblems(column.dataType, found, made)
        case None =>
          Option.unless(
            id.exists(i => i <= made.max && (found.getName == s"col-$i" || !made.named))
          ) {
            s"the column ${found.getName} with the id $id belongs to no field"
          }
      }
    }

  private def typeProblems(dataType: LoggedType, found: Type, made: Given): Seq[String] =
    dataType match {
      case LoggedType.Primitive(_)    => Nil
      case LoggedType.Struct(fields)  => structProblems(fields, found.asGroupType, made)
      case LoggedType.Array(element)  => nestedProblems(element, repeated(found, "element"), made)
      case LoggedType.Map(key, value) =>
        nestedProblems(key, repeated(found, "key"), made) ++
          nestedProblems(value, repeated(found, "value"), made)
    }

  private def repeated(collection: Type, part: String): Type =
    collection.asGroupType.getType(0).asGroupType.getType(part)

  private def nestedProblems(nested: LoggedType.Nested, found: Type, made: Given): Seq[String] =
    idProblems(found, nested.id) ++ typeProblems(nested.dataType, found, made)

  private def idProblems(found: Type, id: Option[Long]): Seq[String] = {
    val inFile = idOf(found)
    Option.when(id.isEmpty || inFile != id)(s"$found has the id $inFile, not $id").toSeq
  }
}
