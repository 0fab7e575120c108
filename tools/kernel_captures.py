"""Drawn captures of the real Linux kernel in virtual time, with the kernel's clocks as the reference for `ackclock diagnose`.

`tools/kernel_captures.py SEED COUNT [FOLDER]` draws COUNT transfers, each captured at three points: at the sender
above its NIC (`sender`), at a switch that sees the packets split by the NIC (`switch`), and at the receiver
(`receiver`); so COUNT of 100 gives 300 captures. It prints a table by kind and capture point with the fractions of
captures that are right, undecided and wrong (`tools/capture_truth.py` defines them), and each wrong capture. With a
folder, the captures and the kernel's reports (JSON lines) are kept, and a second call judges them without repeating
them. `--kernel NAME` uses another built kernel (`ackclock linux build --name`). `--record` writes
measured/kernel-captures.json.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import struct
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from book import record
from capture_truth import RIGHT, WRONG, Verdict, judged, shares

PLACES = ("sender", "switch", "receiver")

KINDS = (
    "bulk-4k", "bulk-16k", "bulk-128k", "bbr", "loss", "rwnd", "sndbuf", "pauses", "trickle", "nagle", "answers", "slow-reader", "short", "others",
)  # fmt: skip

OTHERS = ("reno", "htcp", "westwood", "illinois", "scalable", "veno", "yeah", "bic")

SAMPLE_MS = 5
"""Maximum interval between two readings of the kernel's clocks: half a typical `ss` user's interval, or a tenth of an RTT if that is shorter."""


def drawn(seed: int, number: int) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A transfer: its kind, scenario and program, and additional host activity."""
    draw = random.Random(f"{seed}.{number}")
    kind = KINDS[number % len(KINDS)]

    def between(least: float, most: float) -> float:
        return math.exp(draw.uniform(math.log(least), math.log(most)))

    rate, rtt = between(4, 60), between(8, 120)
    pipe = rate * 1e6 / 8 * rtt / 1e3
    queue = max(int(between(0.4, 3) * pipe / 1514), 12)
    total = int(min(max(rate * 1e6 / 8 * 4, 20 * pipe), 6e6))
    program = {
        "total": total, "block": draw.choice([4096, 16_384, 131_072]), "pause": 0, "paced": False, "request": 0, "nagle": False,
        "send_buffer": 0, "receive_buffer": 0, "read": 0, "read_pause": 0,
    }  # fmt: skip
    controller, loss, ms = "cubic", 0.0, 1_000_000
    if kind.startswith("bulk"):
        program["block"] = {"4k": 4096, "16k": 16_384, "128k": 131_072}[kind[5:]]
        controller = draw.choice(["cubic", "cubic", "reno"])
    elif kind == "bbr":
        controller = "bbr"
    elif kind == "others":
        controller = f"kernel:{draw.choice(OTHERS)}"
    elif kind == "loss":
        loss, controller = between(2e-4, 0.02), draw.choice(["cubic", "reno", "bbr"])
        program["total"] = total // 2
    elif kind == "rwnd":
        program["receive_buffer"] = int(between(0.1, 0.6) * pipe) + 3000
    elif kind == "sndbuf":
        program["send_buffer"] = int(between(0.1, 0.6) * pipe) + 5000
    elif kind == "pauses":
        program["pause"] = int(between(30, 500) * ms)
        program["block"] = int(between(10_000, 300_000))
        program["total"] = min(total, 20 * program["block"])
    elif kind == "trickle":
        program["pause"], program["paced"] = int(between(1, 40) * ms), True
        program["block"] = int(draw.uniform(0.1, 0.7) * rate * 1e6 / 8 * program["pause"] / 1e9) + 200
    elif kind == "nagle":
        program["nagle"], program["paced"] = True, True
        program["block"], program["pause"] = draw.randrange(100, 1400), int(between(1, 10) * ms)
        program["block"] = int(min(program["block"], 0.7 * rate * 1e6 / 8 * program["pause"] / 1e9)) + 50
    elif kind == "answers":
        program["block"], program["request"] = int(between(5_000, 400_000)), draw.randrange(60, 800)
        program["pause"] = int(between(5, 300) * ms)
        program["total"] = min(total, 25 * program["block"])
    elif kind == "slow-reader":
        program["read"] = int(between(5_000, 60_000))
        program["read_pause"] = int(program["read"] / (draw.uniform(0.2, 0.7) * rate * 1e6 / 8) * 1e9)
        if draw.random() < 0.5:
            program["receive_buffer"] = int(between(30_000, 200_000))
    elif kind == "short":
        program["total"] = int(between(0.2, 3) * pipe) + 30_000
    if program["paced"]:  # bytes written at this pace in a few seconds
        writes = draw.uniform(3, 6) * 1e9 / program["pause"]
        program["total"] = int(writes * program["block"])
    slow = program["total"] * 8 / (rate * 1e6)
    duration = 4 * slow + 12
    hosts = {
        "tso": draw.random() < 0.7,
        "card": draw.random() < 0.6,
        "gro": draw.random() < 0.5,
        "gro_us": draw.choice([0, 50, 200, 1000]),
    }
    scenario: dict[str, Any] = {
        "duration": f"{duration:.0f} s",
        "network": {
            "bottleneck": {
                "rate": f"{rate:.3f} Mbit/s",
                "delay": f"{rtt / 2:.3f} ms",
                "queue": {"kind": "drop-tail", "limit": f"{queue} packets"},
            }
        },
        "flows": [
            {
                "congestion_control": controller,
                "workload": {"kind": "transfer", "bytes": f"{program['total']} B"},
                "host": "sends",
                "peer_host": "reads",
                "stack": {"tso": hosts["tso"]},
            }
        ],
        "hosts": [{"name": "sends", "cuts_packets": True}, {"name": "reads", "cuts_packets": True}],
        "record": {"sample_interval": f"{min(SAMPLE_MS, max(round(rtt / 10), 1))} ms"},
    }
    if loss:
        scenario["network"]["bottleneck"]["loss"] = {"kind": "bernoulli", "p": loss}
    return kind, scenario, program, hosts


