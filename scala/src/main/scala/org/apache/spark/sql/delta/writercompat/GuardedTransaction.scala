package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, AddFile, Metadata, Protocol}
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.rules.{Moment, TableState, WriterCompatRules}

/** A transaction that keeps tables with the feature within the rules.
  *
  * A table without the property is left to Delta alone.
  */
final class GuardedTransaction(
    deltaLog: DeltaLog,
    catalogTable: Option[CatalogTable],
    snapshot: Snapshot)
    extends OptimisticTransaction(deltaLog, catalogTable, snapshot) {

  private var replacing = false

  private var committingLarge = false

  override def updateMetadataForNewTable(metadata: Metadata): Unit = {
    replacing = readVersion >= 0
    super.updateMetadataForNewTable(metadata)
  }

  override def updateMetadataForNewTableInReplace(metadata: Metadata): Unit = {
    replacing = readVersion >= 0
    // Delta decides here whether columns keep their ids, from the mapping mode as it is now.
    super.updateMetadataForNewTableInReplace(completed(metadata))
  }

  override protected def updateMetadataInternal(
      proposed: Metadata,
      ignoreDefaultProperties: Boolean): Unit = {
    // Only CLONE asks for this: its files are written already, so its metadata stays as it is.
    val isClone = ignoreDefaultProperties
    if (enabling(proposed) && !isClone) enable(proposed)
    else {
      super.updateMetadataInternal(
        if (creating && !isClone) completed(proposed) else proposed,
        ignoreDefaultProperties)
      newMetadata.filter(isGuarded).foreach { metadata =>
        val settled =
          if (isClone) PhysicalNames.idsOf(proposed.schema)
          else if (creating) Set.empty[Long]
          else PhysicalNames.idsOf(snapshot.metadata.schema)
        newMetadata = Some(PhysicalNames.followIds(metadata, settled))
      }
      // A commit may still drop the feature together with its property; a new table may not.
      if (creating || isGuarded(metadata)) checkTable()
    }
  }

  override protected def prepareCommit(
      actions: Seq[Action],
      op: DeltaOperations.Operation): Seq[Action] = {
    val prepared = super.prepareCommit(actions, op)
    checkTable()
    prepared
  }

  override protected def updateMetadataAndProtocolWithRequiredFeatures(
      metadataOpt: Option[Metadata],
      protocols: Seq[Protocol]): Unit = {
    super.updateMetadataAndProtocolWithRequiredFeatures(metadataOpt, protocols)
    // A large commit has its metadata and protocol settled here, and nothing is written yet.
    if (committingLarge) checkTable()
  }

  override def commitLarge(
      spark: SparkSession,
      nonProtocolMetadataActions: Iterator[Action],
      newProtocolOpt: Option[Protocol],
      op: DeltaOperations.Operation,
      context: Map[String, String],
      metrics: Map[String, String]): (Long, Snapshot) = {
    committingLarge = true
    try
      super.commitLarge(
        spark,
        nonProtocolMetadataActions,
        newProtocolOpt,
        op,
        context,
        metrics)
    finally committingLarge = false
  }

  // As in Delta, with the parts guarded like the whole.
  override def split(readFilesSubset: Seq[AddFile]): OptimisticTransaction = {
    val plain = super.split(readFilesSubset)
    val part = GuardedTransaction.guard(plain).asInstanceOf[GuardedTransaction]
    part.executionObserver = plain.executionObserver
    part.readPredicates.addAll(readPredicates)
    readFilesSubset.foreach(part.readFiles.add)
    part.readTxn ++= readTxn
    part
  }

  private def creating: Boolean = readVersion < 0 || replacing

  private def isGuarded(metadata: Metadata): Boolean =
    WriterCompat.isEnabled(metadata.configuration)

  private def wasGuarded: Boolean = readVersion >= 0 && isGuarded(snapshot.metadata)

  private def enabling(proposed: Metadata): Boolean =
    !creating && !wasGuarded && isGuarded(proposed)

  /** The properties of a table that is created or replaced; a replaced table keeps the feature, as
    * it keeps it in its protocol.
    */
  private def completed(proposed: Metadata): Metadata = {
    val kept =
      if (wasGuarded && !proposed.configuration.contains(WriterCompat.Enabled))
        proposed.copy(configuration = proposed.configuration + (WriterCompat.Enabled -> "true"))
      else proposed
    NewTable.complete(spark, kept)
  }

  private def enable(proposed: Metadata): Unit = {
    val plan = Enabling.of(this, proposed)
    super.updateMetadataInternal(plan.proposedToDelta, ignoreDefaultProperties = false)
    newMetadata = newMetadata.map(plan.finish)
    newProtocol = newMetadata
      .flatMap(Protocol.upgradeProtocolFromMetadataForExistingTable(spark, _, protocol))
      .orElse(newProtocol)
    // Files that are appended meanwhile were not looked at.
    readWholeTable()
    val findings = WriterCompatRules.check(tableState).toSeq ++ plan.findings(tableState)
    if (findings.nonEmpty) throw IcebergWriterCompatException.notCompliant(tableState, findings)
  }

  private def moment: Moment =
    if (creating) Moment.Creating(replacing)
    else if (wasGuarded) Moment.Changing
    else Moment.Enabling

  private def tableState: TableState =
    TableStates.of(TableStates.nameOf(spark, this), moment, protocol, metadata)

  private def checkTable(): Unit =
    if (isGuarded(metadata)) refuseFirst(tableState)
    else if (wasGuarded && protocol.isFeatureSupported(WriterCompatTableFeature))
      throw IcebergWriterCompatException.switchedOff(tableState)

  private def refuseFirst(table: TableState): Unit =
    WriterCompatRules.check(table).nextOption().foreach { violation =>
      throw IcebergWriterCompatException.of(table, violation)
    }
}

/** Makes transactions guarded ones. */
object GuardedTransaction {

  /** A guarded transaction in place of `transaction`, at the same snapshot. */
  def guard(transaction: OptimisticTransaction): OptimisticTransaction = transaction match {
    case guarded: GuardedTransaction => guarded
    case plain if plain.getClass == classOf[OptimisticTransaction] =>
      new GuardedTransaction(plain.deltaLog, plain.catalogTable, plain.snapshot)
    case other =>
      throw IcebergWriterCompatException.notInstalled(
        "JOIN_POINT",
        Map(
          "joinPoint" -> JoinPoints.StartTransaction.id,
          "cause" -> s"${other.getClass.getName} is a transaction of an unknown kind"))
  }
}
