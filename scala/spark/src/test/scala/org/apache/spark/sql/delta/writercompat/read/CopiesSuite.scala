package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.delta.actions.{Action, AddFile}
import org.scalatest.funsuite.AnyFunSuite

class CopiesSuite extends AnyFunSuite {

  private val json =
    """{"add":{"path":"a%20b","partitionValues":{"p":null},"size":9,"modificationTime":8,""" +
      """"dataChange":true,"stats":"{}","tags":{"t":"v"},"deletionVector":{"storageType":"u",""" +
      """"pathOrInlineDv":"x","offset":1,"sizeInBytes":2,"cardinality":3},"baseRowId":4,""" +
      """"defaultRowCommitVersion":5,"clusteringProvider":"c"}}"""

  private val file = Action.fromJson(json).asInstanceOf[AddFile]

  test("a copy has every field of the original") {
    assert(Copies.of(file) == file && Copies.of(file).json == json)
  }

  test("a copy has what was changed, and all else of the original") {
    val copy = Copies.of(file, "stats" -> null, "dataChange" -> false, "size" -> 7L)
    val expected = json.replace("\"stats\":\"{}\",", "").replace("true", "false")
    assert(copy.json == expected.replace("\"size\":9", "\"size\":7"))
  }

  test("a field that is not there is no change") {
    intercept[IllegalArgumentException](Copies.of(file, "statistics" -> null))
  }

  test("a file of which little is said") {
    assert(
      Copies.addFile("f", Map("p" -> "1"), 3L).json ==
        """{"add":{"path":"f","partitionValues":{"p":"1"},"size":3,"modificationTime":0,""" +
        """"dataChange":true}}"""
    )
  }
}
