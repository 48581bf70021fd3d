package org.apache.spark.sql.delta.writercompat.feature

import org.apache.spark.sql.delta.writercompat.feature.Watched.{Bodies, Callers, Order, Shape}

/**
 * A place in Delta's internals that the guard relies on.
 *
 * @param id
 *   the name under which its tripwire test fails
 * @param what
 *   the member of Delta that is used
 * @param why
 *   what the guard does there
 * @param ifItMoves
 *   what would go wrong, were it to change unnoticed
 * @param watched
 *   what must be as in a tested Delta, where another is used
 */
final case class JoinPoint(
    id: String,
    what: String,
    why: String,
    ifItMoves: String,
    watched: Seq[Watched]
)

/**
 * Every place in Delta's internals that the guard relies on. `JoinPointSuite` has one test for
 * each, named by its id.
 */
object JoinPoints {

  private val transaction = "OptimisticTransaction"
  private val implementation = "OptimisticTransactionImpl"
  private val write = "files/TransactionalWrite"

  val ThreadObserver: JoinPoint = JoinPoint(
    "thread-observer",
    "the setter of TransactionExecutionObserver.threadObserver",
    "every thread gets an observer that answers with guarded transactions",
    "no transaction would be guarded",
    Seq(
      Bodies(
        "ThreadStorageExecutionObserver",
        "getObserver",
        "setObserver",
        "withObserver",
        "advanceToNextObserver",
        "$init$"
      ),
      Bodies("TransactionExecutionObserver$", "getObserver", "threadObserver", "initialValue"),
      Shape("TransactionExecutionObserver")
    )
  )

  val StartTransaction: JoinPoint = JoinPoint(
    "start-transaction",
    "DeltaLog.startTransaction passes each new transaction through startingTransaction",
    "the plain transaction is replaced by a GuardedTransaction at the same snapshot",
    "transactions made elsewhere would not be guarded",
    Seq(Bodies("DeltaLog", "startTransaction"), Callers(transaction, "new"))
  )

  val Split: JoinPoint = JoinPoint(
    "split",
    "OptimisticTransactionImpl.split",
    "the parts of a split transaction are guarded too",
    "commands that commit in parts would leave the guard",
    Seq(Bodies(implementation, "split"))
  )

  val UpdateMetadata: JoinPoint = JoinPoint(
    "update-metadata",
    "OptimisticTransactionImpl.updateMetadataInternal",
    "dependent properties are completed, new fields get the name col-<id>, and a schema that " +
      "breaks a rule is refused, before any data file is written",
    "files would be written under names that the rules refuse at commit",
    Seq(
      Bodies(implementation, "updateMetadataInternal"),
      Callers(implementation, "updateMetadataInternal"),
      Callers(implementation, "newMetadata_$eq")
    )
  )

  val NewTable: JoinPoint = JoinPoint(
    "new-table",
    "OptimisticTransaction.updateMetadataForNewTable, updateMetadataForNewTableInReplace and " +
      "updateMetadataForTableOverwrite",
    "a replaced table is told from a changed one",
    "replacing a table would be treated as changing it, and refused",
    Seq(
      Bodies(
        implementation,
        "updateMetadataForNewTable",
        "updateMetadataForNewTableInReplace",
        "updateMetadataForTableOverwrite"
      ),
      Callers(
        implementation,
        "org$apache$spark$sql$delta$OptimisticTransactionImpl$$isCreatingNewTable_$eq"
      )
    )
  )

  val PrepareCommit: JoinPoint = JoinPoint(
    "prepare-commit",
    "OptimisticTransactionImpl.prepareCommit",
    "all rules are checked on what is about to be committed",
    "ordinary commits would be unchecked",
    Seq(
      Bodies(implementation, "prepareCommit"),
      Order(implementation, "commitImpl", "prepareCommit", "doCommitRetryIteratively"),
      Callers(implementation, "doCommitRetryIteratively"),
      Callers(implementation, "doCommit"),
      Callers(implementation, "writeCommitFileImpl"),
      Callers("coordinatedcommits/TableCommitCoordinatorClient", "commit")
    )
  )

