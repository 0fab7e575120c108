"""Tests for the run report on screens: one, two, twenty and a hundred flows, a phone, a dark scheme, dragging in a
figure.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, Browser, browser
from PIL import Image

import ackclock
from ackclock import report
from ackclock.report.run import page, watched

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

NETWORK = {"bottleneck": {"rate": "20 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}}
FLOWS: dict[int, list[dict[str, Any]]] = {
    1: [{"congestion_control": "cubic"}],
    2: [{"congestion_control": "cubic"}, {"congestion_control": "bbr3", "start": "2 s"}],
    20: [
        {"congestion_control": "cubic", "count": 10, "stagger": "300 ms"},
        {"congestion_control": "reno", "count": 8},
        {"name": "a download with a long name", "congestion_control": "bbr", "count": 2},
    ],
    100: [{"congestion_control": "cubic", "count": 60}, {"congestion_control": "reno", "count": 40}],
}

LOOK = """(() => {
  const box = (e) => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
  return [...document.querySelectorAll(".plot")].map((plot) => ({
    name: plot.closest("[id]").id,
    plot: box(plot),
    area: box(plot.querySelector(".nsewdrag")),
    legend: plot.querySelector(".legend .bg") ? box(plot.querySelector(".legend")) : null,
    texts: [...plot.querySelectorAll("text")].filter((t) => t.textContent.trim() && t.getBoundingClientRect().width)
      .map((t) => ({ box: box(t), size: parseFloat(getComputedStyle(t).fontSize), text: t.textContent })),
    lines: plot.querySelectorAll(".scatterlayer .trace, .barlayer .trace").length,
    range: plot.layout.xaxis.range,
  }));
})()"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for flows, groups in FLOWS.items():
        scenario = ackclock.Scenario.from_dict({"duration": "10 s", "network": NETWORK, "flows": groups})
        run = ackclock.run(watched(scenario))
        made[flows] = report.write(page(run, name=f"{flows}.toml"), folder / f"{flows}.html")
    return made


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def shown(tab: Browser, place: Path, **screen: Any) -> list[dict[str, Any]]:
    tab.open(place, **screen)
    tab.wait("!!document.body.dataset.ready")
    return tab.run(LOOK)


def picture(tab: Browser, name: str, tmp_path: Path) -> np.ndarray[Any, Any]:
    """Return a screenshot of the page as pixels; also saved in the folder SCREENS, if set."""
    folder = Path(os.environ.get("SCREENS", tmp_path))
    folder.mkdir(exist_ok=True)
    file = tab.picture(folder / f"{name}.png")
    return np.asarray(Image.open(io.BytesIO(file.read_bytes())).convert("L"))


EACH_ONCE = {(1, 1200, False), (2, 400, True), (20, 1200, True), (100, 400, False)}
"""Combinations that cover each flow count, width and scheme once; the others are marked `deep`."""

SEEN = [
    pytest.param(*seen, id=f"{seen[0]}-{width}-{scheme}", marks=() if seen in EACH_ONCE else pytest.mark.deep)
    for flows in FLOWS
    for width, px in (("wide", 1200), ("phone", 400))
    for scheme, dark in (("light", False), ("dark", True))
    for seen in [(flows, px, dark)]
]


@pytest.mark.parametrize(("flows", "width", "dark"), SEEN)
def test_every_figure_can_be_read(pages, tab, tmp_path, flows, width, dark):
    plots = shown(tab, pages[flows], width=width, dark=dark)
    pixels = picture(tab, f"report-{flows}-{width}-{'dark' if dark else 'light'}", tmp_path)
    assert tab.run("document.documentElement.scrollWidth") <= width, "nothing stands out to the right"
    assert {"figure-goodput", "figure-rtt", "figure-cwnd", "figure-in_flight", "figure-queue"} <= {
        p["name"] for p in plots
    }
    for plot in plots:
        assert plot["lines"] > 0, plot["name"]
        left, top, right, bottom = plot["plot"]
        assert left >= 0
        assert right <= width
        area = plot["area"]
        assert bottom - area[3] < 70 + 20 * plot["lines"], f"{plot['name']}: empty room below"
        assert area[2] - area[0] > 0.7 * (right - left), f"{plot['name']}: room for curves"
        assert area[3] - area[1] > 110, f"{plot['name']}: room for curves"
        if plot["legend"]:
            axis = next(text["box"] for text in plot["texts"] if text["text"] == "time (s)")
            above, below = plot["legend"][3] <= area[1] + 1, plot["legend"][1] >= axis[3] - 2
            assert above or below, f"{plot['name']}: the legend lies over the curves, or over the axis"
            assert top - 1 <= plot["legend"][1] <= plot["legend"][3] <= bottom + 1, (
                f"{plot['name']}: the legend is cut off"
            )
        for text in plot["texts"]:
            assert text["size"] >= 11, (plot["name"], text)
            assert text["box"][0] >= left - 1, (plot["name"], text)
            assert text["box"][2] <= right + 1, (plot["name"], text)
            assert text["box"][3] <= bottom + 1, (plot["name"], text)
    margins = pixels[:, :4].mean()
    assert margins < 80 if dark else margins > 230


@pytest.mark.parametrize("flows", [pytest.param(1, marks=pytest.mark.deep), 20])
def test_dragging_in_one_figure_moves_the_others_and_a_double_click_brings_all_back(pages, tab, flows):
    plots = shown(tab, pages[flows], width=1200)
    before = [plot["range"] for plot in plots]
    tab.run("document.querySelectorAll('.plot')[1].scrollIntoView({block: 'center'})")
    left, top, right, bottom = tab.run(LOOK)[1]["area"]
    middle = (top + bottom) / 2
    tab.drag(left + 0.3 * (right - left), middle, left + 0.5 * (right - left), middle)
    low, high = before[1]
    wanted = [low + share * (high - low) for share in (0.3, 0.5)]
    tab.wait(
        f"[...document.querySelectorAll('.plot')].every((p) => Math.abs(p.layout.xaxis.range[0] - {wanted[0]}) < 0.1)"
    )
    for plot in tab.run(LOOK):
        assert plot["range"] == pytest.approx(wanted, abs=0.1), plot["name"]
    back = f"[...document.querySelectorAll('.plot')].every((p) => p.layout.xaxis.range[1] > {high} - 1)"
    tab.double_click(left + 50, middle, back)
    for plot, was in zip(tab.run(LOOK), before, strict=True):
        # the time-sequence graph first shows the first recovery, and can return to the whole run
        whole = before[0] if plot["name"].startswith("figure-sequence") else was
        assert plot["range"] == pytest.approx(whole, abs=0.6), plot["name"]


def test_a_hundred_flows_stay_small(pages):
    for flows, place in pages.items():
        assert place.stat().st_size < 2_600_000, flows
