package org.icebergwritercompat.iceberg.writeback

import org.apache.hadoop.fs.Path
import org.apache.iceberg._
import org.apache.iceberg.io.FileIO
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata.metricsPrefix
import org.icebergwritercompat.iceberg.metadata.{
  ClientProperties,
  EngineKeys,
  MetadataCopies,
  RowLevelDeletes
}
import org.icebergwritercompat.iceberg.manifest.ManifestIndex
import org.icebergwritercompat.iceberg.publish.PublishRefusals
import org.icebergwritercompat.iceberg.source._
import org.icebergwritercompat.iceberg.target.{LiveDifference, SnapshotHistory}
import org.icebergwritercompat.iceberg.translate.{DataFilePaths, DeltaSchemas, PartitionValues}
import org.icebergwritercompat.model.SchemaNode

import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * What an Iceberg client has changed, from the metadata that it was given and the metadata that it
 * hands in: a commit for Delta, or a refusal of what Delta cannot have.
 *
 * Data files are compared by manifests that only one of the two has, so that a commit is its net
 * effect, however many snapshots it has.
 *
 * @param table
 *   the table, for a person
 * @param rowDeletes
 *   what becomes of delete files
 */
final class ClientChange(table: String, rowDeletes: RowLevelDeletes = RowLevelDeletes.Refuse) {

  import ClientChange._

  /**
   * Why a table cannot become what `updated` defines, its files aside.
   *
   * @param base
   *   what it is; `None` for a new one
   */
  def refusal(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): Option[IcebergWriterCompatException] =
    Iterator
      .apply[() => Option[IcebergWriterCompatException]](
        () => formatVersion(base, updated),
        () => identity(base, updated),
        () => folder(base, updated),
        () => columnTypes(updated),
        () => identifierFields(updated),
        () => partitioning(base, updated),
        () => partitionTypes(updated),
        () => sortOrder(updated),
        () => properties(base, updated)
      )
      .flatMap(_())
      .nextOption()

  /**
   * The commit.
   *
   * @param known
   *   what the Delta table is; `None` for a new one
   */
  def proposed(
      base: Option[TableMetadata],
      updated: TableMetadata,
      known: Option[TableDefinition],
      io: FileIO
  ): Either[IcebergWriterCompatException, ProposedCommit] =
    refusal(base, updated)
      .orElse(references(updated))
      .orElse(statistics(base, updated))
      .orElse(snapshots(base, updated))
      .toLeft(())
      .flatMap { _ =>
        val from = base.flatMap(current)
        val made = newSnapshots(base, updated)
        // One of the history would remember its manifests as long as it is part of it.
        val to = current(updated).map(s => if (made.contains(s)) s else MetadataCopies.of(s))
        if (from.map(_.snapshotId) == to.map(_.snapshotId)) Right((Nil, Nil, None, false))
        else
          deletes(to, io).toLeft(()).flatMap { _ =>
            val difference = LiveDifference.of(updated, from, to, io)
            val rearranged =
              made.nonEmpty && made.forall(_.operation == DataOperations.REPLACE)
            for {
              changed <- files(updated, difference, dataChange = !rearranged, io)
              deleted <- rows(base, updated, to, difference, io)
              ownFiles = deleted.isDefined || hasUnreadableBounds(updated, to, difference, io)
            } yield (changed._1, changed._2, deleted, ownFiles)
          }
      }
      .map { case (added, removed, deleted, ownFiles) =>
        val made = newSnapshots(base, updated)
        val whole = withoutFiles(base, updated, known, made)
        whole.copy(
          operation = deleted.fold(whole.operation)(_ => withDeletes(whole.operation, made)),
          added = added,
          removed = removed,
          deletes = deleted,
          client = Option.when(made.nonEmpty)(
            ClientSnapshots(
              updated.uuid,
              base.flatMap(current).map(_.snapshotId),
              made.map(SnapshotParser.toJson(_)),
              ownFiles = ownFiles
            )
          )
        )
      }

