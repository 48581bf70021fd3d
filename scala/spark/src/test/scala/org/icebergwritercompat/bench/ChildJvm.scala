package org.icebergwritercompat.bench

import org.apache.spark.launcher.JavaModuleOptions

import java.io.{BufferedReader, File, InputStreamReader, PrintWriter}
import scala.jdk.CollectionConverters._

/**
 * A child JVM that reads one request per line and prints one answer per line. The guard is
 * installed once per JVM, so a guarded and a stock session cannot be in the same JVM.
 */
final class ChildJvm(main: String, arguments: Seq[String], options: Seq[String])
    extends AutoCloseable {

  def this(main: String, arguments: String*) = this(main, arguments, ChildJvm.Options)

  private val process = {
    val command = Seq(s"${System.getProperty("java.home")}/bin/java", "-cp") ++
      Seq(System.getProperty("java.class.path")) ++
      JavaModuleOptions.defaultModuleOptions.trim.split("\\s+") ++
      options ++ Seq(main) ++ arguments
    val builder = new ProcessBuilder(command.asJava)
    builder.environment.put("SPARK_LOCAL_IP", "127.0.0.1")
    builder.redirectError(ProcessBuilder.Redirect.appendTo(ChildJvm.log)).start()
  }

  private val answers = new BufferedReader(new InputStreamReader(process.getInputStream))
  private val questions = new PrintWriter(process.getOutputStream, true)

  /** The next answer, split at spaces. */
  def answer(): Seq[String] = {
    val line = Iterator
      .continually(answers.readLine())
      .find(line => line == null || line.startsWith(ChildJvm.Answer))
      .flatMap(Option(_))
      .getOrElse(sys.error(s"$main ${arguments.mkString(" ")} has ended: see ${ChildJvm.log}"))
    line.stripPrefix(ChildJvm.Answer).split(' ').toSeq
  }

  /** Sends a request; returns the numbers of the answer. */
  def ask(question: String): Seq[Double] = {
    questions.println(question)
    answer().map(_.toDouble)
  }

  override def close(): Unit = {
    questions.close()
    answers.close()
    process.waitFor()
    ()
  }
}

object ChildJvm {

  /** The prefix of lines that are answers; other lines on standard output are from logs. */
  val Answer = "@@ "

  val Options: Seq[String] = Seq("-Xms2g", "-Xmx2g", "-Xss4m")

  /** The log file of the child JVMs. */
  val log: File = File.createTempFile("iceberg-writer-compat-bench", ".log")
}
