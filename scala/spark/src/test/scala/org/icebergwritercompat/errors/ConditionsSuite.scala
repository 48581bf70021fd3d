package org.icebergwritercompat.errors

import com.fasterxml.jackson.core.JsonParser
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.{SparkException, SparkThrowable}
import org.apache.spark.sql.types._
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.bytecode.ClassFiles
import org.icebergwritercompat.contract.{
  ChangeKind,
  Fix,
  FooterRule,
  ProtocolState,
  TableChange,
  TableState,
  Violation
}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.{Condition, DataAction}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.{CompliantTable, DataFiles, FileRules, NameRules}
import org.scalatest.funsuite.AnyFunSuite
import org.icebergwritercompat.iceberg.IcebergLibrary

import java.net.URL
import scala.jdk.CollectionConverters._
import scala.util.Using

class ConditionsSuite extends AnyFunSuite {

  private val mapper =
    new ObjectMapper().enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)

  private def read(url: URL): JsonNode = Using.resource(url.openStream())(mapper.readTree)

  private def keys(node: JsonNode): Seq[String] = node.fieldNames.asScala.toSeq

  private val conditions = read(
    getClass.getResource("/error/iceberg-writer-compat-conditions.json")
  )
  private val violations = conditions.get("DELTA_ICEBERG_WRITER_COMPAT_VIOLATION").get("subClass")

  private def text(node: JsonNode): String =
    node.get("message").asScala.map(_.asText).mkString("\n")

  /** Every condition that can be thrown, with all of its text. */
  private val texts: Seq[(String, String)] = keys(conditions).flatMap { name =>
    val condition = conditions.get(name)
    Option(condition.get("subClass")) match {
      case Some(subs) =>
        keys(subs).map(sub => s"$name.$sub" -> s"${text(condition)} ${text(subs.get(sub))}")
      case None => Seq(name -> text(condition))
    }
  }

  private def parameters(text: String): Set[String] =
    "<([^>]*)>".r.findAllMatchIn(text).map(_.group(1)).toSet

  // Reading the file at all proves that no name in it stands twice.
  test("the names are in order") {
    assert(keys(conditions) == keys(conditions).sorted)
    keys(conditions).flatMap(name => Option(conditions.get(name).get("subClass"))).foreach { subs =>
      assert(keys(subs) == keys(subs).sorted)
    }
  }

  test("every condition has a message and an SQLSTATE, and sub-conditions have none of their own") {
    keys(conditions).foreach { name =>
      val condition = conditions.get(name)
      assert(text(condition).nonEmpty, name)
      assert(condition.path("sqlState").asText.matches("[0-9A-Z]{5}"), name)
      Option(condition.get("subClass")).toSeq.flatMap(_.properties.asScala).foreach { sub =>
        assert(text(sub.getValue).nonEmpty, sub.getKey)
        assert(keys(sub.getValue) == Seq("message"), sub.getKey)
      }
    }
  }

  test("names are in capitals, parameters in camel case") {
    texts.foreach { case (name, text) =>
      assert(name.matches("[A-Z0-9_]+(\\.[A-Z0-9_]+)?"))
      parameters(text).foreach(parameter => assert(parameter.matches("[a-z][a-zA-Z]*"), name))
    }
  }

  test("no name is one of Spark's or of Delta's") {
    val theirs = Seq("error/error-conditions.json", "error/delta-error-classes.json").map { file =>
      val found = getClass.getClassLoader.getResources(file).asScala.toSeq
      assert(found.nonEmpty, file)
      found.flatMap(url => keys(read(url))).toSet
    }
    assert(theirs.forall(_.size > 100))
    theirs.foreach(names => assert(keys(conditions).filter(names) == Nil))
  }

  texts.foreach { case (name, template) =>
    test(s"$name is rendered with its named parameters") {
      val values = parameters(template).map(parameter => parameter -> s"value of $parameter").toMap
      val message = new IcebergWriterCompatException(name, values).getMessage
      assert(message.startsWith(s"[$name] "))
      assert(!message.exists(c => c == '<' || c == '>'))
      values.values.foreach(value => assert(message.contains(value)))
    }

    parameters(template).foreach { missing =>
      test(s"$name cannot be made without <$missing>") {
        val values = (parameters(template) - missing).map(_ -> "x").toMap
        intercept[SparkException](new IcebergWriterCompatException(name, values))
      }
    }
  }

  test("the text of every violation ends with its remedy") {
    keys(violations).foreach { name =>
      assert(text(violations.get(name)).matches("(?s).*\n(Run|Use): <fix>"), name)
    }
  }

  /** The string constants of the project's own classes, by class. */
  private val constants: Map[String, Set[String]] =
    Seq(
      classOf[IcebergWriterCompatException],
      IcebergLibrary.getClass,
      IcebergWriterCompat.getClass
    )
      .flatMap(ClassFiles.inLocationOf)
      .map(file => file.name -> file.strings)
      .toMap

  test("every text has a user") {
    val used = constants.values.flatten.toSet
    texts.map(_._1.split('.').last).foreach { name =>
      assert(used.exists(_.endsWith(name)), name)
    }
  }

  // No test gets to where these are thrown, so the parameters' names are looked for in the code.
  test("every refusal of a session gives all parameters of the text") {
    val subs = conditions.get("ICEBERG_WRITER_COMPAT_NOT_INSTALLED").get("subClass")
    keys(subs).foreach { name =>
      val users = constants.filter { case (_, strings) => strings(name) }
      assert(users.nonEmpty, name)
      users.foreach { case (user, strings) =>
        assert((parameters(text(subs.get(name))) -- strings).isEmpty, s"$name in $user")
      }
    }
  }

  private val conditionObjects: Seq[Condition] =
    classOf[Condition].getClassLoader
      .loadClass(classOf[Condition].getName)
      .getDeclaredClasses
      .toSeq
      .filter(nested => classOf[Condition].isAssignableFrom(nested))
      .map(_.getField("MODULE$").get(null).asInstanceOf[Condition])

  test("every condition object has a text") {
    assert(conditionObjects.size >= 11)
    assert(conditionObjects.map(_.name).filterNot(name => violations.has(name)) == Nil)
  }

  private val table = CompliantTable.of("a INT, l ARRAY<INT>")

  private def column(name: String)(change: StructField => StructField): TableState =
    table.copy(schema = CompliantTable.changed(table.schema, Seq(name))(change))

  private val broken: Seq[TableState] = Seq(
    column("a")(CompliantTable.withId(0)),
    column("a")(CompliantTable.withId(2)),
    column("a")(CompliantTable.named("a")),
    column("a")(CompliantTable.withoutName),
    column("a")(_.copy(dataType = ShortType)),
    column("l")(_.copy(name = "A")),
    table.copy(properties = Map.empty),
    table.copy(partitionColumns = Seq("nowhere")),
    table.copy(protocol = ProtocolState(1, 2, None, None)),
    table.copy(protocol = ProtocolState(2, 7, None, Some(CompliantTable.features + "rowTracking")))
  )

  private val keyed = CompliantTable.of("m MAP<INT, INT>")

  private val changes: Seq[TableChange] = Seq(
    TableChange(table, column("a")(_.copy(dataType = StringType)), ChangeKind.Ordinary),
    TableChange(table, table.copy(properties = Map.empty), ChangeKind.Ordinary),
    TableChange(
      keyed,
      keyed.copy(schema =
        CompliantTable.changed(keyed.schema, Seq("m"))(
          _.copy(dataType = MapType(LongType, IntegerType))
        )
      ),
      ChangeKind.Ordinary
    )
  )

  /** What the rules find in all of these. */
  private val found: Seq[Violation] =
    broken.flatMap(V1.rules.check(_)) ++
      changes.flatMap(V1.rules.check(_)) ++
      V1.rules.check(
        table,
        DataAction.Added(
          "a.parquet",
          Map.empty,
          None,
          hasDeletionVector = true,
          repeated = true,
          size = 742
        )
      ) ++
      FileRules.LiveFilesWereWrittenById.check(table, FileRules.Provenance(1, Some("a.parquet"))) ++
      V1.rules.check(table, DataFiles.file("optional int32 a;")) ++
      V1.rules.check(table, DataFiles.unreadable("it is not there", "no such file"))

  test("the rules meet every condition object") {
    assert(found.map(_.condition).toSet == conditionObjects.toSet)
  }

  private def assertRefusal(error: IcebergWriterCompatException, fix: String): Unit = {
    assert(error.getSqlState == "KD00E")
    assert(error.getMessage.startsWith(s"[${error.getCondition}] "))
    assert(error.getMessage.endsWith(fix))
    assert("<[a-z][a-zA-Z]*>".r.findFirstIn(error.getMessage).isEmpty)
    assert(error.getErrorClass == error.getCondition)
    // The base classes are what PySpark and JDBC clients go by.
    assert((error: Throwable).isInstanceOf[UnsupportedOperationException])
    assert((error: Throwable).isInstanceOf[SparkThrowable])
    ()
  }

  found.distinctBy(v => (v.condition, v.rule.id)).foreach { violation =>
    test(s"${violation.rule.id} and ${violation.condition.name} make a whole error") {
      val error = IcebergWriterCompatException.of(table, violation)
      assertRefusal(error, violation.remedy.text)
      assert(
        error.getCondition == s"DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.${violation.condition.name}"
      )
      assert(
        error.getMessageParameters.asScala.toMap == violation.parameters ++
          Map(
            "table" -> "db.t",
            "rule" -> violation.rule.id,
            "contract" -> "icebergWriterCompatV1",
            "fix" -> violation.remedy.text
          )
      )
    }
  }

  test("a table that cannot be enabled gets all findings in one error") {
    // A copy would lose them, or could not be made by names that differ in their case alone.
    val (lost, kept) = found.partition { violation =>
      violation.rule == NameRules.NamesAreDistinct || violation.rule == NameRules.NoReservedNames ||
      violation.rule.isInstanceOf[FooterRule] && violation.remedy != Fix.copyInto(table)
    }
    val error = IcebergWriterCompatException.notCompliant(table, kept, Fix.copyInto(table))
    assertRefusal(error, Fix.copyInto(table).text)
    kept.foreach(violation => assert(error.getMessage.contains(s"\n- ${violation.summary}")))
    assert(error.getMessageParameters.get("count") == kept.size.toString)
    assert(error.getMessageParameters.get("rule") == kept.map(_.rule.id).distinct.mkString(", "))
    // No copy is proposed where it would lose rows.
    lost.foreach { violation =>
      val error =
        IcebergWriterCompatException.notCompliant(table, kept :+ violation, Fix.copyInto(table))
      assertRefusal(error, violation.remedy.text)
      assert(error.getMessageParameters.get("rule") == violation.rule.id)
    }
    assert(lost.nonEmpty)
  }

  test("a very long list of findings is cut, and says so") {
    val many = Seq.fill(120)(found.head)
    val error = IcebergWriterCompatException.notCompliant(table, many, Fix.copyInto(table))
    assert(error.getMessage.linesIterator.count(_.startsWith("- ")) == 51)
    assert(error.getMessage.contains("\n- and 70 more"))
    assert(error.getMessageParameters.get("count") == "120")
  }

  Seq(None -> "unset", Some("false") -> "set to 'false'").foreach { case (value, change) =>
    test(s"switching off by a property that is $change is refused with the way out") {
      val key = "delta.enableIcebergWriterCompatV1"
      val after = table.copy(properties = table.properties.removed(key) ++ value.map(key -> _))
      val violation =
        V1.rules.check(TableChange(table, after, ChangeKind.Ordinary)).next()
      val error = IcebergWriterCompatException.of(after, violation)
      assertRefusal(error, "ALTER TABLE db.t DROP FEATURE icebergWriterCompatV1")
      assert(error.getMessageParameters.get("change") == change)
    }
  }

  test("a value that is none of those allowed is refused with one that is") {
    val fix = "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    val error = IcebergWriterCompatException.invalidValue(
      "delta.enableIcebergWriterCompatV1",
      "maybe",
      "true or false",
      Remedy.UseSetting(fix)
    )
    assertRefusal(error, fix)
    assert(error.getMessage.contains("'maybe', but it must be true or false"))
  }

  test("a session that is not guarded is refused as one whose versions do not fit") {
    val cause = new NoClassDefFoundError("x")
    val error = IcebergWriterCompatException.notInstalled(
      "DELTA_VERSION",
      Map(
        "tested" -> "4.4.0, 4.3.1",
        "supported" -> "4.4.0",
        "found" -> "4.3.0",
        "differences" -> "\n  - missing: x"
      ),
      cause
    )
    assert(error.getSqlState == "56038")
    assert(error.getCause eq cause)
    assert(error.getMessage.endsWith("pip install 'delta-spark==4.4.0'"))
  }

  test("a table of another format is refused by its name") {
    val error = IcebergWriterCompatException.notDelta("db.v")
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE")
    assert(error.getSqlState == "0AKDD")
    assert(error.getMessage.contains("db.v is not a Delta table"))
  }
}
