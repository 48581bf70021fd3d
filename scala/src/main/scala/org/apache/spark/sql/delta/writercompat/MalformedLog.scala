package org.apache.spark.sql.delta.writercompat

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.delta.{DeltaLog, DeltaThrowable}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.report.{LogFields, MalformedField}

import java.io.{BufferedReader, InputStreamReader}
import java.net.URISyntaxException
import java.nio.charset.StandardCharsets.UTF_8
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Try, Using}

/** Tells which field of a log keeps Delta from reading it; the log is looked at after a failure. */
object MalformedLog {

  // These come when Delta has not found in the log what it needs of it, and do not say where.
  private val unclear = Set(
    "DELTA_STATE_RECOVER_ERROR",
    "INTERNAL_ERROR",
    "INVALID_JSON_DATA_TYPE",
    "FIELD_NOT_FOUND"
  )

  /**
   * The answer, or an error that says what is wrong.
   *
   * @param table
   *   the name or path that it is about
   * @param otherwise
   *   the error where the log is not to blame
   */
  def explained[T](spark: SparkSession, table: => String)(
      otherwise: Throwable => Throwable
  )(answer: => T): T = {
    // Some of Delta's errors have no condition.
    def left(e: Throwable): Throwable =
      if (conditionOf(e).nonEmpty) e
      else if (isDeltas(e)) IcebergWriterCompatException.unreadable(table, e)
      else otherwise(e)
    try answer
    catch {
      case own: IcebergWriterCompatException => throw own
      case NonFatal(e) if isClear(e)         => throw e
      case NonFatal(e)                       =>
        throw Option.when(isOfLog(e))(first(spark, table)).flatten.fold(left(e)) {
          case (version, file, field) =>
            IcebergWriterCompatException.malformedLog(table, version, file, field, e)
        }
    }
  }

  private def isDeltas(e: Throwable): Boolean =
    e.getClass.getName.startsWith("org.apache.spark.sql.delta.")

  private def isClear(e: Throwable): Boolean = conditionOf(e).exists(!unclear(_))

  private def conditionOf(e: Throwable): Option[String] = e match {
    case e: DeltaThrowable    => Option(e.getCondition)
    case e: AnalysisException => Option(e.getCondition)
    case _                    => None
  }

  // What comes of values that are not what somebody expects, rather than of places out of reach.
  private def isOfLog(e: Throwable): Boolean =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(20).exists {
      case _: SparkThrowable | _: JsonProcessingException | _: ClassCastException |
          _: NullPointerException | _: MatchError | _: IllegalArgumentException |
          _: NoSuchElementException | _: URISyntaxException =>
        true
      case _ => false
    }

  /** The first version with a malformed field, and the file that has it. */
  private def first(
      spark: SparkSession,
      table: String
  ): Option[(Long, String, MalformedField)] =
    try
      folder(spark, table).flatMap { folder =>
        val log = new Path(folder, DeltaLog.LOG_DIR_NAME)
        val fs = log.getFileSystem(spark.sessionState.newHadoopConf())
        val commits = fs.listStatus(log).map(_.getPath).toSeq.sortBy(_.getName)
        commits.iterator
          .flatMap(file => versionOf(file).map(_ -> file))
          .flatMap { case (version, file) =>
            malformed(fs, file).map((version, file.toString, _))
          }
          .nextOption()
      }
    // Whoever asked has an error already.
    catch { case NonFatal(_) => None }

  private def versionOf(file: Path): Option[Long] = file.getName match {
    case commit(version) => version.toLongOption
    case _               => None
  }

  private val commit = """(\d{20})\.json""".r

  private def malformed(fs: FileSystem, commit: Path): Option[MalformedField] =
    Using.resource(new BufferedReader(new InputStreamReader(fs.open(commit), UTF_8))) { lines =>
      lines.lines.iterator.asScala
        .filterNot(_.isBlank)
        .flatMap(LogFields.malformed)
        .nextOption()
    }

  // Without asking Delta, which could not read the table.
  private def folder(spark: SparkSession, table: String): Option[Path] =
    if (DeltaTables.isPath(table)) Some(new Path(DeltaTables.absolute(spark, table)))
    else
      spark.sessionState.sqlParser.parseMultipartIdentifier(table) match {
        case Seq("delta", path)     => Some(new Path(path))
        case parts if parts.isEmpty => None
        case parts                  =>
          val name = TableIdentifier(parts.last, parts.dropRight(1).lastOption)
          Try(spark.sessionState.catalog.getTableMetadata(name)).toOption
            .map(found => new Path(found.location))
      }
}
