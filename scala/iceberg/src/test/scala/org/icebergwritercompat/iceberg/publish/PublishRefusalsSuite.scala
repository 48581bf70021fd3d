package org.icebergwritercompat.iceberg.publish

import org.apache.iceberg.exceptions.RuntimeIOException
import org.scalatest.funsuite.AnyFunSuite

import java.io.{FileNotFoundException, IOException}

class PublishRefusalsSuite extends AnyFunSuite {

  private def denied(message: String): Boolean =
    PublishRefusals.isDenied(
      new RuntimeIOException(new IOException(message), "Failed to create file: file:/t/m0.avro")
    )

  // As Hadoop says them to a user who owns neither the table nor its folder.
  test("a folder or file that may not be written is told from other failures") {
    assert(denied("Mkdirs failed to create file:/t/metadata (exists=false, cwd=file:/home)"))
    assert(denied("/t/metadata/v1.metadata.json (Permission denied)"))
    assert(!denied("Connection reset"))
    assert(!PublishRefusals.isDenied(new FileNotFoundException("/t/m0.avro does not exist")))
  }
}
