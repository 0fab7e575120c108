"""HTML for values in a notebook: headings, tables and text, inheriting the notebook's colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as _escape

from ackclock.text import printable

MOST_ROWS = 20
"""Maximum number of table rows shown."""


def heading(text: str, beside: str = "") -> str:
    """Return a heading with a short note after it."""
    return f"<p><strong>{escape(text)}</strong>{' · ' + escape(beside) if beside else ''}</p>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, of: int | None = None) -> str:
    """Return a table; the first column is text, the others are numbers.

    Parameters
    ----------
    header, rows
        Header and rows as text.
    of
        Total number of rows, if only some are given.
    """
    align = ["left", *["right"] * (len(header) - 1)]

    def line(tag: str, cells: Sequence[str]) -> str:
        return "".join(f'<{tag} style="text-align:{a}">{escape(c)}</{tag}>' for a, c in zip(align, cells, strict=True))

    shown = rows[:MOST_ROWS]
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in shown)
    rest = (of or len(rows)) - len(shown)
    more = f"<p>and {rest:,} more</p>" if rest > 0 else ""
    return f"<table><thead><tr>{line('th', header)}</tr></thead><tbody>{body}</tbody></table>{more}"


def text(content: str) -> str:
    """Return preformatted lines."""
    return f"<pre>{escape(content)}</pre>"


def escape(content: str) -> str:
    """Return the text with markup escaped and control characters replaced."""
    return _escape(printable(content))
