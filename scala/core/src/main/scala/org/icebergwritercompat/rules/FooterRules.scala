package org.icebergwritercompat.rules

import org.apache.parquet.column.statistics.{IntStatistics, LongStatistics}
import org.apache.parquet.schema.Type.Repetition
import org.apache.spark.sql.catalyst.util.RebaseDateTime
import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{
  Clause,
  FileColumns,
  Fix,
  FooterRule,
  Obstacle,
  StoredNode,
  TableState,
  UnknownField,
  Violation
}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{
  ColumnChunk,
  Condition,
  DataFile,
  Footer,
  Location,
  ParquetForm,
  PartitionValue,
  SchemaNode,
  SupportedTypes,
  WriterCompat
}
import org.icebergwritercompat.remedy.Remedy

/** Requirements on data files that can be checked only in their footers. */
object FooterRules {

  private val v2 = Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
  private val ids = Clause(IcebergSpec, "Column Projection")
  private val types = Clause(IcebergSpec, "Parquet")

  /**
   * What is wrong with a file.
   *
   * @param node
   *   the node of the schema it is about; `None` for the file as a whole
   * @param found
   *   what was found, without details of this file; the node, if any, is the subject
   * @param detail
   *   details of this file
   */
  private[rules] final case class Problem(node: Option[SchemaNode], found: String, detail: String)

  private object Problem {
    def at(column: StoredNode, found: String): Problem =
      Problem(Some(column.node), found, column.description)

    def at(field: UnknownField, node: Option[SchemaNode], found: String): Problem =
      Problem(node, found, field.description)
  }

  /** A rule about the columns and rows of a file that has a footer. */
  sealed abstract class ContentRule(id: String, statement: String, why: String, clauses: Clause*)
      extends FooterRule(id, statement, why, clauses: _*) {

    /** What is wrong with the file. */
    private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem]

