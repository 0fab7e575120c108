"""quiche 2370 in `ackclock live`: the fraction of downloads that get stuck, with the last faulty version and the first fixed one.

    tools/live_quiche.py [--seeds N]

Builds examples/live/quiche-2370 (cmake, a C++ compiler and libclang are needed). 10 MB in at most 10 s, an RTT of 10
ms, and 30 % of the server's packets lost in the first 2 s; the path has no rate limit, or one of 50 Mbit/s. Writes
measured/live-quiche.json.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import book
from ackclock.linux import _live
from ackclock.linux._programs import Program
from ackclock.scenario import Scenario

FOLDER = book.ROOT / "examples" / "live" / "quiche-2370"
VERSIONS = {"before": "0.26.0", "after": "0.26.1"}
BYTES, LIMIT_S = 10_000_000, 10
LOSSES = {"kind": "schedule", "steps": [{"at": "0 s", "loss": 0.3}, {"at": "2 s", "loss": 0.0}]}
DELAY = "5 ms"
PATHS: dict[str, dict[str, Any]] = {
    "none": {
        "topology": "graph",
        "links": [{"name": "there", "delay": DELAY, "capacity": LOSSES}, {"name": "back", "delay": DELAY}],
        "paths": [{"name": "way", "forward": ["there"], "backward": ["back"]}],
    },
    "50 Mbit/s": {"bottleneck": {"rate": "50 Mbit/s", "delay": DELAY, "capacity": LOSSES}},
}


def built(target: Path) -> dict[str, str]:
    """Both versions' programs."""
    for name in VERSIONS:
        command = ["cargo", "build", "--release", "--locked", "--manifest-path", str(FOLDER / name / "Cargo.toml")]
        subprocess.run([*command, "--target-dir", str(target)], check=True)
    return {name: str(target / "release" / f"quiche-2370-{name}") for name in VERSIONS}


def certificate() -> None:
    """A certificate in the working folder."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 36500 -subj /CN=server"
    subprocess.run(command.split(), check=True, stderr=subprocess.DEVNULL)


def download(program: str, network: dict[str, Any], seed: int) -> tuple[int, float]:
    """Bytes received, and time, s."""
    scenario = Scenario.from_dict({"duration": "30 s", "network": network, "flows": [{}]})
    programs = [
        Program(host="server", command=f"{program} serve cert.pem key.pem"),
        Program(host="client", command=f"{program} get server {BYTES} {LIMIT_S}", counts=True),
    ]
    told = _live.live(scenario, programs, seed=seed).programs
    if told[1].code not in (0, 1):
        raise SystemExit(f"seed {seed}: {[one.stderr for one in told]}")
    got, seconds = told[1].stdout.split()
    return int(got), float(seconds)


def row(rate: str, name: str, found: list[tuple[int, float]]) -> list[book.Cell]:
    """Table row for a version on a path."""
    times = [seconds for got, seconds in found if got == BYTES]
    stuck = len(found) - len(times)
    took = f"{min(times):.2f}, {statistics.median(times):.2f}, {max(times):.2f}" if times else "–"
    return [rate, VERSIONS[name], len(found), stuck, f"{min(found)[0] / 1e6:.1f}", took]


def main() -> None:
    """Measure and record."""
    about = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    about.add_argument("--seeds", type=int, default=100)
    seeds = range(1, about.parse_args().seeds + 1)
    target = Path(os.environ.get("CARGO_TARGET_DIR", FOLDER / "target"))
    programs = built(target.resolve())
    rows = []
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        certificate()
        for rate, network in PATHS.items():
            for name, program in programs.items():
                rows.append(row(rate, name, [download(program, network, seed) for seed in seeds]))
                print(*rows[-1], sep=" | ", flush=True)
    book.record(
        "live-quiche",
        what="quiche issue 2370 in `ackclock live`: downloads of 10 MB, of whose packets 30 % are lost in the first 2 s, that have not ended after 10 s; round trip 10 ms",
        heads=["rate of the path", "quiche", "downloads", "stuck", "least MB", "s: least, median, most"],
        rows=rows,
        seeds=f"1 to {len(seeds)}",
        command=f"tools/live_quiche.py --seeds {len(seeds)}",
        notes=[
            "Stuck: at a window of two packets, whose ACKs come together, the flight is empty whenever quiche 0.26.0 sends, so it takes each round trip for idle time "
            "and moves the start of recovery along with it. On a path with a rate the two packets arrive one after the other, and so do their ACKs.",
        ],
    )


if __name__ == "__main__":
    main()
