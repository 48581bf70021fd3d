package org.icebergwritercompat.iceberg.manifest

import org.apache.iceberg.{DataFile, DataFiles, FileFormat, PartitionSpec, TableMetadata}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.source.AddedFile
import org.icebergwritercompat.iceberg.translate.{
  DataFilePaths,
  FileMeasures,
  IcebergMetrics,
  PartitionValues
}
import org.icebergwritercompat.model.{FileStatistics, PhysicalNameTree}

/** What must hold of each file that is published. */
trait FileCheck {

  /**
   * Refuses a file; called by several threads.
   *
   * @param statistics
   *   what the rules use of the file's statistics
   */
  def apply(file: AddedFile, statistics: Option[FileStatistics]): Unit

  /** Refuses a file whose statistics are not decoded for another purpose. */
  final def apply(file: AddedFile): Unit =
    names.foreach(known => apply(file, FileStatistics.parse(file.statistics, known)))

  /** The physical names of the table; `None` if no file is refused. */
  def names: Option[PhysicalNameTree]
}

object FileCheck {

  /** Files that were checked before, or are not to be. */
  val none: FileCheck = new FileCheck {
    override def apply(file: AddedFile, statistics: Option[FileStatistics]): Unit = ()
    override val names: Option[PhysicalNameTree] = None
  }
}

/**
 * Makes Iceberg's data files of Delta's. One instance may be used by several threads.
 *
 * @param name
 *   the table, for a person
 * @param paths
 *   the paths that readers open
 * @param table
 *   schema and partition spec of the files
 */
private[iceberg] final class DataFileBuilder(
    name: String,
    paths: DataFilePaths,
    table: TableMetadata,
    check: FileCheck = FileCheck.none
) {

  private val spec: PartitionSpec = table.spec

  private val metrics = new IcebergMetrics(table.schema, spec, check.names)

  /** The path that Iceberg readers open for a path of Delta's log. */
  def location(path: String): String = paths.location(path)

  /** Iceberg's file; refused if it breaks a rule, or if the log does not tell enough of it. */
  def of(file: AddedFile): DataFile = checked(file).dataFile

  /** The file with its statistics decoded; refused if it breaks a rule. */
  def checked(file: AddedFile): CheckedFile = {
    val measures = metrics.read(file.statistics)
    check(file, measures.map(_.statistics))
    new CheckedFile(file, measures)
  }

  /** A file that breaks no rule. */
  final class CheckedFile private[DataFileBuilder] (
      file: AddedFile,
      measures: Option[FileMeasures]
  ) {

    /** The path that Iceberg readers open. */
    def location: String = DataFileBuilder.this.location(file.path)

    /** Iceberg's file; refused if the log does not tell enough of it. */
    def dataFile: DataFile = make(file, measures)
  }

  private def make(file: AddedFile, measures: Option[FileMeasures]): DataFile = {
    val tuple = PartitionValues.tuple(spec, file.partitionValues) match {
      case Right(values) => values
      case Left(column)  =>
        refuse(file, s"the partition value of $column cannot be told exactly")
    }
    val measured = measures.flatMap(_.metrics(tuple)).getOrElse {
      refuse(file, "its statistics do not tell how many rows it has")
    }
    DataFiles
      .builder(spec)
      .withPath(location(file.path))
      .withFormat(FileFormat.PARQUET)
      .withFileSizeInBytes(file.size)
      .withPartition(tuple)
      .withMetrics(measured)
      .build()
  }

  private def refuse(file: AddedFile, found: String): Nothing =
    throw IcebergWriterCompatException.notPublishable(
      "FILE",
      Map("table" -> name, "file" -> file.path, "found" -> found)
    )
}
