package org.icebergwritercompat.remedy

import org.antlr.v4.runtime.ParserRuleContext
import org.apache.spark.sql.catalyst.parser.DataTypeParser
import org.apache.spark.sql.catalyst.util.AttributeNameParser
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.types._
import org.icebergwritercompat.remedy.Edit._
import org.icebergwritercompat.remedy.StatementTree._

/** Changes the columns that a statement lists: their names, types, defaults and nullability. */
private[remedy] object WrittenColumns {

  /**
   * The edits of the columns that a statement lists; `None` if it does not list what is to change.
   *
   * @param isNew
   *   whether the statement creates a table
   */
  def of(
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

  /** The two parts that each definition of a column or field begins with. */
  private def nameAndType(node: ParserRuleContext): (ParserRuleContext, ParserRuleContext) =
    (parts(node).head, directly(node, "dataType").head)

  /** The edits that make the text of a type that of another; comments in it stay. */
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
}
