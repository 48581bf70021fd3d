package org.icebergwritercompat.remedy

import org.antlr.v4.runtime._
import org.antlr.v4.runtime.misc.{Interval, ParseCancellationException}
import org.antlr.v4.runtime.tree.{ParseTree, TerminalNode}
import org.apache.spark.sql.catalyst.parser.{
  DataTypeParser,
  ParseException,
  SqlBaseLexer,
  SqlBaseParser
}
import org.apache.spark.sql.catalyst.util.AttributeNameParser
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.types._
import org.icebergwritercompat.remedy.Remedy.{Declared, Door}

/**
 * Applies changes to the text of a statement that a user wrote; the rest of the text is not
 * changed.
 *
 * Supports CREATE, REPLACE, ADD COLUMNS and SET TBLPROPERTIES. The parts of a statement are found
 * by the rule names of Spark's grammar, which are the same in all Spark lines, unlike the classes
 * of its parser.
 */
private[remedy] object WrittenStatement {

  /**
   * The statement with these changes; `None` if they cannot be applied safely.
   *
   * @param declared
   *   the table that the statement would create, for the columns that it does not list
   */
  def changed(written: Door.Sql, declared: Declared, changes: Seq[Change]): Option[String] = {
    val text = written.text
    parsed(text).flatMap { statement =>
      val edits = kind(statement) match {
        case Some(create @ Node("createTable" | "replaceTable")) =>
          ofCreate(written, create, declared.schema, changes)
        case Some(like @ Node("createTableLike"))   => ofLike(text, like, declared, changes)
        case Some(add @ Node("addTableColumns"))    => ofColumns(text, add, isNew = false, changes)
        case Some(set @ Node("setTableProperties")) =>
          Option.when(changes.forall(_.isInstanceOf[Change.Property]))(
            ofProperties(text, set, None, changes)
          )
        case _ => None
      }
      edits.map(applied(text, _))
    }
  }

  // --- The tree -----------------------------------------------------------------------------------

  private object Node {
    def unapply(node: ParserRuleContext): Some[String] = Some(labelOf(node))
  }

  /** The label of the alternative in the grammar, or the name of the rule. */
  private def labelOf(node: ParserRuleContext): String = {
    val name = node.getClass.getSimpleName.stripSuffix("Context")
    name.take(1).toLowerCase(java.util.Locale.ROOT) + name.drop(1)
  }

  private def ruleOf(node: ParserRuleContext): String = SqlBaseParser.ruleNames(node.getRuleIndex)

  private def children(node: ParseTree): Seq[ParseTree] =
    (0 until node.getChildCount).map(node.getChild)

  private def parts(node: ParseTree): Seq[ParserRuleContext] =
    children(node).collect { case part: ParserRuleContext => part }

  /** The nearest nodes of a rule below a node. */
  private def below(node: ParseTree, rule: String): Seq[ParserRuleContext] =
    parts(node).flatMap(part => if (ruleOf(part) == rule) Seq(part) else below(part, rule))

  private def directly(node: ParseTree, rule: String): Seq[ParserRuleContext] =
    parts(node).filter(ruleOf(_) == rule)

  private val kinds =
    Set("createTable", "replaceTable", "createTableLike", "addTableColumns", "setTableProperties")

  private def kind(node: ParserRuleContext): Option[ParserRuleContext] =
    if (kinds(labelOf(node))) Some(node)
    else
      parts(node) match {
        case Seq(only) => kind(only)
        case _         => None
      }

  private def parsed(text: String): Option[ParserRuleContext] =
    try {
      val lexer = new SqlBaseLexer(new UpperCase(CharStreams.fromString(text)))
      lexer.removeErrorListeners()
      val parser = new SqlBaseParser(new CommonTokenStream(lexer))
      parser.removeErrorListeners()
      parser.setErrorHandler(new BailErrorStrategy)
      Some(parser.singleStatement())
    } catch {
      case _: ParseCancellationException | _: RecognitionException => None
      case _: ParseException                                       => None
    }

  // Keywords are in upper case in the grammar.
  private final class UpperCase(text: CodePointCharStream) extends CharStream {
    override def consume(): Unit = text.consume()
    override def getSourceName: String = text.getSourceName
    override def index(): Int = text.index
    override def mark(): Int = text.mark
    override def release(marker: Int): Unit = text.release(marker)
    override def seek(where: Int): Unit = text.seek(where)
    override def size(): Int = text.size
    override def getText(interval: Interval): String = text.getText(interval)
    override def LA(i: Int): Int = {
      val character = text.LA(i)
      if (character <= 0) character else Character.toUpperCase(character)
    }
  }

  // --- The edits ----------------------------------------------------------------------------------

  /** Replaces the range from `start` (inclusive) to `end` (exclusive) by `text`. */
  private final case class Edit(start: Int, end: Int, text: String)

  private def applied(text: String, edits: Seq[Edit]): String =
    edits.distinct.sortBy(edit => (-edit.start, -edit.end)).foldLeft(text) { (all, edit) =>
      all.substring(0, edit.start) + edit.text + all.substring(edit.end)
    }

  // The parser counts code points.
  private def startOf(text: String, node: ParserRuleContext): Int =
    text.offsetByCodePoints(0, node.getStart.getStartIndex)

  private def endOf(text: String, token: Token): Int =
    text.offsetByCodePoints(0, token.getStopIndex + 1)

  private def endOf(text: String, node: ParserRuleContext): Int = endOf(text, node.getStop)

  private def textOf(text: String, node: ParserRuleContext): String =
    text.substring(startOf(text, node), endOf(text, node))

  private def replaced(text: String, node: ParserRuleContext, by: String): Edit =
    Edit(startOf(text, node), endOf(text, node), by)

  /** Removes a node and the space before it. */
  private def removed(text: String, node: ParserRuleContext): Edit = {
    val start = startOf(text, node)
    val space = text.substring(0, start).reverseIterator.takeWhile(_.isWhitespace).size
    Edit(start - space, endOf(text, node), "")
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
    // The position where the clauses begin.
    val before = children(create).take(if (head < 0) create.getChildCount else head).last match {
      case part: ParserRuleContext => endOf(text, part)
      case token: TerminalNode     => endOf(text, token.getSymbol)
      case _                       => text.length
    }
    val end = clauses.fold(before)(endOf(text, _))
    val of =
      if (query.isDefined) ofQuery(text, query.get, columns, changes)
      else {
        ofColumns(text, create, isNew = true, changes)
      }
    for {
      ofColumns <- of
      ofLayout <- ofLayout(written, clauses, before, changes)
    } yield ofColumns ++ ofLayout ++ ofProperties(
      text,
      clauses.getOrElse(create),
      Some(end),
      changes
    )
  }

  // The query is kept, and its columns get other types or names.
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

  private def ofColumns(
      text: String,
      statement: ParserRuleContext,
      isNew: Boolean,
      changes: Seq[Change]
  ): Option[Seq[Edit]] = {
    val definitions =
      below(statement, "colDefinition") ++ below(statement, "qualifiedColTypeWithPosition")
    val ofEach = definitions.flatMap(ofDefinition(text, _, changes))
    val added = changes.collect { case Change.Added(name, dataType) =>
      s", ${quoteIfNeeded(name)} ${dataType.sql}"
    }
    val missing = changes.exists {
      case _: Change.Type | _: Change.Name | _: Change.Plain | _: Change.Nullable |
          _: Change.Added =>
        definitions.isEmpty
      case _: Change.Partitioning | _: Change.Property => !isNew
    }
    Option.unless(missing) {
      if (added.isEmpty) ofEach
      else {
        val end = endOf(text, definitions.last)
        ofEach :+ Edit(end, end, added.mkString)
      }
    }
  }

  private def ofDefinition(
      text: String,
      definition: ParserRuleContext,
      changes: Seq[Change]
  ): Seq[Edit] = {
    val (name, dataType) = nameAndType(definition)
    val path = AttributeNameParser.parseAttributeName(textOf(text, name))
    val found = DataTypeParser.parseDataType(textOf(text, dataType))
    val wanted = Change.of(changes, path, StructField(path.last, found))
    val named =
      if (wanted.name == path.last) Nil
      else
        Seq(replaced(text, name, (path.init :+ wanted.name).map(quoteIfNeeded).mkString(".")))
    def asked(change: Change => Option[Seq[String]]) =
      changes.flatMap(change(_)).exists(Change.same(_, path))
    val isPlain = asked { case Change.Plain(at) => Some(at); case _ => None }
    val isNullable = asked { case Change.Nullable(at) => Some(at); case _ => None }
    val options = parts(definition).filter(part => ruleOf(part).startsWith("colDefinition"))
    val gone = options.filter { option =>
      parts(option).map(ruleOf).exists {
        case "defaultExpression" | "generationExpression" => isPlain
        case "errorCapturingNot"                          => isNullable
        case _                                            => false
      }
    }
    named ++ ofType(text, dataType, found, wanted.dataType) ++ gone.map(removed(text, _))
  }

  /** The name and the type at the start of a column or field definition. */
  private def nameAndType(node: ParserRuleContext): (ParserRuleContext, ParserRuleContext) =
    (parts(node).head, directly(node, "dataType").head)

  /** The edits that change the text of a type to another type; comments in it are kept. */
  private def ofType(
      text: String,
      node: ParserRuleContext,
      found: DataType,
      wanted: DataType
  ): Seq[Edit] = {
    val inner = directly(node, "dataType")
    (found, wanted) match {
      case (a, b) if a == b                                      => Nil
      case (ArrayType(a, _), ArrayType(b, _)) if inner.size == 1 =>
        ofType(text, inner.head, a, b)
      case (MapType(k, v, _), MapType(l, w, _)) if inner.size == 2 =>
        ofType(text, inner.head, k, l) ++ ofType(text, inner.last, v, w)
      case (a: StructType, b: StructType) if a.length == b.length && a.nonEmpty =>
        below(node, "complexColType").zip(a.zip(b)).flatMap { case (field, (was, is)) =>
          val (name, dataType) = nameAndType(field)
          Option
            .when(was.name != is.name)(replaced(text, name, quoteIfNeeded(is.name)))
            .toSeq ++ ofType(text, dataType, was.dataType, is.dataType)
        }
      case _ => Seq(replaced(text, node, wanted.sql))
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
      // Includes the two words PARTITIONED BY before the list.
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

  /**
   * @param end
   *   where a list of properties can be inserted; `None` if the statement always has one
   */
  private def ofProperties(
      text: String,
      node: ParserRuleContext,
      end: Option[Int],
      changes: Seq[Change]
  ): Seq[Edit] = {
    val wanted = changes.collect { case Change.Property(key, value) => key -> value }
    val options = directly(node, "expressionPropertyList").headOption
    val list = directly(node, "propertyList").headOption
    def entries(all: Option[ParserRuleContext]) = all.toSeq
      .flatMap(parts)
      .map(entry => keyIn(entry) -> textOf(text, entry))
    def set(key: String, value: String) = s"${quoted(key)} = ${quoted(value)}"
    def valueOf(key: String) = wanted.find(_._1.equalsIgnoreCase(key))
    def kept(all: Seq[(String, String)]) = all.flatMap { case (key, entry) =>
      valueOf(key).fold(Option(entry))(_._2.map(set(key, _)))
    }
    if (wanted.isEmpty) Nil
    else {
      val known = (entries(options) ++ entries(list)).map(_._1)
      val more = wanted.collect {
        case (key, Some(value)) if !known.exists(_.equalsIgnoreCase(key)) => set(key, value)
      }
      def rebuilt(old: ParserRuleContext, entries: Seq[String]): Edit =
        if (entries.nonEmpty) replaced(text, old, entries.mkString("(", ", ", ")"))
        else {
          val siblings = children(old.getParent)
          val word = siblings(siblings.indexOf(old) - 1).asInstanceOf[TerminalNode].getSymbol
          Edit(text.offsetByCodePoints(0, word.getStartIndex), endOf(text, old), "")
        }
      val ofOptions = options
        .filter(_ => entries(options).exists { case (key, _) => valueOf(key).isDefined })
        .map(old => rebuilt(old, kept(entries(options))))
      val ofList = (list, end) match {
        case (Some(old), _)                    => Some(rebuilt(old, kept(entries(list)) ++ more))
        case (None, Some(at)) if more.nonEmpty =>
          Some(Edit(at, at, more.mkString(" TBLPROPERTIES (", ", ", ")")))
        case _ => None
      }
      (ofOptions ++ ofList).toSeq
    }
  }

  private def keyIn(entry: ParserRuleContext): String = {
    val key = parts(entry).head.getText
    if (key.length > 1 && "'\"".contains(key.head)) key.substring(1, key.length - 1) else key
  }

  private def quoted(literal: String): String = Remedy.literal(literal)

  // CREATE TABLE LIKE cannot change columns, so they are listed.
  private def ofLike(
      text: String,
      like: ParserRuleContext,
      declared: Declared,
      changes: Seq[Change]
  ): Option[Seq[Edit]] = {
    val ofList = ofProperties(text, like, Some(endOf(text, like)), changes)
    if (changes.forall(_.isInstanceOf[Change.Property])) Some(ofList)
    else {
      val word = children(like).collectFirst {
        case token: TerminalNode if token.getText.equalsIgnoreCase("LIKE") => token.getSymbol
      }
      val hasProvider = directly(like, "tableProvider").nonEmpty
      for (like_ <- word; source <- directly(like, "tableIdentifier").lastOption) yield {
        val start = text.offsetByCodePoints(0, like_.getStartIndex)
        val columns = Remedy.columnsOf(declared, changes)
        val layout = Remedy.partitioning(Remedy.partitionsOf(declared, changes))
        val provider = if (hasProvider) "" else " USING delta"
        val place =
          directly(like, "tableProvider").lastOption.fold(endOf(text, source))(endOf(text, _))
        val list = Edit(start, endOf(text, source), s"($columns)$provider")
        ofList ++ Seq(list) ++ Option.when(layout.nonEmpty)(Edit(place, place, layout))
      }
    }
  }
}
