package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.iceberg.CatalogUtil
import org.apache.iceberg.catalog.Catalog
import org.apache.iceberg.hadoop.{HadoopCatalog, HadoopFileIO}
import org.apache.iceberg.rest.{RESTCatalog, RESTClient, RESTSessionCatalog}
import org.icebergwritercompat.errors.{Causes, IcebergWriterCompatException}
import org.icebergwritercompat.model.BuildInfo
import org.icebergwritercompat.remedy.Remedy

import java.nio.file.Files
import java.util.Locale
import java.util.concurrent.ConcurrentHashMap
import java.util.function.{Function => JavaFunction}
import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

/**
 * The settings of an Iceberg catalog.
 *
 * @param name
 *   the name of the catalog, by which a JDBC catalog finds its tables
 * @param properties
 *   the properties for Iceberg
 */
final case class CatalogSettings(name: String, properties: Map[String, String]) {

  /** Its name and address, without credentials. */
  def place: String = {
    val where = properties.get("uri").orElse(properties.get("warehouse")).getOrElse("")
    s"$name at ${CatalogSettings.withoutCredentials(where)}"
  }

  /**
   * The same failure with the secrets of these settings replaced: clients and drivers repeat them
   * in their messages.
   */
  private[iceberg] def redacted(cause: Throwable): Throwable = {
    val chain = Causes.of(cause)
    val says = chain.flatMap(e => Option(e.getMessage))
    if (!secrets.exists(secret => says.exists(_.contains(secret)))) cause
    else
      chain.foldRight(null: Throwable) { (e, because) =>
        val text = Option(e.getMessage).map { message =>
          secrets.foldLeft(message)(_.replace(_, CatalogSettings.redaction))
        }
        val redacted =
          new RuntimeException(s"${e.getClass.getName}: ${text.getOrElse("")}", because)
        redacted.setStackTrace(e.getStackTrace)
        redacted
      }
  }

  // Longest first, because one may be part of another.
  private lazy val secrets: Seq[String] = {
    val named = properties.collect {
      case (key, value) if CatalogSettings.isSecret(key) => value
    }
    val inUri = properties.get("uri").toSeq.flatMap { uri =>
      val user = CatalogSettings.userInfo.findFirstMatchIn(uri).map(_.group(1)).toSeq
      val asked = CatalogSettings.parameter.findAllMatchIn(uri).collect {
        case found if CatalogSettings.isSecret(found.group(1)) => found.group(2)
      }
      user ++ user.flatMap(_.split(":", 2).drop(1)) ++ asked
    }
    (named ++ inUri).filter(_.trim.length > 2).toSeq.distinct.sortBy(-_.length)
  }

  /** Whether tables are identified by their folders. */
  def isHadoop: Boolean =
    isA("hadoop", classOf[HadoopCatalog].getName)

  /**
   * Whether this catalog is the metastore of a session, so that Delta tables and Iceberg tables
   * share one list of names.
   *
   * @param conf
   *   the configuration of the session
   */
  def isMetastore(conf: Configuration): Boolean =
    if (isA("hive", "org.apache.iceberg.hive.HiveCatalog")) {
      // Without an address of its own Iceberg uses that of the configuration.
      val session = conf.get("hive.metastore.uris", "")
      properties.get("uri").forall(_ == session)
    } else
      isA("glue", "org.apache.iceberg.aws.glue.GlueCatalog") &&
      conf.get("hive.metastore.client.factory.class", "").toLowerCase(Locale.ROOT).contains("glue")

  /** Whether it is Iceberg's client of REST servers. */
  private[target] def isRest: Boolean =
    isA("rest", classOf[RESTCatalog].getName) &&
      !(properties.contains("type") && properties.contains("catalog-impl"))

  private def isA(kind: String, implementation: String): Boolean =
    properties.get("type").exists(_.equalsIgnoreCase(kind)) ||
      properties.get("catalog-impl").contains(implementation)
}

object CatalogSettings {

  private val redaction = "*********(redacted)"

  // Spark's own pattern, and the names of Iceberg's properties that it does not match.
  private val secretKey = "(?i)secret|password|token|credential|access[.-]?key|authorization".r

  private val userInfo = "//([^/@]+)@".r

  private val parameter = "[?;&]([^=?;&]+)=([^?;&]*)".r

  /** An address without user, password and parameters. */
  private[target] def withoutCredentials(uri: String): String =
    uri.replaceAll("//[^/@]*@", "//").takeWhile(c => c != '?' && c != ';')

