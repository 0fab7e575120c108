"""Which events `ackclock diff` takes for equal."""

from pathlib import Path
from types import SimpleNamespace

import polars as pl

from ackclock.cli import _terminal, main
from ackclock.cli._diff import _show
from ackclock.diff._compare import BACKENDS, Comparison, _events, _walk
from ackclock.errors import InputError

SCENARIOS = Path(__file__).parents[3] / "python" / "ackclock" / "_scenarios"


def _ack(number, seq, *, overtaken=False):
    said = {"rexmit": 0, "cwnd_before": 10, "ca_state": "Open", "t_s": 0.1 * number}
    return {**said, "event": "ack", "ack_no": number, "seq": seq, "overtaken": overtaken}


def _sent(seq):
    return {"event": "send", "seq": seq, "rexmit": 0, "ca_state": "Open", "t_s": 0.0, "ack_no": 0}


def test_an_overtaken_ack_in_one_table_is_no_difference_and_what_follows_from_it_is():
    ours = [_ack(1, 2001), _sent(5001)]
    theirs = [_ack(1, 2001), _ack(2, 2001, overtaken=True), _sent(5001)]
    assert _walk(ours, theirs, BACKENDS) == (2, None)
    assert _walk(theirs, ours, BACKENDS) == (2, None)
    later = [_ack(3, 2001), _sent(5001)]  # not the one that was overtaken, though it says the same
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
        _show(Comparison(simulator=run, kernel=run, divergence=None, events=events, recovered=True, agreement=()))
        return capsys.readouterr().out.splitlines()[0]

    assert told(9, 1) == "all 9 events are equal in the simulator and Linux 7"
    assert told(9, 2) == "all 9 events of flow 0 are equal in the simulator and Linux 7"
    assert told(0, 1) == "flow 0 has no ACK and no transmission to compare in the simulator and Linux 7"


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
    assert [row["ack_no"] for row in _events(table, None, 10.0, None)] == [0, 1, 2, 4]
