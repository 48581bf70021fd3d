"""What the README names is there; `test_wheel.py` runs its blocks."""

from __future__ import annotations

import re

import pytest

from conftest import REPOSITORY
from examples import Block, blocks, matches, to_run


@pytest.fixture(scope="module")
def readme() -> list[Block]:
    page = REPOSITORY / "README.md"
    return blocks(page.read_text(encoding="utf-8"))


def test_make_targets(readme: list[Block]) -> None:
    shell = "\n".join(block.body for block in readme if block.language == "sh")
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

<!-- a comment about something else -->
<!-- given:
y = 1
-->

```python
x = y
print(x)
```

```text
1
```

<!-- not run: it takes an hour -->

```sh
make demo
```

1. A list:

   <!-- run by: connection.execute -->
   ```sql title="second"
   SELECT 1;
     SELECT 2
   ```

```properties
a=b
```
"""


def test_blocks_and_their_comments() -> None:
    python, sql = to_run(PAGE)
    assert (python.line, python.body, python.expected) == (8, "x = y\nprint(x)\n", "1\n")
    assert python.given == "y = 1"
    assert (sql.body, sql.run_by) == ("SELECT 1;\n  SELECT 2\n", "connection.execute")
    assert (sql.given, sql.expected) == (None, None)
    (marked,) = [block for block in blocks(PAGE) if block.not_run is not None]
    assert (marked.language, marked.not_run) == ("sh", "it takes an hour")
    assert to_run(PAGE + "<!-- no block is run: others run them -->") == []
    # A comment is for the block just after it, and a reason is needed.
    assert len(to_run("<!-- not run: why -->\ntext\n```sql\n1\n```\n")) == 1
    assert len(to_run("<!-- not run -->\n```sql\n1\n```\n")) == 1


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