  val CommitLarge: JoinPoint = JoinPoint(
    "commit-large",
    "OptimisticTransactionImpl.commitLarge, and updateMetadataAndProtocolWithRequiredFeatures in it",
    "RESTORE, CLONE and CONVERT TO DELTA are checked, which never prepare a commit",
    "these commands would be unchecked",
    Seq(
      Bodies(
        implementation,
        "commitLarge",
        "updateMetadataAndProtocolWithRequiredFeatures"
      )
    )
  )

  val Upgrade: JoinPoint = JoinPoint(
    "upgrade",
    "OptimisticTransactionImpl.newMetadata and newProtocol; commitLarge writes the first version " +
      "after the one that was read, or nothing",
    "a table with files gets the feature by metadata that Delta's own update does not allow",
    "files that were appended meanwhile would not be looked at",
    Seq(
      Bodies(transaction, "newMetadata_$eq", "newProtocol_$eq"),
      Bodies(implementation, "getFirstAttemptVersion"),
      Order(implementation, "commitLarge", "getFirstAttemptVersion", "commit")
    )
  )

  val Conflicts: JoinPoint = JoinPoint(
    "conflicts",
    "OptimisticTransactionImpl.checkForConflicts",
    "a transaction that lost a race is compared with the version that won",
    "it would be compared with the version it read, which is no longer the one before",
    Seq(Bodies(implementation, "checkForConflicts"), Callers(implementation, "checkForConflicts"))
  )

  val LostRaces: JoinPoint = JoinPoint(
    "lost-races",
    "OptimizeExecutor.commitAndRetry, which alone catches a lost race and commits the same files in " +
      "another transaction",
    "it is not let to where the feature was switched on meanwhile",
    "files that were written before would get into the table unseen",
    Seq(
      Bodies("commands/OptimizeExecutor", "commitAndRetry"),
      Callers("java/util/ConcurrentModificationException", "catch"),
      Callers("DeltaConcurrentModificationException", "catch"),
      Callers("io/delta/exceptions/MetadataChangedException", "catch"),
      Callers("io/delta/exceptions/ProtocolChangedException", "catch")
    )
  )

  val FeatureMap: JoinPoint = JoinPoint(
    "feature-map",
    "TableFeature.allSupportedFeaturesMap, a method with one return",
    "its result gets the feature added",
    "Delta would not know the feature, and refuse every table that has it",
    Seq(Bodies("TableFeature$", "allSupportedFeaturesMap"))
  )

  val SealedFeatures: JoinPoint = JoinPoint(
    "sealed-features",
    "WriterFeature, FeatureAutomaticallyEnabledByMetadata, RemovableFeature and " +
      "PreDowngradeTableFeatureCommand are sealed for Scala but not in their class files",
    "the feature is a Java class that extends them",
    "the JVM would refuse to load the feature",
    Seq(
      Shape("TableFeature"),
      Shape("WriterFeature"),
      Shape("FeatureAutomaticallyEnabledByMetadata"),
      Shape("RemovableFeature"),
      Shape("PreDowngradeTableFeatureCommand")
    )
  )

  val PropertyEntries: JoinPoint = JoinPoint(
    "property-entries",
    "DeltaConfigs.entries",
    "the property is put there",
    "Delta would refuse the property as unknown",
    Seq(
      Bodies("DeltaConfigsBase", "buildConfig", "validateConfigurations", "getAllConfigs"),
      Callers("DeltaConfigsBase", "entries")
    )
  )

