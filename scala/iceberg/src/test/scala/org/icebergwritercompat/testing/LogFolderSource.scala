package org.icebergwritercompat.testing

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.{DataType, StructType}
import org.icebergwritercompat.contract.{FileFormat, Lifecycle, ProtocolState, TableState}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.iceberg.publish.Publishing
import org.icebergwritercompat.iceberg.source._
import org.icebergwritercompat.iceberg.target.PathTableOperations

import java.nio.file.{Files, Path => LocalPath}
import scala.jdk.CollectionConverters._

/**
 * A Delta table in a local folder, read from the JSON files of its log: without a Spark session,
 * without Delta's library, and without checkpoints.
 */
final class LogFolderSource(folder: LocalPath) extends DeltaSource {

  override val name: String = s"delta.`$folder`"

  override val root: Path = new Path(folder.toUri)

  override def configuration: Configuration = new Configuration

  /** Publishes the table into its own folder. */
  def publishing: Publishing = {
    def place = new PathTableOperations(name, root, configuration)
    new Publishing(this, _ => place)
  }

  override def newest(): TableAtVersion =
    at(Iterator.from(0).map(_.toLong).takeWhile(v => Files.exists(file(v))).toSeq.last)

  override def at(version: Long): TableAtVersion = new AtVersion(version)

  override def commits(from: Long, to: TableAtVersion): Iterator[DeltaCommit] =
    Iterator.iterate(from)(_ + 1).takeWhile(_ <= to.number).map { number =>
      if (!Files.exists(file(number))) throw new MissingCommit(number)
      val metadata = actions(number).collectFirst { case ("metaData", fields) => fields }
      val state = metadata.map(stateOf(to.asInstanceOf[AtVersion].protocol, _))
      DeltaCommit(
        DeltaVersion(number, timeOf(number), idOf(number)),
        metadata.zip(state).map { case (m, state) =>
          TableDefinition.of(m.get("id").asText, state)
        },
        actions(number).collect { case ("add", add) => added(add) },
        actions(number).collect { case ("remove", remove) =>
          RemovedFile(remove.get("path").asText, remove.get("dataChange").asBoolean)
        },
        state
      )
    }

  private val mapper = new ObjectMapper

  private def file(version: Long): LocalPath =
    folder.resolve("_delta_log").resolve(f"$version%020d.json")

  private def timeOf(version: Long): Long = Files.getLastModifiedTime(file(version)).toMillis

  private def idOf(version: Long): Option[String] =
    Option.when(Files.exists(file(version)))(
      CommitId.of(Files.readAllLines(file(version)).iterator.asScala)
    )

  private def actions(version: Long): Seq[(String, JsonNode)] =
    Files.readAllLines(file(version)).asScala.toSeq.map { line =>
      val entry = mapper.readTree(line).properties.asScala.head
      entry.getKey -> entry.getValue
    }

  private def texts(node: JsonNode): Seq[String] =
    Option(node).toSeq.flatMap(_.asScala.map(_.asText))

  private def textByKey(node: JsonNode): Map[String, String] =
    node.properties.asScala.map(e => e.getKey -> e.getValue.textValue).toMap

  private def added(add: JsonNode): AddedFile = AddedFile(
    add.get("path").asText,
    textByKey(add.get("partitionValues")),
    add.get("size").asLong,
    Option(add.get("stats")).map(_.asText).orNull,
    add.get("dataChange").asBoolean,
    add.has("deletionVector")
  )

  private def stateOf(protocol: JsonNode, metadata: JsonNode): TableState = {
    val properties = textByKey(metadata.get("configuration"))
    def features(key: String): Option[Set[String]] = Option(protocol.get(key)).map(texts(_).toSet)
    TableState(
      name,
      Lifecycle.Changing,
      ProtocolState(
        protocol.get("minReaderVersion").asInt,
        protocol.get("minWriterVersion").asInt,
        features("readerFeatures"),
        features("writerFeatures")
      ),
      properties,
      DataType.fromJson(metadata.get("schemaString").asText).asInstanceOf[StructType],
      texts(metadata.get("partitionColumns")),
      Contracts.of(properties).getOrElse(Contracts.default),
      FileFormat(metadata.at("/format/provider").asText, Map.empty)
    )
  }

  private final class AtVersion(val number: Long) extends TableAtVersion {

    private lazy val all: Seq[(String, JsonNode)] = (0L to number).flatMap(actions)

    private def latest(kind: String): JsonNode =
      all.reverseIterator.collectFirst { case (`kind`, fields) => fields }.get

    lazy val protocol: JsonNode = latest("protocol")

    private lazy val metadata = latest("metaData")

    override def timestamp: Long = timeOf(number)

    override def tableId: String = metadata.get("id").asText

    override def properties: Map[String, String] = textByKey(metadata.get("configuration"))

    override lazy val state: TableState = stateOf(protocol, metadata)

    override lazy val definition: TableDefinition = TableDefinition.of(tableId, state)

    override def totals: FileTotals =
      FileTotals(Some(files.size.toLong), Some(files.map(_.size).sum))

    override def keptMillis: Long = 7L * 24 * 60 * 60 * 1000

    override def live: Iterator[() => AddedFile] = files.iterator.map(file => () => file)

    private lazy val files: Seq[AddedFile] =
      all
        .foldLeft(Map.empty[String, AddedFile]) {
          case (files, ("add", add))       => files + (add.get("path").asText -> added(add))
          case (files, ("remove", remove)) => files - remove.get("path").asText
          case (files, _)                  => files
        }
        .values
        .toSeq

    override def commitId(version: Long): Option[String] =
      Option.when(version <= number)(version).flatMap(idOf)
  }
}
