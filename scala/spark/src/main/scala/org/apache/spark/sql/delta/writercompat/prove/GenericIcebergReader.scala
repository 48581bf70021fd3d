package org.apache.spark.sql.delta.writercompat.prove

import org.apache.hadoop.conf.Configuration
import org.apache.iceberg.{Schema, Table}
import org.apache.iceberg.data.{IcebergGenerics, Record}
import org.apache.iceberg.expressions.ExpressionParser
import org.apache.iceberg.hadoop.HadoopTables
import org.apache.iceberg.types.{Type, Types}
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.{
  DecimalType => IcebergDecimal,
  NestedField,
  TimestampType => IcebergTimestamp
}
import org.apache.iceberg.util.SnapshotUtil
import org.apache.spark.SerializableWritable
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{classic, DataFrame, Row, SparkSession}
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.types._

import java.nio.ByteBuffer
import java.time.OffsetDateTime
import scala.jdk.CollectionConverters._

/**
 * Reads a table with Iceberg's generic reader, which does not use Spark.
 *
 * @param location
 *   its metadata file
 * @param snapshot
 *   `None` for the current snapshot
 */
final class GenericIcebergReader(spark: SparkSession, location: String, snapshot: Option[Long]) {

  import GenericIcebergReader._

  private val conf = spark.sessionState.newHadoopConf()

  /** The Iceberg schema. */
  def schema: Schema = schemaOf(load(location, conf), snapshot)

  /** The rows that pass a filter in Iceberg's JSON. */
  def read(filter: Option[String]): DataFrame = {
    val rows = struct(schema.columns.asScala.toSeq)
    val (file, at, shared) = (location, snapshot, new SerializableWritable(conf))
    val found: RDD[InternalRow] = spark.sparkContext.parallelize(Seq(file), 1).flatMap { path =>
      val table = load(path, shared.value)
      val builder = IcebergGenerics.read(table)
      at.foreach(builder.useSnapshot)
      filter.foreach { text =>
        builder.where(ExpressionParser.fromJson(text, schemaOf(table, at)))
      }
      val convert = CatalystTypeConverters.createToCatalystConverter(rows)
      builder.build().iterator.asScala.map(r => convert(value(r)).asInstanceOf[InternalRow])
    }
    spark.asInstanceOf[classic.SparkSession].internalCreateDataFrame(found, rows)
  }
}

object GenericIcebergReader {

  private def load(location: String, conf: Configuration): Table =
    new HadoopTables(conf).load(location)

  private def schemaOf(table: Table, snapshot: Option[Long]): Schema =
    snapshot.fold(table.schema)(SnapshotUtil.schemaFor(table, _))

  private def struct(fields: Seq[NestedField]): StructType =
    StructType(fields.map(f => StructField(f.name, dataType(f.`type`), f.isOptional)))

  private def dataType(iceberg: Type): DataType = iceberg match {
    case fields: Types.StructType => struct(fields.fields.asScala.toSeq)
    case list: Types.ListType     => ArrayType(dataType(list.elementType), list.isElementOptional)
    case map: Types.MapType       =>
      MapType(dataType(map.keyType), dataType(map.valueType), map.isValueOptional)
    case decimal: IcebergDecimal => DecimalType(decimal.precision, decimal.scale)
    case time: IcebergTimestamp  =>
      if (time.shouldAdjustToUTC) TimestampType else TimestampNTZType
    case other => primitives(other.typeId)
  }

  private val primitives: Map[TypeID, DataType] = Map(
    TypeID.BOOLEAN -> BooleanType,
    TypeID.INTEGER -> IntegerType,
    TypeID.LONG -> LongType,
    TypeID.FLOAT -> FloatType,
    TypeID.DOUBLE -> DoubleType,
    TypeID.STRING -> StringType,
    TypeID.BINARY -> BinaryType,
    TypeID.DATE -> DateType
  )

  // Converts Iceberg's classes to those that Spark's converters accept.
  private def value(found: Any): Any = found match {
    case record: Record     => Row.fromSeq((0 until record.size).map(i => value(record.get(i))))
    case buffer: ByteBuffer =>
      val bytes = new Array[Byte](buffer.remaining)
      buffer.duplicate.get(bytes)
      bytes
    case time: OffsetDateTime     => time.toInstant
    case list: java.util.List[_]  => list.asScala.map(value).toSeq
    case map: java.util.Map[_, _] => map.asScala.map { case (k, v) => value(k) -> value(v) }.toMap
    case other                    => other
  }
}
