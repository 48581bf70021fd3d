package org.icebergwritercompat.kernel

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{FileFormat, Lifecycle, Profile, ProtocolState, TableState}
import org.icebergwritercompat.kernel.SchemaWalk._
import org.icebergwritercompat.rules.CompliantTable._

import scala.util.Random

/**
 * One version of a table, and how it came about.
 *
 * @param faults
 *   how many changes to a compliant table it takes that a check might object to
 */
final case class State(name: String, table: TableState, faults: Int)

/**
 * The versions of tables that two checks are compared on.
 *
 * Every list below names ways to change a table. Whether a change breaks a rule is left to the
 * checks: some are harmless by intent.
 */
object States {

  /** The ways in which one change can be made to a table, each with its name. */
  type Ways = TableState => Seq[(String, TableState)]

  /** Every change to every compliant table, one at a time, and random ones, under each profile. */
  def all(seed: Long): Seq[State] = {
    val chosen = systematic ++ random(new Random(seed))
    for (state <- chosen; profile <- Profile.all)
      yield state.copy(
        name = s"${state.name} [${profile.name}]",
        table = state.table.copy(profile = profile)
      )
  }

  private def systematic: Seq[State] = for {
    (baseName, base) <- bases
    (name, table) <- (baseName, base) +: (harmless ++ suspect).flatMap(_(base)).map {
      case (what, changed) => s"$baseName, $what" -> changed
    }
  } yield State(name, table, faults = 1)

  // Most of a random state is compliant, or the checks would agree for want of anything to judge.
  private def random(random: Random): Seq[State] = Seq.tabulate(400) { i =>
    val base = compliant(RandomSchemas.schema(random))
    val varied = steps(random, harmless, random.nextInt(4))(s"random $i" -> base)
    val faults = 1 + random.nextInt(2)
    val (name, table) = steps(random, suspect, faults)(varied)
    State(name, table, faults)
  }

  private def steps(random: Random, ways: Seq[Ways], count: Int)(
      from: (String, TableState)
  ): (String, TableState) =
    (1 to count).foldLeft(from) { case ((name, table), _) =>
      val possible =
        Iterator.continually(ways(random.nextInt(ways.size))(table)).find(_.nonEmpty).get
      val (what, changed) = possible(random.nextInt(possible.size))
      s"$name, $what" -> changed
    }

  private def bases: Seq[(String, TableState)] =
    shapes.map(shape => shape.name -> of(shape.schema)) :+
      ("no columns" -> of(new StructType))

  private def one(name: String)(change: TableState => TableState): Ways =
    table => Seq(name -> change(table))

  private def each[A](values: Seq[A])(way: A => Ways): Ways = table => values.flatMap(way(_)(table))

  // Properties

  private def property(key: String, value: String): Ways =
    one(s"$key = '$value'")(t => t.copy(properties = t.properties + (key -> value)))

  private def without(key: String): Ways =
    one(s"no $key")(t => t.copy(properties = t.properties - key))

  private val maxColumnId = "delta.columnMapping.maxColumnId"

  private val switches: Seq[String] = Seq(
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV3",
    "delta.enableDeletionVectors",
    "delta.enableChangeDataFeed",
    "delta.enableRowTracking"
  )

  private def switchesOff: Ways =
    each(switches)(key => each(Seq("false", "False"))(property(key, _)))

  private def switchesOn: Ways =
    each(switches)(key => each(Seq("true", "TRUE", "yes", "1", "", " true "))(property(key, _)))

  private def otherProperties: Ways = each(
    Seq(
      "delta.appendOnly" -> "true",
      "delta.enableTypeWidening" -> "true",
      "delta.enableInCommitTimestamps" -> "true",
      "delta.checkpointPolicy" -> "v2",
      "delta.universalFormat.enabledFormats" -> "iceberg",
      "delta.dataSkippingNumIndexedCols" -> "3",
      "delta.enableIcebergWriterCompatV1" -> "TRUE",
      "delta.enableIcebergCompatV2" -> "True",
      "delta.columnMapping.mode" -> "ID",
      "owner" -> "somebody"
    )
  ) { case (key, value) => property(key, value) }

