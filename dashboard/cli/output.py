"""What commands print: tables that align, JSON that any program reads.

On a terminal a table is coloured and folded to its width; in a pipe or a file it is plain and never cut.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from .errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_UNCUT: Final = 10_000
"""Width for a reader that is no terminal: wider than any row, so that nothing is folded or cut."""

_FOLDED: Final = 12
"""Width down to which a column of text is folded; a narrower one cannot be read."""

Columns = Sequence[tuple[str, Literal["left", "right"]]]
"""Heading and alignment of each column, from left to right."""


def print_json(value: Any) -> None:
    """Print *value* as indented JSON with a newline; text that UTF-8 cannot carry is escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a lone surrogate out of a recording
        data = json.dumps(value, indent=2, allow_nan=False).encode()
    click.echo(data)


def console(*, stderr: bool = False) -> Console:
    """Return a console on standard output (or standard error) as it is at this moment."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else _UNCUT
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def is_terminal() -> bool:
    """Return whether a person looks at standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def table(columns: Columns, rows: Iterable[Sequence[object]], *, title: str | None = None) -> RenderableType:
    """Return a table of *rows*; cells are shown as they are, control characters made visible.

    On a terminal too narrow for its columns each row becomes a few lines of its own, so that nothing is cut.

    Args:
        columns: heading and alignment, from left to right.
        rows: one sequence of cells a row; ``None`` is shown as a dash.
        title: a line above the table.
    """
    cells = [["-" if cell is None else one_line(str(cell)) for cell in row] for row in rows]
    return _Fitted(columns, cells, title)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """Rows that decide when they are printed how they fit the screen.

    Args:
        columns: heading and alignment, from left to right.
        rows: the cells as text.
        title: a line above.
    """

    columns: Columns
    rows: Sequence[Sequence[str]]
    title: str | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._least_width() <= options.max_width:
            yield self._as_table()
            return
        if self.title is not None:
            yield self._line(self.title)
        for first, *others in self.rows:
            headings = (heading for heading, _ in self.columns[1:])
            facts = [f"{heading} {cell}" for heading, cell in zip(headings, others, strict=True) if cell]
            yield self._line(first)
            if facts:
                yield self._line(", ".join(facts), indent=2)

    def _least_width(self) -> int:
        from rich.cells import cell_len

        widths = [cell_len(heading) for heading, _ in self.columns]
        for row in self.rows:
            widths = [max(width, cell_len(cell)) for width, cell in zip(widths, row, strict=True)]
        least = (
            min(width, _FOLDED) if align == "left" else width
            for width, (_, align) in zip(widths, self.columns, strict=True)
        )
        return sum(least) + 2 * len(self.columns) + 1

    def _as_table(self) -> RenderableType:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        shown = Table(
            title=self.title,
            title_justify="left",
            title_style="bold",
            header_style="bold",
            box=box.SIMPLE_HEAD if is_terminal() else None,
            pad_edge=False,
            padding=(0, 1, 0, 0) if is_terminal() else (0, 1),
        )
        for heading, align in self.columns:
            shown.add_column(heading, justify=align, overflow="fold", no_wrap=align == "right")
        for row in self.rows:
            shown.add_row(*map(Text, row))
        return shown

    def _line(self, text: str, *, indent: int = 0) -> RenderableType:
        from rich.padding import Padding
        from rich.text import Text

        return Padding(Text(text, overflow="fold"), (0, 0, 0, indent))
