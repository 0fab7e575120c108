"""Tests for printed pages, in Chromium: figures without delay, complete tables, no licences."""

from __future__ import annotations

import base64
import random
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser, browser

import ackclock
from ackclock.report import packed
from ackclock.report.html import write
from ackclock.report.run import page, watched

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page") / "run.html"
    scenario = ackclock.load("dumbbell-10").set_all({"duration": "4 s"})
    return write(page(ackclock.run(watched(scenario)), name="dumbbell-10.toml"), place)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


def test_what_is_packed_comes_back_in_the_browser(tab: Browser, tmp_path: Path) -> None:
    """Deflate blocks of all types (stored, fixed codes, dynamic codes), overlapping matches, and multi-byte characters."""
    rng = random.Random(1)
    texts = ["", "a", "windows over time" * 3, "ab" * 5000, "µs – ∞ 窓 " * 400, "".join(chr(rng.randrange(32, 1000)) for _ in range(50_000))]  # fmt: skip
    kinds = [
        (level, plan) for level in (0, 1, 9) for plan in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY)
    ]
    held, expected = [], []
    for text in texts:
        for level, plan in kinds:
            deflate = zlib.compressobj(level, zlib.DEFLATED, 15, 9, plan)
            data = deflate.compress(text.encode()) + deflate.flush()
            letters = base64.b85encode(data).decode().translate(packed._SAFE)
            held.append(f'<script type="text/plain" id="t{len(held)}">{letters}</script>')
            expected.append(text)
    place = tmp_path / "packed.html"
    place.write_text(
        f'<!doctype html><meta charset="utf-8">{"".join(held)}<script>{packed.SCRIPT}</script>', encoding="utf-8"
    )
    tab.open(place, width=1000)
    for i, text in enumerate(expected):
        assert tab.run(f'unpack("t{i}")') == text, (i, text[:20])


def test_figures_are_there_when_the_page_is_loaded(report: Path, tmp_path: Path) -> None:
    """`--print-to-pdf` and `--dump-dom` capture the page when its load event fires."""
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, "--dump-dom", report.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    drawn, asked = done.stdout.count('data-drawn="yes"'), report.read_text(encoding="utf-8").count('class="plot"')
    assert drawn == asked > 5
    assert done.stdout.count('class="cartesianlayer"') >= asked


def test_paper_holds_whole_tables_and_no_licences(report: Path, tab: Browser, tmp_path: Path) -> None:
    tab.open(report, width=1280)
    tab.wait("document.body.dataset.ready === 'yes'")
    tab.run("window.dispatchEvent(new Event('beforeprint'))")
    tab.ask("Emulation.setEmulatedMedia", media="print")
    tab.ask("Emulation.setDeviceMetricsOverride", width=640, height=900, deviceScaleFactor=1, mobile=False)
    assert tab.run("document.querySelector('.licences').offsetParent === null") is True
    wide = tab.run(
        "Math.max(...[...document.querySelectorAll('table, .plot .main-svg, pre')].map((t) => t.getBoundingClientRect().right))"
    )
    assert wide <= 641
    assert tab.run("document.querySelectorAll('table td').length") > 100
    tab.ask("Emulation.setEmulatedMedia", media="")
    tab.run("window.dispatchEvent(new Event('afterprint'))")


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not installed")
def test_the_pdf_has_the_figures_axes_and_the_last_column(report: Path, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    place = tmp_path / "run.pdf"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    subprocess.run([*command, f"--print-to-pdf={place}", report.as_uri()], capture_output=True, check=True, timeout=120)
    text = subprocess.run(["pdftotext", "-layout", place, "-"], capture_output=True, text=True, check=True).stdout
    assert text.count("time (s)") >= 6
    assert "longest" in text  # from "longest wait", the last column of the links
    assert "Permission is hereby granted" not in text
