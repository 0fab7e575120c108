"""Accuracy of identifying the congestion control in a capture: each controller on its own drawn paths with a queue.
Prints tables, one of which is in the book of numbers.

`tools/identified.py SEED RUNS [JOURNAL]`: RUNS captures per controller; the table goes into measured/identified.json.
With JOURNAL, a JSON line for each is appended, and recorded ones are not repeated. `--kernel` uses captures of the
real kernel instead, for each of its modules, at a sender with or without a NIC that splits packets;
measured/identified-kernel.json.
"""

from __future__ import annotations

import argparse
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
from kernel_captures import made

SECONDS = 20
LEAST_QUEUE = 20

WITHOUT = 5
"""One in this many captures of a controller is also examined with that controller removed from the candidates."""


def drawn(seed: int, controller: str, number: int) -> ackclock.Scenario:
    """A lone bulk flow: 2 to 20 Mbit/s, 20 to 120 ms, a queue of 0.5 to 2 BDP; every third also has random losses."""
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


MODULES = (
    "reno", "cubic", "bbr", "htcp", "westwood", "illinois", "scalable", "veno", "yeah", "bic", "vegas", "hybla", "highspeed", "nv", "cdg", "lp", "dctcp",
)  # fmt: skip
"""Congestion controls of Linux; `lp` is not among the candidates."""

OURS = {"westwood": "westwood-plus", "lp": "reno"}
"""Candidates that behave the same as a module under another name: `lp` behaves like reno until the delay grows, and the result says so."""

BUILT_IN = ("reno", "cubic", "bbr")


def of_kernel(seed: int, module: str, number: int, file: Path) -> str:
    """Capture one of the real kernel's bulk flows at its sender, and return the drawn values."""
    draw = random.Random(f"who {seed} {module} {number}").random
    rate = round(2 * 10 ** draw(), 2)
    rtt_ms = round(20 * 6 ** draw(), 1)
    bdp = rate * 1e6 * rtt_ms * 1e-3 / (8 * 1514)
    limit = max(LEAST_QUEUE, round(bdp * (0.5 + 1.5 * draw())))
    lossy = draw() < 1 / 3
    share = round(0.0001 * 20 ** draw(), 5)
    hosts = {
        "tso": draw() < 0.7,
        "card": draw() < 0.6,
        "gro": draw() < 0.5,
        "gro_us": [0, 50, 200, 1000][int(4 * draw())],
    }
    total = int(rate * 1e6 / 8 * SECONDS)
    program = {
        "total": total, "block": [4096, 16_384, 131_072][int(3 * draw())], "pause": 0, "paced": False, "request": 0, "nagle": False,
        "send_buffer": 0, "receive_buffer": 0, "read": 0, "read_pause": 0,
    }  # fmt: skip
    link: dict[str, Any] = {
        "rate": f"{rate} Mbit/s",
        "delay": f"{rtt_ms / 2:.2f} ms",
        "queue": {"kind": "drop-tail", "limit": f"{limit} packets"},
    }
    if lossy:
        link["loss"] = {"kind": "bernoulli", "p": share}
    scenario = {
        "duration": f"{SECONDS} s",
        "network": {"bottleneck": link},
        "flows": [
            {
                "congestion_control": module if module in BUILT_IN else f"kernel:{module}",
                "workload": {"kind": "transfer", "bytes": f"{total} B"},
                "host": "sends",
                "peer_host": "reads",
                "stack": {"tso": hosts["tso"]},
            }
        ],
        "hosts": [{"name": "sends", "cuts_packets": True}, {"name": "reads", "cuts_packets": True}],
        "record": {"sample_interval": "100 ms"},
    }
    made(scenario, program, hosts, seed + number, file, None)
    return f"{module} {number}: {rate} Mbit/s, {rtt_ms} ms, {limit}, {share if lossy else 0:.3%}, {hosts}"


def one(seed: int, controller: str, number: int, *, kernel: bool) -> dict[str, Any]:
    """Capture and identify; then repeat without the correct candidate and those that behave the same."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a"
        if kernel:
            name = of_kernel(seed, controller, number, file)
            found = diagnose(file.with_suffix(".sender.pcapng"))
        else:
            scenario = drawn(seed, controller, number)
            name = scenario.name
            ackclock.run(scenario, seed=seed + number, pcap=file.with_suffix(".pcapng"), pcap_at="sender", snaplen=96)
            found = diagnose(file.with_suffix(".pcapng"))
    told = identify(found)
    right = OURS.get(controller, controller) if kernel else controller
    rest = [name for name in candidates() if name != right and name not in told.names]
    without = None if told.refused or number % WITHOUT else identify(found, among=rest)
    return {
        "controller": controller,
        "number": number,
        "right": right,
        "scenario": name,
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
    """Outcome: `named`, `tie`, `undecided`, `none`, `refused` or `wrong`."""
    if row["refused"]:
        return "refused"
    if not row["names"]:
        return "none"
    told = row.get("right", row["controller"])
    right = told in row["names"]
    if row["others"]:
        return "undecided" if right or told in row["others"] else "wrong"
    if not right:
        return "wrong"
    if row["controller"] == "lp":
        return "tie"
    return "named" if len(row["names"]) == 1 else "tie"


KINDS = ("named", "tie", "undecided", "none", "wrong", "refused")


def tables(rows: list[dict[str, Any]]) -> str:
    """Report in Markdown."""
    lines = [
        "| controller | captures | named | one of those that do the same | undecided | none of these | wrong | refused | what else was said |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    whole: Counter[str] = Counter()
    for controller in dict.fromkeys((*candidates(), *MODULES)):
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
    lines += [f"Named in its place: {', '.join(f'{name} {times}' for name, times in fooled.most_common()) or 'none'}."]
    return "\n".join(lines)


def main() -> int:
    """Run all controllers in turn, so that a partial run covers all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("runs", type=int)
    parser.add_argument("journal", type=Path, nargs="?")
    parser.add_argument("--kernel", action="store_true")
    asked = parser.parse_args()
    journal = asked.journal
    rows = [json.loads(line) for line in journal.read_text().splitlines()] if journal and journal.exists() else []
    known = {(row["controller"], row["number"]) for row in rows}
    for number in range(asked.runs):
        for controller in MODULES if asked.kernel else candidates():
            if (controller, number) in known:
                continue
            rows.append(one(asked.seed, controller, number, kernel=asked.kernel))
            if journal is not None:
                with journal.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(tables(rows))
    told = tables(rows).split("\n\n")
    count = Counter(outcome(row) for row in rows)
    alone, untold = count["named"], len(rows) - count["wrong"]
    record_markdown(
        "identified-kernel" if asked.kernel else "identified",
        told[0],
        what="Which congestion control `ackclock diagnose --which` names in captures "
        + (
            "of Linux at the sender, every module of the pinned kernel on drawn paths"
            if asked.kernel
            else "on drawn paths"
        ),
        seeds=str(asked.seed),
        notes=[
            *told[1:],
            f"Right alone: {alone} of {len(rows)}. Right, one of several or not told: {untold} of {len(rows)}.",
            *(
                [
                    "Linux's `westwood` is `westwood-plus` here. `lp` (TCP-LP) is not among the candidates: it does what reno does until the delay grows, and "
                    "where reno is named the answer names it as well."
                ]
                if asked.kernel
                else []
            ),
        ],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
