package org.apache.spark.sql.delta.writercompat.upgrade

import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.delta.writercompat.install.WriterCompatHooks
import org.apache.spark.sql.types.{MetadataBuilder, StructType}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.SchemaNode
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** What the metadata of a table becomes, without a session. */
class UpgradedMetadataSuite extends AnyFunSuite with BeforeAndAfterAll {

  // Once Delta is in use, no suite that comes later in this JVM could install the guard.
  override def beforeAll(): Unit = WriterCompatHooks.install()

  private val ddl =
    "id BIGINT, b TINYINT, s STRUCT<x: SMALLINT, l: ARRAY<MAP<TINYINT, STRUCT<y: DATE>>>>"

  private def metadata(schema: StructType, properties: (String, String)*): Metadata =
    Metadata(schemaString = schema.json, configuration = properties.toMap)

  private def nodes(metadata: Metadata): Seq[SchemaNode] = SchemaNode.flatten(metadata.schema)

  private def ids(metadata: Metadata): Map[String, Long] =
    nodes(metadata).flatMap(node => node.id.map(node.sqlPath -> _)).toMap

  private def maximum(metadata: Metadata): Long =
    metadata.configuration("delta.columnMapping.maxColumnId").toLong

  private def assertLaidOut(metadata: Metadata): Unit = {
    val found = nodes(metadata).map(_.id)
    assert(found.forall(_.isDefined) && found.distinct == found)
    assert(maximum(metadata) >= found.flatten.max)
    nodes(metadata).filter(_.isField).foreach { node =>
      assert(node.physicalName == node.id.map(id => s"col-$id"))
    }
  }

  test("a table without mapping gets ids and names for all there is") {
    val upgraded =
      UpgradedMetadata.of(metadata(StructType.fromDDL(ddl)), V1.contract, hasFiles = true)
    assertLaidOut(upgraded)
    assert(ids(upgraded).size == 9 && maximum(upgraded) == 9)
    assert(upgraded.configuration("delta.columnMapping.mode") == "id")
    assert(upgraded.configuration("delta.enableIcebergCompatV2") == "true")
    assert(upgraded.configuration("delta.enableIcebergWriterCompatV1") == "true")
  }

  test("ids that are there stay, and new ones are above all that were ever given") {
    val before =
      UpgradedMetadata.of(metadata(StructType.fromDDL(ddl)), V1.contract, hasFiles = true)
    val bare = StructType(before.schema.map { field =>
      val builder = new MetadataBuilder().withMetadata(field.metadata)
      if (field.name == "s") builder.putString("delta.columnMapping.physicalName", "col-abc")
      if (field.name == "b")
        builder.remove("delta.columnMapping.id").remove("delta.columnMapping.physicalName")
      field.copy(metadata = builder.build())
    })
    val again = UpgradedMetadata.of(
      metadata(
        bare,
        "delta.columnMapping.mode" -> "name",
        "delta.columnMapping.maxColumnId" -> "77",
        "delta.enableIcebergCompatV1" -> "true",
        "other" -> "stays"
      ),
      V1.contract,
      hasFiles = true
    )
    assertLaidOut(again)
    assert(ids(again)("b") == 78 && maximum(again) >= 78)
    assert((ids(again) - "b") == (ids(before) - "b"))
    assert(!again.configuration.contains("delta.enableIcebergCompatV1"))
    assert(again.configuration("other") == "stays")
  }

  test("ids that a schema without mapping was left with mean nothing") {
    val left = UpgradedMetadata.of(metadata(StructType.fromDDL(ddl)), V1.contract, hasFiles = true)
    val upgraded = UpgradedMetadata.of(
      metadata(left.schema, "delta.columnMapping.maxColumnId" -> "50"),
      V1.contract,
      hasFiles = true
    )
    assertLaidOut(upgraded)
    assert(ids(upgraded).values.min == 51)
  }

  test("what is right already stays as it is") {
    val upgraded =
      UpgradedMetadata.of(metadata(StructType.fromDDL(ddl)), V1.contract, hasFiles = true)
    assert(UpgradedMetadata.of(upgraded, V1.contract, hasFiles = true) == upgraded)
  }

  private def change(from: String, to: String, fieldPath: Option[String] = None) = {
    val builder = new MetadataBuilder().putString("fromType", from).putString("toType", to)
    fieldPath.foreach(builder.putString("fieldPath", _))
    builder.build()
  }

  test("type changes are removed up to the last one on each path that Iceberg does not have") {
    val int = change("integer", "long")
    val decimal = change("long", "decimal(20,0)")
    val wider = change("decimal(20,0)", "decimal(22,0)")
    val element = change("integer", "long", Some("element"))
    val elementToDouble = change("integer", "double", Some("element"))
    def left(changes: org.apache.spark.sql.types.Metadata*) = {
      val recorded =
        new MetadataBuilder().putMetadataArray("delta.typeChanges", changes.toArray).build()
      val schema = StructType(StructType.fromDDL("s STRUCT<x: INT>").map { field =>
        val inner = field.dataType.asInstanceOf[StructType].map(_.copy(metadata = recorded))
        field.copy(dataType = StructType(inner))
      })
      val field = UpgradedMetadata.of(metadata(schema), V1.contract, hasFiles = true).schema.head
      val inner = field.dataType.asInstanceOf[StructType].head.metadata
      if (inner.contains("delta.typeChanges")) inner.getMetadataArray("delta.typeChanges").toSeq
      else Nil
    }
    assert(left(int) == Seq(int))
    assert(left(int, decimal) == Nil)
    assert(left(int, decimal, wider) == Seq(wider))
    assert(left(int, element, decimal, wider) == Seq(element, wider))
    assert(left(int, elementToDouble) == Seq(int))
    assert(left(new MetadataBuilder().build()) == Nil)
  }

  test("a table without files has no type changes, whatever they were") {
    for (to <- Seq("long", "double")) {
      val changes = new MetadataBuilder()
        .putMetadataArray("delta.typeChanges", Array(change("integer", to)))
        .build()
      val schema = StructType(StructType.fromDDL("a BIGINT").map(_.copy(metadata = changes)))
      val field = UpgradedMetadata.of(metadata(schema), V1.contract, hasFiles = false).schema.head
      assert(!field.metadata.contains("delta.typeChanges"))
    }
  }

  test("bytes and shorts become ints at every depth, and forget how they came about") {
    val changes = new MetadataBuilder()
      .putMetadataArray("delta.typeChanges", Array(change("integer", "long")))
      .build()
    val schema = StructType.fromDDL(ddl)
    val recorded = StructType(schema.map(_.copy(metadata = changes)))
    val widened = UpgradedMetadata.of(metadata(recorded), V1.contract, hasFiles = true).schema
    assert(
      widened.toDDL.replaceAll(" COMMENT '[^']*'", "").replace("`", "") ==
        StructType.fromDDL(ddl.replaceAll("TINYINT|SMALLINT", "INT")).toDDL.replace("`", "")
    )
    assert(widened.filter(_.metadata.contains("delta.typeChanges")).map(_.name) == Seq("id"))
  }
}
