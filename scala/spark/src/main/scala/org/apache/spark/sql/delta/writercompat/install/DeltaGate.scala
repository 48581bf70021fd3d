package org.apache.spark.sql.delta.writercompat.install

import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.writercompat.feature.{Fingerprints, JoinPoints}
import org.icebergwritercompat.bytecode.ClassFiles
import org.icebergwritercompat.errors.IcebergWriterCompatException.notInstalled
import org.icebergwritercompat.model.BuildInfo
import org.slf4j.LoggerFactory

import java.nio.file.Path
import scala.util.Using
import scala.util.control.NonFatal

/**
 * Checks the Delta version when a session starts. It must be a tested version, or have all members
 * that are used and the byte code of a tested version at every join point. Loads no class of Delta.
 */
private[writercompat] object DeltaGate {

  private val log = LoggerFactory.getLogger(getClass)

  private val listed = 20

  /** Refuses a Delta version that differs at join points, and warns of an untested one. */
  def admit(version: String): Unit = if (!BuildInfo.testedDeltas.contains(version)) {
    val tested = BuildInfo.testedDeltas.mkString(", ")
    val differences =
      try differencesOf(DeltaIndex.load())
      catch { case NonFatal(e) => Seq(s"its class files cannot be compared: $e") }
    if (differences.nonEmpty)
      throw notInstalled(
        "DELTA_VERSION",
        Map(
          "tested" -> tested,
          "found" -> version,
          "supported" -> BuildInfo.delta,
          "differences" -> shown(differences)
        )
      )
    log.warn(
      s"Delta Lake $version was not tested with Iceberg Writer Compat ${BuildInfo.version} " +
        s"(tested: $tested). It has all members that are used, and the byte code of a tested " +
        s"version at all ${JoinPoints.all.size} join points, so the session starts."
    )
  }

  private def differencesOf(known: DeltaIndex): Seq[String] = {
    val linker = new Linker(bytesBy(classOf[DeltaLog].getClassLoader))
    linker.missing(known.allReferences).map(gone => s"missing: $gone") ++ moved(known)
  }

  private def moved(known: DeltaIndex): Seq[String] = {
    val jar = Path.of(classOf[DeltaLog].getProtectionDomain.getCodeSource.getLocation.toURI)
    val fingerprints = new Fingerprints(DeltaReferences.inMainJar(ClassFiles.in(jar)))
    JoinPoints.all
      .filterNot(point => known.fingerprints(point.id).values.toSet(fingerprints.of(point)))
      .map(point => s"join point ${point.id}: ${point.what}; otherwise ${point.ifItMoves}")
  }

  private def shown(differences: Seq[String]): String = {
    val more = differences.size - listed
    val rest = if (more > 0) Seq(s"and $more more") else Nil
    (differences.take(listed) ++ rest).map(line => s"\n  - $line").mkString
  }

  /** Reads class files through a class loader, without loading the classes. */
  def bytesBy(loader: ClassLoader)(name: String): Option[Array[Byte]] =
    Option(loader.getResourceAsStream(s"$name.class")).map(Using.resource(_)(_.readAllBytes()))
}
