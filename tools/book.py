"""The book of numbers: measuring programs write measured/NAME.json, and docs/numbers.md is generated from these files.

    python tools/book.py             # write docs/numbers.md
    python tools/book.py --check     # exit code 1 if the page is outdated
    python tools/book.py run NAME... # repeat measurements that have an ackclock command: see COMMANDS

A file contains the latest measurement under its name; older ones are in Git's history. Other programs call `record`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "measured"
PAGE = ROOT / "docs" / "numbers.md"
NAME = re.compile(r"[a-z][a-z0-9-]*")
KEYS = ("what", "version", "build", "profile", "date", "seeds", "command", "heads", "rows", "notes")

Cell = str | int | float


def record(
    name: str,
    *,
    what: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    seeds: str = "",
    notes: Sequence[str] = (),
    command: str | None = None,
    folder: Path = FOLDER,
) -> Path:
    """Write a measurement.

    Parameters
    ----------
    name
        Name of the file: small letters, digits, hyphens.
    what
        One sentence: what was measured, on what, and over which population.
    heads, rows
        A table. Numbers stay numbers.
    seeds
        Seeds of the random numbers: "1", "1 to 40"; empty if none are drawn.
    notes
        Further sentences, such as what was left out.
    command
        Command that repeats the measurement; by default, that of this program.
    """
    import ackclock
    from ackclock import _engine

    if not NAME.fullmatch(name):
        raise ValueError(f"name: found {name!r}; allowed: small letters, digits and hyphens")
    if wrong := [len(row) for row in rows if len(row) != len(heads)]:
        raise ValueError(f"{name}: found a row of {wrong[0]} cells; allowed: {len(heads)}, as many as heads")
    held = {
        "what": what,
        "version": ackclock.__version__,
        "build": _engine.build(),
        "profile": _engine.profile(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "seeds": seeds,
        "command": command or called(),
        "heads": list(heads),
        "rows": [list(row) for row in rows],
        "notes": list(notes),
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"measured: {path.name}", file=sys.stderr)
    return path


def record_markdown(name: str, text: str, **more: Any) -> Path:
    """Record the first Markdown table in a text; other arguments are those of `record`."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    width = len(heads)
    first = next((i for i, row in enumerate(rows) if len(row) != width), len(rows))
    return record(name, heads=heads, rows=rows[:first], **more)


def called() -> str:
    """Return this program's command line, relative to the top of the repository; the caller's journals and folders are omitted."""
    program = Path(sys.argv[0]).resolve()
    place = program.relative_to(ROOT).as_posix() if program.is_relative_to(ROOT) else program.name
    return shlex.join([place, *(argument for argument in sys.argv[1:] if "/" not in argument)])


class Asked(NamedTuple):
    """An ackclock command that measures something."""

    what: str
    arguments: tuple[str, ...]
    seeds: str
    table: Callable[[Any], tuple[list[str], list[list[Cell]]]]


def of_bench(told: dict[str, Any]) -> tuple[list[str], list[list[Cell]]]:
    """The cells of `ackclock bench`."""
    heads = ["bottleneck, Mbit/s", "flows", "controller", "ns per packet", "yardstick, ns", "ratio"]
    rows: list[list[Cell]] = []
    for cell in told["cells"]:
        rate, ns, yardstick = cell["rate_bps"] / 1e6, cell["ns_per_packet"], cell["yardstick_ns"]
        rows.append(
            [
                round(rate),
                cell["flows"],
                cell["congestion_control"],
                round(ns),
                round(yardstick, 1),
                round(cell["ratio"], 2),
            ]
        )
    return heads, rows


def of_instructions(told: dict[str, Any]) -> tuple[list[str], list[list[Cell]]]:
    """The cells of `ackclock bench --instructions`."""
    heads = ["cell", "bottleneck, Mbit/s", "flows", "instructions per packet", "bound"]
    cells = told["cells"]
    return heads, [
        [c["name"], round(c["rate_bps"] / 1e6), c["flows"], round(c["per_packet"]), c["most"]] for c in cells
    ]


def of_fidelity(told: dict[str, Any]) -> tuple[list[str], list[list[Cell]]]:
    """Verdicts of `ackclock fidelity`, by quantity."""
    verdicts = ["holds", "holds within 2 SE", "known miss", "miss", "not judged"]
    by: dict[str, list[str]] = {}
    for row in told["rows"]:
        verdict = row["verdict"] if row["verdict"] in verdicts else "miss"
        by.setdefault(row["quantity"], []).append(verdict)
    return ["quantity", "cells", *verdicts], [
        [quantity, len(found), *(found.count(verdict) for verdict in verdicts)] for quantity, found in by.items()
    ]


def of_cells(told: dict[str, Any]) -> tuple[list[str], list[list[Cell]]]:
    """Return every row of `ackclock fidelity`, as printed in its table."""
    heads = ["cell", "quantity", "kernel", "simulator", "difference", "bound", "2 SE", "verdict"]

    def share(value: float | None, signed: bool = False) -> str:
        return "–" if value is None else f"{100 * value:{'+' if signed else ''}.2f} %"

    rows: list[list[Cell]] = []
    for row in told["rows"]:
        kernel, own, bound = row["kernel"], row["simulator"], row["bound"]
        both = [f"{side['mean']:.5g} ± {side['sd']:.4g}" for side in (kernel, own)]
        spread = 2 * kernel["se"] / kernel["mean"] if bound is not None and kernel["mean"] else None
        difference = "none" if row["difference"] is None else share(row["difference"], signed=True)
        rows.append([row["cell"], row["quantity"], *both, difference, share(bound), share(spread), row["verdict"]])
    return heads, rows