  private def requiredProperties: Ways = table =>
    Seq(
      "delta.enableIcebergWriterCompatV1" -> Seq("false", "yes", "", " true "),
      "delta.enableIcebergCompatV2" -> Seq("false", "yes", "", " true "),
      "delta.columnMapping.mode" -> Seq("name", "none", "uuid", "", " id ")
    )
      .flatMap { case (key, values) =>
        without(key)(table) ++ values.flatMap(property(key, _)(table))
      }

  private def forbiddenProperties: Ways = each(
    Seq(
      "delta.minReaderVersion" -> "2",
      "delta.minWriterVersion" -> "7",
      "delta.constraints.positive" -> "a > 0",
      "Delta.Constraints.positive" -> "a > 0"
    )
  ) { case (key, value) => property(key, value) }

  private def higherMaximum: Ways = table =>
    Seq(1L, 100L).flatMap { more =>
      property(maxColumnId, (maximum(table).max(highest(table)) + more).toString)(table)
    }

  private def otherMaximum: Ways = table =>
    without(maxColumnId)(table) ++ Seq(
      (highest(table) - 1).toString,
      "-1",
      Int.MaxValue.toString,
      (Int.MaxValue + 1L).toString,
      Long.MaxValue.toString,
      "many",
      "",
      s" ${highest(table)} "
    ).flatMap(property(maxColumnId, _)(table))

  private def format: Ways = each(
    Seq(FileFormat("orc", Map.empty), FileFormat("parquet", Map("compression" -> "zstd")))
  ) { format =>
    one(s"format ${format.provider} ${format.options.mkString}")(_.copy(format = format))
  }

  // Protocol

  private val readerWriter: Set[String] = Set(
    "columnMapping",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "typeWidening",
    "typeWidening-preview",
    "catalogManaged",
    "deletionVectors",
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
    "geospatial",
    "geospatial-dev",
    "adaptiveMetadata-preview",
    "redirectReaderWriter-preview"
  )

  private val allowed: Seq[String] = Seq(
    "appendOnly",
    "domainMetadata",
    "vacuumProtocolCheck",
    "v2Checkpoint",
    "inCommitTimestamp",
    "timestampNtz",
    "typeWidening",
    "invariants",
    "changeDataFeed",
    "checkConstraints",
    "identityColumns",
    "generatedColumns"
  )

  private val otherFeatures: Seq[String] = Seq(
    "rowTracking",
    "checkpointProtection",
    "typeWidening-preview",
    "catalogManaged",
    "deletionVectors",
    "allowColumnDefaults",
    "icebergCompatV1",
    "icebergCompatV3",
    "icebergWriterCompatV3",
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
    "geospatial",
    "geospatial-dev",
    "collations",
    "collations-preview",
    "materializePartitionColumns",
    "coordinatedCommits-preview",
    "redirectReaderWriter-preview",
    "redirectWriterOnly-preview",
    "adaptiveMetadata-preview",
    // The protocol's text has this name, and no table.
    "inCommitTimestamps",
    "AppendOnly",
    "DOMAINMETADATA",
    "nobodyKnowsThis",
    ""
  )

  /** The table with a feature more, in a protocol of the shape that this takes. */
  private def supporting(feature: String)(table: TableState): TableState = {
    val writers = table.protocol.writerFeatures.getOrElse(Set.empty) + feature
    val three = table.protocol.minReaderVersion >= 3 || writers.exists(f =>
      readerWriter(f) && f != "columnMapping"
    )
    table.copy(protocol =
      ProtocolState(
        if (three) 3 else 2,
        7,
        Option.when(three)(
          table.protocol.readerFeatures.getOrElse(Set.empty[String]) ++ writers.intersect(
            readerWriter
          )
        ),
        Some(writers)
      )
    )
  }

  private def feature(name: String): Ways = one(s"feature '$name'")(supporting(name))

  private def clustering: Ways =
    one("feature 'clustering'")(t => supporting("clustering")(supporting("domainMetadata")(t)))

  private def atReaderVersionThree: Ways = one("reader version 3")(t =>
    t.copy(protocol =
      t.protocol.copy(
        minReaderVersion = 3,
        readerFeatures =
          Some(t.protocol.readerFeatures.getOrElse(Set.empty[String]) + "columnMapping")
      )
    )
  )

