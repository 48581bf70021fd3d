package org.icebergwritercompat.docs

import org.icebergwritercompat.contracts.V1
import org.scalatest.funsuite.AnyFunSuite

import java.nio.file.Files

class RulesPageSuite extends AnyFunSuite {

  private lazy val text = RulesPage.text

  test("docs/rules.md is what the rules and their examples make of it") {
    assert(RulesPage.isCurrent, "docs/rules.md is stale: run 'make docs'")
  }

  test("every link within the page has its anchor, once") {
    val links = "\\(#([^)]+)\\)".r.findAllMatchIn(text).map(_.group(1)).toSeq
    val anchors = "<a id=\"([^\"]+)\">".r.findAllMatchIn(text).map(_.group(1)).toSeq
    assert(links == anchors)
    assert(anchors.distinct.size == V1.rules.all.size)
  }

  test("every link to a file leads to one") {
    val files = "\\]\\((\\.\\./[^)]+)\\)".r.findAllMatchIn(text).map(_.group(1)).toSet
    assert(files.size > 10)
    files.foreach(file => assert(Files.exists(RulesPage.path.getParent.resolve(file)), file))
  }
}
