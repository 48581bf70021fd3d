package org.icebergwritercompat.sql

import org.apache.spark.SparkConf
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIdentifier
import org.apache.spark.sql.connector.catalog.{Identifier, ProcedureCatalog}
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure
import org.apache.spark.sql.delta.writercompat.install.WriterCompatHooks
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import java.util.Locale

/** The catalog whose namespace `system` has the procedures. The extension brings it. */
final class WriterCompatProcedures extends ProcedureCatalog {

  private var ownName = Procedures.catalog

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = {
    WriterCompatHooks.require()
    ownName = name
  }

  override def name: String = ownName

  override def defaultNamespace: Array[String] = Array(Procedures.namespace)

  override def loadProcedure(identifier: Identifier): UnboundProcedure =
    Option(identifier)
      .filter(asked => isOwn(asked.namespace))
      .flatMap(asked => Procedures.all.find(_.name == asked.name.toLowerCase(Locale.ROOT)))
      .getOrElse {
        val parts = ownName +: identifier.namespace.toSeq :+ identifier.name
        val quoted = parts.map(quoteIdentifier).mkString(".")
        throw new AnalysisException("ROUTINE_NOT_FOUND", Map("routineName" -> quoted))
      }

  /** The procedures of a namespace; Spark asks for them since 4.1. */
  def listProcedures(namespace: Array[String]): Array[Identifier] =
    if (!isOwn(namespace)) Array.empty
    else Procedures.all.map(one => Identifier.of(Array(Procedures.namespace), one.name)).toArray

  private def isOwn(namespace: Array[String]): Boolean =
    namespace.toSeq.map(_.toLowerCase(Locale.ROOT)) == Seq(Procedures.namespace)
}

/** How sessions get the catalog of the procedures. */
object WriterCompatProcedures {

  /** Makes it a catalog of all sessions, unless they have another of this name. */
  def install(conf: SparkConf): Unit = {
    conf.setIfMissing(
      s"spark.sql.catalog.${Procedures.catalog}",
      classOf[WriterCompatProcedures].getName
    )
    ()
  }
}
