"""Tests for public bug reports as scenarios (`tests/reports`): each reproduces its symptom."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

import ackclock

FOLDER = Path(__file__).parents[2] / "reports"

Scenario = ackclock.Scenario


def flow(scenario: Scenario) -> dict[str, float]:
    return ackclock.run(scenario, seed=1).rows("flows")[0]


def gaps(scenario: Scenario) -> None:
    row = flow(scenario)
    assert row["failed"]
    assert row["failure"] == "too many gaps"


def reordering(scenario: Scenario) -> None:
    row = flow(scenario)
    assert row["lost_packets"] / row["sent_packets"] > 0.5
    assert row["goodput_bps"] < 0.25 * 200e6


def trickle(scenario: Scenario) -> None:
    windows = ackclock.run(scenario, seed=1).samples["cwnd"]
    assert windows.max() > 5 * windows.min()
    cubic = ackclock.run(scenario.set("flows.0.congestion_control", "quinn:cubic"), seed=1).samples["cwnd"]
    assert windows.max() > 20 * cubic.max()


def hystart(scenario: Scenario) -> None:
    classic, newer = flow(scenario), flow(scenario.set("flows.0.stack.slow_start.kind", "hystart++"))
    assert (classic["slow_start_by"], classic["retransmissions"]) == ("rule", 0)
    assert classic["slow_start_cwnd"] < 0.25 * newer["slow_start_cwnd"]
    assert classic["goodput_bps"] < 0.75 * newer["goodput_bps"]


def tbf(scenario: Scenario) -> None:
    rows = ackclock.run(scenario, seed=1).rows("flows")
    assert all(row["mean_rtt_s"] > 3 for row in rows)
    assert sum(row["goodput_bps"] for row in rows) < 512e3


def limit(scenario: Scenario) -> None:
    found = ackclock.run(scenario, seed=1)
    row = found.rows("flows")[0]
    assert 11 < row["completion_s"] < 60  # 300 packets of 1,500 bytes in 100 ms are 36 Mbit/s
    assert found.rows("links")[0]["dropped_queue"] > 0
    assert flow(scenario.set("network.bottleneck.queue.limit", "100000 packets"))["completion_s"] < 5


def normal(scenario: Scenario) -> None:
    found = ackclock.run(scenario, seed=1)
    assert sum(link["dropped_queue"] + link["dropped_loss"] for link in found.rows("links")) == 0
    assert found.rows("flows")[0]["retransmissions"] > 0
    ordered = flow(scenario.set("network.egress.rate", "10 Gbit/s"))
    assert ordered["retransmissions"] == 0


def without(scenario: Scenario, key: str) -> Scenario:
    """Return the scenario without one key of the first flow's stack."""
    values = scenario.to_dict()
    del values["flows"][0]["stack"][key]
    return Scenario.from_dict(values)


def goodputs(scenario: Scenario) -> list[float]:
    return [row["goodput_bps"] / 1e6 for row in ackclock.run(scenario, seed=1).rows("flows")]


def tail(scenario: Scenario) -> None:
    def lost(times: int) -> float:
        drops = [{"first": 10, "transmission": n} for n in range(times)]
        return flow(scenario.set("network.bottleneck.loss.drops", drops))["completion_s"]

    took = [lost(times) for times in range(1, 5)]
    # 284, 508, 956 and 1,876 ms were reported: the intervals match, but here the FIN behind the first loss reveals it
    # sooner
    waits = [later - sooner for sooner, later in itertools.pairwise(took)]
    assert waits == pytest.approx([0.224, 0.448, 0.920], abs=0.01)


def minute(scenario: Scenario) -> None:
    def back(controller: str) -> float:
        rows = ackclock.run(scenario.set("flows.0.congestion_control", controller), seed=1).rows("goodput")
        steady = [row["t_s"] for row in rows if row["t_s"] > 71 and row["goodput_bps"] > 5e5]
        return steady[0] - 70

    assert back("cubic") < 5
    assert back("bbr") > 20


def capped(scenario: Scenario) -> None:
    found = flow(scenario)
    assert found["goodput_bps"] < 0.1e9
    assert found["limit_sndbuf_s"] > 9
    assert flow(scenario.set("flows.0.stack.send_buffer", "16 MB"))["goodput_bps"] > 10 * found["goodput_bps"]