  // DuckDB cuts the lower bound of a string after 16 bytes, also within a character, and then neither
  // PyIceberg nor DuckDB can filter by the column.
  private def hasUnreadableBounds(
      updated: TableMetadata,
      to: Option[Snapshot],
      difference: LiveDifference,
      io: FileIO
  ): Boolean = {
    val texts = TextBounds.columns(updated.schema)
    val known = difference.common.map(_.path).toSet
    texts.nonEmpty && difference.added.nonEmpty && to.toSeq
      .flatMap(_.dataManifests(io).asScala)
      .filter(manifest => manifest.hasAddedFiles && !known(manifest.path))
      .flatMap(SnapshotHistory.liveWithMetrics(updated, io, _))
      .exists(file => TextBounds.hasUnreadable(file, texts))
  }

  /** The commit without its files: what the table is to be. */
  def defined(
      base: Option[TableMetadata],
      updated: TableMetadata,
      known: Option[TableDefinition]
  ): Either[IcebergWriterCompatException, ProposedCommit] =
    refusal(base, updated).toLeft(withoutFiles(base, updated, known, Nil))

  private def withoutFiles(
      base: Option[TableMetadata],
      updated: TableMetadata,
      known: Option[TableDefinition],
      made: Seq[Snapshot]
  ): ProposedCommit = {
    val (set, unset) = changedProperties(base, updated)
    ProposedCommit(
      operation(base, updated, made),
      definition(base, updated, known),
      set.map { case (key, value) => s"${TableDefinition.ClientPrefix}$key" -> value },
      unset.map(key => s"${TableDefinition.ClientPrefix}$key"),
      replacesRows = base.exists(beginsAnew(_, updated))
    )
  }

  // As after a replacement, whose snapshots have none of the older ones before them.
  private def beginsAnew(base: TableMetadata, updated: TableMetadata): Boolean = {
    val line = SnapshotHistory.line(updated).map(_.snapshotId).toSet
    current(base).forall(snapshot => !line(snapshot.snapshotId))
  }

  private def definition(
      base: Option[TableMetadata],
      updated: TableMetadata,
      known: Option[TableDefinition]
  ): Option[ProposedDefinition] = {
    val same = base.exists { before =>
      before.schema.sameSchema(updated.schema) && before.lastColumnId == updated.lastColumnId &&
      before.spec.compatibleWith(updated.spec)
    }
    Option.unless(same) {
      val columns = updated.schema.columns.asScala.map(c => c.fieldId -> c.name).toMap
      ProposedDefinition(
        known.fold(updated.uuid)(_.id),
        known.fold(DeltaSchemas.schema(updated.schema))(d =>
          DeltaSchemas.schema(updated.schema, d.schema)
        ),
        updated.spec.fields.asScala.toSeq.map(field => columns(field.sourceId)),
        math.max(updated.lastColumnId, known.fold(0)(_.maxColumnId))
      )
    }
  }

  private def operation(
      base: Option[TableMetadata],
      updated: TableMetadata,
      made: Seq[Snapshot]
  ): ClientOperation = {
    val name = made.lastOption.map(_.operation).getOrElse {
      if (base.isEmpty) "create"
      else if (base.flatMap(current).map(_.snapshotId) != current(updated).map(_.snapshotId))
        "rollback"
      else if (!base.exists(_.schema.sameSchema(updated.schema))) "alter"
      else "set properties"
    }
    val summary = made.lastOption.fold(Map.empty[String, String])(_.summary.asScala.toMap)
    val told = EngineKeys.all.flatMap(key => summary.get(key).map(key -> _)).toMap
    val snapshot = current(updated).map(s => "snapshot-id" -> s.snapshotId.toString)
    ClientOperation(name, told ++ snapshot)
  }

  // The last snapshot may have appended what the ones before have not deleted.
  private def withDeletes(operation: ClientOperation, made: Seq[Snapshot]): ClientOperation =
    if (made.forall(_.operation == DataOperations.DELETE)) operation
    else operation.copy(name = DataOperations.OVERWRITE)

  // A table keeps the version that its contract asked for when it was published first.
  private def formatVersion(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): Option[IcebergWriterCompatException] = {
    val required = base.fold(Contracts.default.formatVersion)(_.formatVersion)
    refusedIf(updated.formatVersion != required)(
      "FORMAT_VERSION",
      "version" -> updated.formatVersion.toString,
      "required" -> required.toString
    )
  }

  private def identity(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): Option[IcebergWriterCompatException] = base.flatMap { before =>
    refusedIf(before.uuid != updated.uuid || place(before) != place(updated))(
      "LOCATION",
      "location" -> s"${updated.location} (${updated.uuid})",
      "current" -> s"${before.location} (${before.uuid})"
    )
  }

