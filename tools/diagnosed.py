"""Findings of `ackclock diagnose` in captures of runs, compared with the ground truth from the runs. Prints tables,
the first of which is in the book of numbers.

`tools/diagnosed.py SEED EACH [JOURNAL]`: EACH drawn scenarios of three kinds (`ackclock.fidelity.drawn`), then the shipped ones, each
captured at the sender whole and cut to 96 bytes, at the receiver, with offload, and with 1 % of its packets removed
from the file. The first table goes into measured/diagnosed.json. With JOURNAL, a JSON line for each is appended,
and recorded ones are not repeated.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

import ackclock
from ackclock._results.limits import CAUSES, COLUMNS, held
from ackclock.diagnose import Diagnosis, diagnose
from ackclock.diagnose._notes import together
from ackclock.fidelity.drawn import drawn
from ackclock.formats import read_capture
from book import record_markdown

SECONDS = "6 s"
LONGEST = "10 s"
"""Maximum duration of a shipped scenario."""

WAYS = ("cut to 96 bytes", "whole", "receiver", "offload", "1 % taken out")

TAKEN_OUT = 0.01

FINE = "5 ms"
"""Interval between readings of the causes, s; needed because a capture does not cover its sender's entire lifetime."""

Row = dict[str, Any]


def scenarios(seed: int, each: int) -> Iterator[tuple[str, str, ackclock.Scenario]]:
    """Kind, name and scenario, alternating between kinds, so that a partial run covers all of them."""
    kinds = [
        list(drawn(seed, **{"transfers": 0, "bulks": 0, "lossy": 0, kind: each}))
        for kind in ("transfers", "bulks", "lossy")
    ]
    for row in zip(*kinds, strict=True):
        for one in row:
            long = one.kind != "transfer"
            yield one.kind, one.name, one.scenario.set("duration", SECONDS) if long else one.scenario
    from ackclock import units

    for file in sorted((Path(__file__).parents[1] / "scenarios").glob("*.toml")):
        scenario = ackclock.load(file)
        if units.whole(scenario.duration, units.DURATION) > units.whole(LONGEST, units.DURATION):
            scenario = scenario.set("duration", LONGEST)
        yield "shipped", file.stem, scenario


def thinned(path: Path, seed: int) -> None:
    """Remove packets from the file, as if the capturing program had been too slow; the file header is kept."""
    draw = random.Random(f"thinned {seed}").random
    raw, kept, at, number = path.read_bytes(), bytearray(), 0, 0
    while at < len(raw):
        size = int.from_bytes(raw[at + 4 : at + 8], "little")
        packet = raw[at : at + 4] == b"\x06\0\0\0"
        number += packet
        if not packet or number <= 3 or draw() >= TAKEN_OUT:
            kept += raw[at : at + size]
        at += size
    path.write_bytes(kept)


def one(kind: str, name: str, scenario: ackclock.Scenario, way: str, seed: int) -> Row:
    """Capture, diagnose, and compare."""
    scenario = scenario.set_all({"record.limits_interval": FINE, "record.drops": True, "record.trace": "all"})
    if way == "offload":
        scenario = scenario.set_all({f"flows.{i}.stack.tso": True for i in range(len(scenario.flows))})
    row: Row = {"kind": kind, "name": name, "way": way}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.pcapng"
        at = "receiver" if way == "receiver" else "sender"
        snaplen = None if way == "whole" else 96
        run = ackclock.run(scenario, seed=seed, pcap=file, pcap_at=at, snaplen=snaplen)  # type: ignore[arg-type]
        if way == "1 % taken out":
            thinned(file, seed)
        found = diagnose(file)
        again = {} if found.refused else _again(file, found)
        alone = _alone(file, found)
    row |= {"refused": found.refused, "missed": found.missed}
    if found.refused or found.replay is None or found.sent is None or found.path is None:
        return row
    if not alone:
        return {**row, "refused": "the run tells of several connections together"}
    flow = _flow(run, found)
    row["controller"] = flow.get("congestion_control")
    truth = held(flow)
    if truth is None:  # datagrams, or several simultaneous connections
        return {**row, "refused": "the run does not tell"}
    truth = _as_far(run, flow["flow"], found, truth)
    life = sum(value for cause, value in truth.items() if cause != "idle")
    truth, told = (together(spent, found.paced, found.unqueued, found.level) for spent in (truth, found.replay.seconds))
    row["paced"] = found.paced
    off = {cause: told[cause] - truth[cause] for cause in CAUSES if cause != "idle"}
    worst = max(off, key=lambda cause: abs(off[cause]))
    row |= {"limits_off": abs(off[worst]) / life if life else 0.0, "worst": worst, "truth": truth[worst]}
    row |= _losses(run, found, flow["flow"], again)
    if kind != "shipped":
        row |= _path(run, found, name)
    return row


