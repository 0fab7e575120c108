"""Helpers for tests that open the lab's page in a browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from conftest import ROOT

from ackclock import _engine, load
from ackclock.cli._lab import PAGE

SCENARIOS = ROOT / "python" / "ackclock" / "_scenarios"
FIRST = (SCENARIOS / "first.toml").read_text(encoding="utf-8")
NODE = shutil.which("node")

built = pytest.mark.skipif(not PAGE.is_file(), reason="the lab was not built: `make lab`")
node = pytest.mark.skipif(NODE is None, reason="node is not installed")
chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


def module_of(folder: Path) -> Path:
    """Write the module embedded in the page to a file in this folder."""
    held = re.search(r'<script type="text/plain" id="module">([^<]+)</script>', PAGE.read_text(encoding="utf-8"))
    assert held is not None
    path = folder / "lab.wasm"
    path.write_bytes(gzip.decompress(base64.b64decode(held[1])))
    return path


def opened(tab: Browser, page: Path = PAGE, *, behind: str = "", width: int = 1280) -> Browser:
    """Open the page, and wait for the end of its first run."""
    tab.ask("Page.navigate", url="about:blank")
    tab.open(page, width=width)
    if behind:
        tab.run(f"location.hash = {json.dumps(behind)}")
    tab.wait("document.body.dataset.drawn !== undefined")
    return tab


def text(tab: Browser, selector: str) -> str:
    return tab.run(f"document.querySelector({json.dumps(selector)}).textContent")


def write(tab: Browser, value: str) -> None:
    """Replace the editor's text with another scenario, as a paste would."""
    tab.run("at('text').focus(); at('text').select()")
    tab.ask("Input.insertText", text=value)


def native(value: str, tmp_path: Path, seed: int = 1) -> str:
    """Return the digest of the native engine."""
    (tmp_path / "native.toml").write_text(value, encoding="utf-8")
    return _engine.run(load(tmp_path / "native.toml").to_engine_json(), seed)["digest"]
