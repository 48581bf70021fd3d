package org.apache.spark.sql.delta.writercompat.feature

import org.apache.spark.sql.delta.writercompat.feature.Watched.{Bodies, Callers, Order, Shape}

/**
 * A place in Delta's internals that the guard depends on.
 *
 * @param id
 *   the id, which is the name of its tripwire test
 * @param what
 *   the members of Delta that are used
 * @param why
 *   what the guard does there
 * @param ifItMoves
 *   what would go wrong if it changed unnoticed
 * @param watched
 *   the byte code that an untested Delta version must share with a tested one
 */
final case class JoinPoint(
    id: String,
    what: String,
    why: String,
    ifItMoves: String,
    watched: Seq[Watched]
)

/**
 * All places in Delta's internals that the guard depends on. `JoinPointSuite` has one test for
 * each, named by its id.
 */
object JoinPoints {

  private val transaction = "OptimisticTransaction"
  private val implementation = "OptimisticTransactionImpl"
  private val write = "files/TransactionalWrite"

  val ThreadObserver: JoinPoint = JoinPoint(
    "thread-observer",
    "the setter of TransactionExecutionObserver.threadObserver",
    "every thread gets an observer that replaces transactions by guarded ones",
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
    "commands that commit in parts would not be guarded",
    Seq(Bodies(implementation, "split"))
  )

  val UpdateMetadata: JoinPoint = JoinPoint(
    "update-metadata",
    "OptimisticTransactionImpl.updateMetadataInternal",
    "required properties are added, new fields get the name col-<id>, and a schema that breaks a " +
      "rule is refused, before any data file is written",
    "files would be written with names that the rules refuse at the commit",
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
    "replacing a table is distinguished from changing it",
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
    "all rules are checked on the protocol, metadata and actions of the commit",
    "ordinary commits would not be checked",
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
    "OptimisticTransactionImpl.commitLarge, and updateMetadataAndProtocolWithRequiredFeatures " +
      "in it",
    "RESTORE, CLONE and CONVERT TO DELTA, which do not call prepareCommit, are checked",
    "these commands would not be checked",
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
    "a table with files gets the feature with metadata that Delta's own update does not allow",
    "files that were appended meanwhile would not be checked",
    Seq(
      Bodies(transaction, "newMetadata_$eq", "newProtocol_$eq"),
      Bodies(implementation, "getFirstAttemptVersion"),
      Order(implementation, "commitLarge", "getFirstAttemptVersion", "commit")
    )
  )

  val Conflicts: JoinPoint = JoinPoint(
    "conflicts",
    "OptimisticTransactionImpl.checkForConflicts",
    "after a lost race, the change is checked against the version that was committed first",
    "it would be checked against the version that was read, which is not the previous one",
    Seq(Bodies(implementation, "checkForConflicts"), Callers(implementation, "checkForConflicts"))
  )

  val LostRaces: JoinPoint = JoinPoint(
    "lost-races",
    "OptimizeExecutor.commitAndRetry, the only code that catches a lost race and commits the " +
      "same files in another transaction",
    "it fails if the feature was switched on meanwhile",
    "files that were written before would be committed unchecked",
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
    "TableFeature.allSupportedFeaturesMap, a method with one return instruction",
    "the feature is added to its result",
    "Delta would not support the feature, and would refuse every table that has it",
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
    "the property is added to it",
    "Delta would refuse the property as unknown",
    Seq(
      Bodies("DeltaConfigsBase", "buildConfig", "validateConfigurations", "getAllConfigs"),
      Callers("DeltaConfigsBase", "entries")
    )
  )

  val AlternateKeys: JoinPoint = JoinPoint(
    "alternate-keys",
    "DeltaConfig.alternateKeys, which one property has",
    "the rules read a property under the same keys as Delta",
    "a property that must be off could be switched on under a key that the rules do not read",
    Seq(
      Bodies("DeltaConfig", "fromMap", "fromMetaData", "fromMetaDataOption"),
      Callers("DeltaConfig", "alternateKeys")
    )
  )

  val LogFolders: JoinPoint = JoinPoint(
    "log-folders",
    "DeltaLog.createLogDirectoriesIfNotExists creates the log's folder and " +
      "FileNames.commitDirPath in it, before a new table is committed",
    "a refused statement removes them, and folders above them that did not exist before",
    "folders of refused tables would remain",
    Seq(
      Bodies("DeltaLog", "createLogDirectoriesIfNotExists"),
      Bodies("util/FileNames$", "commitDirPath"),
      Callers("DeltaLog", "createLogDirectoriesIfNotExists")
    )
  )

  val CopiedProtocol: JoinPoint = JoinPoint(
    "copied-protocol",
    "OptimisticTransactionImpl.updateProtocol, by which CREATE TABLE LIKE copies a protocol",
    "the features that the new table needs are added, and those it cannot have are removed",
    "the copy would lack the required features, and be refused",
    Seq(Bodies(implementation, "updateProtocol"))
  )

