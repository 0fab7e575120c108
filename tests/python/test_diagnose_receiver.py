"""What was lost on the way to a capture at the receiver, by the numbers of IP headers."""

from __future__ import annotations

import polars as pl
import pytest
from test_diagnose import one_flow, seen_by

import ackclock
from ackclock.diagnose._numbers import departures, numbered
from ackclock.formats import read_capture

TRANSFER = {"kind": "transfer", "bytes": f"{1448 * 100} B"}


def test_a_packet_has_the_same_number_at_both_ends(tmp_path):
    """Some are lost between them, and ACKs on the way back."""
    scenario = one_flow("3 s", ((40, 0), (41, 0), (95, 0)), workload=TRANSFER).set(
        "network.reverse",
        {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms", "loss": {"kind": "listed", "packets": [9, 20]}}},
    )
    seen = {}
    for at in ("sender", "receiver"):
        path = tmp_path / f"{at}.pcapng"
        ackclock.run(scenario, pcap=path, pcap_at=at, snaplen=96)  # type: ignore[arg-type]
        packets = read_capture(path, connection=0).packets
        assert packets is not None
        rows = packets.filter(~pl.col("kind").is_in(["sack", "dsack"])).select(
            "from_server", "ip_id", "seq", "length", "ack", "timestamp"
        )
        seen[at] = set(rows.iter_rows())
    for server, sent_at, there in ((False, "sender", "receiver"), (True, "receiver", "sender")):
        left = {row for row in seen[sent_at] if row[0] is server}
        came = {row for row in seen[there] if row[0] is server}
        assert came < left
        assert len(left - came) == (3 if sent_at == "sender" else 2)


ENDS = {
    "the end of a flight, told by a timer": ((98, 0), (99, 0), (100, 0)),
    "a hole, its repair, and the end": ((60, 0), (60, 1), (99, 0), (100, 0)),
}


@pytest.mark.parametrize("drops", ENDS.values(), ids=ENDS)
def test_numbers_tell_what_left_behind_the_last_that_came(tmp_path, drops):
    path = tmp_path / "transfer.pcapng"
    run = ackclock.run(
        one_flow("5 s", drops, workload=TRANSFER).set("record.limits_interval", "1 ms"),
        pcap=path,
        pcap_at="receiver",
        snaplen=96,
    )
    off, found = seen_by(path, run)
    assert max(off.values()) < 0.01, off
    assert found.sent is not None
    assert set(found.sent.lost) >= set(drops)


def row(number: int, seq: int, kind: str = "data", length: int = 100) -> tuple[object, ...]:
    return (number / 10, False, kind, seq, length, 1.0, 0, 0, 1, 1, number)


def told(rows: list[tuple[object, ...]], due: dict[int, float] | None = None) -> list[tuple[int, str, bool]]:
    numbers = numbered(rows, 100)
    assert numbers is not None
    left = [float(r[0]) for r in rows]  # type: ignore[arg-type]
    made, _ = departures(rows, numbers, left, server=False, mss=100, trip=0.1, due=due or {}, acks=[])
    return [(one.row[3], one.row[2], one.came) for one in made]


def test_a_gap_is_new_data_a_repair_or_an_end():
    begin = [row(n, 1 + 100 * n) for n in range(5)]
    hole = [*begin, row(6, 601)]
    assert told(hole)[5:] == [(501, "data", False), (601, "data", True)]
    end = [*begin, row(7, 501), row(8, 601)]  # two left and did not come: what comes next are their repairs
    assert told(end)[5:] == [
        (501, "data", False),
        (601, "data", False),
        (501, "retransmission", True),
        (601, "retransmission", True),
    ]
    repair = [*begin, row(6, 601), row(7, 701), row(9, 501, "retransmission"), row(10, 801)]
    assert told(repair, {501: 0.65})[8:] == [  # it came long after it was due: there was another one before
        (501, "retransmission", False),
        (501, "retransmission", True),
        (801, "data", True),
    ]


def test_numbers_that_count_something_else_are_left_alone():
    others = [row(3 * n, 1 + 100 * n) for n in range(50)]  # of a host with other connections
    assert numbered(others, 100) is None
    assert numbered([row(0, 1 + 100 * n) for n in range(50)], 100) is None
    wraps = [row((65_530 + n) % 65_536, 1 + 100 * n) for n in range(20)]
    numbers = numbered(wraps, 100)
    assert numbers is not None
    assert numbers[-1] - numbers[0] == 19
