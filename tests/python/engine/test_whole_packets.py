"""Tests that multi-segment packets (`stack.tso`) cross links whole and are acknowledged as one."""

from __future__ import annotations

from typing import Any

import polars as pl

import ackclock
from ackclock import Scenario

MSS = 1448
HEADERS = 52 + 14


def run(queue: dict[str, Any], **bottleneck: Any) -> ackclock.Run:
    return ackclock.run(
        Scenario.from_dict(
            {
                "duration": "3 s",
                "network": {
                    "access": {"rate": "1 Gbit/s", "delay": "5 ms"},
                    "bottleneck": {"rate": "100 Mbit/s", "delay": "10 ms", "queue": queue, **bottleneck},
                    "framing": "14 bytes",
                },
                "flows": [{"congestion_control": "cubic", "stack": {"tso": True}}],
                "record": {"trace": "all", "drops": True},
            }
        ),
        seed=1,
    )


def test_headers_are_charged_and_segments_counted_one_by_one() -> None:
    made = run({"kind": "drop-tail", "limit": "2 BDP"})
    sent = made.acks.filter(pl.col("event").is_in(["send", "rtx"]))
    assert sent["len"].max() > 5 * MSS  # type: ignore[operator]
    link = made.links.filter(pl.col("name") == "access.forward").row(0, named=True)
    segments = (sent["len"] / MSS).ceil().sum()
    # plus the SYN and the ACK of the handshake
    assert link["arrivals"] == segments + 2
    assert link["arrivals"] == link["delivered"] + link["dropped_loss"] + link["dropped_queue"] + link["held"]
    # counted as in Linux, with every segment's headers; 95.6 % of a full segment is payload
    gone = link["dropped_loss"] + link["dropped_queue"] + link["held"]
    charged = sent["len"].sum() + segments * HEADERS + 200
    assert charged - (gone + 1) * (MSS + HEADERS) <= link["bytes_delivered"] <= charged
    assert sent.height < segments / 4


def test_one_ack_for_a_packet() -> None:
    made = run({"kind": "drop-tail", "limit": "2 BDP"})
    events = made.acks["event"].value_counts()
    count = dict(events.iter_rows())
    assert count["ack"] <= count["send"] + count.get("rtx", 0)


def test_a_packet_is_lost_as_a_whole() -> None:
    drops = [{"first": 100, "last": 100}]
    made = run({"kind": "drop-tail", "limit": "2 BDP"}, loss={"kind": "scripted", "drops": drops})
    lost = made.drops
    assert lost.height == 1
    link = made.links.filter(pl.col("name") == "bottleneck.forward").row(0, named=True)
    assert link["dropped_loss"] > 1
    assert made.flows["retransmissions"][0] == link["dropped_loss"]


def test_a_queue_holds_as_many_segments_as_without_offload() -> None:
    link = run({"kind": "drop-tail", "limit": "100 packets"}).links.filter(pl.col("name") == "bottleneck.forward")
    assert 60 < link["max_packets"][0] <= 100
