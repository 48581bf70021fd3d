"""Configures sessions with the extension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any

from delta import configure_spark_with_delta_pip
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from iceberg_writer_compat import _jars, _jvm

# Dependencies of delta-spark that are not needed with Spark's own catalog, and the Scala library,
# which Spark contains.
_UNNEEDED = ("io.delta:delta-kernel-*", "io.unitycatalog:*", "org.scala-lang:*")

# Dependencies of Iceberg's library that Spark contains.
_IN_SPARK = (
    "com.fasterxml.jackson.core:*",
    "com.google.errorprone:*",
    "commons-codec:*",
    "commons-io:*",
    "io.airlift:aircompressor",
    "org.apache.avro:avro",
    "org.apache.commons:commons-compress",
    "org.apache.commons:commons-lang3",
    "org.jspecify:*",
    "org.roaringbitmap:*",
    "org.slf4j:*",
)

# Iceberg's library, alone or as part of its Spark connector.
_ICEBERG = ("iceberg-core", "iceberg-spark-runtime")


def maven_coordinate(spark_version: str | None = None) -> str:
    """The artifact for `spark.jars.packages`; by default for the installed PySpark."""
    line = _jars.spark_line(spark_version)
    own_version = version("iceberg-writer-compat")
    return f"org.icebergwritercompat:iceberg-writer-compat_{line}_2.13:{own_version}"


def configure_spark_with_iceberg_writer_compat(
    builder: SparkSession.Builder,
    extra_packages: list[str] | None = None,
    *,
    publishing: bool = True,
) -> SparkSession.Builder:
    """Configures a session builder for Delta Lake with `icebergWriterCompatV1`.

    Jars, packages, extensions and the session catalog of the builder are kept. Its `getOrCreate`
    checks that the extension is installed, and raises `NotInstalledError` if it is not.

    The version of Delta Lake is that of the installed package delta-spark, unless the builder has a
    jar or package of Delta Lake. A version that was not tested causes a warning.

    Args:
        builder: The builder, which is modified and returned.
        extra_packages: Maven coordinates to load in addition to Delta Lake.
        publishing: Whether the session gets Iceberg's library, which publishing needs, unless the
            builder has it. It is fetched in the way that Delta Lake is, and left to the builder if
            that has a jar of Delta Lake.

    Raises:
        NotInstalledError: if the installed delta-spark is too old.
    """
    if type(builder) is not SparkSession.Builder:
        raise TypeError(
            "A SparkSession.Builder is needed, such as SparkSession.builder, but this is of type "
            f"{type(builder)}."
        )
    _jvm.refuse_remote(builder._options)
    _set_jars(builder, list(extra_packages or []), publishing)
    _set_extensions(builder)
    if "spark.sql.catalog.spark_catalog" not in builder._options:
        builder.config("spark.sql.catalog.spark_catalog", _jvm.DELTA_CATALOG)
    _check_on_creation(builder)
    return builder


def add_readers(builder: SparkSession.Builder) -> None:
    """Adds Iceberg's own readers to a builder that is still to be configured, for `prove`.

    Nothing is added if the builder has Iceberg's library or a jar of Delta Lake, which may be all
    that there is.
    """
    line = _jars.spark_line()
    jars, packages = _entries(builder, "spark.jars"), _entries(builder, "spark.jars.packages")
    if any(name in entry for entry in jars + packages for name in _ICEBERG) or any(
        "delta-spark_" in entry for entry in jars
    ):
        return
    if connector := _jars.reader_jars(line):
        beside = [jar for jar in _jars.iceberg_jars(line) if not jar.name.startswith("iceberg-")]
        jars += [jar.as_uri() for jar in [*connector, *beside]]
        builder.config("spark.jars", ",".join(jars))
    elif fetched := _jars.reader_packages(line):
        builder.config("spark.jars.packages", ",".join([*packages, *fetched]))


def _set_jars(builder: SparkSession.Builder, extra_packages: list[str], publishing: bool) -> None:
    line = _jars.spark_line()
    jars = _entries(builder, "spark.jars")
    packages = _entries(builder, "spark.jars.packages")
    packages += [package for package in extra_packages if package not in packages]
    # With two copies of Delta on the class path, it would be undefined which one is used.
    delta_jar = any("delta-spark_" in entry for entry in jars)
    delta_chosen = delta_jar or any("delta-spark_" in entry for entry in packages)
    delta = version("delta-spark")
    if not delta_chosen:
        _jars.check_delta(line, delta)
    staged = [jar.as_uri() for jar in _jars.delta_jars(line, delta)]
    wanted = [_jars.own_jar(line).as_uri(), *([] if delta_chosen else staged)]
    if publishing and not any(name in entry for entry in jars + packages for name in _ICEBERG):
        iceberg = [jar.as_uri() for jar in _jars.iceberg_jars(line)]
        wanted += iceberg
        # Who brings Delta as a jar may have no way to a repository.
        if not iceberg and not delta_jar:
            packages += _jars.iceberg_packages(line)
    builder.config("spark.jars", ",".join(jars + [jar for jar in wanted if jar not in jars]))
    if not staged and not delta_chosen:
        configure_spark_with_delta_pip(builder, packages)
    elif packages:
        builder.config("spark.jars.packages", ",".join(packages))
    fetched = _entries(builder, "spark.jars.packages")
    unneeded = [
        *(_UNNEEDED if any("delta-spark_" in package for package in fetched) else ()),
        *(_IN_SPARK if any(_ICEBERG[0] in package for package in fetched) else ()),
    ]
    if unneeded:
        _exclude(builder, unneeded, packages)


def _exclude(
    builder: SparkSession.Builder, unneeded: Sequence[str], packages: Sequence[str]
) -> None:
    excludes = _entries(builder, "spark.jars.excludes")
    excludes += [
        pattern
        for pattern in unneeded
        if pattern not in excludes
        # An exclude would also exclude a package that is requested by name.
        and not any(package.startswith(pattern.removesuffix("*")) for package in packages)
    ]
    builder.config("spark.jars.excludes", ",".join(excludes))


def _set_extensions(builder: SparkSession.Builder) -> None:
    # Their order makes no difference.
    wanted = [*_entries(builder, "spark.sql.extensions"), _jvm.DELTA_EXTENSION, _jvm.OWN_EXTENSION]
    extensions = dict.fromkeys(wanted)
    builder.config("spark.sql.extensions", ",".join(extensions))


def _check_on_creation(builder: SparkSession.Builder) -> None:
    create = builder.getOrCreate

    def get_or_create() -> SparkSession:
        _jvm.refuse_remote(builder._options)
        _jvm.refuse_running_without_jar()
        session = create()
        # Spark only warns about an extension that it cannot load.
        door = _jvm.require(session)
        if "stop" not in vars(session):
            vars(session)["stop"] = partial(_publish_and_stop, door, session.stop)
        return session

    # Delta's helper accepts only SparkSession.Builder itself, not a subclass.
    vars(builder)["getOrCreate"] = get_or_create


def _publish_and_stop(door: Any, stop: Callable[[], None]) -> None:
    # A stopping session cannot publish any more. The JVM may have ended already.
    with suppress(Py4JError):
        door.awaitPublishing()
    stop()


def _entries(builder: SparkSession.Builder, key: str) -> list[str]:
    value: Any = builder._options.get(key) or ""
    return [entry.strip() for entry in str(value).split(",") if entry.strip()]
