from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from chance import near

from ackclock import metrics, run, run_batch
from ackclock.studies import get
from ackclock.study import Plan, Verdict, at_most, between
from ackclock.study.note import typed_in
from ackclock.study.reading import grid
from ackclock_studies.large_pipes import (
    coalescing,
    kinds,
    one_loss,
    paths,
    probe,
    runs,
    sharing,
    starts,
    sync,
    transfers,
)
from ackclock_studies.large_pipes.paths import ALABAMA, ALABAMA_ATM, CALTECH, FAST, HSTCP, NEWRENO, SENDERS, TCPW
from ackclock_studies.large_pipes.readings import FILTER, FILTERS, QUEUE, TOGETHER


def test_the_paths_are_those_of_the_slides():
    assert pytest.approx(826.7, abs=0.1) == ALABAMA.bdp
    assert pytest.approx(706, abs=1) == ALABAMA_ATM.bdp
    assert pytest.approx(333.3, abs=0.1) == CALTECH.bdp
    assert ALABAMA.payload_bps / 1e6 == pytest.approx(149.6, abs=0.05)
    assert ALABAMA_ATM.payload_bps / 1e6 == pytest.approx(127.9, abs=0.05)
    # 100 MB cannot take less than this
    assert 8 * transfers.SIZE / ALABAMA.payload_bps == pytest.approx(5.35, abs=0.01)


def test_packet_pairs_find_the_rate_among_other_users():
    tables = probe.run_probe(Plan(seeds=6)).tables
    found = {e.key: e for e in probe.w1(tables)}
    assert found["pairs"].value == pytest.approx(155.0, rel=0.001)
    assert found["pairs_atm"].value == pytest.approx(132.45, rel=0.001)
    assert found["off"].value > 0.2, "others do come between the packets of a pair"
    assert found["least_atm"].value > 5.8 > 0.9 * found["least"].value


def test_the_readings_of_the_four_times_are_more_than_200():
    assert len(grid(transfers.READS[TCPW])) >= 200
    for name, reading in TOGETHER.items():
        known = {r.name: r for reads in transfers.READS.values() for r in reads}
        assert reading in known[name].options
    assert set(FILTERS) == set(FILTER.options)
    assert QUEUE.main == str(ALABAMA.queue)


def test_a_reading_reaches_the_hosts():
    where = Plan(reading={"window": "2 MiB", "ACKs": "each segment", "SACK": "on", "alpha": "20"})
    four = paths.senders(where)
    assert four[TCPW].host(where)["stack"]["sack"] is True
    assert four[FAST].options == {"alpha": 20}
    linux, freebsd = (four[p].host(where)["stack"] for p in (HSTCP, TCPW))
    assert linux["delayed_ack"] is False
    # a quarter of Linux's buffer is overhead; both advertise the same window
    assert [s["socket_buffer"] for s in (linux, freebsd)] == [f"{(2 << 20) * 4 // 3} bytes", f"{2 << 20} bytes"]


def test_ten_in_a_row_leave_each_other_an_ssthresh():
    """Slow start overflows a 200-packet queue; each later run ends slow start at the ssthresh cached by an earlier one."""
    where = Plan(reading={"ACKs": "each segment", "window": "2 MiB"})
    batch = run_batch(transfers.scenario(SENDERS[NEWRENO], 200, where), [1])
    times = transfers.completion(batch)
    assert times["transfer"].to_list() == list(range(10))
    assert times["completion_s"].is_finite().all()
    cold, warm = times["retransmissions"][0], times["retransmissions"][1:].mean()
    assert cold > 5 * warm, (cold, warm)


def test_a_time_that_was_not_reached_is_no_value():
    e = runs.mean_time(np.array([6.0, 6.2, math.inf]), 60.0, "x", between(5, 7))
    assert e.verdict is Verdict.FAILS  # at least 24 s
    assert e.not_reached == 1
    assert math.isinf(e.value)
    assert runs.mean_time(np.array([6.0, 6.1, 6.2]), 60.0, "x", between(5, 7)).verdict is Verdict.HOLDS
    assert runs.geometric(np.array([1.0, math.inf])).n == 0
    assert runs.geometric(np.array([0.5, 2.0])).value == pytest.approx(1.0)


def test_a_ramp_that_was_not_reached_enters_no_ratio():
    slow, fast = np.array([math.inf] * 3), np.array([0.1] * 3)
    assert coalescing._over(slow, fast, "x", at_most(1.25)).verdict is Verdict.FAILS
    assert coalescing._over(fast, slow, "x", at_most(1.25)).verdict is Verdict.UNDECIDED


