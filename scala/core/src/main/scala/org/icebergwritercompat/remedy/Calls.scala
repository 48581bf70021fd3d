package org.icebergwritercompat.remedy

import org.apache.spark.sql.types.StructType

/** Renders changes as calls of a program that creates a table. */
private[remedy] object Calls {

  /** For a DataFrame writer: the calls before `write`, and those after it. */
  def ofWriter(columns: StructType, changes: Seq[Change]): Seq[String] =
    ofColumns(columns, changes) { case (was, is) =>
      Option.when(was.dataType != is.dataType)(
        s".withColumn(${text(was.name)}, col(${text(was.name)}).cast(${text(is.dataType.sql)}))"
      ) ++ Option.when(was.name != is.name)(
        s".withColumnRenamed(${text(was.name)}, ${text(is.name)})"
      )
    } ++ changes.collect {
      case Change.Property(key, Some(value)) => s".option(${text(key)}, ${text(value)})"
      case Change.Property(key, None)        => s"no .option(${text(key)}, ...)"
      case Change.Partitioning(names)        => s".partitionBy(${names.map(text).mkString(", ")})"
      case Change.Added(name, dataType)      =>
        s".withColumn(${text(name)}, lit(None).cast(${text(dataType.sql)}))"
    }

  /** For the builder of `DeltaTable`. */
  def ofBuilder(columns: StructType, changes: Seq[Change]): Seq[String] =
    ofColumns(columns, changes) { case (was, is) =>
      Seq(s".addColumn(${text(is.name)}, ${text(is.dataType.sql)})").filter(_ => was != is)
    } ++ changes.collect {
      case Change.Property(key, Some(value)) => s".property(${text(key)}, ${text(value)})"
      case Change.Property(key, None)        => s"no .property(${text(key)}, ...)"
      case Change.Partitioning(names)        => s".partitionedBy(${names.map(text).mkString(", ")})"
      case Change.Plain(path)                =>
        s"no default, identity or generatedAlwaysAs for ${path.mkString(".")}"
      case Change.Added(name, dataType) => s".addColumn(${text(name)}, ${text(dataType.sql)})"
    }

  private def ofColumns(columns: StructType, changes: Seq[Change])(
      call: (
          (org.apache.spark.sql.types.StructField, org.apache.spark.sql.types.StructField)
      ) => Iterable[String]
  ): Seq[String] =
    columns.fields.toSeq
      .map(field => field -> Change.of(changes, Seq(field.name), field))
      .flatMap(call(_))

  private def text(value: String): String =
    "\"" + value.replace("\\", "\\\\").replace("\"", "\\\"") + "\""
}
