package org.icebergwritercompat.iceberg.metadata

import org.scalatest.funsuite.AnyFunSuite

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.GZIPOutputStream
import scala.util.Using

/** Names of metadata files, as Iceberg's library has written them. */
class MetadataFileNamesSuite extends AnyFunSuite {

  private val uuid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

  for (ending <- Seq(".metadata.json", ".gz.metadata.json", ".metadata.json.gz")) {

    test(s"v12$ending is version 12 of a path table, 00012-<uuid>$ending of one in a catalog") {
      val numbers = Seq(s"v12$ending", s"00012-$uuid$ending").map {
        case MetadataFileNames.OfPath(number)    => "path" -> number
        case MetadataFileNames.OfCatalog(number) => "catalog" -> number
        case other                               => "neither" -> other
      }
      assert(numbers == Seq("path" -> "12", "catalog" -> "00012"))
      assert(MetadataFileNames.Temporary.matches(s"$uuid$ending"))
    }

    test(s"what is in a file that ends with $ending can be read") {
      val bytes = new ByteArrayOutputStream
      if (!ending.contains("gz")) bytes.write("{}".getBytes(UTF_8))
      else Using.resource(new GZIPOutputStream(bytes))(_.write("{}".getBytes(UTF_8)))
      val content = new ByteArrayInputStream(bytes.toByteArray)
      val text = MetadataFileNames.uncompressed(s"v1$ending", content).readAllBytes
      assert(new String(text, UTF_8) == "{}")
    }
  }

  for (
    other <- Seq(
      "v.metadata.json",
      "v1.metadata.json.crc",
      "v1xmetadata.json",
      "v1.metadata.jsonx",
      "xv1.metadata.json",
      "12.metadata.json",
      "12-x.metadata.json",
      s"12-$uuid.json",
      "version-hint.text"
    )
  ) test(s"$other is no metadata") {
    assert(
      !MetadataFileNames.OfPath.matches(other) && !MetadataFileNames.OfCatalog.matches(other) &&
        !MetadataFileNames.Temporary.matches(other)
    )
  }
}
