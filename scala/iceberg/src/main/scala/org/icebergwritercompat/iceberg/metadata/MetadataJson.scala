package org.icebergwritercompat.iceberg.metadata

import com.fasterxml.jackson.core.{JsonEncoding, JsonFactory, JsonGenerator}
import org.apache.iceberg._
import org.apache.iceberg.relocated.com.google.common.collect.MapMaker

import java.io.{ByteArrayOutputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * Writes metadata as JSON, with the fields that `TableMetadataParser` writes. Each version lists
 * all snapshots; the text of a snapshot is made once and cached as long as the snapshot is
 * referenced.
 *
 * Methods of Iceberg's library with a JSON generator as a parameter cannot be called, because
 * Iceberg's bundles contain a relocated generator class.
 */
private[iceberg] object MetadataJson {

  /** Writes metadata; does not close the stream. */
  def write(table: TableMetadata, out: OutputStream): Unit =
    if (table.formatVersion == formatVersion)
      new Writing(table, out)
        .all(table.snapshots.asScala.iterator.map(textOf), table.refs.asScala, whole = true)
    else out.write(TableMetadataParser.toJson(table).getBytes(UTF_8))

  /** The text of metadata with at most one snapshot and without history. */
  def withoutPast(table: TableMetadata, current: Option[Snapshot]): String = text { out =>
    new Writing(table, out).all(current.iterator.map(encode), Nil, whole = false)
  }

  /**
   * The text of metadata with another time of its last change, and with those snapshots alone that
   * a reference names.
   */
  def updatedAt(table: TableMetadata, millis: Long): String = {
    val refs = table.refs.asScala
    val named = refs.values.map(_.snapshotId).toSet
    val snapshots = table.snapshots.asScala.iterator.filter(s => named(s.snapshotId))
    text(new Writing(table, _, millis).all(snapshots.map(textOf), refs, whole = true))
  }

  private def text(write: OutputStream => Unit): String = {
    val out = new ByteArrayOutputStream
    write(out)
    out.toString(UTF_8)
  }

  /** The only format version that is published. */
  val formatVersion = 2

  // By identity: a snapshot with the same id in other metadata may refer to other files.
  private val known = new MapMaker().weakKeys().makeMap[Snapshot, Array[Byte]]()

  private def textOf(snapshot: Snapshot): Array[Byte] = known.computeIfAbsent(snapshot, encode(_))

  private def encode(snapshot: Snapshot): Array[Byte] =
    SnapshotParser.toJson(snapshot, false).getBytes(UTF_8)

  private val factory = new JsonFactory().disable(JsonGenerator.Feature.AUTO_CLOSE_TARGET)

  private final class Writing(table: TableMetadata, out: OutputStream, updatedMillis: Long) {

    def this(table: TableMetadata, out: OutputStream) = this(table, out, table.lastUpdatedMillis)

    private val json = factory.createGenerator(out, JsonEncoding.UTF8)

    def all(
        snapshots: Iterator[Array[Byte]],
        refs: Iterable[(String, SnapshotRef)],
        whole: Boolean
    ): Unit = Using.resource(json) { _ =>
      json.writeStartObject()
      json.writeNumberField("format-version", formatVersion)
      json.writeStringField("table-uuid", table.uuid)
      json.writeStringField("location", table.location)
      json.writeNumberField("last-sequence-number", table.lastSequenceNumber)
      json.writeNumberField("last-updated-ms", updatedMillis)
      json.writeNumberField("last-column-id", table.lastColumnId)
      json.writeNumberField("current-schema-id", table.currentSchemaId)
      list("schemas", table.schemas.asScala.map(SchemaParser.toJson(_)))
      json.writeNumberField("default-spec-id", table.defaultSpecId)
      list("partition-specs", table.specs.asScala.map(PartitionSpecParser.toJson(_)))
      json.writeNumberField("last-partition-id", table.lastAssignedPartitionId)
      json.writeNumberField("default-sort-order-id", table.defaultSortOrderId)
      list("sort-orders", table.sortOrders.asScala.map(SortOrderParser.toJson(_)))
      fields("properties", table.properties.asScala)(json.writeString(_))
      val current = Option(table.currentSnapshot).fold(-1L)(_.snapshotId)
      json.writeNumberField("current-snapshot-id", current)
      if (whole) fields("refs", refs)(ref => json.writeRawValue(SnapshotRefParser.toJson(ref)))
      encoded("snapshots", snapshots)
      if (whole) {
        list("statistics", table.statisticsFiles.asScala.map(StatisticsFileParser.toJson(_)))
        list(
          "partition-statistics",
          table.partitionStatisticsFiles.asScala.map(PartitionStatisticsFileParser.toJson(_))
        )
        entries("snapshot-log", table.snapshotLog.asScala) { entry =>
          json.writeNumberField("timestamp-ms", entry.timestampMillis)
          json.writeNumberField("snapshot-id", entry.snapshotId)
        }
        entries("metadata-log", table.previousFiles.asScala) { entry =>
          json.writeNumberField("timestamp-ms", entry.timestampMillis)
          json.writeStringField("metadata-file", entry.file)
        }
      }
      json.writeEndObject()
    }

    private def list(name: String, texts: Iterable[String]): Unit = {
      json.writeArrayFieldStart(name)
      texts.foreach(json.writeRawValue(_))
      json.writeEndArray()
    }

    private def fields[T](name: String, all: Iterable[(String, T)])(write: T => Unit): Unit = {
      json.writeObjectFieldStart(name)
      all.foreach { case (key, value) =>
        json.writeFieldName(key)
        write(value)
      }
      json.writeEndObject()
    }

    private def entries[T](name: String, all: Iterable[T])(write: T => Unit): Unit = {
      json.writeArrayFieldStart(name)
      all.foreach { entry =>
        json.writeStartObject()
        write(entry)
        json.writeEndObject()
      }
      json.writeEndArray()
    }

    // Not through the generator, which would check each character again.
    private def encoded(name: String, values: Iterator[Array[Byte]]): Unit = {
      json.writeFieldName(name)
      json.writeRawValue("[")
      json.flush()
      values.zipWithIndex.foreach { case (value, i) =>
        if (i > 0) out.write(',')
        out.write(value)
      }
      out.write(']')
    }
  }
}
