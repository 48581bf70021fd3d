package org.icebergwritercompat.iceberg.metadata

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.iceberg._
import org.apache.iceberg.types.Types
import org.icebergwritercompat.testing.{CommitLine, TestFolders}
import org.scalatest.funsuite.AnyFunSuite
import org.icebergwritercompat.iceberg.target.PathTableOperations

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import scala.jdk.CollectionConverters._

/** The JSON of metadata is that of Iceberg's library, whatever the metadata has. */
class MetadataJsonSuite extends AnyFunSuite {

  private val mapper = new ObjectMapper

  private def same(table: TableMetadata): Unit =
    // Written a second time, from what was kept of the first.
    (1 to 2).foreach { _ =>
      val out = new ByteArrayOutputStream
      MetadataJson.write(table, out)
      val written = mapper.readTree(out.toString(UTF_8))
      val expected = mapper.readTree(TableMetadataParser.toJson(table))
      assert(written == expected)
      assert(written.fieldNames.asScala.toSeq == expected.fieldNames.asScala.toSeq)
    }

  private def published(commits: Int): TableMetadata = {
    val root = new Path(Files.createDirectories(TestFolders.freshFolder()).toUri)
    def target =
      new PathTableOperations("json", root, new Configuration)
    val line = new CommitLine(root, target, 3)
    line.begin()
    (1 to commits).foreach(version => line.append(version.toLong, s"$version"))
    target.current()
  }

  test("what is published") {
    Seq(0, 1, 25).foreach(commits => same(published(commits)))
  }

  test("what others may have added to it") {
    val table = published(3)
    val snapshot = table.currentSnapshot.snapshotId
    val more = new Schema(
      table.lastColumnId,
      (table.schema.columns.asScala :+
        Types.NestedField
          .optional(90, "a \"b\"\\\n\u00e9\ud83d\ude00", Types.StringType.get, "x")).asJava
    )
    val changed = TableMetadata
      .buildFrom(table)
      .setCurrentSchema(more, 90)
      .setDefaultPartitionSpec(
        PartitionSpec.builderFor(more).withSpecId(7).bucket("column_1", 4).build()
      )
      .setDefaultSortOrder(SortOrder.builderFor(more).withOrderId(3).asc("column_1").build())
      .setProperties(Map("odd \"key\"" -> "\u0001\t\\ \u4e2d \ud83d\ude00").asJava)
      .setRef("tag", SnapshotRef.tagBuilder(table.snapshots.get(0).snapshotId).build())
      .setRef(
        "branch",
        SnapshotRef.branchBuilder(snapshot).maxRefAgeMs(5L).minSnapshotsToKeep(2).build()
      )
      .setStatistics(
        new GenericStatisticsFile(
          snapshot,
          "file:/a.puffin",
          10L,
          5L,
          List[BlobMetadata](
            new GenericBlobMetadata(
              "t",
              snapshot,
              1L,
              List(Int.box(1)).asJava,
              Map("k" -> "v").asJava
            )
          ).asJava
        )
      )
      .setPartitionStatistics(
        ImmutableGenericPartitionStatisticsFile.builder
          .snapshotId(snapshot)
          .path("file:/p.parquet")
          .fileSizeInBytes(9L)
          .build()
      )
      .build()
    same(changed)
    same(TableMetadata.buildFrom(changed).upgradeFormatVersion(3).build())
  }

  test("what the next snapshot is made of has one snapshot and no past") {
    val line = published(12)
    val whole = TableMetadata
      .buildFrom(line)
      .setRef("tag", SnapshotRef.tagBuilder(line.snapshots.get(4).snapshotId).build())
      .build()
    val start = MetadataTimes.withoutPast(whole)
    assert(start.snapshots.asScala.map(_.snapshotId).toSeq == Seq(whole.currentSnapshot.snapshotId))
    assert(start.currentSnapshot.summary == whole.currentSnapshot.summary)
    assert(start.currentSnapshot.parentId == null && start.snapshotLog.isEmpty)
    assert(start.lastSequenceNumber == whole.lastSequenceNumber && start.uuid == whole.uuid)
    assert(start.properties == whole.properties && start.schema.sameSchema(whole.schema))
  }
}
