"""What `configure_spark_with_iceberg_writer_compat` puts into a builder; no Spark is started."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import importlib_metadata
import pyspark
import pytest
from pyspark.sql import SparkSession

import iceberg_writer_compat
from conftest import REPOSITORY
from iceberg_writer_compat import (
    NoActiveSessionError,
    NotInstalledError,
    SparkConnectNotSupportedError,
    UnsupportedSparkVersionError,
    _jars,
    configure_spark_with_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    is_iceberg_writer_compat_enabled,
    maven_coordinate,
    session,
)
from sessions import DELTA_EXTENSION, OWN_EXTENSION

BOTH = f"{DELTA_EXTENSION},{OWN_EXTENSION}"
REVERSED = f"{OWN_EXTENSION},{DELTA_EXTENSION}"
LINE = ".".join(pyspark.__version__.split(".")[:2])
ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-core:1.12.0"
ICEBERG_JARS = [
    "caffeine",
    "httpclient5",
    "httpcore5",
    "httpcore5-h2",
    "iceberg-api",
    "iceberg-bundled-guava",
    "iceberg-common",
    "iceberg-core",
    "sqlite-jdbc",
]
DELTA_PACKAGE = f"io.delta:delta-spark_{LINE}_2.13:4.4.0"
SQLITE_PACKAGE = "org.xerial:sqlite-jdbc:3.54.1.0"
DELTA_EXCLUDES = "io.delta:delta-kernel-*,io.unitycatalog:*,org.scala-lang:*"


def without_iceberg(options: dict[str, Any]) -> str:
    """The packages, but those of Iceberg, which come last and in a tested version."""
    packages = str(options["spark.jars.packages"])
    assert packages.endswith(f",{ICEBERG_PACKAGE},{SQLITE_PACKAGE}")
    return packages.removesuffix(f",{ICEBERG_PACKAGE},{SQLITE_PACKAGE}")


def configured(extra_packages: list[str] | None = None, **options: str) -> dict[str, Any]:
    """The options after configuring a builder; `__` stands for a dot."""
    builder = SparkSession.Builder()
    for key, value in options.items():
        builder.config(key.replace("__", "."), value)
    assert configure_spark_with_iceberg_writer_compat(builder, extra_packages) is builder
    assert type(builder) is SparkSession.Builder
    return dict(builder._options)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder with this line's own jar, as a wheel has it."""
    folder = tmp_path / "jars" / f"spark-{LINE}"
    folder.mkdir(parents=True)
    write_jar(folder)
    monkeypatch.setattr(_jars, "_FOLDER", tmp_path / "jars")
    return folder


def write_jar(folder: Path, tested: str = "4.4.0,4.3.1") -> None:
    with zipfile.ZipFile(folder / f"iceberg-writer-compat_{LINE}_2.13-0.jar", "w") as jar:
        jar.writestr(
            "iceberg-writer-compat.properties",
            f"delta=4.4.0\ntestedDeltas={tested}\niceberg=1.12.0\nsqlite=3.54.1.0\n",
        )


def names(jars: str) -> list[str]:
    return [jar.rsplit("/", 1)[1].rsplit("-", 1)[0] for jar in jars.split(",")]


def test_staged_jars_need_no_resolution() -> None:
    options = configured()
    expected = [f"iceberg-writer-compat_{LINE}_2.13", f"delta-spark_{LINE}_2.13", "delta-storage"]
    assert names(options["spark.jars"]) == expected + ICEBERG_JARS
    assert "spark.jars.packages" not in options
    assert "spark.jars.excludes" not in options
    assert options["spark.sql.extensions"] == BOTH
    assert options["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")


def test_staged_jars_and_packages_of_the_user() -> None:
    options = configured(["a:b:2", "a:b:1"], spark__jars__packages="a:b:1, c:d:1")
    assert options["spark.jars.packages"] == "a:b:1,c:d:1,a:b:2"
    assert f"delta-spark_{LINE}_2.13" in names(options["spark.jars"])


def test_user_jars_stay() -> None:
    options = configured(spark__jars="/x/one-1.jar,/x/two-2.jar")
    assert options["spark.jars"].startswith("/x/one-1.jar,/x/two-2.jar,file:/")


def test_a_delta_of_the_user_is_the_only_one() -> None:
    by_jar = configured(spark__jars="/x/delta-spark_4.1_2.13-4.4.0.jar,/x/delta-storage-4.4.0.jar")
    assert names(by_jar["spark.jars"]) == [
        "delta-spark_4.1_2.13",
        "delta-storage",
        f"iceberg-writer-compat_{LINE}_2.13",
        *ICEBERG_JARS,
    ]
    assert "spark.jars.packages" not in by_jar
    by_package = configured(spark__jars__packages=DELTA_PACKAGE)
    own = f"iceberg-writer-compat_{LINE}_2.13"
    assert names(by_package["spark.jars"]) == [own, *ICEBERG_JARS]
    assert by_package["spark.jars.packages"] == DELTA_PACKAGE