  // It could not be published, and be no table of Iceberg.
  private def folder(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): Option[IcebergWriterCompatException] =
    PublishRefusals.unreadable(place(updated)).filter(_ => base.isEmpty).map {
      case (location, character) =>
        refused("FOLDER", "location" -> location, "character" -> character)
    }

  private def place(metadata: TableMetadata): String = new Path(metadata.location).toUri.getPath

  private def columnTypes(updated: TableMetadata): Option[IcebergWriterCompatException] =
    DeltaSchemas.unsupported(updated.schema).map { found =>
      refused(
        "COLUMN_TYPE",
        "column" -> SchemaNode.sqlPath(found.path),
        "type" -> found.icebergType.toString,
        "instead" -> instead(found.icebergType)
      )
    }

  private def identifierFields(updated: TableMetadata): Option[IcebergWriterCompatException] =
    refusedIf(!updated.schema.identifierFieldIds.isEmpty)(
      "IDENTIFIER_FIELDS",
      "columns" -> updated.schema.identifierFieldNames.asScala.toSeq.sorted.mkString(", ")
    )

  private def partitioning(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): Option[IcebergWriterCompatException] = {
    val spec = updated.spec
    val columns = updated.schema.columns.asScala.map(c => c.fieldId -> c.name).toMap
    val bad = spec.fields.asScala.find { field =>
      !field.transform.isIdentity || !columns.contains(field.sourceId)
    }
    def text(of: PartitionSpec): String =
      if (of.isUnpartitioned) "no partitions"
      else of.fields.asScala.map(f => s"${f.transform} of ${f.name}").mkString(", ")
    val changed = base.filter { before =>
      before.spec.fields.asScala.map(_.sourceId) != spec.fields.asScala.map(_.sourceId)
    }
    bad
      .map { field =>
        refused("PARTITION_TRANSFORM", "field" -> field.name, "transform" -> s"${field.transform}")
      }
      .orElse(changed.map { before =>
        refused("PARTITION_EVOLUTION", "found" -> text(spec), "current" -> text(before.spec))
      })
  }

  private def partitionTypes(updated: TableMetadata): Option[IcebergWriterCompatException] =
    updated.spec.fields.asScala
      .flatMap(field => Option(updated.schema.findField(field.sourceId)))
      .find(_.`type`.typeId == types.Type.TypeID.BINARY)
      .map(column => refused("PARTITION_TYPE", "column" -> column.name))

  private def sortOrder(updated: TableMetadata): Option[IcebergWriterCompatException] =
    refusedIf(updated.sortOrder.isSorted)(
      "SORT_ORDER",
      "order" -> s"${updated.sortOrder}"
        .replaceAll("\\s+", " ")
    )

  private def properties(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): Option[IcebergWriterCompatException] = {
    val before = base.fold(Map.empty[String, String])(_.properties.asScala.toMap)
    val after = updated.properties.asScala.toMap
    val renamed = base.fold(before)(b => withColumnsOf(b.schema, updated.schema, before))
    val changed = (before.keySet ++ after.keySet).toSeq.sorted.filter { key =>
      !isClients(key) && before.get(key) != after.get(key) &&
      renamed.get(key) != after.get(key) &&
      // What it is published with anyway may be said.
      !after.get(key).exists(ClientProperties.steering(key).contains)
    }
    changed.headOption.map { key =>
      refused(
        "PROPERTY",
        "property" -> key,
        "value" -> after.get(key).fold("nothing")(value => s"'$value'"),
        "current" -> before
          .get(key)
          .orElse(ClientProperties.steering(key))
          .fold("nothing")(value => s"'$value'")
      )
    }
  }

  // Iceberg's library renames the properties of a column with the column, and drops them with it.
  private def withColumnsOf(
      was: Schema,
      is: Schema,
      properties: Map[String, String]
  ): Map[String, String] = properties.flatMap { case (key, value) =>
    val column = Option.when(key.startsWith(metricsPrefix))(
      was.findField(key.stripPrefix(metricsPrefix))
    )
    column.filter(_ != null) match {
      case Some(field) =>
        Option(is.findColumnName(field.fieldId)).map(name => s"$metricsPrefix$name" -> value)
      case None => Some(key -> value)
    }
  }

