package org.icebergwritercompat.remedy

import org.apache.spark.sql.types._

import java.util.Locale

/**
 * A change of a statement that creates a table, adds columns or sets properties.
 */
sealed trait Change

object Change {

  /** The table property has this value; with `None` it is not set. */
  final case class Property(key: String, value: Option[String]) extends Change

  /**
   * The column, field, element, key or value has this type.
   *
   * @param path
   *   the names from the root, with `element`, `key` and `value` for the parts of lists and maps
   */
  final case class Type(path: Seq[String], dataType: DataType) extends Change

  /** The column or field has this name. */
  final case class Name(path: Seq[String], name: String) extends Change

  /** The column has no default, is not generated and is not an identity column. */
  final case class Plain(path: Seq[String]) extends Change

  /** The column may be null. */
  final case class Nullable(path: Seq[String]) extends Change

  /** The table is partitioned by these columns. */
  final case class Partitioning(columns: Seq[String]) extends Change

  /** A column in addition to those of the statement. */
  final case class Added(name: String, dataType: DataType) extends Change

  private[remedy] def same(one: Seq[String], other: Seq[String]): Boolean = {
    def lower(path: Seq[String]) = path.map(_.toLowerCase(Locale.ROOT))
    lower(one) == lower(other)
  }

  /** The field at `path` after the changes, with everything below it. */
  private[remedy] def of(changes: Seq[Change], path: Seq[String], field: StructField): StructField =
    field.copy(
      name = changes
        // Case-sensitive: it may be renamed because another name differs only by case.
        .collectFirst { case Name(at, name) if at == path => name }
        .getOrElse(field.name),
      dataType = typeOf(changes, path, field.dataType),
      nullable = field.nullable || changes.exists {
        case Nullable(at) => same(at, path)
        case _            => false
      }
    )

  private def typeOf(changes: Seq[Change], path: Seq[String], dataType: DataType): DataType =
    changes.collectFirst { case Type(at, wanted) if same(at, path) => wanted }.getOrElse {
      dataType match {
        case s: StructType => StructType(s.map(field => of(changes, path :+ field.name, field)))
        case a: ArrayType  =>
          a.copy(elementType = typeOf(changes, path :+ "element", a.elementType))
        case m: MapType =>
          m.copy(
            keyType = typeOf(changes, path :+ "key", m.keyType),
            valueType = typeOf(changes, path :+ "value", m.valueType)
          )
        case other => other
      }
    }
}
