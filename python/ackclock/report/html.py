"""Writes a page as one self-contained HTML file: figures and scripts are included."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _files, _link
from ackclock.plot import Figure
from ackclock.plot.figure import ABSENT
from ackclock.report import packed
from ackclock.report.page import Live, Page, Prose, Section, Table
from ackclock.text import printable

if TYPE_CHECKING:
    from jinja2 import Template

Drawn = Mapping[str, bytes]
"""SVG of figures that have already been drawn, by name."""


def write(page: Page, path: str | Path, *, drawn: Drawn | None = None, what: str = "") -> Path:
    """Write `page`.

    Parameters
    ----------
    page
        The report.
    path
        The file.
    drawn
        Figures that do not need to be drawn again.
    what
        Option and name, for messages; "": the name.

    Returns
    -------
    Path
        The same path.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return _files.write(path, render(page, drawn=drawn), what or str(path))


def render(page: Page, *, drawn: Drawn | None = None) -> str:
    """Return the HTML text; the arguments are those of `write`."""
    from markupsafe import Markup

    live = any(isinstance(b, Live) for s in page.sections for b in s.blocks)
    interactive = live or any(f.interactive for f in page.figures)
    whole = _template().render(
        page=page,
        opening=None if page.opening is None else _figure(page.opening, drawn or {}),
        sections=[_section(s, drawn or {}, short=page.short) for s in page.sections],
        plotly=Markup(packed.plotly()) if interactive else "",
        notices=packed.notices() if interactive else "",
        unpack=Markup(packed.SCRIPT),
        links={
            name: _link.made(toml, page.facts.get("seed", "1")) for name, toml in page.scenarios.items() if in_lab(toml)
        },
    )
    return printable(whole)  # the template's own text is printable anyway


@cache
def _template() -> Template:
    """Return the compiled template, which is cached: compiling takes longer than filling it in."""
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined

    source = files("ackclock.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source)


def in_lab(toml: str) -> bool:
    """Return whether the lab can run the scenario: it refers to no files and uses no foreign stack."""
    return (
        ".py:" not in toml
        and '.c"' not in toml
        and '"custom:' not in toml
        and '"mahimahi"' not in toml
        and _link.runs_in_page(toml)
    )


def _section(section: Section, drawn: Drawn, *, short: bool) -> dict[str, Any]:
    from markupsafe import Markup

    blocks: list[dict[str, Any]] = []
    for block in section.blocks:
        if isinstance(block, Figure):
            blocks.append({"kind": "figure", **_figure(block, drawn)})
        elif isinstance(block, Live):
            about = {"name": block.name, "title": block.title, "caption": block.caption, "image": None, "absent": ""}
            blocks.append({"kind": "figure", **about, "data": _data(block.figure())})
        elif isinstance(block, Table):
            blocks.append({"kind": "table", "table": block})
        else:
            assert isinstance(block, Prose)
            blocks.append({"kind": "prose", "html": Markup(block.html)})
    shown = section.shown if short else len(blocks)
    return {
        "title": section.title,
        "anchor": section.anchor,
        "blocks": blocks[:shown],
        "folded": blocks[shown:],
        "claims": section.claims,
    }


def _figure(figure: Figure, drawn: Drawn) -> dict[str, Any]:
    source = drawn[figure.name] if figure.name in drawn else figure.render().get("svg")
    image = None if source is None else f"data:image/svg+xml;base64,{base64.b64encode(source).decode()}"
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "image": image,
        "absent": "" if image else ABSENT,
        "data": None if figure.interactive is None else _data(figure.interactive()),
    }


def _data(figure: Mapping[str, Any]) -> Any:
    from markupsafe import Markup

    strange = {trace.get("type", "scatter") for trace in figure["data"]} - packed.KINDS
    assert not strange, f"invariant: the drawing library knows {sorted(packed.KINDS)}, not {sorted(strange)}"
    return Markup(packed.pack(json.dumps(figure, separators=(",", ":"), allow_nan=False)))