  val AlternateKeys: JoinPoint = JoinPoint(
    "alternate-keys",
    "DeltaConfig.alternateKeys, of which one property has one",
    "the rules read a property under the key under which Delta finds it",
    "a property that must be off could be switched on under a key that no rule knows",
    Seq(
      Bodies("DeltaConfig", "fromMap", "fromMetaData", "fromMetaDataOption"),
      Callers("DeltaConfig", "alternateKeys")
    )
  )

  val LogFolders: JoinPoint = JoinPoint(
    "log-folders",
    "DeltaLog.createLogDirectoriesIfNotExists makes the log's folder and FileNames.commitDirPath " +
      "in it, before a new table is committed",
    "a refused statement takes them away again, with those above that were not there",
    "folders would be left of tables that are refused",
    Seq(
      Bodies("DeltaLog", "createLogDirectoriesIfNotExists"),
      Bodies("util/FileNames$", "commitDirPath"),
      Callers("DeltaLog", "createLogDirectoriesIfNotExists")
    )
  )

  val CopiedProtocol: JoinPoint = JoinPoint(
    "copied-protocol",
    "OptimisticTransactionImpl.updateProtocol, by which CREATE TABLE LIKE copies a protocol",
    "the features that the new table needs are added, and those it cannot have are left out",
    "the copy would lack the feature it asks for, and be refused",
    Seq(Bodies(implementation, "updateProtocol"))
  )

  val ColumnMapping: JoinPoint = JoinPoint(
    "column-mapping",
    "DeltaColumnMapping gives a new field an id, a name made of a random UUID and nested ids " +
      "below that name",
    "the name is replaced by col-<id>, the keys of the nested ids with it",
    "new fields would keep a random name, and the commit be refused",
    Seq(
      Bodies(
        "DeltaColumnMappingBase",
        "assignColumnIdAndPhysicalName",
        "assignColumnIdAndPhysicalNameToSchema",
        "getNestedColumnIds"
      )
    )
  )

  val EmptyStrings: JoinPoint = JoinPoint(
    "empty-strings",
    "TransactionalWrite.convertEmptyToNullIfNeeded",
    "a partition value that the log does not give back as it was is stored in the file as the log " +
      "has it: an empty string as null, and others; and a CHAR is filled up with spaces, as Spark " +
      "shows it",
    "Iceberg readers, who take the column from the file, would read what Delta does not",
    Seq(Bodies(write, "convertEmptyToNullIfNeeded"), Callers(write, "convertEmptyToNullIfNeeded"))
  )

  val PostCommitHooks: JoinPoint = JoinPoint(
    "post-commit-hooks",
    "OptimisticTransactionImpl.registerPostCommitHook, runPostCommitHooks and committed",
    "a table that asks for it is published after each commit, a large one too",
    "Iceberg readers would see versions late, or never",
    Seq(
      Bodies(implementation, "registerPostCommitHook", "runPostCommitHooks", "setCommitted"),
      Order(implementation, "commitImpl", "prepareCommit", "setCommitted", "runPostCommitHooks"),
      Callers(implementation, "runPostCommitHooks"),
      Shape("hooks/PostCommitHook")
    )
  )

  val CommittedActions: JoinPoint = JoinPoint(
    "committed-actions",
    "CommittedTransaction.committedActions, which are the lines of the commit, CommitInfo first, and " +
      "empty after a large commit; committedVersion, txnId and postCommitSnapshot",
    "the commit is published from these, and not read from storage again",
    "other files would be published than the log has",
    Seq(
      Bodies("CurrentTransactionInfo", "finalActionsToCommit"),
      Bodies(implementation, "setCommitted")
    )
  )

  val CommitFiles: JoinPoint = JoinPoint(
    "commit-files",
    "CoordinatedCommitsUtils.commitFilesIterator, and LogStore.read for each file",
    "each commit since the last published version is published by itself",
    "commits would be published as one, or not at all",
    Seq(
      Bodies("coordinatedcommits/CoordinatedCommitsUtils$", "commitFilesIterator"),
      Bodies("storage/LogStoreAdaptor", "read")
    )
  )