def bbr_and_cubic(scenario: Scenario) -> None:
    bbr, cubic = goodputs(scenario)
    assert bbr > 10 * cubic
    bbr, cubic = goodputs(scenario.set("network.bottleneck.queue.limit", "4 BDP"))
    assert cubic > bbr


def remembered(scenario: Scenario) -> None:
    warm, cold = flow(scenario), flow(without(scenario, "metrics_cache"))
    assert (warm["retransmissions"], warm["slow_start_cwnd"]) == (0, 20)
    assert warm["completion_s"] > 2.5 * cold["completion_s"]


def stripped(scenario: Scenario) -> None:
    prague, cubic = goodputs(scenario)
    assert prague > 20 * cubic
    fair = goodputs(scenario.set("network.egress.ecn_fault.probability", 0.0))
    assert fair[0] < 3 * fair[1]


def mebibyte(scenario: Scenario) -> None:
    (held,) = goodputs(scenario)
    assert 100 < held < 8 * 1.048576 / 0.05
    assert goodputs(scenario.set("flows.0.congestion_control_options.receive_window", 4 << 20))[0] > 3 * held


def long_path(scenario: Scenario) -> None:
    assert goodputs(scenario)[0] < 3
    assert goodputs(scenario.set("flows.0.congestion_control", "bbr"))[0] > 100


def overshoot(scenario: Scenario) -> None:
    classic = flow(scenario)["retransmissions"]
    newer = flow(scenario.set("flows.0.stack.slow_start.kind", "hystart"))["retransmissions"]
    assert classic > 10 * newer


def a_fifth(scenario: Scenario) -> None:
    tenth, fifth, cubic = (
        goodputs(scenario.set_all({"network.bottleneck.loss.p": p, "flows.0.congestion_control": name}))[0]
        for p, name in ((0.1, "bbr"), (0.2, "bbr"), (0.1, "cubic"))
    )
    assert tenth > 7
    assert fifth < 1
    assert cubic < 0.5