  private def missingFeatures: Ways = each(features.toSeq.sorted) { name =>
    one(s"no feature '$name'")(t =>
      t.copy(protocol =
        t.protocol.copy(
          readerFeatures = t.protocol.readerFeatures.map(_ - name),
          writerFeatures = t.protocol.writerFeatures.map(_ - name)
        )
      )
    )
  }

  private def protocolShapes: Ways = {
    val mapping = Set("columnMapping")
    each(
      Seq(
        ProtocolState(2, 5, None, None),
        ProtocolState(2, 6, None, None),
        ProtocolState(2, 7, None, None),
        ProtocolState(1, 7, None, Some(features)),
        ProtocolState(3, 6, Some(mapping), Some(features)),
        ProtocolState(2, 8, None, Some(features)),
        ProtocolState(3, 8, Some(mapping), Some(features)),
        ProtocolState(4, 7, Some(mapping), Some(features)),
        ProtocolState(3, 7, None, Some(features)),
        ProtocolState(3, 7, Some(Set.empty), Some(features)),
        ProtocolState(3, 7, Some(features), Some(features)),
        ProtocolState(3, 7, Some(features), None),
        ProtocolState(3, 7, Some(mapping + "timestampNtz"), Some(features)),
        ProtocolState(3, 7, Some(mapping), Some(features + "timestampNtz")),
        ProtocolState(3, 7, Some(mapping), Some(features + "typeWidening")),
        ProtocolState(2, 7, None, Some(features + "v2Checkpoint")),
        ProtocolState(2, 7, None, Some(features + "vacuumProtocolCheck")),
        ProtocolState(2, 7, None, Some(features + "typeWidening-preview")),
        ProtocolState(2, 7, None, Some(features + "catalogManaged")),
        ProtocolState(2, 7, Some(Set.empty), Some(features)),
        ProtocolState(2, 7, Some(mapping), Some(features)),
        ProtocolState(2, 7, None, Some(features + "clustering"))
      )
    ) { protocol =>
      one(protocol.toString)(_.copy(protocol = protocol))
    }
  }

  // Types

  private val supported: Seq[DataType] = Seq(
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DecimalType(10, 2),
    StringType,
    BinaryType,
    BooleanType,
    TimestampType,
    DateType
  )

  private val unsupported: Seq[DataType] = Seq(
    ByteType,
    ShortType,
    NullType,
    CalendarIntervalType,
    DayTimeIntervalType(),
    YearMonthIntervalType(),
    VariantType,
    CharType(5),
    VarcharType(5),
    StringType("UTF8_LCASE"),
    new StructType
  )

  /** Schemas with the type at each place a type can have. */
  private def placed(dataType: DataType): Seq[(String, StructType)] = Seq(
    "a column" -> new StructType().add("x", dataType),
    "a nested field" -> new StructType().add("s", new StructType().add("x", dataType)),
    "an element" -> new StructType().add("l", ArrayType(dataType)),
    "a key" -> new StructType().add("m", MapType(dataType, IntegerType)),
    "a value" -> new StructType().add("m", MapType(IntegerType, dataType)),
    "a field in a list in a map" -> new StructType()
      .add("m", MapType(StringType, ArrayType(new StructType().add("x", dataType))))
  )

  // These take the place of a table's own columns, so one base is as good as another.
  private def withTypes(dataTypes: Seq[DataType]): Ways = table =>
    for {
      dataType <- dataTypes
      (place, schema) <- placed(dataType)
    } yield s"${dataType.sql} as $place" -> compliant(schema).copy(protocol = table.protocol)

  private def timestampNtz: Ways = table =>
    withTypes(Seq(TimestampNTZType))(supporting("timestampNtz")(table))

  private def timestampNtzAlone: Ways = table =>
    withTypes(Seq(TimestampNTZType))(
      table.copy(protocol =
        table.protocol.copy(
          readerFeatures = table.protocol.readerFeatures.map(_ - "timestampNtz"),
          writerFeatures = table.protocol.writerFeatures.map(_ - "timestampNtz")
        )
      )
    )

  // Columns

  private def atFields(name: String, which: FoundField => Boolean = _ => true)(
      change: (TableState, FoundField) => TableState
  ): Ways = table =>
    fields(table.schema).filter(which).map { found =>
      s"${found.path.mkString(".")} $name" -> change(table, found)
    }

