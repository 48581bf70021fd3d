package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{Lifecycle, Violation}
import org.icebergwritercompat.model.{Condition, Location}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.FileRules._

class FileRulesSuite extends RuleSuite {

  acceptsCompliantTables(LiveFilesWereWrittenById)

  for (shape <- CompliantTable.shapes) {
    val table = CompliantTable.of(shape.schema).copy(lifecycle = Lifecycle.Enabling)

    test(s"E1 accepts a history in which every file has ids, with ${shape.name}") {
      assert(LiveFilesWereWrittenById.check(table, Provenance(0, None)) == Nil)
    }

    test(s"E1 refuses files of unknown making, with ${shape.name}") {
      val found = LiveFilesWereWrittenById.check(table, Provenance(3, Some("part-1.parquet")))
      assert(
        found == Seq(
          Violation(
            LiveFilesWereWrittenById,
            Condition.UnprovenDataFiles,
            Location.Files(3, "part-1.parquet"),
            Remedy.CopyInto(
              "db.t_iceberg",
              Nil,
              "db.t",
              Nil,
              Seq("delta.enableIcebergWriterCompatV1" -> "true")
            ),
            Map(
              "count" -> "3",
              "example" -> "part-1.parquet",
              "property" -> "delta.enableIcebergCompatV2"
            )
          )
        )
      )
    }
  }
}
