package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.actions.{Action, AddFile, Metadata, RemoveFile, SetTransaction}
import org.apache.spark.sql.delta.clustering.ClusteringMetadataDomain
import org.apache.spark.sql.delta.{
  CommittedTransaction,
  DeltaConfigs,
  DeltaLog,
  Snapshot,
  TypeWideningMetadata
}
import org.apache.spark.sql.delta.writercompat.guard.{GuardedTransaction, OvertakenCommit}
import org.apache.spark.sql.delta.writercompat.publish.PublishHook
import org.apache.spark.sql.delta.writercompat.read.{
  Copies,
  DeltaTables,
  NewestVersion,
  Sessions,
  TableStates
}
import org.apache.spark.sql.types.{
  ArrayType,
  DataType,
  MapType,
  StructField,
  StructType,
  TimestampNTZType
}
import org.icebergwritercompat.contract.Lifecycle
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.source._
import org.icebergwritercompat.iceberg.translate.IcebergSchemas
import org.icebergwritercompat.model.{SchemaNode, WriterCompat}

import java.util.ConcurrentModificationException
import scala.util.control.NonFatal
import scala.util.{Failure, Success}

/**
 * Commits a change by a transaction of Delta that keeps all rules, at exactly one version.
 *
 * @param name
 *   how a statement refers to the table
 */
