package org.apache.spark.sql.delta.writercompat.install

import com.fasterxml.jackson.core.util.{DefaultIndenter, DefaultPrettyPrinter}
import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.module.scala.DefaultScalaModule
import org.apache.spark.sql.delta.writercompat.feature.{Fingerprints, JoinPoints}
import org.icebergwritercompat.bytecode.{ClassFile, ClassFiles}

import java.nio.file.{Files, Path}
import java.util.TreeMap
import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * The members of Delta that the jar uses, and the fingerprints of the tested versions. The build
 * writes it; a session with an untested version reads it.
 *
 * @param references
 *   the members of Delta that the jar's classes refer to, by class
 * @param fingerprints
 *   for each join point, by its id, the fingerprint in each tested version
 */
final case class DeltaIndex(
    references: Map[String, Seq[String]],
    fingerprints: Map[String, Map[String, String]]
) {

  /** The references as a list. */
  def allReferences: Seq[DeltaReference] =
    references.toSeq.sortBy(_._1).flatMap { case (owner, members) =>
      DeltaReference.parse(owner, None) +: members.map(m => DeltaReference.parse(owner, Some(m)))
    }
}

object DeltaIndex {

  private val name = "iceberg-writer-compat-delta.json"

  private val mapper: ObjectMapper =
    JsonMapper.builder().addModule(DefaultScalaModule).build()

  /** The index in this jar. */
  def load(): DeltaIndex =
    Using.resource(getClass.getResourceAsStream(s"/$name"))(
      mapper.readValue(_, classOf[DeltaIndex])
    )

  /**
   * Run by the build: writes the index into a folder.
   *
   * @param args
   *   the folder, the folder of this project's class files, and `<version>=<jar>` for each jar of
   *   each tested version, beginning with the version that this project is compiled against
   */
  def main(args: Array[String]): Unit = {
    val (target, classes, jars) = (args(0), args(1), args.toSeq.drop(2))
    val deltas = ListMap.from(jars.map(_.split("=", 2)).groupMap(_.head)(_(1)))
    val compiledAgainst = jars.head.takeWhile(_ != '=')
    val found = deltas.map { case (version, files) =>
      version -> files.flatMap(file => ClassFiles.in(Path.of(file)))
    }
    val references =
      new DeltaReferences(ClassFiles.in(Path.of(classes)), linker(found(compiledAgainst))).all
    found.foreach { case (version, delta) =>
      val missing = linker(delta).missing(references)
      if (missing.nonEmpty)
        sys.error(s"Delta $version lacks: ${missing.mkString("\n  ", "\n  ", "")}")
    }
    write(
      Path.of(target),
      references,
      found.map { case (version, delta) =>
        version -> new Fingerprints(DeltaReferences.inMainJar(delta))
      }
    )
  }

  private def linker(delta: Seq[ClassFile]): Linker = {
    val byName = delta.map(file => file.name -> file.bytes).toMap
    new Linker(name => byName.get(name).orElse(DeltaGate.bytesBy(getClass.getClassLoader)(name)))
  }

  private def write(
      target: Path,
      references: Seq[DeltaReference],
      fingerprints: Map[String, Fingerprints]
  ): Unit = {
    val members = new TreeMap[String, java.util.List[String]]
    references.groupBy(_.owner.replace('/', '.')).foreach { case (owner, of) =>
      members.put(owner, of.flatMap(_.member).map(_.toString).sorted.asJava)
    }
    val hashes = new java.util.LinkedHashMap[String, java.util.Map[String, String]]
    JoinPoints.all.foreach { joinPoint =>
      val byVersion = new TreeMap[String, String]
      fingerprints.foreach { case (version, of) => byVersion.put(version, of.of(joinPoint)) }
      hashes.put(joinPoint.id, byVersion)
    }
    val index = new java.util.LinkedHashMap[String, Object]
    index.put("references", members)
    index.put("fingerprints", hashes)
    Files.createDirectories(target)
    val oneALine =
      new DefaultPrettyPrinter().withArrayIndenter(DefaultIndenter.SYSTEM_LINEFEED_INSTANCE)
    val text = mapper.writer(oneALine).writeValueAsString(index)
    Files.writeString(target.resolve(name), s"$text\n")
    ()
  }
}
