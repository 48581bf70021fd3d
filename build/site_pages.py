"""Pages of the site that are files of the project, and links that leave docs/; a hook of MkDocs."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

# Each page, and the file at the top of the project that it is.
PAGES = {
    "index.md": "README.md",
    "changes.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}

_LINK = re.compile(r"(\]\(|src=\")([^)\s\"]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Takes the address of the repository from the build, where it stands once."""
    found = re.search(r'homepage := Some\(url\("([^"]+)"\)\)', (ROOT / "build.sbt").read_text())
    if found is None:
        raise PluginError("build.sbt has no homepage")
    config.repo_url = found[1]
    config.repo_name = urlsplit(found[1]).path.strip("/")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are files of the project."""
    for page, name in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_moved(text, config)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to files of the project, such as `../scala/…`, to the repository."""
    del files
    if page.parent is None:
        # Its part of the site has one page, so there is nothing to choose beside it.
        page.meta["hide"] = ["navigation"]

    def target(link: str) -> str:
        return _target(link[3:], config) if link.startswith("../") else link

    if page.file.src_uri in PAGES:
        return markdown
    return _LINK.sub(lambda found: found[1] + target(found[2]), markdown)


def _moved(markdown: str, config: MkDocsConfig) -> str:
    """The text of a file at the top of the project, as a page in docs/."""
    return _LINK.sub(lambda found: found[1] + _target(found[2], config), markdown)


def _target(link: str, config: MkDocsConfig) -> str:
    """What a link that is relative to the project is in docs/."""
    parts = urlsplit(link)
    if parts.scheme or not parts.path:
        return link
    anchor = f"#{parts.fragment}" if parts.fragment else ""
    if not (ROOT / parts.path).exists():
        raise PluginError(f"{link} leads to no file of the project")
    for page, name in PAGES.items():
        if parts.path == name:
            return page + anchor
    if parts.path.startswith("docs/"):
        return parts.path.removeprefix("docs/") + anchor
    return f"{str(config.repo_url).rstrip('/')}/blob/main/{parts.path}{anchor}"