  val CommitIds: JoinPoint = JoinPoint(
    "commit-ids",
    "DeltaCommitFileProvider.deltaFile, LogStore.readAsIterator, and CommitInfo.txnId in the first " +
      "lines of a commit",
    "a published version is told from another commit of the same number",
    "readers of Iceberg would go on seeing rows of a log that was put back",
    Seq(
      Bodies("util/DeltaCommitFileProvider", "deltaFile"),
      Bodies("storage/LogStoreAdaptor", "readAsIterator"),
      Bodies("actions/CommitInfo", "txnId")
    )
  )

  val FileTotals: JoinPoint = JoinPoint(
    "file-totals",
    "Snapshot.checksumOpt, with numFiles and tableSizeBytes",
    "what is about to be published is compared with Delta's own totals, where they cost nothing; a " +
      "log without them is read before a commit, not after it",
    "a wrong total would go unnoticed, or each publishing would read the whole log",
    Seq(Bodies("Snapshot", "checksumOpt"), Bodies("VersionChecksum", "numFiles", "tableSizeBytes"))
  )

  val LogStoreWrite: JoinPoint = JoinPoint(
    "log-store-write",
    "LogStore.write with overwrite = false",
    "where the file system is not local, it decides which of two publishers wrote a version",
    "one of two publishers would undo what the other has published",
    Seq(Bodies("storage/LogStoreAdaptor", "write"), Shape("storage/LogStore"))
  )

  val Vacuum: JoinPoint = JoinPoint(
    "vacuum",
    "VacuumCommand.gc asks getValidFilesFromSnapshot, and nothing else, which files must stay",
    "of a published table what is read as Iceberg stays too, and is brought up to date before",
    "VACUUM would delete Iceberg's metadata, and data files that readers of Iceberg still need",
    Seq(
      Bodies("commands/VacuumCommand$", "gc", "getValidFilesFromSnapshot"),
      Callers("commands/VacuumCommand$", "getValidFilesFromSnapshot"),
      Callers("commands/VacuumCommandImpl", "getValidFilesFromSnapshot"),
      Callers("commands/VacuumCommand$", "delete"),
      Callers("commands/VacuumCommand$", "gc"),
      Callers("util/DeltaFileOperations$", "tryDeleteNonRecursive")
    )
  )

  val WriteFiles: JoinPoint = JoinPoint(
    "write-files",
    "TransactionalWrite.writeFiles with four parameters, which the others call",
    "a table whose columns have no ids is refused before any data file is written",
    "the write would fail in its tasks, by an error that does not name the column",
    Seq(Bodies(write, "writeFiles"), Callers(write, "getCommitter"))
  )

  val Convert: JoinPoint = JoinPoint(
    "convert",
    "ConvertToDeltaCommandBase.run, by which statements and programs convert, and performConvert",
    "a folder that would get the feature is refused before the folder of the log is made",
    "convertToDelta would leave an empty log, and an error that says nothing of the feature",
    Seq(
      Bodies("commands/ConvertToDeltaCommandBase", "run", "performConvert"),
      Callers("commands/ConvertToDeltaCommandBase", "performConvert"),
      Shape("commands/ConvertToDeltaCommand")
    )
  )

  val Committer: JoinPoint = JoinPoint(
    "committer",
    "TransactionalWrite.getCommitter, called once by writeFiles; DeltaFileFormatWriter calls its " +
      "setupJob after prepareWrite and before the first task, and commitJob or abortJob at the " +
      "end; the folder that DelayedCommitProtocol puts below the table's own",
    "the form of data files is set, whatever the session says; files that are written anew lie in " +
      "one folder, which is named if they are not committed, and files of a refused commit are " +
      "removed",
    "Iceberg's readers would see other rows; nobody could tell new files from those of the table",
    Seq(
      Bodies(write, "getCommitter"),
      Order("files/DeltaFileFormatWriter$", "write", "prepareWrite", "executeWrite"),
      Order("files/DeltaFileFormatWriter$", "writeAndCommit", "setupJob", "commitJob", "abortJob"),
      Bodies(
        "files/DelayedCommitProtocol",
        "setupJob",
        "commitJob",
        "abortJob",
        "setupTask",
        "getFileName",
        "newTaskTempFile"
      )
    )
  )

