package org.icebergwritercompat.model

/**
 * The sub-conditions of `DELTA_ICEBERG_WRITER_COMPAT_VIOLATION`; their texts are in
 * `error/iceberg-writer-compat-conditions.json`.
 */
sealed abstract class Condition(val name: String)

object Condition {
  case object CannotChangeMapKey extends Condition("CANNOT_CHANGE_MAP_STRUCT_KEY")
  case object ColumnIdOutOfRange extends Condition("COLUMN_ID_OUT_OF_RANGE")
  case object DisablingRequiredTableFeature extends Condition("DISABLING_REQUIRED_TABLE_FEATURE")
  case object DuplicateColumnId extends Condition("DUPLICATE_COLUMN_ID")
  case object FieldIdDoesNotMatchPhysicalName
      extends Condition("FIELD_ID_DOES_NOT_MATCH_PHYSICAL_NAME")
  case object IncompatibleTableFeature extends Condition("INCOMPATIBLE_TABLE_FEATURE")
  case object IncompatibleColumnName extends Condition("INCOMPATIBLE_COLUMN_NAME")
  case object IncompatibleDataFile extends Condition("INCOMPATIBLE_DATA_FILE")
  case object IncompatibleFileAction extends Condition("INCOMPATIBLE_FILE_ACTION")
  case object IncompatiblePartitioning extends Condition("INCOMPATIBLE_PARTITIONING")
  case object IncompatibleSchemaChange extends Condition("INCOMPATIBLE_SCHEMA_CHANGE")
  case object MissingColumnMappingMetadata extends Condition("MISSING_COLUMN_MAPPING_METADATA")
  case object MissingRequiredTableFeature extends Condition("MISSING_REQUIRED_TABLE_FEATURE")
  case object UnprovenDataFiles extends Condition("UNPROVEN_DATA_FILES")
  case object UnreadableDataFile extends Condition("UNREADABLE_DATA_FILE")
  case object UnsupportedDataType extends Condition("UNSUPPORTED_DATA_TYPE")
  case object UnsupportedProtocol extends Condition("UNSUPPORTED_PROTOCOL")
  case object WrongMaxColumnId extends Condition("WRONG_MAX_COLUMN_ID")
  case object WrongRequiredTableProperty extends Condition("WRONG_REQUIRED_TABLE_PROPERTY")
}

/** The place of a violation. */
sealed trait Location

object Location {

  /** A node of the schema: a column, a nested field, or an element, key or value. */
  final case class Column(path: Seq[String], id: Option[Long], physicalName: Option[String])
      extends Location {
    override def toString: String = {
      val details = id.map(i => s"id $i") ++ physicalName.map(name => s"physical name $name")
      val suffix = if (details.isEmpty) "" else details.mkString(" (", ", ", ")")
      s"column ${SchemaNode.sqlPath(path)}$suffix"
    }
  }

  /** A table property. */
  final case class Property(key: String, value: Option[String]) extends Location {
    override def toString: String = s"property $key (${value.getOrElse("not set")})"
  }

  /** A table feature. */
  final case class Feature(name: String) extends Location {
    override def toString: String = s"feature $name"
  }

  /** The protocol as a whole. */
  case object Protocol extends Location {
    override def toString: String = "protocol"
  }

  /** One file of a commit. */
  final case class File(path: String) extends Location {
    override def toString: String = s"file $path"
  }

  /** Data files of the table. */
  final case class Files(count: Long, example: String) extends Location {
    override def toString: String = s"$count data file(s), such as $example"
  }
}
