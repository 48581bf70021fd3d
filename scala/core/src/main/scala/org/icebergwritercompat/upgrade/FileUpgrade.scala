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
 * A reason why a data file cannot be kept.
 *
 * @param rule
 *   the id of the rule that it would break
 * @param column
 *   the path of the column; empty for the file as a whole
 * @param found
 *   what was found, without details of the file
 */
final case class FileReason(rule: String, column: Seq[String], found: String)

/**
 * Decides whether a live file can be kept when its table gets the feature.
 *
 * @param from
 *   the table before the upgrade
 * @param to
 *   the table after the upgrade
 */
final class FileUpgrade(from: TableState, to: TableState) extends Serializable {

  // Without mapping, columns are not found by ids that the schema may have from earlier.
  private val namesById: Map[Long, String] = {
    val named = for (node <- from.nodes; id <- node.id; name <- node.physicalName) yield id -> name
    if (from.isMapped) named.toMap else Map.empty
  }

  /**
   * The reasons why a file cannot be kept; empty if it can.
   *
   * @param added
   *   the file action after the upgrade
   * @param footer
   *   its footer, if it has one
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

  /** Whether a rewrite resolves the reason and keeps the rows. */
  def isMendable(reason: FileReason): Boolean =
    !FileUpgrade.keptByRewrite(from.mappingMode)(reason.rule) && !isReadAsText(reason)

  // A rewrite would write null.
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

  // The table has not assigned any ids that may be in the files.
  private def foreignIds(broken: Seq[FileReason]): Option[FileReason] =
    Option.when(
      !from.isMapped && !broken.exists(_.rule == FooterRules.FieldsHaveTheirIds.id)
    ) {
      FileReason(
        FooterRules.FieldsHaveTheirIds.id,
        Nil,
        "it was written without column mapping, so its field ids are not those of the table"
      )
    }

  // Before the upgrade, columns are found by name; the id must identify the same column.
  private def misnamed(columns: FileColumns): Seq[FileReason] =
    if (from.mappingMode != "name") Nil
    else
      columns.stored.collect {
        case StoredNode(node, stored, _)
            if node.isField && !node.physicalName.contains(stored.getName) =>
          FileReason(
            FooterRules.FieldsHaveTheirIds.id,
            node.path,
            s"the field id of column ${node.sqlPath} is on ${stored.getName}, from which it is " +
              "not read"
          )
      }

  // Delta stores a CHAR without padding, and Spark pads it with spaces on reading.
  private def unfilled(columns: FileColumns): Seq[FileReason] =
    columns.stored
      .map(_.node)
      .filter(node => node.isField && SupportedTypes.filledUp(node.metadata).isDefined)
      .map { node =>
        FileReason(
          SchemaRules.TypesAreSupported.id,
          node.path,
          s"column ${node.sqlPath} is or contains a CHAR, and its values may not be padded with " +
            "spaces"
        )
      }

  private def narrow(columns: FileColumns): Seq[FileReason] =
    columns.stored.map(_.node).filter(node => SupportedTypes.widensToInt(node.dataType)).map { node =>
      FileReason(
        SchemaRules.TypesAreSupported.id,
        node.path,
        s"column ${node.sqlPath} is a ${node.dataType.sql}, which becomes INT"
      )
    }
}

object FileUpgrade {

  /** Whether a rewrite of files of the table resolves violations of the rule. */
  def rewriteResolves(table: TableState, rule: Rule): Boolean =
    !keptByRewrite(table.mappingMode)(rule.id)

  /** The rules whose violations a rewrite does not resolve. */
  private def keptByRewrite(mode: String): Set[String] = {
    val always: Set[Rule] =
      Set(
        FooterRules.FootersAreReadable,
        FooterRules.RequiredColumnsHaveNoNulls,
        // The rows of a file outside of the table must not be written into the table.
        ActionRules.PathsAreWithinReach
      )
    // In id mode Delta reads a column without an id as null.
    val byMode: Set[Rule] =
      if (mode == WriterCompat.IdMode) Set(FooterRules.FieldsHaveTheirIds) else Set.empty
    (always ++ byMode).map(_.id)
  }
}
