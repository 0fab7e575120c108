"""Measures the lab's page in Debian's headless Chromium: from a keystroke to redrawn figures (median of 50), from
opening to the first run drawn (median of 5), and the sizes of module and page. Exits with code 1 if any of the page's
limits is exceeded.

tools/lab_times.py
"""

from __future__ import annotations

import base64
import gzip
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

KEYSTROKES = 50
OPENINGS = 5
BOUNDS = {
    "keystroke to figures, ms": 150.0,
    "opened to first run drawn, ms": 1500.0,
    "module, bytes": 760_000.0,
    "page, bytes": 1_000_000.0,
}

TYPES = """new Promise((done) => {
  const times = [];
  const once = () => {
    const text = at("text");
    const from = text.value.indexOf('"10 Mbit') >= 0 ? '"10 Mbit' : '"11 Mbit';
    const began = performance.now();
    text.value = text.value.replace(from, from === '"10 Mbit' ? '"11 Mbit' : '"10 Mbit');
    text.dispatchEvent(new Event("input"));
    const before = document.body.dataset.drawn;
    const look = () => {
      if (document.body.dataset.drawn === before) { requestAnimationFrame(look); return; }
      times.push(performance.now() - began);
      if (times.length < COUNT) setTimeout(once, 30); else done(times);
    };
    requestAnimationFrame(look);
  };
  once();
})"""


def cpu_ms(folder: str) -> float:
    """CPU time used by all browser processes with this profile, ms."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if folder in stat.with_name("cmdline").read_text():
                values = stat.read_text().rsplit(")", 1)[1].split()
                ticks += int(values[11]) + int(values[12])
        except OSError:
            continue  # the process has ended
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def measured() -> tuple[dict[str, float], float]:
    """Bounded times, and CPU time per keystroke, ms."""
    from browser import browser

    from ackclock.cli._lab import PAGE

    page = PAGE.read_bytes()
    held = re.search(rb'<script type="text/plain" id="module">([^<]+)</script>', page)
    assert held is not None
    openings = []
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder)) as tab:
        for _ in range(OPENINGS):
            tab.ask("Page.navigate", url="about:blank")
            tab.open(PAGE, width=1280)
            tab.wait("document.body.dataset.drawn !== undefined")
            openings.append(tab.run("performance.getEntriesByName('drawn')[0].startTime"))
        tab.run(TYPES.replace("COUNT", "5"))  # code is compiled on its first run
        before = cpu_ms(folder)
        keystrokes = tab.run(TYPES.replace("COUNT", str(KEYSTROKES)))
        cpu = (cpu_ms(folder) - before) / KEYSTROKES
    sizes = len(base64.b64decode(held[1])), len(gzip.compress(page, 9, mtime=0))
    found = (statistics.median(keystrokes), statistics.median(openings), *map(float, sizes))
    return dict(zip(BOUNDS, found, strict=True)), cpu


def main() -> int:
    found, cpu = measured()
    for name, value in found.items():
        print(f"{name}: {value:,.0f} (at most {BOUNDS[name]:,.0f})")
    print(f"CPU time for a keystroke, all processes of the browser, ms: {cpu:.0f}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, cores: {os.cpu_count()}")
    return 1 if any(value > BOUNDS[name] for name, value in found.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
