package org.icebergwritercompat.kernel

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{FileFormat, Lifecycle, Profile, TableState}
import org.icebergwritercompat.kernel.SchemaWalk._

import scala.util.Try

/**
 * A difference between Kernel's check and the rules of this project, and the reason for it.
 *
 * @param matches
 *   whether a table is of this kind, decided by the table alone
 */
final case class Difference(name: String, why: String, matches: TableState => Boolean)

/** All differences. */
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
      "Kernel checks a table only if the property is on. Here the caller decides that: the guard " +
        "checks no table without the property, and a report on such a table contains a finding " +
        "that the property is not on.",
      table => !property(table, "delta.enableIcebergWriterCompatV1").exists(isTrue)
    ),
    Difference(
      "features of later revisions",
      "Kernel implements the current text of the RFC, which allows these features to be supported " +
        "as long as they are not in use. The text of the profile rfc forbids row tracking even if " +
        "it is only supported, and does not list the others. With the profile rfc-current there " +
        "is no difference.",
      table =>
        table.profile == Profile.Rfc && features(table)
          .intersect(
            Set("rowTracking", "checkpointProtection", "typeWidening-preview", "catalogManaged")
          )
          .nonEmpty && !hasWrongShape(table) && recordedChanges(table).forall(_.isPromotion)
    ),
    Difference(
      "features in other letters",
      "Kernel ignores the case of feature names; names in the protocol action are case-sensitive. " +
        "A reader that does not know AppendOnly must refuse the table, so such a name is a violation.",
      table =>
        features(table).exists(feature =>
          knownByKernel.exists(known => known != feature && known.equalsIgnoreCase(feature))
        )
    ),
    Difference(
      "the shape of the protocol",
      "Kernel checks only whether a feature counts as supported. PROTOCOL.md forbids versions " +
        "above those that the RFC names, reader features below reader version 3, and lists that " +
        "contradict each other; some readers refuse such tables. Kernel does not write such a " +
        "protocol, but another writer may have.",
      hasWrongShape
    ),
    Difference(
      "column mapping unlisted",
      "At reader version 2 Kernel treats column mapping as supported, whatever the lists contain. " +
        "PROTOCOL.md requires it in writerFeatures of a table with writer version 7: a writer that " +
        "reads only the list would not map columns.",
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
      "For Kernel every value except true means off. The RFC requires that the change data feed is " +
        "absent or disabled. Another engine may read `yes` or `1` as on, or refuse the table, as " +
        "Delta Spark does. Values other than true and false are refused here.",
      table =>
        mustBeOff.exists(key =>
          property(table, key).exists(value => !isTrue(value) && !value.equalsIgnoreCase("false"))
        )
    ),
    Difference(
      "deletion vectors switched on without the feature",
      "Kernel checks the feature, which its own transactions add as soon as the property is true. " +
        "PROTOCOL.md requires for IcebergCompatV2 that the property is not true; a writer that " +
        "reads the property would write deletion vectors.",
      table => property(table, "delta.enableDeletionVectors").exists(isTrue)
    ),
    Difference(
      "protocol versions among the properties",
      "These two are options of statements that create tables. As properties in the log they may " +
        "differ from the protocol of the table. Kernel does not check them.",
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
      "PROTOCOL.md defines no other format and no options, and Iceberg's metadata has the format " +
        "of each data file. Kernel reads and writes Parquet, whatever format the metadata has.",
      table => table.format != FileFormat.Parquet
    ),
    Difference(
      "collated strings without the feature",
      "The RFC forbids collations. Kernel checks only the feature, which its own transactions add " +
        "for such a column, and treats a collated string as a string.",
      // Of a map's key Kernel refuses it when it reads the schema.
      table =>
        types(table.schema).exists(isCollated) && !types(table.schema).exists {
          case map: MapType => isCollated(map.keyType)
          case _            => false
        }
    ),
    Difference(
      "timestamps without time zone, and without the feature",
      "PROTOCOL.md requires timestampNtz for such a column. Kernel's transactions add the feature, " +
        "and its check assumes that it is there.",
      table => types(table.schema).contains(TimestampNTZType) && !features(table)("timestampNtz")
    ),
    Difference(
      "structs without fields",
      "Neither specification forbids them, but Parquet has no group without fields and Iceberg's " +
        "writer fails on one, so no row could be written. Kernel allows them to be created.",
      table =>
        types(table.schema).tail.exists {
          case struct: StructType => struct.isEmpty
          case _                  => false
        }
    ),
    Difference(
      "legacy features inside lists and maps",
      "The RFC requires that no column has the key. Kernel does not check fields inside lists and " +
        "maps, because Delta allows no such use there; another writer may have put the key there.",
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
      "The RFC forbids the feature, and a table without it must not have the key. Kernel refuses " +
        "the feature but does not check the key.",
      table =>
        fieldsOf(table).exists(_.has("CURRENT_DEFAULT")) && !features(table)("allowColumnDefaults")
    ),
    Difference(
      "ids given twice",
      "PROTOCOL.md requires unique ids in the whole schema, including nested ids, and Iceberg finds " +
        "columns only by their ids. Kernel fails when it writes a Parquet file, not in its check.",
      table => duplicates(usedIds(table))
    ),
    Difference(
      "ids out of range",
      "Iceberg assigns ids from 1 and reserves those above 2147483447 for its own columns. Kernel " +
        "checks only that an id has 32 bits.",
      table =>
        usedIds(table).exists(id => id < 1 || id > 2147483447L && id <= Int.MaxValue) ||
          idsOfNested(table).exists(_ > 2147483447L)
    ),
    Difference(
      "missing ids",
      "Kernel assigns missing ids, also in an existing table, and raises the maximum, instead of " +
        "refusing. The guard assigns the ids of columns that a statement adds before the rules are " +
        "checked; the rules require that no id is missing in a commit. " +
        "Another test shows that both accept the ids that Kernel assigns.",
      table =>
        fieldsOf(table).nonEmpty && hasPlausibleMaximum(table) &&
          fieldsOf(table).forall(found => found.has(columnId) == found.has(physicalName)) &&
          (fieldsOf(table).exists(lacksMapping) || usedIds(table).exists(_ > maximum(table)))
    ),
    Difference(
      "nested ids that are no numbers",
      "Kernel checks that there is an entry, not its value, and fails later when it writes a file. " +
        "PROTOCOL.md requires a 32-bit integer.",
      table =>
        fieldsOf(table).exists(found =>
          found.nestedKeys.flatMap(found.nestedIds.get).exists(!_.isInstanceOf[Long])
        )
    ),
    Difference(
      "an id for nothing, above the maximum",
      "Kernel includes every number among the nested ids. An entry that belongs to no element, key " +
        "or value is not an id of the table, and is not in Iceberg's schema: the table is legal.",
      table =>
        hasPlausibleMaximum(table) &&
          usedIds(table).forall(_ <= maximum(table)) &&
          writtenIds(table).exists(_ > maximum(table))
    ),
    Difference(
      "no maximum in a table without columns",
      "PROTOCOL.md requires the property if columns are mapped; for Kernel a missing one means 0.",
      table => fieldsOf(table).isEmpty && !table.properties.contains(maxColumnId)
    ),
    Difference(
      "names that Iceberg cannot tell apart",
      "Iceberg's index of full names fails for a column `a.b` beside a struct `a` with a field " +
        "`b`, and its index in lower case for names equal but for case, among them short names such " +
        "as `l.x` for `l.element.x`. Delta's statements forbid most of the second case, and so does " +
        "Kernel for a schema that a user passes; its check of the feature does not check names.",
      table => duplicates(indexNames(table))
    ),
    Difference(
      "names of Iceberg's metadata columns in a new table",
      "Iceberg's Spark integration rejects queries of tables with such a column. Kernel's " +
        "check of the feature does not check names.",
      table =>
        table.lifecycle.isInstanceOf[Lifecycle.Creating] && table.schema.fieldNames
          .exists(Set("_file", "_pos", "_deleted", "_spec_id", "_partition"))
    ),
    Difference(
      "recorded type changes without the feature",
      "Kernel checks recorded changes only if a type widening feature is supported. The older files " +
        "exist in any case, and Iceberg cannot read them with such a type.",
      table =>
        features(table).intersect(Set("typeWidening", "typeWidening-preview")).isEmpty &&
          recordedChanges(table).forall(_.isReadable) &&
          recordedChanges(table).exists(!_.isPromotion)
    ),
    Difference(
      "recorded promotions of map keys",
      "Iceberg does not allow any type change at or below the key of a map, not even int to long. " +
        "Kernel allows the same changes as elsewhere; later texts of the RFC forbid changes of " +
        "struct keys in a transaction.",
      table =>
        recordedChanges(table).forall(_.isPromotion) &&
          recordedChanges(table).exists(change => change.ofMapKey && change.isSeenByIceberg)
    ),
    Difference(
      "partition columns with capital letters",
      "A bug of Kernel 4.4.0: it converts the names of partition columns to lower case and then " +
        "compares them with the schema case-sensitively. So it refuses every table that is " +
        "partitioned by a column with a capital letter, and cannot append to it. Such tables are legal.",
      table =>
        table.partitionColumns.exists(name =>
          table.schema.fieldNames.contains(name) &&
            !table.schema.fieldNames.contains(name.toLowerCase)
        )
    ),
    Difference(
      "partition columns in other letters than the schema's",
      "The opposite effect of the same bug: Kernel accepts the name P for a column p. Delta Spark " +
        "compares case-sensitively, and cannot load such a table.",
      table =>
        table.partitionColumns.exists(name =>
          !table.schema.fieldNames.contains(name) &&
            table.schema.fieldNames.contains(name.toLowerCase)
        )
    ),
    Difference(
      "a maximum that leaves no id",
      "Iceberg reserves the ids above 2147483447 for its own columns, so a higher maximum cannot be " +
        "an id that was assigned. Kernel checks only that it is a 32-bit number.",
      table =>
        property(table, maxColumnId).flatMap(_.toIntOption).exists(_ > 2147483447) &&
          usedIds(table).forall(_ <= 2147483447)
    ),
    Difference(
      "partition columns of decimals",
      "Iceberg and PROTOCOL.md allow them, and so does Kernel. Delta Spark 4.4.0 refuses them under " +
        "IcebergCompatV2 because of a bug, so the guard refuses them before, with a text that says so.",
      table =>
        table.schema.exists(field =>
          field.dataType.isInstanceOf[DecimalType] &&
            table.partitionColumns.exists(_.equalsIgnoreCase(field.name))
        )
    ),
    Difference(
      "lists of large numbers in a user's own metadata",
      "A bug of Kernel 4.4.0: it cannot read a schema where a column's metadata has a list of " +
        "numbers that begins with one above 32 bits. PROTOCOL.md sets no limit to such metadata.",
      table => fieldsOf(table).exists(_.has("hashes"))
    )
  )
}
