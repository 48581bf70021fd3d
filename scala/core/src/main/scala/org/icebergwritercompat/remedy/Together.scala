package org.icebergwritercompat.remedy

import org.apache.spark.sql.types.StructType

/** Puts the remedies of several faults of one statement together. */
object Together {

  /**
   * What mends all faults of one statement at once.
   *
   * @param remedies
   *   of the faults, those of the first one first
   * @param door
   *   how the statement was given, if that is known
   */
  def of(remedies: Seq[Remedy], door: Option[Door]): Remedy = remedies match {
    case (create: Remedy.Create) +: _ =>
      val changes = remedies.collect { case other: Remedy.Create => other.changes }.flatten.distinct
      // Without the statement, calls to change are better than a statement that lacks something.
      create.copy(changes = changes, door = door.orElse(Some(Door.Writer)))
    case first +: _ =>
      door match {
        case Some(sql: Door.Sql) if first.changes.nonEmpty => again(sql, remedies).getOrElse(first)
        case _                                             => first
      }
    case _ => Remedy.Nothing
  }

  /**
   * What mends all faults that a guarded table has already. While one of them is there, every
   * change of the table is refused, so that they cannot be mended one by one.
   *
   * @param copy
   *   what copies the rows into a table without any of them
   */
  def standing(remedies: Seq[Remedy], copy: => Remedy): Remedy = remedies.distinct match {
    case Seq(only) => only
    case all       =>
      // A copy would not have the values that these are about.
      val values = all.collectFirst { case lost @ (_: Remedy.History | _: Remedy.UpdateRows) =>
        lost
      }
      values.orElse(properties(all)).getOrElse(copy)
  }

  private def properties(remedies: Seq[Remedy]): Option[Remedy] = {
    val all = remedies.collect { case set: Remedy.SetProperties => set }
    Option.when(all.size == remedies.size && all.map(_.table).distinct.size == 1) {
      Remedy.SetProperties(
        all.head.table,
        all.flatMap(_.properties).distinct,
        all.flatMap(_.without).distinct
      )
    }
  }

  /** The statement with all changes, if a part of the statement is the fault. */
  private def again(sql: Door.Sql, remedies: Seq[Remedy]): Option[Remedy] = {
    val changes = remedies.flatMap(_.changes).distinct
    val nothing = Declared("", replacing = false, new StructType, Nil, "")
    WrittenStatement.changed(sql, nothing, changes).filter(_ != sql.text).map { statement =>
      val features = remedies.collect { case add: Remedy.AddColumn =>
        add.features.map(add.table -> _)
      }
      val before = features.flatten.distinct.map { case (table, feature) =>
        Remedy.SetProperty(table, s"delta.feature.$feature", "supported")
      }
      Remedy.Again(changes, statement, before)
    }
  }
}
