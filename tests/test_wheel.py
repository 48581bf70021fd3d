"""The built wheel, alone in a clean environment, does what README and docs/start.md show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pyspark
import pytest

import oracle
from conftest import REPOSITORY
from examples import differences, examples_of

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


def test_readme_from_the_wheel(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    pins = [f"pyspark=={pyspark.__version__}", f"delta-spark=={metadata.version('delta-spark')}"]
    run(python, "-m", "pip", "install", "-q", f"{wheel}[prove]", *pins, cwd=tmp_path)
    examples = examples_of("README.md") + examples_of("docs/start.md")
    (tmp_path / "blocks.json").write_text(json.dumps([body for body, _ in examples]))
    work = tmp_path / "work"
    work.mkdir()
    script = REPOSITORY / "tests" / "scripts" / "run_blocks.py"
    # -I keeps this checkout out of the module path.
    run(python, "-I", script, tmp_path / "blocks.json", tmp_path / "outputs.json", cwd=work)
    printed = json.loads((tmp_path / "outputs.json").read_text())
    assert differences(examples, printed) == []
    assert oracle.check(work / "spark-warehouse" / "events") == []
    assert run(environment / "bin" / "iceberg-writer-compat", "--version", cwd=tmp_path)
    run(python, "-m", "pip", "check", cwd=tmp_path)
