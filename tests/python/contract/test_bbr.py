"""Tests that BBR written in Python against the contract matches the built-in one bit for bit."""

from __future__ import annotations

import pytest
from bbr import Bbr

from ackclock import Scenario, run
from ackclock.controllers import check

LOSS = {"kind": "bernoulli", "p": "1 %"}


def path(rate, delay, limit="1 BDP", kind="drop-tail", **more):
    return {
        "rate": rate,
        "delay": delay,
        "queue": {"kind": kind, **({"limit": limit} if kind == "drop-tail" else {})},
        **more,
    }


BURSTS = {"workload": {"kind": "bursts", "bytes": "300 kB", "pause": "700 ms"}}
SCENARIOS = {
    "plain": ("3 s", path("10 Mbit/s", "20 ms"), {}),
    "probe-rtt": ("12 s", path("3 Mbit/s", "20 ms"), {}),
    "long": ("12 s", path("4 Mbit/s", "150 ms"), {}),
    "short": ("2 s", path("20 Mbit/s", "1 ms"), {}),
    "slow": ("30 s", path("300 kbit/s", "40 ms"), {}),
    "shallow": ("5 s", path("8 Mbit/s", "30 ms", "5 packets"), {}),
    "deep": ("11 s", path("3 Mbit/s", "30 ms", "10 BDP"), {}),
    "loss": ("5 s", path("8 Mbit/s", "20 ms", loss=LOSS), {}),
    "heavy-loss": ("8 s", path("5 Mbit/s", "20 ms", loss={"kind": "bernoulli", "p": "12 %"}), {}),
    "timeouts": ("20 s", path("2 Mbit/s", "50 ms", loss={"kind": "bernoulli", "p": "30 %"}), {}),
    "codel": ("5 s", path("8 Mbit/s", "20 ms", kind="codel"), {}),
    "fq-codel": ("5 s", path("8 Mbit/s", "20 ms", kind="fq-codel"), {}),
    "bursts": ("8 s", path("8 Mbit/s", "20 ms"), BURSTS),
    "bursts-loss": ("8 s", path("8 Mbit/s", "20 ms", loss=LOSS), BURSTS),
    "bursts-long": ("14 s", path("5 Mbit/s", "60 ms"), {"workload": {"kind": "bursts", "bytes": "900 kB", "pause": "3 s"}}),
    "two": ("5 s", path("8 Mbit/s", "20 ms"), {"count": 2}),
    "eight": ("4 s", path("8 Mbit/s", "20 ms"), {"count": 8}),
    "old-stack": ("5 s", path("5 Mbit/s", "20 ms", loss=LOSS), {"profile": "linux-3.2"}),
    "no-sack": ("5 s", path("5 Mbit/s", "20 ms", loss=LOSS), {"stack": {"sack": False}}),
    "short-flow": ("3 s", path("20 Mbit/s", "25 ms", "20 packets"), {"workload": {"kind": "transfer", "bytes": "2 MB"}}),
}  # fmt: skip


def scenario(name: str, controller: str) -> Scenario:
    duration, bottleneck, flow = SCENARIOS[name]
    return Scenario.from_dict(
        {
            "duration": duration,
            "network": {"bottleneck": bottleneck},
            "flows": [{"congestion_control": controller, **flow}],
        }
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_bbr_in_python_is_bbr(name):
    own = run(scenario(name, "custom:bbr"), seed=7, controllers={"bbr": Bbr})
    assert own.digest == run(scenario(name, "bbr"), seed=7).digest


def test_bbr_in_python_keeps_the_rules():
    check(Bbr, closed_loop=False)
