"""A figure as a value: its statement, its drawing, and its data."""

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
"""Tables with more rows than this are written as Parquet."""

FORMATS = ("pdf", "png", "svg")
"""Imported in this order: the first one computes the layout."""

ABSENT = f"The figure is not drawn, because matplotlib is not installed. To have it, type: {INSTALL}"
"""Line in a figure's place where nothing can draw it."""


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
        What is shown, and how to read it.
    draw
        Returns a matplotlib figure.
    data
        The numbers, as one table or several by name.
    interactive
        Returns the same as an interactive plotly figure (`data`, `layout`), if there is one.
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
        """Draw once, and return the file in each of these formats, some of "pdf", "png", "svg"; none without matplotlib."""
        files: dict[str, bytes] = {}
        if not drawable():
            return files
        with styled(self.rc):
            drawn = plain(self.draw())
            for kind in (one for one in FORMATS if one in formats):
                files[kind] = saved(drawn, kind)
                # The layout is computed by the first format, and stays.
                drawn.set_layout_engine(None)
        return files

    def svg(self) -> str:
        """Draw it as SVG to be embedded in a page: without the header lines of a file."""
        with styled(self.rc):
            text = saved(plain(self.draw()), "svg").decode()
        return text[text.index("<svg") :]

    def _repr_html_(self) -> str:
        """For notebooks: heading, picture on white whatever the notebook's colours are, caption."""
        if drawable():
            picture = f'<div style="background:white;display:inline-block;max-width:100%">{self.svg()}</div>'
        else:
            picture = f"<p>{escape(ABSENT)}</p>"
        return f"<p><strong>{escape(self.title)}</strong></p>{picture}<p>{escape(self.caption)}</p>"

    def write(self, folder: str | Path, formats: Collection[str] = FORMATS) -> dict[str, bytes]:
        """Write `name.pdf`, `name.png` and `name.svg`, or some of them, and the data beside them; without matplotlib the data alone.

        Parameters
        ----------
        folder
            Created if absent.
        formats
            Those wanted.

        Returns
        -------
        dict
            What `render` returns.
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
