"""Unpacks Chromium from its npm package. Arguments: the package, and a folder."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

import brotli

_FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""


def unpack(package: Path, folder: Path) -> None:
    """Puts the browser, its libraries and its fonts into a folder."""
    with tarfile.open(package) as archive:

        def packed(name: str) -> bytes:
            member = archive.extractfile(f"package/bin/{name}.br")
            assert member is not None, name
            return bytes(brotli.decompress(member.read()))

        for name in ("al2023.tar", "fonts.tar", "swiftshader.tar"):
            with tarfile.open(fileobj=io.BytesIO(packed(name))) as inner:
                inner.extractall(folder, filter="data")
        browser = folder / "chromium"
        browser.write_bytes(packed("chromium"))
    browser.chmod(0o755)
    # The package's own file looks for the fonts in folders of the machine. Without any font the
    # browser crashes, so these have to be found where the project is, also once it was moved.
    (folder / "fonts.conf").write_text(_FONTS, encoding="utf-8")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
