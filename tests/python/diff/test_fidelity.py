from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ackclock import InputError, run
from ackclock.cli import main
from ackclock.diff import Judged, _judge, table
from ackclock.fidelity import Bound, comparison, drawn, families, path, reference, replay, simulate
from ackclock.fidelity.verdict import KNOWN, judge
from ackclock.linux._guest import LimitError

BOUND = Bound(relative=0.1)
FILE = Path(__file__).resolve().parents[3] / "scenarios" / "codel.toml"


def verdict(kernel, simulator, bound=BOUND):
    return judge("cell", "quantity", kernel=kernel, simulator=simulator, bound=bound).verdict


def test_a_mean_within_the_bound_holds():
    assert verdict([10.0, 10.0], [10.9]) == "holds"
    assert verdict([10.0, 10.0], [11.1]) == "misses"
    assert verdict([10.0, 10.0], [99.0], None) == "not judged"


def test_spread_counts_only_where_the_bound_says_so():
    blurred = [6.0, 14.0]  # standard error 4
    assert verdict(blurred, [17.0]) == "misses"
    assert verdict(blurred, [17.0], Bound(relative=0.1, or_spread=True)) == "holds within 2 SE"
    assert verdict(blurred, [19.0], Bound(relative=0.1, or_spread=True)) == "misses"
    sharp = [9.3, 10.7]  # standard error 0.7, below the bound of 1
    assert verdict(sharp, [11.2]) == "misses"
    assert verdict(sharp, [11.2], Bound(relative=0.1, or_spread=True)) == "holds within 2 SE"


def test_known_misses_name_a_cell_and_a_cause():
    cells = {cell.name: cell.bounds for cell in comparison.cells(seeds=2, jobs=1)}
    for (cell, quantity), cause in KNOWN.items():
        assert cells[cell][quantity] is not None
        assert cause
        row = judge(cell, quantity, kernel=[1.0, 1.0], simulator=[2.0], bound=BOUND)
        assert (row.verdict, row.cause) == ("known miss", cause)


def test_lost_packets_are_as_many_as_the_kernel_counted():
    for row in reference.read("bulk_loss").to_dicts():
        lost = reference.lost_packets(row["loss_pct"], row["seed"])
        assert sum(position < row["fwd_pkts"] for position in lost) == row["loss_drops_fwd"]


def test_every_measured_quantity_is_simulated():
    kernel = reference.bulk("n1", "cubic")
    simulator = simulate.bulk("n1", "cubic", phases_us=(0,))
    assert set(kernel) == set(simulator) == set(comparison.BULK)
    assert simulator[reference.CWND][0] == pytest.approx(kernel[reference.CWND][0], rel=0.05)


def test_a_replay_loses_the_listed_packets():
    positions = [100, 101, 300]
    result = run(replay.bulk(path.N2, "reno", positions, seconds=1).set("record.drops", True))
    way = result.links.row(1, named=True)
    assert way["dropped_loss"] == 3
    lost = result.drops.sort("t_s")["seg_no"].to_list()
    assert lost[:2] == [99, 100]  # SYN and handshake ACK are packets 0 and 1
    with pytest.raises(InputError, match="carries no data"):
        replay.bulk(path.N2, "reno", [1], seconds=1)


