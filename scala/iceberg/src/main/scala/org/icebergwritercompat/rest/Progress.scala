package org.icebergwritercompat.rest

/** How far a request has come, which decides what an error in it means for its client. */
private[rest] final class Progress {

  @volatile var stage: Progress.Stage = Progress.Reading
}

private[rest] object Progress {

  sealed trait Stage

  /** Nothing but the tables has been looked at. */
  case object Reading extends Stage

  /** What the client sent is applied to what there is, in memory. */
  case object Applying extends Stage

  /** Delta is committing. */
  case object Committing extends Stage

  /** Delta has committed, and nobody may be told that it has not. */
  case object Committed extends Stage

  private val ofThread = new ThreadLocal[Progress]

  /** The progress of the request that this thread works on. */
  def current: Progress = Option(ofThread.get).getOrElse(new Progress)

  /** Runs a request with its own progress. */
  def of[T](progress: Progress)(body: => T): T = {
    ofThread.set(progress)
    try body
    finally ofThread.remove()
  }
}