def made(
    scenario: Mapping[str, Any],
    program: Mapping[str, Any],
    hosts: Mapping[str, Any],
    seed: int,
    place: Path,
    kernel: str | None,
) -> None:
    """Run the transfer; `place` is the path stem of the three captures and the kernel's report."""
    import numpy as np

    from ackclock.linux import _cache, _guest, _translate
    from ackclock.linux._facts import Has
    from ackclock.linux._run import a_cpu
    from ackclock.scenario import Scenario

    which = _cache.installed(kernel)
    text = Scenario.from_dict(dict(scenario)).to_engine_json(capture="sender")
    job = _translate.job(json.loads(text), seed, "qdisc", Has.of(which.about))
    job["program"] = dict(program)
    for host in job["hosts"]:
        host["cards"][0]["cuts"] = not hosts["card"]
        host["cards"][1].update(
            gro=hosts["gro"],
            gro_flush_timeout=1000 * hosts["gro_us"] if hosts["gro"] else 0,
            napi_defer_hard_irqs=10 if hosts["gro"] and hosts["gro_us"] else 0,
        )
    whole = place.with_suffix(".pcapng")
    outcome = _guest.play(job, seed, kernel=which, cpu=a_cpu(), wall_limit_s=600, capture=whole)
    data = whole.read_bytes()
    for number, at in enumerate(PLACES):
        place.with_suffix(f".{at}.pcapng").write_bytes(of_interface(data, number))
    whole.unlink()
    size = {"f8": "<f8", "i8": "<i8", "u4": "<u4"}
    told = {
        name: np.frombuffer(buffer, dtype=size[kind]).tolist()
        for name, (kind, buffer) in outcome.tables["clocks"].items()
    }
    rows = []
    for values in zip(*told.values(), strict=True):
        row = dict(zip(told, values, strict=True))
        row["t"] = row.pop("t_s")
        row["outstanding"] = row["bytes_sent"] - row["bytes_retrans"] - row["bytes_acked"]
        written = row["bytes_acked"] + row["outstanding"] + row["notsent"]
        row["eager"] = not program["pause"] and not program["request"] and written < program["total"]
        row |= {name: row.pop(f"{name}_us") for name in ("busy", "rwnd_limited", "sndbuf_limited")}
        rows.append(row)
    place.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def of_interface(data: bytes, number: int) -> bytes:
    """A capture with only one interface's packets."""
    out, at, interfaces = [], 0, 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        block = data[at : at + length]
        at += length
        if kind == 1:
            interfaces += 1
            if interfaces > 1:
                continue
        elif kind == 6:
            if struct.unpack_from("<I", block, 8) != (number,):
                continue
            block = block[:8] + bytes(4) + block[12:]
        out.append(block)
    return b"".join(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--kernel")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--kinds", default="", help="only these, separated by commas")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = asked.folder or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        found: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
        for number in range(asked.count):
            kind, scenario, program, hosts = drawn(asked.seed, number)
            if asked.kinds and kind not in asked.kinds.split(","):
                continue
            place = folder / f"{asked.seed}-{number}-{kind}"
            if not place.with_suffix(".jsonl").exists():
                made(scenario, program, hosts, asked.seed + number, place, asked.kernel)
                place.with_suffix(".json").write_text(
                    json.dumps({"scenario": scenario, "program": program, "hosts": hosts}), encoding="utf-8"
                )
            rows = [json.loads(line) for line in place.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()]
            for at in PLACES:
                one = judged(place.with_suffix(f".{at}.pcapng"), rows)
                found[kind, at].append(one)
                if one.wrong > WRONG or one.right < RIGHT:
                    print(
                        f"{place.name}.{at}: {one.right:.1%} right, {one.untold:.1%} not told, {one.wrong:.1%} wrong; "
                        f"kernel: {shares(one.real)}; told: {shares(one.told)}; {one.sentence}",
                        flush=True,
                    )
        rows = table(found)
        print("| " + " | ".join(HEADS) + " |\n| --- | --- |" + " ---: |" * (len(HEADS) - 2))
        for row in rows:
            print("| " + " | ".join(map(str, row)) + " |")
        print(blames(found))
        if asked.record:
            name = f" --kernel {asked.kernel}" if asked.kernel else ""
            record(
                "kernel-captures",
                what="What `ackclock diagnose` tells of drawn captures of Linux at three places, beside the kernel's own clocks: shares of each capture's time",
                heads=HEADS,
                rows=rows,
                seeds=str(asked.seed),
                command=f"tools/kernel_captures.py {asked.seed} {asked.count} FOLDER --record{name}",
                notes=[
                    "Right: the classes of `tools/capture_truth.py` (application, receiver's window, send buffer, congestion window or pacing, repair). "
                    "Wrong at most 5 % and right at least 80 %: numbers of captures. At times: what is wrong of each time between two samples of 1 to 5 ms, summed.",
                    blames(found),
                ],
            )
    return 0