  private def isSecret(key: String): Boolean = secretKey.findFirstIn(key).isDefined

  /** The prefix of the settings; the rest of a key is Iceberg's property. */
  val Prefix = "spark.icebergWriterCompat.catalog."

  /**
   * The catalog that the settings configure.
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
          "jdbc, rest, hadoop or another catalog type of Iceberg",
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
        s"the address of a database, because the warehouse $warehouse is not a local folder",
        Remedy.SetSetting(Seq(s"${Prefix}uri" -> "jdbc:postgresql://host/database"))
      )
    s"jdbc:sqlite:${folder.getPath.stripSuffix("/")}/iceberg-catalog.db"
  }
}

/** The catalogs of this JVM, each opened once. */
object IcebergCatalogs {

  private val opened = new ConcurrentHashMap[CatalogSettings, Catalog]

  // The JDBC driver of each database, and its Maven coordinates.
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
        try
          if (settings.isRest) {
            val catalog = new OwnFilesRestCatalog(conf)
            catalog.setConf(conf)
            catalog.initialize(settings.name, settings.properties.asJava)
            catalog
          } else CatalogUtil.buildIcebergCatalog(settings.name, settings.properties.asJava, conf)
        catch { case Failed(e) => throw unavailable(settings, e) }
      }
    )

  /**
   * Every failure of a catalog, including that one of its classes needs a class that is missing.
   */
  private[target] object Failed {
    def unapply(cause: Throwable): Option[Throwable] = cause match {
      case e: LinkageError => Some(e)
      case other           => NonFatal.unapply(other)
    }
  }

  // The publisher writes and reads all files itself. A server can name a class for that in its
  // answer about each table, and Iceberg then ignores the setting `io-impl` and loads that class.
  private final class OwnFilesRestCatalog(conf: Configuration) extends RESTCatalog {
    override protected def newSessionCatalog(
        client: JavaFunction[java.util.Map[String, String], RESTClient]
    ): RESTSessionCatalog = new RESTSessionCatalog(client, (_, _) => new HadoopFileIO(conf))
  }

  /** The error of a catalog that failed; the next call opens it again. */
  def failed(settings: CatalogSettings, cause: Throwable): IcebergWriterCompatException = {
    Option(opened.remove(settings)).collect { case catalog: AutoCloseable => Try(catalog.close()) }
    unavailable(settings, cause)
  }

  private def unavailable(
      settings: CatalogSettings,
      cause: Throwable
  ): IcebergWriterCompatException = {
    val named = Causes.of(cause).flatMap(e => cloudClass.findAllMatchIn(e.toString))
    val classes = named.map(found => found.matched.replace('/', '.') -> Option(found.group(1)))
    classes.find { case (name, _) => !isThere(name) } match {
      case Some((name, module)) =>
        val iceberg = module.map(m => s"org.apache.iceberg:iceberg-$m:${BuildInfo.iceberg}")
        IcebergWriterCompatException.catalogClassMissing(
          settings.place,
          name,
          iceberg.toSeq ++ clients.getOrElse(module.getOrElse("aws"), Nil)
        )
      case _ =>
        IcebergWriterCompatException.catalogUnavailable(
          settings.place,
          CatalogSettings.Prefix,
          settings.redacted(cause)
        )
    }
  }

  // A class of Iceberg's modules for clouds, or of the AWS SDK, as errors name it.
  private val cloudClass =
    """(?:org\.apache\.iceberg\.(aws|azure|gcp)|software[./]amazon[./]awssdk)(?:[./][a-z]\w*)*[./][A-Z]\w*""".r

  // What these modules need in addition; their POM files name no version.
  private val clients = Map("aws" -> Seq("software.amazon.awssdk:bundle:2.29.52"))

  private def isThere(name: String): Boolean =
    Try(Class.forName(name, false, getClass.getClassLoader)).isSuccess

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

  // Java finds only drivers on the class path with which the JVM was started.
  private def load(driver: String, coordinate: String, uri: String): Unit = {
    val loaders = Seq(Thread.currentThread.getContextClassLoader, getClass.getClassLoader)
    if (!loaders.filter(_ != null).exists(l => Try(Class.forName(driver, true, l)).isSuccess))
      throw IcebergWriterCompatException.driverMissing(
        CatalogSettings.withoutCredentials(uri),
        driver,
        coordinate
      )
  }
}
