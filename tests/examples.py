"""The fenced code blocks of a page, and whether what they print is what the page says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conftest import REPOSITORY

BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced code blocks of a page, each with its language."""
    return BLOCK.findall(text)


def expected_outputs(found: list[tuple[str, str]]) -> list[tuple[str, str | None]]:
    """Each Python block, with the `text` block that follows it directly, if there is one."""
    following = [*found[1:], ("", "")][: len(found)]
    return [
        (body, next_body if next_language == "text" else None)
        for (language, body), (next_language, next_body) in zip(found, following, strict=True)
        if language == "python"
    ]


def matches(expected: str, printed: str) -> bool:
    """Whether output is as expected; `...` stands for anything, spaces at line ends for nothing."""

    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines())

    pattern = ".*?".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(printed), re.DOTALL) is not None


def examples_of(page: str) -> list[tuple[str, str | None]]:
    """The Python blocks of a page of this repository, each with the output that it shows."""
    found = expected_outputs(blocks((REPOSITORY / page).read_text(encoding="utf-8")))
    assert found, f"{page} has no python block"
    return found


def differences(examples: Sequence[tuple[str, str | None]], printed: Sequence[str]) -> list[str]:
    """The blocks that print something else."""
    return [
        f"{body}\nprinted:\n{output}"
        for (body, expected), output in zip(examples, printed, strict=True)
        if expected is not None and not matches(expected, output)
    ]