  val ColumnMapping: JoinPoint = JoinPoint(
    "column-mapping",
    "DeltaColumnMapping assigns to a new field an id, a name with a random UUID, and nested ids " +
      "with keys below that name",
    "the name is replaced by col-<id>, also in the keys of the nested ids",
    "new fields would keep a random name, and the commit would be refused",
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
    "TransactionalWrite.convertEmptyToNullIfNeeded and PartitionUtils.literalToNormalizedString",
    "a partition value that changes on its way through the log is stored in the file as Delta " +
      "reads it, such as an empty string as null; and a CHAR is padded with spaces, as Spark " +
      "returns it",
    "Iceberg readers, which read the column from the file, would see other values than Delta",
    Seq(
      Bodies(write, "convertEmptyToNullIfNeeded"),
      Callers(write, "convertEmptyToNullIfNeeded"),
      Bodies("util/PartitionUtils$", "literalToNormalizedString"),
      Callers("util/PartitionUtils$", "literalToNormalizedString")
    )
  )

  val PostCommitHooks: JoinPoint = JoinPoint(
    "post-commit-hooks",
    "OptimisticTransactionImpl.registerPostCommitHook, runPostCommitHooks and committed",
    "a table with the property is published after each commit, also a large one",
    "Iceberg readers would see versions late or never",
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
    "each commit since the last published version becomes one snapshot",
    "several commits would become one snapshot, or none",
    Seq(
      Bodies("coordinatedcommits/CoordinatedCommitsUtils$", "commitFilesIterator"),
      Bodies("storage/LogStoreAdaptor", "read")
    )
  )

  val CommitIds: JoinPoint = JoinPoint(
    "commit-ids",
    "DeltaCommitFileProvider.deltaFile, LogStore.readAsIterator, and CommitInfo.txnId in the " +
      "first lines of a commit",
    "a published commit is distinguished from another commit with the same version number",
    "Iceberg readers would still see rows of a log that was restored to an older version",
    Seq(
      Bodies("util/DeltaCommitFileProvider", "deltaFile"),
      Bodies("storage/LogStoreAdaptor", "readAsIterator"),
      Bodies("actions/CommitInfo", "txnId")
    )
  )

  val FileTotals: JoinPoint = JoinPoint(
    "file-totals",
    "Snapshot.checksumOpt, with numFiles and tableSizeBytes",
    "the files to be published are compared with Delta's own totals, if the log has them; a log " +
      "without them is read before a commit, not after it",
    "a wrong total would not be detected, or each publishing would read the whole log",
    Seq(Bodies("Snapshot", "checksumOpt"), Bodies("VersionChecksum", "numFiles", "tableSizeBytes"))
  )

  val Vacuum: JoinPoint = JoinPoint(
    "vacuum",
    "VacuumCommand.gc finds the files to keep only by getValidFilesFromSnapshot",
    "a published table is published up to its newest version first, and its metadata and the " +
      "files of its snapshots are kept",
    "VACUUM would delete Iceberg's metadata, and data files that Iceberg readers still need",
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
    "TransactionalWrite.writeFiles with four parameters, which the other overloads call",
    "a table whose columns have no ids is refused before any data file is written",
    "the write would fail in its tasks, with an error that does not name the column",
    Seq(Bodies(write, "writeFiles"), Callers(write, "getCommitter"))
  )

  val Convert: JoinPoint = JoinPoint(
    "convert",
    "ConvertToDeltaCommandBase.run, which statements and programs call, and performConvert",
    "a conversion to a table with the feature is refused before the folder of the log is created",
    "convertToDelta would leave an empty log, and fail with an error that does not name the " +
      "feature",
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
    "the form of data files is fixed, whatever the session settings are; rewritten files are " +
      "in one folder, which is named if they are not committed, and files of a refused commit " +
      "are removed",
    "Iceberg readers would see other rows; rewritten files could not be found by their folder",
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
    "IcebergCompatV3.propertiesToEnable, which would replace IcebergCompatV2 by V3 when deletion " +
      "vectors or row tracking are switched on, has no caller",
    "such a statement is checked by the rules as it was written, and refused",
    "a statement would remove IcebergCompatV2, and be refused for a change that was not written",
    Seq(Callers("IcebergCompatV3$", "propertiesToEnable"))
  )

  val KernelWrites: JoinPoint = JoinPoint(
    "kernel-writes",
    "DeltaV2Table, the table of the connector on Kernel, is written only by Spark's commands for " +
      "batches and streams",
    "these commands are refused if the table has the feature",
    "Kernel would commit to the table without checks",
    Seq(
      Shape("io/delta/spark/internal/v2/catalog/DeltaV2Table"),
      Shape("io/delta/spark/internal/v2/catalog/DeltaV2TableShims")
    )
  )