def test_command(monkeypatch, capsys):
    def one(**settings):
        return [cell for cell in every(**settings) if cell.name == "n1 reno"]

    every = comparison.cells
    monkeypatch.setattr(comparison, "cells", one)
    assert main(["fidelity", "--json", "--seeds", "2", "--jobs", "1"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["profile"], shown["unexpected"]) == ("linux-6", [])
    assert {row["verdict"] for row in shown["rows"]} == {"holds"}
    assert main(["fidelity"]) == 0
    assert "n1 reno" in capsys.readouterr().out

    monkeypatch.setitem(comparison.BULK, reference.CWND, Bound(relative=1e-9))
    assert main(["fidelity", "--json"]) == 1
    streams = capsys.readouterr()
    assert json.loads(streams.out)["unexpected"][0].startswith("n1 reno, mean cwnd")
    assert "not as recorded" in streams.err
    assert main(["fidelity", "--seeds", "1"]) == 2


def test_table_for_the_docs():
    row = judge("cell", "quantity", kernel=[2.0], simulator=[1.0], bound=BOUND)
    table = comparison.Comparison(kernel="7", seeds=2, rows=(row,)).markdown().splitlines()
    assert table[2] == "| cell | quantity | 2 ± 0 | 1 ± 0 | -50.00 % | 10 % | 0.00 % | misses |"


def test_drawn_scenarios_depend_on_seed_kind_and_number_alone():
    few, many = list(drawn.drawn(5, transfers=2, bulks=1, lossy=1)), list(drawn.drawn(5))
    assert len(many) == drawn.TRANSFERS + drawn.BULKS + drawn.LOSSY
    first = (0, 1, drawn.TRANSFERS, drawn.TRANSFERS + drawn.BULKS)
    assert [one.scenario for one in few] == [many[i].scenario for i in first]
    assert next(drawn.drawn(6)).scenario != many[0].scenario
    for one in many:
        loss = one.scenario.to_dict()["network"]["egress"]["loss"]
        if one.kind == "lossy":
            assert 0.001 <= loss["p"] <= 0.03
        else:
            assert 1 <= len(loss["drops"]) <= drawn.MOST_LOST + 1
    played = {one.scenario.flows[0].congestion_control for one in many if one.kind == "lossy"}
    assert played == set(drawn.ALL_CONTROLLERS)


def test_families_depend_on_seed_and_number_alone():
    for name in families.FAMILIES:
        few, many = list(families.family(name, 5, 2)), list(families.family(name, 5, 17))
        assert [one.name for one in families.family(name, 5, 17)] == [one.name for one in many]
        assert {one.kind for one in many} == {name}
        assert len(few) == 2
        assert next(families.family(name, 6, 17)).scenario != many[0].scenario
        assert len({one.scenario.to_toml() for one in many}) == len(many)


def test_a_scenario_of_a_family_meets_every_controller():
    played = {
        (flow.congestion_control, flow.recovery)
        for one in families.family("reordering", 1, len(families.SUITES))
        for flow in one.scenario.flows
    }
    assert len(played) == len(families.SUITES) == 16


def test_a_guest_that_takes_too_long_loses_no_other_scenario(monkeypatch):
    def hangs(*_: Any, **__: Any) -> Any:
        raise LimitError("the guest did not end within 240 s of wall-clock time and was stopped")

    monkeypatch.setattr(_judge, "compare", hangs)
    rows = _judge.judge(list(drawn.drawn(1, transfers=2, bulks=0, lossy=0)))
    assert [row.refused for row in rows] == [True, True]
    assert "did not end within 240 s" in rows[0].text


def test_the_row_of_a_family_counts_what_was_refused_apart():
    def judged(kind: str, n: int, **what: Any) -> Judged:
        return Judged(name=f"{kind} {n}", kind=kind, **{"identical": False, "events": 9, "text": "", **what})

    rows = [
        judged("a", 0, identical=True, first=True, retransmissions=(3, 3), effect=0.0),
        judged("a", 1, refused=True, text="no"),
        judged("b", 0, first=True, retransmissions=(3, 4), timeouts=(1, 1), effect=-0.2),
        judged("b", 1, identical=True, first=True, given=True, effect=0.1),
    ]
    assert table(rows).splitlines()[2:] == [
        "| b | 2 | 1 | 2 | 1 | 1 | 2 | 0 | -20.0 % |",
        "| a | 2 | 1 | 1 | 0 | 1 | 1 | 1 | 0.0 % |",
        "| all | 4 | 2 | 3 | 1 | 2 | 3 | 1 | -20.0 % |",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--family", "writers"], "--family: found it without --drawn"),
        (
            ["--drawn", "--family", "wrtiers"],
            '--family: found "wrtiers"; did you mean "writers"?; allowed: one of 18 names',
        ),
        (["--drawn", "--count", "0"], "--count"),
    ],
)
def test_families_that_cannot_be_drawn(arguments, said, capsys):
    assert main(["diff", *(arguments if "--drawn" in arguments else [str(FILE), *arguments])]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
