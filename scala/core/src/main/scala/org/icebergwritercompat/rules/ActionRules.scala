package org.icebergwritercompat.rules

import org.apache.spark.sql.types.{BinaryType, StringType, TimestampType}
import org.icebergwritercompat.contract.{
  ActionRule,
  Clause,
  Fix,
  FollowsFromTheSwitch,
  Obstacle,
  TableState,
  Violation
}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{
  Condition,
  DataAction,
  FileLocation,
  Location,
  PhysicalNameTree,
  SchemaNode,
  WriterCompat
}
import org.icebergwritercompat.model.DataAction._
import org.icebergwritercompat.remedy.Remedy

/** Requirements on the file actions of a commit. */
object ActionRules {

  private val v2 = Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")

  /** A rule about files that become live. */
  sealed abstract class AddedFileRule(id: String, statement: String, why: String, clauses: Clause*)
      extends ActionRule(id, statement, why, clauses: _*) {

    /** What is wrong with the file, and what mends it. */
    protected def problem(table: TableState, file: Added): Option[(String, Remedy)]

    final override def check(table: TableState, action: DataAction): Seq[Violation] = action match {
      case file: Added =>
        problem(table, file).toSeq.map { case (found, remedy) =>
          violation(file.path, found, remedy)
        }
      case _ => Nil
    }

    final protected def violation(path: String, found: String, remedy: Remedy): Violation =
      violation(
        Condition.IncompatibleFileAction,
        Location.File(String.valueOf(path)),
        remedy,
        "file" -> FileLocation.printable(path),
        "found" -> found,
        "required" -> statement
      )
  }

  object FilesHaveRowCount
      extends AddedFileRule(
        "D1",
        "Each added file has the statistic `numRecords`, which is not negative.",
        "Iceberg's metadata needs the row count of every file.",
        v2
      )
      with FollowsFromTheSwitch {

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      Option.when(file.statistics.forall(_.rowCount.isEmpty))(
        "it has no numRecords, or a negative one" ->
          Fix.setSetting(table, "spark.databricks.delta.stats.collect" -> "true")
      )
  }

