package org.icebergwritercompat.model

/** An action of a commit other than protocol and metadata. */
sealed trait DataAction

object DataAction {

  /**
   * No file is this large: no store has such files, and not every JSON parser keeps such numbers
   * exactly.
   */
  val ImpossibleSize: Long = 1L << 53

  /**
   * A file that becomes live.
   *
   * @param repeated
   *   whether the same commit adds the same path already
   * @param isWithinReach
   *   whether the session has a file system for the scheme and host of the path, or the path has
   *   none
   */
  final case class Added(
      path: String,
      partitionValues: Map[String, String],
      statistics: Option[FileStatistics],
      hasDeletionVector: Boolean,
      repeated: Boolean,
      size: Long,
      isWithinReach: Boolean = true
  ) extends DataAction {

    /** The location of the file. */
    lazy val location: FileLocation = FileLocation.of(path)
  }

  /** A file that is no longer live. */
  final case class Removed(path: String, dataChange: Boolean) extends DataAction

  /** A file of the change data feed. */
  final case class ChangeData(path: String) extends DataAction

  /** The clustering columns, each as a path of physical names. */
  final case class Clustered(columns: Seq[Seq[String]]) extends DataAction
}
