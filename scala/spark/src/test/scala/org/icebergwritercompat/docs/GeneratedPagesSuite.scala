package org.icebergwritercompat.docs

import org.icebergwritercompat.contracts.V1
import org.scalatest.funsuite.AnyFunSuite

import java.nio.file.Files
import scala.jdk.CollectionConverters._
import scala.util.Using

class GeneratedPagesSuite extends AnyFunSuite {

  private lazy val text = RulesPage.text

  GeneratedPages.all.foreach { page =>
    test(s"docs/${page.path.getFileName} is what the code makes of it") {
      assert(page.isCurrent, s"${page.path} is not up to date: run '${GeneratedPages.command}'")
    }
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

  test("docs/settings.md has every setting and property in the code, and no other") {
    val sources = RulesPage.path.getParent.getParent.resolve("scala")
    val texts = Using.resource(Files.walk(sources)) { files =>
      files.iterator.asScala
        .filter(file => file.toString.contains("/src/main/") && file.toString.endsWith(".scala"))
        .map(Files.readString)
        .toSeq
    }
    val inCode = texts.flatMap(
      "\"((?:spark\\.)?icebergWriterCompat\\.(?!snapshot)[a-z][A-Za-z.]*)\"".r
        .findAllMatchIn(_)
        .map(_.group(1))
    )
    val onPage = (SettingsPage.session ++ SettingsPage.table).map(_.key)
    assert(inCode.toSet == onPage.toSet)
  }
}