  val LogSegment: JoinPoint = JoinPoint(
    "log-segment",
    "Snapshot.logSegment with deltas, the commits that Delta reads after the checkpoint",
    "lines that Delta ignores are reported, and an upgrade refuses them",
    "a log with lost actions would be reported as compliant",
    Seq(Bodies("Snapshot", "logSegment"), Bodies("LogSegment", "deltas"))
  )

  val RestoredVersion: JoinPoint = JoinPoint(
    "restored-version",
    "DeltaOperations.Restore has the version or the timestamp; RestoreTableCommand finds the " +
      "version by DeltaHistoryManager.getActiveCommitAtTime",
    "the files of the version are checked before RESTORE switches the feature on",
    "RESTORE could switch it on for files that Iceberg readers cannot read",
    Seq(Bodies("DeltaHistoryManager", "getActiveCommitAtTime"))
  )

  val Transactions: JoinPoint = JoinPoint(
    "transactions",
    "Snapshot.transactions, by the options txnAppId and txnVersion of a write",
    "the rows of a snapshot of an Iceberg writer are appended only once",
    "a repeated call would append them again",
    Seq(Bodies("Snapshot", "transactions"))
  )

  val FilesAsRows: JoinPoint = JoinPoint(
    "files-as-rows",
    "DeltaLog.createDataFrame of a snapshot and files",
    "the rows of files are read as Delta reads them, to be rewritten or appended",
    "rewritten files would have other rows, or an upgrade would fail",
    Seq(Bodies("DeltaLog", "createDataFrame"))
  )

  val NumberedRows: JoinPoint = JoinPoint(
    "numbered-rows",
    "DeltaParquetFileFormat.metadataSchemaFields, for a DummySnapshot with deletion vectors",
    "each row of a file is read with its number, by which delete files of Iceberg clients name it",
    "commits with delete files would fail, or delete other rows",
    Seq(
      Bodies("DeltaParquetFileFormat", "metadataSchemaFields"),
      Bodies("ProtocolMetadataAdapterV1", "isDeletionVectorReadable"),
      Bodies("DummySnapshot", "protocol", "metadata")
    )
  )

  val Operations: JoinPoint = JoinPoint(
    "operations",
    "DeltaOperations.Operation is sealed for Scala but not in its class file",
    "a commit of an Iceberg client says in the history of the table what the client did",
    "no Iceberg client could commit",
    Seq(Shape("DeltaOperations$Operation"))
  )

  val ExactCommit: JoinPoint = JoinPoint(
    "exact-commit",
    "OptimisticTransactionImpl.commit with tags, which go to CommitInfo.tags; its first attempt is at " +
      "the version after the one that was read, and checkForConflicts comes before each other",
    "a commit of an Iceberg client is made on the version that the client saw, with a note of the " +
      "client's snapshots",
    "a client's commit could undo what was committed meanwhile, or its snapshots be lost",
    Seq(
      Bodies(implementation, "commit", "doCommitRetryIteratively", "getFirstAttemptVersion"),
      Order(implementation, "doCommitRetryIteratively", "doCommit", "checkForConflicts"),
      Bodies("actions/CommitInfo", "tags")
    )
  )

  val TypeChanges: JoinPoint = JoinPoint(
    "type-changes",
    "TypeWideningMetadata.addTypeWideningMetadata, which compares columns by name",
    "a wider type that an Iceberg client gives a column is recorded",
    "Delta would read older files of the column by the wrong type, or the rules refuse the change",
    Seq(Bodies("TypeWideningMetadata$", "addTypeWideningMetadata"))
  )

  val RemovedFiles: JoinPoint = JoinPoint(
    "removed-files",
    "AddFile.removeWithTimestamp",
    "a file that an Iceberg client has removed is removed from the Delta table",
    "it would be removed by another path than it has",
    Seq(Bodies("actions/AddFile", "removeWithTimestamp"))
  )

  val NewestSeen: JoinPoint = JoinPoint(
    "newest-seen",
    "SnapshotManagement.unsafeVolatileSnapshot, which every commit of the process brings up to date, " +
      "with the file of the newest commit in its logSegment; and update, which does not list a log " +
      "that it has listed since a time",
    "an Iceberg table that a catalog keeps shows what Delta has committed in the same process, and " +
      "the log is not listed again and again for one commit of a client",
    "clients would read rows that Delta does not have any more",
    Seq(Bodies("SnapshotManagement", "unsafeVolatileSnapshot", "getSnapshotIfFresh"))
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
    LogSegment,
    RestoredVersion,
    Transactions,
    FilesAsRows,
    NumberedRows,
    CompatSwitch,
    KernelWrites,
    Operations,
    ExactCommit,
    TypeChanges,
    RemovedFiles,
    NewestSeen
  )
}