def test_westwood_holds_its_rate_under_random_loss():
    got = {}
    senders = {**SENDERS, TCPW: paths.westwood(sack=True, **FILTERS[FILTER.main])}
    for protocol in (TCPW, FAST, HSTCP, NEWRENO):
        scenario = paths.scenario(ALABAMA, [(senders[protocol], 1)], duration_s=20, loss=0.003, users=0.0)
        got[protocol] = float(run(scenario).flows["goodput_bps"][0])
    assert got[TCPW] > got[FAST] > got[HSTCP]
    assert got[TCPW] > 5 * got[NEWRENO]


def test_one_loss_leaves_tcpw_at_the_pipe_without_a_burst():
    batch = run_batch(one_loss.scenario(TCPW), [1])
    recovery = batch.recoveries.row(0, named=True)
    assert batch.recoveries.height == 1
    assert batch.flows["retransmissions"][0] == 1
    assert recovery["ssthresh"] == pytest.approx(0.98 * ALABAMA.bdp, rel=0.05)
    assert recovery["max_burst"] <= 10


def test_tcpw_collapses_only_where_the_receive_window_ends_in_a_recovery_without_sack():
    """Seed 2: four losses in one window, repaired one per round trip."""

    def minute(window: int, sack: bool) -> float:
        sender = paths.westwood(sack=sack)
        scenario = paths.scenario(
            ALABAMA, [(sender, 1)], duration_s=60, socket_buffer=f"{window << 20} bytes", quick_acks=False
        )
        return float(run(scenario, seed=2).flows["goodput_bps"][0]) / 1e6

    assert minute(2, False) < 110
    assert minute(16, False) > 130
    assert minute(2, True) > 130


def test_two_tcpw_flows_collapse_in_turn_without_sack_and_share_with_it():
    """ABSE's filter uses each ACK's throughput: after an overflow one of the two flows repairs one loss per round trip, for seconds."""

    def half_minute(sack: bool) -> list[float]:
        sender = paths.westwood(sack=sack, **FILTERS["each ACK"])
        scenario = paths.scenario(
            ALABAMA, [(sender, 2)], duration_s=60, stagger_s=1.0, record={"goodput_interval": "1 s"}
        )
        late = run(scenario, seed=3).goodput.filter((pl.col("t_s") > 30) & (pl.col("flow") < 2))
        return late.group_by("flow").agg(pl.col("goodput_bps").mean())["goodput_bps"].to_list()

    without, having = half_minute(False), half_minute(True)
    assert sum(without) < 0.7 * ALABAMA.payload_bps < 0.85 * ALABAMA.payload_bps < sum(having)
    assert metrics.jain(having) > 0.95


def test_the_quoted_filter_brings_tcpw_up_in_time():
    size = {"kind": "transfer", "bytes": f"{transfers.SIZE} bytes"}

    def seconds(options: dict[str, object]) -> float:
        sender = paths.westwood(**options)
        made = paths.scenario(ALABAMA, [(sender, 1)], duration_s=60, workload=size, users=0.0)
        return float(transfers.completion(run_batch(made, [1]))["completion_s"][0])

    assert seconds(FILTERS[FILTER.main]) < 1.1 * 5.8
    assert seconds(FILTERS["rate of the last RTT"]) > 7


def test_estimators_tell_what_they_see():
    name = coalescing.arm("quoted", coalescing.ADAPTIVE)
    scenario = paths.scenario(
        CALTECH,
        [(coalescing.ABSE[name], 1)],
        duration_s=1.0,
        card=paths.COALESCING,
        record={"controller": "flow"},
    )
    seen = run(scenario).controllers.filter(pl.col("t_s") > 0.5)
    ratio = (seen["tau_s"] / seen["sample_rtt_s"]).drop_nulls().to_numpy()
    # the filter's RTT is the latest sample, which varies with the queue
    assert ratio.min() >= 0.9
    assert ratio.max() <= 12
    assert (seen["estimate_bps"].drop_nulls() > 1e8).all()


def test_drawn_starts_make_runs_differ_where_nothing_else_is_left_to_chance():
    def digests(**keys: float) -> list[str]:
        scenario = paths.scenario(ALABAMA, [(SENDERS[FAST], 2)], duration_s=2.0, users=0.0, **keys)
        return run_batch(scenario, [1, 2, 3]).digests

    with pytest.warns(UserWarning, match="one and the same run"):
        assert len(set(digests(stagger_s=1.0))) == 1
    assert len(set(digests(drawn_s=1.0))) == 3


