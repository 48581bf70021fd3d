"""The site of the documents is built without a warning, and needs no other host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import iceberg_writer_compat
import pictures
from conftest import REPOSITORY
from iceberg_writer_compat.cli import main

# What a browser fetches by itself.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b(?![^>]*rel=[\"']?(?:canonical|next|prev))[^>]*\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|url\([\"']?((?:https?:)?//[^\"')]+)"
    r"|@import\s+[\"']((?:https?:)?//[^\"']+)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    config = REPOSITORY / "build" / "mkdocs.yml"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "--site-dir", folder],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    # Also a link or an anchor that leads nowhere, and a page that is not in the navigation.
    assert done.returncode == 0, done.stderr[-6000:]
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = {page.stem for page in (REPOSITORY / "docs").glob("*.md")}
    assert pages | {"index", "changes", "contributing"} <= {
        page.stem for page in site.glob("*.html")
    }


def test_nothing_comes_from_other_hosts(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 15
    fetched = {
        (str(file.relative_to(site)), found[0])
        for file in files
        for found in FETCHED.finditer(file.read_text(encoding="utf-8"))
    }
    assert fetched == set()


def test_pictures(site: Path) -> None:
    made = set(pictures.IMAGES.glob("*.png"))
    assert made
    for picture in made:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size <= pictures.LARGEST
    shown = "".join(page.read_text(encoding="utf-8") for page in site.glob("*.html"))
    unused = [one.name for one in pictures.IMAGES.iterdir() if f'images/{one.name}"' not in shown]
    assert unused == []


def test_every_name_of_the_package_is_documented(site: Path) -> None:
    page = (site / "python.html").read_text(encoding="utf-8")
    # The two are aliases of literals, and named in the text.
    names = set(iceberg_writer_compat.__all__) - {"__version__", "Check", "ReaderName"}
    missing = [name for name in names if f'id="iceberg_writer_compat.{name}"' not in page]
    assert missing == []


def test_every_command_is_documented(site: Path) -> None:
    page = (site / "command-line.html").read_text(encoding="utf-8")
    commands = [f"iceberg-writer-compat-{name}" for name in main.commands]
    assert commands
    assert [name for name in commands if f'id="{name}"' not in page] == []
