"""A figure as a value: what it shows, how it is drawn, and its data."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ackclock.plot.style import styled

CSV_ROWS = 20_000
"""Tables with more rows than this are written as Parquet."""


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
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Any] = field(repr=False)
    data: Mapping[str, pl.DataFrame] = field(repr=False)
    interactive: Callable[[], dict[str, Any]] | None = field(default=None, repr=False)

    def render(self) -> dict[str, bytes]:
        """Draw once, and return the file in each format: "pdf", "png", "svg"."""
        files = {}
        with styled():
            drawn = self.draw()
            for kind, options in _FORMATS.items():
                buffer = io.BytesIO()
                drawn.savefig(buffer, format=kind, **options)
                files[kind] = buffer.getvalue()
                # The layout is computed by the first format, and stays.
                drawn.set_layout_engine("none")
        return files

    def write(self, folder: str | Path) -> dict[str, bytes]:
        """Write `name.pdf`, `name.png` and `name.svg`, and the data beside them.

        Parameters
        ----------
        folder
            Created if absent.

        Returns
        -------
        dict
            What `render` returns.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        files = self.render()
        for kind, content in files.items():
            (folder / f"{self.name}.{kind}").write_bytes(content)
        for key, table in self.data.items():
            stem = self.name if len(self.data) == 1 else f"{self.name}-{key}"
            if table.height > CSV_ROWS:
                table.write_parquet(folder / f"{stem}.parquet")
            else:
                table.write_csv(folder / f"{stem}.csv")
        return files


# Without dates, so that equal numbers make equal files.
_FORMATS: dict[str, dict[str, Any]] = {
    "pdf": {"metadata": {"CreationDate": None}, "dpi": 200},
    "png": {"dpi": 200},
    "svg": {"metadata": {"Date": None}, "dpi": 200},
}
