"""The built wheel, alone in a clean environment, gives a session that makes a right table."""

from __future__ import annotations

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
    modules = (REPOSITORY / "python" / "iceberg_writer_compat").glob("*.py")
    assert {f"iceberg_writer_compat/{module.name}" for module in modules} <= set(names)


def test_session_from_the_wheel(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    pins = [f"pyspark=={pyspark.__version__}", f"delta-spark=={metadata.version('delta-spark')}"]
    run(python, "-m", "pip", "install", "-q", wheel, *pins, cwd=tmp_path)
    script = REPOSITORY / "tests" / "scripts" / "from_wheel.py"
    # -I keeps this checkout out of the module path.
    output = run(python, "-I", script, tmp_path / "warehouse", cwd=tmp_path)
    assert output == f"{VERSION}\n[Row(a=1, n=None)]\n"
    assert oracle.check(tmp_path / "warehouse" / "t") == []
    assert run(environment / "bin" / "iceberg-writer-compat", "--version", cwd=tmp_path)
