package org.apache.spark.sql.delta.writercompat.upgrade

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Cast
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIdentifier
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.delta.{OptimisticTransaction, Snapshot}
import org.apache.spark.sql.delta.actions.{AddFile, Metadata}
import org.apache.spark.sql.delta.files.DelayedCommitProtocol
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.writercompat.guard.GuardedTransaction
import org.apache.spark.sql.functions.{col, substring_index}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{StructType, TimestampType}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.apache.spark.sql.delta.writercompat.read.{Copies, Footers, JobDescription, TableStates}

import java.util.UUID
import scala.util.control.NonFatal

/**
 * Data files that hold the rows of others, and that no commit has added yet.
 *
 * @param added
 *   the new files, as a commit adds them. They lack the clustering tags of the old files, which the
 *   next OPTIMIZE sets
 * @param folder
 *   the folder below the table's own that holds these files and nothing else
 */
final case class RewrittenFiles(added: Seq[AddFile], folder: String)

object RewrittenFiles {

  /**
   * Writes the rows of live files to new files, under the metadata and protocol of the transaction.
   *
   * The rows are those that a reader of the version sees: without the deleted ones, with the
   * partition values of the log. A column whose type is wider in the new metadata is widened.
   * Nothing is committed: the caller commits the files, and names the folder in an error if it
   * cannot, see [[orphaning]].
   *
   * @param from
   *   the version whose files they are
   */
  def write(
      spark: SparkSession,
      txn: OptimisticTransaction,
      from: Snapshot,
      files: Seq[AddFile]
  ): RewrittenFiles = {
    val table = TableStates.nameOf(spark, txn)
    val folder = s"$prefix${UUID.randomUUID}"
    val (rows, added) = orphaning(table, folder) {
      val timestamps = timesIn(from.metadata)
      val session = sessionFor(spark, files.map(_.size), timestamps)
      session.withActive {
        liveRows(session, from, files) ->
          JobDescription(session, s"Writing ${files.size} data file(s) of $table anew") {
            // The statistics are not needed to read the files, and may be long.
            val lean = files.map(file => inUtc(spark, timestamps)(Copies.of(file, "stats" -> null)))
            val data = from.deltaLog.createDataFrame(from, lean, actionTypeOpt = Some("Upgrade"))
            new IntoFolder(txn, folder)
              .writeFiles(widened(data, txn.metadata.schema), None, isOptimize = true, Nil)
              .collect { case file: AddFile => Copies.of(file, "dataChange" -> false) }
          }
      }
    }
    val written = added.flatMap(_.numPhysicalRecords).sum
    if (written != rows)
      throw IcebergWriterCompatException.otherRows(table, files.size, rows, written, folder)
    RewrittenFiles(added, folder)
  }

  /** The folders of a table that hold rewritten files and that no version refers to. */
  def orphans(snapshot: Snapshot): Seq[String] = {
    val root = snapshot.deltaLog.dataPath
    val found = root
      .getFileSystem(snapshot.deltaLog.newDeltaHadoopConf())
      .listStatus(root, (path: Path) => path.getName.startsWith(prefix))
      .filter(_.isDirectory)
      .map(_.getPath.getName)
    if (found.isEmpty) Nil
    else {
      val paths = Seq(snapshot.allFiles.toDF(), snapshot.tombstones.toDF()).map(_.select("path"))
      val referred = paths
        .reduce(_ union _)
        .where(col("path").startsWith(prefix))
        .select(substring_index(col("path"), "/", 1))
        .distinct()
        .collect()
        .map(_.getString(0))
      found.diff(referred).sorted.toSeq
    }
  }

  private val prefix = "rewritten-"

  /**
   * Runs a step towards the commit of the files in a folder; if it fails, the error names the
   * folder.
   */
  def orphaning[T](table: String, folder: String)(body: => T): T =
    try body
    catch {
      case NonFatal(cause) => throw IcebergWriterCompatException.orphaned(table, folder, cause)
    }

  /** The physical names of the partition columns that are instants. */
  private[writercompat] def timesIn(metadata: Metadata): Set[String] =
    metadata.physicalPartitionSchema.collect {
      case field if field.dataType == TimestampType => field.name
    }.toSet

