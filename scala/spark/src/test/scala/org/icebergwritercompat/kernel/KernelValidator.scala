package org.icebergwritercompat.kernel

import io.delta.kernel.internal.actions.{Format, Metadata, Protocol}
import io.delta.kernel.internal.icebergcompat.IcebergWriterCompatV1MetadataValidatorAndUpdater.validateAndUpdateIcebergWriterCompatV1Metadata
import io.delta.kernel.internal.types.DataTypeJsonSerDe
import io.delta.kernel.internal.util.VectorUtils
import io.delta.kernel.types.StringType
import org.apache.spark.sql.types.{DataType, StructType}
import org.icebergwritercompat.contract.{ProtocolState, TableState}

import java.util.Optional
import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._
import scala.util.{Failure, Success, Try}

/** What Kernel says to one version of an existing table. */
sealed trait KernelVerdict

object KernelVerdict {

  /** The version may be committed as it is. */
  case object Accepts extends KernelVerdict

  /** Kernel would commit another version in its place. */
  final case class Mends(instead: TableState) extends KernelVerdict

  /** The version may not be committed, or cannot even be read. */
  final case class Refuses(why: String) extends KernelVerdict
}

/**
 * Delta Kernel's own check of the feature, asked about the states that our rules are asked about.
 */
object KernelValidator {

  def verdict(table: TableState): KernelVerdict = Try(validated(table)) match {
    case Success(None)           => KernelVerdict.Accepts
    case Success(Some(metadata)) => KernelVerdict.Mends(shown(table, metadata))
    case Failure(error)          => KernelVerdict.Refuses(error.toString)
  }

  // An existing table, since of a new one Kernel completes what is missing before it looks.
  private def validated(table: TableState): Option[Metadata] = {
    val protocol = protocolOf(table.protocol)
    validateAndUpdateIcebergWriterCompatV1Metadata(
      false,
      metadataOf(table),
      protocol,
      Optional.of(protocol)
    ).toScala
  }

  private def protocolOf(protocol: ProtocolState): Protocol = new Protocol(
    protocol.minReaderVersion,
    protocol.minWriterVersion,
    protocol.readerFeatures.getOrElse(Set.empty[String]).asJava,
    protocol.writerFeatures.getOrElse(Set.empty[String]).asJava
  )

  private def metadataOf(table: TableState): Metadata = {
    // The way a schema takes through the log: Kernel has to make sense of the text.
    val json = table.schema.json
    new Metadata(
      "00000000-0000-0000-0000-000000000000",
      Optional.empty[String],
      Optional.empty[String],
      new Format(table.format.provider, table.format.options.asJava),
      json,
      DataTypeJsonSerDe.deserializeStructType(json),
      VectorUtils.buildArrayValue(table.partitionColumns.asJava, StringType.STRING),
      Optional.empty[java.lang.Long],
      VectorUtils.stringStringMapValue(table.properties.asJava)
    )
  }

  private def shown(table: TableState, metadata: Metadata): TableState = table.copy(
    properties = metadata.getConfiguration.asScala.toMap,
    schema = DataType.fromJson(metadata.getSchemaString).asInstanceOf[StructType]
  )
}
