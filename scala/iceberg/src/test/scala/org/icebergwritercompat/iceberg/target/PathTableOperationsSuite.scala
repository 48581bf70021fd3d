package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.iceberg.{TableMetadata, TableMetadataParser}
import org.apache.iceberg.exceptions.{CommitFailedException, NotFoundException}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{CommitLine, ElsewhereFileSystem, TestFolders}
import org.scalatest.funsuite.AnyFunSuite

import java.net.URI
import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path => LocalPath}
import java.util.UUID

class PathTableOperationsSuite extends AnyFunSuite {

  private def folder(): LocalPath = Files.createDirectories(TestFolders.freshFolder())

  private def local: FileSystem = FileSystem.getLocal(new Configuration)

  private def store(fs: FileSystem, home: LocalPath): MetadataStore =
    MetadataStore.of(fs, new Path(home.toString), elsewhere).getOrElse(fail("not exclusive"))

  private def elsewhere: Configuration = {
    val conf = new Configuration
    ElsewhereFileSystem.confs.foreach { case (key, value) => conf.set(key, value) }
    conf
  }

  private def there(conf: Configuration): FileSystem = {
    val fs = new ElsewhereFileSystem
    fs.initialize(URI.create("elsewhere:///"), conf)
    fs
  }

  private def create(store: MetadataStore, file: LocalPath, text: String): Boolean =
    store.create(new Path(file.toString))(_.write(text.getBytes))

  Seq("on a local disk" -> local, "elsewhere" -> there(elsewhere)).foreach { case (where, fs) =>
    test(s"$where a metadata file is never written over, and nothing else is left") {
      val home = folder()
      val target = home.resolve("v1.metadata.json")
      assert(create(store(fs, home), target, "first"))
      assert(!create(store(fs, home), target, "second"))
      assert(Files.readString(target) == "first")
      assert(home.toFile.list.toSeq.filterNot(_.endsWith(".crc")) == Seq("v1.metadata.json"))
      assert(new String(fs.open(new Path(target.toString)).readAllBytes) == "first")
    }

    test(s"$where the hint is replaced, and can be read through checksums") {
      val home = folder()
      val hint = new Path(home.resolve("version-hint.text").toString)
      Seq("1", "12").foreach { next =>
        val before = store(fs, home).read(hint)
        assert(store(fs, home).replace(hint, next, before))
        assert(store(fs, home).read(hint).map(_.text).contains(next))
        assert(new String(fs.open(hint).readAllBytes) == next)
      }
      val lock = ".version-hint.text.lock"
      val left = home.toFile.list.toSet - lock
      assert(left.filterNot(_.endsWith(".crc")) == Set("version-hint.text"))
    }
  }

  test("on a local disk a hint that has changed since it was read is not replaced") {
    val home = folder()
    val hint = new Path(home.resolve("version-hint.text").toString)
    val (slow, fast) = (store(local, home), store(local, home))
    assert(fast.replace(hint, "1", None))
    assert(!slow.replace(hint, "1", None))
    val seen = slow.read(hint)
    assert(fast.replace(hint, "3", fast.read(hint)))
    assert(!slow.replace(hint, "2", seen))
    assert(slow.read(hint).map(_.text).contains("3"))
    // Another process, which the system keeps apart, is waited for.
    val lock = home.resolve(".version-hint.text.lock").toString
    val script = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); " +
      "print('held', flush=True); sys.stdin.read()"
    val other = new ProcessBuilder("python3", "-c", script, lock).start()
    try {
      assert(other.inputReader.readLine() == "held")
      intercept[java.io.IOException](slow.replace(hint, "4", slow.read(hint)))
      assert(slow.read(hint).map(_.text).contains("3"))
    } finally { other.destroyForcibly().waitFor(); () }
    assert(slow.replace(hint, "4", slow.read(hint)))
  }

  test("a file system that does not keep writers apart is refused by its name") {
    val conf = elsewhere
    conf.unset(s"${MetadataStore.Setting}elsewhere")
    val home = folder()
    val root = new Path(s"elsewhere:$home")
    def target = new PathTableOperations("a table", root, conf)
    val refused = intercept[IcebergWriterCompatException](new CommitLine(root, target, 3).begin())
    assert(refused.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.NOT_EXCLUSIVE")
    Seq(classOf[ElsewhereFileSystem].getName, "exclusive.elsewhere", "catalog").foreach { told =>
      assert(refused.getMessage.contains(told))
    }
    assert(!Files.exists(home.resolve("metadata/v1.metadata.json")))
    assert(target.found() == Found.Absent)
    // As its text says.
    conf.set(s"${MetadataStore.Setting}elsewhere", "rename")
    new CommitLine(root, target, 3).begin()
    assert(target.found().isInstanceOf[Found.Line])
  }

  test("metadata goes on only from a version that is there, and nobody is sent back") {
    val home = folder()
    val root = new Path(home.toUri)
    val line = new CommitLine(root, operations(root), 3)
    line.begin()
    val (base, slow) = (operations(root), operations(root))
    val known = slow.current()
    (1 to 20).foreach(version => line.append(version.toLong, s"$version"))
    assert(!Files.exists(metadataFile(home, 2)))
    // The next version of what was seen is gone, not free.
    intercept[CommitFailedException](slow.commit(known, changed(known, "slow")))
    assert(!Files.exists(metadataFile(home, 2)))
    assert(Files.readString(home.resolve("metadata/version-hint.text")) == "21")
    // A hint that names what is there is corrected, one that is gone is found again.
    Seq("20", "3", "x", "").foreach { hint =>
      Files.deleteIfExists(home.resolve("metadata/.version-hint.text.crc"))
      Files.writeString(home.resolve("metadata/version-hint.text"), hint)
      operations(root).repair()
      assert(Files.readString(home.resolve("metadata/version-hint.text")) == "21")
    }
    base.commit(base.current(), changed(base.current(), "base"))
    assert(Files.readString(home.resolve("metadata/version-hint.text")) == "22")
  }

  private def operations(root: Path): PathTableOperations =
    new PathTableOperations("a table", root, new Configuration)

  private def changed(base: TableMetadata, value: String): TableMetadata =
    TableMetadata.buildFrom(base).setProperties(java.util.Map.of("by", value)).build()

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