  val CompatSwitch: JoinPoint = JoinPoint(
    "compat-switch",
    "IcebergCompatV3.propertiesToEnable, which would replace IcebergCompatV2 by V3 where deletion " +
      "vectors or row tracking are switched on, has no caller",
    "such a statement comes to the rules as it was written, and is refused by them",
    "a statement would take IcebergCompatV2 away, and be refused for what nobody wrote",
    Seq(Callers("IcebergCompatV3$", "propertiesToEnable"))
  )

  val KernelWrites: JoinPoint = JoinPoint(
    "kernel-writes",
    "DeltaV2Table, the table of the connector on Kernel, is written by Spark's commands for batches " +
      "and streams alone",
    "these commands are refused where the table has the feature",
    "Kernel would commit to the table, and the guard would not see it",
    Seq(
      Shape("io/delta/spark/internal/v2/catalog/DeltaV2Table"),
      Shape("io/delta/spark/internal/v2/catalog/DeltaV2TableShims")
    )
  )

  val LogSegment: JoinPoint = JoinPoint(
    "log-segment",
    "Snapshot.logSegment with deltas, the commits that Delta reads after the checkpoint",
    "lines that Delta passes over are told by reports, and not taken by an upgrade",
    "a log in which actions are lost would be called compliant",
    Seq(Bodies("Snapshot", "logSegment"), Bodies("LogSegment", "deltas"))
  )

  val RestoredVersion: JoinPoint = JoinPoint(
    "restored-version",
    "DeltaOperations.Restore has the version or the timestamp; RestoreTableCommand finds the version " +
      "by DeltaHistoryManager.getActiveCommitAtTime",
    "the files of the version are looked at before RESTORE switches the feature on",
    "RESTORE could switch it on over files that no reader of Iceberg understands",
    Seq(Bodies("DeltaHistoryManager", "getActiveCommitAtTime"))
  )

  val Transactions: JoinPoint = JoinPoint(
    "transactions",
    "Snapshot.transactions, by the options txnAppId and txnVersion of a write",
    "the rows of a snapshot of an Iceberg writer are appended once",
    "they would be appended again by a call that is made again",
    Seq(Bodies("Snapshot", "transactions"))
  )

  val FilesAsRows: JoinPoint = JoinPoint(
    "files-as-rows",
    "DeltaLog.createDataFrame of a snapshot and files",
    "the rows of files are read as Delta reads them, to be written anew or appended",
    "files that are written anew would have other rows, or an upgrade would fail",
    Seq(Bodies("DeltaLog", "createDataFrame"))
  )

  /** All of them, in the order in which they are installed. */
  val all: Seq[JoinPoint] = Seq(
    ThreadObserver,
    StartTransaction,
    Split,
    UpdateMetadata,
    NewTable,
    PrepareCommit,
    CommitLarge,
    Upgrade,
    Conflicts,
    LostRaces,
    EmptyStrings,
    Vacuum,
    WriteFiles,
    Convert,
    Committer,
    SealedFeatures,
    FeatureMap,
    PropertyEntries,
    AlternateKeys,
    LogFolders,
    CopiedProtocol,
    ColumnMapping,
    PostCommitHooks,
    CommittedActions,
    CommitFiles,
    CommitIds,
    FileTotals,
    LogStoreWrite,
    LogSegment,
    RestoredVersion,
    Transactions,
    FilesAsRows,
    CompatSwitch,
    KernelWrites
  )
}
