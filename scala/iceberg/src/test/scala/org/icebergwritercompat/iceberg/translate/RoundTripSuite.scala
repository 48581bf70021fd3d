package org.icebergwritercompat.iceberg.translate

import org.apache.hadoop.fs.Path
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.{
  BinaryType,
  BooleanType,
  DateType,
  DecimalType,
  DoubleType,
  FixedType,
  FloatType,
  IntegerType,
  ListType,
  LongType,
  MapType,
  NestedField,
  StringType,
  StructType,
  TimeType,
  TimestampNanoType,
  TimestampType,
  UUIDType
}
import org.apache.iceberg.types.{Comparators, Conversions, Type}
import org.apache.iceberg.{Metrics, PartitionData, PartitionSpec, Schema}
import org.apache.spark.sql.types.{
  Metadata,
  MetadataBuilder,
  StructField,
  StructType => DeltaStruct
}
import org.icebergwritercompat.model.SchemaNode
import org.scalatest.funsuite.AnyFunSuite

import java.lang.{Integer => JInteger, Long => JLong}
import java.nio.ByteBuffer
import java.util.{Comparator, HashMap => JHashMap}
import scala.jdk.CollectionConverters._
import scala.util.Random

/** What is translated from Iceberg to Delta and back is the same. */
class RoundTripSuite extends AnyFunSuite {

  private val rounds = 400

  /** Runs a property for many seeds; the one that fails is named. */
  private def forSeeds(name: String)(property: Random => Any): Unit = test(name) {
    (1 to rounds).foreach { seed =>
      withClue(s"seed $seed: ")(property(new Random(seed)))
    }
  }

  private val primitives: Seq[Type.PrimitiveType] = Seq(
    BooleanType.get,
    IntegerType.get,
    LongType.get,
    FloatType.get,
    DoubleType.get,
    DecimalType.of(1, 0),
    DecimalType.of(9, 2),
    DecimalType.of(18, 18),
    DecimalType.of(38, 9),
    StringType.get,
    BinaryType.get,
    DateType.get,
    TimestampType.withZone,
    TimestampType.withoutZone
  )

  private def pick[T](random: Random, all: Seq[T]): T = all(random.nextInt(all.size))

  private val names =
    Seq("a", "B", "with space", "dot.ted", "`quoted`", "ünïcode", "element", "key", "col-7", "日本")

  // Ids in no order, as those of a table that has changed.
  private final class Ids(random: Random) {
    private val all = random.shuffle((1 to 500).toVector).iterator
    def next(): Int = all.next()
  }

  private def field(random: Random, ids: Ids, name: String, depth: Int): NestedField =
    NestedField
      .builder()
      .withId(ids.next())
      .withName(name)
      .isOptional(random.nextBoolean())
      .ofType(typeOf(random, ids, depth))
      .withDoc(pick(random, Seq(null, "", "a 'quoted' doc\n", "doc")))
      .build()

  private def fields(random: Random, ids: Ids, depth: Int): Seq[NestedField] =
    random.shuffle(names).take(1 + random.nextInt(4)).map(field(random, ids, _, depth))

  private def typeOf(random: Random, ids: Ids, depth: Int): Type =
    if (depth == 0 || random.nextInt(3) == 0) pick(random, primitives)
    else
      random.nextInt(3) match {
        case 0 => StructType.of(fields(random, ids, depth - 1).asJava)
        case 1 =>
          val element = typeOf(random, ids, depth - 1)
          if (random.nextBoolean()) ListType.ofOptional(ids.next(), element)
          else ListType.ofRequired(ids.next(), element)
        case _ =>
          val (key, value) = (typeOf(random, ids, depth - 1), typeOf(random, ids, depth - 1))
          if (random.nextBoolean()) MapType.ofOptional(ids.next(), ids.next(), key, value)
          else MapType.ofRequired(ids.next(), ids.next(), key, value)
      }

  private def schema(random: Random): Schema =
    new Schema(fields(random, new Ids(random), 3).asJava)

  forSeeds("schemas: from Iceberg to Delta and back") { random =>
    val iceberg = schema(random)
    val delta = DeltaSchemas.schema(iceberg)
    assert(IcebergSchemas.schema(delta).sameSchema(iceberg))
    // And as the log has it.
    val logged = org.apache.spark.sql.types.DataType.fromJson(delta.json).asInstanceOf[DeltaStruct]
    assert(IcebergSchemas.schema(logged).sameSchema(iceberg))
    val nodes = SchemaNode.flatten(delta)
    assert(nodes.filter(_.isField).forall(n => n.physicalName == n.id.map(id => s"col-$id")))
    assert(nodes.forall(_.id.isDefined))
  }

