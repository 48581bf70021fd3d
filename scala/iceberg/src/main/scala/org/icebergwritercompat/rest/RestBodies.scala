package org.icebergwritercompat.rest

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper, SerializationFeature}
import org.apache.iceberg.catalog.{Namespace, TableIdentifier}
import org.apache.iceberg.rest.requests._
import org.apache.iceberg.rest.responses._
import org.apache.iceberg.{PartitionSpecParser, SchemaParser, SortOrderParser}

import java.util.{HashMap => JHashMap, Map => JMap}
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * Bodies of requests and answers.
 *
 * Iceberg's parsers are called with text alone: its bundles have a relocated Jackson, so what takes
 * a JSON node cannot be called in all sessions.
 */
private[rest] object RestBodies {

  private val mapper = new ObjectMapper

  /** A body that is none of what the request needs. */
  final class Malformed(message: String, cause: Throwable)
      extends IllegalArgumentException(message, cause)

  private def parsed[T](body: String)(parse: String => T): T =
    try parse(body)
    catch {
      case malformed: Malformed  => throw malformed
      case _: StackOverflowError => throw new Malformed("The JSON is nested too deeply", null)
      case NonFatal(e)           =>
        val why = String.valueOf(e.getMessage).linesIterator.nextOption().getOrElse("")
        throw new Malformed(s"The body of the request cannot be understood: $why", e)
    }

  private def tree[T](body: String)(read: ObjectNode => T): T = parsed(body) { text =>
    mapper.readTree(text) match {
      case json: ObjectNode => read(json)
      case _ => throw new Malformed("The body of the request is no JSON object", null)
    }
  }

  /** A change of a table. */
  def updateTable(body: String): UpdateTableRequest = tree(body) { _ =>
    UpdateTableRequestParser.fromJson(body)
  }

  /** Changes of tables. */
  def transaction(body: String): CommitTransactionRequest = tree(body) { _ =>
    CommitTransactionRequestParser.fromJson(body)
  }

  /** A request for a table, staged or not. */
  def createTable(body: String): CreateTableRequest = tree(body) { json =>
    val schema = SchemaParser.fromJson(needed(json, "schema").toString)
    val builder = CreateTableRequest
      .builder()
      .withName(text(json, "name"))
      .withSchema(schema)
      .setProperties(texts(json, "properties"))
    present(json, "location").foreach(location =>
      builder.withLocation(asText("location", location))
    )
    present(json, "partition-spec").foreach { spec =>
      builder.withPartitionSpec(PartitionSpecParser.fromJson(schema, withId(spec, "spec-id")))
    }
    present(json, "write-order").foreach { order =>
      builder.withWriteOrder(SortOrderParser.fromJson(schema, withId(order, "order-id")))
    }
    if (present(json, "stage-create").exists(_.asBoolean)) builder.stageCreate()
    builder.build()
  }

  // What a client has no id for yet gets one by the catalog.
  private def withId(of: JsonNode, key: String): String = of match {
    case json: ObjectNode if !json.has(key) =>
      val empty = json.path("fields").isEmpty
      json.put(key, if (empty || key == "spec-id") 0 else 1).toString
    case other => other.toString
  }

  /** A request for a namespace. */
  def createNamespace(body: String): CreateNamespaceRequest = tree(body) { json =>
    CreateNamespaceRequest
      .builder()
      .withNamespace(namespace(needed(json, "namespace")))
      .setProperties(texts(json, "properties"))
      .build()
  }

  /** A request to change the properties of a namespace. */
  def updateNamespace(body: String): UpdateNamespacePropertiesRequest = tree(body) { json =>
    val removals = present(json, "removals").toSeq.flatMap(list("removals", _))
    UpdateNamespacePropertiesRequest
      .builder()
      .removeAll(removals.asJava)
      .updateAll(texts(json, "updates"))
      .build()
  }

  /** A request to rename a table. */
  def renameTable(body: String): RenameTableRequest = tree(body) { json =>
    RenameTableRequest
      .builder()
      .withSource(identifier(needed(json, "source")))
      .withDestination(identifier(needed(json, "destination")))
      .build()
  }

  /** A request to give a table a name by its metadata. */
  def registerTable(body: String): RegisterTableRequest = tree(body) { _ =>
    RegisterTableRequestParser.fromJson(body)
  }

  /** A body with the fields of each object in the order of their names; others as they are. */
  def inOrder(body: String): String =
    try sorting.writeValueAsString(mapper.readValue(body, classOf[Object]))
    catch { case _: JsonProcessingException => body }

  private val sorting = new ObjectMapper().enable(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS)

  /** A body that is read only to see that it is JSON. */
  def anything(body: String): Unit = tree(body)(_ => ())

  def json(answer: ListNamespacesResponse): String = listed(answer.nextPageToken) { json =>
    val all = json.putArray("namespaces")
    answer.namespaces.forEach(namespace => levels(all.addArray(), namespace))
  }

  def json(answer: ListTablesResponse): String = listed(answer.nextPageToken) { json =>
    val all = json.putArray("identifiers")
    answer.identifiers.forEach { table =>
      val one = all.addObject()
      levels(one.putArray("namespace"), table.namespace)
      one.put("name", table.name)
    }
  }

  def json(answer: CreateNamespaceResponse): String =
    described(answer.namespace, answer.properties.asScala)

  def json(answer: GetNamespaceResponse): String =
    described(answer.namespace, answer.properties.asScala)

  def json(answer: UpdateNamespacePropertiesResponse): String = {
    val json = mapper.createObjectNode()
    Seq("updated" -> answer.updated, "removed" -> answer.removed, "missing" -> answer.missing)
      .foreach { case (name, keys) =>
        val all = json.putArray(name)
        Option(keys).foreach(_.forEach { key => all.add(key); () })
      }
    json.toString
  }

  private def listed(next: String)(fill: ObjectNode => Unit): String = {
    val json = mapper.createObjectNode()
    Option(next).foreach(json.put("next-page-token", _))
    fill(json)
    json.toString
  }

  private def described(
      namespace: Namespace,
      properties: scala.collection.Map[String, String]
  ): String = {
    val json = mapper.createObjectNode()
    levels(json.putArray("namespace"), namespace)
    val all = json.putObject("properties")
    properties.foreach { case (key, value) => all.put(key, value) }
    json.toString
  }

  private def levels(array: ArrayNode, namespace: Namespace): Unit =
    namespace.levels.foreach(level => array.add(level))

  private def present(json: ObjectNode, name: String): Option[JsonNode] =
    Option(json.get(name)).filterNot(_.isNull)

  private def needed(json: ObjectNode, name: String): JsonNode =
    present(json, name).getOrElse(throw new Malformed(s"The field $name is missing", null))

  private def text(json: ObjectNode, name: String): String = asText(name, needed(json, name))

  private def asText(name: String, json: JsonNode): String =
    if (json.isTextual) json.asText
    else throw new Malformed(s"The field $name is not text, but $json", null)

  private def texts(json: ObjectNode, name: String): JMap[String, String] =
    present(json, name) match {
      // Iceberg asks whether null is a key, which Java's own constant maps do not answer.
      case None                 => new JHashMap
      case Some(of: ObjectNode) =>
        val all = new JHashMap[String, String]
        of.properties.forEach { e => all.put(e.getKey, asText(e.getKey, e.getValue)); () }
        all
      case Some(other) => throw new Malformed(s"The field $name is no JSON object: $other", null)
    }

  private def list(name: String, json: JsonNode): Seq[String] =
    if (json.isArray) json.elements.asScala.map(asText(name, _)).toSeq
    else throw new Malformed(s"The field $name is no list, but $json", null)

  private def namespace(json: JsonNode): Namespace = Namespace.of(list("namespace", json): _*)

  private def identifier(json: JsonNode): TableIdentifier = json match {
    case of: ObjectNode =>
      TableIdentifier.of(namespace(needed(of, "namespace")), text(of, "name"))
    case other => throw new Malformed(s"A table is named by an object, not by $other", null)
  }
}
