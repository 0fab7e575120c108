"""Run tables for the terminal. On other outputs they are drawn without rich, because importing it takes longer
than a short run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

__all__ = ["SHOWN", "Sheet", "plain"]

SHOWN = 20
"""Maximum number of table rows on the terminal."""


class Sheet:
    """A table with a left-aligned first column. The other columns contain numbers and are right-aligned.

    Parameters
    ----------
    title
        Title above the table.
    heads
        Names of the columns.
    narrow
        Whether the terminal is narrow: headings take two lines, frames are left out.
    """

    def __init__(self, title: str, heads: Sequence[str], *, narrow: bool) -> None:
        self.title = title
        self.heads = tuple(heads)
        self.narrow = narrow
        self.rows: list[tuple[str, ...]] = []
        self.remarks: list[str] = []

    def add_row(self, *cells: str) -> None:
        """Add a row."""
        self.rows.append(cells)

    def say(self, what: str) -> None:
        """Add a note below the table."""
        if what:
            self.remarks.append(what)

    @property
    def caption(self) -> str:
        """The notes below the table."""
        return "; ".join(self.remarks)

    @property
    def width(self) -> int:
        """Width in characters if no cell wraps."""
        wide = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        return sum(wide) + 3 * len(wide) + 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table for a terminal. If it is too wide, the columns are split over several tables, each with the row names."""
        if not self.narrow:
            yield self._table(range(1, len(self.heads)), named=0, title=self.title, caption=self.caption)
            return
        named, parts = self._parts(options.max_width)
        for i, part in enumerate(parts):
            yield self._table(part, named=named, title="" if i else self.title, caption="")
        yield self.caption

    def _parts(self, width: int) -> tuple[int, list[list[int]]]:
        """Return the width of the row names, and the columns of each table."""
        wide = [
            max(len(line) for cell in (_two(head), *cells) for line in cell.split("\n")) + 2
            for head, *cells in zip(self.heads, *self.rows, strict=True)
        ]
        width -= 1  # right frame
        named = min(wide[0], width // 3)
        parts: list[list[int]] = [[]]
        for i in range(1, len(wide)):
            if parts[-1] and named + sum(wide[j] for j in parts[-1]) + wide[i] > width:
                parts.append([])
            parts[-1].append(i)
        return named - 2, parts

    def _table(self, columns: Sequence[int], *, named: int, title: str, caption: str) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(title=title or None, title_justify="left", caption=caption or None, caption_justify="left")
        if self.narrow:
            table.box, table.padding, table.pad_edge = box.SIMPLE_HEAD, (0, 1, 0, 0), False
        # names may wrap, numbers may not
        table.add_column(self.heads[0], no_wrap=False, overflow="fold", min_width=named)
        for i in columns:
            head = _two(self.heads[i]) if self.narrow else self.heads[i]
            table.add_column(head, justify="right", no_wrap=True, overflow="fold")
        for row in self.rows:
            table.add_row(row[0], *(row[i] for i in columns))
        return table

    def lines(self, width: int) -> list[str] | None:
        """Return the lines drawn by rich at this width, without trailing blanks; None if it would have to wrap a
        cell.
        """
        texts = (*self.heads, *(cell for row in self.rows for cell in row))
        if self.narrow or not self.title or not self.rows or not all(map(_simple, texts)):
            return None
        wide = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        whole = self.width
        around = [text for text in (self.title, self.caption) if text]
        if whole > width or any(len(text) > whole or not _simple(text) for text in around):
            return None

        def line(side: str, cells: Sequence[str]) -> str:
            put = [c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(cells, wide, strict=True))]
            return f"{side} {f' {side} '.join(put)} {side}"

        def edge(left: str, along: str, joint: str, right: str) -> str:
            return left + joint.join(along * (w + 2) for w in wide) + right

        drawn = [self.title, edge("┏", "━", "┳", "┓"), line("┃", self.heads), edge("┡", "━", "╇", "┩")]
        drawn += [*(line("│", row) for row in self.rows), edge("└", "─", "┴", "┘")]
        return [text.rstrip() for text in (*drawn, *around[1:])]


def _two(head: str) -> str:
    """Return a heading split over two lines."""
    return "\n".join(head.replace("retransmitted", "retrans- mitted").rsplit(" ", 1))


def plain(parts: Sequence[Any], width: int) -> str | None:
    """Return the text that rich would print for these parts without a terminal; None if only rich can print them."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Sheet):
            drawn = part.lines(width)
        else:
            drawn = [part.rstrip()] if isinstance(part, str) and len(part) <= width and _simple(part) else None
        if drawn is None:
            return None
        lines += drawn
    return "\n".join(lines)


def _simple(text: str) -> bool:
    """Return whether the text is one line of single-width characters: Latin letters and our few symbols."""
    return text.isprintable() and (text.isascii() or all(sign < "\u0300" or sign in "–→←" for sign in text))
