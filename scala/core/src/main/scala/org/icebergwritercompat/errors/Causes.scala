package org.icebergwritercompat.errors

/** What caused an error. */
object Causes {

  // A cause may have itself among its causes.
  private val most = 20

  /** The error, its cause, the cause of that, and so on. */
  def of(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(most).toSeq
}