  forSeeds("schemas: from Delta to Iceberg and back") { random =>
    // What is noted of a field and is not Iceberg's.
    def noted(struct: DeltaStruct): DeltaStruct = DeltaStruct(struct.fields.map { field =>
      val more = new MetadataBuilder()
        .withMetadata(field.metadata)
        .putString("delta.typeChanges", s"of ${field.name}")
        .build()
      val below = field.dataType match {
        case s: DeltaStruct => noted(s)
        case other          => other
      }
      field.copy(dataType = below, metadata = if (random.nextBoolean()) more else field.metadata)
    })
    val delta = noted(DeltaSchemas.schema(schema(random)))
    assert(DeltaSchemas.schema(IcebergSchemas.schema(delta), delta) == delta)
  }

  test("what is noted of a field follows its id, and not its name") {
    def metadata(id: Long, noted: String): Metadata = new MetadataBuilder()
      .putLong("delta.columnMapping.id", id)
      .putString("delta.columnMapping.physicalName", s"col-$id")
      .putString("noted", noted)
      .build()
    val long = org.apache.spark.sql.types.LongType
    val before = DeltaStruct(
      Seq(
        StructField("a", long, nullable = true, metadata(1, "one")),
        StructField("b", long, nullable = true, metadata(2, "two"))
      )
    )
    val swapped = new Schema(
      NestedField.optional(2, "a", LongType.get),
      NestedField.optional(1, "b", LongType.get),
      NestedField.optional(3, "c", LongType.get)
    )
    val after = DeltaSchemas.schema(swapped, before)
    assert(after("a").metadata == metadata(2, "two") && after("b").metadata == metadata(1, "one"))
    assert(!after("c").metadata.contains("noted"))
  }

  test("what Delta has no type for is found, at any depth") {
    Seq(TimeType.get, UUIDType.get, FixedType.ofLength(4), TimestampNanoType.withZone).foreach {
      of =>
        val below = MapType.ofOptional(3, 4, StringType.get, ListType.ofOptional(5, of))
        val nested =
          new Schema(
            NestedField.optional(1, "s", StructType.of(NestedField.optional(2, "m", below)))
          )
        val found = DeltaSchemas.unsupported(nested).get
        assert(found.path == Seq("s", "m", "value", "element") && found.icebergType == of)
        intercept[IllegalArgumentException](DeltaSchemas.schema(nested))
    }
    primitives.foreach { of =>
      assert(DeltaSchemas.unsupported(new Schema(NestedField.optional(1, "a", of))).isEmpty)
    }
  }

  // Values at the ends of their types, and others.
  private def value(random: Random, of: Type): Any = of.typeId match {
    case TypeID.BOOLEAN => random.nextBoolean()
    case TypeID.INTEGER => pick(random, Seq(Int.MinValue, -1, 0, 1, Int.MaxValue, random.nextInt()))
    case TypeID.LONG    =>
      pick(random, Seq(Long.MinValue, -1L, 0L, 9007199254740993L, Long.MaxValue, random.nextLong()))
    case TypeID.FLOAT =>
      pick(
        random,
        Seq(Float.MinValue, -0.0f, 0.0f, 0.1f, Float.MinPositiveValue, Float.MaxValue) ++
          Seq(Float.PositiveInfinity, Float.NegativeInfinity, random.nextFloat())
      )
    case TypeID.DOUBLE =>
      pick(
        random,
        Seq(Double.MinValue, -0.0, 0.0, 0.1, Double.MinPositiveValue, Double.MaxValue) ++
          Seq(Double.PositiveInfinity, Double.NegativeInfinity, random.nextDouble())
      )
    case TypeID.DECIMAL =>
      val decimal = of.asInstanceOf[DecimalType]
      val greatest = BigInt(10).pow(decimal.precision) - 1
      val unscaled =
        pick(
          random,
          Seq(greatest, -greatest, BigInt(0), BigInt(1), BigInt(60, random).mod(greatest + 1))
        )
      new java.math.BigDecimal(unscaled.bigInteger, decimal.scale)
    case TypeID.DATE =>
      pick(random, Seq(-719162, -1, 0, 1, 2932896, random.nextInt(40000) - 20000))
    case TypeID.TIMESTAMP =>
      pick(
        random,
        Seq(-62135596800000000L, -1L, 0L, 1L, 999L, 1000L, 253402300799999999L) ++
          Seq(random.nextLong(), random.nextInt().toLong * 1000003)
      )
    case TypeID.STRING =>
      pick(
        random,
        Seq(
          "x",
          " ",
          "null",
          "__HIVE_DEFAULT_PARTITION__",
          "a/b=c%2F",
          "é\u0000\n\"\\",
          "\uD83D\uDE00" * 20
        ) ++
          Seq(
            "\uDBFF\uDFFF" * 33,
            "z" * 31,
            "z" * 32,
            "z" * 33,
            "\uFFFF" * 40,
            random.nextString(50)
          )
            .map(text => new String(text.getBytes("UTF-8"), "UTF-8"))
      )
    case _ => ByteBuffer.wrap(Array[Byte](0, 1, -1))
  }