  private def fieldChange(name: String, which: FoundField => Boolean = _ => true)(
      change: StructField => StructField
  ): Ways =
    atFields(name, which)((table, found) => replaced(table, found)(change))

  private def replaced(table: TableState, found: FoundField)(
      change: StructField => StructField
  ): TableState =
    table.copy(schema = changed(table.schema, found.path)(change))

  private def metadata(field: StructField)(
      change: MetadataBuilder => MetadataBuilder
  ): StructField =
    field.copy(metadata = change(new MetadataBuilder().withMetadata(field.metadata)).build())

  private def allIds(table: TableState): Seq[Long] = fields(table.schema).flatMap { found =>
    found.nestedIds.values.collect { case id: Long => id } ++
      entries(found.metadata).get(columnId).collect { case id: Long => id }
  }

  private def highest(table: TableState): Long = (0L +: allIds(table)).max

  private def maximum(table: TableState): Long =
    table.properties.get(maxColumnId).flatMap(_.toLongOption).getOrElse(0L)

  /** The table with a property that covers all its ids, as far as one may. */
  private def covered(table: TableState): TableState = {
    val max = highest(table).max(maximum(table))
    table.copy(properties = table.properties + (maxColumnId -> max.toString))
  }

  private def compliant(schema: StructType): TableState = covered(of(withIds(schema)))

  /** The field with another id, and all that follows from it. */
  private def renumbered(id: Long)(field: StructField): StructField =
    renamed(s"col-$id")(withId(id)(field))

  /** The field with another physical name, which the keys of its nested ids begin with. */
  private def renamed(name: String)(field: StructField): StructField = {
    val was = FoundField(Nil, field)
    val renamed = named(name)(field)
    val is = FoundField(Nil, renamed)
    val nested = was.nestedKeys.zip(is.nestedKeys).flatMap { case (old, key) =>
      was.nestedIds.get(old).collect { case nestedId: Long => key -> nestedId }
    }
    if (nested.isEmpty) renamed else withNestedIds(nested: _*)(renamed)
  }

  // Changes follow one another: what they build on may be gone.
  private def mapped(found: FoundField): Boolean =
    entries(found.metadata).get(columnId).exists(_.isInstanceOf[Long]) && found.has(physicalName)

  private def holdsCollection(found: FoundField): Boolean =
    mapped(found) && found.nestedKeys.nonEmpty && found.nestedIds.nonEmpty

  private def missingMapping: Seq[Ways] = Seq(
    fieldChange("without id")(withoutId),
    fieldChange("without name")(withoutName),
    fieldChange("without id and name")(field => withoutName(withoutId(field))),
    fieldChange("with a text for an id")(metadata(_)(_.putString(columnId, "1")))
  )

  private def wrongNames: Ways =
    each(
      Seq(
        "col-99",
        "COL-1",
        "col-01",
        "col-1 ",
        "",
        "a",
        "col-5f9c1c4e-9a53-4f0e-b8f7-0a2d1e7d6f11"
      )
    ) { name =>
      fieldChange(s"named '$name'", mapped)(renamed(name))
    }

  private def otherIds: Ways =
    each(Seq(0L, -1L, 2147483447L, 2147483448L, Int.MaxValue.toLong, Int.MaxValue + 1L)) { id =>
      atFields(s"with the id $id", mapped)((table, found) =>
        covered(replaced(table, found)(renumbered(id)))
      )
    }

  private def repeatedIds: Ways = table =>
    fields(table.schema).filter(mapped).flatMap { found =>
      val own = found.metadata.getLong(columnId)
      allIds(table).distinct.filter(_ != own).take(2).map { id =>
        s"${found.path.mkString(".")} with the id $id of another" ->
          replaced(table, found)(renumbered(id))
      }
    }

