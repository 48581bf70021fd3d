"""The packages of Python that `prove` needs and that are not installed."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version

_PROVE = re.compile(r"""extra\s*==\s*['"]prove['"]""")


def install_line() -> str:
    """The command that installs what is missing of the extra `prove`.

    It names each package, in the releases that belong together, so that it works however this
    package was installed.
    """
    listed = [entry.partition(";") for entry in requires("iceberg-writer-compat") or []]
    wanted = [name.strip() for name, _, marker in listed if _PROVE.search(marker)]
    missing = [entry for entry in wanted if not _is_installed(entry)]
    return " ".join(["pip install", *(f"'{entry}'" for entry in missing or wanted)])


def _is_installed(requirement: str) -> bool:
    (name,) = re.findall(r"^[\w.-]+", requirement)
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
