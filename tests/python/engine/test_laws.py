"""Tests for laws that every run obeys: no packet appears or vanishes, no link exceeds its rate, no sender forgets data.

Scenarios are drawn from a seed: queues, losses, controllers, recovery rules, profiles, workloads, stack switches,
hosts. `make soak` draws 10,000, or as many as LAWS says.
"""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

import polars as pl
import pytest

import ackclock
from ackclock import Run, linux, units

QUEUES: list[dict[str, Any]] = [
    {"kind": "drop-tail"}, {"kind": "netem-limit"}, {"kind": "codel"}, {"kind": "fq-codel"}, {"kind": "pie"}, {"kind": "choke"},
    {"kind": "red", "min": "5 packets", "max": "15 packets"}, {"kind": "dualpi2"}, {"kind": "fq-pie"},
]  # fmt: skip
LOSSES: list[dict[str, Any] | None] = [
    None, None, {"kind": "bernoulli", "p": 0.01}, {"kind": "bernoulli", "p": 0.1}, {"kind": "periodic", "every": 40},
    {"kind": "gilbert-elliott", "p": 0.01, "r": 0.2},
]  # fmt: skip
CONTROLLERS = [
    "reno", "cubic", "cubic-rfc9438", "westwood", "westwood-plus", "fast", "highspeed", "bic", "htcp", "scalable", "vegas", "illinois",
    "hybla", "veno", "yeah", "compound", "bbr", "bbr3", "dctcp", "ledbat++", "pcc-allegro", "pcc-vivace",
]  # fmt: skip
WORKLOADS: list[dict[str, Any]] = [
    {"kind": "bulk"}, {"kind": "bulk"}, {"kind": "transfer", "bytes": "60 KB"}, {"kind": "transfer", "bytes": "1 B"},
    {"kind": "fetch", "bytes": "20 KB", "count": 5},
    {"kind": "transactions", "bytes": "10 KB", "arrivals": {"kind": "poisson", "rate": 8}, "max_open": 50},
]  # fmt: skip
SWITCHES: dict[str, list[Any]] = {
    "sack": [False], "timestamps": [False], "frto": [False], "ecn": ["request"], "tso": [True], "smss": ["536 B", "1200 B"],
    "receive_buffer": ["20 KB", "200 KB"],
}  # fmt: skip
LIMIT = 60
"""Maximum queue limit, packets, for queues that have one."""


def drawn(number: int) -> ackclock.Scenario:
    """Return a scenario; combinations that the engine refuses are drawn again."""
    draw = random.Random(number)
    while True:
        try:
            return ackclock.Scenario.from_dict(_values(draw))
        except ackclock.ScenarioError:
            continue


def _values(draw: random.Random) -> dict[str, Any]:
    queue = dict(draw.choice(QUEUES))
    queue["limit"] = f"{draw.randint(LIMIT // 3, LIMIT)} packets"
    link: dict[str, Any] = {
        "rate": f"{draw.choice([1, 2, 5, 10, 20])} Mbit/s", "delay": f"{draw.randint(1, 60)} ms", "queue": queue,
    }  # fmt: skip
    if (loss := draw.choice(LOSSES)) is not None:
        link["loss"] = loss
    if draw.random() < 0.2:
        link["jitter"] = f"{draw.randint(1, 5)} ms"
    flows = []
    for _ in range(draw.randint(1, 2)):
        flow: dict[str, Any] = {
            "count": draw.randint(1, 3), "congestion_control": draw.choice(CONTROLLERS), "workload": draw.choice(WORKLOADS),
        }  # fmt: skip
        if not flow["congestion_control"].startswith("pcc"):
            flow["stack"] = {k: draw.choice(v) for k, v in SWITCHES.items() if draw.random() < 0.2}
            if draw.random() < 0.3:
                flow["profile"] = draw.choice(["linux-3.2", "linux-2.6", "rfc", "freebsd-4"])
        flows.append(flow)
    values: dict[str, Any] = {
        "duration": f"{draw.choice([1, 3])} s",
        "network": {"bottleneck": link},
        "flows": flows,
        "record": {
            "trace": "all",
            "drops": True,
            "queue_interval": "10 ms",
            "performance": True,
            "goodput_interval": "100 ms",
        },
    }
    preset = draw.choice([None, None, None, "xen-shared", "micro", "modern"])
    if preset == "modern":
        values["hosts"] = "modern"
    elif preset is not None:
        values["hosts"] = [{"name": "h", "preset": preset}]
        for flow in flows:
            flow["host"] = "h"
    return values


