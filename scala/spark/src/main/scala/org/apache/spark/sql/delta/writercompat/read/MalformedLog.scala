package org.apache.spark.sql.delta.writercompat.read

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.delta.{DeltaLog, DeltaThrowable, Snapshot}
import org.apache.spark.sql.delta.writercompat.feature.WriterCompatTableFeature
import org.icebergwritercompat.errors.{
  Causes,
  IcebergWriterCompatException,
  LogFields,
  MalformedField
}
import org.json4s.MappingException

import java.io.{BufferedReader, InputStreamReader}
import java.net.URISyntaxException
import java.nio.charset.StandardCharsets.UTF_8
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Try, Using}

/** Finds the field of a log that Delta cannot read. The log is searched only after a failure. */
object MalformedLog {

  // Delta throws these if something is missing in the log, and does not say where.
  private val unclear = Set(
    "DELTA_STATE_RECOVER_ERROR",
    "DELTA_MISSING_PART_FILES",
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
   *   the error if the log is in order
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
        throw Option.when(isOfLog(e))(first(spark, table)).flatten.fold(left(e))(_.error(table, e))
    }
  }

  /** What is wrong with a log, for a person, if that is why something failed. */
  def textOf(spark: SparkSession, table: String, failure: Throwable): Option[String] =
    try explained[Option[String]](spark, table)(identity)(throw failure)
    catch {
      case own: IcebergWriterCompatException           => Some(own.getMessage)
      case NonFatal(e) if isDeltas(e) || isOfDeltas(e) => Option(e.getMessage)
      case NonFatal(_)                                 => None
    }

  private def isOfDeltas(e: Throwable): Boolean = e.isInstanceOf[DeltaThrowable]

  /**
   * The same for a step of Delta's on a table with the feature. If the log is in order, the failure
   * stays as it is.
   */
  def explainedStep[T](spark: SparkSession, table: => String, snapshot: Snapshot)(step: => T): T =
    try step
    catch {
      case NonFatal(e) if conditionOf(e).isEmpty && isOfValues(e) && hasFeature(snapshot) =>
        throw first(spark, table).fold(e)(_.error(table, e))
    }

  /**
   * The same for a command of Delta on several tables.
   *
   * @param tables
   *   their names in statements, and their logs
   */
  def explainedCommand[T](spark: SparkSession, tables: => Seq[(String, DeltaLog)])(run: => T): T =
    try run
    catch {
      case own: IcebergWriterCompatException                      => throw own
      case NonFatal(e) if conditionOf(e).isEmpty && isOfValues(e) =>
        val found = for {
          (name, log) <- tables.iterator if hasFeature(log.unsafeVolatileSnapshot)
          malformed <- firstIn(spark, log.dataPath)
        } yield malformed.error(name, e)
        throw found.nextOption().getOrElse(e)
    }

  /**
   * Reads the state of a version, if it is of a table with the feature. Where Delta reads it later
   * by itself, its failure would not be explained.
   */
  def read(snapshot: Snapshot): Unit = if (hasFeature(snapshot)) {
    snapshot.metadata.partitionSchema
    snapshot.stateDF.count()
    ()
  }

  private def hasFeature(snapshot: Snapshot): Boolean =
    Try(WriterCompatTableFeature.all.exists(snapshot.protocol.isFeatureSupported))
      .getOrElse(false)

  /** Refuses a version whose log has lines that Delta ignores. */
  def refusePassedOver(table: String, snapshot: Snapshot): Unit = {
    val log = snapshot.deltaLog
    val found = for {
      commit <- snapshot.logSegment.deltas.iterator.map(_.getPath)
      version <- versionOf(commit).iterator
      field <- Using.resource(log.store.readAsIterator(commit, log.newDeltaHadoopConf())) {
        _.filterNot(_.isBlank).flatMap(LogFields.passedOver).nextOption()
      }
    } yield Malformed(version, commit.toString, field)
    found.nextOption().foreach(malformed => throw malformed.error(table, null))
  }

  private def isDeltas(e: Throwable): Boolean =
    e.getClass.getName.startsWith("org.apache.spark.sql.delta.")

  private def isClear(e: Throwable): Boolean = conditionOf(e).exists(!unclear(_))

  private def conditionOf(e: Throwable): Option[String] = e match {
    case e: DeltaThrowable    => Option(e.getCondition)
    case e: AnalysisException => Option(e.getCondition)
    case _                    => None
  }

  // Errors that a wrong value causes, in contrast to those of a file system out of reach.
  private def isOfLog(e: Throwable): Boolean =
    isOfValues(e) || Causes.of(e).exists(_.isInstanceOf[SparkThrowable])

  private def isOfValues(e: Throwable): Boolean = Causes.of(e).exists {
    case _: JsonProcessingException | _: MappingException | _: ClassCastException |
        _: NullPointerException | _: MatchError | _: IllegalArgumentException |
        _: NoSuchElementException | _: URISyntaxException | _: ArithmeticException =>
      true
    // A file that is no Parquet file.
    case e => e.getClass == classOf[RuntimeException]
  }

  /** What is wrong in a file of the log. */
  private final case class Malformed(version: Long, file: String, field: MalformedField) {

    def error(table: String, cause: Throwable): IcebergWriterCompatException =
      IcebergWriterCompatException.malformedLog(table, version, file, field, cause)
  }

  /** The first version with a malformed field, and the file that has it. */
  private def first(spark: SparkSession, table: String): Option[Malformed] =
    // There is an error already, which is reported.
    Try(folder(spark, table)).toOption.flatten.flatMap(firstIn(spark, _))

  private def firstIn(spark: SparkSession, folder: Path): Option[Malformed] =
    try {
      val log = new Path(folder, DeltaLog.LOG_DIR_NAME)
      val configuration = spark.sessionState.newHadoopConf()
      val fs = log.getFileSystem(configuration)
      val files = fs.listStatus(log).map(_.getPath).toSeq.sortBy(_.getName)
      val commits = for {
        file <- files.iterator
        version <- versionOf(file)
        field <- malformed(fs, file)
      } yield Malformed(version, file.toString, field)
      val checkpoints = new Checkpoints(files, configuration).malformed.map {
        case (version, file, field) => Malformed(version, file.toString, field)
      }
      (commits ++ checkpoints).nextOption()
    } catch { case NonFatal(_) => None }

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

  // Without Delta, which could not read the table.
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