  /**
   * A session like this one in which each task reads one file, or one piece of a large one, and
   * writes one file. So rows stay clustered as they were, and no task sorts.
   *
   * Settings that let readers skip damaged or missing files are off.
   *
   * @param timestamps
   *   see [[timesIn]]
   */
  private[writercompat] def sessionFor(
      spark: SparkSession,
      sizes: Seq[Long],
      timestamps: Set[String]
  ): SparkSession = {
    val session = castToImpl(spark).cloneSession()
    val conf = session.sessionState.conf
    val piece = pieceSize(
      sizes.sum,
      session.sparkContext.defaultParallelism,
      conf.filesMaxPartitionBytes,
      conf.getConf(DeltaSQLConf.DELTA_OPTIMIZE_MAX_FILE_SIZE)
    )
    conf.setConf(SQLConf.FILES_MAX_PARTITION_BYTES, piece)
    // With this, Spark packs no two files into one task.
    conf.setConf(SQLConf.FILES_OPEN_COST_IN_BYTES, piece)
    conf.unsetConf(SQLConf.FILES_MAX_PARTITION_NUM)
    conf.setConf(SQLConf.MAX_CONCURRENT_OUTPUT_FILE_WRITERS, 1)
    conf.setConf(SQLConf.IGNORE_CORRUPT_FILES, false)
    conf.setConf(SQLConf.IGNORE_MISSING_FILES, false)
    conf.setConf(DeltaSQLConf.DELTA_COLLECT_STATS, true)
    // Delta's writer turns partition values into text in the session's time zone. When clocks go
    // back, two instants have the same text.
    if (timestamps.nonEmpty) conf.setConf(SQLConf.SESSION_LOCAL_TIMEZONE, "UTC")
    session
  }

  // Delta reads a time without a zone in the zone of the session, and the session that writes has
  // UTC.
  private[writercompat] def inUtc(reader: SparkSession, timestamps: Set[String])(
      file: AddFile
  ): AddFile =
    if (timestamps.isEmpty) file
    else {
      val zone =
        DateTimeUtils.getZoneId(castToImpl(reader).sessionState.conf.sessionLocalTimeZone)
      def instant(text: String): String = DateTimeUtils
        .stringToTimestamp(UTF8String.fromString(text), zone)
        .fold(text)(DateTimeUtils.microsToInstant(_).toString)
      val values = file.partitionValues.map { case (name, value) =>
        name -> (if (timestamps(name) && value != null) instant(value) else value)
      }
      Copies.of(file, "partitionValues" -> values)
    }

  // Large enough that files are split only if there are fewer of them than cores can work on.
  private[writercompat] def pieceSize(
      bytes: Long,
      cores: Int,
      least: Long,
      greatest: Long
  ): Long = math.max(least, math.min(greatest, bytes / (cores * piecesPerCore)))

  private val piecesPerCore = 4

  private def widened(data: DataFrame, schema: StructType): DataFrame =
    data.select(data.schema.map { field =>
      val column = col(quoteIdentifier(field.name))
      val wanted = schema(field.name).dataType
      if (DataTypeUtils.sameType(field.dataType, wanted)) column
      else {
        require(Cast.canUpCast(field.dataType, wanted), s"${field.name} cannot be made $wanted")
        column.cast(wanted).as(field.name)
      }
    }: _*)

  // By the row counts of the footers, because the log may be wrong about a file that has to be
  // rewritten. They are read again here: the scan that chose the files may be an older one, and a
  // missing file is to be named before anything is written.
  private def liveRows(spark: SparkSession, from: Snapshot, files: Seq[AddFile]): Long = {
    val context = spark.sparkContext
    val folder = from.deltaLog.dataPath.toString
    val hadoop =
      context.broadcast(new SerializableConfiguration(from.deltaLog.newDeltaHadoopConf()))
    val tasks = math.min(files.size / filesPerTask + 1, context.defaultParallelism * tasksPerCore)
    val stored = JobDescription(spark, s"Counting the rows of ${files.size} data file(s)") {
      context
        .parallelize(files.map(file => file.path -> file.size), tasks)
        .map { case (path, size) =>
          Footers
            .read(folder, path, hadoop.value.value, Some(size))
            .fold(
              unreadable => Left(s"$path: ${unreadable.reason} (${unreadable.detail})"),
              footer => Right(footer.rowCount)
            )
        }
        .fold(Right(0L)) {
          case (Right(some), Right(more)) => Right(some + more)
          case (unreadable @ Left(_), _)  => unreadable
          case (_, unreadable)            => unreadable
        }
    }
    val deleted = files.flatMap(file => Option(file.deletionVector)).map(_.cardinality).sum
    stored.fold(reason => throw new IllegalStateException(reason), _ - deleted)
  }

  private val filesPerTask = 32
  private val tasksPerCore = 16

  /** Writes files as the transaction would, but into their own folder; it is never committed. */
  private final class IntoFolder(txn: OptimisticTransaction, folder: String)
      extends GuardedTransaction(txn.deltaLog, txn.catalogTable, txn.snapshot) {

    newMetadata = Some(txn.metadata)
    newProtocol = Some(txn.protocol)

    override protected def getCommitter(outputPath: Path): DelayedCommitProtocol =
      committerInto(outputPath, Some(folder))
  }
}
