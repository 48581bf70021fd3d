package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.{Encoder, Encoders}

/** Files of the log as rows of a Dataset. */
private[writercompat] object AddFiles {

  /** Made once: making it takes longer than most that is done with it. */
  val encoder: Encoder[AddFile] = Encoders.product[AddFile]
}
