"""The built wheel, alone in a clean environment, does what the README and the documents show."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import oracle
from conftest import REPOSITORY, Table
from examples import RUN, Block, differences, pages, to_run
from iceberg_writer_compat import Proof, publish

VERSION = (REPOSITORY / "VERSION").read_text().strip()


def run(*command: object, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, REPOSITORY / "python", cwd=folder)
    return folder


def thin_jars(names: list[str]) -> list[str]:
    return sorted(name.split("/jars/", 1)[1] for name in names if name.endswith(".jar"))


def staged() -> list[str]:
    jars = REPOSITORY / "python" / "iceberg_writer_compat" / "jars"
    return sorted(str(jar.relative_to(jars)) for jar in jars.glob("spark-*/*.jar"))


def test_contents(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    assert wheel.name == f"iceberg_writer_compat-{VERSION}-py3-none-any.whl"
    assert sdist.name == f"iceberg_writer_compat-{VERSION}.tar.gz"
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    with tarfile.open(sdist) as opened_sdist:
        sources = opened_sdist.getnames()
    # This project's jar for each line that was staged, and none of Delta's.
    assert thin_jars(names) == thin_jars(sources) == staged()
    assert f"spark-4.1/iceberg-writer-compat_4.1_2.13-{VERSION}.jar" in staged()
    assert "iceberg_writer_compat/py.typed" in names
    for text in ("LICENSE", "NOTICE"):
        assert f"iceberg_writer_compat-{VERSION}.dist-info/licenses/{text}" in names
        assert f"iceberg_writer_compat-{VERSION}/{text}" in sources
        copied = (REPOSITORY / "python" / text).read_bytes()
        assert copied == (REPOSITORY / text).read_bytes()
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=built)
    modules = (REPOSITORY / "python" / "iceberg_writer_compat").glob("*.py")
    assert {f"iceberg_writer_compat/{module.name}" for module in modules} <= set(names)


def test_bills_of_materials(built: Path, tmp_path: Path) -> None:
    """What the jars and the wheel contain and depend on, as `make release` writes it."""
    (wheel,) = built.glob("*.whl")
    shutil.copytree(built, tmp_path / "dist")
    place = Path("org", "icebergwritercompat", "iceberg-writer-compat_4.1_2.13", VERSION)
    (tmp_path / "maven" / place).mkdir(parents=True)
    name = f"iceberg-writer-compat_4.1_2.13-{VERSION}"
    pom = REPOSITORY / "target" / "maven" / place / f"{name}.pom"
    shutil.copy(pom, tmp_path / "maven" / place)
    with (
        zipfile.ZipFile(wheel) as opened,
        zipfile.ZipFile(tmp_path / "dist" / wheel.name, "w") as one,
    ):
        for entry in opened.namelist():
            if not entry.endswith(".jar") or name in entry:
                one.writestr(entry, opened.read(entry))
            if name in entry:
                (tmp_path / "maven" / place / f"{name}.jar").write_bytes(opened.read(entry))
    script = REPOSITORY / "build" / "sbom.py"
    run(sys.executable, script, tmp_path / "maven", tmp_path / "dist", cwd=tmp_path)
    of_jar = json.loads((tmp_path / "maven" / place / f"{name}-cyclonedx.json").read_text())
    of_wheel = json.loads(
        (tmp_path / "dist" / f"iceberg_writer_compat-{VERSION}.cdx.json").read_text()
    )
    own = f"pkg:maven/org.icebergwritercompat/iceberg-writer-compat_4.1_2.13@{VERSION}?type=jar"
    delta = "pkg:maven/io.delta/delta-spark_4.1_2.13@4.4.0?type=jar"
    iceberg = "pkg:maven/org.apache.iceberg/iceberg-core@1.12.0?type=jar"
    for bill in (of_jar, of_wheel):
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is None
        scopes = {component["purl"]: component["scope"] for component in bill["components"]}
        assert (scopes[delta], scopes[iceberg]) == ("required", "optional")
        needed = {entry["ref"]: set(entry.get("dependsOn", ())) for entry in bill["dependencies"]}
        assert {delta, iceberg} <= needed[own]
    about = of_wheel["metadata"]["component"]
    assert about["purl"] == f"pkg:pypi/iceberg-writer-compat@{VERSION}"
    (contained,) = about["components"]
    packed = (tmp_path / "maven" / place / f"{name}.jar").read_bytes()
    assert {"alg": "SHA-256", "content": hashlib.sha256(packed).hexdigest()} in contained["hashes"]
    packages = f"pkg:pypi/py4j@{metadata.version('py4j')}"
    assert packages in needed[f"pkg:pypi/pyspark@{metadata.version('pyspark')}"]
    assert f"pkg:pypi/delta-spark@{metadata.version('delta-spark')}" in needed[about["bom-ref"]]
    # Extras are not asked for by the wheel itself.
    assert not any("pyiceberg" in component["purl"] for component in of_wheel["components"])


@dataclass(frozen=True)
class Installed:
    """A clean environment with the wheel, and what the blocks of all pages did in it."""

    bin: Path
    ran: dict[Path, list[Block]]
    outputs: dict[Path, tuple[list[str], str | None]]
    tables: dict[Path, Path]


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel without its extra, then with the packages that `prove` asks for."""
    (wheel,) = built.glob("*.whl")
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", folder / "environment", cwd=folder)
    bin = folder / "environment" / "bin"
    # What pages show besides the package: other catalogs and clients.
    others = ["sqlalchemy", "polars"]
    pins = [f"{name}=={metadata.version(name)}" for name in ("pyspark", "delta-spark", *others)]
    run(bin / "python", "-m", "pip", "install", "-q", wheel, *pins, cwd=folder)
    offered = subprocess.run(
        [bin / "iceberg-writer-compat", "prove", "t"], cwd=folder, capture_output=True, text=True
    )
    assert offered.returncode == 2
    first, line = offered.stderr.splitlines()
    assert first == "A proof needs numpy, pandas, pyarrow."
    pip, *arguments = shlex.split(line.removeprefix("Run: "))
    run(bin / "python", "-m", pip, *arguments, "-q", cwd=folder)
    ran = {page: to_run(page.read_text(encoding="utf-8")) for page in pages()}
    asked = [
        [asdict(block) | {"runner": RUN[block.language]} for block in page] for page in ran.values()
    ]
    (folder / "pages.json").write_text(json.dumps(asked))
    work = folder / "work"
    work.mkdir()
    script = REPOSITORY / "tests" / "scripts" / "run_blocks.py"
    files = [folder / name for name in ("pages.json", "outputs.json", "tables")]
    # -I keeps this checkout out of the module path.
    run(bin / "python", "-I", script, *files, cwd=work)
    outputs = json.loads((folder / "outputs.json").read_text())
    return Installed(
        bin=bin,
        ran=ran,
        outputs={page: (output[0], output[1]) for page, output in zip(ran, outputs, strict=True)},
        tables={page: folder / "tables" / str(number) for number, page in enumerate(ran)},
    )


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_block_of_a_page(installed: Installed, page: Path) -> None:
    """Each block that is not marked as one that is not run (see `examples.py`)."""
    printed, error = installed.outputs[page]
    assert error is None, error
    assert differences(installed.ran[page], printed) == []


def test_the_table_of_the_readme(installed: Installed) -> None:
    assert oracle.check(installed.tables[REPOSITORY / "README.md"] / "events") == []


def test_prove_brings_the_readers_of_its_session(
    installed: Installed, table: Table, tmp_path: Path
) -> None:
    table.create_with("(1, 'x'), (2, NULL)", "a INT, b STRING")
    publish(table.spark, table.name)
    command = installed.bin / "iceberg-writer-compat"
    shown = run(command, "prove", table.folder, "--format", "json", cwd=tmp_path)
    proof = Proof.from_json(shown)
    assert proof.proven
    used = {reader.name for reader in proof.readers if reader.library is not None}
    assert used == {"pyiceberg", "duckdb", "iceberg-spark", "iceberg-core"}
    assert {reading.rows for reading in proof.readings} == {2}


def test_the_environment(installed: Installed, tmp_path: Path) -> None:
    shown = run(installed.bin / "iceberg-writer-compat", "--version", cwd=tmp_path)
    assert VERSION in shown
    run(installed.bin / "python", "-m", "pip", "check", cwd=tmp_path)