  private def wrongNestedIds: Seq[Ways] = {
    def rekeyed(found: FoundField)(change: (String, Long) => (String, Any)): StructField = {
      val ids = new MetadataBuilder
      def put(key: String, id: Any) = id match {
        case number: Long => ids.putLong(key, number)
        case text         => ids.putString(key, text.toString)
      }
      found.nestedIds.foreach {
        case (key, id: Long) =>
          val (newKey, newId) = change(key, id)
          put(newKey, newId)
        // A fault that another change made stays one.
        case (key, text) => put(key, text)
      }
      metadata(found.field)(_.putMetadata(nestedIds, ids.build()))
    }
    def nested(name: String)(change: (TableState, FoundField) => StructField): Ways =
      atFields(name, holdsCollection)((table, found) =>
        covered(replaced(table, found)(_ => change(table, found)))
      )
    def lackingOne(found: FoundField) = {
      val (key, _) = found.nestedIds.maxBy(_._1)
      val rest = found.nestedIds.removed(key).toSeq.collect { case (k, id: Long) => k -> id }
      withNestedIds(rest: _*)(found.field)
    }
    def lastId(found: FoundField, lastId: Long) = {
      val last = found.nestedIds.keys.max
      rekeyed(found)((key, id) => key -> (if (key == last) lastId else id))
    }
    Seq(
      fieldChange("without nested ids", holdsCollection)(withoutNestedIds),
      nested("lacking a nested id")((_, found) => lackingOne(found)),
      nested("with nested ids under the older key") { (_, found) =>
        val ids = found.nestedIds.toSeq.collect { case (key, id: Long) => key -> id }
        withNestedIdsUnder("parquet.field.nested.ids", ids: _*)(found.field)
      },
      nested("with nested ids under its logical name") { (_, found) =>
        val name = found.metadata.getString(physicalName)
        rekeyed(found)((key, id) => (found.field.name + key.stripPrefix(name)) -> id)
      },
      nested("with texts for nested ids")((_, found) =>
        rekeyed(found)((key, id) => key -> id.toString)
      ),
      nested("with its own id for nested ids")((_, found) =>
        rekeyed(found)((key, _) => key -> found.metadata.getLong(columnId))
      ),
      nested("with a nested id of 0")((_, found) => lastId(found, 0L)),
      nested("with a reserved nested id")((_, found) => lastId(found, 2147483448L))
    )
  }

  private def strayNestedIds(above: Boolean): Ways =
    atFields(
      s"with a nested id for nothing, ${if (above) "above" else "below"} the maximum",
      mapped
    ) { (table, found) =>
      val max = maximum(table)
      val stray = "col-0.element" -> (if (above) max + 1 else max)
      val ids = found.nestedIds.toSeq.collect { case (key, id: Long) => key -> id } :+ stray
      replaced(table, found)(withNestedIds(ids: _*))
    }

  private val identityKeys =
    Seq("start", "step", "highWaterMark", "allowExplicitInsert").map("delta.identity." + _)

  private def legacyMetadata: Seq[Ways] = {
    def invariant(field: StructField) =
      metadata(field)(_.putString("delta.invariants", """{"expression":{"expression":"a > 0"}}"""))
    def generated(field: StructField) =
      metadata(field)(_.putString("delta.generationExpression", "1"))
    def default(field: StructField) = metadata(field)(_.putString("CURRENT_DEFAULT", "1"))
    def identity(keys: Seq[String])(field: StructField) =
      metadata(field)(keys.foldLeft(_)((all, key) => all.putLong(key, 1L)))
    val identities = identityKeys.toSet
      .subsets()
      .filter(keys => keys.nonEmpty)
      .map(_.toSeq.sorted)
      .toSeq
      .map(keys => (s"identity ${keys.mkString(" ")}", "identityColumns", identity(keys) _))
    val uses = Seq(
      ("delta.invariants", "invariants", invariant _),
      ("delta.generationExpression", "generatedColumns", generated _),
      ("CURRENT_DEFAULT", "allowColumnDefaults", default _)
    ) ++ identities
    uses.flatMap { case (what, feature, change) =>
      Seq(
        fieldChange(s"with $what")(change),
        atFields(s"with $what and the feature")((table, found) =>
          supporting(feature)(replaced(table, found)(change))
        )
      )
    }
  }

  private def leaf(found: FoundField): Boolean = found.field.dataType match {
    case _: StructType | _: ArrayType | _: MapType => false
    case _                                         => true
  }

