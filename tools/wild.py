"""Tries Linux modules by other authors: each C file given, or in a folder given, is compiled and run for 2 s.

    tools/wild.py FOLDER|FILE... [--flag -DNAME=VALUE] [--json]

Prints one row per file: its goodput on a 10 Mbit/s path, or why it is refused. The tool fetches nothing and contains
no third-party code: the files are the user's.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ackclock import Scenario, run
from ackclock.errors import AckclockError

LINK = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "40 packets"}}


def tried(file: Path, flags: dict[str, Any]) -> dict[str, Any]:
    """Result for one file."""
    flow = {"congestion_control": str(file), "congestion_control_options": flags}
    told = {"duration": "2 s", "network": {"bottleneck": LINK}, "flows": [flow]}
    try:
        done = run(Scenario.from_dict(told))
    except AckclockError as error:
        return {"file": str(file), "runs": False, "why": str(error).replace(str(file.parent) + "/", "")}
    row = done.flows.row(0, named=True)
    return {
        "file": str(file),
        "runs": True,
        "goodput_bps": row["goodput_bps"],
        "retransmissions": row["retransmissions"],
        "messages": done.messages.height,
    }


def main() -> None:
    """Try the files, and print a table."""
    about = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    about.add_argument("where", nargs="+", type=Path, metavar="FOLDER|FILE")
    about.add_argument("--flag", action="append", default=[], metavar="-DNAME=VALUE")
    about.add_argument("--json", action="store_true")
    given = about.parse_args()
    flags = {name: value if equals else True for name, equals, value in (flag.partition("=") for flag in given.flag)}
    files = [file for place in given.where for file in (sorted(place.rglob("*.c")) if place.is_dir() else [place])]
    rows = [tried(file, flags) for file in files]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        what = f"{row['goodput_bps'] / 1e6:.3f} Mbit/s, {row['retransmissions']}" if row["runs"] else row["why"]
        print(f"| {row['file']} | {what} |")
    print(f"{sum(row['runs'] for row in rows)} of {len(rows)} run")


if __name__ == "__main__":
    main()
