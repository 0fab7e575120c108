"""Tests for a host's own device: its queue, TCP small queues, fq."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import pytest

import ackclock
from ackclock.errors import ScenarioError

PATH_S = 0.040
SLOW = {"line_rate": "20 Mbit/s"}


def cell(host: dict[str, Any], stack: dict[str, Any] | None = None, **flow: Any) -> ackclock.Scenario:
    return ackclock.Scenario.from_dict(
        {
            "duration": "5 s",
            "hosts": [{"name": "sender", **host}],
            "network": {"framing": "14 bytes", "bottleneck": {"rate": "10 Gbit/s", "delay": "20 ms"}},
            "flows": [{"host": "sender", "stack": stack or {}, **flow}],
            "record": {"sample_interval": "50 ms"},
        }
    )


def srtt(run: ackclock.Run) -> float:
    late = run.samples.filter(run.samples["t_s"] > 2)
    return float(late["srtt_s"].mean())


def test_small_queues_keep_the_queue_of_ones_own_host_short() -> None:
    small, deep = (ackclock.run(cell(SLOW, {"small_queues": on})) for on in (True, False))
    assert srtt(small) < PATH_S + 0.004, "about a millisecond's worth, and two packets"
    assert srtt(deep) > PATH_S + 0.1, "up to 1000 packets of 0.6 ms"
    assert small.flows["goodput_bps"][0] > 0.98 * deep.flows["goodput_bps"][0]
    assert small.hosts["device_max_packets"][0] < 20 < deep.hosts["device_max_packets"][0]
    older = ackclock.run(cell(SLOW, profile="linux-3.2"))
    assert srtt(older) > PATH_S + 0.1, "they came in 3.6"


def test_the_bound_in_bytes_binds() -> None:
    # 2280 bytes are charged per packet: with 9000 bytes, four packets may wait in addition to the one in transmission
    run = ackclock.run(cell({"line_rate": "1 Gbit/s"}, {"limit_output_bytes": "9000 bytes"}))
    free = ackclock.run(cell({"line_rate": "1 Gbit/s"}))
    assert run.hosts["device_max_packets"][0] <= 4 < free.hosts["device_max_packets"][0]


def test_what_a_full_queue_refuses_is_not_lost_and_slows_the_sender_down() -> None:
    run = ackclock.run(cell({**SLOW, "queue": {"kind": "fifo", "limit": 2}}, {"limit_output_bytes": "1 MB"}))
    refused, retransmissions = run.hosts["device_refused"][0], run.flows["retransmissions"][0]
    assert refused > 0 == retransmissions
    lost = ackclock.run(cell({**SLOW, "queue": {"kind": "fifo", "limit": 20}}, {"small_queues": False}))
    assert lost.hosts["device_refused"][0] == lost.flows["retransmissions"][0] > 0, "nobody told the sender"


def test_fq_paces_any_controller_and_holds_its_bound() -> None:
    run = ackclock.run(cell({"queue": {"kind": "fq"}}, {"max_pacing_rate": "30 Mbit/s"}))
    assert run.flows["goodput_bps"][0] == pytest.approx(30e6 * 1448 / 1500, rel=0.02)
    bound = ackclock.run(cell({"queue": {"kind": "fq", "max_rate": "30 Mbit/s"}}).set("duration", "20 s"))
    # the qdisc counts frames, TCP counts payload
    assert bound.flows["goodput_bps"][0] == pytest.approx(30e6 * 1448 / 1514, rel=0.02)
    assert bound.flows["largest_burst"][0] == 1


def test_fq_shares_and_marks() -> None:
    two = ackclock.run(cell({**SLOW, "queue": {"kind": "fq"}}, count=2))
    one, other = two.flows["goodput_bps"]
    assert one == pytest.approx(other, rel=0.02)
    marked = ackclock.run(cell({**SLOW, "queue": {"kind": "fq", "ce_threshold": "1 ms"}}, congestion_control="dctcp"))
    assert marked.hosts["device_marked"][0] > 0 == marked.flows["retransmissions"][0]
    assert srtt(marked) < srtt(two)


def test_large_packets_are_cut_up_behind_the_queue() -> None:
    whole = ackclock.run(cell({"line_rate": "100 Mbit/s", "cuts_packets": True}, {"tso": True}))
    link = whole.links.row(0, named=True)
    assert whole.hosts["device_packets"][0] == pytest.approx(link["arrivals"], abs=20)
    assert whole.hosts["device_max_packets"][0] < 12, "packets of several segments wait as one"


def test_captures_show_what_leaves_the_device(tmp_path: Path) -> None:
    scenario = cell({**SLOW, "queue": {"kind": "fq"}}).set("duration", "1 s")
    captured = ackclock.run(scenario, pcap=tmp_path / "x.pcapng")
    assert ackclock.run(scenario).digest == captured.digest
    content, at, sent, times = (tmp_path / "x.pcapng").read_bytes(), 0, [], []
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:  # an enhanced packet block
            _, high, low, _, size = struct.unpack_from("<IIIII", content, at + 8)
            times.append(high << 32 | low)
            if size > 1000:
                sent.append(times[-1])
        at += length
    assert times == sorted(times)
    assert len(sent) > 500
    gaps = [b - a for a, b in itertools.pairwise(sent)]
    assert min(gaps) >= 1514 * 8 / 20e6 * 1e9 - 1, "no faster than the line"


@pytest.mark.parametrize(
    ("host", "key"), [({"batch": 4}, "batch"), ({"transmit_interval": "1 ms"}, "transmit_interval")]
)
def test_a_device_and_batches_do_not_go_together(host: dict[str, Any], key: str) -> None:
    with pytest.raises(ScenarioError, match=key):
        ackclock.run(cell({**SLOW, **host}))


def test_the_trace_is_in_order_of_time_where_fq_releases_later() -> None:
    run = ackclock.run(cell({**SLOW, "queue": {"kind": "fq"}}).set("record.trace", "all").set("duration", "1 s"))
    assert (run.acks["t_ns"].diff().drop_nulls() >= 0).all()
    sent = run.acks.filter(run.acks["event"] == "send")
    assert sent["seq"].diff().drop_nulls().min() > 0, "each when it left"