private[writercompat] final class SparkDeltaSink(
    spark: SparkSession,
    name: String,
    log: DeltaLog,
    catalogTable: Option[CatalogTable]
) extends DeltaSink {

  /** What the last call of `commit` has committed, if it has, for whoever publishes it. */
  def committed: Option[CommittedTransaction] = last

  private var last = Option.empty[CommittedTransaction]

  override def commit(proposed: ProposedCommit, at: Long): CommitOutcome =
    Sessions.active(spark) {
      last = None
      val snapshot = SparkDeltaSink.recent(log, catalogTable)
      if (proposed.request.exists(made => snapshot.transactions.contains(made.application)))
        CommitOutcome.Repeated
      else if (snapshot.version != at) CommitOutcome.Overtaken(snapshot.version)
      else {
        val transaction = start(snapshot)
        // Whoever asked publishes it.
        PublishHook.quietly(attempt(proposed, snapshot, transaction))
      }
    }

  /**
   * Why the table cannot become what a change defines, its files aside.
   *
   * @param isNew
   *   whether the change makes the table; one that is there already is for the commit to judge
   */
  def refusal(proposed: ProposedCommit, isNew: Boolean): Option[IcebergWriterCompatException] =
    Sessions.active(spark) {
      val snapshot = log.update(catalogTableOpt = catalogTable)
      if (isNew && snapshot.version >= 0) None
      else
        try {
          val transaction = start(snapshot)
          if (proposed.replacesRows) transaction.replacesRows()
          define(proposed, snapshot, transaction)
          transaction.checkDefinition()
          None
        } catch {
          case NonFatal(e) =>
            notMade(e, snapshot, begun = false) match {
              case CommitOutcome.Refused(why) => Some(why)
              case _                          => None
            }
        }
    }

  private def start(snapshot: Snapshot): GuardedTransaction =
    GuardedTransaction.guard(log.startTransaction(catalogTable, Some(snapshot))) match {
      case guarded: GuardedTransaction =>
        guarded.called(name)
        guarded
      case other => throw new IllegalStateException(s"${other.getClass} is not guarded")
    }

  private def attempt(
      proposed: ProposedCommit,
      snapshot: Snapshot,
      transaction: GuardedTransaction
  ): CommitOutcome = {
    var begun = false
    try {
      transaction.exactly()
      if (proposed.replacesRows && snapshot.numOfFiles == proposed.removed.size)
        transaction.replacesRows()
      define(proposed, snapshot, transaction)
      val changed = this.changed(proposed, snapshot, transaction)
      begun = true
      val version = transaction.commit(
        changed.actions(proposed.request),
        new IcebergOperation(proposed.operation, changed.metrics),
        proposed.client.map(note => ClientSnapshots.Tag -> note.json).toMap
      )
      last = transaction.result
      CommitOutcome.Committed(version)
    } catch {
      case NonFatal(e) =>
        // The answer of the file system may have been lost.
        val made = if (begun) transaction.madeVersion(snapshot.version + 1) else Success(false)
        made match {
          case Success(true)  => CommitOutcome.Committed(snapshot.version + 1)
          case Success(false) =>
            transaction.removeWritten()
            notMade(e, snapshot, begun)
          case Failure(_) => CommitOutcome.Unknown(e)
        }
    }
  }

  private def notMade(e: Throwable, snapshot: Snapshot, begun: Boolean): CommitOutcome = e match {
    case _: OvertakenCommit | _: ConcurrentModificationException =>
      CommitOutcome.Overtaken(newest())
    case refusal: IcebergWriterCompatException => CommitOutcome.Refused(refusal)
    case _: AnalysisException                  =>
      CommitOutcome.Refused(refused("BY_DELTA", e, "cause" -> e.getMessage))
    case error: SparkThrowable if error.getCondition != null =>
      CommitOutcome.Refused(refused("BY_DELTA", e, "cause" -> e.getMessage))
    case _ if !begun                      => throw e
    case _ if newest() > snapshot.version => CommitOutcome.Overtaken(newest())
    case _                                => CommitOutcome.Unknown(e)
  }

  private def newest(): Long = log.update(catalogTableOpt = catalogTable).version

  private def refused(
      reason: String,
      cause: Throwable,
      parameters: (String, String)*
  ): IcebergWriterCompatException =
    IcebergWriterCompatException.commitRefused(reason, name, parameters.toMap, cause)

  private def define(
      proposed: ProposedCommit,
      snapshot: Snapshot,
      transaction: GuardedTransaction
  ): Unit = if (proposed.definition.isDefined || proposed.set.nonEmpty || proposed.unset.nonEmpty) {
    val before = snapshot.metadata
    val properties = before.configuration -- proposed.unset ++ proposed.set
    val changed = proposed.definition.fold(before.copy(configuration = properties)) { definition =>
      if (snapshot.version >= 0) checkClustering(snapshot, definition.schema)
      val schema =
        if (snapshot.version < 0) definition.schema
        else
          TypeWideningMetadata.addTypeWideningMetadata(
            transaction,
            definition.schema,
            // Delta compares by name.
            SparkDeltaSink.alignedStruct(before.schema, definition.schema)
          )
      before.copy(
        id = definition.id,
        schemaString = schema.json,
        partitionColumns = definition.partitionColumns,
        configuration = properties + (WriterCompat.MaxColumnId -> highest(before, definition)) ++
          manuallyEnabled(snapshot, definition.schema),
        createdTime = before.createdTime.orElse(Some(System.currentTimeMillis()))
      )
    }
    if (snapshot.version < 0) transaction.updateMetadataForNewTable(changed)
    else transaction.updateMetadata(changed)
  }

  // Delta asks a person to set it when a table gets its first column of the type, and a client of
  // Iceberg has no way to do so.
  private def manuallyEnabled(snapshot: Snapshot, schema: StructType): Map[String, String] = {
    val feature = "timestampNtz"
    val isMissing = snapshot.version >= 0 &&
      !snapshot.protocol.writerFeatures.exists(_.contains(feature)) &&
      SchemaNode.flatten(schema).exists(_.dataType == TimestampNTZType)
    Option.when(isMissing)(s"delta.feature.$feature" -> "supported").toMap
  }

  private def highest(before: Metadata, definition: ProposedDefinition): String = {
    val known = before.configuration.get(WriterCompat.MaxColumnId).flatMap(_.toIntOption)
    math.max(known.getOrElse(0), definition.maxColumnId).toString
  }

  // Delta's own statement looks at it, and its update of metadata does not.
  private def checkClustering(snapshot: Snapshot, schema: StructType): Unit = {
    val known = SchemaNode.flatten(schema).flatMap(_.physicalName).toSet
    snapshot.domainMetadata
      .collectFirst { case ClusteringMetadataDomain(found, false) => found.clusteringColumns }
      .toSeq
      .flatten
      .find(column => !column.forall(known))
      .foreach { column =>
        throw refused(
          "BY_DELTA",
          null,
          "cause" -> (s"the table is clustered by ${column.mkString(".")}, which would be dropped. " +
            s"Run ALTER TABLE $name CLUSTER BY with other columns before.")
        )
      }
  }

  private def changed(
      proposed: ProposedCommit,
      snapshot: Snapshot,
      transaction: GuardedTransaction
  ): ChangedFiles = {
    val now = System.currentTimeMillis()
    val touched = proposed.deletes.toSeq.flatMap(_.files)
    val kept = touched.filterNot(_.isNew).map(file => RemovedFile(file.path, dataChange = true))
    val live = this.live(snapshot, (proposed.removed ++ kept).map(_.path))
    val added = this.added(proposed.added, snapshot, transaction, now)
    val removed = proposed.removed.map { file =>
      live(file.path).removeWithTimestamp(now, file.dataChange)
    }
    proposed.deletes.fold(ChangedFiles(removed, added)) { deletes =>
      val byPath = live ++ added.map(file => file.path -> file)
      // Before files are written for nothing.
      if (kept.nonEmpty) DeltaLog.assertRemovable(snapshot)
      val deletion = new RowDeletion(spark, log, name, transaction, unusable)
      val done = deletion.applied(deletes, touched.map(file => byPath(file.path)))
      val (fresh, old) = done.touched.toSeq.map(touched).partition(_.isNew)
      val dropped = fresh.map(_.path).toSet
      ChangedFiles(
        removed ++ old.map(file => live(file.path).removeWithTimestamp(now)),
        added.filterNot(file => dropped(file.path)) ++ done.added,
        Some(done.rows)
      )
    }
  }

  private def unusable(file: String, found: String): Throwable = refused(
    "ROW_DELETES",
    null,
    "file" -> file,
    "found" -> found,
    "instead" -> "Write it by a library of Iceberg, and commit it as that library wrote it."
  )

  private def added(
      files: Seq[AddedFile],
      snapshot: Snapshot,
      transaction: GuardedTransaction,
      now: Long
  ): Seq[AddFile] = if (files.isEmpty) Nil
  else {
    val metadata = transaction.metadata
    val lifecycle = if (snapshot.version < 0) Lifecycle.Creating(false) else Lifecycle.Changing
    val table = TableStates
      .of(name, lifecycle, transaction.protocol, metadata, TableStates.profile(spark))
    val schema = IcebergSchemas.schema(metadata.schema)
    val judged =
      AddedDataFiles.judged(spark, log, table, schema, SparkDeltaSink.collected(metadata), files)
    val broken = judged.flatMap(file => file.broken.map(file.file -> _))
    broken.headOption.foreach { case (file, rule) =>
      throw refused(
        "FILE_RULES",
        null,
        "file" -> file.path,
        "rule" -> rule.rule,
        "found" -> Seq(rule.found, rule.detail).filter(_.nonEmpty).distinct.mkString("; "),
        "required" -> rule.required,
        "count" -> broken.size.toString
      )
    }
    judged.map { file =>
      Copies.of(
        Copies.addFile(file.file.path, file.file.partitionValues, file.file.size),
        "dataChange" -> file.file.dataChange,
        "modificationTime" -> now,
        "stats" -> file.statistics
      )
    }
  }

  /** The files of a version that are to be removed, by the paths that were given. */
  private def live(snapshot: Snapshot, wanted: Seq[String]): Map[String, AddFile] =
    if (wanted.isEmpty) Map.empty
    else {
      val found = new LiveFilesByPath(log, snapshot).of(wanted)
      wanted.find(!found.contains(_)).foreach { path =>
        throw refused(
          "DATA_FILE",
          null,
          "file" -> path,
          "found" -> "it is to be removed, and the Delta table does not have it",
          "instead" -> "Load the table again, and remove files that it has then."
        )
      }
      found
    }
}