def broken(run: Run) -> list[str]:
    """Return the invariants that a run violates."""
    if "kernel" not in run.provenance:
        return [*_of_links(run), *_of_flows(run), *_of_performance(run), *_of_senders(run)]
    # the kernel's table `acks` does not separate consecutive connections of a flow
    one_each = all(group.workload.kind in ("bulk", "transfer") for group in run.scenario.flows)
    return [*_of_links(run), *_of_flows(run), *(_of_senders(run) if one_each else ())]


def _of_links(run: Run) -> list[str]:
    found = []
    link = run.scenario.network.bottleneck
    assert link is not None
    seconds = units.whole(run.scenario.duration, units.DURATION) / 1e9
    rate = units.whole(link.rate, units.RATE) if link.rate else None
    whole = run.scenario.hosts == "modern" or any(group.stack.tso for group in run.scenario.flows)
    dropped = dict(run.drops.group_by("link").len().iter_rows()) if run.drops.height else {}
    told = "kernel" not in run.provenance  # this run has no rows for single drops
    sampled = run.queue_samples
    most = dict(sampled.group_by("link").agg(pl.col("packets").max()).iter_rows()) if sampled.height else {}
    for row in run.rows("links"):
        if not told:  # some queues do not report kinds of drops, and without a warm-up values before it are null
            row = {name: 0 if value is None else value for name, value in row.items()}  # noqa: PLW2901 - the same row
        gone = row["dropped_loss"] + row["dropped_queue"]
        if row["arrivals"] + row["held_before"] != row["delivered"] + gone + row["held"]:
            found.append(f"link {row['name']}: packets are not conserved: {row}")
        if row["dropped_queue"] < row["dropped_queue_data"] + row["dropped_queue_syn_fin"]:
            found.append(f"link {row['name']}: more drops of some kinds than of all")
        rows = dropped.get(row["link"], 0)  # one row per dropped packet, which may have several segments
        if told and (rows > gone or (not whole and rows != gone)):
            found.append(f"link {row['name']}: {gone} dropped, {rows} rows")
        if rate is not None and row["bytes_delivered"] * 8 > rate * seconds + 8 * 65_536:
            found.append(f"link {row['name']}: carried {row['bytes_delivered']} bytes in {seconds} s at {rate} bit/s")
        if most.get(row["link"], 0) > row["max_packets"]:
            found.append(f"link {row['name']}: a sample of {most[row['link']]} packets, maximum {row['max_packets']}")
        if getattr(link.queue, "kind", "") == "drop-tail" and row["max_packets"] > LIMIT:
            found.append(f"link {row['name']}: {row['max_packets']} packets waited, limit at most {LIMIT}")
        if row["busy_s"] is not None and row["busy_s"] > seconds * (1 + 1e-9):
            found.append(f"link {row['name']}: busy for {row['busy_s']} s of {seconds}")
    return found


def _of_flows(run: Run) -> list[str]:
    found = []
    for row in run.rows("flows"):
        group = run.scenario.flows[row["group"]]
        kinds = sum(row[f"rtos_{state}"] for state in ("open", "disorder", "recovery", "loss"))
        if not group.congestion_control.startswith("pcc") and row["rtos"] != kinds:
            found.append(f"flow {row['flow']}: {row['rtos']} timeouts, {kinds} by state")
        if row["retransmissions"] > row["sent_packets"]:
            found.append(f"flow {row['flow']}: {row['retransmissions']} of {row['sent_packets']} are retransmissions")
        if group.workload.kind == "transfer":
            size = units.whole(group.workload.bytes, units.SIZE)
            if (row["completion_s"] is not None) != (row["bytes_acked"] >= size):
                found.append(
                    f"flow {row['flow']}: {row['bytes_acked']} of {size} bytes, complete at {row['completion_s']}"
                )
            if row["bytes_acked"] > size:
                found.append(f"flow {row['flow']}: {row['bytes_acked']} of {size} bytes acknowledged")
        if row["mean_rtt_s"] is not None and row["min_rtt_s"] > row["mean_rtt_s"] * (1 + 1e-9):
            found.append(f"flow {row['flow']}: least RTT {row['min_rtt_s']}, mean {row['mean_rtt_s']}")
    return found


def _of_performance(run: Run) -> list[str]:
    found = []
    rows = run.rows("performance")
    for row in rows:
        for what in ("rtt", "delay"):
            quantiles = [row[f"p{q}_{what}_s"] for q in (50, 95, 99)]
            if None not in quantiles and quantiles != sorted(quantiles):
                found.append(f"{row['of']} {row['number']}: quantiles of {what}: {quantiles}")
    for column in ("bytes_acked", "sent_packets", "retransmissions", "dropped_packets"):
        by = {of: sum(row[column] for row in rows if row["of"] == of) for of in ("flow", "group", "run")}
        if len(set(by.values())) != 1:
            found.append(f"performance: {column} of flows, groups and run: {by}")
    return found


