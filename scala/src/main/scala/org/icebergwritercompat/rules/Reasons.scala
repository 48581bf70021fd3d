package org.icebergwritercompat.rules

/** Why each requirement matters: what goes wrong where it is broken. */
object Reasons {

  private val unknownToReaders =
    "A reader that does not know the version or the list opens the table by other rules, or not at all."

  private val byId: Map[String, String] = Map(
    "A1" -> unknownToReaders,
    "A2" -> unknownToReaders,
    "A3" -> "A writer that does not know the feature would not refuse the table, and could break it.",
    "A4" -> "Engines refuse a protocol whose lists contradict each other.",
    "A5" -> "Nobody can tell whether an Iceberg writer keeps what an unknown feature asks for.",
    "A6" -> "An Iceberg reader or writer would lose what the feature stores beside the rows.",
    "A7" -> unknownToReaders,
    "A8" -> "A feature without the one it builds on does not work.",
    "A9" -> "Older versions of the table may still need the feature to be read.",
    "B1" -> "Without the switch no writer keeps the rules, so nothing of this is promised.",
    "B1+" -> "Iceberg writers may rely on the rules until the feature has left the protocol.",
    "B2" -> "Without it files may lack the ids and types that Iceberg needs.",
    "B3" -> "By name, a file that an Iceberg engine wrote under other names is read as nulls.",
    "B4" -> "A new column could be given the id of an older one, and show its values.",
    "B4+" -> "The id of a dropped column could be given out again, and bring its old values back.",
    "B5" -> "Two versions of IcebergCompat contradict each other on lists, maps and names.",
    "B5v3" -> "Two versions of IcebergCompat contradict each other, and version 3 is for Iceberg v3.",
    "B6" -> "Iceberg readers of format version 2 would show rows that were deleted.",
    "B7" -> "Iceberg writers write no change data, so readers of the feed would miss their changes.",
    "B7+" -> "Iceberg has no place for the file, so its changes would be known to Delta readers only.",
    "B8" -> "Iceberg writers would not check the constraint, and rows could break it.",
    "B9" -> "Iceberg writers drop the ids of rows, so they would not stay with their rows.",
    "B10" -> "Engines would disagree on which of the two versions counts.",
    "B11" -> "Rows would leave a table that promises to keep them.",
    "B12" -> "An Iceberg reader would take the files for Parquet and fail.",
    "C1" -> "Iceberg finds a column by its id alone, so one without an id is not there.",
    "C2" -> "Writers that derive the name from the id would write the column under another name.",
    "C3" -> "Iceberg knows a column by its id alone, so two of one id cannot be told apart.",
    "C4" -> "Rows of a dropped column would show up in the new one.",
    "C5" -> "Iceberg finds the elements, keys and values by their ids, so the list or map reads as empty or fails.",
    "C6" -> "Iceberg would not find the elements, keys or values of older files any more.",
    "C7" -> "Iceberg v2 has no such type, so its engines can neither read nor write the column.",
    "C8" -> "Delta engines refuse the column unless the protocol names the feature.",
    "C9" -> "Iceberg writers would not check the invariant, and rows could break it.",
    "C10" -> "Iceberg writers would not give out the next numbers, so numbers could repeat.",
    "C11" -> "Iceberg writers would not compute the column, so its values could contradict the rows.",
    "C12" -> "Iceberg v2 has no defaults, so its writers would write null instead.",
    "C13" -> "Iceberg cannot read files that were written before such a change.",
    "C14" -> "Iceberg cannot read older files, or older snapshots, with the new type.",
    "C14n" -> "Older files may hold nulls, which readers are then promised not to find.",
    "C14p" -> "Iceberg does not find an id below another parent, so older values are lost.",
    "C14r" -> "Older files lack the column, and readers are promised that it has no nulls.",
    "C15" -> "Files of both layouts would be live, and readers would prune by the wrong one.",
    "C16" -> "Engines refuse a table that is laid out in two ways.",
    "C17" -> "Iceberg compares map keys as a whole, so older entries would no longer be found.",
    "C18" -> "Iceberg partitions by top-level values only, so no reader could prune by it.",
    "C18d" -> "Delta Spark 4.4.0 refuses every write to such a table.",
    "D1" -> "Iceberg's metadata needs the row count of every file.",
    "D2" -> "Readers find the partition of a file by these keys, so its rows would be skipped or misplaced.",
    "D3" -> "Readers would not find the bounds of a column, or take those of another.",
    "D4" -> "A time without a zone means another instant in each engine, so rows would be skipped.",
    "D5" -> "Iceberg readers of format version 2 would show rows that were deleted.",
    "D6" -> "Iceberg would count the rows of the file twice.",
    "D8" -> "Another engine would not know by which columns to cluster.",
    "E1" -> "Iceberg finds a column in a file by its id alone, so without it the values read as null.",
    "N1" -> "Iceberg's index of names holds one column by each name, and fails on two.",
    "N2" -> "A query for the column would get Iceberg's own metadata instead.",
    "N2+" -> "A query for the column would get Iceberg's own metadata instead.",
    "N3" -> "Parquet cannot store a struct without fields, so Iceberg cannot write the table."
  )

  /** What goes wrong where `rule` is broken; a test sees to it that each rule has this. */
  def of(rule: Rule): Option[String] = byId.get(rule.id)
}
