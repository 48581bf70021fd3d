package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg.data.{InternalRecordWrapper, Record}
import org.apache.iceberg.data.parquet.GenericParquetReaders
import org.apache.iceberg.exceptions.ValidationException
import org.apache.iceberg.expressions.Expressions
import org.apache.iceberg.parquet.Parquet
import org.apache.iceberg.types.Types
import org.apache.iceberg.{
  DataFile,
  DataFiles,
  FileFormat,
  FileMetadata,
  PartitionData,
  PartitionKey,
  PartitionSpec,
  Schema,
  StructLike,
  Table,
  UpdateSchema
}
import org.apache.parquet.schema.MessageType
import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations}
import org.apache.spark.sql.delta.actions.AddFile

import java.util.UUID
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.{Random, Using}

/** A table as it must be. */
private[writeback] final case class Expected(
    columns: Vector[Column],
    rows: Vector[Values.Row],
    properties: Map[String, String]
)

/**
 * Random operations on one table by Iceberg's library and by Delta, and what the table must be
 * after each of them.
 *
 * @param reader
 *   what the operations need of the suite
 */
private[writeback] final class RandomTable(
    val name: String,
    seed: Long,
    reader: RandomTable.Doors
) {

  import Values.Row

  private val random = new Random(seed)

  private var serials = 0

  private var keys = 0L

  // No rows of versions up to this one come back: the table was replaced since.
  private var replacedAfter = -1L

  // No columns of versions up to this one come back: a column was widened since.
  private var widenedAfter = -1L

  private val dropped = mutable.ArrayBuffer.empty[String]

  private val keyColumn = Column(serial(), "k", Kind.long)

  private val partition =
    Option.when(random.nextBoolean())(Column(serial(), "p", one(Kind.partitions)))

  private var now = Expected(
    keyColumn +: (partition.toVector ++ newColumns(3)),
    Vector.empty,
    Map.empty
  )

  private val past = mutable.LinkedHashMap.empty[Long, Expected]

  private val done = mutable.ArrayBuffer.empty[String]

  /** What was done, for a person. */
  def story: String = done.mkString(s"seed $seed: ", ", ", "")

  def expected: Expected = now

  /** Some of these, by chance. */
  def some[T](of: Vector[T], count: Int): Vector[T] = random.shuffle(of).take(count)

  /** What the table was, by versions of Delta. */
  def history: collection.Map[Long, Expected] = past

  /** The table is as expected at this version. */
  def reached(version: Long): Unit = past(version) = now

  /** Makes the table, by Iceberg or by Delta. */
  def create(): Unit =
    if (random.nextBoolean()) {
      done += "create by Iceberg"
      val schema = schemaOf(now.columns)
      val spec = partition.fold(PartitionSpec.unpartitioned) { p =>
        PartitionSpec.builderFor(schema).identity(p.name).build()
      }
      if (random.nextBoolean()) reader.create(name, schema, spec)
      else {
        val transaction = reader.creating(name, schema, spec)
        val rows = newRows(2)
        val append = transaction.newAppend()
        files(transaction.table, rows).foreach(append.appendFile)
        append.commit()
        transaction.commitTransaction()
        now = now.copy(rows = rows)
      }
    } else {
      done += "create by Delta"
      val columns = now.columns.map(c => s"`${c.name}` ${Values.typeSql(c.kind)}").mkString(", ")
      reader.sql(
        s"CREATE TABLE $name ($columns) USING delta " +
          partition.fold("")(p => s"PARTITIONED BY (${p.name}) ") +
          "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true', " +
          "'delta.enableTypeWidening' = 'true')"
      )
    }

  /** Does one thing; its name. */
  def step(): String = {
    // What does not fit to the table, such as a delete where no rows are, is left out.
    val tried = Iterator.continually(weighted(random.nextInt(weighted.size))).map { o =>
      done += o.name
      if (o.run()) Some(o.name) else { done.remove(done.size - 1); None }
    }
    tried.flatten.next()
  }

  private final class Operation(val name: String, val weight: Int)(val run: () => Boolean)

  private lazy val weighted: Vector[Operation] =
    operations.flatMap(o => Vector.fill(o.weight)(o))

  private val operations: Vector[Operation] = Vector(
    new Operation("append", 14)(() => append()),
    new Operation("append after another", 4)(() => appendAfterAnother()),
    new Operation("append of many files", 2)(() => appendMany()),
    new Operation("update", 8)(() => update()),
    new Operation("delete of a file", 6)(() => deleteFile()),
    new Operation("delete by a filter", 3)(() => deleteByFilter()),
    new Operation("dynamic overwrite", 3)(() => replacePartitions()),
    new Operation("rewrite of data files", 5)(() => rewrite()),
    new Operation("rewrite of manifests", 2)(() => rewriteManifests()),
    new Operation("transaction", 6)(() => transaction()),
    new Operation("rollback", 4)(() => rollback()),
    new Operation("replace", 1)(() => replace()),
    new Operation("property", 2)(() => property()),
    new Operation("add column", 3)(() => addColumn()),
    new Operation("add field", 2)(() => addField()),
    new Operation("drop column", 2)(() => dropColumn()),
    new Operation("rename column", 3)(() => renameColumn()),
    new Operation("move column", 2)(() => moveColumn()),
    new Operation("widen column", 2)(() => widenColumn()),
    new Operation("several changes of columns", 2)(() => evolve()),
    new Operation("what is refused", 5)(() => refused()),
    new Operation("Delta: append", 8)(() => appendByDelta()),
    new Operation("Delta: remove", 4)(() => removeByDelta()),
    new Operation("Delta: INSERT", 1)(() => insertBySql()),
    new Operation("Delta: DELETE", 1)(() => deleteBySql()),
    new Operation("Delta: UPDATE", 1)(() => updateBySql()),
    new Operation("Delta: MERGE", 1)(() => mergeBySql()),
    new Operation("Delta: OPTIMIZE", 1)(() => optimize()),
    new Operation("Delta: RESTORE", 1)(() => restore()),
    new Operation("Delta: ALTER", 2)(() => alterBySql()),
    new Operation("Delta: property", 1)(() => propertyBySql())
  )

  // --- Rows by Iceberg -----------------------------------------------------------------------

  private def client(): Table = reader.load(name)

  private def append(): Boolean = isSmall && {
    val there = client()
    val rows = newRows(1 + random.nextInt(3))
    val append = if (random.nextBoolean()) there.newAppend() else there.newFastAppend()
    files(there, rows).foreach(append.appendFile)
    append.commit()
    add(rows)
  }

  /** The client begins, Delta commits, and the client goes on. */
  private def appendAfterAnother(): Boolean = isSmall && {
    val there = client()
    val (rows, between) = (newRows(1), newRows(1))
    val transaction = there.newTransaction()
    val append = transaction.newAppend()
    files(there, rows).foreach(append.appendFile)
    append.commit()
    appendDirectly(between)
    transaction.commitTransaction()
    add(between) && add(rows)
  }

  private def appendMany(): Boolean = isSmall && {
    val there = client()
    val rows = newRows(10)
    val append = there.newAppend()
    rows.foreach(row => files(there, Vector(row)).foreach(append.appendFile))
    append.commit()
    add(rows)
  }

  private def update(): Boolean = withFile { (there, file, found) =>
    val rows = now.rows.map { row =>
      if (!found(keyOf(row))) row
      else {
        val column = one(now.columns.filterNot(isFixed))
        row + (column.serial -> Values.some(column.kind, random))
      }
    }
    val overwrite = there.newOverwrite().deleteFile(file)
    files(there, rows.filter(row => found(keyOf(row)))).foreach(overwrite.addFile)
    overwrite.commit()
    now = now.copy(rows = rows)
  }

  private def deleteFile(): Boolean = withFile { (there, file, found) =>
    there.newDelete().deleteFile(file).commit()
    remove(found)
  }

  private def deleteByFilter(): Boolean = now.rows.nonEmpty && {
    val there = client()
    val gone = partition match {
      case Some(p) if random.nextInt(4) > 0 =>
        val value = one(now.rows).getOrElse(p.serial, null)
        val filter =
          if (value == null) Expressions.isNull(p.name)
          else Expressions.equal(p.name, literal(value))
        there.newDelete().deleteFromRowFilter(filter).commit()
        now.rows.filter(_.getOrElse(p.serial, null) == value)
      case _ =>
        there.newDelete().deleteFromRowFilter(Expressions.alwaysTrue).commit()
        now.rows
    }
    remove(gone.map(keyOf).toSet)
    true
  }

  // Iceberg's expressions take dates and times as texts.
  private def literal(value: Any): Any = value match {
    case time: java.time.OffsetDateTime => time.toString
    case date: java.time.LocalDate      => date.toString
    case other                          => other
  }

  private def replacePartitions(): Boolean = {
    val there = client()
    val rows = newRows(2)
    val replace = there.newReplacePartitions()
    files(there, rows).foreach(replace.addFile)
    replace.commit()
    val touched = partition.map(p => rows.map(_.getOrElse(p.serial, null)).toSet)
    val kept = now.rows.filterNot { row =>
      touched.forall(_(partition.flatMap(p => row.get(p.serial)).orNull))
    }
    now = now.copy(rows = kept ++ rows)
    true
  }

  private def rewrite(): Boolean = {
    val there = client()
    val live = filesOf(there)
    live.groupBy(_.partition).values.toVector.sortBy(_.head.keys.min).find(_.size > 1).exists {
      several =>
        val old = several.take(3)
        val found = old.flatMap(_.keys).toSet
        val rewrite = there.newRewrite()
        old.foreach(f => rewrite.deleteFile(f.file))
        files(there, now.rows.filter(row => found(keyOf(row)))).foreach(rewrite.addFile)
        rewrite.commit()
        true
    }
  }

  private def rewriteManifests(): Boolean = {
    val there = client()
    Option(there.currentSnapshot).exists { _ =>
      there.rewriteManifests().clusterBy(_ => "all").commit()
      true
    }
  }

  /** Snapshots, a property and a column in one commit. */
  private def transaction(): Boolean = isSmall && {
    val there = client()
    val transaction = there.newTransaction()
    val key = s"t${random.nextInt(3)}"
    if (random.nextBoolean()) {
      val column = newColumn(depth = 0)
      transaction
        .updateSchema()
        .addColumn(column.name, Values.typeOf(column.kind))
        .commit()
      now = now.copy(columns = now.columns :+ column)
    }
    val (one, two) = (newRows(1), newRows(2))
    val first = files(transaction.table, one)
    val append = transaction.newAppend()
    first.foreach(append.appendFile)
    append.commit()
    val again = transaction.newFastAppend()
    files(transaction.table, two).foreach(again.appendFile)
    again.commit()
    val takeBack = random.nextBoolean()
    if (takeBack) {
      val delete = transaction.newDelete()
      first.foreach(delete.deleteFile(_: DataFile))
      delete.commit()
    }
    transaction.updateProperties().set(key, s"$keys").commit()
    transaction.commitTransaction()
    now = now.copy(properties = now.properties + (key -> s"$keys"))
    add(if (takeBack) two else one ++ two)
  }

  private def rollback(): Boolean = {
    val there = client()
    val current = Option(there.currentSnapshot).map(_.snapshotId)
    val targets = org.apache.iceberg.util.SnapshotUtil
      .currentAncestors(there)
      .asScala
      .filterNot(s => current.contains(s.snapshotId))
      .flatMap(s => Option(s.summary.get("delta-version")).map(v => s.snapshotId -> v.toLong))
      .filter { case (_, version) => version > replacedAfter && past.contains(version) }
      .toVector
    targets.nonEmpty && {
      val (snapshot, version) = one(targets)
      there.manageSnapshots().rollbackTo(snapshot).commit()
      now = now.copy(rows = past(version).rows)
      true
    }
  }

  private def replace(): Boolean = {
    val columns = keyColumn +: (partition.toVector ++ newColumns(2))
    val schema = schemaOf(columns)
    val spec = partition.fold(PartitionSpec.unpartitioned) { p =>
      PartitionSpec.builderFor(schema).identity(p.name).build()
    }
    val transaction = reader.replacing(name, schema, spec)
    now = now.copy(columns = columns)
    val rows = newRows(2)
    val append = transaction.newAppend()
    files(transaction.table, rows).foreach(append.appendFile)
    append.commit()
    transaction.commitTransaction()
    now = now.copy(rows = rows)
    replacedAfter = reader.version(name) - 1
    true
  }

  // --- Columns and properties by Iceberg -----------------------------------------------------

  private def property(): Boolean = {
    val key = s"k${random.nextInt(3)}"
    val update = client().updateProperties()
    if (now.properties.contains(key)) {
      update.remove(key).commit()
      now = now.copy(properties = now.properties - key)
    } else {
      val value = one(Vector("", "v", "it's ü", s"$keys"))
      update.set(key, value).commit()
      now = now.copy(properties = now.properties + (key -> value))
    }
    true
  }

  private def changing(change: UpdateSchema => Boolean): Boolean = {
    val update = client().updateSchema()
    val changed = change(update)
    if (changed) update.commit()
    changed
  }

  private def addColumn(): Boolean = now.columns.size < 12 && changing { update =>
    val column = newColumn(depth = 1)
    update.addColumn(column.name, Values.typeOf(column.kind))
    now = now.copy(columns = now.columns :+ column)
    true
  }

  private def structs: Vector[(Column, Kind.Struct)] = now.columns.collect {
    case column @ Column(_, _, struct: Kind.Struct) => column -> struct
  }

  private def addField(): Boolean = structs.nonEmpty && changing { update =>
    val (column, struct) = one(structs)
    val field = newColumn(depth = 0)
    update.addColumn(column.name, field.name, Values.typeOf(field.kind))
    change(column.serial)(_.copy(kind = Kind.Struct(struct.fields :+ field)))
  }

  private def free: Vector[Column] = now.columns.filterNot(isFixed)

  private def dropColumn(): Boolean = free.size > 1 && changing { update =>
    val column = one(free)
    update.deleteColumn(column.name)
    forget(column)
  }

  private def forget(column: Column): Boolean = {
    dropped += column.name
    now = now.copy(columns = now.columns.filterNot(_.serial == column.serial))
    true
  }

  private def renameColumn(): Boolean = changing { update =>
    structs.headOption match {
      case Some((column, struct)) if random.nextBoolean() =>
        val field = one(struct.fields)
        val to = newName()
        update.renameColumn(s"${column.name}.${field.name}", to)
        val fields = struct.fields.map(f => if (f.serial == field.serial) f.copy(name = to) else f)
        change(column.serial)(_.copy(kind = Kind.Struct(fields)))
      case _ =>
        val column = one(free)
        val to = newName()
        update.renameColumn(column.name, to)
        dropped += column.name
        change(column.serial)(_.copy(name = to))
    }
  }

  private def moveColumn(): Boolean = changing { update =>
    val column = one(free)
    val others = now.columns.filterNot(_.serial == column.serial)
    val at = random.nextInt(others.size + 1)
    if (at == 0) update.moveFirst(column.name)
    else update.moveAfter(column.name, others(at - 1).name)
    now = now.copy(columns = others.patch(at, Seq(column), 0))
    true
  }

  private def wideners: Vector[(Column, Kind.Plain)] = free.collect {
    case column @ Column(_, _, plain: Kind.Plain) if Kind.widened.contains(plain) =>
      column -> Kind.widened(plain)
  }

  private def widenColumn(): Boolean = wideners.nonEmpty && changing { update =>
    val (column, to) = one(wideners)
    update.updateColumn(column.name, to.iceberg)
    widen(column, to)
  }

  private def widen(column: Column, to: Kind.Plain): Boolean = {
    widenedAfter = reader.version(name)
    change(column.serial)(_.copy(kind = to))
  }

  /** Drop, add under the same name, rename and widen in one commit. */
  private def evolve(): Boolean = free.size > 2 && wideners.nonEmpty && changing { update =>
    val (column, to) = one(wideners)
    val gone = one(free.filterNot(_.serial == column.serial))
    val name = newName()
    val again = newColumn(depth = 0).copy(name = gone.name)
    update
      .deleteColumn(gone.name)
      .addColumn(gone.name, Values.typeOf(again.kind))
      .updateColumn(column.name, to.iceberg)
      .renameColumn(column.name, name)
    forget(gone)
    dropped -= gone.name
    now = now.copy(columns = now.columns :+ again)
    change(column.serial)(_.copy(name = name))
    widen(column, to)
  }

  // --- What is refused -----------------------------------------------------------------------

  private def refused(): Boolean = {
    val there = client()
    val tries = Vector[() => Any](
      () => there.updateSpec().addField(Expressions.bucket("k", 4)).commit(),
      () => there.replaceSortOrder().asc("k").commit(),
      () => there.updateSchema().addColumn(newName(), Types.TimeType.get).commit(),
      () => there.updateProperties().set("write.delete.mode", "merge-on-read").commit(),
      () => there.manageSnapshots().createTag("t", there.currentSnapshot.snapshotId).commit(),
      () =>
        there
          .newRowDelta()
          .addDeletes(
            FileMetadata
              .deleteFileBuilder(there.spec)
              .ofPositionDeletes()
              .withPath(there.locationProvider.newDataLocation(s"${UUID.randomUUID}.parquet"))
              .withFormat(FileFormat.PARQUET)
              .withPartition(filesOf(there).head.file.partition)
              .withFileSizeInBytes(10)
              .withRecordCount(1)
              .build()
          )
          .commit(),
      () => there.newFastAppend().appendFile(filesOf(there).head.file).commit(),
      () => {
        val honest = files(there, newRows(1)).head
        val lying = DataFiles.builder(there.spec).copy(honest).withRecordCount(7).build()
        there.newAppend().appendFile(lying).commit()
      }
    )
    now.rows.nonEmpty && {
      val which = random.nextInt(tries.size)
      val refusal =
        try { tries(which)(); None }
        catch { case e: ValidationException => Some(e) }
      if (refusal.isEmpty) throw new AssertionError(s"refusal $which was taken")
      true
    }
  }

  // --- By Delta ------------------------------------------------------------------------------

  private def appendByDelta(): Boolean = isSmall && {
    val rows = newRows(1 + random.nextInt(2))
    appendDirectly(rows)
    add(rows)
  }

  /** By Delta's transaction, without a statement of Spark, which costs ten times as much. */
  private def appendDirectly(rows: Vector[Row]): Unit = {
    val there = client()
    val log = reader.log(name)
    val physical = partition.map { p =>
      s"col-${there.schema.findField(p.name).fieldId}" -> p
    }
    val added = byPartition(there, rows).map { case (data, group) =>
      val file = reader.write(there, data, group.map(record(there, _)))
      AddFile(
        path = log.dataPath.toUri.relativize(uri(file.location)).toString,
        partitionValues = physical.map { case (key, p) =>
          key -> partitionText(group.head.getOrElse(p.serial, null))
        }.toMap,
        size = file.fileSizeInBytes,
        modificationTime = System.currentTimeMillis(),
        dataChange = true,
        stats = s"""{"numRecords":${group.size}}"""
      )
    }
    log.startTransaction(None).commit(added, DeltaOperations.Write(SaveMode.Append, Some(Nil)))
    ()
  }

  private def uri(location: String): java.net.URI =
    new org.apache.hadoop.fs.Path(location).toUri

  private def partitionText(value: Any): String = value match {
    case null                           => null
    case time: java.time.OffsetDateTime =>
      time.format(java.time.format.DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSSX"))
    case other => other.toString
  }

  private def removeByDelta(): Boolean = withFile { (_, file, found) =>
    val log = reader.log(name)
    val live = log.update().allFiles.collect()
    val path = uri(file.location).getPath
    val add = live.find(f => path.endsWith("/" + new java.net.URI(f.path).getPath)).get
    log.startTransaction(None).commit(Seq(add.remove), DeltaOperations.ManualUpdate)
    remove(found)
  }

  private def names: String = now.columns.map(c => s"`${c.name}`").mkString("(", ", ", ")")

  private def valuesSql(row: Row): String =
    now.columns.map(c => Values.sql(row.getOrElse(c.serial, null), c.kind)).mkString("(", ", ", ")")

  private def insertBySql(): Boolean = isSmall && {
    val rows = newRows(2)
    reader.sql(s"INSERT INTO $name $names VALUES ${rows.map(valuesSql).mkString(", ")}")
    add(rows)
  }

  private def someKeys: Set[Long] =
    random.shuffle(now.rows.map(keyOf)).take(1 + random.nextInt(3)).toSet

  private def deleteBySql(): Boolean = now.rows.nonEmpty && {
    val gone = someKeys
    reader.sql(s"DELETE FROM $name WHERE k IN (${gone.toSeq.sorted.mkString(", ")})")
    remove(gone)
    true
  }

  private def updateBySql(): Boolean = now.rows.nonEmpty && {
    val found = someKeys
    val column = one(now.columns.filterNot(_.serial == keyColumn.serial))
    val value = Values.some(column.kind, random)
    reader.sql(
      s"UPDATE $name SET `${column.name}` = ${Values.sql(value, column.kind)} " +
        s"WHERE k IN (${found.toSeq.sorted.mkString(", ")})"
    )
    val rows = now.rows.map(r => if (found(keyOf(r))) r + (column.serial -> value) else r)
    now = now.copy(rows = rows)
    true
  }

  private def mergeBySql(): Boolean = now.rows.nonEmpty && {
    val found = someKeys
    val changed = newRows(found.size).zip(found.toSeq.sorted).map { case (row, key) =>
      row + (keyColumn.serial -> key)
    }
    val rows = changed ++ newRows(1)
    val source = rows.map(valuesSql).mkString(", ")
    reader.sql(
      s"MERGE INTO $name t USING (SELECT * FROM VALUES $source AS v$names) s ON t.k = s.k " +
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    now = now.copy(rows = now.rows.filterNot(row => found(keyOf(row))) ++ rows)
    true
  }

  private def optimize(): Boolean = { reader.sql(s"OPTIMIZE $name"); true }

  private def restore(): Boolean = {
    val since = math.max(widenedAfter, replacedAfter)
    val versions = past.keys.filter(v => v > since && v < reader.version(name)).toVector
    versions.nonEmpty && {
      val version = one(versions)
      reader.sql(s"RESTORE TABLE $name TO VERSION AS OF $version")
      now = past(version)
      true
    }
  }

  private def alterBySql(): Boolean = random.nextInt(5) match {
    case 0 =>
      val column = newColumn(depth = 1)
      val dataType = Values.typeSql(column.kind)
      // Delta asks for the feature first.
      if (dataType.contains(Kind.local.sql))
        reader.sql(
          s"ALTER TABLE $name SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')"
        )
      reader.sql(s"ALTER TABLE $name ADD COLUMN `${column.name}` $dataType")
      now = now.copy(columns = now.columns :+ column)
      true
    case 1 =>
      val (column, to) = (one(free), newName())
      reader.sql(s"ALTER TABLE $name RENAME COLUMN `${column.name}` TO `$to`")
      dropped += column.name
      change(column.serial)(_.copy(name = to))
    case 2 if free.size > 1 =>
      val column = one(free)
      reader.sql(s"ALTER TABLE $name DROP COLUMN `${column.name}`")
      forget(column)
    case 3 if wideners.nonEmpty =>
      val (column, to) = one(wideners)
      reader.sql(s"ALTER TABLE $name ALTER COLUMN `${column.name}` TYPE ${to.sql}")
      widen(column, to)
    case _ =>
      val column = one(free)
      reader.sql(s"ALTER TABLE $name ALTER COLUMN `${column.name}` FIRST")
      now = now.copy(columns = column +: now.columns.filterNot(_.serial == column.serial))
      true
  }

  private def propertyBySql(): Boolean = {
    reader.sql(s"ALTER TABLE $name SET TBLPROPERTIES ('iceberg.k0' = '$keys')")
    now = now.copy(properties = now.properties + ("k0" -> s"$keys"))
    true
  }

  // --- Files ---------------------------------------------------------------------------------

  private final class Live(val file: DataFile, val keys: Set[Long]) {
    def partition: String = s"${file.partition}"
  }

  // By keys, because names are random.
  private def filesOf(there: Table): Vector[Live] = {
    there.refresh()
    Using
      .resource(there.newScan().planFiles()) { tasks =>
        tasks.asScala.toVector.map(_.file.copy())
      }
      .map(file => new Live(file, keysIn(there, file)))
      .sortBy(_.keys.min)
  }

  private val keysByFile = mutable.HashMap.empty[String, Set[Long]]

  private def keysIn(there: Table, file: DataFile): Set[Long] =
    keysByFile.getOrElseUpdate(
      file.location, {
        val schema = there.schema.select("k")
        val rows = Parquet
          .read(there.io.newInputFile(file.location))
          .project(schema)
          .createReaderFunc((t: MessageType) => GenericParquetReaders.buildReader(schema, t))
          .build[Record]()
        Using.resource(rows)(_.asScala.map(_.get(0).asInstanceOf[Long]).toSet)
      }
    )

  private def withFile(change: (Table, DataFile, Set[Long]) => Unit): Boolean =
    now.rows.nonEmpty && {
      val there = client()
      val chosen = one(filesOf(there))
      change(there, chosen.file, chosen.keys)
      true
    }

  private def record(there: Table, row: Row): Record =
    Values.record(there.schema.asStruct, now.columns, row)

  private def byPartition(
      there: Table,
      rows: Vector[Row]
  ): Vector[(Option[PartitionData], Vector[Row])] = partition match {
    case None    => Vector(None -> rows)
    case Some(p) =>
      rows.groupBy(_.getOrElse(p.serial, null)).values.toVector.sortBy(g => keyOf(g.head)).map {
        group => Some(partitionOf(there, record(there, group.head))) -> group
      }
  }

  private def partitionOf(there: Table, row: Record): PartitionData = {
    val key = new PartitionKey(there.spec, there.schema)
    key.partition(new InternalRecordWrapper(there.schema.asStruct).wrap(row): StructLike)
    val data = new PartitionData(there.spec.partitionType)
    data.set(0, key.get(0, classOf[Any]))
    data
  }

  private def files(there: Table, rows: Vector[Row]): Vector[DataFile] =
    byPartition(there, rows).map { case (data, group) =>
      reader.write(there, data, group.map(record(there, _)))
    }

  // --- The model -----------------------------------------------------------------------------

  private def one[T](of: Vector[T]): T = of(random.nextInt(of.size))

  private def serial(): Int = { serials += 1; serials }

  private def isFixed(column: Column): Boolean =
    column.serial == keyColumn.serial || partition.exists(_.serial == column.serial)

  private def isSmall: Boolean = now.rows.size < 40

  private def keyOf(row: Row): Long = row(keyColumn.serial).asInstanceOf[Long]

  private def add(rows: Vector[Row]): Boolean = {
    now = now.copy(rows = now.rows ++ rows)
    true
  }

  private def remove(gone: Set[Long]): Unit =
    now = now.copy(rows = now.rows.filterNot(row => gone(keyOf(row))))

  private def change(serial: Int)(change: Column => Column): Boolean = {
    now = now.copy(columns = now.columns.map(c => if (c.serial == serial) change(c) else c))
    true
  }

  private def newRows(count: Int): Vector[Row] = Vector.fill(count) {
    keys += 1
    now.columns.map { column =>
      val value =
        if (column.serial == keyColumn.serial) keys else Values.some(column.kind, random)
      column.serial -> value
    }.toMap
  }

  /** A name that no column has, at times one that a column had. */
  private def newName(fresh: Boolean = false): String = {
    val free = dropped.filterNot(name => now.columns.exists(_.name == name)).toVector
    if (!fresh && free.nonEmpty && random.nextInt(3) == 0) one(free)
    else {
      serials += 1
      s"c$serials${one(Vector("", " x", "_ü", "'q"))}"
    }
  }

  private def newColumn(depth: Int, fresh: Boolean = false): Column = {
    val kind =
      if (depth == 0) one(Kind.plain)
      else
        random.nextInt(6) match {
          case 0 => Kind.Struct(Vector.fill(1 + random.nextInt(2))(newColumn(0, fresh = true)))
          case 1 => Kind.Items(one(Kind.plain))
          case 2 => Kind.Pairs(one(Kind.plain))
          case _ => one(Kind.plain)
        }
    Column(serial(), newName(fresh), kind)
  }

  private def newColumns(count: Int): Vector[Column] =
    Vector.fill(count)(newColumn(depth = 1, fresh = true))

  private def schemaOf(columns: Vector[Column]): Schema =
    new Schema(Values.typeOf(Kind.Struct(columns)).asStructType.fields)
}

private[writeback] object RandomTable {

  /** The doors to a table. */
  trait Doors {
    def sql(statement: String): Unit
    def load(name: String): Table
    def create(name: String, schema: Schema, spec: PartitionSpec): Unit
    def creating(name: String, schema: Schema, spec: PartitionSpec): org.apache.iceberg.Transaction
    def replacing(name: String, schema: Schema, spec: PartitionSpec): org.apache.iceberg.Transaction
    def log(name: String): DeltaLog
    def version(name: String): Long
    def write(there: Table, partition: Option[PartitionData], rows: Vector[Record]): DataFile
  }
}