def of_drawn(told: list[dict[str, Any]]) -> tuple[list[str], list[list[Cell]]]:
    """Scenarios of `ackclock diff --drawn`, by family."""
    by: dict[str, list[dict[str, Any]]] = {}
    for row in told:
        by.setdefault(row["family"], []).append(row)
    heads = ["family", "scenarios", "identical", "of these with draws given", "retransmissions equal", "refused"]
    rows: list[list[Cell]] = []
    for family, found in by.items():
        ran = [one for one in found if not one["refused"]]
        identical = [one for one in ran if one["identical"]]
        given = sum(bool(one["draws_given"]) for one in identical)
        equal = sum(len(set(one["retransmissions"])) == 1 for one in ran)
        rows.append([family, len(found), len(identical), given, equal, len(found) - len(ran)])
    return heads, rows


COMMANDS = {
    "bench": Asked("User CPU per delivered data packet, beside the yardstick loop", ("bench",), "", of_bench),
    "instructions": Asked(
        "Instructions per delivered data packet, counted by Cachegrind",
        ("bench", "--instructions"),
        "",
        of_instructions,
    ),
    "fidelity": Asked(
        "Quantities of the simulator beside those measured on Linux, by verdict", ("fidelity",), "1 to 40", of_fidelity
    ),
    "fidelity-cells": Asked(
        "Every quantity of the simulator beside the one measured on Linux 7.3.4: means ± standard deviations over seeds or starts; "
        "2 SE is two standard errors of the kernel's mean",
        ("fidelity",),
        "1 to 40",
        of_cells,
    ),
    "drawn": Asked(
        "Scenarios drawn from a seed whose packets and ACKs are the kernel's, event by event",
        ("diff", "--drawn", "--seed", "1"),
        "1",
        of_drawn,
    ),
}


def measure(name: str) -> int:
    """Run a command of `COMMANDS` and record its output."""
    asked = COMMANDS[name]
    program = [str(Path(sys.executable).parent / "ackclock"), *asked.arguments]
    done = subprocess.run([*program, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        return done.returncode or 1
    heads, rows = asked.table(json.loads(done.stdout))
    notes = [f"The command ended with exit code {done.returncode}."] if done.returncode else []
    command = shlex.join(["ackclock", *asked.arguments])
    record(name, what=asked.what, heads=heads, rows=rows, seeds=asked.seeds, notes=notes, command=command)
    return 0


def read(path: Path) -> dict[str, Any]:
    """A measurement with checked keys."""
    held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if set(held) != set(KEYS):
        raise SystemExit(f"{path.name}: found keys {', '.join(held)}; allowed: {', '.join(KEYS)}")
    return held


def cell(value: Cell) -> str:
    """A table cell on the page."""
    if isinstance(value, str):
        return value.replace("|", "\\|")
    return f"{value:,}"


def section(name: str, held: dict[str, Any]) -> list[str]:
    """Section of the page on one measurement."""
    seeds = f" Seeds: {held['seeds']}." if held["seeds"] else ""
    made = "".join(f", {key} {held[key]}" for key in ("version", "build", "profile") if held[key])
    right = ["---:" if held["rows"] and all(isinstance(row[i], int | float) for row in held["rows"]) else "---"
             for i in range(len(held["heads"]))]  # fmt: skip
    return [
        f"## {name}",
        "",
        f"{held['what'].rstrip('.')}.",
        "",
        f"`{held['command']}`, {held['date']}{made}.{seeds}",
        "",
        f"| {' | '.join(map(cell, held['heads']))} |",
        f"| {' | '.join(right)} |",
        *(f"| {' | '.join(map(cell, row))} |" for row in held["rows"]),
        "",
        *(line for note in held["notes"] for line in (note, "")),
    ]


def page(folder: Path = FOLDER) -> str:
    """Text of docs/numbers.md."""
    lines = [
        "# The book of numbers",
        "",
        "<!-- written by tools/book.py -->",
        "",
        "What this project has measured of itself: the newest measurement of each kind, and the command that repeats it. A page that tells of a "
        "number may be older; this one is made of the files in `measured/`. Without a build, the day's engine was not recorded.",
        "",
        "| name | date | what |",
        "| --- | --- | --- |",
    ]
    held = {path.stem: read(path) for path in sorted(folder.glob("*.json"))}
    lines += [f"| [{name}](#{name}) | {one['date']} | {cell(one['what'].rstrip('.'))} |" for name, one in held.items()]
    lines.append("")
    for name, one in held.items():
        lines += section(name, one)
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", metavar="run NAME", help=f"names: {', '.join(COMMANDS)}")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if asked.what:
        word, *names = asked.what
        if word != "run" or not names or set(names) - set(COMMANDS):
            parser.error(f"found {' '.join(asked.what)}; allowed: run, and names of {', '.join(COMMANDS)}")
        if failed := [name for name in names if measure(name)]:
            print(f"measured: no answer of {', '.join(failed)}", file=sys.stderr)
            return 1
    made = page()
    if asked.check:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != made:
            print(f"{PAGE.relative_to(ROOT)}: differs from measured/; run tools/book.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
