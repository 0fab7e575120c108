"""The content of a figure: its message, its drawing, and its data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from ackclock._files import parquet
from ackclock.plot.style import INSTALL, drawable, plain, saved, styled
from ackclock.text import csv

CSV_ROWS = 20_000
"""Maximum number of rows of a table written as CSV; larger tables are Parquet."""

FORMATS = ("pdf", "png", "svg")
"""File formats in the order of drawing: the first one computes the layout."""

ABSENT = f"The figure is not drawn, because matplotlib is not installed. To have it, type: {INSTALL}"
"""Placeholder line for a figure that cannot be drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A figure, not yet drawn.

    Parameters
    ----------
    name
        Stem of its files.
    title
        The message of the figure, as a short sentence.
    caption
        What the figure shows, and how to read it.
    draw
        Function that returns a matplotlib figure.
    data
        The numbers, as one table or several by name.
    interactive
        Function that returns the figure for plotly (`data`, `layout`); None if there is none.
    rc
        Settings of matplotlib on top of the package's own.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Any] = field(repr=False)
    data: Mapping[str, pl.DataFrame] = field(repr=False)
    interactive: Callable[[], dict[str, Any]] | None = field(default=None, repr=False)
    rc: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def render(self, formats: Collection[str] = FORMATS) -> dict[str, bytes]:
        """Draw once, and return the file in each requested format ("pdf", "png", "svg"); none without matplotlib."""
        files: dict[str, bytes] = {}
        if not drawable():
            return files
        with styled(self.rc):
            drawn = plain(self.draw())
            for kind in (one for one in FORMATS if one in formats):
                files[kind] = saved(drawn, kind)
                # keeps the layout computed for the first format
                drawn.set_layout_engine(None)
        return files

    def svg(self) -> str:
        """Return the figure as SVG for embedding in a page, without the header lines of a file."""
        with styled(self.rc):
            text = saved(plain(self.draw()), "svg").decode()
        return text[text.index("<svg") :]

    def _repr_html_(self) -> str:
        """HTML for notebooks: heading, picture on white regardless of the notebook's colours, caption."""
        if drawable():
            picture = f'<div style="background:white;display:inline-block;max-width:100%">{self.svg()}</div>'
        else:
            picture = f"<p>{escape(ABSENT)}</p>"
        return f"<p><strong>{escape(self.title)}</strong></p>{picture}<p>{escape(self.caption)}</p>"

    def write(self, folder: str | Path, formats: Collection[str] = FORMATS) -> dict[str, bytes]:
        """Write `name.pdf`, `name.png` and `name.svg`, or some of them, together with the data; without matplotlib only the data.

        Parameters
        ----------
        folder
            Created if absent.
        formats
            Formats to write.

        Returns
        -------
        dict
            Files by format, as from `render`.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = self.render(formats)
        for kind, content in files.items():
            (folder / f"{self.name}.{kind}").write_bytes(content)
        for key, table in self.data.items():
            stem = self.name if len(self.data) == 1 else f"{self.name}-{key}"
            if table.height > CSV_ROWS:
                parquet(table, folder / f"{stem}.parquet")
            else:
                (folder / f"{stem}.csv").write_text(csv(table), encoding="utf-8")
        return files
