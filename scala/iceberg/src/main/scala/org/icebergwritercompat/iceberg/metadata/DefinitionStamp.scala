package org.icebergwritercompat.iceberg.metadata

import org.apache.commons.codec.digest.DigestUtils
import org.apache.iceberg.types.{Type, TypeUtil}
import org.apache.iceberg.types.Types.NestedField
import org.apache.iceberg.{PartitionSpec, Schema, TableMetadata}

import scala.jdk.CollectionConverters._

/**
 * The definition of a table as it was published: the format version, and digests of the columns, of
 * the partitions, and of the properties that publishing sets.
 *
 * It is stored in a property of the table. An Iceberg writer that changes one of these does not
 * change the property, so the two differ.
 */
private[iceberg] final case class DefinitionStamp(
    formatVersion: Int,
    schema: String,
    spec: String,
    properties: String
) {

  override def toString: String =
    Seq(DefinitionStamp.form, s"$formatVersion", schema, spec, properties).mkString(":")
}

private[iceberg] object DefinitionStamp {

  /** The name of the property. */
  val Property = "delta-definition"

  // To be changed when the input of the digests changes, such as the set of properties.
  private val form = "1"

  /**
   * The stamp of metadata.
   *
   * @param properties
   *   all properties of the table, also those that publishing does not set
   */
  def of(metadata: TableMetadata, properties: Map[String, String]): DefinitionStamp =
    DefinitionStamp(
      metadata.formatVersion,
      digest(text(metadata.schema)),
      digest(text(metadata.spec)),
      digest(ours(properties).toSeq.sorted.mkString("\n"))
    )

  private def of(metadata: TableMetadata): DefinitionStamp =
    of(metadata, metadata.properties.asScala.toMap)

  /** The changes of others, as text; empty if the metadata has no stamp. */
  def changes(metadata: TableMetadata): Seq[String] =
    Option(metadata.property(Property, null)).flatMap(parse).toSeq.flatMap { stamp =>
      val now = of(metadata)
      def since[T](was: T, is: T)(what: => Seq[String]): Seq[String] = if (was == is) Nil else what
      since(stamp.schema, now.schema) {
        metadata.schemas.asScala
          .find(schema => digest(text(schema)) == stamp.schema)
          .fold(Seq("other columns"))(changed(_, metadata.schema))
      } ++ since(stamp.spec, now.spec) {
        Seq(s"other partitions (${text(metadata.spec).replace("\n", ", ")})")
      } ++ since(stamp.properties, now.properties) {
        changedProperties(metadata.properties.asScala.toMap)
      } ++ since(stamp.formatVersion, now.formatVersion) {
        Seq(s"format version ${now.formatVersion} instead of ${stamp.formatVersion}")
      }
    }

  /** A text about a format version that others have raised, if they have. */
  def raised(metadata: TableMetadata): Option[String] =
    Option(metadata.property(Property, null))
      .flatMap(parse)
      .filter(_.formatVersion < metadata.formatVersion)
      .map(_ => s"format version ${metadata.formatVersion} cannot be lowered")

  private def parse(text: String): Option[DefinitionStamp] = text.split(':') match {
    case Array(`form`, version, schema, spec, properties) =>
      version.toIntOption.map(DefinitionStamp(_, schema, spec, properties))
    case _ => None
  }

  private def ours(properties: Map[String, String]): Map[String, String] =
    properties.filter { case (key, _) => PublishedMetadata.isSetByPublishing(key) }

  private def changedProperties(properties: Map[String, String]): Seq[String] = {
    val expected = PublishedMetadata.steering
    val found = expected.keys.toSeq.sorted.flatMap { key =>
      properties.get(key) match {
        case None                                  => Some(s"property $key is removed")
        case Some(value) if value != expected(key) => Some(s"property $key is '$value'")
        case _                                     => None
      }
    }
    if (found.isEmpty) Seq("properties of the metrics of columns") else found
  }

  private def changed(ours: Schema, theirs: Schema): Seq[String] = {
    val (before, after) = (columns(ours), columns(theirs))
    val each = (before.keySet ++ after.keySet).toSeq.sorted.flatMap { id =>
      (before.get(id), after.get(id)) match {
        case (Some(was), Some(is)) => Option.when(was != is)(s"column $was is now $is")
        case (was, is)             =>
          was.map(name => s"column $name is dropped").orElse(is.map(n => s"column $n is added"))
      }
    }
    if (each.isEmpty) Seq("another order of columns, or other columns that identify a row")
    else each
  }

  private def columns(schema: Schema): Map[Int, String] =
    fields(schema).map { case (id, field) =>
      val notNull = if (field.isOptional) "" else " NOT NULL"
      val comment = Option(field.doc).fold("")(doc => s" COMMENT '$doc'")
      val kind = if (field.`type`.isPrimitiveType) s"${field.`type`}" else s"${field.`type`.typeId}"
      id -> s"${schema.findColumnName(id)} ${kind.toLowerCase(java.util.Locale.ROOT)}$notNull$comment"
    }

  private def fields(schema: Schema): Map[Int, NestedField] =
    TypeUtil
      .indexById(schema.asStruct)
      .asScala
      .map { case (id, field) => id.intValue -> field }
      .toMap

  // Not Iceberg's own text, which may depend on its version and on the server of a catalog.
  private def text(schema: Schema): String = {
    def shape(kind: Type): String =
      if (kind.isPrimitiveType) s"$kind"
      else kind.asNestedType.fields.asScala.map(_.fieldId).mkString(s"${kind.typeId}(", ",", ")")
    val each = fields(schema).toSeq.sortBy(_._1).map { case (id, field) =>
      s"$id ${field.name} ${field.isOptional} ${shape(field.`type`)} ${field.doc}"
    }
    val identifiers = schema.identifierFieldIds.asScala.toSeq.map(_.intValue).sorted
    (shape(schema.asStruct) +: each :+ identifiers.mkString(",")).mkString("\n")
  }

  private def text(spec: PartitionSpec): String =
    spec.fields.asScala.map(f => s"${f.name}: ${f.transform} of ${f.sourceId}").mkString("\n")

  private def digest(text: String): String = DigestUtils.sha256Hex(text).take(16)
}
