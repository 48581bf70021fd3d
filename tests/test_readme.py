"""What the README names is there; `test_wheel.py` runs its blocks."""

from __future__ import annotations

import re

import pytest

from conftest import REPOSITORY
from examples import blocks, expected_outputs, matches


@pytest.fixture(scope="module")
def readme() -> list[tuple[str, str]]:
    page = REPOSITORY / "README.md"
    assert page.is_file(), "README.md is missing"
    return blocks(page.read_text(encoding="utf-8"))


def test_make_targets(readme: list[tuple[str, str]]) -> None:
    shell = "\n".join(body for language, body in readme if language in ("sh", "bash", "console"))
    named = re.findall(r"^\s*\$?\s*make\s+([\w-]+)", shell, re.MULTILINE)
    assert {"demo", "test"} <= set(named)
    targets = re.findall(
        r"^([\w-]+):.*## ", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(named) <= set(targets)


def test_one_screen() -> None:
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80
    assert sum(line.startswith("![") for line in lines) == 1


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