/**
 * The files of a commit.
 *
 * @param deletedRows
 *   how many rows delete files have taken out of files
 */
private final case class ChangedFiles(
    removed: Seq[RemoveFile],
    added: Seq[AddFile],
    deletedRows: Option[Long] = None
) {

  def actions(request: Option[RequestMark]): Seq[Action] =
    removed ++ added ++ request.map { made =>
      SetTransaction(made.application, made.content, Some(System.currentTimeMillis()))
    }

  /** For DESCRIBE HISTORY. */
  def metrics: Map[String, String] = Map(
    "numAddedFiles" -> added.size.toString,
    "numAddedBytes" -> added.map(_.size).sum.toString,
    "numRemovedFiles" -> removed.size.toString
  ) ++ deletedRows.map("numDeletedRows" -> _.toString)
}

private[writercompat] object SparkDeltaSink {

  /**
   * The newest version as it was within the last second. A commit on it is made at exactly the
   * version after it, and fails if there is one by then.
   */
  def recent(log: DeltaLog, catalogTable: Option[CatalogTable]): Snapshot =
    NewestVersion.of(log, catalogTable, recentMillis)

  // As long as from a client's refresh to its commit.
  private val recentMillis = 1000L

  /**
   * The old fields that the new schema still has, by id, under their new names and in its order.
   */
  def alignedStruct(old: StructType, now: StructType): StructType = {
    val byId = old.fields.flatMap(field => SchemaNode.idOf(field).map(_ -> field)).toMap
    StructType(now.fields.flatMap { field =>
      SchemaNode.idOf(field).flatMap(byId.get).map { before =>
        StructField(
          field.name,
          aligned(before.dataType, field.dataType),
          before.nullable,
          before.metadata
        )
      }
    })
  }

  private def aligned(old: DataType, now: DataType): DataType = (old, now) match {
    case (before: StructType, after: StructType) => alignedStruct(before, after)
    case (before: ArrayType, after: ArrayType)   =>
      before.copy(elementType = aligned(before.elementType, after.elementType))
    case (before: MapType, after: MapType) =>
      before.copy(
        keyType = aligned(before.keyType, after.keyType),
        valueType = aligned(before.valueType, after.valueType)
      )
    case _ => old
  }

  /** The ids of the columns of which a table has statistics, as Delta chooses them. */
  def collected(metadata: Metadata): Set[Int] = {
    // In the order in which Delta counts them, what is below a list or map left out.
    def leaves(struct: StructType, path: Seq[String]): Seq[(Seq[String], Int)] =
      struct.fields.toSeq.flatMap { field =>
        val here = path :+ field.name
        field.dataType match {
          case below: StructType => leaves(below, here)
          case _                 => SchemaNode.idOf(field).map(id => here -> id.toInt)
        }
      }
    val partitioning = metadata.partitionColumns.toSet
    val data = StructType(metadata.schema.filterNot(field => partitioning(field.name)))
    val all = leaves(data, Nil)
    DeltaConfigs.DATA_SKIPPING_STATS_COLUMNS.fromMetaData(metadata) match {
      case Some(columns) =>
        val named = columns.split(",").map(_.trim).filter(_.nonEmpty).map(DeltaTables.nameParts)
        def isNamed(path: Seq[String]) = named.exists { name =>
          path.size >= name.size &&
          path.zip(name).forall { case (a, b) => a.equalsIgnoreCase(b) }
        }
        all.collect { case (path, id) if isNamed(path) => id }.toSet
      case None =>
        val most = DeltaConfigs.DATA_SKIPPING_NUM_INDEXED_COLS.fromMetaData(metadata)
        (if (most < 0) all else all.take(most)).map(_._2).toSet
    }
  }
}