def _of_senders(run: Run) -> list[str]:
    """Check the senders' trace rows: the pipe equals the sent data that has neither arrived nor been lost, and no ACK covers unsent data."""
    acks = run.acks
    if not acks.height:
        return []
    found = []
    flight, sacked, lost, again = (
        pl.col(c).cast(pl.Int64) for c in ("flight_size", "sacked_out", "lost_out", "retrans_out")
    )
    other = acks.filter(pl.col("pipe").cast(pl.Int64) != flight - sacked - lost + again)
    if other.height:
        found.append(f"pipe is another in {other.height} rows, e.g. {other.row(0, named=True)}")
    over = acks.filter(sacked + lost > flight)
    if over.height:
        found.append(f"more SACKed and lost than in flight in {over.height} rows")
    for (flow, responder, idx), rows in acks.sort("t_ns", maintain_order=True).group_by("flow", "responder", "idx"):
        sent = rows.filter(pl.col("event").is_in(["send", "rtx"]))
        end = (sent["seq"] + sent["len"].cast(pl.Int64)).max()
        came = rows.filter(pl.col("event") == "ack")["seq"]
        # a FIN also takes a sequence number
        if end is not None and came.len() and int(came.max()) > int(end) + 1:  # type: ignore[arg-type, call-overload]
            found.append(f"flow {flow}, {responder}, {idx}: {came.max()} acknowledged, {end} sent")
        if came.len() > 1 and (came.diff().drop_nulls() < 0).any():
            found.append(f"flow {flow}, {responder}, {idx}: acknowledged less than before")
    return found


KERNELS = [
    "reno",
    "cubic",
    "bbr",
    "bic",
    "westwood",
    "highspeed",
    "htcp",
    "scalable",
    "vegas",
    "illinois",
    "hybla",
    "veno",
    "yeah",
    "dctcp",
]


def of_kernel(number: int) -> ackclock.Scenario | None:
    """Return the scenario adapted to the real kernel: the kernel's own controllers and hosts, one second, only what
    the kernel reports; None if the kernel cannot run it.
    """
    draw = random.Random(number)
    values = _values(draw)
    values.pop("hosts", None)
    for flow in values["flows"]:
        for key in ("profile", "host"):
            flow.pop(key, None)
        if flow["congestion_control"] not in KERNELS:
            flow["congestion_control"] = draw.choice(KERNELS)
    values |= {"duration": "1 s", "record": {"trace": "all", "goodput_interval": "100 ms"}}
    try:
        scenario = ackclock.Scenario.from_dict(values)
        linux.check(scenario)
    except ackclock.ScenarioError:
        return None
    return scenario


def _check(numbers: range) -> None:
    for number in numbers:
        scenario = drawn(number)
        try:
            wrong = broken(ackclock.run(scenario, seed=number % 7 + 1))
        except BaseException as error:
            raise AssertionError(f"scenario {number}: {error}\n{scenario.to_toml()}") from error
        assert not wrong, f"scenario {number}: {wrong}\n{scenario.to_toml()}"


def test_laws_of_some_scenarios() -> None:
    _check(range(40))


@pytest.mark.long
def test_laws_of_ten_thousand_scenarios() -> None:
    """Number of scenarios: LAWS, if set in the environment."""
    _check(range(40, 40 + int(os.environ.get("LAWS", "10000"))))


@pytest.mark.long
def test_laws_of_a_hundred_scenarios_of_the_kernel(kernel: linux.Kernel) -> None:
    """Number of scenarios: KERNEL_LAWS, if set in the environment."""
    numbers = itertools.count()
    for _ in range(int(os.environ.get("KERNEL_LAWS", "100"))):
        number, scenario = next((n, made) for n in numbers if (made := of_kernel(n)) is not None)
        wrong = broken(linux.run(scenario, seed=number % 7 + 1))
        assert not wrong, f"scenario {number}: {wrong}\n{scenario.to_toml()}"


def test_the_laws_can_be_broken() -> None:
    """Runs with altered tables violate each law."""
    run = ackclock.run(drawn(1))
    assert not broken(run)
    flows, links = run.flows, run.links
    for table, altered in {
        "links": links.with_columns(pl.col("delivered") + 1),
        "flows": flows.with_columns(pl.col("retransmissions") + pl.col("sent_packets") + 1),
        "queue_samples": run.queue_samples.with_columns(pl.col("packets") + 1000),
        "performance": run.performance.with_columns(pl.col("sent_packets") + pl.col("number")+ 1),
        "acks": run.acks.with_columns(pl.col("pipe") + 1),
    }.items():  # fmt: skip
        from ackclock._results.columns import columns

        other = ackclock.Run(
            scenario=run.scenario, seed=run.seed, digest=run.digest, provenance=run.provenance,
            tables={**run.tables, table: columns(altered)},
        )  # fmt: skip
        assert broken(other), table
