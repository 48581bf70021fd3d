"""What the results of calls have in common: a verdict, and how they are shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from iceberg_writer_compat import _html, _text


class Result(ABC):
    """The result of a call on a table, with a short `repr`, a text, and HTML for notebooks."""

    # The table; None if the call was about the new tables of the session.
    table: str | None

    @property
    @abstractmethod
    def verdict(self) -> str:
        """The verdict in one line."""

    def _details(self) -> Iterable[tuple[str, str]]:
        """What else there is to know, each with its name; empty texts are left out."""
        return ()

    def _subject(self) -> str:
        return "new tables of the session" if self.table is None else self.table

    def __repr__(self) -> str:
        """The verdict; `str` has everything."""
        return f"<{type(self).__name__} {self._subject()}: {self.verdict}>"

    def __str__(self) -> str:
        """The result as text."""
        return _text.result(self._subject(), self.verdict, self._shown())

    def _repr_html_(self) -> str:
        return _html.result(self._subject(), self.verdict, self._shown())

    def _shown(self) -> list[tuple[str, str]]:
        return [(name, text) for name, text in self._details() if text]
