package org.icebergwritercompat.bench

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{
  ChangeKind,
  Lifecycle,
  ProtocolState,
  TableChange,
  TableState
}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.WriterCompat

/** Compliant tables: every rule checks all of their nodes, because none is broken. */
final class RuleTables {

  private var lastId = 0L

  private val leaves =
    Vector(
      IntegerType,
      LongType,
      StringType,
      DoubleType,
      DateType,
      TimestampType,
      DecimalType(18, 2)
    )

  private def nextId(): Long = { lastId += 1; lastId }

  private def field(name: String, dataType: DataType, nested: Seq[String] = Nil): StructField = {
    val id = nextId()
    val physicalName = WriterCompat.physicalName(id)
    val metadata = new MetadataBuilder()
      .putLong(WriterCompat.ColumnId, id)
      .putString(WriterCompat.PhysicalName, physicalName)
    if (nested.nonEmpty) {
      val ids = new MetadataBuilder
      nested.foreach(way => ids.putLong(s"$physicalName.$way", nextId()))
      metadata.putMetadata(WriterCompat.NestedIds, ids.build())
    }
    StructField(name, dataType, nullable = true, metadata.build())
  }

  /** A column with a new id. */
  def column(i: Int): StructField = field(s"column_$i", leaves(i % leaves.size))

  /** A column with `depth` nested fields, in structs, lists and maps by turns. */
  private def nested(name: String, depth: Int): StructField =
    if (depth == 1) field(name, leaves(lastId.toInt % leaves.size))
    else {
      val below = StructType(Seq(column(0), nested("next", depth - 1)))
      depth % 3 match {
        case 0 => field(name, below)
        case 1 => field(name, ArrayType(below), Seq("element"))
        case _ => field(name, MapType(StringType, below), Seq("key", "value"))
      }
    }

  def flat(columns: Int): TableState = table(StructType(Seq.tabulate(columns)(column)))

  /** A table of about `nodes` nodes, with columns of that depth. */
  def deep(depth: Int, nodes: Int): TableState = {
    val columns = Iterator
      .from(0)
      .map(i => nested(s"column_$i", depth))
      .takeWhile(_ => lastId < nodes)
    table(StructType(columns.toSeq))
  }

  /** `before` with one more column. */
  def changed(before: TableState): TableState =
    table(before.schema.add(column(before.schema.length)))

  private def table(schema: StructType): TableState = TableState(
    "t",
    Lifecycle.Changing,
    ProtocolState(
      2,
      7,
      None,
      Some(
        Set(
          WriterCompat.Feature,
          WriterCompat.IcebergCompatV2Feature,
          WriterCompat.ColumnMappingFeature
        )
      )
    ),
    Map(
      WriterCompat.Enabled -> "true",
      WriterCompat.IcebergCompatV2Enabled -> "true",
      WriterCompat.ColumnMappingMode -> WriterCompat.IdMode,
      WriterCompat.MaxColumnId -> lastId.toString
    ),
    schema,
    Nil,
    V1.contract
  )
}

/** Times the rules, without a session and without files. */
object RulesBenchmark {

  private val sizes = Seq(10, 100, 1000, 10000)
  private val depths = Seq(1, 2, 5, 10, 20)
  private val nodes = 2000

  def run(settings: Settings): Section = {
    val flat = sizes.map { size =>
      val tables = new RuleTables
      val before = tables.flat(size)
      (before, tables.changed(before))
    }
    val deep = depths.map { depth =>
      val tables = new RuleTables
      val before = tables.deep(depth, nodes)
      (before, tables.changed(before))
    }
    val checks = (flat ++ deep).map { case (before, _) => () => checkTable(before) }
    val changes = (flat ++ deep).map { case (before, after) => () => checkChange(before, after) }
    val all = checks ++ changes
    val iterations = if (settings.quick) 5 else 60
    (0 until iterations).foreach(_ => all.foreach(time(_)))
    val samples = Vector.fill(iterations)(all.map(time(_))).transpose

    val (table, change) = samples.splitAt(checks.size)
    def rows(name: String, of: Vector[Estimate.Samples]): Seq[Row] = {
      val (ofFlat, ofDeep) = of.splitAt(sizes.size)
      val times = sizes.zip(ofFlat).map { case (size, sample) =>
        val goal = Option.when(size == sizes.last)(Goal.atMost("50 ms", 50))
        Row.time(s"$name, $size columns", sample, goal)
      }
      val growth = Row.exponent(
        s"$name, growth from 100 columns on",
        Estimate.growth(sizes.drop(1), ofFlat.drop(1)),
        Goal.atMost("1.1 (linear)", 1.1)
      )
      val byDepth = depths.drop(1).zip(ofDeep.drop(1)).map { case (depth, sample) =>
        Row.ratio(s"$name, $nodes nodes at depth $depth ÷ depth 1", sample, ofDeep.head)
      }
      times ++ Seq(growth) ++ byDepth
    }
    Section(
      "The rules alone",
      "One JVM, no session. Each sample builds the list of schema nodes again, as each commit does.",
      rows("version", table) ++ rows("change", change)
    )
  }

  // A new state for each sample, because a state caches what it has computed.
  private def checkTable(table: TableState): Unit =
    require(V1.rules.check(table.copy()).isEmpty, "a rule refuses what is measured")

  private def checkChange(before: TableState, after: TableState): Unit = {
    val change = TableChange(before.copy(), after.copy(), ChangeKind.Ordinary)
    require(V1.rules.check(change).isEmpty, "a rule refuses what is measured")
  }

  private def time(block: () => Unit): Double = {
    val begin = System.nanoTime
    block()
    (System.nanoTime - begin) / 1e6
  }
}
