"""The texts of rules and conditions, as they are in the jar: nothing here starts a JVM."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import Any

from iceberg_writer_compat import _jars
from iceberg_writer_compat.exceptions import UnknownRuleError
from iceberg_writer_compat.report import ConditionText, RuleText

_RULES = "iceberg-writer-compat-rules.json"
_CONDITIONS = "error/iceberg-writer-compat-conditions.json"


@cache
def rules() -> tuple[RuleText, ...]:
    """All rules."""
    return tuple(map(RuleText.from_dict, _resource(_RULES)))


@cache
def conditions() -> tuple[ConditionText, ...]:
    """All conditions of errors, with their sub-conditions."""
    return tuple(_conditions())


def _conditions() -> Iterator[ConditionText]:
    for name, condition in _resource(_CONDITIONS).items():
        state, before = condition["sqlState"], "\n".join(condition["message"])
        yield ConditionText(name, state, before)
        for sub, text in condition.get("subClass", {}).items():
            yield ConditionText(f"{name}.{sub}", state, "\n".join([before, *text["message"]]))


def rule(wanted: str) -> RuleText:
    """The rule with this id, in letters of any case."""
    for text in rules():
        if text.rule.lower() == wanted.lower():
            return text
    raise UnknownRuleError(
        f"There is no rule {wanted}. The rules are: {', '.join(text.rule for text in rules())}"
    )


def named(wanted: str) -> list[RuleText | ConditionText]:
    """The rule with this id, or the conditions of this name, which may be the last part alone."""
    name = wanted.strip("[]").upper()
    found: list[RuleText | ConditionText] = [r for r in rules() if r.rule.upper() == name]
    found += [
        condition
        for condition in conditions()
        if name in (condition.condition, condition.condition.split(".")[-1])
        or condition.condition.startswith(f"{name}.")
    ]
    if not found:
        raise UnknownRuleError(
            f"There is no rule and no condition {wanted}. The rules are: "
            f"{', '.join(text.rule for text in rules())}. A condition stands in brackets at the "
            "beginning of an error."
        )
    return found


def _resource(name: str) -> Any:
    with zipfile.ZipFile(_jars.any_jar()) as jar:
        return json.loads(jar.read(name))