  private val partitionTypes = primitives.filter(_.typeId != TypeID.BINARY)

  forSeeds("partition values: to text and back") { random =>
    val columns = partitionTypes.zipWithIndex.map { case (of, i) =>
      NestedField.optional(i + 1, s"p$i", of)
    }
    val table = new Schema(columns.asJava)
    val spec =
      columns.foldLeft(PartitionSpec.builderFor(table))((b, c) => b.identity(c.name)).build()
    val tuple = new PartitionData(spec.partitionType)
    columns.indices.foreach { i =>
      tuple.set(i, if (random.nextInt(5) == 0) null else value(random, columns(i).`type`))
    }
    PartitionValues.text(spec, tuple) match {
      case Right(logged) =>
        val read = PartitionValues.tuple(spec, logged).toOption.get
        columns.indices.foreach { i =>
          val (was, is) = (tuple.get(i, classOf[Any]), read.get(i, classOf[Any]))
          assert(was == is, s"${columns(i).`type`} as ${logged(s"col-${i + 1}")}")
        }
      // Times that no calendar of four digits has are told from others by their text alone.
      case Left(name) =>
        val of = columns.find(_.name == name).get.`type`
        assert(of.typeId == TypeID.TIMESTAMP, tuple)
    }
  }

  test("partition values have the form that the protocol of Delta gives them") {
    def text(of: Type, value: Any): Either[String, String] = {
      val table = new Schema(NestedField.optional(7, "p", of))
      val spec = PartitionSpec.builderFor(table).identity("p").build()
      val tuple = new PartitionData(spec.partitionType)
      tuple.set(0, value)
      PartitionValues.text(spec, tuple).map(_("col-7"))
    }
    assert(text(TimestampType.withZone, 0L) == Right("1970-01-01T00:00:00.000000Z"))
    assert(text(TimestampType.withZone, -1L) == Right("1969-12-31T23:59:59.999999Z"))
    assert(text(TimestampType.withoutZone, 0L) == Right("1970-01-01 00:00:00.000000"))
    assert(text(TimestampType.withoutZone, 60000000L) == Right("1970-01-01 00:01:00.000000"))
    assert(
      text(DecimalType.of(38, 20), new java.math.BigDecimal("0E-20")) == Right("0." + "0" * 20)
    )
    assert(text(StringType.get, null) == Right(null))
    // The log cannot tell it from null.
    assert(text(StringType.get, "") == Left("p"))
    assert(text(BinaryType.get, ByteBuffer.allocate(1)) == Left("p"))
    assert(text(DoubleType.get, Double.NaN) == Left("p"))
  }

