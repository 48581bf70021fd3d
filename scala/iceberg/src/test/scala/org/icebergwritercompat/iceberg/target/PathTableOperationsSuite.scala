package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.iceberg.{TableMetadata, TableMetadataParser}
import org.apache.iceberg.exceptions.{CommitFailedException, NotFoundException}
import org.icebergwritercompat.testing.{CommitLine, ElsewhereFileSystem, TestFolders}
import org.scalatest.funsuite.AnyFunSuite

import java.net.URI
import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID

class PathTableOperationsSuite extends AnyFunSuite {

  private val notAsked: WriteOnce = (_, _) => fail("the local file system decides by itself")

  private def folder(): LocalPath = Files.createDirectories(TestFolders.freshFolder())

  private def local: FileSystem = FileSystem.getLocal(new Configuration)

  private def write(fs: FileSystem, file: LocalPath, text: String): Path = {
    val path = new Path(file.toString)
    val out = fs.create(path, true)
    out.write(text.getBytes)
    out.close()
    path
  }

  test("metadata is never written over") {
    val (home, fs) = (folder(), new CommittingFileSystem(local, notAsked))
    val first = write(local, home.resolve("a.json"), "first")
    val second = write(local, home.resolve("b.json"), "second")
    val target = new Path(home.resolve("v1.metadata.json").toString)
    assert(fs.rename(first, target))
    assert(!fs.rename(second, target))
    assert(Files.readString(home.resolve("v1.metadata.json")) == "first")
    assert(!Files.exists(home.resolve("a.json")))
    assert(new String(fs.open(target).readAllBytes) == "first")
  }

  test("metadata goes on only from a version that is there") {
    val (home, fs) = (folder(), new CommittingFileSystem(local, notAsked))
    val target = new Path(home.resolve("v12.metadata.json").toString)
    val next = write(local, home.resolve("a.json"), "next")
    assert(!fs.rename(next, target))
    assert(Files.exists(home.resolve("a.json")) && !Files.exists(home.resolve("v12.metadata.json")))
    write(local, home.resolve("v11.gz.metadata.json"), "before")
    // The first versions are gone, not free.
    Seq("v1.metadata.json", "v2.metadata.json").foreach { gone =>
      assert(!fs.rename(next, new Path(home.resolve(gone).toString)))
      assert(!Files.exists(home.resolve(gone)))
    }
    assert(fs.rename(next, target))
  }

  test("the hint is there at every moment, and can be read through checksums") {
    val (home, fs) = (folder(), new CommittingFileSystem(local, notAsked))
    val hint = write(local, home.resolve("version-hint.text"), "1")
    fs.delete(hint, false)
    assert(Files.readString(home.resolve("version-hint.text")) == "1")
    assert(fs.rename(write(local, home.resolve("x.temp"), "12"), hint))
    assert(new String(fs.open(hint).readAllBytes) == "12")
    assert(!Files.exists(home.resolve(".x.temp.crc")))
    def hintAfter(next: String): String = {
      fs.rename(write(local, home.resolve("y.temp"), next), hint)
      assert(!Files.exists(home.resolve("y.temp")))
      Files.readString(home.resolve("version-hint.text"))
    }
    assert(hintAfter("11") == "11")
    // A publisher that was suspended does not set the hint back.
    write(local, home.resolve("v11.metadata.json"), "{}")
    assert(hintAfter("3") == "11")
    assert(hintAfter("12") == "12")
  }

  test("elsewhere the log store decides") {
    val home = folder()
    val inner = new ElsewhereFileSystem
    inner.initialize(URI.create("elsewhere:///"), new Configuration)
    var asked = Seq.empty[(String, String)]
    def fs(answer: Boolean) = new CommittingFileSystem(
      inner,
      (file, lines) => { asked :+= file.getName -> lines.mkString("\n"); answer }
    )
    Files.writeString(home.resolve("a.json"), "{\"a\":1}")
    Files.writeString(home.resolve("v6.metadata.json"), "{}")
    val from = new Path(home.resolve("a.json").toString)
    val target = new Path(home.resolve("v7.metadata.json").toString)
    assert(!fs(answer = false).rename(from, target))
    assert(Files.exists(home.resolve("a.json")))
    assert(fs(answer = true).rename(from, target))
    assert(!Files.exists(home.resolve("a.json")))
    assert(asked == Seq.fill(2)("v7.metadata.json" -> "{\"a\":1}"))
  }

