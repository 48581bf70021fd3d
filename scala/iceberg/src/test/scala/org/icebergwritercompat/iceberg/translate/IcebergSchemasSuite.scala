package org.icebergwritercompat.iceberg.translate

import org.apache.iceberg.{MetadataColumns, PartitionSpec, Schema}
import org.apache.iceberg.types.Types
import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.IcebergNames
import org.icebergwritercompat.model.{SchemaNode, SupportedTypes}
import org.icebergwritercompat.rules.CompliantTable
import org.scalatest.funsuite.AnyFunSuite

import scala.jdk.CollectionConverters._

class IcebergSchemasSuite extends AnyFunSuite {

  private def delta(ddl: String): StructType = CompliantTable.withIds(StructType.fromDDL(ddl))

  private def iceberg(ddl: String): Schema = IcebergSchemas.schema(delta(ddl))

  test("the names that the rules reserve are those of the library's own columns") {
    val named = classOf[MetadataColumns].getDeclaredField("META_COLUMNS")
    named.setAccessible(true)
    val names = named.get(null).asInstanceOf[java.util.Map[String, _]].asScala.keySet
    assert(IcebergNames.Reserved == names ++ Set(MetadataColumns.PARTITION_COLUMN_NAME))
    // A column that the library keeps elsewhere has an id at least.
    assert(IcebergNames.Reserved.size == MetadataColumns.metadataFieldIds.size)
    assert(IcebergNames.Reserved.forall(MetadataColumns.isMetadataColumn))
  }

  test("every type has its counterpart") {
    val schema = iceberg(
      "a BOOLEAN, b INT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(38, 9), g STRING, h BINARY, " +
        "i DATE, j TIMESTAMP, k TIMESTAMP_NTZ"
    )
    assert(
      schema.columns.asScala.map(_.`type`) == Seq(
        Types.BooleanType.get,
        Types.IntegerType.get,
        Types.LongType.get,
        Types.FloatType.get,
        Types.DoubleType.get,
        Types.DecimalType.of(38, 9),
        Types.StringType.get,
        Types.BinaryType.get,
        Types.DateType.get,
        Types.TimestampType.withZone,
        Types.TimestampType.withoutZone
      )
    )
  }

  test("a type that Iceberg does not have is refused by the way to it") {
    val error = intercept[IllegalArgumentException](iceberg("s STRUCT<x: ARRAY<SMALLINT>>"))
    assert(error.getMessage.contains("s.x.element has the type SMALLINT"))
  }

  test("a field without an id is refused, never given one") {
    val error =
      intercept[IllegalArgumentException](IcebergSchemas.schema(StructType.fromDDL("a INT")))
    assert(error.getMessage == "a has no id")
  }

  CompliantTable.shapes.foreach { shape =>
    test(s"${shape.name} keeps all its ids, in its order") {
      val schema = IcebergSchemas.schema(shape.schema)
      val nodes = SchemaNode.flatten(shape.schema)
      nodes.foreach { node =>
        assert(schema.findColumnName(node.id.get.toInt) == node.path.mkString("."))
      }
      assert(schema.idToName.size == nodes.size)
      assert(schema.highestFieldId == shape.highest)
      assert(schema.columns.asScala.map(_.name) == shape.schema.fieldNames.toSeq)
    }
  }

  test("nullability and comments are kept at every depth") {
    val plain = delta("a INT NOT NULL, s STRUCT<x: INT NOT NULL, y: INT>")
    val commented = Seq(Seq("a") -> "first", Seq("s", "x") -> "below").foldLeft(plain) {
      case (all, (path, comment)) => CompliantTable.changed(all, path)(_.withComment(comment))
    }
    val schema = IcebergSchemas.schema(commented)
    assert(schema.findField("a").isRequired && schema.findField("a").doc == "first")
    assert(schema.findField("s.x").isRequired && schema.findField("s.x").doc == "below")
    assert(schema.findField("s.y").isOptional && schema.findField("s.y").doc == null)
    val required = CompliantTable.withIds(
      new StructType()
        .add("l", ArrayType(IntegerType, containsNull = false))
        .add("m", MapType(IntegerType, IntegerType, valueContainsNull = false))
    )
    val collections = IcebergSchemas.schema(required)
    assert(collections.findField("l.element").isRequired)
    assert(collections.findField("m.value").isRequired && collections.findField("m.key").isRequired)
  }

  private val table = iceberg("a INT, b STRING, `c.d` DATE")

  private def spec(columns: Seq[String], known: PartitionSpec*): PartitionSpec = {
    val last =
      known.map(_.fields.asScala.map(_.fieldId).maxOption.getOrElse(0)).maxOption.getOrElse(0)
    IcebergSchemas.spec(table, columns, known, last)
  }

  private def fields(spec: PartitionSpec): Seq[(Int, Int, String, String)] =
    spec.fields.asScala.toSeq.map(f => (f.fieldId, f.sourceId, f.name, f.transform.toString))

  test("partitions are identities in the order of the columns, by their ids") {
    assert(
      fields(spec(Seq("b", "c.d"))) ==
        Seq((1000, 2, "b", "identity"), (1001, 3, "c.d", "identity"))
    )
    assert(spec(Nil).isUnpartitioned)
  }

  test("a partition field id is of one column for ever") {
    val first = spec(Seq("a"))
    val second = spec(Seq("b"), first)
    assert(fields(second) == Seq((1001, 2, "b", "identity")))
    assert(fields(spec(Seq("b", "a"), first, second)).map(_._1) == Seq(1001, 1000))
  }

  test("partitions by binary columns are found by name") {
    val schema = delta("a INT, b BINARY")
    assert(SupportedTypes.lossyPartitionColumn(schema, Seq("a")).isEmpty)
    assert(SupportedTypes.lossyPartitionColumn(schema, Seq("a", "b")).contains("b"))
  }
}