  forSeeds("metrics: to statistics and back, no bound is narrower") { random =>
    val below = primitives.zipWithIndex.map { case (of, i) =>
      NestedField.optional(i + 101, s"s$i", of)
    }
    val columns = primitives.zipWithIndex.map { case (of, i) =>
      NestedField.optional(i + 1, s"c$i", of)
    } :+ NestedField.optional(100, "s", StructType.of(below.asJava))
    val table = new Schema(columns.asJava)
    val leaves = columns.init ++ below
    val rows = 1 + random.nextInt(1000).toLong
    val nulls = new JHashMap[JInteger, JLong]
    val (lower, upper) =
      (new JHashMap[JInteger, ByteBuffer], new JHashMap[JInteger, ByteBuffer])
    leaves.foreach { leaf =>
      nulls.put(leaf.fieldId, random.nextInt(rows.toInt + 1).toLong)
      if (random.nextInt(5) > 0) {
        val order =
          Comparators.forType[Any](leaf.`type`.asPrimitiveType).asInstanceOf[Comparator[Any]]
        val pair = Seq.fill(2)(value(random, leaf.`type`)).sortWith(order.compare(_, _) < 0)
        lower.put(leaf.fieldId, Conversions.toByteBuffer(leaf.`type`, pair.head))
        upper.put(leaf.fieldId, Conversions.toByteBuffer(leaf.`type`, pair.last))
      }
    }
    val metrics = new Metrics(rows, null, null, nulls, null, lower, upper)
    val statistics = DeltaStatistics.of(metrics, table)
    val back = new IcebergMetrics(table, PartitionSpec.unpartitioned)
      .of(statistics, new PartitionTuple(Array.empty))
      .get
    assert(back.recordCount == rows && back.nullValueCounts == nulls)
    leaves.foreach { leaf =>
      val (id, of) = (leaf.fieldId, leaf.`type`)
      val order = Comparators.forType[Any](of.asPrimitiveType).asInstanceOf[Comparator[Any]]
      def bound(all: java.util.Map[JInteger, ByteBuffer]): Option[Any] =
        Option(all.get(id)).map(b => Conversions.fromByteBuffer[Any](of, b.duplicate))
      val wide =
        for { was <- bound(lower); is <- bound(back.lowerBounds) } yield order.compare(is, was) <= 0
      val high =
        for { was <- bound(upper); is <- bound(back.upperBounds) } yield order.compare(is, was) >= 0
      assert(wide.forall(identity) && high.forall(identity), s"$of: $statistics")
      // Nothing is made up.
      assert(bound(lower).isDefined || bound(back.lowerBounds).isEmpty)
      val exact = Set(TypeID.INTEGER, TypeID.LONG, TypeID.DECIMAL, TypeID.DATE)
      if (exact(of.typeId)) {
        assert(bound(back.lowerBounds) == bound(lower), s"$of: $statistics")
        assert(bound(back.upperBounds) == bound(upper), s"$of: $statistics")
      }
    }
  }

  test("columns that are not collected have no statistics") {
    val table = new Schema(
      NestedField.optional(1, "a", LongType.get),
      NestedField.optional(2, "b", LongType.get)
    )
    val one = new JHashMap[JInteger, JLong]
    one.put(1, 1L)
    one.put(2, 2L)
    val metrics = new Metrics(3L, null, null, one, null, null, null)
    assert(
      DeltaStatistics.of(metrics, table, _ == 2) == """{"numRecords":3,"nullCount":{"col-2":2}}"""
    )
    assert(DeltaStatistics.of(metrics, table, _ => false) == """{"numRecords":3}""")
  }

  test("paths: to the log and back") {
    val paths = new DataFilePaths(new Path("file:/w h/t%20"))
    val inside = Seq(
      "data/x.parquet",
      "data/p=a b%2Fc…ü&?#:+'\"/x.parquet",
      "a:b/x.parquet",
      "x%20y.parquet",
      "x+y=z.parquet"
    ).map("file:/w h/t%20/" + _)
    val outside = Seq("file:/w h/t%20x/data/x.parquet", "s3a://bucket/k e%y", "file:/x y/z.parquet")
    (inside ++ outside).foreach { location =>
      assert(paths.location(paths.logged(location)) == location)
    }
    assert(paths.logged("file:/w h/t%20/data/a b%.parquet") == "data/a%20b%25.parquet")
    // What has a colon first would be taken for another place.
    assert(paths.logged("file:/w h/t%20/a:b.parquet") == "file:/w%20h/t%2520/a:b.parquet")
    assert(
      paths.location(paths.logged("file:/w h/t%20/a:b.parquet")) == "file:/w h/t%20/a:b.parquet"
    )
  }

  test("which writers count NaN") {
    def counts(createdBy: String): Boolean = FooterMetrics.countsNaN(Option(createdBy))
    assert(counts("parquet-mr version 1.16.0 (build 12345)"))
    assert(counts("parquet-mr version 1.10.1"))
    Seq(
      null,
      "",
      "parquet-cpp-arrow version 21.0.0",
      "DuckDB version v1.5.5 (build x)",
      "parquet-mr version 1.8.1 (build x)",
      "parquet-mr version 2.0.0",
      "parquet-mr"
    ).foreach(other => assert(!counts(other), s"$other"))
  }
}
