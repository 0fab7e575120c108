"""Tests of the ground truth: what the sender's kernel reported, for captures, and the run itself, for drawn transfers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import capture_truth
import kernel_captures
from ackclock.scenario import Scenario


def row(t: float, **given: Any) -> dict[str, Any]:
    usual = {
        "ca_state": 0, "unacked": 10, "sacked": 0, "cwnd": 10, "mss": 1448, "notsent": 90_000, "snd_wnd": 900_000, "total_retrans": 0, "rwnd_limited": 0,
        "sndbuf_limited": 0, "busy": round(t * 1e6), "bytes_acked": round(t * 1e6), "srtt_us": 20_000,
    }  # fmt: skip
    return {"t": t, **usual, **given}


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        ({}, "window"),
        ({"notsent": 0}, "window"),  # the sender had data from the start
        ({"rwnd_limited": 100_000}, "rwnd"),
        ({"sndbuf_limited": 100_000}, "sndbuf"),
        ({"ca_state": 3}, "repair"),
        ({"busy": 0}, "application"),
        ({"cwnd": 99, "snd_wnd": 14_480}, "rwnd"),
    ],
)
def test_a_time_belongs_to_what_the_kernel_says(second: dict[str, Any], cause: str) -> None:
    told = capture_truth.truth([row(0.0), row(0.1, **second)])
    assert told[cause] == pytest.approx(0.1)
    assert sum(told.values()) == pytest.approx(0.1)


def test_nothing_left_is_the_application_or_a_full_buffer() -> None:
    assert capture_truth.truth([row(0.0, notsent=0), row(0.1, notsent=0)])["application"] == pytest.approx(0.1)
    assert capture_truth.truth([row(0.0, notsent=0), row(0.1, notsent=0, eager=True)])["sndbuf"] == pytest.approx(0.1)


def test_a_wait_for_a_timer_is_the_repair() -> None:
    still = {"bytes_acked": 5, "notsent": 0}
    rows = [row(i / 10, **still) for i in range(4)] + [
        row(0.4, **still, total_retrans=1, ca_state=4),
        row(0.5, bytes_acked=9),
    ]
    told = capture_truth.truth(rows)
    assert told["repair"] == pytest.approx(0.4)


def test_a_program_has_more_throughout_only_if_it_had_at_each_sample_up_to_its_last_write() -> None:
    """A self-paced program had unsent data in the first 25 of 900 samples, and in no later one."""

    def sample(i: int, notsent: int, acked: int) -> dict[str, Any]:
        return row(i / 10, notsent=notsent, bytes_acked=acked, outstanding=10_000)

    more = [sample(0, 0, 0), *(sample(i, 50_000, 10_000 * i) for i in range(1, 5)), sample(5, 0, 90_000)]
    assert capture_truth.had_more(more) == (0.1, 0.4)
    paced = [*more[:3], *(sample(i, 0, 90_000 + 1_000 * i) for i in range(3, 9))]
    assert capture_truth.had_more(paced) is None


def test_drawn_transfers_are_scenarios_and_cover_all_kinds() -> None:
    kinds = set()
    for number in range(2 * len(kernel_captures.KINDS)):
        kind, scenario, program, _ = kernel_captures.drawn(7, number)
        kinds.add(kind)
        scenario["flows"][0]["congestion_control"] = "cubic"
        Scenario.from_dict(scenario)
        assert all(value >= 0 for value in program.values())
    assert kinds == set(kernel_captures.KINDS)


def test_an_interface_of_a_capture_is_taken_out() -> None:
    def block(kind: int, body: bytes) -> bytes:
        size = (12 + len(body)).to_bytes(4, "little")
        return kind.to_bytes(4, "little") + size + body + size

    packets = [block(6, number.to_bytes(4, "little") + bytes([number]) * 20) for number in (0, 1, 2, 1)]
    whole = block(0x0A0D0D0A, bytes(16)) + block(1, bytes(8)) * 3 + b"".join(packets)
    part = kernel_captures.of_interface(whole, 1)
    assert part == block(0x0A0D0D0A, bytes(16)) + block(1, bytes(8)) + block(6, bytes(4) + bytes([1]) * 20) * 2


def test_a_probe_of_the_tail_of_a_sender_without_more_is_no_repair() -> None:
    """The `limits` table of a run agrees with it."""
    still = {"bytes_acked": 5, "notsent": 0}
    rows = [row(i / 10, **still) for i in range(4)]
    rows += [row(0.4, **still, total_retrans=1), row(0.5, bytes_acked=9, notsent=0)]
    told = capture_truth.truth(rows)
    assert told["repair"] == 0.0
    assert told["application"] == pytest.approx(0.5)


def test_the_repair_that_a_probe_of_the_tail_begins_is_counted_from_its_begin() -> None:
    """Regression: the whole wait since the last arrival was the repair's, unlike in the `limits` table of a run."""
    still = {"bytes_acked": 5, "notsent": 0}
    rows = [row(i / 10, **still) for i in range(4)] + [row(i / 10, **still, total_retrans=1) for i in (4, 5)]
    rows += [row(0.6, **still, total_retrans=2, ca_state=3), row(0.7, bytes_acked=9, notsent=0, total_retrans=2)]
    told = capture_truth.truth(rows)
    assert told["repair"] == pytest.approx(0.1)
    assert told["application"] == pytest.approx(0.6)


