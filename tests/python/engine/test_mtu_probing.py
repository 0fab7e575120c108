"""Tests for senders that probe the path MTU (RFC 4821)."""

from __future__ import annotations

from typing import Any

import ackclock


def run(*, outage: dict[str, Any] | None = None, **stack: str) -> ackclock.Run:
    link: dict[str, Any] = {"rate": "20 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    if outage:
        link["outage"] = outage
    scenario = {
        "duration": "10 s",
        "network": {"bottleneck": link},
        "flows": [{"congestion_control": "cubic", "stack": stack}],
        "record": {"trace": "all"},
    }
    return ackclock.run(ackclock.Scenario.from_dict(scenario), seed=1)


def sizes(made: ackclock.Run) -> list[int]:
    sent = made.acks.filter(made.acks["event"] == "send")["len"]
    return sent.unique(maintain_order=True).to_list()


def test_segments_grow_with_each_probe_until_the_range_is_narrow() -> None:
    always = run(mtu_probing="always")
    assert sizes(always) == [1024, 1236, 1342, 1395, 1421, 1434, 1441]
    # the small initial packets have a higher header overhead
    assert 0.99 < always.flows["goodput_bps"][0] / run().flows["goodput_bps"][0] < 1


def test_without_timeouts_nothing_is_doubted() -> None:
    assert sizes(run()) == sizes(run(mtu_probing="after-timeouts")) == [1448]


def test_timeouts_in_a_row_make_segments_smaller_and_probes_make_them_larger_again() -> None:
    # Four timeouts occur during the outage; after the fourth the sender lowers its segment size.
    outage = {"at": "1 s", "lasts": "5 s", "arrivals": "lost"}
    assert sizes(run(outage=outage)) == [1448]
    seen = sizes(run(outage=outage, mtu_probing="after-timeouts"))
    assert seen[:2] == [1448, 1024], seen
    assert seen[2:] == [1236, 1342, 1395, 1421, 1434, 1441], seen
