package org.icebergwritercompat.sql

import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

import java.lang.reflect.{InvocationTargetException, Proxy}

/**
 * Gives a session the catalog of the procedures, unless it has another catalog of this name.
 *
 * Spark looks for a catalog in the settings of the session when a statement names one. The rule has
 * to run before Spark resolves names, and at each statement: RESET takes settings away.
 */
final class ProcedureCatalogRule(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    ProcedureCatalogRule.ensure(spark)
    plan
  }
}

/** How sessions get the catalog of the procedures. */
object ProcedureCatalogRule {

  private val key = s"spark.sql.catalog.${Procedures.catalog}"

  private val catalogClass = classOf[WriterCompatProcedures].getName

  /**
   * Has each session of these extensions get the catalog.
   *
   * @param isHive
   *   whether they are sessions with Hive's catalog: those of Spark 4.0.4 and 4.2.0 run no rules
   *   for hints, which are the only ones of an extension that run before names are resolved, so
   *   that the catalog comes when a statement is parsed
   */
  def inject(extensions: SparkSessionExtensions, isHive: Boolean): Unit =
    if (isHive) extensions.injectParser(parser)
    // The rule has nothing to do with hints.
    else extensions.injectHintResolutionRule(new ProcedureCatalogRule(_))

  private def ensure(spark: SparkSession): Unit = {
    val settings = spark.sessionState.conf
    if (!settings.contains(key)) settings.setConfString(key, catalogClass)
  }

  // A proxy, as the methods of parsers differ between the releases of Spark.
  private def parser(spark: SparkSession, parser: ParserInterface): ParserInterface = {
    val made = Proxy.newProxyInstance(
      classOf[WriterCompatProcedures].getClassLoader,
      Array[Class[_]](classOf[ParserInterface]),
      (_, method, arguments) => {
        if (method.getName.startsWith("parsePlan")) ensure(spark)
        try method.invoke(parser, Option(arguments).toSeq.flatten: _*)
        catch { case e: InvocationTargetException => throw e.getCause }
      }
    )
    made.asInstanceOf[ParserInterface]
  }
}