def test_a_short_rest_that_cwnd_holds_back_is_the_windows() -> None:
    assert capture_truth.truth([row(0.0, notsent=300), row(0.1, notsent=300)])["window"] == pytest.approx(0.1)
    rest = {"notsent": 300, "unacked": 5}
    assert capture_truth.truth([row(0.0, **rest), row(0.1, **rest)])["application"] == pytest.approx(0.1)


def test_the_time_ends_with_the_last_ack_only_where_a_sample_has_seen_it() -> None:
    """Regression: a repair at the end of a transfer was not counted if the connection closed before the next sample."""
    stuck = [row(0.0, bytes_acked=1)] + [row(i / 10, bytes_acked=5, ca_state=3) for i in range(1, 4)]
    assert capture_truth.truth(stuck)["repair"] == pytest.approx(0.3)


def test_the_time_of_samples_without_that_number_does_not_end_before_the_first_write() -> None:
    """Regression: the first sample, taken before anything was written, was taken for the end, so that nothing was true."""
    rows = [
        row(0.0, unacked=0, notsent=0),
        row(0.1),
        row(0.2),
        row(0.3, unacked=0, notsent=0),
        row(0.4, unacked=0, notsent=0),
    ]
    for one in rows:
        del one["bytes_acked"]
    assert sum(capture_truth.truth(rows).values()) == pytest.approx(0.3)


def test_clocks_that_advance_in_ticks_count_the_whole_time() -> None:
    """Regression: a clock of 4 ms read every 10 ms is 2 ms ahead or behind, and a tenth of the time was the application's."""
    rows = [row(i / 100, busy=4000 * (i * 10 // 4), rwnd_limited=4000 * (i * 10 // 4)) for i in range(101)]
    told = capture_truth.truth(rows)
    assert told["rwnd"] == pytest.approx(1.0, abs=0.005)
    assert told["application"] == pytest.approx(0.0, abs=0.005)


def test_mistakes_that_make_up_for_each_other_show_at_their_times() -> None:
    """The window and the application each limit half of the time, reported the wrong way round: right totals, but every instant is wrong."""
    said = [(0.0, 1.0, "application"), (1.0, 2.0, "window")]
    first, second = capture_truth._between(said, [(0.0, 1.0), (1.0, 2.0)])
    none = dict.fromkeys(capture_truth.CLASSES, 0.0)
    assert capture_truth._matched(none | {"window": 1.0}, first, level=False, buffered=False) == (0.0, 0.0)
    assert capture_truth._matched(none | {"application": 1.0}, second, level=False, buffered=False) == (0.0, 0.0)
    both = {name: first.get(name, 0.0) + second.get(name, 0.0) for name in capture_truth.CLASSES}
    real = none | {"window": 1.0, "application": 1.0}
    assert capture_truth._matched(real, both, level=False, buffered=False) == (1.0, 0.0)


def test_the_clock_of_the_samples_is_set_by_the_acks() -> None:
    """Samples every 10 ms that start 37 ms before the capture."""
    acked = [(i / 100, 1000.0 * i) for i in range(100)]
    rows = [row(i / 100, bytes_acked=max(1000 * (i - 4), 0)) for i in range(100)]
    assert capture_truth._late(rows, acked) == pytest.approx(0.037, abs=0.006)


def test_what_is_told_of_a_time_is_cut_at_its_ends() -> None:
    parts = capture_truth._between([(0.0, 4.0, "window"), (4.0, 9.0, "rwnd")], [(1.0, 5.0), (5.0, 6.0)])
    assert parts == [{"window": 3.0, "rwnd": 1.0}, {"rwnd": 1.0}]
