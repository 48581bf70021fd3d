package org.icebergwritercompat.upgrade

import org.icebergwritercompat.contract.{FileColumns, Rule, StoredNode, TableState, Violation}
import org.icebergwritercompat.model.{
  DataAction,
  DataFile,
  Footer,
  Location,
  SupportedTypes,
  Unreadable,
  WriterCompat
}
import org.icebergwritercompat.rules.{ActionRules, FooterRules, SchemaRules}

/**
 * Why a data file cannot stay as it is.
 *
 * @param rule
 *   the id of the rule it would break
 * @param column
 *   the path of the column it is about; empty for the file as a whole
 * @param found
 *   what was found, in words that are the same for all files
 */
final case class FileReason(rule: String, column: Seq[String], found: String)

/**
 * Judges whether a live file of a table can stay as it is when the table gets the feature.
 *
 * @param from
 *   the table as it is
 * @param to
 *   the table as it is to be
 */
final class FileUpgrade(from: TableState, to: TableState) extends Serializable {

  // What a schema without mapping may be left with is not by what its columns are found.
  private val namesById: Map[Long, String] = {
    val named = for (node <- from.nodes; id <- node.id; name <- node.physicalName) yield id -> name
    if (from.isMapped) named.toMap else Map.empty
  }

  /**
   * What stands against keeping a file; nothing if it can stay.
   *
   * @param added
   *   as the log is to have it
   * @param footer
   *   what its footer says, if it has one
   */
  def reasons(
      added: DataAction.Added,
      size: Long,
      footer: Either[Unreadable, Footer]
  ): Seq[FileReason] = {
    val rowCount = added.statistics.flatMap(_.rowCount)
    val file = DataFile(added.path, added.partitionValues, size, rowCount, footer, namesById)
    val broken =
      (to.contract.rules.check(to, added) ++ to.contract.rules.check(to, file)).map(reason).toSeq
    if (footer.isLeft) broken
    else {
      val columns = FileColumns.of(from, file)
      (broken ++ foreignIds(broken) ++ misnamed(columns) ++ narrow(columns) ++
        unfilled(columns)).distinct
    }
  }

  /** Whether writing the file anew takes the reason away, and leaves the rows as they are. */
  def isMendable(reason: FileReason): Boolean =
    !FileUpgrade.unmendable(from.mappingMode)(reason.rule) && !isReadAsText(reason)

  // It would be written as null.
  private def isReadAsText(reason: FileReason): Boolean =
    reason.rule == ActionRules.NoMarkersOfNull.id &&
      from.nodesByPath.get(reason.column.toVector).forall(ActionRules.NoMarkersOfNull.isText)

  private def reason(violation: Violation): FileReason = {
    val column = violation.location match {
      case Location.Column(path, _, _) => path
      case _                           => Nil
    }
    FileReason(violation.rule.id, column, violation.parameters("found"))
  }

  // Whatever ids are in the files, they are none that this table gave out.
  private def foreignIds(broken: Seq[FileReason]): Option[FileReason] =
    Option.when(
      !from.isMapped && !broken.exists(_.rule == FooterRules.FieldsHaveTheirIds.id)
    ) {
      FileReason(
        FooterRules.FieldsHaveTheirIds.id,
        Nil,
        "it was written without column mapping, so the field ids in it are not the table's"
      )
    }

  // Until now its columns were found by name: the id must lead to the same.
  private def misnamed(columns: FileColumns): Seq[FileReason] =
    if (from.mappingMode != "name") Nil
    else
      columns.stored.collect {
        case StoredNode(node, stored, _)
            if node.isField && !node.physicalName.contains(stored.getName) =>
          FileReason(
            FooterRules.FieldsHaveTheirIds.id,
            node.path,
            s"column ${node.sqlPath} has its field id on ${stored.getName}, and is not read from there"
          )
      }

  // Delta stores a CHAR as it comes, and Spark fills it up with spaces when it reads.
  private def unfilled(columns: FileColumns): Seq[FileReason] =
    columns.stored
      .map(_.node)
      .filter(node => node.isField && SupportedTypes.filledUp(node.metadata).isDefined)
      .map { node =>
        FileReason(
          SchemaRules.TypesAreSupported.id,
          node.path,
          s"column ${node.sqlPath} is a CHAR, or holds one, and its values may lack the spaces they " +
            "are shown with"
        )
      }

  private def narrow(columns: FileColumns): Seq[FileReason] =
    columns.stored.map(_.node).filter(node => SupportedTypes.widensToInt(node.dataType)).map { node =>
      FileReason(
        SchemaRules.TypesAreSupported.id,
        node.path,
        s"column ${node.sqlPath} is a ${node.dataType.sql}, which is widened to INT"
      )
    }
}

object FileUpgrade {

  /** Whether writing files of the table anew takes violations of the rule away. */
  def mends(table: TableState, rule: Rule): Boolean = !unmendable(table.mappingMode)(rule.id)

  /** The rules that a file breaks whoever writes it anew from what Delta reads of it. */
  private def unmendable(mode: String): Set[String] = {
    val always: Set[Rule] =
      Set(
        FooterRules.FootersAreReadable,
        FooterRules.RequiredColumnsHaveNoNulls,
        // Nobody writes rows into the table by a path that somebody else chose.
        ActionRules.PathsAreWithinReach
      )
    // In this mode Delta reads what has no id as null.
    val byMode: Set[Rule] =
      if (mode == WriterCompat.IdMode) Set(FooterRules.FieldsHaveTheirIds) else Set.empty
    (always ++ byMode).map(_.id)
  }
}