  object SizesArePossible
      extends AddedFileRule(
        "D1s",
        "Each added file has a size above 0 and below 2^53, and less than 2^31 rows for each byte.",
        "Iceberg's readers find the footer by the size, and engines answer `count(*)` from " +
          "the rows.",
        Clause(DeltaProtocol, "Add File and Remove File"),
        Clause(DeltaProtocol, "Per-file Statistics")
      ) {

    // A page says in an Int how many rows it has.
    private val mostRowsPerByte = 1L << 31

    // No store has such files, and not every reader of JSON keeps such numbers.
    private val bytesOfNoFile = 1L << 53

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] = {
      val rows = file.statistics.flatMap(_.rowCount).getOrElse(0L)
      if (file.size <= 0 || file.size >= bytesOfNoFile)
        Some(s"its size is ${file.size} byte(s)" -> Fix.lookIntoHistory(table))
      else
        Option.when(rows / mostRowsPerByte >= file.size)(
          s"its numRecords is $rows, in ${file.size} bytes" -> Fix.copyInto(table)
        )
    }
  }

  object PartitionValuesByPhysicalName
      extends AddedFileRule(
        "D2",
        "`partitionValues` has the physical names of exactly the partition columns.",
        "Readers find the partition of a file by these keys, so its rows would be skipped or " +
          "misplaced.",
        Clause(DeltaProtocol, "Column Mapping")
      ) {

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      Option.when(valuesOf(file).keySet != table.partitionKeys) {
        val found = list(valuesOf(file).keySet)
        s"its partition values are those of $found, not of ${list(table.partitionKeys)}" ->
          Fix.copyInto(table)
      }
  }

  object StatisticsByPhysicalName
      extends AddedFileRule(
        "D3",
        "Column statistics are keyed by physical names, of columns that are there or were dropped.",
        "Readers would not find the bounds of a column, or take those of another.",
        Clause(DeltaProtocol, "Column Mapping"),
        Clause(DeltaProtocol, "Per-file Statistics")
      ) {

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      file.statistics.iterator
        .flatMap(_.unknownNames)
        .filterNot(path => wasDropped(table, path.last))
        .map(_.mkString("."))
        .minOption
        .map { name =>
          s"its statistics name $name, which is no physical name" -> Fix.copyInto(table)
        }

    // A file that RESTORE brings back may be older than the drop of a column.
    private def wasDropped(table: TableState, name: String): Boolean = name match {
      case dropped(digits) =>
        digits.toLongOption.exists { id =>
          id <= table.maxColumnId && !table.nodesById.contains(id)
        }
      case _ => false
    }

    private val dropped = """col-([1-9]\d*)""".r
  }

  object TimestampPartitionsInUtc
      extends AddedFileRule(
        "D4",
        "The partition value of a timestamp is written in UTC, as 1970-01-01T00:00:00.000000Z.",
        "A time without a zone means another instant in each engine, so rows would be skipped.",
        Clause(DeltaProtocol, "Partition Value Serialization")
      ) {

    private val utc = """-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z""".r

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      table.partitionNodes.iterator
        .filter(_.dataType == TimestampType)
        .flatMap(node => node.physicalName.flatMap(valuesOf(file).get).map(node -> _))
        .collectFirst {
          case (node, value) if value != null && value.nonEmpty && !utc.matches(value) =>
            s"the partition value of ${node.sqlPath} is $value" ->
              Fix.setSetting(
                table,
                "spark.databricks.delta.write.utcTimestampPartitionValues" -> "true"
              )
        }
  }

  /** Stands for null in the names of folders that Hive and Spark give partitions. */
  val MarkerOfNull = "__HIVE_DEFAULT_PARTITION__"

  object NoMarkersOfNull
      extends ActionRule(
        "D4n",
        s"No partition value is `$MarkerOfNull`.",
        "Writers of Delta turn the text into null when they write the rows anew, so it would " +
          "change.",
        Clause(DeltaProtocol, "Partition Value Serialization")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      // A text that is written again would be another value.
      if (table.nodeAt(violation.location).exists(isText)) Obstacle.Blocker else Obstacle.Rewrite

    override def check(table: TableState, action: DataAction): Seq[Violation] = action match {
      case file: Added if valuesOf(file).values.exists(_ == MarkerOfNull) =>
        table.partitionNodes.filter(isMarked(file, _)).map { node =>
          violation(
            Condition.IncompatibleFileAction,
            node.location,
            remedy(table, node),
            "file" -> file.path,
            "found" -> s"the partition value of ${node.sqlPath} is $MarkerOfNull",
            "required" -> statement
          )
        }
      case _ => Nil
    }

    private def isMarked(file: Added, node: SchemaNode): Boolean = {
      val keys = node.physicalName.toSeq :+ node.path.head
      keys.flatMap(valuesOf(file).get).headOption.contains(MarkerOfNull)
    }

    /** Whether Delta reads it as what it is; a column of another type it reads as null. */
    def isText(node: SchemaNode): Boolean = node.dataType match {
      case _: StringType | BinaryType => true
      case _                          => false
    }

    /** Makes the rows say what they are to be: null, or something else where that cannot be. */
    def remedy(table: TableState, node: SchemaNode): Remedy = {
      val wanted = if (node.nullable) "NULL" else "'none'"
      val marked =
        if (isText(node)) s"CAST(${node.sqlPath} AS STRING) = '$MarkerOfNull'"
        else s"${node.sqlPath} IS NULL"
      Remedy.UpdateRows(table.name, node.sqlPath, wanted, marked)
    }
  }

  object NoDeletionVectors
      extends AddedFileRule(
        "D5",
        "No live file has a deletion vector.",
        "Iceberg readers of format version 2 would show rows that were deleted.",
        v2,
        Clause(DeltaProtocol, "Deletion Vectors")
      ) {

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      Option.when(file.hasDeletionVector)(
        "it has a deletion vector" -> Remedy.Purge(table.name)
      )
  }

  object PathsOnce
      extends AddedFileRule(
        "D6",
        "A commit adds each path once.",
        "Iceberg would count the rows of the file twice.",
        Clause(DeltaProtocol, "Action Reconciliation")
      ) {

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      Option.when(file.repeated)("the commit adds it twice" -> Fix.copyInto(table))
  }

  object PathsAreWithinReach
      extends AddedFileRule(
        "D9",
        "The path of a file is a URI; one without a scheme stays in the folder of the table, and " +
          "one with a scheme has one that is known here, and a host that can be reached.",
        "Readers would open a file that is none of the table's, or fail.",
        Clause(DeltaProtocol, "Add File and Remove File")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      Obstacle.Blocker

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      file.location.problem
        .orElse(
          Option.unless(file.isWithinReach)(
            "no file system can be reached from here for the scheme and host of its path"
          )
        )
        .map(_ -> Fix.copyInto(table))
  }

  object NoChangeData
      extends ActionRule(
        "B7+",
        "A commit has no change data files.",
        "Iceberg has no place for the file, so its changes would be known to Delta readers only.",
        Clause(Rfc, "Disallowed Features"),
        Clause(DeltaProtocol, "Add CDC File")
      ) {

    override def check(table: TableState, action: DataAction): Seq[Violation] = action match {
      case ChangeData(path) =>
        Seq(
          violation(
            Condition.IncompatibleFileAction,
            Location.File(path),
            Fix.setProperty(table, WriterCompat.ChangeDataFeedEnabled, "false"),
            "file" -> path,
            "found" -> "it holds change data",
            "required" -> statement
          )
        )
      case _ => Nil
    }
  }

  object AppendOnlyKeepsRows
      extends ActionRule(
        "B11",
        s"With `${WriterCompat.AppendOnly}`, files are removed only where the rows stay.",
        "Rows would leave a table that promises to keep them.",
        Clause(DeltaProtocol, "Append-only Tables")
      ) {

    override def check(table: TableState, action: DataAction): Seq[Violation] = action match {
      case Removed(path, true) if table.flag(WriterCompat.AppendOnly).contains(true) =>
        Seq(
          violation(
            Condition.IncompatibleFileAction,
            Location.File(path),
            Fix.setProperty(table, WriterCompat.AppendOnly, "false"),
            "file" -> path,
            "found" -> "it leaves with its rows",
            "required" -> statement
          )
        )
      case _ => Nil
    }
  }

  object ClusteringByPhysicalName
      extends ActionRule(
        "D8",
        "The clustering columns are given by their physical names.",
        "Another engine would not know by which columns to cluster.",
        Clause(DeltaProtocol, "Clustered Table")
      ) {

    override def check(table: TableState, action: DataAction): Seq[Violation] = action match {
      case Clustered(columns) =>
        columns.filterNot(exists(table.physicalNames, _)).map { path =>
          violation(
            Condition.IncompatiblePartitioning,
            Location.Column(path, None, None),
            Remedy.Uncluster(table.name),
            "columns" -> path.mkString("."),
            "reason" -> s"the clustering column ${path.mkString(".")} is no physical name"
          )
        }
      case _ => Nil
    }

    private def exists(tree: PhysicalNameTree, path: Seq[String]): Boolean =
      path.headOption.forall(name => tree.fields.get(name).exists(exists(_, path.tail)))
  }

  object ClusteredOrPartitioned
      extends ActionRule(
        "C16",
        "A table is not both clustered and partitioned.",
        "Engines refuse a table that is laid out in two ways.",
        Clause(DeltaProtocol, "Clustered Table")
      ) {

    override def check(table: TableState, action: DataAction): Seq[Violation] = action match {
      case Clustered(columns) if columns.nonEmpty && table.partitionColumns.nonEmpty =>
        Seq(
          violation(
            Condition.IncompatiblePartitioning,
            Location.Column(table.partitionColumns, None, None),
            Remedy.Uncluster(table.name),
            "columns" -> table.partitionColumns.mkString(", "),
            "reason" -> "the table is clustered as well"
          )
        )
      case _ => Nil
    }
  }

  // An action in the log may lack them.
  private def valuesOf(file: Added): Map[String, String] =
    Option(file.partitionValues).getOrElse(Map.empty)

  private def list(names: Set[String]): String =
    if (names.isEmpty) "no column" else names.toSeq.sorted.mkString(", ")
}
