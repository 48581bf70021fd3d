package org.icebergwritercompat.docs

import org.apache.spark.sql.delta.writercompat.publish.PublishHook
import org.icebergwritercompat.contract.{Contract, Profile}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.iceberg.metadata.RowLevelDeletes
import org.icebergwritercompat.iceberg.target.{CatalogSettings, StoreSchemes}
import org.icebergwritercompat.model.WriterCompat

/** The page `docs/settings.md`, made from the keys and values in the code. */
object SettingsPage extends GeneratedPage("settings.md") {

  /** A setting or property that this project reads. */
  final case class Entry(key: String, values: String, default: String, effect: String)

  private val profiles = Profile.all.map(_.name)

  private val schemes = StoreSchemes.ofS3.map(scheme => s"`$scheme`").mkString(", ")

  /** The settings of a session. */
  val session: Seq[Entry] = Seq(
    Entry(
      Profile.Conf,
      Profile.all.map(one => s"`${one.name}` (${one.statement})").mkString(", "),
      s"`${profiles.head}`",
      "which text of the RFC the rules follow; what the second one accepts in addition is in the " +
        "table of features below"
    ),
    Entry(
      PublishHook.AsyncConf,
      "`true`, `false`",
      "`false`",
      "commits of a table that publishes itself do not wait until they are published " +
        "([Publishing](publishing.md#after-each-commit))"
    ),
    Entry(
      StoreSchemes.Setting,
      schemes,
      "that of the table's path",
      "the scheme of S3 in published locations ([Object stores](object-stores.md#one-bucket-three-schemes))"
    ),
    Entry(
      "spark.icebergWriterCompat.exclusive.",
      "`create`, `rename`",
      "not set: such a file system is refused",
      "followed by a scheme: how that file system keeps two publishers apart " +
        "([Object stores](object-stores.md#how-concurrent-publishers-are-separated))"
    ),
    Entry(
      CatalogSettings.Prefix,
      "a property of Iceberg's catalogs",
      "not set: tables are published in their folders",
      "followed by the name of the property, such as `type`, `uri`, `warehouse`; `name` is the name of " +
        "a JDBC catalog ([Publishing](publishing.md#in-a-catalog))"
    )
  )

  /** The properties of a table, but for those of Delta Lake. */
  val table: Seq[Entry] = Seq(
    Entry(
      WriterCompat.Publish,
      "`true`, `false`",
      "`false`",
      "every commit is published as Iceberg ([Publishing](publishing.md#after-each-commit))"
    ),
    Entry(
      WriterCompat.PublishTable,
      s"`namespace.name`, `${WriterCompat.NoName}`",
      "the name of the table",
      s"the name in the Iceberg catalog; `${WriterCompat.NoName}` publishes the table in its folder only " +
        "([Publishing](publishing.md#in-a-catalog))"
    ),
    Entry(
      WriterCompat.PublishScheme,
      schemes,
      s"`${StoreSchemes.Setting}`",
      "the same as the setting of the session, which it overrides"
    )
  )

  override def text: String = Seq(
    s"""# Settings and properties
       |
       |What a session, a table or a catalog can be told. The settings by which the extension is installed are in
       |[Install](install.md), the options of commands in [Command line](command-line.md).
       |
       |This page is generated from the code; run `${GeneratedPages.command}` after a change to it. A test fails if
       |the page is not up to date, or if a setting is not on it.""".stripMargin,
    "## Settings of the session",
    "Of the session, as Spark's other settings: by `SET`, `--conf` or `spark-defaults.conf`.",
    rows("Setting", session),
    "## Properties of a table",
    "By `TBLPROPERTIES`. Other properties that begin with `icebergWriterCompat.` are refused.",
    rows(
      "Property",
      Contracts.all.map(contract =>
        Entry(
          contract.property,
          "`true`",
          "not set",
          s"the table has the feature `${contract.feature}`, see below. It is switched off by " +
            "`ALTER TABLE … DROP FEATURE`, and not by `false`"
        )
      ) ++ table
    ),
    "## Property of the catalog for Iceberg engines",
    "Of `org.icebergwritercompat.DeltaIcebergCatalog`, after `spark.sql.catalog.<name>.`, as Iceberg's own properties " +
      "are.",
    rows(
      "Property",
      Seq(
        Entry(
          RowLevelDeletes.Property,
          s"`${RowLevelDeletes.Refuse.name}`, `${RowLevelDeletes.Rewrite.name}`",
          s"`${RowLevelDeletes.Refuse.name}`",
          "what becomes of commits with delete files " +
            "([Let Iceberg write](write-back.md#rows-deleted-by-delete-files))"
        )
      )
    ),
    Contracts.all.map(ofContract).mkString("\n\n")
  ).mkString("\n\n") + "\n"

  private def rows(kind: String, entries: Seq[Entry]): String =
    (s"| $kind | Values | Default | What it does |" +: "|---|---|---|---|" +: entries.map { one =>
      val key = if (one.key.endsWith(".")) s"${one.key}…" else one.key
      s"| `$key` | ${one.values} | ${one.default} | ${one.effect} |"
    }).mkString("\n")

  private def ofContract(contract: Contract): String = {
    val lists = contract.features
    def names(of: Iterable[String]) = of.toSeq.sorted.map(name => s"`$name`").mkString(", ")
    val also = contract.readings.tail.map(reading =>
      s"| accepted by the profile `${reading.name}` too | ${names(reading.alsoAllowed)} |"
    )
    val required = contract.requiredProperties.map { case (key, value) => s"`$key` = `$value`" }
    val forbidden = lists.forbidden.toSeq
      .groupMap { case (_, reason) => reason } { case (feature, _) => feature }
      .toSeq
      .sortBy { case (_, features) => features.min }
      .map { case (reason, features) => s"| refused: $reason | ${names(features)} |" }
    val lines = Seq(
      s"| properties that are set with it | ${required.mkString(", ")} |",
      s"| properties that must not be `true` | ${names(contract.excludedProperties)} |",
      s"| features that are required | ${names(contract.requiredFeatures)} |",
      s"| features that are accepted | ${names(lists.allowed)} |",
      s"| accepted as long as nothing uses them | ${names(lists.allowedIfInactive)} |"
    ) ++ also ++ forbidden
    Seq(
      s"## What ${contract.feature} requires",
      s"A table with `${contract.property}` = `true`, published in Iceberg's format version " +
        s"${contract.formatVersion}:",
      ("| | |" +: "|---|---|" +: lines).mkString("\n"),
      "Any feature that is not in this table is refused ([rule A5](rules.md#rule-a5))."
    ).mkString("\n\n")
  }
}
