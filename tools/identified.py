"""Which congestion control a capture shows, measured: drawn paths with a queue, every controller on each of its own. Prints the
tables, of which the book of numbers has one.

`tools/identified.py SEED RUNS [JOURNAL]`: RUNS captures of each controller; the table goes into measured/identified.json. With JOURNAL, a line of JSON for each is appended, and those
that are there are not run again.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import ackclock
from ackclock.diagnose import diagnose, identify
from ackclock.diagnose._who import candidates
from book import record_markdown

SECONDS = 20
LEAST_QUEUE = 20

WITHOUT = 5
"""One of this many captures of a controller is also examined without it among the candidates."""


def drawn(seed: int, controller: str, number: int) -> ackclock.Scenario:
    """A bulk flow alone: 2 to 20 Mbit/s, 20 to 120 ms, a queue of half to twice the BDP; one in three has random losses, too."""
    draw = random.Random(f"which {seed} {controller} {number}").random
    rate = round(2 * 10 ** draw(), 2)
    rtt_ms = round(20 * 6 ** draw(), 1)
    bdp = rate * 1e6 * rtt_ms * 1e-3 / (8 * 1514)
    link: dict[str, Any] = {
        "rate": f"{rate} Mbit/s",
        "delay": f"{rtt_ms / 2:.2f} ms",
        "queue": {"kind": "drop-tail", "limit": f"{max(LEAST_QUEUE, round(bdp * (0.5 + 1.5 * draw())))} packets"},
    }
    lossy = draw() < 1 / 3
    share = round(0.0001 * 20 ** draw(), 5)
    if lossy:
        link["loss"] = {"kind": "bernoulli", "p": share}
    return ackclock.Scenario.from_dict(
        {
            "name": f"{controller} {number}: {rate} Mbit/s, {rtt_ms} ms, {link['queue']['limit']}, {share if lossy else 0:.3%}",
            "duration": f"{SECONDS} s",
            "network": {"bottleneck": link},
            "flows": [{"congestion_control": controller, "workload": {"kind": "bulk"}}],
        }
    )


def one(seed: int, controller: str, number: int) -> dict[str, Any]:
    """Capture and identify; then once more without the right candidate, and those that behave the same."""
    scenario = drawn(seed, controller, number)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.pcapng"
        ackclock.run(scenario, seed=seed + number, pcap=file, pcap_at="sender", snaplen=96)
        found = diagnose(file)
    told = identify(found)
    rest = [name for name in candidates() if name != controller and name not in told.names]
    without = None if told.refused or number % WITHOUT else identify(found, among=rest)
    return {
        "controller": controller,
        "number": number,
        "scenario": scenario.name,
        "names": told.names,
        "others": told.others,
        "refused": told.refused,
        "nearest": told.nearest,
        "candidates": [
            (c.name, round(c.distance, 5), c.spread and round(c.spread, 5), c.ratio and float(f"{c.ratio:.3g}"))
            for c in told.candidates[:4]
        ],
        "without": None if without is None else [without.names, without.nearest],
    }


def outcome(row: dict[str, Any]) -> str:
    """`named`, `tie`, `undecided`, `none`, `refused` or `wrong`."""
    if row["refused"]:
        return "refused"
    if not row["names"]:
        return "none"
    right = row["controller"] in row["names"]
    if row["others"]:
        return "undecided" if right or row["controller"] in row["others"] else "wrong"
    if not right:
        return "wrong"
    return "named" if len(row["names"]) == 1 else "tie"


KINDS = ("named", "tie", "undecided", "none", "wrong", "refused")


def tables(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| controller | captures | named | one of those that do the same | undecided | none of these | wrong | refused | what else was said |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    whole: Counter[str] = Counter()
    for controller in candidates():
        own = [row for row in rows if row["controller"] == controller]
        if not own:
            continue
        count = Counter(outcome(row) for row in own)
        whole += count
        said: Counter[str] = Counter()
        for row in own:
            if outcome(row) not in ("named", "refused"):
                said.update(
                    [" = ".join(sorted(row["names"])) + "".join(f" or {name}" for name in row["others"]) or "none"]
                )
        told = "; ".join(f"{name}: {times}" for name, times in said.most_common(4))
        lines.append(
            f"| `{controller}` | {len(own)} | " + " | ".join(str(count[kind]) for kind in KINDS) + f" | {told} |"
        )
    lines.append(f"| all | {len(rows)} | " + " | ".join(str(whole[kind]) for kind in KINDS) + " | |")
    held = [row for row in rows if row["without"] is not None]
    fooled = Counter(name for row in held for name in row["without"][0][:1])
    lines += [
        "",
        f"Without the right one among the candidates: {len(held)} captures, {len(held) - sum(fooled.values())} times none of these.",
    ]
    lines += [f"Named in its place: {', '.join(f'{name} {times}' for name, times in fooled.most_common())}"]
    return "\n".join(lines)


def main() -> int:
    """Run all controllers in turn, so that a part of the work covers all of them."""
    seed, runs = int(sys.argv[1]), int(sys.argv[2])
    journal = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    rows = [json.loads(line) for line in journal.read_text().splitlines()] if journal and journal.exists() else []
    known = {(row["controller"], row["number"]) for row in rows}
    for number in range(runs):
        for controller in candidates():
            if (controller, number) in known:
                continue
            rows.append(one(seed, controller, number))
            if journal is not None:
                with journal.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(tables(rows))
    told = tables(rows).split("\n\n")
    record_markdown(
        "identified",
        told[0],
        what="Which congestion control `ackclock diagnose --which` names in captures on drawn paths",
        seeds=str(seed),
        notes=told[1:],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