  private def recording(from: String, to: String, path: Option[String])(
      field: StructField
  ): StructField = {
    val change = new MetadataBuilder().putString("fromType", from).putString("toType", to)
    path.foreach(change.putString("fieldPath", _))
    metadata(field)(_.putMetadataArray("delta.typeChanges", Array(change.build())))
  }

  private val promotions = Seq(
    "integer" -> "long",
    "byte" -> "integer",
    "short" -> "long",
    "byte" -> "short",
    "float" -> "double",
    "decimal(5,2)" -> "decimal(10,2)",
    "long" -> "long"
  )

  private val otherChanges = Seq(
    "decimal(5,2)" -> "decimal(10,4)",
    "decimal(10,2)" -> "decimal(5,2)",
    "integer" -> "double",
    "integer" -> "decimal(10,0)",
    "date" -> "timestamp_ntz",
    "long" -> "integer",
    "integer" -> "string",
    "nobodyKnowsThis" -> "nobodyKnowsThis",
    "nobodyKnowsThis" -> "long"
  )

  private def typeChanges(changes: Seq[(String, String)], features: Option[String]*)(
      where: (FoundField => Boolean, Option[String])
  ): Ways = {
    val (which, part) = where
    each(features) { feature =>
      each(changes) { case (from, to) =>
        atFields(
          s"${part.mkString} changed from $from to $to with '${feature.mkString}'",
          which
        )((table, found) =>
          feature.foldLeft(replaced(table, found)(recording(from, to, part)))((t, name) =>
            supporting(name)(t)
          )
        )
      }
    }
  }

  private def outsideKeys(found: FoundField): Boolean = leaf(found) && !found.belowMapKey

  private def belowKeys(found: FoundField): Boolean = leaf(found) && found.belowMapKey

  private def listOfInts(found: FoundField): Boolean = found.field.dataType match {
    case ArrayType(IntegerType, _) => !found.belowMapKey
    case _                         => false
  }

  private def mapOfInts(found: FoundField): Boolean = found.field.dataType match {
    case MapType(IntegerType, _, _) => true
    case _                          => false
  }

  private def promoted(features: Option[String]*): Seq[Ways] =
    Seq(outsideKeys _ -> None, listOfInts _ -> Some("element"))
      .map(typeChanges(promotions, features: _*)(_))

  private def promotedKeys: Seq[Ways] =
    Seq(belowKeys _ -> None, mapOfInts _ -> Some("key"))
      .map(typeChanges(promotions, None, Some("typeWidening"))(_))

  private def otherwiseChanged: Seq[Ways] = {
    val features = Seq(None, Some("typeWidening"), Some("typeWidening-preview"))
    Seq(leaf _ -> None, listOfInts _ -> Some("element"), mapOfInts _ -> Some("key"))
      .map(typeChanges(otherChanges, features: _*)(_))
  }

  private def unreadableChanges: Ways =
    fieldChange("with a text for type changes", leaf)(
      metadata(_)(_.putString("delta.typeChanges", "x"))
    )

  private def foreignMetadata: Seq[Ways] = Seq(
    fieldChange("with a comment")(_.withComment("It's a column.")),
    fieldChange("with metadata of its user") { field =>
      metadata(field)(
        _.putLong("rank", 1).putBoolean("pii", true).putStringArray("tags", Array("x"))
      )
    }
  )

  private def largeNumbers: Ways = fieldChange("with a list of large numbers of its user")(
    metadata(_)(_.putLongArray("hashes", Array(3000000000L)))
  )

  private def required: Ways = fieldChange("NOT NULL")(_.copy(nullable = false))

  // Added columns

  private def plus(name: String, dataType: DataType)(table: TableState): TableState = {
    val id = highest(table).max(maximum(table)) + 1
    covered(table.copy(schema = table.schema.add(renumbered(id)(StructField(name, dataType)))))
  }

  private def partitioned: Ways = each(supported.filterNot(_.isInstanceOf[DecimalType])) { dataType =>
    one(s"partitioned by a ${dataType.sql}")(t =>
      plus(s"p${t.schema.size}", dataType)(t)
        .copy(partitionColumns = t.partitionColumns :+ s"p${t.schema.size}")
    )
  }

