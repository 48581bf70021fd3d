"""The fenced code blocks of the documents, and whether what they print is what the page says.

Blocks of Python, SQL and shell are run, each page in the order of its blocks. A comment of HTML
just before a block, which readers do not see, says what else is to know:

    <!-- not run: why -->           the block is not run
    <!-- given: statements -->      Python that is run before the block, such as a table it needs
    <!-- run by: function -->       what each SQL statement is given to, in place of `spark.sql`

`<!-- no block is run: why -->` anywhere in a page is for all its blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conftest import REPOSITORY

RUN = {"python": "python", "py": "python", "sql": "sql"} | dict.fromkeys(
    ("sh", "bash", "shell", "console"), "sh"
)

# Blocks in lists are indented, as their text is then.
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
_COMMENTS = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.DOTALL)
_COMMENT = re.compile(r"<!--\s*([a-z ]+):\s(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced code block.

    Attributes:
        line: Where it begins.
        language: What it is in, as the page says.
        body: What is in it.
        expected: The block `text` that follows it directly.
        given: The Python that is run before it.
        run_by: The Python expression for a function that runs a statement.
        not_run: Why it is not run.
    """

    line: int
    language: str
    body: str
    expected: str | None = None
    given: str | None = None
    run_by: str | None = None
    not_run: str | None = None


def blocks(text: str) -> list[Block]:
    """The fenced code blocks of a page."""
    whole = re.search(r"<!--\s*no block is run:\s(.*?)\s*-->", text, re.DOTALL)
    found: list[Block] = []
    matches = list(_BLOCK.finditer(text))
    for match, next_ in zip(matches, [*matches, None][1:], strict=True):
        before = _COMMENTS.search(text, 0, match.start("indent"))
        comments = dict(_COMMENT.findall(before[0])) if before else {}
        followed = next_ is not None and text[match.end() : next_.start()].strip() == ""
        found.append(
            Block(
                line=text.count("\n", 0, match.start()) + 1,
                language=match["language"],
                body=_without(match["indent"], match["body"]),
                expected=(
                    _without(next_["indent"], next_["body"])
                    if next_ is not None and followed and next_["language"] == "text"
                    else None
                ),
                given=comments.get("given"),
                run_by=comments.get("run by"),
                not_run=whole[1] if whole else comments.get("not run"),
            )
        )
    return found


def _without(indent: str, body: str) -> str:
    return re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)


def to_run(text: str) -> list[Block]:
    """The blocks of a page that are run."""
    return [block for block in blocks(text) if block.language in RUN and block.not_run is None]


def pages() -> list[Path]:
    """The documents, the README first."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def matches(expected: str, printed: str) -> bool:
    """Whether output is as expected; `...` stands for anything, spaces at line ends for nothing."""

    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines())

    pattern = ".*?".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(printed), re.DOTALL) is not None


def differences(ran: Sequence[Block], printed: Sequence[str]) -> list[str]:
    """The blocks that print something else."""
    return [
        f"line {block.line}:\n{block.body}\nprinted:\n{output}"
        for block, output in zip(ran, printed, strict=True)
        if block.expected is not None and not matches(block.expected, output)
    ]
