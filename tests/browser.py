"""A headless browser for the tests of HTML."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

# What `make setup` installs where it can.
_INSTALLED = Path(__file__).resolve().parent.parent / ".tools" / "browser"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def headless() -> Iterator[Browser]:
    """A browser of this project's setup, or else the one that the machine has."""
    environment: dict[str, str | float | bool] = dict(os.environ)
    if (_INSTALLED / "chromium").is_file():
        executable = str(_INSTALLED / "chromium")
        environment["LD_LIBRARY_PATH"] = str(_INSTALLED / "lib")
        environment["FONTCONFIG_FILE"] = str(_INSTALLED / "fonts.conf")
    else:
        executable = next(filter(None, map(shutil.which, _NAMES)), "")
        assert executable, f"No browser was found; install one of {', '.join(_NAMES)}."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, env=environment, args=["--disable-gpu"]
        )
        yield browser
        browser.close()