  private def changedProperties(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): (Map[String, String], Set[String]) = {
    val before = base.fold(Map.empty[String, String])(_.properties.asScala.toMap)
    val after = updated.properties.asScala.toMap
    val set = after.filter { case (key, value) =>
      isClients(key) && !before.get(key).contains(value)
    }
    (set, (before.keySet -- after.keySet).filter(isClients))
  }

  // How rows are deleted is the client's choice if all ways are taken.
  private def isClients(key: String): Boolean = !ClientProperties.isReserved(key) ||
    rowDeletes == RowLevelDeletes.Rewrite && RowLevelDeletes.modes(key)

  private def references(updated: TableMetadata): Option[IcebergWriterCompatException] =
    updated.refs.asScala.keys.toSeq.sorted
      .find(_ != SnapshotRef.MAIN_BRANCH)
      .map(name => refused("BRANCH_OR_TAG", "name" -> name))

  private def statistics(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): Option[IcebergWriterCompatException] = {
    def files(metadata: TableMetadata): Set[String] =
      metadata.statisticsFiles.asScala.map(_.path).toSet ++
        metadata.partitionStatisticsFiles.asScala.map(_.path)
    val added = files(updated) -- base.fold(Set.empty[String])(files)
    added.headOption.map(file => refused("STATISTICS_FILES", "file" -> file))
  }

  private def newSnapshots(base: Option[TableMetadata], updated: TableMetadata): Seq[Snapshot] = {
    val known = base.fold(Set.empty[Long])(_.snapshots.asScala.map(_.snapshotId).toSet)
    updated.snapshots.asScala.filterNot(s => known(s.snapshotId)).toSeq.sortBy(_.sequenceNumber)
  }

  private def snapshots(
      base: Option[TableMetadata],
      updated: TableMetadata
  ): Option[IcebergWriterCompatException] = {
    val line = SnapshotHistory.line(updated).map(_.snapshotId).toSet
    val gone = base.fold(Set.empty[Long])(_.snapshots.asScala.map(_.snapshotId).toSet) --
      updated.snapshots.asScala.map(_.snapshotId)
    newSnapshots(base, updated)
      .find(snapshot => !line(snapshot.snapshotId))
      .map(staged => refused("STAGED_SNAPSHOT", "snapshot" -> staged.snapshotId.toString))
      .orElse(gone.headOption.map(id => refused("HISTORY", "snapshot" -> id.toString)))
  }

  private def deletes(to: Option[Snapshot], io: FileIO): Option[IcebergWriterCompatException] =
    if (rowDeletes == RowLevelDeletes.Rewrite) None
    else
      to.flatMap(_.deleteManifests(io).asScala.headOption)
        .map(manifest => refused("DELETE_FILES", "file" -> manifest.path))

  private def rows(
      base: Option[TableMetadata],
      updated: TableMetadata,
      to: Option[Snapshot],
      difference: LiveDifference,
      io: FileIO
  ): Either[IcebergWriterCompatException, Option[RowDeletes]] =
    to.filterNot(_.deleteManifests(io).isEmpty) match {
      case None                           => Right(None)
      case Some(snapshot) if base.isEmpty =>
        val file = snapshot.deleteManifests(io).get(0).path
        val found = "the table is made by the same commit"
        val instead = "Make the table in a commit of its own before rows are deleted."
        Left(refused("ROW_DELETES", "file" -> file, "found" -> found, "instead" -> instead))
      case Some(snapshot) =>
        val paths = new DataFilePaths(new Path(updated.location))
        val added = difference.added.map(_.location).toSet
        new DeletesOfClient(updated, io, paths, added)
          .of(snapshot)
          .map(Some(_))
          .left
          .map { why =>
            refused(
              "ROW_DELETES",
              "file" -> why.location,
              "found" -> why.found,
              "instead" -> why.instead
            )
          }
    }