HEADS = (
    "kind", "place", "captures", "right", "not told", "wrong", "wrong at most 5 %", "at times", "right at least 80 %",
)  # fmt: skip


def table(found: Mapping[tuple[str, str], list[Verdict]]) -> list[list[str | int]]:
    """Table by kind and capture point, and in total."""

    def line(kind: str, at: str, all_of: list[Verdict]) -> list[list[str | int]]:
        n = len(all_of)
        if not n:
            return []
        means = [sum(part) / n for part in zip(*((v.right, v.untold, v.wrong) for v in all_of), strict=True)]
        good = sum(v.wrong <= WRONG for v in all_of)
        at_times = sum(v.wrong_at_times <= WRONG for v in all_of)
        enough = sum(v.right >= RIGHT for v in all_of)
        return [[kind, at, n, *(f"{100 * mean:.1f} %" for mean in means), good, at_times, enough]]

    rows = [row for kind in KINDS for at in PLACES for row in line(kind, at, found.get((kind, at), []))]
    for at in PLACES:
        rows += line("all", at, [one for (_, place), all_of in found.items() if place == at for one in all_of])
    return rows + line("all", "all", [one for all_of in found.values() for one in all_of])


def blames(found: Mapping[tuple[str, str], list[Verdict]]) -> str:
    """Return how often time is wrongly attributed to the application."""
    plenty = [v for all_of in found.values() for v in all_of if v.blamed is not None]
    blamed = sum((v.blamed or 0.0) > WRONG for v in plenty)
    return f"The kernel had something to send at each sample up to the last write in {len(plenty)} captures; the application is blamed for more than 5 % of that time in {blamed}."


if __name__ == "__main__":
    sys.exit(main())