  private def operations(root: Path): PathTableOperations =
    new PathTableOperations("a table", root, new Configuration, notAsked)

  private def metadataFile(home: LocalPath, version: Int): LocalPath =
    home.resolve(s"metadata/v$version.metadata.json")

  test("metadata is parsed once, and is what its file has") {
    val home = folder()
    val root = new Path(home.toUri)
    val line = new CommitLine(root, operations(root), 3)
    line.begin()
    (1 to 12).foreach(version => line.append(version.toLong, s"$version"))
    val known = operations(root).current()
    assert(operations(root).current() eq known)
    val file = metadataFile(home, 13)
    assert(TableMetadataParser.toJson(known) == Files.readString(file))
    val parsed = TableMetadataParser.read(operations(root).io(), known.metadataFileLocation)
    assert(TableMetadataParser.toJson(known) == TableMetadataParser.toJson(parsed))
    assert(known.metadataFileLocation == parsed.metadataFileLocation)
    assert(known.changes.isEmpty)
    // What is shared does not hold on to manifests.
    Files.delete(LocalPath.of(URI.create(known.currentSnapshot.manifestListLocation)))
    intercept[NotFoundException](known.currentSnapshot.allManifests(operations(root).io()))
    val unreadable = operations(root).found()
    assert(unreadable.isInstanceOf[Found.Lost], unreadable)
  }

  test("the commit of another publisher is detected, whatever is cached") {
    val home = folder()
    val root = new Path(home.toUri)
    new CommitLine(root, operations(root), 3).begin()
    def changed(base: TableMetadata, value: String): TableMetadata =
      TableMetadata.buildFrom(base).setProperties(java.util.Map.of("by", value)).build()
    val (one, other) = (operations(root), operations(root))
    val (before, same) = (one.current(), other.current())
    assert(before eq same)
    other.commit(same, changed(same, "other"))
    intercept[CommitFailedException](one.commit(before, changed(before, "one")))
    assert(one.refresh().properties.get("by") == "other")
    intercept[CommitFailedException](one.commit(before, changed(before, "one")))
    one.commit(one.current(), changed(one.current(), "one"))
    assert(other.refresh().properties.get("by") == "one")
    // Another process has written this.
    val stale = one.current()
    val foreign = changed(stale, "process")
    Files.writeString(metadataFile(home, 4), TableMetadataParser.toJson(foreign))
    intercept[CommitFailedException](one.commit(stale, changed(stale, "one")))
    assert(one.refresh().properties.get("by") == "process")
  }

  test("a table that takes the place of another is not taken for it") {
    val home = folder()
    val root = new Path(home.toUri)
    new CommitLine(root, operations(root), 3).begin()
    val first = operations(root).current()
    val file = metadataFile(home, 1)
    val time = Files.getLastModifiedTime(file)
    val text = Files.readString(file).replace(first.uuid, new UUID(1, 2).toString)
    assert(text.length == Files.size(file))
    // Nor the same file with another end, by its time.
    Seq(text -> time, text.replace("parquet", "PARQUET") -> FileTime.fromMillis(1700000000000L))
      .foreach { case (content, modified) =>
        Files.delete(file)
        Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
        Files.writeString(file, content)
        Files.setLastModifiedTime(file, modified)
        assert(TableMetadataParser.toJson(operations(root).current()) == content)
      }
    Files.writeString(file, text.take(text.length / 2))
    assert(operations(root).found().isInstanceOf[Found.Lost])
  }
}
