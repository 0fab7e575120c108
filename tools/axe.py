"""Checks pages with axe-core, the accessibility engine behind browsers' own tools: light and dark, on a wide screen and
on a phone, with everything unfolded.

    python tools/axe.py PAGE...    # HTML files; needs Chromium, and npm the first time

Exit code 1 if a finding is serious or critical. axe-core (MPL-2.0) is a development tool: npm installs it into
.venv/axe, its hash is verified, and no part of it is shipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

VERSION = "4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""Version of axe-core, and hash of its axe.min.js."""

PLACE = ROOT / ".venv" / "axe" / f"axe-{VERSION}.min.js"
GRAVE = ("serious", "critical")
WIDTHS = (1280, 390)
SCHEMES = {"light": False, "dark": True}

LOOK = """(async () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  const plots = [...document.querySelectorAll(".plot[data-for]")];
  for (let n = 0; n < 100 && plots.some((plot) => !plot.firstChild); n++) await new Promise((done) => setTimeout(done, 50));
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return JSON.stringify(found.violations.map((one) => ({ rule: one.id, impact: one.impact, says: one.help, nodes: one.nodes.map((node) => ({
    at: node.target.join(" "), html: node.html.slice(0, 200), why: [...node.any, ...node.all, ...node.none].map((check) => check.message).join("; ") })) })));
})()"""


class Finding(NamedTuple):
    """A rule violated by a page: its severity, and the elements."""

    page: str
    look: str
    rule: str
    impact: str
    says: str
    nodes: Sequence[dict[str, str]]

    @property
    def grave(self) -> bool:
        return self.impact in GRAVE


def main() -> int:
    from browser import CHROMIUM

    pages = [Path(name) for name in sys.argv[1:]]
    absent = [str(page) for page in pages if not page.is_file()]
    if not pages or absent:
        print(f"axe: found no page {', '.join(absent)}; allowed: HTML files", file=sys.stderr)
        return 2
    if CHROMIUM is None:
        print("axe: needs Chromium", file=sys.stderr)
        return 3
    found = list(findings(pages, script()))
    for line in told(found):
        print(line)
    grave = sum(one.grave for one in found)
    print(
        f"axe-core {VERSION}: {len(pages)} pages, {len(WIDTHS) * len(SCHEMES)} looks each; {len(found)} findings, {grave} serious or critical"
    )
    return 1 if grave else 0


def script(*, load: bool = True) -> str:
    """axe-core itself, fetched from npm first if allowed."""
    if not PLACE.is_file():
        if not load:
            raise FileNotFoundError(PLACE)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["npm", "pack", "--silent", f"axe-core@{VERSION}"], cwd=folder, check=True, stdout=subprocess.DEVNULL
            )
            with tarfile.open(Path(folder) / f"axe-core-{VERSION}.tgz") as archive:
                file = archive.extractfile("package/axe.min.js")
                assert file is not None
                text = file.read()
        compared(text)
        PLACE.parent.mkdir(parents=True, exist_ok=True)
        PLACE.write_bytes(text)
    return compared(PLACE.read_bytes())


def compared(text: bytes) -> str:
    if (found := hashlib.sha256(text).hexdigest()) != SHA256:
        raise SystemExit(f"axe: found the hash {found}; SHA256 in tools/axe.py is {SHA256}")
    return text.decode()


def findings(pages: Sequence[Path], axe: str) -> Iterator[Finding]:
    """Findings for each page, on each screen."""
    from browser import browser

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, browser(Path(folder)) as tab:
        for page in pages:
            for width in WIDTHS:
                for scheme, dark in SCHEMES.items():
                    tab.open(page, width=width, dark=dark)
                    tab.run(f"{axe}; true")
                    for one in json.loads(tab.run(LOOK)):
                        yield Finding(
                            page=short(page), look=f"{width} {scheme}", **{**one, "impact": one["impact"] or "minor"}
                        )


def short(page: Path) -> str:
    return os.path.relpath(page) if page.is_relative_to(Path.cwd()) else str(page)


def told(found: Iterable[Finding]) -> list[str]:
    """One line per page and rule, with the screens, and one per kind of element."""
    grouped: dict[tuple[str, str], list[Finding]] = {}
    for one in found:
        grouped.setdefault((one.page, one.rule), []).append(one)
    lines = []
    for (page, rule), same in grouped.items():
        looks = ", ".join(one.look for one in same)
        lines.append(f"{page}: {same[0].impact}: {rule}: {same[0].says} ({looks})")
        shown: dict[str, dict[str, Any]] = {}
        for node in (node for one in same for node in one.nodes):
            shown.setdefault(node["why"], node)
        many = sum(len(one.nodes) for one in same)
        lines += [f"    {node['at']}: {node['html']}: {node['why']}" for node in list(shown.values())[:4]]
        lines.append(f"    {many} elements on these screens")
    return lines


if __name__ == "__main__":
    sys.exit(main())
