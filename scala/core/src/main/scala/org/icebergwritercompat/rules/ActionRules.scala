package org.icebergwritercompat.rules

import org.apache.spark.sql.types.{BinaryType, StringType, TimestampType}
import org.icebergwritercompat.contract.{
  ActionRule,
  Clause,
  Fix,
  FixedByActivation,
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

    /** What is wrong with the file, and the remedy. */
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
        "Each added file has the statistic `numRecords`, and it is not negative.",
        "Iceberg's metadata contains the row count of every file.",
        v2
      )
      with FixedByActivation {

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
        "Iceberg readers find the footer by the file size, and engines answer `count(*)` from " +
          "the row counts.",
        Clause(DeltaProtocol, "Add File and Remove File"),
        Clause(DeltaProtocol, "Per-file Statistics")
      ) {

    // A Parquet page stores its number of rows as an Int.
    private val mostRowsPerByte = 1L << 31

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] = {
      val rows = file.statistics.flatMap(_.rowCount).getOrElse(0L)
      if (file.size <= 0 || file.size >= ImpossibleSize)
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
        "The keys of `partitionValues` are the physical names of the partition columns.",
        "Readers find the partition values of a file by these keys; otherwise rows would be " +
          "skipped or show other values.",
        Clause(DeltaProtocol, "Column Mapping")
      ) {

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      Option.when(valuesOf(file).keySet != table.partitionKeys) {
        val found = list(valuesOf(file).keySet)
        s"it has partition values of $found instead of ${list(table.partitionKeys)}" ->
          Fix.copyInto(table)
      }
  }

  object StatisticsByPhysicalName
      extends AddedFileRule(
        "D3",
        "The keys of column statistics are physical names of columns of the table, or of " +
          "columns that were dropped.",
        "Otherwise readers would not find the bounds of a column, or use those of another one.",
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
          s"its statistics have the key $name, which is not a physical name" -> Fix.copyInto(table)
        }

    // A file that RESTORE brings back may be older than the DROP COLUMN.
    private def wasDropped(table: TableState, name: String): Boolean = name match {
      case dropped(digits) =>
        digits.toLongOption.exists { id =>
          id <= table.maxColumnId && !table.nodesById.contains(id)
        }
      case _ => false
    }

    private val dropped = s"${WriterCompat.PhysicalNamePrefix}([1-9]\\d*)".r
  }

  object TimestampPartitionsInUtc
      extends AddedFileRule(
        "D4",
        "The partition value of a timestamp is in UTC, in the form 1970-01-01T00:00:00.000000Z.",
        "Engines in different time zones would read a value without a zone as different " +
          "instants, and skip rows.",
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

  /** The text that Hive and Spark write for null in the folder names of partitions. */
  val MarkerOfNull = "__HIVE_DEFAULT_PARTITION__"

  object NoMarkersOfNull
      extends ActionRule(
        "D4n",
        s"No partition value is `$MarkerOfNull`.",
        "Delta reads this text as the value, but writes it as null when it rewrites the rows, " +
          "so the value would change.",
        Clause(DeltaProtocol, "Partition Value Serialization")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      // A rewrite would change the value.
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

    /** Whether Delta reads the marker as text; in a column of another type it reads null. */
    def isText(node: SchemaNode): Boolean = node.dataType match {
      case _: StringType | BinaryType => true
      case _                          => false
    }

    /** Sets the rows to null, or to another value if the column cannot be null. */
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
        "Iceberg readers ignore Delta's deletion vectors and would return deleted rows.",
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
        "A commit adds each path only once.",
        "Iceberg readers would read the rows of the file twice.",
        Clause(DeltaProtocol, "Action Reconciliation")
      ) {

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      Option.when(file.repeated)("the commit adds it twice" -> Fix.copyInto(table))
  }

  object PathsAreWithinReach
      extends AddedFileRule(
        "D9",
        "The path of a file is a URI. Without a scheme, it does not leave the folder of the " +
          "table; with a scheme, the session has a file system for the scheme and host.",
        "Readers would open a file that does not belong to the table, or fail.",
        Clause(DeltaProtocol, "Add File and Remove File")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      Obstacle.Blocker

    override protected def problem(table: TableState, file: Added): Option[(String, Remedy)] =
      file.location.problem
        .orElse(
          Option.unless(file.isWithinReach)(
            "the session has no file system for the scheme and host of its path"
          )
        )
        .map(_ -> Fix.copyInto(table))
  }

  object NoChangeData
      extends ActionRule(
        "B7+",
        "A commit does not contain change data files.",
        "Iceberg's metadata has no change data files, so only Delta readers would see the changes.",
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
            "found" -> "it is a change data file",
            "required" -> statement
          )
        )
      case _ => Nil
    }
  }

  object AppendOnlyKeepsRows
      extends ActionRule(
        "B11",
        s"With `${WriterCompat.AppendOnly}`, a commit that removes files does not remove rows.",
        "Otherwise rows would be deleted from an append-only table.",
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
            "found" -> "it is removed together with its rows",
            "required" -> statement
          )
        )
      case _ => Nil
    }
  }

  object ClusteringByPhysicalName
      extends ActionRule(
        "D8",
        "Clustering columns are stored with their physical names.",
        "Other engines find the clustering columns by these names.",
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
            "reason" -> s"the clustering column ${path.mkString(".")} is not a physical name"
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
        "Delta does not allow both, and engines refuse such a table.",
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

  // An action in the log may have no partition values.
  private def valuesOf(file: Added): Map[String, String] =
    Option(file.partitionValues).getOrElse(Map.empty)

  private def list(names: Set[String]): String =
    if (names.isEmpty) "no column" else names.toSeq.sorted.mkString(", ")
}
