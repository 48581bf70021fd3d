package org.icebergwritercompat.remedy

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.SerializerProvider
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.module.SimpleModule
import com.fasterxml.jackson.databind.ser.std.StdSerializer

/** A remedy as JSON: its kind, and its statements in SQL, in Python and as commands. */
object RemedyJson extends StdSerializer[Remedy](classOf[Remedy]) {

  override def serialize(
      remedy: Remedy,
      json: JsonGenerator,
      provider: SerializerProvider
  ): Unit = {
    json.writeStartObject()
    json.writeStringField("kind", remedy.kind.name)
    Seq("sql" -> remedy.sql, "python" -> remedy.python, "command" -> remedy.command).foreach {
      case (name, statements) =>
        json.writeFieldName(name)
        json.writeArray(statements.toArray, 0, statements.length)
    }
    json.writeEndObject()
  }

  private val mapper =
    JsonMapper.builder().addModule(new SimpleModule().addSerializer(this)).build()

  /** The text of a remedy. */
  def of(remedy: Remedy): String = mapper.writeValueAsString(remedy)
}