def _as_far(run: ackclock.Run, flow: int, found: Diagnosis, whole: dict[str, float]) -> dict[str, float]:
    """Causes up to the capture's last packet; at the receiver, packets from the last RTT had not arrived by then."""
    assert found.replay is not None
    instants = found.replay.instants
    life = instants[-1].t - instants[0].t
    unseen = 0.0
    if found.connection["captured_at"] == "server":  # a client's wait and a lost SYN do not show there
        unseen = max(whole["handshake"] - found.replay.seconds["handshake"], 0.0)
        life += unseen
    if sum(whole.values()) <= life:
        return whole | {"handshake": whole["handshake"] - unseen}
    rows = run.limits.filter(pl.col("flow") == flow)
    times = rows["t_s"].to_numpy()
    begin = times[0] - sum(rows.select(COLUMNS.values()).row(0))
    told = {}
    for name, column in COLUMNS.items():
        spent = np.concatenate([[0.0], rows[column].cum_sum().to_numpy()])
        told[name] = float(np.interp(begin + life, np.concatenate([[begin], times]), spent))
    return told | {"handshake": told["handshake"] - unseen}


def _alone(file: Path, found: Diagnosis) -> bool:
    """Whether the flow has only one connection; a run reports all connections of a flow together."""
    own = read_capture(file).connections.filter(pl.col("from_address") == found.connection["from_address"])
    return own.filter(pl.col("bytes") > 0).height <= 1


def _again(file: Path, found: Diagnosis) -> dict[int, int]:
    """Number of retransmissions of each segment in the capture, by the offset of its first byte; short segments are counted separately."""
    packets = read_capture(file, connection=found.connection["connection"]).packets
    assert packets is not None
    own = (pl.col("from_server") == (found.connection["way"] == "server")) & (pl.col("length") > 0)
    repeated = packets.filter(own & pl.col("kind").is_in(["retransmission", "needless", "late"]))
    again: dict[int, int] = {}
    for seq, length in repeated.select("seq", "length").iter_rows():
        for at in range(seq, seq + length, found.mss):
            again[at] = again.get(at, 0) + 1
    return again


def _flow(run: ackclock.Run, found: Diagnosis) -> Row:
    """The flow sent from this address."""
    *_, high, low = found.connection["from_address"].split(".")
    return run.rows("flows")[int(high) * 256 + int(low) - 1]


def _losses(run: ackclock.Run, found: Diagnosis, flow: int, again: dict[int, int]) -> Row:
    """Losses in the capture that did not occur in the network, and vice versa, counting only losses made visible by a retransmission."""
    assert found.sent is not None
    mine = run.drops.filter(pl.col("forward") & (pl.col("seg_no") > 0) & (pl.col("flow") == flow))
    sizes = {(n, which): size for n, which, size in mine.select("seg_no", "rexmit", "bytes").iter_rows()}
    real = _segments(run, flow, found.mss, sizes)
    told = set(found.sent.lost_at)
    seen = {(at, which) for at, which in real if which < again.get(at, 0)}
    return {"lost": len(seen), "lost_too_many": len(told - real), "lost_too_few": len(seen - told)}


def _segments(run: ackclock.Run, flow: int, mss: int, packets: dict[tuple[int, int], int]) -> set[tuple[int, int]]:
    """Multi-segment packets as single segments, by offset, each with its transmission number: lost as a whole, or
    behind a NIC that split them.
    """
    sent = run.acks.filter((pl.col("flow") == flow) & pl.col("event").is_in(["send", "rtx"]))
    times: dict[int, int] = {}
    made = set()
    for number, again, seq, length in sent.select("seg_no", "rexmit", "seq", "len").iter_rows():
        whole = packets.get((number, again), 0) >= length
        for part, at in enumerate(range(seq, seq + length, mss)):
            if whole or (number + part, again) in packets:
                made.add((at, times.get(at, 0)))
            times[at] = times.get(at, 0) + 1
    return made