def test_abse_is_held_against_pairs_and_trains():
    def made(abse: float) -> dict[str, pl.DataFrame]:
        seen = {
            (kinds.BE, kinds.SHARED): 2.0,
            (kinds.RE, kinds.SHARED): 1.0,
            (kinds.ABSE, kinds.SHARED): abse,
            (kinds.BE, kinds.LOSSY): 0.9,
            (kinds.RE, kinds.LOSSY): 0.1,
            (kinds.ABSE, kinds.LOSSY): 0.8,
        }
        rows = [
            {
                "estimator": e,
                "setting": s,
                "fair_bps": 1e6,
                "run": k,
                "flow": f,
                "estimate_bps": 1e6 * x * (1 + 0.001 * k),
            }
            for (e, s), x in seen.items()
            for k in range(6)
            for f in range(4 if s == kinds.SHARED else 1)
        ]
        return {"kinds.estimates": pl.DataFrame(rows)}

    claim = next(c for c in kinds.CHAPTER.claims if c.id == "W30")
    assert [claim.direction.judge(made(x)).verdict for x in (1.5, 3.0)] == [Verdict.HOLDS, Verdict.FAILS]


def test_fast_is_held_against_other_senders_in_the_same_cells():
    """A correlation shared by all senders is not a problem of FAST."""
    controls = {name: s for name, s in {**sync.SYNC, **sync.CONTROLS}.items() if s.alone and s.queue < 2}
    assert len(controls) == 4 + 8

    def made(**correlation: float) -> dict[str, pl.DataFrame]:
        rows = [
            {
                "setting": name,
                "run": k,
                "correlation": near(correlation[s.sender], name, k, by=0.01),
                "swing_packets": 0.0,
                "standing_packets": 0.0,
            }
            for name, s in controls.items()
            for k in range(3)
        ]
        return {"sync.correlation": pl.DataFrame(rows)}

    claim = next(c for c in sync.CHAPTER.claims if c.id == "W19")
    assert claim.magnitude.judge(made(FAST=0.9, HSTCP=0.2, NewReno=0.1)).verdict is Verdict.HOLDS
    assert claim.magnitude.judge(made(FAST=0.9, HSTCP=0.9, NewReno=0.1)).verdict is not Verdict.HOLDS


def test_shares_are_those_of_the_flows_compared():
    scenario = paths.scenario(
        ALABAMA, [(SENDERS[NEWRENO], 1), (SENDERS[FAST], 2)], duration_s=4, record={"goodput_interval": "1 s"}
    )
    batch = run_batch(scenario, [1, 2])
    assert set(batch.goodput["flow"]) == {0, 1, 2, 3}  # the fourth flow belongs to the other users
    found = sharing.shares(batch)
    assert found["flow"].to_list() == [0, 1, 2, 0, 1, 2]
    own = batch.goodput.filter((pl.col("seed") == 1) & (pl.col("flow") == 2))["goodput_bps"].to_list()
    assert found["goodput_bps"][2] == pytest.approx(sum(own[2:]) / 2)


def test_friendliness_is_that_of_the_metrics():
    same = pl.DataFrame(
        {
            "path": [ALABAMA.name] * 4,
            "protocol": [NEWRENO] * 4,
            "flows": [2] * 4,
            "run": [0, 0, 1, 1],
            "flow": [0, 1, 0, 1],
            "goodput_bps": [10.0, 30.0, 20.0, 20.0],
        }
    )
    mixed = same.with_columns(pl.lit(FAST).alias("protocol"), pl.Series("goodput_bps", [5.0, 90.0, 10.0, 90.0]))
    found = sharing.friendliness_per_run({"sharing.same": same, "sharing.mixed": mixed}, FAST, 2)
    assert found.tolist() == [metrics.friendliness([5.0], [10.0, 30.0]), metrics.friendliness([10.0], [20.0, 20.0])]


def test_spread_over_the_runs_of_a_group():
    group = np.array([[[1.0, 2.0], [3.0, 2.0]]])  # one group of two two-second runs
    assert starts.spreads(group).tolist() == pytest.approx([2**0.5 / 2 / 2])


def test_runs_in_a_row_are_told_apart():
    scenario = starts.in_a_row(CALTECH, NEWRENO)
    batch = run_batch(scenario, [1])
    own = starts.own_time(CALTECH)(batch)
    assert own["of_group"].n_unique() == 10
    assert own.group_by("of_group").agg(pl.col("t_s").max())["t_s"].to_list() == pytest.approx([2.0] * 10)
    assert own.group_by("of_group").agg(pl.col("goodput_bps").mean())["goodput_bps"].min() > 5e8


def test_every_scenario_of_the_report_is_valid():
    for scenario in get("large-pipes").scenarios().values():
        assert scenario.flows


def test_notes_have_no_number_of_a_run_typed_in():
    study = get("large-pipes")
    recorded = study.recorded("quick")
    shared = [scenario.to_toml() for scenario in study.scenarios().values()]
    for reading in study.readings:
        shared += [reading.question, *reading.options, *reading.options.values()]
    for claim in study.claims:
        known = [claim.statement, claim.place, *shared]
        for _, criterion in claim.halves:
            known += [criterion.reading, criterion.cell, criterion.printed]
        for half in recorded.claims.get(claim.id, {}).values():
            known += list(half["evidence"])
        assert typed_in(claim.note, " ".join(known)) == [], claim.id
