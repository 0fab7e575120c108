"""Tests for netem's jitter and TBF as the kernel's own disciplines; tools/kernel_links.py measures them with more packets."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ks_2samp

import ackclock
from ackclock import linux
from ackclock.diff import compare
from ackclock.errors import ScenarioError
from ackclock.formats import tc
from ackclock.linux import _translate
from ackclock.linux._facts import Has

KERNEL = Has(release="7.3.4", controllers=("cubic",))
INTERVAL_NS = 1_000_000
JITTER = {"delay": "20 ms", "netem_jitter": {"deviation": "5 ms", "distribution": "normal", "correlation": 0.25}}
BUCKET = {
    "rate": "10 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "40 kB"},
    "capacity": {"kind": "token-bucket", "burst": "12 kB"},
}  # fmt: skip


def scenario(bottleneck: dict[str, Any], flow: dict[str, Any] | None = None, **links: Any) -> ackclock.Scenario:
    network = {"framing": "14 bytes", "bottleneck": bottleneck, **links}
    return ackclock.Scenario.from_dict({"duration": "3 s", "network": network, "flows": [flow or {}]})


def translated(made: ackclock.Scenario, network: Any = "qdisc") -> dict[str, Any]:
    job: dict[str, Any] = _translate.job(json.loads(made.to_engine_json()), 1, network, KERNEL)["network"]
    return job


def jittered() -> ackclock.Scenario:
    datagrams = {"kind": "constant-rate", "rate": "1.024 Mbit/s", "payload": "100 bytes"}
    return scenario({"rate": "10 Gbit/s"}, {"transport": "udp", "workload": datagrams}, access=JITTER)


def test_jitter_is_netems_own() -> None:
    leaf = translated(jittered())["forward"][0]["qdisc"]["leaf"]
    assert leaf["words"] == "netem limit 1000000 delay 20000us 5000us 25% distribution normal"
    given = {number: bytes(value) for number, value in leaf["attributes"]}
    assert struct.unpack("=q", given[11]) == (5_000_000,)  # TCA_NETEM_JITTER64
    assert struct.unpack("=III", given[1]) == (2**30, 0, 0)  # TCA_NETEM_CORR
    table = struct.unpack("=4096h", given[2])  # TCA_NETEM_DELAY_DIST
    assert sorted(table) == list(table)
    assert sum(entry < 8192 for entry in table) / 4096 == pytest.approx(0.8413, abs=1e-3)  # one deviation


def test_a_bucket_is_tbf_with_the_queue_below_it() -> None:
    first, second = translated(scenario(BUCKET))["forward"]
    assert first["qdisc"]["shaper"] == {"rate": 1_250_000, "burst": 12_000, "overhead": 0, "bucket": True}
    assert first["qdisc"]["leaf"]["words"] == "bfifo limit 40000"
    assert second["qdisc"]["leaf"]["words"] == "netem limit 1000000 delay 10000us"
    assert "tbf rate 10000000bit burst 12000b" in tc.export(scenario(BUCKET)).text


@pytest.mark.parametrize(
    ("bottleneck", "found"),
    [
        ({"rate": "10 Mbit/s", **JITTER}, r"network\.bottleneck\.netem_jitter: found a link with a rate"),
        ({**BUCKET, "capacity": {"kind": "token-bucket", "burst": "900 bytes"}}, r"capacity\.burst: found 900 bytes"),
        ({"capacity": {"kind": "dummynet"}, "rate": "10 Mbit/s"}, r'network\.bottleneck\.capacity: found "dummynet"'),
    ],
)
def test_what_the_disciplines_cannot_do_is_left_to_the_relay(bottleneck: dict[str, Any], found: str) -> None:
    made = scenario(bottleneck)
    assert translated(made, "auto")["kind"] == "relay"
    with pytest.raises(ScenarioError, match=found):
        translated(made)


def delays_us(run: Any, folder: Path) -> list[float]:
    """Return the one-way delays of datagrams, in units of 10 us; both backends send one per interval, from 0 on."""
    file = folder / "receiver.pcapng"
    run(jittered(), seed=3, pcap=file, pcap_at="receiver")
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        block, length = struct.unpack_from("<II", data, at)
        if block == 6:
            high, low = struct.unpack_from("<II", data, at + 12)
            frame = data[at + 28 : at + 28 + 60]
            number = (
                struct.unpack(">H", frame[18:20])[0] - 1 if frame[0] >> 4 != 4 else struct.unpack(">I", frame[28:32])[0]
            )
            found.append(round(((high << 32 | low) - number * INTERVAL_NS) / 1e4))
        at += length
    return found


def test_the_kernels_delays_have_the_simulators_distribution(kernel: linux.Kernel, tmp_path: Path) -> None:
    def real(made: ackclock.Scenario, **given: Any) -> None:
        linux.run(made, network="qdisc", **given)

    ours, theirs = delays_us(ackclock.run, tmp_path), delays_us(real, tmp_path)
    assert min(len(ours), len(theirs)) > 2900
    assert ks_2samp(ours, theirs).pvalue > 1e-4


def test_every_event_through_tbf_is_the_kernels(kernel: linux.Kernel) -> None:
    found = compare(scenario(BUCKET, access={"rate": "1 Gbit/s"}), network="qdisc")
    assert found.identical, found.divergence
    assert found.events > 1000