def latency(scenario: Scenario, step: int) -> float:
    rows = ackclock.run(scenario, seed=1).rows("conversations")
    took = sorted(row["latency_s"] for row in rows if row["step"] == step)
    return took[len(took) // 2]


def answer(scenario: Scenario) -> None:
    assert 0.040 < latency(scenario, 1) < 0.042
    assert latency(scenario.set("flows.0.stack.nodelay", True), 1) < 0.001


def request(scenario: Scenario) -> None:
    assert 0.040 < latency(scenario, 0) < 0.042
    assert latency(scenario.set("flows.0.stack.nodelay", True), 0) < 0.001


def cork(scenario: Scenario) -> None:
    assert latency(scenario, 1) < 0.002
    assert latency(scenario.set("flows.0.workload.steps.1.corked", False), 1) > 0.040


def ticks(scenario: Scenario) -> None:
    assert latency(scenario, 0) > 0.045
    assert latency(scenario.set("flows.0.stack.nodelay", True), 0) < 0.032


def idle(scenario: Scenario) -> None:
    assert latency(scenario, 1) > 0.3
    assert latency(scenario.set("flows.0.stack.idle_restart", False), 1) < 0.1


def unscaled(scenario: Scenario) -> None:
    assert goodputs(scenario)[0] == pytest.approx(8 * 0.065535 / 0.095, rel=0.1)
    assert goodputs(scenario.set("network.bottleneck.delay", "5 ms"))[0] == pytest.approx(52, rel=0.1)


def backlog(scenario: Scenario) -> None:
    rows = ackclock.run(scenario, seed=1).rows("flows")
    waits = [
        row["established_s"] - 0.02 for row in rows if row["established_s"] is not None and row["established_s"] < 4
    ]
    assert len([wait for wait in waits if wait > 0.9]) > 10
    assert all(abs(wait - round(wait)) < 0.1 for wait in waits)  # the kernel's timers are coarse


def flooded(scenario: Scenario) -> None:
    flood, bbr = goodputs(scenario)
    assert flood > 4
    assert bbr < 0.5


def bundles(scenario: Scenario) -> None:
    def got(controller: str) -> float:
        return goodputs(scenario.set("flows.0.congestion_control", controller))[0]

    assert got("bbr") > 90
    assert got("vegas") < 60


def incast(scenario: Scenario) -> None:
    found = flow(scenario)
    assert found["rtos"] > 5
    assert found["completion_s"] > 1
    assert flow(scenario.set("flows.0.stack.min_rto", "1 ms"))["completion_s"] < 0.1


def call(scenario: Scenario) -> None:
    def waits(queue: dict[str, str]) -> float:
        return float(
            ackclock.run(scenario.set("network.bottleneck.queue", queue), seed=1).rows("datagrams")[0]["p50_delay_s"]
        )

    assert waits({"kind": "drop-tail", "limit": "1000 packets"}) > 2
    assert waits({"kind": "fq-codel"}) < 0.03


def policer(scenario: Scenario) -> None:
    (policed,) = goodputs(scenario)
    queue = {"network.bottleneck.loss": {"kind": "none"}, "network.bottleneck.rate": "50 Mbit/s"}
    assert policed < 20
    assert goodputs(scenario.set_all(queue))[0] > 45


def once(scenario: Scenario) -> None:
    found = ackclock.run(scenario, seed=1)
    windows = [row["cwnd"] for row in found.rows("acks")]
    shares = [after / before for before, after in itertools.pairwise(windows) if after < 0.9 * before]
    assert len(shares) == found.rows("flows")[0]["recoveries"] > 10
    assert all(share == pytest.approx(0.7, abs=0.03) for share in shares)


def coarse(scenario: Scenario) -> None:
    strict, generous = (flow(scenario.set("hosts.0.catch_up", name)) for name in ("none", "full"))
    assert strict["limit_pacing_s"] > 0.4 * 10
    assert generous["limit_pacing_s"] < 0.01 * 10


def camera(scenario: Scenario) -> None:
    def late(p: float) -> float:
        rows = ackclock.run(scenario.set("network.bottleneck.loss.p", p), seed=1).rows("conversations")
        assert all(row["done"] for row in rows)
        return max(row["latency_s"] for row in rows)

    assert flow(scenario)["goodput_bps"] == pytest.approx(74e3, rel=0.02)
    assert late(0.02) > 0.2
    assert late(0.0) < 0.05


def reader(scenario: Scenario) -> None:
    found = flow(scenario)
    assert found["limit_rwnd_s"] > 9
    assert found["goodput_bps"] < 2.3e6
    values = scenario.to_dict()
    del values["flows"][0]["reader"]
    assert goodputs(Scenario.from_dict(values))[0] > 90


SYMPTOMS: dict[str, Callable[[Scenario], None]] = {
    "bbr-beside-a-flood": flooded,
    "bbr-where-a-fifth-is-lost": a_fifth,
    "bundled-acks": bundles,
    "idle-resets-the-window": idle,
    "incast-waits-for-timers": incast,
    "policed-with-a-small-burst": policer,
    "syn-lost-again-and-again": backlog,
    "upload-kills-the-call": call,
    "window-of-64-kib": unscaled,
    "gaps-after-overshoot": gaps,
    "hystart-at-140-ms": overshoot,
    "l4s-with-bleached-marks": stripped,
    "nagle-and-a-cork": cork,
    "nagle-answer-in-two-writes": answer,
    "nagle-request-in-two-writes": request,
    "one-bbr-against-cubic": bbr_and_cubic,
    "outage-of-a-minute": minute,
    "send-buffer-caps": capped,
    "some-loss-on-a-long-path": long_path,
    "ssthresh-of-yesterday": remembered,
    "tail-lost-again-and-again": tail,
    "tick-behind-a-delayed-ack": ticks,
    "window-of-one-mebibyte": mebibyte,
    "hystart-and-jitter": hystart,
    "netem-limit-without-rate": limit,
    "netem-normal-jitter": normal,
    "reordering-taken-for-loss": reordering,
    "tbf-three-streams": tbf,
    "window-of-a-trickle": trickle,
    "one-loss-two-reductions": once,
    "pacer-of-a-millisecond": coarse,
    "trickle-of-a-camera": camera,
    "reader-that-is-slow": reader,
}


def test_every_report_has_its_symptom():
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted(SYMPTOMS)
    assert all(len(path.read_text().splitlines()) <= 15 for path in FOLDER.glob("*.toml"))


@pytest.mark.parametrize("name", SYMPTOMS)
def test_a_report_shows_its_symptom(name):
    SYMPTOMS[name](ackclock.load(FOLDER / f"{name}.toml"))