def _path(run: ackclock.Run, found: Diagnosis, name: str) -> Row:
    path = found.path
    assert path is not None
    mbps, rtt_ms = (float(part.split()[0]) for part in name.split(", ")[1:3])
    rtt = rtt_ms * 1e-3 + 1514 * 8 / mbps / 1e6
    made: Row = {"identified": path.identified, "base_off": path.base_rtt_s and path.base_rtt_s / rtt - 1}
    if path.wire_bps is not None:
        made["rate_off"] = path.wire_bps / (mbps * 1e6) - 1
    link = max(run.rows("links"), key=lambda link: link["dropped_queue"])
    if path.queue_s is not None and link["max_wait_s"]:  # never full, so any value other than a bound is wrong
        off = path.queue_s / (link["max_wait_s"] if link["dropped_queue"] else math.inf) - 1
        made["queue_bound_off" if path.queue_bound else "queue_off"] = off
    made["full"] = link["dropped_queue"]
    return made


def tables(rows: list[Row]) -> str:
    """Report in Markdown."""
    lines = [
        "| captured | captures | refused | causes within 1 % | losses as dropped | rate within 2 % | base RTT within 2 % | queue within 2 % | 10 % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for way in WAYS:
        own = [row for row in rows if row["way"] == way]
        if not own:
            continue
        told = [row for row in own if "limits_off" in row]
        full = [row for row in told if row.get("identified")]
        queue = [abs(row["queue_off"]) for row in full if row.get("queue_off") is not None]
        exact = sum(not row["lost_too_many"] and not row["lost_too_few"] for row in told)
        lines.append(
            f"| {way} | {len(own)} | {sum(bool(row['refused']) for row in own)} | {sum(row['limits_off'] <= 0.01 for row in told)} of {len(told)} | "
            f"{exact} of {len(told)} | {sum(abs(row['rate_off']) <= 0.02 for row in full)} of {len(full)} | "
            f"{sum(abs(row['base_off']) <= 0.02 for row in full)} of {len(full)} | "
            f"{sum(off <= 0.02 for off in queue)} of {len(queue)} | {sum(off <= 0.1 for off in queue)} of {len(queue)} |"
        )
    lines.append("")
    for way in WAYS:
        bounds = [
            row
            for row in rows
            if row["way"] == way and row.get("identified") is False and row.get("rate_off") is not None
        ]
        if bounds:
            above = sum(row["rate_off"] > 0.02 for row in bounds)
            off = median(row["rate_off"] for row in bounds)
            lines.append(
                f"{way}: {len(bounds)} rates told as a bound, {above} of them above the rate, median {off:+.0%}."
            )
    lines.append("")
    for row in rows:
        if row.get("limits_off", 0.0) > 0.01 or row.get("lost_too_many") or row.get("lost_too_few"):
            said = f"{row['limits_off']:.1%} {row['worst']}, losses +{row['lost_too_many']} -{row['lost_too_few']} of {row['lost']}"
            lines.append(f"missed: {row['way']}: {row['name']}: {said}")
        if row.get("identified") and abs(row.get("queue_off") or 0.0) > 0.02:
            lines.append(f"queue: {row['way']}: {row['name']}: {row['queue_off']:+.1%}")
    return "\n".join(lines)


def main() -> int:
    """Run all variants of one scenario, then those of the next."""
    seed, each = int(sys.argv[1]), int(sys.argv[2])
    journal = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    rows = [json.loads(line) for line in journal.read_text().splitlines()] if journal and journal.exists() else []
    known = {(row["name"], row["way"]) for row in rows}
    for kind, name, scenario in scenarios(seed, each):
        for way in WAYS:
            if (name, way) in known:
                continue
            try:
                rows.append(one(kind, name, scenario, way, seed))
            except ackclock.ScenarioError as error:
                rows.append({"kind": kind, "name": name, "way": way, "refused": f"scenario: {error}"})
            except ackclock.errors.InputError as error:
                rows.append({"kind": kind, "name": name, "way": way, "refused": str(error)})
            if journal is not None:
                with journal.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(tables(rows))
    record_markdown(
        "diagnosed",
        tables(rows),
        what="What `ackclock diagnose` finds in captures of runs, beside what the runs know",
        seeds=str(seed),
        notes=[f"{each} drawn scenarios of each of three kinds, and the shipped ones."],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