  private def otherPartitioning: Seq[Ways] = Seq(
    one("partitioned by P, which is P")(t =>
      plus("P", IntegerType)(t).copy(partitionColumns = Seq("P"))
    ),
    one("partitioned by P, which is p")(t =>
      plus("p", IntegerType)(t).copy(partitionColumns = Seq("P"))
    ),
    one("partitioned by p, which is P")(t =>
      plus("P", IntegerType)(t).copy(partitionColumns = Seq("p"))
    ),
    one("partitioned by nothing there")(_.copy(partitionColumns = Seq("nothing"))),
    one("partitioned by a decimal")(t =>
      plus("p", DecimalType(10, 2))(t).copy(partitionColumns = Seq("p"))
    ),
    table =>
      table.schema.fields.toSeq
        .filterNot(field => leaf(FoundField(Nil, field)))
        .map(field =>
          s"partitioned by ${field.dataType.typeName}" ->
            table.copy(partitionColumns = Seq(field.name.toLowerCase))
        )
  )

  private def otherNames: Seq[Ways] = Seq(
    table =>
      fields(table.schema).headOption.toSeq.map { found =>
        s"${found.path.head} twice" -> plus(found.path.head.toUpperCase, IntegerType)(table)
      },
    table =>
      fields(table.schema).filter(_.path.size == 2).map { found =>
        s"a column called ${found.path.mkString(".")}" ->
          plus(found.path.mkString("."), IntegerType)(table)
      },
    table =>
      fields(table.schema).filter(_.path.size > 2).map { found =>
        val name = s"${found.path.head}.${found.path.last.toUpperCase}"
        s"a column called $name" -> plus(name, IntegerType)(table)
      },
    one("a column called x.y.z")(plus("x.y.z", IntegerType)),
    one("a column called col-7")(plus("col-7", IntegerType)),
    one("a new table's column _file")(t =>
      plus("_file", StringType)(t).copy(lifecycle = Lifecycle.Creating(replacing = false))
    ),
    one("an old table's column _file")(plus("_file", StringType))
  )

  private def emptyTable: Ways =
    one("no columns and no maximum")(t =>
      of(new StructType).copy(protocol = t.protocol, properties = properties)
    )

  private def harmless: Seq[Ways] = Seq(
    switchesOff,
    otherProperties,
    higherMaximum,
    each(allowed)(feature),
    clustering,
    atReaderVersionThree,
    partitioned,
    required
  ) ++ foreignMetadata ++ promoted(Some("typeWidening")) :+ strayNestedIds(above = false)

  private def suspect: Seq[Ways] = Seq(
    switchesOn,
    requiredProperties,
    forbiddenProperties,
    otherMaximum,
    format,
    each(otherFeatures)(feature),
    missingFeatures,
    protocolShapes,
    withTypes(supported),
    withTypes(unsupported),
    timestampNtz,
    timestampNtzAlone,
    wrongNames,
    otherIds,
    repeatedIds,
    strayNestedIds(above = true),
    unreadableChanges,
    largeNumbers,
    emptyTable
  ) ++ promoted(
    None
  ) ++ promotedKeys ++ otherwiseChanged ++ missingMapping ++ wrongNestedIds ++ legacyMetadata ++ otherPartitioning ++ otherNames
}

/** Random schemas of a few columns, up to depth four. */
object RandomSchemas {

  private val primitives =
    Seq(
      "INT",
      "BIGINT",
      "FLOAT",
      "DOUBLE",
      "STRING",
      "BINARY",
      "BOOLEAN",
      "DATE",
      "TIMESTAMP",
      "DECIMAL(9, 2)"
    )

  def schema(random: Random): StructType = {
    def dataType(depth: Int): String =
      if (depth == 0) primitives(random.nextInt(primitives.size))
      else
        random.nextInt(5) match {
          case 0 => s"STRUCT<${columns(depth - 1)}>"
          case 1 => s"ARRAY<${dataType(depth - 1)}>"
          case 2 => s"MAP<${dataType(depth - 1)}, ${dataType(depth - 1)}>"
          case _ => dataType(0)
        }
    def columns(depth: Int): String =
      (1 to 1 + random.nextInt(3)).map(i => s"c$i ${dataType(depth)}").mkString(", ")
    StructType.fromDDL(columns(4))
  }
}
