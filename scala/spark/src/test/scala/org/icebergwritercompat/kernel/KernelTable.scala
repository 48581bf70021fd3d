package org.icebergwritercompat.kernel

import io.delta.kernel.{Operation, Scan, TableManager, Transaction}
import io.delta.kernel.data.{
  ArrayValue,
  ColumnVector,
  ColumnarBatch,
  FilteredColumnarBatch,
  MapValue,
  Row => KernelRow
}
import io.delta.kernel.defaults.engine.DefaultEngine
import io.delta.kernel.defaults.internal.data.DefaultColumnarBatch
import io.delta.kernel.engine.Engine
import io.delta.kernel.expressions.{Column, Literal}
import io.delta.kernel.internal.InternalScanFileUtils
import io.delta.kernel.internal.data.{ScanStateRow, TransactionStateRow}
import io.delta.kernel.internal.util.Utils
import io.delta.kernel.transaction.DataLayoutSpec
import io.delta.kernel.types._
import io.delta.kernel.utils.{CloseableIterable, CloseableIterator}
import org.apache.hadoop.conf.Configuration

import java.nio.file.Path
import java.time.{Instant, LocalDate, LocalDateTime, ZoneOffset}
import java.time.temporal.ChronoUnit
import java.util.Optional
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * A row or struct as both engines' values are compared: lists are `Seq`, maps `Map`, dates
 * `LocalDate`, timestamps `Instant`.
 */
final case class Record(values: Any*)

/** A table in the hands of Delta Kernel, with the engine that comes with it. */
final class KernelTable(folder: Path) {

  private val engine: Engine = DefaultEngine.create(new Configuration)
  private val path = folder.toString
  private val name = "iceberg-writer-compat-tests"

  /** Creates the table, with rows in the same commit. */
  def create(
      schema: StructType,
      partitionColumns: Seq[String],
      properties: Map[String, String],
      records: Seq[Record]
  ): Unit = {
    val builder = TableManager
      .buildCreateTableTransaction(path, schema, name)
      .withTableProperties(properties.asJava)
    if (partitionColumns.nonEmpty)
      builder.withDataLayoutSpec(
        DataLayoutSpec.partitioned(partitionColumns.map(new Column(_)).asJava)
      )
    commit(builder.build(engine), records)
  }

  /** Adds rows, whose values are in the order of the table's columns. */
  def append(records: Record*): Unit =
    commit(
      TableManager
        .loadSnapshot(path)
        .build(engine)
        .buildUpdateTableTransaction(name, Operation.WRITE)
        .build(engine),
      records
    )

  /** The number of rows that it reads. */
  def count(): Long = {
    var rows = 0L
    eachBatch(None)(rows += _.getSize)
    rows
  }

  /** All rows of the table, or of a version of it, in no order. */
  def rows(version: Option[Long] = None): Seq[Record] = {
    val rows = Seq.newBuilder[Record]
    eachBatch(version) { data =>
      rows ++= (0 until data.getSize).map { i =>
        Record((0 until data.getSchema.length).map { column =>
          KernelValues.of(data.getColumnVector(column), i)
        }: _*)
      }
    }
    rows.result()
  }

  // There is no room for all batches at a time.
  private def eachBatch(version: Option[Long])(visit: ColumnarBatch => Unit): Unit = {
    val snapshot = TableManager.loadSnapshot(path)
    val scan = version.fold(snapshot)(snapshot.atVersion).build(engine).getScanBuilder.build()
    val state = scan.getScanState(engine)
    for (batch <- all(scan.getScanFiles(engine)); file <- all(batch.getRows))
      Using.resource(read(state, file))(_.asScala.foreach(data => visit(data.getData)))
  }

  private def read(state: KernelRow, file: KernelRow): CloseableIterator[FilteredColumnarBatch] = {
    val status = InternalScanFileUtils.getAddFileStatus(file)
    val physical = engine.getParquetHandler.readParquetFiles(
      Utils.singletonCloseableIterator(status),
      ScanStateRow.getPhysicalDataReadSchema(state),
      Optional.empty()
    )
    Scan.transformPhysicalData(engine, state, file, physical.map(_.getData))
  }

  private def commit(transaction: Transaction, records: Seq[Record]): Unit = {
    val state = transaction.getTransactionState(engine)
    val logical = TransactionStateRow.getLogicalSchema(state)
    val partitionColumns = TransactionStateRow.getPartitionColumnsList(state).asScala.toSeq
    val partitionIndexes = partitionColumns.map(logical.indexOf)
    val actions = records.groupBy(record => partitionIndexes.map(record.values)).toSeq.flatMap {
      case (values, part) =>
        val literals = partitionColumns.zip(values).map { case (column, value) =>
          column -> Literal.ofString(value.asInstanceOf[String])
        }
        val context = Transaction.getWriteContext(engine, state, literals.toMap.asJava)
        val files = engine.getParquetHandler.writeParquetFiles(
          context.getTargetDirectory,
          Utils.singletonCloseableIterator(batchOf(state, partitionIndexes, part)),
          context.getStatisticsColumns
        )
        all(Transaction.generateAppendActions(engine, state, files, context))
    }
    transaction.commit(
      engine,
      CloseableIterable.inMemoryIterable(Utils.toCloseableIterator(actions.asJava.iterator))
    )
    ()
  }

