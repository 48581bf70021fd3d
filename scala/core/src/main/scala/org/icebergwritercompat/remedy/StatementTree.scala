package org.icebergwritercompat.remedy

import org.antlr.v4.runtime._
import org.antlr.v4.runtime.misc.{Interval, ParseCancellationException}
import org.antlr.v4.runtime.tree.ParseTree
import org.apache.spark.sql.catalyst.parser.{ParseException, SqlBaseLexer, SqlBaseParser}

/**
 * The syntax tree of a statement of SQL, from Spark's own parser.
 *
 * Its parts are found by the names of the grammar, which are the same in all Spark lines, where the
 * classes of the parser are not.
 */
private[remedy] object StatementTree {

  /** Matches a node by its label. */
  object Node {
    def unapply(node: ParserRuleContext): Some[String] = Some(labelOf(node))
  }

  /** The label of the alternative in the grammar, or the name of the rule. */
  def labelOf(node: ParserRuleContext): String = {
    val name = node.getClass.getSimpleName.stripSuffix("Context")
    name.take(1).toLowerCase(java.util.Locale.ROOT) + name.drop(1)
  }

  /** The name of the rule in the grammar. */
  def ruleOf(node: ParserRuleContext): String = SqlBaseParser.ruleNames(node.getRuleIndex)

  /** All nodes directly below a node, words included. */
  def children(node: ParseTree): Seq[ParseTree] =
    (0 until node.getChildCount).map(node.getChild)

  /** The nodes directly below a node that are no words. */
  def parts(node: ParseTree): Seq[ParserRuleContext] =
    children(node).collect { case part: ParserRuleContext => part }

  /** The nearest nodes of a rule below a node. */
  def below(node: ParseTree, rule: String): Seq[ParserRuleContext] =
    parts(node).flatMap(part => if (ruleOf(part) == rule) Seq(part) else below(part, rule))

  /** The nodes of a rule directly below a node. */
  def directly(node: ParseTree, rule: String): Seq[ParserRuleContext] =
    parts(node).filter(ruleOf(_) == rule)

  /** The tree of a statement; `None` if Spark's grammar does not know it, as for Delta's own. */
  def parsed(text: String): Option[ParserRuleContext] =
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

  // Keywords are in capitals in the grammar.
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
}
