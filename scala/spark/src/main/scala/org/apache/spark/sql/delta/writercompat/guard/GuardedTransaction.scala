package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{Dataset, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{
  Action,
  AddFile,
  CommitInfo,
  FileAction,
  Metadata,
  Protocol,
  TableFeatureProtocolUtils
}
import org.apache.spark.sql.delta.constraints.Constraint
import org.apache.spark.sql.delta.files.DelayedCommitProtocol
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.writercompat.feature.JoinPoints
import org.apache.spark.sql.delta.writercompat.publish.{PublishHook, PublishProperties}
import org.apache.spark.sql.execution.{ProjectExec, SparkPlan}
import org.apache.spark.sql.types.StructField
import org.icebergwritercompat.contract.{
  ChangeKind,
  ChangeRule,
  Contract,
  Lifecycle,
  TableChange,
  TableState,
  Violation
}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.{Location, SupportedTypes, WriterCompat}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.{ChangeRules, PropertyRules, ProtocolRules, SchemaRules}
import org.apache.spark.sql.delta.writercompat.datafiles.{
  DataActionConverter,
  DataFileAudit,
  FileHistory
}
import org.apache.spark.sql.delta.writercompat.read.{
  Copies,
  MalformedLog,
  PhysicalNames,
  RunningStatement,
  TableStates
}
import org.icebergwritercompat.iceberg.source.FileSystemsInReach

import java.io.FileNotFoundException
import java.nio.file.NoSuchFileException
import java.util.ConcurrentModificationException
import scala.util.control.NonFatal
import scala.util.{Try, Using}

/**
 * A transaction that refuses commits which break a rule of the feature.
 *
 * For a table without the property it does what Delta does.
 */
class GuardedTransaction(
    deltaLog: DeltaLog,
    catalogTable: Option[CatalogTable],
    snapshot: Snapshot
) extends OptimisticTransaction(deltaLog, catalogTable, snapshot) {

  private var replacing = false

  private var overwritingSchema = false

  /** Set when the metadata switches the feature on; checked when the committing method is known. */
  private var enabling: Option[FeatureActivation] = None

  private var checkedFiles: () => Iterator[AddFile] = () => Iterator.empty

  private var committingLarge: Option[DeltaOperations.Operation] = None

  private val leftovers = new Leftovers(deltaLog, isNew = snapshot.version < 0)

  override protected def getCommitter(outputPath: Path): DelayedCommitProtocol = {
    val committer =
      if (isGuarded(metadata)) committerInto(outputPath, deltaDataSubdir)
      else super.getCommitter(outputPath)
    leftovers.written(committer)
    committer
  }

  /**
   * Runs a step towards a table with the metadata `wanted`. If the step fails and `wanted` has the
   * feature, folders that were created are removed.
   */
  private def leavingNothing[T](wanted: => Metadata)(step: => T): T =
    try explained(step)
    catch {
      case NonFatal(e) =>
        if (e.isInstanceOf[IcebergWriterCompatException] || isGuarded(wanted))
          leftovers.removeFolders()
        throw e
    }

  /** Runs a step of Delta; an error without a condition may be caused by a malformed log. */
  private def explained[T](step: => T): T =
    MalformedLog.explainedStep(spark, tableName, snapshot)(step)

  override def updateMetadataForNewTable(metadata: Metadata): Unit = {
    replacing = readVersion >= 0
    super.updateMetadataForNewTable(metadata)
  }

  override def updateMetadataForNewTableInReplace(metadata: Metadata): Unit = {
    replacing = readVersion >= 0
    // Delta decides here whether columns keep their ids, by the current mapping mode.
    super.updateMetadataForNewTableInReplace(completed(metadata))
  }

  override def updateMetadataForTableOverwrite(proposedNewMetadata: Metadata): Unit = {
    overwritingSchema = true
    super.updateMetadataForTableOverwrite(proposedNewMetadata)
  }

  override protected def updateMetadataInternal(
      asked: Metadata,
      ignoreDefaultProperties: Boolean
  ): Unit = leavingNothing(asked) {
    val proposed = NewTable.normalized(asked)
    if (wasGuarded && !creating) {
      checkColumnMapping()
      // Delta computes the next id from it.
      val highest = proposed.configuration.get(WriterCompat.MaxColumnId)
      if (highest.exists(value => value == null || value.toLongOption.isEmpty)) {
        val table = stateWith(proposed)
        refuseFirst(table, table.violationsOf(PropertyRules.MaxColumnIdCoversAllIds))
      }
    }
    // Only CLONE uses this: its files exist already, so its metadata must not be changed.
    val isClone = ignoreDefaultProperties
    if (switchesOn(proposed) && !isClone) switchOn(proposed)
    else {
      val declared =
        if (isClone) proposed
        else if (creating) NewTable.withoutPast(completed(proposed))
        else if (overwritingSchema) NewTable.withoutPast(proposed)
        else proposed
      checkDeclaration(declared)
      super.updateMetadataInternal(declared, ignoreDefaultProperties)
      newMetadata.filter(isGuarded).foreach { metadata =>
        val settled =
          if (isClone) PhysicalNames.idsOf(proposed.schema)
          else if (creating) Set.empty[Long]
          else PhysicalNames.idsOf(snapshot.metadata.schema)
        val placed =
          if (replacing || overwritingSchema) MovedColumns.renumbered(stateOf(snapshot), metadata)
          else metadata
        newMetadata = Some(PhysicalNames.followIds(placed, settled))
      }
      // For an existing table only the new version can be checked here: which changes between the
      // two depends on the operation, which the commit names.
      if (creating || overwritingSchema) checkTable(ChangeKind.Replacing)
      else
        checkState(
          if (wasGuarded) violationsOf(TableChange(before, tableState, ordinary))
          else Iterator.empty
        )
    }
    checkPublishing()
  }

  // CREATE TABLE LIKE replaces the protocol that the metadata needs by that of the other table.
  override def updateProtocol(proposed: Protocol): Unit = newProtocol match {
    case Some(needed) if creating && isGuarded(metadata) =>
      super.updateProtocol(
        needed.merge(NewTable.withoutUnusable(proposed, tableState.contract, profile))
      )
    case _ => super.updateProtocol(proposed)
  }

  override def writeFiles(
      inputData: Dataset[_],
      writeOptions: Option[DeltaOptions],
      isOptimize: Boolean,
      additionalConstraints: Seq[Constraint]
  ): Seq[FileAction] = {
    checkState()
    explained(super.writeFiles(inputData, writeOptions, isOptimize, additionalConstraints))
  }

  // Delta would detect a column without a numeric id late or not at all.
  private def checkColumnMapping(): Unit =
    refuseFirst(before, before.violationsOf(SchemaRules.FieldsHaveIdAndPhysicalName))

  /**
   * Prepares this transaction to switch the feature on for a table with files, which Delta's own
   * update of metadata does not support. The caller has checked the files, and commits with
   * `commitLarge`, which fails if another version was committed meanwhile.
   *
   * @param kept
   *   live files with their new log entries, which the caller has checked; they are added to the
   *   commit
   */
  private[writercompat] def upgradeTo(
      target: Metadata,
      needed: Protocol,
      kept: => Iterator[AddFile]
  ): Unit = {
    require(newMetadata.isEmpty && switchesOn(target), "the target does not switch the feature on")
    newMetadata = Some(target)
    newProtocol = Some(needed)
    checkedFiles = () => kept
    // The caller has checked it together with the other parts of an upgrade.
    accepted = Some(tableState)
  }

  override protected def prepareCommit(
      actions: Seq[Action],
      op: DeltaOperations.Operation
  ): Seq[Action] = leavingNothing(metadata) {
    try preparedCommit(actions, op)
    catch {
      // After a lost race, a command may commit the same files in another transaction.
      case NonFatal(e) if isGuarded(metadata) && !e.isInstanceOf[ConcurrentModificationException] =>
        leftovers.removeFiles()
        throw e
    }
  }

  private def preparedCommit(
      actions: Seq[Action],
      op: DeltaOperations.Operation
  ): Seq[Action] = {
    checkEnabling()
    val prepared =
      if (Enforcement.isRunning && readVersion < 0) settled(actions)
      else super.prepareCommit(actions, op)
    // Metadata may also be an action of the commit, without an update before.
    if (enabling.isEmpty && switchesOn(metadata)) {
      enabling = Some(FeatureActivation.asItIs(this))
      checkEnabling()
    }
    checkTable(kind(op))
    checkPublishing()
    checked(prepared.iterator).foreach(_ => ())
    Enforcement.stop(intended)
    if (isPublished) registerPostCommitHook(PublishHook)
    prepared
  }

  // Delta creates the folders of a new table when it prepares the commit.
  private def settled(actions: Seq[Action]): Seq[Action] = {
    updateMetadataAndProtocolWithRequiredFeatures(newMetadata, newProtocol.toSeq)
    actions
  }

  override protected def updateMetadataAndProtocolWithRequiredFeatures(
      metadataOpt: Option[Metadata],
      protocols: Seq[Protocol]
  ): Unit = {
    super.updateMetadataAndProtocolWithRequiredFeatures(metadataOpt, protocols)
    // The metadata and protocol of a large commit are final here, and nothing is written yet.
    committingLarge.foreach { op =>
      checkTable(kind(op))
      checkPublishing()
      if (isGuarded(metadata)) refuseFirst(tableState, FileHistory.takenOver(spark, tableState, op))
      Enforcement.stop(intended)
    }
  }

  override def commitLarge(
      spark: SparkSession,
      nonProtocolMetadataActions: Iterator[Action],
      newProtocolOpt: Option[Protocol],
      op: DeltaOperations.Operation,
      context: Map[String, String],
      metrics: Map[String, String]
  ): (Long, Snapshot) = {
    committingLarge = Some(op)
    val result =
      try
        leavingNothing(metadata) {
          if (enabling.isDefined) checkRestored(op)
          super.commitLarge(
            spark,
            // Checked while they are written; the commit becomes visible only as a whole.
            checked(nonProtocolMetadataActions) ++ checkedFiles(),
            newProtocolOpt,
            op,
            context,
            metrics
          )
        }
      finally committingLarge = None
    // Delta runs no hooks after such a commit.
    if (isPublished)
      committed.foreach(done =>
        runPostCommitHooks(Copies.of(done, "postCommitHooks" -> Seq(PublishHook)))
      )
    result
  }

  /** Whether this transaction made a version, even if it failed afterwards. */
  private[writercompat] def isInLog(version: Long): Boolean = madeVersion(version).getOrElse(false)

  /** The same; a failure if the version exists and cannot be read. */
  private[writercompat] def madeVersion(version: Long): Try[Boolean] = {
    val file = FileNames.unsafeDeltaFile(deltaLog.logPath, version)
    Try {
      // Of a large commit only the head is read.
      Using.resource(deltaLog.store.readAsIterator(file, deltaLog.newDeltaHadoopConf())) { lines =>
        lines.take(2).map(Action.fromJson).exists {
          case info: CommitInfo => info.txnId.contains(txnId)
          case _                => false
        }
      }
    }.recover { case _: FileNotFoundException | _: NoSuchFileException => false }
  }

  /** What the transaction has committed, if it has. */
  private[writercompat] def result: Option[CommittedTransaction] = committed

  private var exact = false

  /** Removes the files that were written for a commit that is not made. */
  private[writercompat] def removeWritten(): Unit = leftovers.removeFiles()

  /** Commits the version after the one that was read, or nothing, whatever else was committed. */
  private[writercompat] def exactly(): Unit = exact = true

  override protected def checkForConflicts(
      checkVersion: Long,
      currentTransactionInfo: CurrentTransactionInfo,
      attemptNumber: Int,
      commitIsolationLevel: IsolationLevel
  ): (Long, CurrentTransactionInfo) = {
    if (exact) throw new OvertakenCommit(readVersion)
    val result @ (nextVersion, resolved) =
      try
        super.checkForConflicts(
          checkVersion,
          currentTransactionInfo,
          attemptNumber,
          commitIsolationLevel
        )
      catch {
        case lost: ConcurrentModificationException =>
          val refusal = for {
            contract <- overtakenBy
            statement <- triedAgain(currentTransactionInfo.op)
          } yield IcebergWriterCompatException.writtenBeforeEnabling(
            tableName,
            contract,
            currentTransactionInfo.op.name,
            statement,
            lost
          )
          throw refusal.getOrElse(lost)
      }
    if (nextVersion > checkVersion) checkAgainst(nextVersion - 1, resolved)
    result
  }

  // After a lost race, Delta commits the files of these operations in another transaction if the
  // files that they have read are still live, whatever else has changed in the table.
  private def triedAgain(op: DeltaOperations.Operation): Option[Remedy] = op match {
    case _: DeltaOperations.Optimize => Some(Remedy.RunAgain(s"OPTIMIZE $tableName"))
    case _: DeltaOperations.Reorg    => Some(Remedy.Purge(tableName))
    case _                           => None
  }

  /** The contract that was switched on since this transaction began. */
  private def overtakenBy: Option[Contract] =
    if (wasGuarded) None
    else Contracts.of(deltaLog.update(catalogTableOpt = catalogTable).metadata.configuration)

  /** Checks the change against the version that was committed first, not the version read. */
  private def checkAgainst(winner: Long, resolved: CurrentTransactionInfo): Unit = {
    val won = deltaLog.getSnapshotAt(winner, catalogTableOpt = catalogTable)
    val guardedBefore = isGuarded(won.metadata)
    if (guardedBefore || isGuarded(resolved.metadata)) {
      val after =
        TableStates.of(tableName, lifecycle, resolved.protocol, resolved.metadata, profile)
      val change = TableChange(stateOf(won), after, kind(resolved.op))
      // Mostly the state is the one that was checked before the race.
      val isChecked = resolved.metadata == metadata && resolved.protocol == protocol &&
        accepted.exists(_ eq tableState)
      if (isGuarded(resolved.metadata) && !isChecked) refuseFirst(after, after.violations)
      if (guardedBefore) checkChange(change)
    }
  }

  // As in Delta, but with guarded transactions.
  override def split(readFilesSubset: Seq[AddFile]): OptimisticTransaction = {
    val plain = super.split(readFilesSubset)
    val part = GuardedTransaction.guard(plain).asInstanceOf[GuardedTransaction]
    part.executionObserver = plain.executionObserver
    part.readPredicates.addAll(readPredicates)
    readFilesSubset.foreach(part.readFiles.add)
    part.readTxn ++= readTxn
    part
  }

  // Delta and Iceberg readers must read the same values. Delta reads partition columns from the
  // log, Iceberg readers from the file. Delta does not pad a CHAR, but Spark pads it on reading, so
  // it is stored padded.
  override protected def convertEmptyToNullIfNeeded(
      plan: SparkPlan,
      partitionColumns: Seq[Attribute],
      constraints: Seq[Constraint]
  ): SparkPlan = {
    // By name, because Spark's optimizer may have replaced an attribute by another one of the same
    // name, in the plan of a stream or for an alias.
    lazy val fields = metadata.schema.map(field => field.name -> field).toMap
    lazy val partitions = metadata.partitionColumns.toSet
    // Delta's writer formats partition values in this time zone.
    val zone = plan.conf.sessionLocalTimeZone
    def converted(column: Attribute): Expression = {
      val filled = fields
        .get(column.name)
        .filter(field => SupportedTypes.filledUp(field.metadata).isDefined && isWhole(field))
        .fold[Expression](column)(field =>
          CharVarcharUtils.addPaddingForScan(column.withMetadata(field.metadata))
        )
      if (partitions(column.name)) LoggedPartitions.asRead(filled, zone) else filled
    }
    if (!isGuarded(metadata)) super.convertEmptyToNullIfNeeded(plan, partitionColumns, constraints)
    else {
      val columns = plan.output.map { column =>
        converted(column) match {
          case same: Attribute => same
          case other           => Alias(other, column.name)()
        }
      }
      if (columns == plan.output) plan else ProjectExec(columns, plan)
    }
  }

  /** Writes files in the required form, into this folder below the folder of the table. */
  private[writercompat] def committerInto(
      outputPath: Path,
      folder: Option[String]
  ): DelayedCommitProtocol =
    new PinnedFiles(
      tableState,
      outputPath.toString,
      DeltaConfigs.RANDOM_PREFIX_LENGTH.fromMetaData(metadata),
      folder
    )

  // The declared type in the metadata is not updated when fields are added to a struct; Spark
  // shows such a column as it is stored.
  private def isWhole(field: StructField): Boolean =
    CharVarcharUtils
      .getRawType(field.metadata)
      .map(CharVarcharUtils.replaceCharVarcharWithString)
      .exists(DataTypeUtils.sameType(_, field.dataType))

  private def creating: Boolean = readVersion < 0 || replacing

  private def isGuarded(metadata: Metadata): Boolean =
    Contracts.isEnabled(metadata.configuration)

  private def wasGuarded: Boolean = readVersion >= 0 && isGuarded(snapshot.metadata)

  private def isPublished: Boolean =
    isGuarded(metadata) && WriterCompat.isPublished(metadata.configuration)

  /** Refuses to set properties that would have no effect. */
  private def checkPublishing(): Unit =
    if (metadata ne snapshot.metadata) {
      val before = if (creating) Map.empty[String, String] else snapshot.metadata.configuration
      val wasPublished =
        readVersion >= 0 && WriterCompat.isPublished(snapshot.metadata.configuration)
      PublishProperties.check(tableName, before, metadata, wasPublished, isNew = readVersion < 0)
    }

  private def switchesOn(proposed: Metadata): Boolean =
    !creating && !wasGuarded && isGuarded(proposed)

  /**
   * The properties of a table that is created or replaced. A replaced table keeps the feature,
   * which its protocol keeps too, and keeps being published.
   */
  private def completed(proposed: Metadata): Metadata = {
    val kept =
      if (wasGuarded)
        snapshot.metadata.configuration.view.filterKeys(GuardedTransaction.keptInReplace).toMap
      else Map.empty[String, String]
    val all = proposed.copy(configuration = kept ++ proposed.configuration)
    NewTable.complete(spark, NewTable.normalized(all))
  }

  private def switchOn(proposed: Metadata): Unit = {
    val plan = FeatureActivation.of(this, proposed)
    super.updateMetadataInternal(plan.proposedToDelta, ignoreDefaultProperties = false)
    newMetadata = newMetadata.map(plan.finish)
    newProtocol = newMetadata
      .flatMap(Protocol.upgradeProtocolFromMetadataForExistingTable(spark, _, protocol))
      .orElse(newProtocol)
    // Files that were appended meanwhile have not been checked.
    readWholeTable()
    enabling = Some(plan)
  }

  private def checkEnabling(): Unit = enabling.foreach { plan =>
    val table = tableState
    val found = table.violations.toSeq ++ plan.findings(table)
    // The log does not have the properties that were set when the files were written.
    if (found.isEmpty) Enforcement.refuseAll(table, plan.inFooters(spark, table))
    // What no rewrite mends is named together with the rest: the call that is offered would be
    // refused for it.
    else {
      val footers = plan.besides(spark, before, table)
      Enforcement.refuseAll(table, found ++ footers.notMended, later = footers.all)
    }
  }

  /** Refuses RESTORE to a version with the feature whose files break rules. */
  private def checkRestored(op: DeltaOperations.Operation): Unit = {
    val table = tableState
    val restored = FileHistory.restored(spark, deltaLog, catalogTable, op)
    Enforcement.refuseAll(
      table,
      DataFileAudit.run(spark, restored, table).findings.map(_.violation)
    )
  }

  private def lifecycle: Lifecycle =
    if (creating) Lifecycle.Creating(replacing)
    else if (wasGuarded) Lifecycle.Changing
    else Lifecycle.Enabling

  private def kind(op: DeltaOperations.Operation): ChangeKind = op match {
    case _ if replacing || overwritingSchema => ChangeKind.Replacing
    case _: DeltaOperations.Restore          => ChangeKind.Restoring
    case _: DeltaOperations.DropTableFeature => ChangeKind.DroppingFeature
    case _                                   => ordinary
  }

  private var withoutOldRows = false

  /** Says that no row of before stays, whatever the operation is called. */
  private[writercompat] def replacesRows(): Unit = withoutOldRows = true

  private def ordinary: ChangeKind =
    if (withoutOldRows) ChangeKind.Replacing else ChangeKind.Ordinary

  private var ownName = Option.empty[String]

  /** Says how errors are to name the table, which may have no name yet. */
  private[writercompat] def called(name: String): Unit = ownName = Some(name)

  private lazy val tableName = ownName.getOrElse {
    Option
      .when(readVersion < 0)(RunningStatement.created)
      .flatten
      .fold(TableStates.nameOf(spark, this))(TableStates.nameOf)
  }

  private lazy val profile = TableStates.profile(spark)

  // The states of the last two updates, each with the violations that were computed for it.
  private var known = Vector.empty[((Metadata, Protocol, Lifecycle), TableState)]

  private def tableState: TableState = stateWith(metadata)

  // Cached, because Delta updates the metadata of a commit several times, mostly to an equal one.
  private def stateWith(metadata: Metadata): TableState =
    known
      .collectFirst { case (key, state) if key == ((metadata, protocol, lifecycle)) => state }
      .getOrElse {
        val state = TableStates
          .of(
            tableName,
            lifecycle,
            protocol,
            metadata,
            profile,
            previous = Option.when(wasGuarded)(before)
          )
          .copy(asItIs = Option.when(lifecycle == Lifecycle.Enabling)(before))
        known = ((metadata, protocol, lifecycle), state) +: known.take(1)
        state
      }

  private lazy val before: TableState = stateOf(snapshot)

  private def stateOf(version: Snapshot): TableState =
    TableStates.of(tableName, Lifecycle.Changing, version.protocol, version.metadata, profile)

  private def checkTable(kind: ChangeKind): Unit =
    if (isGuarded(metadata)) {
      val change =
        Option.when(wasGuarded && isChanged)(TableChange(before, tableState, kind))
      checkState(change.iterator.flatMap(violationsOf))
      change.foreach(checkChange)
    } else if (wasGuarded) checkChange(TableChange(before, tableState, kind))

  /** Checks what the table is to be by now, as the commit will. */
  private[writercompat] def checkDefinition(): Unit = checkTable(ordinary)

  private var accepted: Option[TableState] = None

  /** Checks the new version once, before files are written for it. */
  private def checkState(more: => Iterator[Violation] = Iterator.empty): Unit = if (
    isGuarded(metadata)
  ) {
    val table = tableState
    if (!accepted.exists(_ eq table)) {
      refuseFirst(table, table.violations, more)
      // Without a checksum Delta reads the log after the commit, where an error is too late.
      if (readVersion >= 0 && snapshot.checksumOpt.isEmpty) explained(snapshot.numOfFiles)
      accepted = Some(table)
    }
  }

  // Delta refuses some of this too, but its errors do not mention the feature.
  private def checkDeclaration(declared: Metadata): Unit = {
    val table = stateWith(NewTable.asStored(declared))
    def ofChange: Iterator[Violation] = if (!wasGuarded) Iterator.empty
    else {
      val replaces = creating || overwritingSchema
      val change =
        TableChange(before, table, if (replaces) ChangeKind.Replacing else ordinary)
      val rules = Iterator(ChangeRules.SwitchedOffWithTheFeatureOnly) ++
        Option.when(isGuarded(declared))(ChangeRules.PartitioningStays)
      rules.flatMap(_.check(change))
    }
    if (isGuarded(declared))
      refuseFirst(
        table,
        table.violationsOf(table.contract.rules.declaration),
        if (creating || overwritingSchema || !wasGuarded) ofChange ++ ofFeatures(declared, table)
        else table.contract.rules.check(TableChange(before, table, ordinary))
      )
    refuseFirst(table, ofChange)
  }

  // The protocol is derived from the declaration later.
  private def ofFeatures(declared: Metadata, table: TableState): Iterator[Violation] = {
    val prefix = TableFeatureProtocolUtils.FEATURE_PROP_PREFIX
    val asked =
      declared.configuration.keySet.filter(_.startsWith(prefix)).map(_.stripPrefix(prefix))
    val features = asked.flatMap(TableFeature.featureNameToFeature(_)).map(_.name)
    val protocol = table.protocol.copy(writerFeatures =
      Some(table.protocol.writerFeatures.getOrElse(Set.empty) ++ features)
    )
    if (!creating || features.isEmpty) Iterator.empty
    else
      Iterator(ProtocolRules.FeaturesAreNotForbidden, ProtocolRules.FeaturesAreAllowed)
        .flatMap(_.check(table.copy(protocol = protocol)))
        .filter { violation =>
          violation.location match {
            case Location.Feature(feature) => features(feature)
            case _                         => false
          }
        }
  }

  private def isChanged: Boolean =
    (metadata ne snapshot.metadata) || protocol != snapshot.protocol

  // After the feature was dropped, its rules do not apply.
  private def checkChange(change: TableChange): Unit =
    refuseFirst(change.after, violationsOf(change))

  private def violationsOf(change: TableChange): Iterator[Violation] = {
    val rules: Iterator[ChangeRule] =
      if (change.after.isEnabled) change.after.contract.rules.change.iterator
      else Iterator(ChangeRules.SwitchedOffWithTheFeatureOnly)
    rules.flatMap(_.check(change))
  }

  /** The same actions; iterating refuses the first one that breaks a rule. */
  private def checked(actions: Iterator[Action]): Iterator[Action] = {
    lazy val guarded = isGuarded(metadata)
    lazy val table = tableState
    lazy val shown =
      new DataActionConverter(table, new FileSystemsInReach(deltaLog.newDeltaHadoopConf()))
    actions.map { action =>
      if (guarded)
        shown.of(action).foreach(a => refuseFirst(table, table.contract.rules.check(table, a)))
      action
    }
  }

  private def refuseFirst(
      table: TableState,
      violations: IterableOnce[Violation],
      more: => Iterator[Violation] = Iterator.empty
  ): Unit = Enforcement.refuseFirst(table, violations, more)

  private def intended: Intended = Intended(tableName, snapshot, replacing, protocol, metadata)
}

/** Another commit came before one that was to be the next. */
private[writercompat] final class OvertakenCommit(read: Long)
    extends ConcurrentModificationException(s"Version ${read + 1} is committed already")

/** Creates guarded transactions. */
object GuardedTransaction {

  private def keptInReplace: Set[String] =
    Contracts.all.map(_.property).toSet ++ Set(
      WriterCompat.Publish,
      WriterCompat.PublishTable,
      WriterCompat.PublishScheme
    )

  /** A guarded transaction that replaces `transaction`, at the same snapshot. */
  def guard(transaction: OptimisticTransaction): OptimisticTransaction = transaction match {
    case guarded: GuardedTransaction                               => guarded
    case plain if plain.getClass == classOf[OptimisticTransaction] =>
      new GuardedTransaction(plain.deltaLog, plain.catalogTable, plain.snapshot)
    case other =>
      throw IcebergWriterCompatException.notInstalled(
        "JOIN_POINT",
        Map(
          "joinPoint" -> JoinPoints.StartTransaction.id,
          "cause" -> s"${other.getClass.getName} is an unknown kind of transaction"
        )
      )
  }
}