@pytest.mark.parametrize(
    "iceberg", [ICEBERG_PACKAGE, "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"]
)
def test_an_iceberg_of_the_user_is_the_only_one(iceberg: str) -> None:
    options = configured([iceberg])
    assert options["spark.jars.packages"] == iceberg
    assert not set(ICEBERG_JARS) & set(names(options["spark.jars"]))


def test_wheel_takes_delta_and_iceberg_from_packages(package: Path) -> None:
    options = configured(["a:b:1"])
    assert options["spark.jars"] == next(package.glob("*.jar")).as_uri()
    assert without_iceberg(options) == f"{DELTA_PACKAGE},a:b:1"
    assert options["spark.jars.excludes"].startswith(f"{DELTA_EXCLUDES},com.fasterxml.jackson")


def test_a_session_that_does_not_publish(package: Path) -> None:
    builder = SparkSession.Builder()
    configure_spark_with_iceberg_writer_compat(builder, publishing=False)
    assert builder._options["spark.jars.packages"] == DELTA_PACKAGE
    assert builder._options["spark.jars.excludes"] == DELTA_EXCLUDES


def test_wheel_with_deltas_jar_needs_no_repository(package: Path) -> None:
    options = configured(spark__jars="/x/delta-spark_4.1_2.13-4.4.0.jar")
    assert "spark.jars.packages" not in options


def test_wheel_keeps_the_packages_and_excludes_of_the_user(package: Path) -> None:
    options = configured(
        spark__jars__packages="io.unitycatalog:unitycatalog-spark_2.13:1",
        spark__jars__excludes="x:y",
    )
    assert without_iceberg(options).endswith(",io.unitycatalog:unitycatalog-spark_2.13:1")
    excludes = "x:y,io.delta:delta-kernel-*,org.scala-lang:*,com.fasterxml.jackson"
    assert options["spark.jars.excludes"].startswith(excludes)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the environment one in which another delta-spark is installed."""

    def installed(version: str) -> None:
        def of(name: str) -> str:
            return version if name.replace("_", "-") == "delta-spark" else "0.1.0"

        monkeypatch.setattr(session, "version", of)
        monkeypatch.setattr(importlib_metadata, "version", of)

    return installed


@pytest.mark.parametrize("version", ["4.4.0", "4.3.1"])
def test_a_tested_delta_comes_as_it_is_installed(
    package: Path, install: Callable[[str], None], version: str
) -> None:
    install(version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = configured()
    assert without_iceberg(options) == f"io.delta:delta-spark_{LINE}_2.13:{version}"


def test_staged_jars_of_another_delta_are_left_out(install: Callable[[str], None]) -> None:
    install("4.3.1")
    options = configured()
    assert "delta-spark" not in options["spark.jars"]
    assert options["spark.jars.packages"] == f"io.delta:delta-spark_{LINE}_2.13:4.3.1"


def test_an_untested_delta_gives_a_warning(package: Path, install: Callable[[str], None]) -> None:
    install("4.4.1")
    with pytest.warns(UserWarning, match=r"delta-spark 4\.4\.1 .*tested on Spark") as caught:
        options = configured()
    assert str(caught[0].message).endswith("run: pip install 'delta-spark==4.4.0'")
    assert caught[0].filename == __file__
    assert without_iceberg(options) == f"io.delta:delta-spark_{LINE}_2.13:4.4.1"


@pytest.mark.parametrize("version", ["4.3.0", "3.3.2"])
def test_a_delta_that_is_too_old_is_refused(
    package: Path, install: Callable[[str], None], version: str
) -> None:
    install(version)
    with pytest.raises(NotInstalledError) as refusal:
        configured()
    assert str(refusal.value) == (
        f"delta-spark {version} is installed, but Iceberg Writer Compat needs 4.3.1 or later on "
        f"Spark {LINE}; run: pip install 'delta-spark==4.4.0'"
    )


def test_a_delta_that_does_not_serve_the_line_is_refused(
    package: Path, install: Callable[[str], None]
) -> None:
    write_jar(package, tested="4.4.0")
    install("4.3.1")
    with pytest.raises(NotInstalledError, match=r"needs 4\.4\.0 or later"):
        configured()


def test_a_delta_of_the_user_is_left_to_the_jar(
    package: Path, install: Callable[[str], None]
) -> None:
    install("3.3.2")
    options = configured([DELTA_PACKAGE])
    assert without_iceberg(options) == DELTA_PACKAGE


def test_configuring_twice_changes_nothing(package: Path) -> None:
    builder = configure_spark_with_iceberg_writer_compat(SparkSession.Builder())
    once = dict(builder._options)
    configure_spark_with_iceberg_writer_compat(builder)
    assert builder._options == once


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", BOTH),
        ("x.Y", f"x.Y,{BOTH}"),
        (DELTA_EXTENSION, BOTH),
        (OWN_EXTENSION, REVERSED),
        (BOTH, BOTH),
        (REVERSED, REVERSED),
        (f"{DELTA_EXTENSION}, x.Y", f"{DELTA_EXTENSION},x.Y,{OWN_EXTENSION}"),
        (f"{BOTH},x.Y,{DELTA_EXTENSION}", f"{BOTH},x.Y"),
        (f"{OWN_EXTENSION},x.Y", f"{OWN_EXTENSION},x.Y,{DELTA_EXTENSION}"),
    ],
)
def test_extensions(given: str, expected: str) -> None:
    assert configured(spark__sql__extensions=given)["spark.sql.extensions"] == expected


def test_session_catalog_of_the_user_stays() -> None:
    options = configured(spark__sql__catalog__spark_catalog="x.Catalog")
    assert options["spark.sql.catalog.spark_catalog"] == "x.Catalog"


def test_other_options_stay() -> None:
    assert configured(spark__app__name="mine")["spark.app.name"] == "mine"


def test_jar_in_a_folder_with_awkward_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a, b c" / f"spark-{LINE}"
    folder.mkdir(parents=True)
    write_jar(folder)
    monkeypatch.setattr(_jars, "_FOLDER", folder.parent)
    (jar,) = configured()["spark.jars"].split(",")
    assert "a%2C%20b%20c" in jar


class Subclass(SparkSession.Builder):
    """Delta's helper takes no subclass either."""


