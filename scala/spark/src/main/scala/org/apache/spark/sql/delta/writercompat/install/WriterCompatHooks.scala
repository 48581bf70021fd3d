package org.apache.spark.sql.delta.writercompat.install

import org.apache.spark.{SPARK_VERSION, SparkConf, SparkEnv}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.writercompat.feature.{
  FeatureRegistry,
  JoinPoint,
  JoinPoints,
  WriterCompatProperty
}
import org.apache.spark.sql.delta.writercompat.guard.{ConvertGuard, GuardingObserver}
import org.apache.spark.sql.delta.writercompat.publish.VacuumHook
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.errors.IcebergWriterCompatException.notInstalled
import org.icebergwritercompat.model.BuildInfo

import scala.util.control.NonFatal

/** Installs the guard in this JVM, once; [[JoinPoints]] lists the places. */
object WriterCompatHooks {

  private val extensions =
    "io.delta.sql.DeltaSparkSessionExtension,org.icebergwritercompat.IcebergWriterCompatExtension"

  private var installed = false

  /**
   * Installs the guard, or does nothing if it is installed.
   *
   * @throws org.icebergwritercompat.errors.IcebergWriterCompatException
   *   if it cannot be installed completely
   */
  def install(): Unit = synchronized {
    if (!installed) {
      checkSpark()
      checkDelta()
      // Guard first and register last: if a step in between fails, Delta does not know the
      // feature, and refuses the tables that need the guard.
      at(JoinPoints.ThreadObserver)(guardTransactions())
      at(JoinPoints.Vacuum)(unlessInUse(VacuumHook.define()))
      at(JoinPoints.Convert)(unlessInUse(ConvertGuard.define()))
      at(JoinPoints.FeatureMap)(registerFeature())
      at(JoinPoints.PropertyEntries)(WriterCompatProperty.register())
      check(JoinPoints.ThreadObserver)(
        ThreadObservers.get().isInstanceOf[GuardingObserver.PerThread]
      )
      check(JoinPoints.FeatureMap)(FeatureRegistry.isRegistered)
      check(JoinPoints.PropertyEntries)(WriterCompatProperty.isRegistered)
      installed = true
    }
  }

  /** The settings of the Spark context, which its sessions begin with. */
  def settings: SparkConf = Option(SparkEnv.get)
    .map(_.conf)
    .getOrElse(throw notInstalled("NO_SPARK_CONTEXT", Map("extensions" -> extensions)))

  /** Fails if the guard is not installed, because no session of this JVM has the extension. */
  def require(): Unit =
    if (!isInstalled) throw IcebergWriterCompatException.extensionMissing(extensions)

  /** Whether the guard is installed completely. */
  def isInstalled: Boolean = synchronized {
    installed &&
    ThreadObservers.get().isInstanceOf[GuardingObserver.PerThread] &&
    VacuumHook.isDefined &&
    ConvertGuard.isDefined &&
    FeatureRegistry.isRegistered &&
    WriterCompatProperty.isRegistered
  }

  private def guardTransactions(): Unit = {
    val current = ThreadObservers.get().get()
    val observers = new GuardingObserver.PerThread
    observers.set(current)
    ThreadObservers.set(observers)
  }

  private def unlessInUse(define: => Unit): Unit =
    try define
    catch { case _: LinkageError => throw alreadyInUse }

  private def registerFeature(): Unit =
    try FeatureRegistry.define()
    catch {
      case _: LinkageError if !FeatureRegistry.isRegistered => throw alreadyInUse
      case _: LinkageError                                  =>
    }

  private def alreadyInUse =
    notInstalled("DELTA_ALREADY_IN_USE", Map("extensions" -> extensions))

  private def checkSpark(): Unit = {
    val line = SPARK_VERSION.split('.').take(2).mkString(".")
    if (line != BuildInfo.spark)
      throw notInstalled(
        "SPARK_VERSION",
        Map("supported" -> BuildInfo.spark, "found" -> SPARK_VERSION, "foundLine" -> line)
      )
  }

  private def checkDelta(): Unit = {
    val loader =
      try classOf[DeltaLog].getClassLoader
      catch {
        case e: NoClassDefFoundError =>
          throw notInstalled(
            "DELTA_MISSING",
            Map("spark" -> BuildInfo.spark, "supported" -> BuildInfo.delta),
            e
          )
      }
    if (loader ne getClass.getClassLoader)
      throw notInstalled(
        "CLASS_LOADERS",
        Map("deltaLoader" -> s"$loader", "ownLoader" -> s"${getClass.getClassLoader}")
      )
    DeltaGate.admit(io.delta.VERSION)
  }

  private def at(joinPoint: JoinPoint)(step: => Unit): Unit =
    try step
    catch {
      case e: IcebergWriterCompatException => throw e
      // A missing member causes a LinkageError, which is not NonFatal.
      case e: LinkageError => throw failed(joinPoint, e.toString, e)
      case NonFatal(e)     => throw failed(joinPoint, e.toString, e)
    }

  private def check(joinPoint: JoinPoint)(holds: => Boolean): Unit =
    at(joinPoint)(if (!holds) throw failed(joinPoint, s"${joinPoint.what} has no effect", null))

  private def failed(joinPoint: JoinPoint, cause: String, e: Throwable) =
    notInstalled("JOIN_POINT", Map("joinPoint" -> joinPoint.id, "cause" -> cause), e)
}
