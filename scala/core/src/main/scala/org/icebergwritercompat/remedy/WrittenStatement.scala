package org.icebergwritercompat.remedy

import org.antlr.v4.runtime.ParserRuleContext
import org.antlr.v4.runtime.tree.TerminalNode
import org.apache.spark.sql.catalyst.util.AttributeNameParser
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.remedy.Edit._
import org.icebergwritercompat.remedy.StatementTree._

/**
 * Makes changes to a statement as its user wrote it; the rest of its text stays to the letter.
 *
 * It knows CREATE TABLE, REPLACE TABLE, CREATE TABLE LIKE, ADD COLUMNS and SET TBLPROPERTIES.
 */
private[remedy] object WrittenStatement {

  /**
   * The statement with these changes; `None` if that cannot be done safely.
   *
   * @param declared
   *   the table that the statement leads to, for the columns that it does not list
   */
  def changed(written: Door.Sql, declared: Declared, changes: Seq[Change]): Option[String] = {
    val text = written.text
    parsed(text).flatMap { statement =>
      val edits = kind(statement) match {
        case Some(create @ Node("createTable" | "replaceTable")) =>
          ofCreate(written, create, declared.schema, changes)
        case Some(like @ Node("createTableLike")) => ofLike(text, like, declared, changes)
        case Some(add @ Node("addTableColumns"))  =>
          WrittenColumns.of(text, add, isNew = false, changes)
        case Some(set @ Node("setTableProperties")) =>
          Option.when(changes.forall(_.isInstanceOf[Change.Property]))(
            WrittenProperties.of(text, set, None, changes)
          )
        case _ => None
      }
      edits.map(applied(text, _))
    }
  }

  private val kinds =
    Set("createTable", "replaceTable", "createTableLike", "addTableColumns", "setTableProperties")

  private def kind(node: ParserRuleContext): Option[ParserRuleContext] =
    if (kinds(labelOf(node))) Some(node)
    else
      parts(node) match {
        case Seq(only) => kind(only)
        case _         => None
      }

  private def ofCreate(
      written: Door.Sql,
      create: ParserRuleContext,
      columns: StructType,
      changes: Seq[Change]
  ): Option[Seq[Edit]] = {
    val text = written.text
    val query = directly(create, "query").headOption
    val clauses = directly(create, "createTableClauses").headOption.filter(_.getChildCount > 0)
    val head = children(create).indexWhere {
      case part: ParserRuleContext => ruleOf(part) == "createTableClauses"
      case token: TerminalNode     => token.getText.equalsIgnoreCase("AS")
      case _                       => false
    }
    // What comes before the clauses ends here.
    val before = children(create).take(if (head < 0) create.getChildCount else head).last match {
      case part: ParserRuleContext => endOf(text, part)
      case token: TerminalNode     => endOf(text, token.getSymbol)
      case _                       => text.length
    }
    val end = clauses.fold(before)(endOf(text, _))
    val of =
      if (query.isDefined) ofQuery(text, query.get, columns, changes)
      else {
        WrittenColumns.of(text, create, isNew = true, changes)
      }
    for {
      ofColumns <- of
      ofLayout <- ofLayout(written, clauses, before, changes)
    } yield ofColumns ++ ofLayout ++ WrittenProperties.of(
      text,
      clauses.getOrElse(create),
      Some(end),
      changes
    )
  }

  // The rows of the query stay; what comes out of them has other types or names.
  private def ofQuery(
      text: String,
      query: ParserRuleContext,
      columns: StructType,
      changes: Seq[Change]
  ): Option[Seq[Edit]] = {
    val wanted = columns.map(field => Change.of(changes, Seq(field.name), field))
    val added = changes.collect { case Change.Added(name, dataType) =>
      s"CAST(NULL AS ${dataType.sql}) AS ${quoteIfNeeded(name)}"
    }
    if (columns.fields.sameElements(wanted) && added.isEmpty) Some(Nil)
    else {
      val selected = Remedy.selected(columns, StructType(wanted)) ++ added
      Some(
        Seq(
          replaced(text, query, s"SELECT ${selected.mkString(", ")} FROM (${textOf(text, query)})")
        )
      )
    }
  }

  private def ofLayout(
      written: Door.Sql,
      clauses: Option[ParserRuleContext],
      before: Int,
      changes: Seq[Change]
  ): Option[Seq[Edit]] = {
    val text = written.text
    val names = changes.collect { case Change.Name(Seq(was), is) => was -> is }
    val fields = clauses.toSeq.flatMap(below(_, "partitionFieldList")).headOption
    val isTyped = fields.exists(below(_, "colType").nonEmpty)
    val wanted = changes.reverseIterator.collectFirst { case Change.Partitioning(all) => all }
    def partitionedBy(all: Seq[String]) =
      if (all.isEmpty) "" else s"PARTITIONED BY (${all.map(quoteIfNeeded).mkString(", ")})"
    val clustered =
      clauses.toSeq.flatMap(below(_, "clusterBySpec")).flatMap(below(_, "multipartIdentifier"))
    val renamed = (clustered ++ fields.toSeq.flatMap(below(_, "multipartIdentifier"))).flatMap {
      node =>
        val path = AttributeNameParser.parseAttributeName(textOf(text, node))
        names.collectFirst {
          case (was, is) if was.equalsIgnoreCase(path.head) =>
            replaced(text, node, (is +: path.tail).map(quoteIfNeeded).mkString("."))
        }
    }
    def wordsBefore(list: ParserRuleContext): Edit = {
      // From the word PARTITIONED on, two words before the list.
      val siblings = children(list.getParent)
      val word = siblings(siblings.indexOf(list) - 2).asInstanceOf[TerminalNode].getSymbol
      Edit(text.offsetByCodePoints(0, word.getStartIndex), startOf(text, list), "CLUSTER BY ")
    }
    (fields, wanted) match {
      case (Some(list), None) if written.isClustered => Some(renamed :+ wordsBefore(list))
      case (Some(_), _) if isTyped && (wanted.isDefined || names.nonEmpty) => None
      case (_, None)                                                       => Some(renamed)
      case (Some(list), Some(all))                                         =>
        Some(Seq(Edit(wordsBefore(list).start, endOf(text, list), partitionedBy(all))))
      case (None, Some(Seq())) => Some(renamed)
      case (None, Some(all))   => Some(renamed :+ Edit(before, before, s" ${partitionedBy(all)}"))
    }
  }

  // The columns of the other table cannot be had with changes, so they are spelled out.
  private def ofLike(
      text: String,
      like: ParserRuleContext,
      declared: Declared,
      changes: Seq[Change]
  ): Option[Seq[Edit]] = {
    val ofList = WrittenProperties.of(text, like, Some(endOf(text, like)), changes)
    if (changes.forall(_.isInstanceOf[Change.Property])) Some(ofList)
    else {
      val word = children(like).collectFirst {
        case token: TerminalNode if token.getText.equalsIgnoreCase("LIKE") => token.getSymbol
      }
      val hasProvider = directly(like, "tableProvider").nonEmpty
      for (like_ <- word; source <- directly(like, "tableIdentifier").lastOption) yield {
        val start = text.offsetByCodePoints(0, like_.getStartIndex)
        val columns = declared.columns(changes)
        val layout = Quoting.partitionedBy(declared.partitions(changes))
        val provider = if (hasProvider) "" else " USING delta"
        val place =
          directly(like, "tableProvider").lastOption.fold(endOf(text, source))(endOf(text, _))
        val list = Edit(start, endOf(text, source), s"($columns)$provider")
        ofList ++ Seq(list) ++ Option.when(layout.nonEmpty)(Edit(place, place, layout))
      }
    }
  }
}