@pytest.mark.parametrize("wrong", [None, "builder", SparkSession, SparkSession.Builder, Subclass()])
def test_wrong_builder(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"A SparkSession\.Builder is needed"):
        configure_spark_with_iceberg_writer_compat(wrong)


def test_unsupported_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "5.0.0")
    with pytest.raises(UnsupportedSparkVersionError, match=r"5\.0\.0.*4\.0, 4\.1, 4\.2"):
        configured()


@pytest.mark.parametrize("jars", [[], ["1", "2"]])
def test_jar_is_not_in_the_package(package: Path, jars: list[str]) -> None:
    next(package.glob("*.jar")).unlink()
    for version in jars:
        (package / f"iceberg-writer-compat_{LINE}_2.13-{version}.jar").touch()
    with pytest.raises(NotInstalledError, match="make setup"):
        configured()


def test_maven_coordinate() -> None:
    version = iceberg_writer_compat.__version__
    prefix = "org.icebergwritercompat:iceberg-writer-compat"
    assert maven_coordinate("4.2.0") == f"{prefix}_4.2_2.13:{version}"
    assert maven_coordinate() == f"{prefix}_{LINE}_2.13:{version}"
    with pytest.raises(UnsupportedSparkVersionError):
        maven_coordinate("3.5.1")


def test_no_text_offers_what_is_not_published() -> None:
    sources = [REPOSITORY / "scala/core/src/main/resources/error"]
    sources.append(Path(iceberg_writer_compat.__file__).parent)
    offered = re.compile(
        r"pip install[^\n]*[ '/]iceberg-writer-compat\b|packages[ =]org\.icebergwritercompat:"
    )
    files = [
        file for source in sources for kind in ("json", "py") for file in source.rglob(f"*.{kind}")
    ]
    assert len(files) > 20
    assert [file for file in files if offered.search(file.read_text())] == []


# --- sessions that cannot be used -----------------------------------------------------------------


def test_no_session() -> None:
    with pytest.raises(NoActiveSessionError, match="no active Spark session"):
        enable_iceberg_writer_compat(None)  # type: ignore[call-overload]


@pytest.mark.parametrize("wrong", ["spark", 1, SparkSession, SparkSession.Builder()])
def test_not_a_session(wrong: Any) -> None:
    with pytest.raises(TypeError, match="A SparkSession is needed"):
        is_iceberg_writer_compat_enabled(wrong)


def test_connect_session() -> None:
    # The real class needs gRPC to be imported; a session is known by its module.
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    derived = type("DatabricksSession", (remote,), {"__module__": "elsewhere"})
    for remote_session in (remote(), derived()):
        with pytest.raises(SparkConnectNotSupportedError, match="Spark Connect"):
            enable_iceberg_writer_compat(remote_session, "t")


@pytest.mark.parametrize(
    "options",
    [{"spark.remote": "sc://localhost"}, {"spark.api.mode": "connect"}],
)
def test_connect_builder(options: dict[str, str]) -> None:
    builder = configure_spark_with_iceberg_writer_compat(SparkSession.Builder())
    for key, value in options.items():
        builder.config(key, value)
    with pytest.raises(SparkConnectNotSupportedError):
        builder.getOrCreate()
    early = SparkSession.Builder().config(map=dict(options))
    with pytest.raises(SparkConnectNotSupportedError):
        configure_spark_with_iceberg_writer_compat(early)


def test_connect_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(SparkConnectNotSupportedError):
        configured()
