"""Tests for the events that `ackclock diff` considers equal."""

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from ackclock.cli import _terminal, main
from ackclock.cli._diff import _show
from ackclock.diff import Flow, Judged, errors, table
from ackclock.diff._compare import BACKENDS, Comparison, _agreement, _events, _segment, _walk
from ackclock.errors import InputError
from ackclock.scenario import Scenario

SCENARIOS = Path(__file__).parents[3] / "python" / "ackclock" / "_scenarios"


def _ack(number, seq, *, overtaken=False):
    said = {"rexmit": 0, "cwnd_before": 10, "ca_state": "Open", "t_s": 0.1 * number}
    return {**said, "event": "ack", "ack_no": number, "seq": seq, "overtaken": overtaken}


def _flow(number, **changes):
    equal = {
        "bytes": (9, 9),
        "goodput_bps": (1e6, 1e6),
        "completion_s": (None, None),
        "retransmissions": (0, 0),
        "timeouts": (0, 0),
    }
    return Flow(**{"number": number, "events": 5, "difference": "", **equal, **changes})


def test_a_fin_behind_a_full_segment_makes_no_segment_longer():
    flow = {
        "congestion_control": "reno",
        "stack": {"tso": True},
        "workload": {"kind": "transfer", "bytes": "4344 bytes"},
    }
    scenario = Scenario.from_dict(
        {"duration": "1 s", "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "10 ms"}}, "flows": [flow]}
    )

    def sent(*rows):
        acks = pl.DataFrame(
            {
                "flow": [0] * len(rows),
                "event": ["send"] * len(rows),
                "seq": [r[0] for r in rows],
                "len": [r[1] for r in rows],
            }
        )
        return SimpleNamespace(acks=acks, flows=pl.DataFrame({"group": [0]}))

    assert _segment(scenario, 0, sent((1, 2896), (2897, 1449)), sent((1, 1448), (1449, 1448), (2897, 1449))) == 1448
    assert _segment(scenario, 0, sent((1, 1448)), sent((1, 1448))) == 1448


def test_a_flow_is_identical_when_its_numbers_are_too():
    assert _flow(1).identical
    assert _flow(1, completion_s=(1.0, 1.0000015)).identical
    for key, pair in (
        ("difference", "sends 1"),
        ("bytes", (9, 8)),
        ("goodput_bps", (1e6, 1.001e6)),
        ("completion_s", (1.0, None)),
        ("completion_s", (1.0, 1.00001)),
        ("retransmissions", (1, 0)),
        ("timeouts", (0, 1)),
    ):
        assert not _flow(1, **{key: pair}).identical, key


def test_all_flows_are_counted_and_the_first_ones_beside_them():
    same, other = _flow(0), _flow(1, goodput_bps=(1.2e6, 1e6), bytes=(60_000, 50_001))
    given = {"name": "a", "kind": "flows", "events": 9}
    rows = [
        Judged(**given, identical=True, text="", first=True, flows=(same,)),
        Judged(**given, identical=False, text="flow 1: bytes", first=True, flows=(same, other), effect=other.effect),
    ]
    said = table(rows).splitlines()
    assert said[2].split("|")[1:5] == [" flows ", " 2 ", " 1 ", " 2 "]
    assert "| goodput, all flows | 1 | 0 | 0 | 0 | 0 | 0 | 20.0 % |" in errors(rows)


def test_of_two_kernels_the_change_is_what_the_second_does_to_the_first():
    """A patch that reduces a value by a fifth shows -20 %, and the column heading states the direction of the subtraction."""
    flow = _flow(0, goodput_bps=(1e6, 0.8e6))
    assert flow.change == pytest.approx(-0.2)
    assert flow.effect == pytest.approx(0.25)
    row = Judged(name="a", kind="flows", events=9, identical=False, text="goodput", flows=(flow,), effect=flow.change)
    head, _, line, _ = table([row], ("base", "mine")).splitlines()
    assert head.endswith("| goodput, mine minus base: larger is better |")
    assert line.endswith("| -20.0 % |")


def _sent(seq):
    return {"event": "send", "seq": seq, "rexmit": 0, "ca_state": "Open", "t_s": 0.0, "ack_no": 0}


def test_an_overtaken_ack_in_one_table_is_no_difference_and_what_follows_from_it_is():
    ours = [_ack(1, 2001), _sent(5001)]
    theirs = [_ack(1, 2001), _ack(2, 2001, overtaken=True), _sent(5001)]
    assert _walk(ours, theirs, BACKENDS) == (2, None)
    assert _walk(theirs, ours, BACKENDS) == (2, None)
    later = [_ack(3, 2001), _sent(5001)]  # not the overtaken one, although its content is identical
    assert _walk([*ours[:1], *later], [*theirs[:2], *later], BACKENDS) == (3, None)
    equal, found = _walk(ours, [*theirs[:2], _sent(6001)], BACKENDS)
    assert equal == 1
    assert found is not None
    assert "kernel sends 6001" in found.text


def test_an_ack_in_one_table_that_nothing_overtook_is_a_difference():
    equal, found = _walk([_ack(1, 2001), _sent(5001)], [_ack(1, 2001), _ack(2, 2001), _sent(5001)], BACKENDS)
    assert equal == 1
    assert found is not None
    equal, found = _walk([_ack(1, 2001)], [_ack(1, 2001), _ack(2, 3001)], BACKENDS)
    assert equal == 1
    assert found is not None
    assert "goes on" in found.text


def test_equal_events_are_told_of_the_flow_that_has_them(capsys):
    def told(events, flows):
        run = SimpleNamespace(flows=range(flows), provenance={"kernel": {"release": "7"}})
        every = tuple(_flow(number) for number in range(flows))
        known = {"divergence": None, "events": events, "recovered": True, "agreement": (), "flows": every}
        _show(Comparison(simulator=run, kernel=run, **known))
        return capsys.readouterr().out.splitlines()[0]

    assert told(9, 1) == "all 9 events are equal in the simulator and Linux 7"
    assert told(9, 2) == "all 9 events of flow 0 are equal in the simulator and Linux 7"
    assert told(0, 1) == "flow 0 has no ACK and no transmission to compare in the simulator and Linux 7"


def test_means_over_time_are_of_the_instants_that_both_sampled():
    def run(*samples):
        flow = {
            "goodput_bps": 1e6,
            "completion_s": 1.0,
            "sent_packets": 9,
            "retransmissions": 0,
            "rtos": 0,
            "recoveries": 0,
        }
        rows = {"flow": [0] * len(samples), "t_s": [0.1 * (i + 1) for i in range(len(samples))], "srtt_s": samples}
        return SimpleNamespace(flows=pl.DataFrame([flow]), samples=pl.DataFrame({**rows, "cwnd": [10] * len(samples)}))

    found = {row.quantity: row for row in _agreement(run(0.02, 0.04, 0.9), run(0.02, 0.04), of_first=False)}
    assert found["mean srtt, ms"].simulator == found["mean srtt, ms"].kernel == pytest.approx(30)
    assert found["mean srtt, ms"].difference == 0
    assert found["goodput, Mbit/s"].difference == 0


def test_a_terminal_is_told_what_takes_long(monkeypatch):
    told = []

    def waits(work, *, doing):
        told.append(doing())
        raise InputError("enough")

    monkeypatch.setattr(_terminal, "interruptible", waits)
    assert main(["diff", str(SCENARIOS / "first.toml")]) == 2
    assert told == ["in Linux and in the simulator"]


def test_an_ack_with_nothing_outstanding_is_left_out_and_a_duplicate_is_not():
    same = {"flow": 0, "rexmit": 0, "sack_blocks": 0, "cwnd_before": 10, "ca_state": "Open"}
    rows = [("send", 1, 100), ("ack", 1, 0), ("ack", 101, 100), ("ack", 101, 0), ("send", 101, 100)]
    table = pl.DataFrame(
        [{**same, "event": e, "seq": seq, "len": n, "t_s": 0.1 * i, "ack_no": i} for i, (e, seq, n) in enumerate(rows)]
    )
    assert [row["ack_no"] for row in _events(table, 0, None, 10.0)] == [0, 1, 2, 4]


def test_an_ack_after_completion_in_one_table_is_no_difference_and_a_transmission_is():
    ours = [_ack(1, 2001)]
    late = {**_ack(2, 2001), "t_s": 2.0}
    assert _walk(ours, [*ours, late], BACKENDS, over_s=1.0) == (1, None)
    assert _walk(ours, [*ours, late], BACKENDS, over_s=3.0)[1] is not None
    assert _walk(ours, [*ours, {**_sent(2001), "t_s": 2.0}], BACKENDS, over_s=1.0)[1] is not None
