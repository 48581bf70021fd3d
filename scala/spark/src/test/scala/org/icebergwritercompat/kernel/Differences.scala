package org.icebergwritercompat.kernel

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{FileFormat, Lifecycle, Profile, TableState}
import org.icebergwritercompat.kernel.SchemaWalk._

import scala.util.Try

/**
 * A way in which Kernel's check and ours differ, and why that is as it should be.
 *
 * @param matches
 *   whether a table is of this kind, decided by the table alone
 */
final case class Difference(name: String, why: String, matches: TableState => Boolean)

/** Every difference there is. */
object Differences {

  private val maxColumnId = "delta.columnMapping.maxColumnId"

  private val mustBeOff = Seq(
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV3",
    "delta.enableDeletionVectors",
    "delta.enableChangeDataFeed",
    "delta.enableRowTracking"
  )

  private val writerOnly = Set("icebergCompatV2", "icebergWriterCompatV1")

  private val readerWriter = Set(
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "typeWidening",
    "typeWidening-preview",
    "catalogManaged"
  )

  private val needed = Seq(
    "clustering" -> "domainMetadata",
    "rowTracking" -> "domainMetadata",
    "catalogManaged" -> "inCommitTimestamp"
  )

  private def isOnAList(table: TableState, feature: String): Boolean =
    feature == "clustering" || table.profile == Profile.RfcCurrent

  private val knownByKernel = Set("appendOnly", "domainMetadata")

  private def features(table: TableState): Set[String] =
    table.protocol.readerFeatures.getOrElse(Set.empty[String]) ++
      table.protocol.writerFeatures.getOrElse(Set.empty[String])

  private def property(table: TableState, key: String): Option[String] = table.properties.get(key)

  private def isTrue(value: String): Boolean = value.equalsIgnoreCase("true")

  private def fieldsOf(table: TableState): Seq[FoundField] = fields(table.schema)

  private def columnIds(table: TableState): Seq[Long] =
    fieldsOf(table).flatMap(found => entries(found.metadata).get(columnId)).collect {
      case id: Long => id
    }

  /** The nested ids that belong to something. */
  private def idsOfNested(table: TableState): Seq[Long] =
    fieldsOf(table).flatMap(found => found.nestedKeys.flatMap(found.nestedIds.get)).collect {
      case id: Long => id
    }

  private def usedIds(table: TableState): Seq[Long] = columnIds(table) ++ idsOfNested(table)

  private def writtenIds(table: TableState): Seq[Long] =
    columnIds(table) ++ fieldsOf(table).flatMap(_.nestedIds.values).collect { case id: Long => id }

  private def maximum(table: TableState): Long =
    property(table, maxColumnId).flatMap(_.toLongOption).getOrElse(0L)

  /** Whether Kernel can read the maximum, or take it for 0. */
  private def hasPlausibleMaximum(table: TableState): Boolean =
    property(table, maxColumnId).forall(_.toIntOption.exists(_ >= 0))

  private def isLegacyKey(key: String): Boolean =
    key == "delta.invariants" || key == "delta.generationExpression" ||
      key.startsWith("delta.identity.")

  private def legacyKeys(found: FoundField): Set[String] =
    entries(found.metadata).keySet.filter(isLegacyKey)

  private def lacksMapping(found: FoundField): Boolean =
    !found.has(columnId) && !found.has(physicalName) ||
      found.nestedKeys.exists(key => !found.nestedIds.contains(key))

  private def duplicates[A](values: Seq[A]): Boolean = values.distinct.size != values.size

  private def isCollated(dataType: DataType): Boolean = dataType match {
    case _: CharType | _: VarcharType => false
    case string: StringType           => string.collationId != StringType.collationId
    case _                            => false
  }

