package org.icebergwritercompat.iceberg.publish

/** How a table is published, and which published metadata may be given up for it. */
sealed trait PublishWay

object PublishWay {

  /** With the least reads: of what is published, only the newest snapshot is checked. */
  case object Quick extends PublishWay

  /**
   * All snapshots are checked, the current one with all its manifests; older snapshots that cannot
   * be read are removed from the metadata.
   */
  case object Mending extends PublishWay

  /** The published metadata is left as it is, and new metadata begins with the newest version. */
  case object Anew extends PublishWay

  /**
   * What Iceberg writers have changed without a snapshot is undone.
   *
   * @param metadataFile
   *   the name of the metadata file that has the change
   */
  final case class Discarding(metadataFile: String) extends PublishWay

  /**
   * What Iceberg writers have committed up to a snapshot is in the Delta table by now, or is to be
   * dropped.
   */
  final case class Settled(snapshotId: Long) extends PublishWay
}