  private def files(
      updated: TableMetadata,
      difference: LiveDifference,
      dataChange: Boolean,
      io: FileIO
  ): Either[IcebergWriterCompatException, (Seq[AddedFile], Seq[RemovedFile])] = {
    val paths = new DataFilePaths(new Path(updated.location))
    val added = difference.added.map { file =>
      Try(paths.logged(file.location)).toOption match {
        case None =>
          Left(
            refusedFile(
              file.location,
              "its path is none that Delta's log can have",
              "Write it below the folder of the table."
            )
          )
        case Some(path) => addedFile(updated, file, path, dataChange)
      }
    }
    val live = added.collect { case Right(file) => paths.location(file.path) }
    added
      .collectFirst { case Left(refusal) => refusal }
      .orElse(
        (difference.twice.headOption ++ live.diff(live.distinct) ++
          alreadyLive(updated, difference, live.toSet, io)).headOption.map { path =>
          refusedFile(
            path,
            "the table has it already",
            "Leave it out; to have its rows twice, write them into another file."
          )
        }
      )
      .toLeft(
        (
          added.collect { case Right(file) => file },
          difference.removed.map(f => RemovedFile(paths.logged(f.location), dataChange))
        )
      )
  }

  private def addedFile(
      updated: TableMetadata,
      file: DataFile,
      path: String,
      dataChange: Boolean
  ): Either[IcebergWriterCompatException, AddedFile] = {
    val spec = updated.specsById.get(file.specId)
    if (file.format != FileFormat.PARQUET)
      Left(
        refusedFile(
          file.location,
          s"it is ${file.format}, and Delta reads Parquet alone",
          "Write its rows as Parquet, as write.format.default = parquet asks for."
        )
      )
    else if (spec.fields.asScala.map(_.sourceId) != updated.spec.fields.asScala.map(_.sourceId))
      Left(
        refusedFile(
          file.location,
          "it was written for other partitions than the table has",
          "Write its rows anew, by the partitions that the table has now."
        )
      )
    else
      PartitionValues
        .text(spec, file.partition)
        .left
        .map { column =>
          if (isEmptyText(spec, file, column))
            refusedFile(
              file.location,
              s"the value of its partition column $column is an empty string, which Delta's log " +
                "cannot tell from null",
              "Write null, or another text."
            )
          else
            refusedFile(
              file.location,
              s"the value of its partition column $column is no value that Delta's log can have",
              "Write another value, or the rows into a table with other partitions."
            )
        }
        .map { values =>
          // Judged by the footer, and completed from there.
          val rows = s"""{"numRecords":${file.recordCount}}"""
          AddedFile(path, values, file.fileSizeInBytes, rows, dataChange)
        }
  }

  private def isEmptyText(spec: PartitionSpec, file: DataFile, column: String): Boolean = {
    val position = spec.fields.asScala.indexWhere(_.name == column)
    String.valueOf(file.partition.get(position, classOf[Any])).isEmpty
  }

  // The index tells by hashes, and the manifest exactly.
  private def alreadyLive(
      updated: TableMetadata,
      difference: LiveDifference,
      added: Set[String],
      io: FileIO
  ): Option[String] =
    if (added.isEmpty) None
    else
      ManifestIndex
        .holding(difference.common, added, io, updated.specsById)
        .iterator
        .flatMap(SnapshotHistory.live(updated, io, _))
        .map(_.location)
        .find(added)

  private def refusedFile(
      location: String,
      found: String,
      instead: String
  ): IcebergWriterCompatException =
    refused("DATA_FILE", "file" -> location, "found" -> found, "instead" -> instead)

  private def refusedIf(wrong: Boolean)(
      reason: String,
      parameters: (String, String)*
  ): Option[IcebergWriterCompatException] =
    Option.when(wrong)(refused(reason, parameters: _*))

  private def refused(
      reason: String,
      parameters: (String, String)*
  ): IcebergWriterCompatException =
    IcebergWriterCompatException.commitRefused(reason, table, parameters.toMap)
}

object ClientChange {

  private def current(metadata: TableMetadata): Option[Snapshot] = Option(metadata.currentSnapshot)

  /** The ids of the snapshots that only `updated` has. */
  def newIds(base: Option[TableMetadata], updated: TableMetadata): Set[Long] =
    updated.snapshots.asScala.map(_.snapshotId).toSet --
      base.fold(Set.empty[Long])(_.snapshots.asScala.map(_.snapshotId).toSet)

  private def instead(found: types.Type): String = found.typeId match {
    case types.Type.TypeID.TIME  => "a long of microseconds since midnight, or a string"
    case types.Type.TypeID.UUID  => "a string"
    case types.Type.TypeID.FIXED => "binary"
    case _ => "a type of Iceberg's format version 2 that is no time, uuid or fixed"
  }
}
