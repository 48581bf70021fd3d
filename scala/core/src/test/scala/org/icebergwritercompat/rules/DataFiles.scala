package org.icebergwritercompat.rules

import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.{MessageType, MessageTypeParser, PrimitiveType}
import org.icebergwritercompat.model.{ColumnChunk, DataFile, Footer, Unreadable}

/** Data files as the rules see them, from the text of a Parquet schema. */
object DataFiles {

  val path = "part-0.parquet"

  def schema(fields: String*): MessageType =
    MessageTypeParser.parseMessageType(s"message file { ${fields.mkString(" ")} }")

  /** A file of three rows, as the log says, with these fields. */
  def file(fields: String*): DataFile = of(schema(fields: _*))

  def of(schema: MessageType): DataFile =
    DataFile(path, Map.empty, 742, Some(3), Right(Footer(schema, 3, 742)))

  def unreadable(reason: String, detail: String): DataFile =
    DataFile(path, Map.empty, 742, Some(3), Left(Unreadable(reason, detail)))

  implicit final class Changed(file: DataFile) {

    def withPartition(values: (String, String)*): DataFile =
      file.copy(partitionValues = values.toMap)

    def withFooter(change: Footer => Footer): DataFile =
      file.copy(footer = file.footer.map(change))

    /** A row group with these values of a column; a null is one. */
    def withValues(column: String*)(values: Any*): DataFile =
      withChunk(column: _*)(primitive => chunk(Statistics.createStats(primitive), values))

    /** A row group whose writer says nothing of a column but how many values it has. */
    def withUnknownValues(column: String*): DataFile =
      withChunk(column: _*) { primitive =>
        new ColumnChunk(Statistics.getBuilderForReading(primitive).build(), 3)
      }

    /** A row group with these bounds of a column, as a writer leaves them that cuts them off. */
    def withBounds(column: String*)(min: Array[Byte], max: Array[Byte]): DataFile =
      withChunk(column: _*) { primitive =>
        new ColumnChunk(
          Statistics
            .getBuilderForReading(primitive)
            .withMin(min)
            .withMax(max)
            .withNumNulls(0)
            .build(),
          3
        )
      }

    /** A row group in which so many values of a column have each definition level. */
    def withLevels(column: String*)(levels: Long*): DataFile =
      withChunk(column: _*) { primitive =>
        new ColumnChunk(Statistics.getBuilderForReading(primitive).build(), levels.sum, levels)
      }

    private def withChunk(column: String*)(
        make: PrimitiveType => ColumnChunk
    ): DataFile = withFooter { footer =>
      val chunk = make(footer.schema.getType(column: _*).asPrimitiveType)
      val known = footer.chunks.getOrElse(column, Nil)
      footer.copy(chunks = footer.chunks + (column.toSeq -> (known :+ chunk)))
    }
  }

  private def chunk(statistics: Statistics[_], values: Seq[Any]): ColumnChunk = {
    values.foreach {
      case null           => statistics.incrementNumNulls()
      case value: Int     => statistics.updateStats(value)
      case value: Long    => statistics.updateStats(value)
      case value: Float   => statistics.updateStats(value)
      case value: Double  => statistics.updateStats(value)
      case value: Boolean => statistics.updateStats(value)
      case value: String  => statistics.updateStats(Binary.fromString(value))
      case value: Seq[_]  =>
        statistics.updateStats(
          Binary.fromConstantByteArray(value.map(_.asInstanceOf[Int].toByte).toArray)
        )
      case other => throw new IllegalArgumentException(String.valueOf(other))
    }
    new ColumnChunk(statistics, values.size.toLong)
  }
}