    final override def check(columns: FileColumns): Seq[Violation] =
      columns.file.footer.toSeq.flatMap(problems(columns, _)).map { problem =>
        violation(
          Condition.IncompatibleDataFile,
          problem.node.fold[Location](Location.File(columns.file.path))(_.location),
          remedy(columns.table),
          "file" -> columns.file.path,
          "found" -> s"${problem.node.fold("")(node => s"column ${node.sqlPath} ")}${problem.found}",
          "detail" -> problem.detail,
          "required" -> statement
        )
      }
  }

  object FootersAreReadable
      extends FooterRule(
        "E0",
        "Every live data file exists, and has a Parquet footer that is not encrypted.",
        "No engine can read the rows of the file.",
        Clause(DeltaProtocol, "Data Files"),
        types
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      Obstacle.Blocker

    override def check(columns: FileColumns): Seq[Violation] =
      columns.file.footer.left.toSeq.map { unreadable =>
        violation(
          Condition.UnreadableDataFile,
          Location.File(columns.file.path),
          remedy(columns.table),
          "file" -> columns.file.path,
          "found" -> unreadable.reason,
          "detail" -> unreadable.detail,
          "required" -> statement
        )
      }

    // The rows cannot be copied. The history shows which commit wrote the file, and a version to
    // restore.
    override def remedy(table: TableState): Remedy = Fix.lookIntoHistory(table)
  }

  object SizesAreThoseOfTheLog
      extends ContentRule(
        "D1f",
        "The number of rows and bytes of a data file is the one in the log.",
        "Otherwise Iceberg's metadata has a wrong row count, from which engines answer `count(*)`.",
        Clause(DeltaProtocol, "Add File and Remove File"),
        v2
      ) {

    override private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem] = {
      val file = columns.file
      val rows = file.rowCount.filter(_ != footer.rowCount).map { logged =>
        Problem(
          None,
          "the log has another number of rows",
          s"${footer.rowCount} rows, $logged in the log"
        )
      }
      val bytes = Option.when(file.size != footer.size) {
        Problem(
          None,
          "the log has another number of bytes",
          s"${footer.size} bytes, ${file.size} in the log"
        )
      }
      rows.toSeq ++ bytes
    }
  }

  object FieldsHaveTheirIds
      extends ContentRule(
        "E1f",
        "Every column and nested field in a data file has its field id of the schema.",
        "Iceberg finds a column in a file only by its id; without it, it reads nulls.",
        Clause(DeltaProtocol, "Column Mapping"),
        ids
      ) {

    // In id mode Delta reads a column without an id as null, and a copy would keep the nulls.
    override def remedy(table: TableState): Remedy =
      if (table.property(WriterCompat.ColumnMappingMode).contains(WriterCompat.IdMode))
        Fix.lookIntoHistory(table)
      else super.remedy(table)

    override private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem] =
      if (footer.schema.getFieldCount > 0 && !columns.hasIds)
        Seq(
          Problem(
            None,
            "none of its columns has a field id",
            s"${footer.schema.getFieldCount} columns"
          )
        )
      else
        columns.stored.filter(_.node.isField).flatMap(ofStored(columns.table, _)) ++
          columns.unknown.flatMap(ofMisplaced(columns.table, _))

    private def ofStored(table: TableState, column: StoredNode): Option[Problem] = {
      val name = column.path.last
      val ownNames = column.node.path.last +: column.node.physicalName.toSeq
      def otherName = table.fieldsByPhysicalName.get(name).filterNot(_ => ownNames.contains(name))
      wrongId(column).orElse(otherName.map { other =>
        Problem.at(
          column,
          s"has its field id on the field with the name of ${other.sqlPath}, " +
            s"$name"
        )
      })
    }

    private def ofMisplaced(table: TableState, field: UnknownField): Option[Problem] =
      field.id.flatMap(table.nodesById.get).map { node =>
        Problem.at(field, Some(node), "has its field id on another field as well")
      }
  }

  object PartsHaveTheirIds
      extends ContentRule(
        "E2",
        "Every element, key and value in a data file has its field id of the schema.",
        "Iceberg finds elements, keys and values only by their ids; without them it reads an " +
          "empty list or map, or fails.",
        v2,
        ids
      ) {

    override private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem] =
      if (columns.hasIds) columns.stored.filterNot(_.node.isField).flatMap(wrongId)
      else Nil
  }

  // A missing id in the schema breaks a rule on the schema.
  private def wrongId(column: StoredNode): Option[Problem] =
    column.node.id.filterNot(column.id.contains).map { id =>
      val found =
        column.id.fold("has no field id")(other => s"has the field id $other, not $id")
      Problem.at(column, found)
    }

  /** A rule about how values are stored. */
  sealed abstract class FormRule(id: String, statement: String, why: String, clauses: Clause*)
      extends ContentRule(id, statement, why, clauses: _*) {

    protected def isAbout(dataType: DataType): Boolean

    final override private[rules] def problems(
        columns: FileColumns,
        footer: Footer
    ): Seq[Problem] =
      columns.stored.filter(column => isAbout(column.node.dataType)).flatMap { column =>
        val dataType = column.node.dataType
        val required = dataType match {
          case _: StructType => Some("group")
          case other         => ParquetForm.of(other).map(_.toString)
        }
        required.filterNot(_ => isRight(column)).map { form =>
          Problem.at(
            column,
            s"is stored as ${ParquetForm.describe(column.stored)}, not as $form"
          )
        }
      }
  }

  private def isRight(column: StoredNode): Boolean = column.node.dataType match {
    case _: StructType => FileColumns.structFields(column.stored).isDefined
    case primitive     =>
      column.stored.isPrimitive && !column.stored.isRepetition(Repetition.REPEATED) &&
      ParquetForm.isAllowed(primitive, column.stored.asPrimitiveType)
  }

  object TimestampsAreMicroseconds
      extends FormRule(
        "E4",
        "Timestamps are stored as int64 in microseconds, annotated as UTC or as without time zone.",
        "Iceberg readers expect int64 in microseconds; with another form they fail or return " +
          "other instants.",
        v2,
        types
      ) {

    override protected def isAbout(dataType: DataType): Boolean =
      dataType == TimestampType || dataType == TimestampNTZType
  }

  object PartitionColumnsAreStored
      extends ContentRule(
        "E5",
        "Every partition column is in the data file, with the value of the log in all rows.",
        "Iceberg reads the column from the file, Delta from the log; they would return " +
          "different values.",
        v2,
        Clause(IcebergSpec, "Partitioning")
      ) {

    override private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem] = {
      val table = columns.table
      val absent = columns.absent.filter(isPartition(table, _)).map { node =>
        Problem(Some(node), "is a partition column, but is not in the file", valueOf(columns, node))
      }
      val other =
        columns.stored.filter(c => isPartition(table, c.node) && isRight(c)).flatMap { column =>
          logged(columns.file, column.node).flatMap { value =>
            val chunks = footer.chunks.getOrElse(column.path, Nil)
            chunks.find(!value.agrees(_)).map { chunk =>
              Problem(
                Some(column.node),
                "is a partition column, but has other values than the log",
                s"${contents(chunk)}, ${valueOf(columns, column.node)}"
              )
            }
          }
        }
      absent ++ other
    }

    private def keyOf(node: SchemaNode): String = node.physicalName.getOrElse(node.path.head)

    // Without a value in the log there is nothing to compare.
    private def logged(file: DataFile, node: SchemaNode): Option[PartitionValue] =
      Option(file.partitionValues).flatMap(_.get(keyOf(node))).map { value =>
        PartitionValue(Option(value).filter(_.nonEmpty), node.dataType)
      }

    private def valueOf(columns: FileColumns, node: SchemaNode): String =
      logged(columns.file, node).fold("no value in the log") { value =>
        s"${value.value.getOrElse("null")} in the log"
      }

    private def contents(chunk: ColumnChunk): String = {
      val bounds = Option.when(chunk.hasBounds) {
        s"values from ${chunk.statistics.minAsString} to ${chunk.statistics.maxAsString}"
      }
      val nulls = chunk.nullCount.map(count => s"$count nulls of ${chunk.valueCount}")
      (bounds ++ nulls).mkString(", ")
    }
  }

  private def isPartition(table: TableState, node: SchemaNode): Boolean =
    table.partitionNodes.exists(_ eq node)

  object CollectionsHaveThreeLevels
      extends ContentRule(
        "E6",
        "Lists and maps have three levels: the list, `list` and `element`; the map, " +
          "`key_value`, and `key` and `value`.",
        "Iceberg readers expect three levels; otherwise they fail or return other values.",
        types,
        Clause(ParquetFormat, "Nested Types")
      ) {

    override private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem] =
      columns.stored.flatMap { column =>
        column.node.dataType match {
          case _: ArrayType => problem(column, "list")
          case _: MapType   => problem(column, "map")
          case _            => None
        }
      }

    private def problem(column: StoredNode, kind: String): Option[Problem] =
      Option.when(FileColumns.entries(column.node.dataType, column.stored).isEmpty) {
        Problem(
          Some(column.node),
          s"is not stored as a $kind of three levels",
          column.stored.toString.replaceAll("\\s+", " ")
        )
      }
  }

  object DecimalsFitTheirPrecision
      extends FormRule(
        "E7",
        "Decimals are stored as int32 up to 9 digits, int64 up to 18 digits, and otherwise in " +
          "a byte array of the minimal length.",
        "Iceberg readers expect this form; otherwise they fail or return other values.",
        types
      ) {

    override protected def isAbout(dataType: DataType): Boolean =
      dataType.isInstanceOf[DecimalType]
  }

  object ValuesHaveTheirForm
      extends FormRule(
        "E8",
        "Values of all other types are stored as specified in Iceberg's table of Parquet types.",
        "Iceberg readers expect this form; otherwise they fail or return other values.",
        types,
        Clause(IcebergSpec, "Schema Evolution")
      ) {

    override protected def isAbout(dataType: DataType): Boolean = dataType match {
      case TimestampType | TimestampNTZType           => false
      case _: DecimalType | _: ArrayType | _: MapType => false
      case other                                      => SupportedTypes.contains(other)
    }
  }

  object NoOtherColumns
      extends ContentRule(
        "E9",
        "A data file contains only columns of the schema and columns that were dropped.",
        "A later column could get the id of such a column, and would show its values.",
        Clause(DeltaProtocol, "Add File and Remove File"),
        Clause(DeltaProtocol, "Column Mapping")
      ) {

    override private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem] =
      columns.unknown.flatMap { field =>
        val name = SchemaNode.sqlPath(field.path)
        field.id match {
          case None =>
            Some(
              Problem.at(
                field,
                None,
                s"it has the column $name, which is not a column of " +
                  "the table"
              )
            )
          case Some(id) if id > columns.table.maxColumnId =>
            Some(
              Problem.at(
                field,
                None,
                s"it has the column $name with the field id $id, which the table never assigned"
              )
            )
          case _ => None
        }
      }
  }

  object RequiredColumnsHaveNoNulls
      extends ContentRule(
        "E10",
        "A required column is in every data file, without nulls.",
        "Readers do not expect nulls in a required column, and fail or return wrong values.",
        ids
      ) {

    override private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem] = {
      // A file without a partition column breaks rule E5.
      val needed =
        columns.absent.filter(node => !node.nullable && !isPartition(columns.table, node))
      val absent = needed.map { node =>
        Problem(Some(node), "is required, but is not in the file", s"no ${node.sqlPath}")
      }
      val nulls = columns.stored.filterNot(_.node.nullable).flatMap { column =>
        val count = provenNulls(column, footer)
        Option.when(count > 0) {
          Problem(Some(column.node), "is required, but has nulls", s"at least $count nulls")
        }
      }
      absent ++ nulls
    }

    /** How many nulls the footer proves, where the enclosing struct or collection is not null. */
    private def provenNulls(column: StoredNode, footer: Footer): Long =
      if (column.stored.isRepetition(Repetition.OPTIONAL)) {
        val level = footer.schema.getMaxDefinitionLevel(column.path: _*)
        val leaf = firstLeaf(column)
        val isTopLevel = leaf == column.path && level == 1
        footer.chunks
          .getOrElse(leaf, Nil)
          .map { chunk =>
            chunk.definitionLevels
              .lift(level - 1)
              .orElse(chunk.nullCount.filter(_ => isTopLevel))
              .getOrElse(0L)
          }
          .sum
      } else 0

    // All leaves below a node have the same definition levels up to the node.
    private def firstLeaf(column: StoredNode): Vector[String] =
      Iterator
        .unfold(Option(column.stored)) {
          _.filterNot(_.isPrimitive).map(_.asGroupType.getType(0)).map(t => (t.getName, Some(t)))
        }
        .foldLeft(column.path)(_ :+ _)
  }

  object DaysAreGregorian
      extends ContentRule(
        "E11",
        "Dates before 15 October 1582, and timestamps before 1900, are stored in the Gregorian " +
          "calendar.",
        "Iceberg readers support only the Gregorian calendar, so they would return other days " +
          "than Delta.",
        types,
        Clause(ParquetFormat, "Temporal Types")
      ) {

    override private[rules] def problems(columns: FileColumns, footer: Footer): Seq[Problem] =
      legacyWriter(footer.keys).toSeq.flatMap { writer =>
        for {
          column <- columns.stored if isRight(column)
          first <- firstGregorian(column.node.dataType)
          chunk <- chunksOf(footer, column).find(mayBeBefore(_, first))
        } yield Problem(
          Some(column.node),
          "is stored in the Julian calendar, which Delta readers convert and Iceberg readers " +
            "do not",
          s"${contents(chunk)}written $writer"
        )
      }

    /** The writer of a file with dates in the Julian calendar, as its footer names it. */
    private def legacyWriter(keys: Map[String, String]): Option[String] =
      keys.get(sparkLegacy).map(_ => s"with $sparkLegacy") orElse
        keys
          .get(sparkVersion)
          .filter(_.takeWhile(_.isDigit).toIntOption.exists(_ < 3))
          .map(version => s"by Spark $version") orElse
        keys.get(hiveProleptic).filter(_.trim.equalsIgnoreCase("false")).map { _ =>
          s"with $hiveProleptic = false"
        }

    private val sparkLegacy = "org.apache.spark.legacyDateTime"

    private val sparkVersion = "org.apache.spark.version"

    private val hiveProleptic = "writer.date.proleptic"

    // From there on both calendars are the same, in every time zone.
    private def firstGregorian(dataType: DataType): Option[Long] = dataType match {
      case DateType      => Some(RebaseDateTime.lastSwitchJulianDay.toLong)
      case TimestampType => Some(RebaseDateTime.lastSwitchJulianTs)
      case _             => None
    }

    // A file without row groups has no values.
    private def chunksOf(footer: Footer, column: StoredNode): Seq[ColumnChunk] =
      footer.chunks.getOrElse(column.path, Nil)

    private def mayBeBefore(chunk: ColumnChunk, first: Long): Boolean = chunk.statistics match {
      case s: IntStatistics if chunk.hasBounds  => s.getMin < first
      case s: LongStatistics if chunk.hasBounds => s.getMin < first
      case _                                    => !chunk.nullCount.contains(chunk.valueCount)
    }

    private def contents(chunk: ColumnChunk): String =
      if (chunk.hasBounds) s"from ${chunk.statistics.minAsString}, " else ""
  }
}
