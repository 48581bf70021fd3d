"""How commands write: the format and place of a result, lines as they come, colour, progress."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

Run: TypeAlias = Callable[..., int]

_STANDARD_OUTPUT = "-"
_FORMATS = {".txt": "text", ".json": "json", ".html": "html", ".htm": "html"}


@dataclass(frozen=True)
class Output:
    """In which format a result is written, and where."""

    form: str
    file: str = _STANDARD_OUTPUT

    @property
    def is_read_at_once(self) -> bool:
        """Whether somebody can read a part of the result before the rest is there."""
        return self.form == "text" and self.file == _STANDARD_OUTPUT

    def write(self, content: str) -> bool:
        """Writes a result; returns false if that failed."""
        if self.file == _STANDARD_OUTPUT:
            echo(content) if self.form == "text" else click.echo(content)
            return True
        try:
            Path(self.file).write_text(content + "\n", encoding="utf-8")
        except OSError as error:
            click.echo(f"{self.file} could not be written: {error.strerror}", err=True)
            return False
        return True


def output_options(*formats: str) -> Callable[[Run], Run]:
    """The options --format and --output, which a command gets as the argument `output`."""
    suffixes = [suffix for suffix in (".txt", ".json", ".html") if _FORMATS[suffix] in formats]

    def add(run: Run) -> Run:
        run = click.option(
            "--output",
            type=click.Path(dir_okay=False, writable=True, allow_dash=True),
            metavar="FILE",
            callback=_output,
            help="Write the result to FILE instead of standard output, in the format of its "
            f"suffix ({', '.join(suffixes)}).",
        )(run)
        return click.option(
            "--format",
            "_format",
            type=click.Choice(formats),
            is_eager=True,
            expose_value=False,
            callback=_remember_format,
            help="The format of the result. By default that of the suffix of FILE, or text.",
        )(run)

    return add


def _remember_format(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    assert isinstance(parameter.type, click.Choice)
    context.meta["format"], context.meta["formats"] = value, parameter.type.choices


def _output(context: click.Context, _parameter: click.Parameter, file: str | None) -> Output:
    form: str | None = context.meta["format"]
    formats = context.meta["formats"]
    if file is None or file == _STANDARD_OUTPUT:
        return Output(form or "text")
    if file in _FORMATS.values() and form is None:
        raise click.BadParameter(
            f"{file!r} is the name of a file here. Use --format {file} for the format, and "
            f"--output for the file, such as --output report.{file}."
        )
    guessed = _FORMATS.get(Path(file).suffix.lower())
    if (form or guessed) not in formats:
        known = ", ".join(formats)
        raise click.BadParameter(
            f"The format of {file!r} is not known. Use --format with one of: {known}."
        )
    if not Path(file).absolute().parent.is_dir():
        raise click.BadParameter(f"There is no folder for {file!r}.")
    return Output(str(form or guessed), file)


# --- colour ---------------------------------------------------------------------------------------

_COLOURS = (
    # The verdict of a table, and those of rules.
    (re.compile(r"^(\S.*: )(not compliant|this would break the rules|failed)\b", re.M), "red"),
    (re.compile(r"^(\S.*: )(not enabled)\b", re.M), "yellow"),
    (re.compile(r"^(\S.*: )(compliant|this would break no rule)\b", re.M), "green"),
    (re.compile(r"^(\S.*: )(icebergWriterCompatV1 is on)\b", re.M), "green"),
    (re.compile(r"^(  [A-Z]\d+\S* )(error)\b", re.M), "red"),
    (re.compile(r"^(  [A-Z]\d+\S* )(warning)\b", re.M), "yellow"),
    (re.compile(r"^()(  what to do)$", re.M), "bold"),
)


def is_terminal() -> bool:
    """Whether somebody looks at standard output while it is written."""
    return sys.stdout.isatty()


def echo(text: str) -> None:
    """Prints text for people, with colour on a terminal unless NO_COLOR is set."""
    # https://no-color.org; click removes colour where the output is no terminal.
    if is_terminal() and not os.environ.get("NO_COLOR"):
        for pattern, colour in _COLOURS:
            style: dict[str, Any] = {"bold": True} if colour == "bold" else {"fg": colour}

            def styled(found: re.Match[str], style: dict[str, Any] = style) -> str:
                return found[1] + click.style(found[2], **style)

            text = pattern.sub(styled, text)
    click.echo(text, nl=bool(text))


# --- lines and progress ---------------------------------------------------------------------------


class Lines:
    """Prints the texts of many tables: on a terminal as they come, elsewhere in their order."""

    def __init__(self, as_they_come: bool, between: str = "") -> None:
        self._waiting: dict[int, str] = {}
        self._printed: set[int] = set()
        self._before, self._between = "", between
        self._as_they_come = as_they_come

    def put(self, number: int, text: str) -> None:
        """Takes the text of a table, which is printed once, and not at all if it is empty."""
        if number in self._printed or number in self._waiting:
            return
        self._waiting[number] = text
        if self._as_they_come:
            self._print(number)
        else:
            while (next_ := len(self._printed)) in self._waiting:
                self._print(next_)

    def end(self) -> None:
        """Prints what waits for tables that have not been looked at."""
        for number in sorted(self._waiting):
            self._print(number)

    def _print(self, number: int) -> None:
        text = self._waiting.pop(number)
        self._printed.add(number)
        if text:
            echo(self._before + text)
            self._before = self._between


class Counter:
    """Counts tables: a bar on a terminal, plain lines elsewhere if those are asked for."""

    def __init__(self, names: Sequence[str], bar: Progress | None, prints: bool) -> None:
        self._total = len(names)
        self._bar = bar
        what = names[0] if self._total == 1 else "tables"
        self._task = None if bar is None else bar.add_task(what, total=self._total)
        self._prints = prints
        self._done = 0
        self._lock = threading.Lock()

    def done(self, what: str) -> None:
        """Counts one more."""
        with self._lock:
            self._done += 1
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, description=what, advance=1)
            elif self._prints:
                click.echo(f"{self._done}/{self._total} {what}", err=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Takes the bar away while something else is printed."""
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
            try:
                yield
            finally:
                if self._bar is not None:
                    self._bar.start()


@contextmanager
def counting(names: Sequence[str], prints: bool, quiet: bool) -> Iterator[Counter]:
    """Shows how many tables are done.

    Args:
        names: The tables.
        prints: Whether to print a line for each where standard error is no terminal.
        quiet: Whether something else is written to the terminal, such as Spark's log.
    """
    if not sys.stderr.isatty() or quiet:
        yield Counter(names, None, prints and len(names) > 1)
        return
    with _bar(BarColumn(), MofNCompleteColumn()) as bar:
        yield Counter(names, bar, prints)


@contextmanager
def spinning(what: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Shows on a terminal that something is being done; yields what tells the next step."""
    if not sys.stderr.isatty() or quiet:
        yield lambda _next: None
        return
    with _bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda next_: bar.update(task, description=next_)


@contextmanager
def _bar(*columns: Any) -> Iterator[Progress]:
    # File descriptor 2 is redirected for the JVM; progress needs the terminal itself.
    with os.fdopen(os.dup(2), "w") as terminal:
        shown = [SpinnerColumn(), TextColumn("{task.description}", markup=False), *columns]
        with Progress(*shown, console=Console(file=terminal), transient=True) as bar:
            yield bar
