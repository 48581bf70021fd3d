package org.icebergwritercompat.sql

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIdentifier
import org.apache.spark.sql.connector.catalog.CatalogNotFoundException
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, Sessions}
import org.icebergwritercompat.errors.IcebergWriterCompatException

import scala.jdk.CollectionConverters._

/** The Delta tables of a schema or a catalog, by names as statements spell them. */
private[icebergwritercompat] object TableNames {

  /** Those of a schema, which is named as in a statement. Reads no log. */
  def inSchema(spark: SparkSession, schema: String): Seq[String] = {
    val parts =
      try DeltaTables.nameParts(schema)
      catch {
        case e: ParseException => throw IcebergWriterCompatException.wrongSchemaName(schema, e)
      }
    val name = parts.map(quoted).mkString(".")
    Sessions
      .verbatim(spark, s"SHOW TABLE EXTENDED IN $name LIKE '*'")
      .select("tableName", "isTemporary", "information")
      .collect()
      .toSeq
      .filter(row => !row.getBoolean(1) && provider.findFirstIn(row.getString(2)).isDefined)
      .map(row => s"$name.${quoted(row.getString(0))}")
  }

  /** Those of all schemas of a catalog. */
  def inCatalog(spark: SparkSession, catalog: String): Seq[String] = {
    // SHOW NAMESPACES also accepts the name of a schema, and then returns nothing.
    try spark.sessionState.catalogManager.catalog(catalog)
    catch {
      // PySpark does not know its class, and would show the stack.
      case e: CatalogNotFoundException =>
        throw new AnalysisException(e.getCondition, e.getMessageParameters.asScala.toMap)
    }
    val name = quoted(catalog)
    Sessions
      .verbatim(spark, s"SHOW NAMESPACES IN $name")
      .collect()
      .toSeq
      // Spark quotes these names if necessary.
      .flatMap(row => inSchema(spark, s"$name.${row.getString(0)}"))
  }

  private val provider = "(?mi)^Provider: delta$".r

  // An unquoted name must not be read as a number, such as 1d.
  private def quoted(part: String): String =
    if (part.matches("[A-Za-z_][A-Za-z0-9_]*")) part else quoteIdentifier(part)
}