  // Kernel's own transformLogicalData refuses every table with column mapping: whoever uses Kernel
  // has to lay out the columns, partition columns last, as Kernel would.
  private def batchOf(
      state: KernelRow,
      partitionIndexes: Seq[Int],
      records: Seq[Record]
  ): FilteredColumnarBatch = {
    val physical = TransactionStateRow.getPhysicalSchema(state)
    val order = (0 until physical.length).filterNot(partitionIndexes.contains) ++ partitionIndexes
    val fields = order.map(physical.at)
    val vectors = order.map { index =>
      new ValueVector(records.map(_.values(index)), physical.at(index).getDataType): ColumnVector
    }
    new FilteredColumnarBatch(
      new DefaultColumnarBatch(records.size, new StructType(fields.asJava), vectors.toArray),
      Optional.empty[ColumnVector]
    )
  }

  private def all[A](values: CloseableIterator[A]): Seq[A] =
    Using.resource(values)(_.asScala.toList)
}

/** Values of Kernel in the form in which they are compared. */
private object KernelValues {

  def of(vector: ColumnVector, i: Int): Any =
    if (vector.isNullAt(i)) null
    else
      vector.getDataType match {
        case _: IntegerType      => vector.getInt(i)
        case _: LongType         => vector.getLong(i)
        case _: StringType       => vector.getString(i)
        case _: BooleanType      => vector.getBoolean(i)
        case _: FloatType        => vector.getFloat(i)
        case _: DoubleType       => vector.getDouble(i)
        case _: BinaryType       => vector.getBinary(i)
        case _: DecimalType      => vector.getDecimal(i)
        case _: DateType         => LocalDate.ofEpochDay(vector.getInt(i).toLong)
        case _: TimestampType    => instant(vector.getLong(i))
        case _: TimestampNTZType =>
          LocalDateTime.ofInstant(instant(vector.getLong(i)), ZoneOffset.UTC)
        case struct: StructType =>
          Record((0 until struct.length).map(field => of(vector.getChild(field), i)): _*)
        case _: ArrayType =>
          val array = vector.getArray(i)
          list(array.getElements, array.getSize)
        case _: MapType =>
          val map = vector.getMap(i)
          list(map.getKeys, map.getSize).zip(list(map.getValues, map.getSize)).toMap
        case other => throw new IllegalArgumentException(other.toString)
      }

  private def instant(micros: Long): Instant = Instant.EPOCH.plus(micros, ChronoUnit.MICROS)

  private def list(elements: ColumnVector, size: Int): Seq[Any] =
    (0 until size).map(of(elements, _))
}

/** Values in the form in which Kernel takes them. */
private final class ValueVector(values: Seq[Any], dataType: DataType) extends ColumnVector {

  override def getDataType: DataType = dataType

  override def getSize: Int = values.size

  override def close(): Unit = ()

  override def isNullAt(i: Int): Boolean = values(i) == null

  override def getInt(i: Int): Int = values(i) match {
    case date: LocalDate => date.toEpochDay.toInt
    case value           => value.asInstanceOf[Int]
  }

  override def getLong(i: Int): Long = values(i) match {
    case instant: Instant => ChronoUnit.MICROS.between(Instant.EPOCH, instant)
    case value            => value.asInstanceOf[Long]
  }

  override def getString(i: Int): String = values(i).asInstanceOf[String]

  override def getDecimal(i: Int): java.math.BigDecimal =
    values(i).asInstanceOf[java.math.BigDecimal]

  override def getArray(i: Int): ArrayValue = new ArrayValue {
    private val elements = values(i).asInstanceOf[Seq[Any]]
    private val array = dataType.asInstanceOf[ArrayType]
    override def getSize: Int = elements.size
    override def getElements: ColumnVector = new ValueVector(elements, array.getElementType)
  }

  override def getMap(i: Int): MapValue = new MapValue {
    private val entries = values(i).asInstanceOf[Map[Any, Any]].toSeq
    private val map = dataType.asInstanceOf[MapType]
    override def getSize: Int = entries.size
    override def getKeys: ColumnVector = new ValueVector(entries.map(_._1), map.getKeyType)
    override def getValues: ColumnVector = new ValueVector(entries.map(_._2), map.getValueType)
  }

  override def getChild(ordinal: Int): ColumnVector = {
    val field = dataType.asInstanceOf[StructType].at(ordinal)
    val children = values.map {
      case Record(fields @ _*) => fields(ordinal)
      case _                   => null
    }
    new ValueVector(children, field.getDataType)
  }
}