  /** Whether versions or lists are such as no writer may write. */
  private def hasWrongShape(table: TableState): Boolean = {
    val protocol = table.protocol
    val readers = protocol.readerFeatures.getOrElse(Set.empty[String])
    val writers = protocol.writerFeatures.getOrElse(Set.empty[String])
    lazy val wrongReader =
      if (protocol.minReaderVersion < 3)
        protocol.minReaderVersion == 2 &&
        (protocol.readerFeatures.isDefined || writers.intersect(readerWriter).nonEmpty)
      else
        readers("columnMapping") &&
        (readers.intersect(writerOnly).nonEmpty || !readers.subsetOf(writers) ||
          !writers.intersect(readerWriter).subsetOf(readers))
    protocol.minWriterVersion > 7 ||
    protocol.minWriterVersion == 7 && writerOnly.subsetOf(writers) && wrongReader
  }

  /** A type change that the metadata of a column records. */
  private final case class TypeChange(from: String, to: String, ofMapKey: Boolean) {

    def isReadable: Boolean = from != "nobodyKnowsThis"

    def isPromotion: Boolean = (from, to) match {
      case ("byte", "short" | "integer" | "long") | ("short", "integer" | "long") => true
      case ("integer", "long") | ("float", "double")                              => true
      case ("decimal(5,2)", "decimal(10,2)")                                      => true
      case _ => from == to && isReadable
    }

    /** Whether the type is another in Iceberg too, which has neither byte nor short. */
    def isSeenByIceberg: Boolean = {
      def inIceberg(name: String) = if (Set("byte", "short")(name)) "integer" else name
      inIceberg(from) != inIceberg(to)
    }
  }

  private def recordedChanges(table: TableState): Seq[TypeChange] = for {
    found <- fieldsOf(table) if found.has("delta.typeChanges")
    change <- Try(found.metadata.getMetadataArray("delta.typeChanges").toSeq).getOrElse(Nil)
  } yield TypeChange(
    change.getString("fromType"),
    change.getString("toType"),
    found.belowMapKey || Try(change.getString("fieldPath")).toOption.contains("key")
  )

  /** The full names of all fields, elements, keys and values, in the case they have. */
  private def fullNames(table: TableState): Seq[String] = {
    def below(dataType: DataType, path: Seq[String]): Seq[Seq[String]] = dataType match {
      case struct: StructType =>
        struct.fields.toSeq.flatMap { field =>
          val here = path :+ field.name
          here +: below(field.dataType, here)
        }
      case array: ArrayType =>
        val here = path :+ "element"
        here +: below(array.elementType, here)
      case map: MapType =>
        val (key, value) = (path :+ "key", path :+ "value")
        (key +: below(map.keyType, key)) ++ (value +: below(map.valueType, value))
      case _ => Nil
    }
    below(table.schema, Nil).map(_.mkString("."))
  }

  /** The names that leave out the element or value above a struct's fields. */
  private def shortNames(table: TableState): Seq[String] = {
    def collection(part: String, dataType: DataType, path: Seq[String]): Seq[Seq[String]] = {
      val here = path :+ part
      here +: below(
        dataType,
        if (dataType.isInstanceOf[StructType] && part != "key") path else here
      )
    }
    def below(dataType: DataType, path: Seq[String]): Seq[Seq[String]] = dataType match {
      case struct: StructType =>
        struct.fields.toSeq.flatMap { field =>
          val here = path :+ field.name
          here +: below(field.dataType, here)
        }
      case array: ArrayType => collection("element", array.elementType, path)
      case map: MapType     =>
        collection("key", map.keyType, path) ++ collection("value", map.valueType, path)
      case _ => Nil
    }
    below(table.schema, Nil).map(_.mkString("."))
  }

  private def indexNames(table: TableState): Seq[String] = {
    val full = fullNames(table)
    (full ++ shortNames(table).distinct.diff(full.distinct)).map(_.toLowerCase)
  }

