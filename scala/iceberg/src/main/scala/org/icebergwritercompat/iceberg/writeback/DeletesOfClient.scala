package org.icebergwritercompat.iceberg.writeback

import org.apache.iceberg._
import org.apache.iceberg.io.FileIO
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.util.StructLikeWrapper
import org.icebergwritercompat.iceberg.source._
import org.icebergwritercompat.iceberg.translate.DataFilePaths

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * The delete files of a client, and the data files that they apply to. Which these are is said by
 * Iceberg's own planning of a scan, which knows the rules on sequence numbers and partitions.
 *
 * @param updated
 *   the metadata that the client hands in
 * @param isNew
 *   whether the client adds a data file
 */
private[writeback] final class DeletesOfClient(
    updated: TableMetadata,
    io: FileIO,
    paths: DataFilePaths,
    isNew: String => Boolean
) {

  import DeletesOfClient._

  /** The deletes of a snapshot, or the file that cannot be applied and why. */
  def of(snapshot: Snapshot): Either[Unusable, RowDeletes] = {
    val table = new BaseTable(new StaticTableOperations(updated, io), updated.location)
    val files = mutable.ArrayBuffer.empty[TouchedFile]
    val deletes = mutable.LinkedHashMap.empty[String, (DeleteFile, mutable.Set[Int])]
    Using.resource(table.newScan().useSnapshot(snapshot.snapshotId).planFiles()) { tasks =>
      tasks.forEach { task =>
        if (!task.deletes.isEmpty) {
          task.deletes.forEach { file =>
            deletes.getOrElseUpdate(file.location, file -> mutable.Set.empty)._2 += files.size
            ()
          }
          files += touched(task.file)
        }
      }
    }
    val found = deletes.values.toSeq.map { case (file, of) => file -> of.toSet }
    found.iterator
      .flatMap { case (file, _) => unusable(file) }
      .nextOption()
      .toLeft {
        val (positions, equality) =
          found.partition(_._1.content == FileContent.POSITION_DELETES)
        RowDeletes(
          files.toSeq,
          positions.map { case (file, of) => PositionDeletes(entry(file), of) },
          equality.map { case (file, of) =>
            val columns = file.equalityFieldIds.asScala.map(_.toInt).toSet
            EqualityDeletes(entry(file), of, columns, file.dataSequenceNumber, partition(file))
          }
        )
      }
  }

  private def touched(file: DataFile) = TouchedFile(
    paths.logged(file.location),
    file.location,
    file.recordCount,
    isNew(file.location),
    file.dataSequenceNumber,
    partition(file)
  )

  private def entry(file: DeleteFile) =
    DeleteFileEntry(paths.logged(file.location), file.fileSizeInBytes, file.recordCount)

  private val numbers = mutable.HashMap.empty[(Int, StructLikeWrapper), Int]

  // Deletes without a partition apply to the whole table.
  private def partition(file: ContentFile[_]): Int = {
    val spec = updated.specsById.get(file.specId)
    if (spec.isUnpartitioned) whole
    else {
      val key = StructLikeWrapper.forType(spec.partitionType).set(file.partition)
      numbers.getOrElseUpdate(file.specId -> key, numbers.size + whole + 1)
    }
  }

  private def unusable(file: DeleteFile): Option[Unusable] = {
    def because(found: String, instead: String) = Some(Unusable(file.location, found, instead))
    if (file.format != FileFormat.PARQUET)
      because(
        s"it is ${file.format}, and Delta reads Parquet alone",
        "Write it as Parquet, as write.delete.format.default = parquet asks for."
      )
    else if (sources(updated.specsById.get(file.specId)) != sources(updated.spec))
      because(
        "it was written for other partitions than the table has",
        "Write it anew, by the partitions that the table has now."
      )
    else if (file.content == FileContent.POSITION_DELETES) None
    else {
      val ids = Option(file.equalityFieldIds).fold(Seq.empty[Int])(_.asScala.map(_.toInt).toSeq)
      val columns = updated.schema.columns.asScala.map(column => column.fieldId -> column).toMap
      ids.find(!columns.contains(_)) match {
        case _ if ids.isEmpty => because("it names no columns", "Delete the rows by position.")
        case Some(id)         =>
          val name = Option(updated.schema.findColumnName(id)).fold(s"with the id $id")(identity)
          because(
            s"it compares the column $name, and only columns that the table has, and that are no " +
              "fields of others, can be compared",
            "Delete the rows by position, or by other columns."
          )
        case None =>
          ids.map(columns).find(column => !comparable(column.`type`.typeId)).flatMap { column =>
            because(
              s"it compares the column ${column.name}, which is ${column.`type`}, whose values " +
                "engines compare in different ways",
              "Delete the rows by position, or by other columns."
            )
          }
      }
    }
  }

  private def sources(spec: PartitionSpec): Seq[Int] =
    spec.fields.asScala.map(_.sourceId.toInt).toSeq
}

private object DeletesOfClient {

  /** A delete file that cannot be applied. */
  final case class Unusable(location: String, found: String, instead: String)

  private val whole = 0

  // -0.0 and 0.0 are the same for Spark alone; lists and maps are equal for nobody.
  private def comparable(kind: TypeID): Boolean = kind match {
    case TypeID.BOOLEAN | TypeID.INTEGER | TypeID.LONG | TypeID.DATE | TypeID.TIMESTAMP |
        TypeID.STRING | TypeID.BINARY | TypeID.DECIMAL =>
      true
    case _ => false
  }
}
