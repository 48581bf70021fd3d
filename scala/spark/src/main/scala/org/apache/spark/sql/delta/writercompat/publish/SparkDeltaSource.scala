package org.apache.spark.sql.delta.writercompat.publish

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{Column, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{CommittedTransaction, DeltaLog, Snapshot}
import org.apache.spark.sql.delta.actions.{Action, AddFile, CommitInfo, Metadata, RemoveFile}
import org.apache.spark.sql.delta.coordinatedcommits.CoordinatedCommitsUtils
import org.apache.spark.sql.delta.writercompat.read.{CommitIds, NewestVersion, TableStates}
import org.apache.spark.unsafe.types.UTF8String
import org.icebergwritercompat.contract.{Lifecycle, TableState}
import org.icebergwritercompat.iceberg.source.{
  AddedFile,
  ClientSnapshots,
  CommitId,
  DeltaCommit,
  DeltaSource,
  DeltaVersion,
  FileTotals,
  MissingCommit,
  RemovedFile,
  TableAtVersion,
  TableDefinition
}

import java.nio.charset.StandardCharsets.UTF_8

/**
 * A Delta table as Delta's own library reads it.
 *
 * @param name
 *   how a statement names the table
 * @param committed
 *   a transaction of this process that has just committed to the table; what it has committed is
 *   not read from the log again, and the log is not listed for it
 */
private[writercompat] final class SparkDeltaSource(
    spark: SparkSession,
    override val name: String,
    log: DeltaLog,
    catalogTable: Option[CatalogTable],
    committed: Option[CommittedTransaction] = None
) extends DeltaSource {

  override def root: Path = log.dataPath

  override lazy val configuration: Configuration = log.newDeltaHadoopConf()

  // The log is asked again only if what follows from the answer does not fit.
  private var known = committed.flatMap { done =>
    Option(log.unsafeVolatileSnapshot).filter(_.version >= done.committedVersion)
  }

  override def newest(): TableAtVersion = {
    val snapshot = known.getOrElse(NewestVersion.of(log, catalogTable))
    known = None
    new SparkTableAtVersion(spark, name, log, snapshot)
  }

  override def at(version: Long): TableAtVersion =
    new SparkTableAtVersion(
      spark,
      name,
      log,
      log.getSnapshotAt(version, catalogTableOpt = catalogTable)
    )

  override def commits(from: Long, to: TableAtVersion): Iterator[DeltaCommit] =
    justCommitted(from, to) match {
      case Some(commit) => Iterator.single(commit) ++ logged(from + 1, to)
      case None         => logged(from, to)
    }

  private def logged(from: Long, to: TableAtVersion): Iterator[DeltaCommit] =
    if (from > to.number) Iterator.empty
    else {
      val files = CoordinatedCommitsUtils.commitFilesIterator(log, catalogTable, from)
      Iterator.iterate(from)(_ + 1).takeWhile(_ <= to.number).map { version =>
        if (!files.hasNext) throw new MissingCommit(version)
        val (file, found) = files.next()
        if (found != version) throw new MissingCommit(version)
        val lines = log.store.read(file, log.newDeltaHadoopConf())
        val actions = lines.map(Action.fromJson)
        val time = inCommitTimestamp(actions).getOrElse(file.getModificationTime)
        commit(DeltaVersion(version, time, Some(CommitId.of(lines.iterator))), actions, to)
      }
    }

  // A large commit has no actions here, and without commitInfo the id is a digest of the file.
  private def justCommitted(version: Long, to: TableAtVersion): Option[DeltaCommit] =
    for {
      done <- committed if done.committedVersion == version && version <= to.number
      id <- done.committedActions.iterator.take(1).collectFirst {
        case info: CommitInfo if info.txnId.contains(done.txnId) => done.txnId
      }
      after = Option(done.postCommitSnapshot).filter(_.version == version).map(_.timestamp)
      time <- inCommitTimestamp(done.committedActions).orElse(after)
    } yield commit(DeltaVersion(version, time, Some(id)), done.committedActions, to)

  private def inCommitTimestamp(actions: Seq[Action]): Option[Long] =
    actions.collectFirst { case info: CommitInfo => info }.flatMap(_.inCommitTimestamp)

  private def commit(
      version: DeltaVersion,
      actions: Seq[Action],
      to: TableAtVersion
  ): DeltaCommit = {
    val changed = actions.collectFirst { case metadata: Metadata => metadata }
    val state = changed.map(stateOf(_, to))
    DeltaCommit(
      version,
      changed.zip(state).map { case (metadata, state) => TableDefinition.of(metadata.id, state) },
      actions.collect { case add: AddFile => SparkDeltaSource.added(add) },
      actions.collect { case remove: RemoveFile => RemovedFile(remove.path, remove.dataChange) },
      state,
      actions
        .collectFirst { case info: CommitInfo => info }
        .flatMap(_.tags)
        .flatMap(ClientSnapshots.in)
    )
  }

  // The rules see changed metadata together with the protocol of the version that is published.
  private def stateOf(metadata: Metadata, to: TableAtVersion): TableState = to match {
    case own: SparkTableAtVersion => own.stateWith(metadata)
    case other => throw new IllegalArgumentException(s"$other is of another source")
  }
}

/** A version of a Delta table as Delta's own library reads it. */
private final class SparkTableAtVersion(
    spark: SparkSession,
    name: String,
    log: DeltaLog,
    snapshot: Snapshot
) extends TableAtVersion {

  override def number: Long = snapshot.version

  override def timestamp: Long = snapshot.timestamp

  override def tableId: String = snapshot.metadata.id

  override def properties: Map[String, String] = snapshot.metadata.configuration

  override lazy val state: TableState = stateWith(snapshot.metadata)

  /** The state of the table if its metadata were this. */
  def stateWith(metadata: Metadata): TableState =
    TableStates.of(
      name,
      Lifecycle.Changing,
      snapshot.protocol,
      metadata,
      TableStates.profile(spark)
    )

  override lazy val definition: TableDefinition = TableDefinition.of(tableId, state)

  override def totals: FileTotals = {
    val known = snapshot.checksumOpt
    FileTotals(known.map(_.numFiles), known.map(_.tableSizeBytes))
  }

  override def keptMillis: Long = DeltaLog.tombstoneRetentionMillis(snapshot.metadata)

  // Rows, because Spark would make the objects of all files on one thread.
  override def live: Iterator[() => AddedFile] = {
    val files = snapshot.allFiles.toDF().select(SparkDeltaSource.columns: _*)
    // Each partition is a job, one after the other, and Delta makes 50 of a few files too.
    val partitions = totals.files.map(_ / SparkDeltaSource.filesPerJob + 1)
    val few = partitions.filter(_ < SparkDeltaSource.mostJobs).fold(files) { number =>
      files.coalesce(number.toInt)
    }
    val rows = castToImpl(few).queryExecution
    val found = SQLExecution.withNewExecutionId(rows, Some("live files to publish")) {
      rows.executedPlan.executeToIterator()
    }
    found.map(row => () => SparkDeltaSource.added(row))
  }

  override def commitId(version: Long): Option[String] = ids.of(version)

  private lazy val ids = new CommitIds(log, snapshot)
}

private object SparkDeltaSource {

  /** The live files that one job reads: 10 MB where statistics are long. */
  val filesPerJob: Long = 10000

  /** The most jobs that are saved, which is Delta's default number of partitions. */
  val mostJobs: Long = 50

  private val required = Seq("path", "size", "dataChange", "modificationTime")

  /** The columns of a live file that publishing needs. */
  val columns: Seq[Column] =
    required.map(col) ++ Seq("partitionValues", "stats").map(col) :+ col("deletionVector").isNotNull

  /** A file from these columns. */
  def added(row: InternalRow): AddedFile = {
    required.indices.find(row.isNullAt).foreach { i =>
      throw new IllegalStateException(s"The add action of a live file has no ${required(i)}.")
    }
    AddedFile(
      text(row.getUTF8String(0)),
      if (row.isNullAt(4)) null else texts(row.getMap(4)),
      row.getLong(1),
      if (row.isNullAt(5)) null else text(row.getUTF8String(5)),
      row.getBoolean(2),
      hasDeletionVector = row.getBoolean(6)
    )
  }

  // Unlike its toString, without a copy of the bytes.
  private def text(of: UTF8String): String = {
    val bytes = of.getByteBuffer
    new String(bytes.array, bytes.arrayOffset + bytes.position(), bytes.remaining, UTF_8)
  }

  private def texts(map: MapData): Map[String, String] = {
    def text(of: ArrayData, i: Int): String =
      if (of.isNullAt(i)) null else SparkDeltaSource.text(of.getUTF8String(i))
    val (keys, values) = (map.keyArray(), map.valueArray())
    (0 until map.numElements()).map(i => text(keys, i) -> text(values, i)).toMap
  }

  def added(add: AddFile): AddedFile =
    AddedFile(
      add.path,
      add.partitionValues,
      add.size,
      add.stats,
      add.dataChange,
      hasDeletionVector = add.deletionVector != null
    )
}
