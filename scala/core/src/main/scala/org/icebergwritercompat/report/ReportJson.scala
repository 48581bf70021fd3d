package org.icebergwritercompat.report

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.{ObjectMapper, PropertyNamingStrategies, SerializerProvider}
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.module.SimpleModule
import com.fasterxml.jackson.databind.ser.std.StdSerializer
import com.fasterxml.jackson.module.scala.DefaultScalaModule
import org.icebergwritercompat.contract.{ActionRule, ChangeRule, FooterRule, Rule, TableRule}
import org.icebergwritercompat.remedy.RemedyJson

/** The JSON of reports, which Python reads; `docs/report.md` describes it. */
object ReportJson {

  /** A report as JSON. */
  def of(report: TableReport): String =
    mapper.writeValueAsString(report)

  /** Several rules as a JSON array. */
  def of(rules: Seq[Rule]): String = mapper.writeValueAsString(rules.map(RuleText.of))

  /** The result of publishing, as JSON. */
  def of(result: PublishResult): String = mapper.writeValueAsString(result)

  /** The state of publishing, as JSON. */
  def of(status: PublishStatus): String = mapper.writeValueAsString(status)

  /** The result of switching the feature on, as JSON. */
  def of(result: UpgradeResult): String = mapper.writeValueAsString(result)

  /** The content of Iceberg metadata, as JSON. */
  def of(published: PublishedTable): String = mapper.writeValueAsString(published)

  /** The columns of a table as a JSON array. */
  def ofColumns(columns: Seq[ColumnFact]): String = mapper.writeValueAsString(columns)

  private final case class RuleText(
      rule: String,
      statement: String,
      why: String,
      clauses: Seq[String],
      checked: String
  )

  private object RuleText {
    def of(rule: Rule): RuleText =
      RuleText(
        rule.id,
        rule.statement,
        rule.why,
        rule.clauses.map(_.toString),
        rule match {
          case _: TableRule  => "table"
          case _: ChangeRule => "change"
          case _: ActionRule => "action"
          case _: FooterRule => "data file"
        }
      )
  }

  private final class NameOf[A](kind: Class[A])(name: A => String) extends StdSerializer[A](kind) {
    override def serialize(value: A, json: JsonGenerator, provider: SerializerProvider): Unit =
      json.writeString(name(value))
  }

  private val names = new SimpleModule()
    .addSerializer(RemedyJson)
    .addSerializer(new NameOf(classOf[Severity])(_.name))
    .addSerializer(new NameOf(classOf[ReportKind])(_.name))
    .addSerializer(new NameOf(classOf[Verdict])(_.name))
    .addSerializer(new NameOf(classOf[PlanMode])(_.name))

  private val mapper: ObjectMapper = JsonMapper
    .builder()
    .addModule(DefaultScalaModule)
    .addModule(names)
    .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
    .build()
}