  val all: Seq[Difference] = Seq(
    Difference(
      "the feature is off",
      "Kernel's check begins by asking whether the property is on, and has nothing to say about " +
        "other tables. Ours leaves that question to whoever asks it: the guard asks nothing of a " +
        "table without the property, and a report on such a table must say that it is not on.",
      table => !property(table, "delta.enableIcebergWriterCompatV1").exists(isTrue)
    ),
    Difference(
      "features of later revisions",
      "Kernel follows the RFC as it stands today, which lets these features stay while they are " +
        "not in use. The text we are built on names row tracking as one that may not even be " +
        "supported, and does not list the others. The profile rfc-current is Kernel's view; under " +
        "it these states do not differ.",
      table =>
        table.profile == Profile.Rfc && features(table)
          .intersect(
            Set("rowTracking", "checkpointProtection", "typeWidening-preview", "catalogManaged")
          )
          .nonEmpty && !hasWrongShape(table) && recordedChanges(table).forall(_.isPromotion)
    ),
    Difference(
      "features in other letters",
      "Kernel looks features up ignoring case; names in the protocol action are exact. A reader " +
        "that does not know AppendOnly must refuse the table, so a writer must not leave it there.",
      table =>
        features(table).exists(feature =>
          knownByKernel.exists(known => known != feature && known.equalsIgnoreCase(feature))
        )
    ),
    Difference(
      "the shape of the protocol",
      "Kernel's check asks only whether a feature counts as supported. Versions above those that " +
        "the RFC names, a list for readers below version 3 and lists that contradict each other " +
        "are illegal by PROTOCOL.md, and some readers refuse them; Kernel never writes such a " +
        "protocol itself, but a check on what anybody wrote has to look.",
      hasWrongShape
    ),
    Difference(
      "column mapping unlisted",
      "At reader version 2 Kernel takes column mapping for supported whatever the lists say. " +
        "PROTOCOL.md wants it in writerFeatures of a table with writer version 7: a writer that " +
        "goes by the list does not know that columns are mapped.",
      table => {
        val writers = table.protocol.writerFeatures.getOrElse(Set.empty[String])
        table.protocol.minReaderVersion == 2 && table.protocol.minWriterVersion == 7 &&
        writerOnly.subsetOf(writers) && !writers("columnMapping")
      }
    ),
    Difference(
      "features without what they need",
      "PROTOCOL.md requires domainMetadata of clustering and of row tracking, which keep their state " +
        "there, and inCommitTimestamp of catalogManaged. Kernel adds what a feature needs when it " +
        "adds the feature, and does not check it later.",
      table =>
        !hasWrongShape(table) && needed.exists { case (feature, other) =>
          isOnAList(table, feature) && features(table)(feature) && !features(table)(other)
        }
    ),
    Difference(
      "switches that are neither on nor off",
      "To Kernel every value but true means off. The RFC asks that the change data feed be absent " +
        "or disabled, and another engine may read `yes` or `1` as on, or refuse the table, as " +
        "Delta Spark does. What is not known to be off is refused.",
      table =>
        mustBeOff.exists(key =>
          property(table, key).exists(value => !isTrue(value) && !value.equalsIgnoreCase("false"))
        )
    ),
    Difference(
      "deletion vectors switched on without the feature",
      "Kernel looks for the feature, which its own transactions add as soon as the property is on. " +
        "PROTOCOL.md requires of IcebergCompatV2 that the property is not true, and any writer " +
        "that honours it would write deletion vectors next.",
      table => property(table, "delta.enableDeletionVectors").exists(isTrue)
    ),
    Difference(
      "protocol versions among the properties",
      "These two are inputs of statements that create tables. In the log they claim a protocol " +
        "that need not be the table's; Kernel does not look at them.",
      table =>
        Seq("delta.minReaderVersion", "delta.minWriterVersion").exists(table.properties.contains)
    ),
    Difference(
      "check constraints in other letters",
      "Delta Spark finds constraints whatever the letters of the prefix, and Iceberg writers check " +
        "none. Kernel compares the prefix as it is.",
      table =>
        table.properties.keys.exists(key =>
          key.toLowerCase.startsWith("delta.constraints.") && !key.startsWith("delta.constraints.")
        )
    ),
    Difference(
      "files that are not Parquet",
      "PROTOCOL.md has no other format and no options, and each data file in Iceberg's metadata " +
        "names its format. Kernel reads and writes Parquet whatever the metadata says.",
      table => table.format != FileFormat.Parquet
    ),
    Difference(
      "collated strings without the feature",
      "The RFC rules collations out. Kernel relies on the feature for that, which its own " +
        "transactions add for such a column, and takes a collated string for a string.",
      // Of a map's key Kernel refuses it when it reads the schema.
      table =>
        types(table.schema).exists(isCollated) && !types(table.schema).exists {
          case map: MapType => isCollated(map.keyType)
          case _            => false
        }
    ),
    Difference(
      "timestamps without time zone, and without the feature",
      "PROTOCOL.md makes timestampNtz a condition for such a column. Kernel's transactions add it, " +
        "so its check takes it for granted.",
      table => types(table.schema).contains(TimestampNTZType) && !features(table)("timestampNtz")
    ),
    Difference(
      "structs without fields",
      "Neither text forbids them, but Parquet has no group without fields and Iceberg's writer " +
        "fails on one, so no row could be written. Kernel lets them be created.",
      table =>
        types(table.schema).tail.exists {
          case struct: StructType => struct.isEmpty
          case _                  => false
        }
    ),
    Difference(
      "legacy features inside lists and maps",
      "The RFC's test is that no column includes the key. Kernel does not look inside lists and " +
        "maps, because Delta allows no such use there; a check on what anybody wrote has to look " +
        "everywhere, and a use at an unexpected place is no less a use.",
      table => fieldsOf(table).exists(found => found.inCollection && legacyKeys(found).nonEmpty)
    ),
    Difference(
      "identity columns with nothing but a high water mark",
      "The RFC lists four keys, any of which makes the feature active. Kernel asks for the other " +
        "three and does not count this one.",
      table =>
        fieldsOf(table).exists(found =>
          !found.inCollection && legacyKeys(found) == Set("delta.identity.highWaterMark")
        )
    ),
    Difference(
      "column defaults",
      "The RFC rules the feature out, and a table without it may not have the key. Kernel refuses " +
        "the feature but does not look for the key.",
      table =>
        fieldsOf(table).exists(_.has("CURRENT_DEFAULT")) && !features(table)("allowColumnDefaults")
    ),
    Difference(
      "ids given twice",
      "PROTOCOL.md wants ids unique over the whole schema, nested ids included, and Iceberg finds " +
        "columns by nothing else. Kernel notices when it writes a Parquet file, not in its check.",
      table => duplicates(usedIds(table))
    ),
    Difference(
      "ids out of range",
      "Iceberg gives out ids from 1 and keeps those above 2147483447 for its own columns. Kernel's " +
        "check has no limits below 32 bits.",
      table =>
        usedIds(table).exists(id => id < 1 || id > 2147483447L && id <= Int.MaxValue) ||
          idsOfNested(table).exists(_ > 2147483447L)
    ),
    Difference(
      "missing ids",
      "Kernel gives ids to what has none, even in a table that exists, and raises the maximum, " +
        "instead of refusing. Our guard does the same for what a statement adds, before the rules " +
        "see it; the rules judge what is about to be committed, in which nothing may be missing. " +
        "Another test shows that both accept what Kernel puts in place.",
      table =>
        fieldsOf(table).nonEmpty && hasPlausibleMaximum(table) &&
          fieldsOf(table).forall(found => found.has(columnId) == found.has(physicalName)) &&
          (fieldsOf(table).exists(lacksMapping) || usedIds(table).exists(_ > maximum(table)))
    ),
    Difference(
      "nested ids that are no numbers",
      "Kernel looks whether there is an entry, not what it holds, and fails later when it writes " +
        "a file. PROTOCOL.md wants a 32 bit integer.",
      table =>
        fieldsOf(table).exists(found =>
          found.nestedKeys.flatMap(found.nestedIds.get).exists(!_.isInstanceOf[Long])
        )
    ),
    Difference(
      "an id for nothing, above the maximum",
      "Kernel counts every number it finds among the nested ids. An entry that belongs to no " +
        "element, key or value is no id of the table, and Iceberg never sees it: refusing would " +
        "forbid a legal table.",
      table =>
        hasPlausibleMaximum(table) &&
          usedIds(table).forall(_ <= maximum(table)) &&
          writtenIds(table).exists(_ > maximum(table))
    ),
    Difference(
      "no maximum in a table without columns",
      "PROTOCOL.md wants the property whenever columns are mapped; Kernel takes its absence for 0.",
      table => fieldsOf(table).isEmpty && !table.properties.contains(maxColumnId)
    ),
    Difference(
      "names that Iceberg cannot tell apart",
      "Iceberg's index of full names throws for a column `a.b` beside a struct `a` with a field " +
        "`b`, and its index in lower case for names equal but for case, among them short names such " +
        "as `l.x` for `l.element.x`. Delta's statements forbid much of the second, and so does " +
        "Kernel where it takes a schema from its user; its check of the feature does not look at " +
        "names.",
      table => duplicates(indexNames(table))
    ),
    Difference(
      "names of Iceberg's metadata columns in a new table",
      "Iceberg's Spark integration rejects queries of tables with such a column. The check of " +
        "Kernel does not concern itself with names.",
      table =>
        table.lifecycle.isInstanceOf[Lifecycle.Creating] && table.schema.fieldNames
          .exists(Set("_file", "_pos", "_deleted", "_spec_id", "_partition"))
    ),
    Difference(
      "recorded type changes without the feature",
      "Kernel looks at recorded changes only while a type widening feature is supported. The older " +
        "files are there whatever the protocol says, and Iceberg cannot read them with such a type.",
      table =>
        features(table).intersect(Set("typeWidening", "typeWidening-preview")).isEmpty &&
          recordedChanges(table).forall(_.isReadable) &&
          recordedChanges(table).exists(!_.isPromotion)
    ),
    Difference(
      "recorded promotions of map keys",
      "Iceberg changes nothing at or below the key of a map, not even an int to a long, so its " +
        "metadata could not tell how the table came to be. Kernel takes what is allowed elsewhere " +
        "for allowed here; later texts of the RFC forbid changes of struct keys in a transaction.",
      table =>
        recordedChanges(table).forall(_.isPromotion) &&
          recordedChanges(table).exists(change => change.ofMapKey && change.isSeenByIceberg)
    ),
    Difference(
      "partition columns with capital letters",
      "A mistake in Kernel 4.4.0: it puts the names of partition columns in lower case and then " +
        "looks for them in the schema as they are, so it refuses, and cannot even append to, every " +
        "table that is partitioned by a column with a capital letter. Such tables are legal.",
      table =>
        table.partitionColumns.exists(name =>
          table.schema.fieldNames.contains(name) &&
            !table.schema.fieldNames.contains(name.toLowerCase)
        )
    ),
    Difference(
      "partition columns in other letters than the schema's",
      "The same mistake the other way round: Kernel accepts the name P for a column p. Delta Spark " +
        "looks for the exact name, and cannot load such a table.",
      table =>
        table.partitionColumns.exists(name =>
          !table.schema.fieldNames.contains(name) &&
            table.schema.fieldNames.contains(name.toLowerCase)
        )
    ),
    Difference(
      "a maximum that leaves no id",
      "Iceberg keeps the ids above 2147483447 for columns of its own, so a maximum above can never " +
        "have been given out. Kernel asks only whether it is a number of 32 bits.",
      table =>
        property(table, maxColumnId).flatMap(_.toIntOption).exists(_ > 2147483447) &&
          usedIds(table).forall(_ <= 2147483447)
    ),
    Difference(
      "partition columns of decimals",
      "Iceberg and PROTOCOL.md allow them, and so does Kernel. Delta Spark 4.4.0 refuses them under " +
        "IcebergCompatV2 by a mistake of its own, so ours refuses first, with a text that says so.",
      table =>
        table.schema.exists(field =>
          field.dataType.isInstanceOf[DecimalType] &&
            table.partitionColumns.exists(_.equalsIgnoreCase(field.name))
        )
    ),
    Difference(
      "lists of large numbers in a user's own metadata",
      "A mistake in Kernel 4.4.0: it cannot read a schema where a column's metadata has a list of " +
        "numbers that begins with one above 32 bits. PROTOCOL.md sets no limit to such metadata.",
      table => fieldsOf(table).exists(_.has("hashes"))
    )
  )
}
