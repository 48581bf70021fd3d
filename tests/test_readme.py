"""What the README shows is what happens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conftest import REPOSITORY, run_python

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


@pytest.fixture(scope="module")
def readme() -> list[tuple[str, str]]:
    page = REPOSITORY / "README.md"
    assert page.is_file(), "README.md is missing"
    return blocks(page.read_text(encoding="utf-8"))


def test_python_blocks(readme: list[tuple[str, str]], tmp_path: Path) -> None:
    examples = expected_outputs(readme)
    assert examples, "README.md has no python block"
    (tmp_path / "blocks.json").write_text(json.dumps([body for body, _ in examples]))
    (tmp_path / "work").mkdir()
    script = REPOSITORY / "tests" / "scripts" / "run_blocks.py"
    done = run_python(
        script, tmp_path / "blocks.json", tmp_path / "outputs.json", cwd=tmp_path / "work"
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
    outputs = json.loads((tmp_path / "outputs.json").read_text())
    for (body, expected), printed in zip(examples, outputs, strict=True):
        if expected is not None:
            assert matches(expected, printed), f"{body}\nprinted:\n{printed}"


def test_make_targets(readme: list[tuple[str, str]]) -> None:
    shell = "\n".join(body for language, body in readme if language in ("sh", "bash", "console"))
    named = re.findall(r"^\s*\$?\s*make\s+([\w-]+)", shell, re.MULTILINE)
    assert {"demo", "test"} <= set(named)
    targets = re.findall(
        r"^([\w-]+):.*## ", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(named) <= set(targets)


# --- the runner itself ----------------------------------------------------------------------------

PAGE = """\
Text.

```python
x = 1
print(x)
```

```text
1
```

```sh
make demo
```

```python title="second"
print("no output is promised")
```
"""


def test_blocks_and_their_output() -> None:
    assert expected_outputs(blocks(PAGE)) == [
        ("x = 1\nprint(x)\n", "1\n"),
        ('print("no output is promised")\n', None),
    ]
    assert expected_outputs(blocks("no blocks")) == []


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb\n", "a  \nb", True),
        ("a ... c", "a b\nb c", True),
        ("a.c", "abc", False),
        ("a", "a\nb", False),
        ("a\nb", "a", False),
    ],
)
def test_comparison(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same
