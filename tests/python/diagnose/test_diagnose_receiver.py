"""Tests that the identification numbers of IP headers reveal losses in a capture at the receiver."""

from __future__ import annotations

import polars as pl
import pytest
from test_diagnose import one_flow, seen_by

import ackclock
from ackclock.diagnose import diagnose
from ackclock.diagnose._numbers import departures, numbered
from ackclock.diagnose._shift import _join
from ackclock.formats import read_capture

TRANSFER = {"kind": "transfer", "bytes": f"{1448 * 100} B"}


def test_a_packet_has_the_same_number_at_both_ends(tmp_path):
    """Some packets are lost between the hosts, and some ACKs on the return path."""
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


@pytest.mark.parametrize(("name", "seed"), [("choke", 7017), ("fq-codel", 7005)])
def test_no_losses_are_invented_and_none_is_missing(tmp_path, name, seed):
    """The losses include retransmissions, several segments of one flight, and new data after them."""
    path = tmp_path / "shipped.pcapng"
    scenario = ackclock.load(name).set_all({"duration": "5 s", "record.drops": True})
    run = ackclock.run(scenario, seed=seed, pcap=path, pcap_at="receiver", snaplen=96)
    found = diagnose(path)
    *_, low = found.connection["from_address"].split(".")
    own = run.drops.filter(pl.col("forward") & (pl.col("seg_no") > 0) & (pl.col("flow") == int(low) - 1))
    real = set(own.select("seg_no", "rexmit").iter_rows())
    assert found.sent is not None
    told = set(found.sent.lost)
    assert told <= real
    again: dict[int, int] = {}
    packets = read_capture(path, connection=found.connection["connection"]).packets
    assert packets is not None
    repeated = packets.filter(pl.col("kind").is_in(["retransmission", "needless", "late"]) & ~pl.col("from_server"))
    for seq in repeated["seq"]:
        again[(seq - 1) // found.mss + 1] = again.get((seq - 1) // found.mss + 1, 0) + 1
    assert {(n, which) for n, which in real if which < again.get(n, 0)} <= told


def row(number: int, seq: int, kind: str = "data", length: int = 100) -> tuple[object, ...]:
    return (number / 10, False, kind, seq, length, 1.0, 0, 0, 1, 1, number)


def heard(*blocks: tuple[float, int, int]) -> list[tuple[float, tuple[object, ...]]]:
    """Return ACKs as received by a sender: time, cumulative offset, and offset of an out-of-order segment."""
    made: list[tuple[float, tuple[object, ...]]] = []
    for t, una, block in blocks:
        made.append((t, (t, True, "ack", 1, 0, float(una), 0, 0, 1, 1, 0)))
        if block:
            made.append((t, (t, True, "sack", block, 100, None, 0, 0, 1, 1, 0)))
    return made


def told(
    rows: list[tuple[object, ...]], acks: list[tuple[float, tuple[object, ...]]] | None = None
) -> tuple[list[tuple[int, str, bool]], int]:
    numbers = numbered(rows, 100)
    assert numbers is not None
    left = [float(r[0]) for r in rows]  # type: ignore[arg-type]
    found = departures(rows, numbers, left, server=False, mss=100, trip=0.1, acks=acks or [])
    return [(one.row[3], one.row[2], one.came) for one in found.made], found.unknown


BEGIN = [row(n, 1 + 100 * n) for n in range(5)]


def test_a_gap_is_new_data_or_an_end():
    made, unknown = told([*BEGIN, row(6, 601)])
    assert made[5:] == [(501, "data", False), (601, "data", True)]
    assert unknown == 0
    end = [*BEGIN, row(7, 501), row(8, 601)]  # two were sent but did not arrive; the next packets retransmit them
    made, unknown = told(end, heard((0.5, 501, 0)))
    assert made[5:] == [
        (501, "data", False),
        (601, "data", False),
        (501, "retransmission", True),
        (601, "retransmission", True),
    ]
    assert unknown == 0


def test_the_lost_end_of_an_answer_has_the_length_of_its_repair():
    """Regression: a lost short segment was taken for a full one, so the next answer was a retransmission in part, and a
    sixth of the time was attributed wrongly.
    """
    repair = (0.9, *row(7, 601, length=40)[1:])
    made = [*BEGIN, repair, (1.5, *row(8, 641)[1:])]
    numbers = numbered(made, 100)
    assert numbers is not None
    left = [float(one[0]) for one in made]  # type: ignore[arg-type]
    found = departures(made, numbers, left, server=False, mss=100, trip=0.1, acks=heard((0.5, 501, 0)))
    assert [(one.row[3], one.row[4], one.row[2], one.came) for one in found.made[5:]] == [
        (501, 100, "data", False),
        (601, 40, "data", False),
        (601, 40, "retransmission", True),
        (641, 100, "data", True),
    ]


@pytest.mark.parametrize("ack", [True, False], ids=["with an ack", "alone"])
def test_the_lost_end_of_a_burst_left_with_it(ack):
    """Regression: a write's last packets, dropped by a full queue, were dealt to later ACKs, and the time between these was attributed
    to the congestion window.
    """
    burst = [(0.5, *row(n, 1 + 100 * n)[1:]) for n in range(1, 9)]
    repairs = [(0.9 + 0.2 * n, *row(13 + n, 901 + 100 * n)[1:]) for n in range(4)]
    made = [(0.4, *row(0, 1)[1:]), *burst, *repairs]
    acks = heard((0.3, 1, 0), *([(0.5, 101, 0)] if ack else []), (0.6, 301, 0), (0.61, 501, 0), (0.62, 701, 0))
    acks = [(t, (*one[:6], 10_000, *one[7:])) for t, one in acks]
    numbers = numbered(made, 100)
    assert numbers is not None
    left = [float(one[0]) for one in made]  # type: ignore[arg-type]

    def lost() -> list[float]:
        found = departures(made, numbers, left, server=False, mss=100, trip=0.1, acks=acks)
        return [one.t for one in found.made if not one.came]

    assert lost() == [0.5] * 4
    acks = [(t, (*one[:6], 1101 - int(one[5]), *one[7:])) for t, one in acks]  # two fit into the receiver's window
    assert lost() == [0.5, 0.5, 0.6, 0.6]


def test_a_timer_comes_after_a_probe():
    """One segment was lost, and so was its tail loss probe, so it is retransmitted after a timeout."""
    late = (1.3, *row(7, 501)[1:])
    made, unknown = told([*BEGIN, late, (1.5, *row(8, 601)[1:])], heard((0.5, 501, 0)))
    assert made[5:] == [
        (501, "data", False),
        (501, "retransmission", False),
        (501, "retransmission", True),
        (601, "data", True),
    ]
    assert unknown == 0


HOLE = [*BEGIN, *(row(n, 1 + 100 * n) for n in (6, 7, 8))]
THREE = heard((0.7, 501, 601), (0.8, 501, 701), (0.9, 501, 801))
"""ACKs, the third of which is followed by a retransmission that fills the hole."""


def test_a_gap_is_a_repair_if_one_was_due():
    behind = [*HOLE, row(10, 901), row(11, 501, "retransmission"), row(12, 1001)]
    made, unknown = told(behind, THREE)
    assert made[9:] == [
        (501, "retransmission", False),
        (901, "data", True),
        (501, "retransmission", True),
        (1001, "data", True),
    ]
    assert unknown == 0


def test_a_gap_before_a_repair_is_due_is_new_data():
    end = [*HOLE, row(10, 501, "retransmission"), row(11, 1001)]
    made, unknown = told(end, THREE)
    assert made[9:] == [(901, "data", False), (501, "retransmission", True), (1001, "data", True)]
    assert unknown == 0


def test_data_lost_behind_each_repair_of_a_recovery_is_new_data():
    """Regression: a full queue dropped what left behind each repair. Only what later arrivals had overtaken was taken for new
    data, so its repair looked like new data, and a third of the repair was attributed to the window.
    """
    came = [*BEGIN, row(6, 601), row(8, 801), row(10, 1001)]  # 501, 701 and 901 were lost
    repairs = ((1.11, 11, 501), (1.12, 12, 701), (1.14, 14, 901))  # within a round trip, new data behind two of them
    came += [(t, *row(n, seq, "retransmission")[1:]) for t, n, seq in repairs]
    came += [(t, *row(n, seq)[1:]) for t, n, seq in ((1.24, 16, 1101), (1.25, 17, 1201), (1.26, 18, 1301))]
    acks = heard((0.7, 501, 601), (0.9, 501, 801), (1.1, 501, 1001), (1.235, 501, 901))
    made, unknown = told(came, acks)
    assert made[11:] == [
        (501, "retransmission", True),
        (701, "retransmission", True),
        (1101, "data", False),
        (901, "retransmission", True),
        (1201, "data", False),
        (1101, "retransmission", True),
        (1201, "retransmission", True),
        (1301, "data", True),
    ]
    assert unknown == 0


@pytest.mark.parametrize("whole", [True, False])
def test_writes_that_leave_as_a_whole_wait_for_no_ack(whole):
    """Regression: a program wrote 300 bytes each time that two ACKs came in one tick. Its packets were dealt to both, and the time
    between two writes was attributed to the window. With a window, each ACK releases its own part, also in two ticks.
    """
    own, sends, released = [], [], []
    for n in range(60):
        parts = n * 1e-3, (n + (0 if whole or n % 3 else 1)) * 1e-3
        own += [(0.0, True, "data", 300 * n + 1, 200), (0.0, True, "data", 300 * n + 201, 60)]
        sends += parts
        released += [parts[0] + 2e-4, parts[1] + 6e-4]
    _join(own, sends, 1e-3, 100, released)
    together = [first == last for first, last in zip(released[::2], released[1::2], strict=True)]
    assert together == [False] + [whole] * 59


def test_a_gap_that_nothing_explains_is_told_as_such():
    soon = (0.45, *row(6, 501)[1:])  # no hole is open, and it is too early for a retransmission
    made, unknown = told([*BEGIN, soon])
    assert (made[5:], unknown) == ([(501, "data", True)], 1)


def test_numbers_that_count_something_else_are_left_alone():
    others = [row(3 * n, 1 + 100 * n) for n in range(50)]  # a host with other connections
    assert numbered(others, 100) is None
    assert numbered([row(0, 1 + 100 * n) for n in range(50)], 100) is None
    wraps = [row((65_530 + n) % 65_536, 1 + 100 * n) for n in range(20)]
    numbers = numbered(wraps, 100)
    assert numbers is not None
    assert numbers[-1] - numbers[0] == 19
