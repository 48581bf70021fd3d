"""The built wheel, alone in a clean environment, does what the README and the documents show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import pytest

import oracle
from conftest import REPOSITORY
from examples import RUN, Block, differences, pages, to_run

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


@dataclass(frozen=True)
class Installed:
    """A clean environment with the wheel, and what the blocks of all pages did in it."""

    bin: Path
    ran: dict[Path, list[Block]]
    outputs: dict[Path, tuple[list[str], str | None]]
    tables: dict[Path, Path]


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    (wheel,) = built.glob("*.whl")
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", folder / "environment", cwd=folder)
    bin = folder / "environment" / "bin"
    # What pages show besides the package: other catalogs and clients.
    others = ["sqlalchemy", "polars"]
    pins = [f"{name}=={metadata.version(name)}" for name in ("pyspark", "delta-spark", *others)]
    run(bin / "python", "-m", "pip", "install", "-q", f"{wheel}[prove]", *pins, cwd=folder)
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


def test_the_environment(installed: Installed, tmp_path: Path) -> None:
    shown = run(installed.bin / "iceberg-writer-compat", "--version", cwd=tmp_path)
    assert VERSION in shown
    run(installed.bin / "python", "-m", "pip", "check", cwd=tmp_path)
