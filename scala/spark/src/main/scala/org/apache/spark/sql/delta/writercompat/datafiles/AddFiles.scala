package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.{Encoder, Encoders}

/** Files of the log as rows of a Dataset. */
private[writercompat] object AddFiles {

  /** Made once, because making it takes longer than most uses of it. */
  val encoder: Encoder[AddFile] = Encoders.product[AddFile]
}
