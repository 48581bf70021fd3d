package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.iceberg.CatalogUtil
import org.apache.iceberg.catalog.Catalog
import org.apache.iceberg.hadoop.HadoopCatalog
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.BuildInfo
import org.icebergwritercompat.remedy.Remedy

import java.nio.file.Files
import java.util.Locale
import java.util.concurrent.ConcurrentHashMap
import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

/**
 * The settings of an Iceberg catalog.
 *
 * @param name
 *   what it calls itself, by which a JDBC catalog finds its tables
 * @param properties
 *   as Iceberg takes them
 */
final case class CatalogSettings(name: String, properties: Map[String, String]) {

  /** Where it is, without what only its users may know. */
  def place: String = {
    val where = properties.get("uri").orElse(properties.get("warehouse")).getOrElse("")
    s"$name at ${where.replaceAll("//[^/@]*@", "//").takeWhile(c => c != '?' && c != ';')}"
  }

  /** Whether tables are found by their folders alone. */
  def isHadoop: Boolean =
    properties.get("type").exists(_.equalsIgnoreCase("hadoop")) ||
      properties.get("catalog-impl").contains(classOf[HadoopCatalog].getName)
}

object CatalogSettings {

  /** What the settings begin with; the rest of a key is Iceberg's. */
  val Prefix = "spark.icebergWriterCompat.catalog."

  /**
   * The catalog that settings ask for.
   *
   * @param warehouse
   *   the folder of the session's tables
   */
  def of(settings: Map[String, String], warehouse: String): Option[CatalogSettings] = {
    val asked = settings.collect {
      case (key, value) if key.startsWith(Prefix) => key.stripPrefix(Prefix) -> value
    }
    Option.when(asked.nonEmpty) {
      if (!asked.contains("type") && !asked.contains("catalog-impl"))
        throw IcebergWriterCompatException.invalidValue(
          s"${Prefix}type",
          "",
          "jdbc, rest, hadoop or another type of catalog that Iceberg knows",
          Remedy.SetSetting(Seq(s"${Prefix}type" -> "jdbc"))
        )
      val ofType = asked.get("type").map(_.toLowerCase(Locale.ROOT)) match {
        case Some("jdbc") if !asked.contains("uri") =>
          Map("warehouse" -> warehouse, "uri" -> sqlite(warehouse))
        case Some("jdbc" | "hadoop") => Map("warehouse" -> warehouse)
        case _                       => Map.empty[String, String]
      }
      CatalogSettings(asked.getOrElse("name", "iceberg"), ofType ++ asked - "name")
    }
  }

  private def sqlite(warehouse: String): String = {
    val folder = new Path(warehouse).toUri
    if (folder.getScheme != null && folder.getScheme != "file")
      throw IcebergWriterCompatException.invalidValue(
        s"${Prefix}uri",
        "",
        s"the address of a database, because the warehouse $warehouse is no local folder",
        Remedy.SetSetting(Seq(s"${Prefix}uri" -> "jdbc:postgresql://host/database"))
      )
    s"jdbc:sqlite:${folder.getPath.stripSuffix("/")}/iceberg-catalog.db"
  }
}

/** The catalogs of this JVM, each opened once. */
object IcebergCatalogs {

  private val opened = new ConcurrentHashMap[CatalogSettings, Catalog]

  // Those that come with no driver of their own, and where it comes from.
  private val drivers = Map(
    "sqlite" -> ("org.sqlite.JDBC" -> s"org.xerial:sqlite-jdbc:${BuildInfo.sqlite}"),
    "postgresql" -> ("org.postgresql.Driver" -> "org.postgresql:postgresql:42.7.14"),
    "mysql" -> ("com.mysql.cj.jdbc.Driver" -> "com.mysql:mysql-connector-j:9.5.0")
  )

  /** The catalog of these settings. */
  def open(settings: CatalogSettings, conf: Configuration): Catalog =
    opened.computeIfAbsent(
      settings,
      _ => {
        settings.properties.get("uri").foreach(prepare)
        try CatalogUtil.buildIcebergCatalog(settings.name, settings.properties.asJava, conf)
        catch { case NonFatal(e) => throw unavailable(settings, e) }
      }
    )

  /** The error where a catalog failed; the next time it is opened anew. */
  def failed(settings: CatalogSettings, cause: Throwable): IcebergWriterCompatException = {
    Option(opened.remove(settings)).collect { case catalog: AutoCloseable => Try(catalog.close()) }
    unavailable(settings, cause)
  }

  private def unavailable(
      settings: CatalogSettings,
      cause: Throwable
  ): IcebergWriterCompatException =
    IcebergWriterCompatException.catalogUnavailable(settings.place, CatalogSettings.Prefix, cause)

  private def prepare(uri: String): Unit = {
    uri.split(":").toSeq match {
      case Seq("jdbc", kind, _*) =>
        drivers.get(kind).foreach { case (driver, coordinate) => load(driver, coordinate, uri) }
      case _ =>
    }
    val file = uri.stripPrefix("jdbc:sqlite:")
    if (file != uri && file.startsWith("/"))
      Option(java.nio.file.Path.of(file.takeWhile(_ != '?')).getParent)
        .foreach(Files.createDirectories(_))
  }

  // Java finds only those drivers by itself that are on the class path it was started with.
  private def load(driver: String, coordinate: String, uri: String): Unit = {
    val loaders = Seq(Thread.currentThread.getContextClassLoader, getClass.getClassLoader)
    if (!loaders.filter(_ != null).exists(l => Try(Class.forName(driver, true, l)).isSuccess))
      throw IcebergWriterCompatException.driverMissing(uri.takeWhile(_ != '?'), driver, coordinate)
  }
}
