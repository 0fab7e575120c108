from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ackclock import metrics, run, run_batch
from ackclock.studies import get
from ackclock.studies.large_pipes import coalescing, paths, probe, runs, sharing, starts, transfers
from ackclock.studies.large_pipes.paths import ALABAMA, ALABAMA_ATM, CALTECH, FAST, HSTCP, NEWRENO, SENDERS, TCPW
from ackclock.study import Plan, Verdict


def test_the_paths_are_those_of_the_slides():
    assert pytest.approx(826.7, abs=0.1) == ALABAMA.bdp
    assert pytest.approx(706, abs=1) == ALABAMA_ATM.bdp
    assert pytest.approx(333.3, abs=0.1) == CALTECH.bdp
    assert ALABAMA.payload_bps / 1e6 == pytest.approx(149.6, abs=0.05)
    assert ALABAMA_ATM.payload_bps / 1e6 == pytest.approx(127.9, abs=0.05)
    # 100 MB cannot take less than this
    assert 8 * transfers.SIZE / ALABAMA.payload_bps == pytest.approx(5.35, abs=0.01)


def test_packet_pairs_find_the_rate_of_either_reading():
    found = probe.w1(probe.run_probe(Plan(seeds=6)).tables)
    assert [e.value for e in found] == pytest.approx([155.0, 132.45], rel=0.001)
    assert found[0].verdict is Verdict.HOLDS


def test_a_cached_ssthresh_ends_slow_start_there():
    def window(warm: bool) -> int:
        scenario = paths.scenario(
            ALABAMA,
            [(SENDERS[NEWRENO], 1)],
            duration_s=1.5,
            users=0.0,
            record={"sample_interval": "10 ms"},
            **runs.warmth(NEWRENO, ALABAMA, warm),
        )
        return int(run(scenario).samples["cwnd"].to_numpy().max())

    assert runs.W1 <= window(True) <= runs.W1 + 30
    assert window(False) > 800


def test_westwood_holds_its_rate_under_random_loss():
    got = {}
    senders = {**SENDERS, TCPW: paths.westwood(sack=True)}
    for protocol in (TCPW, FAST, HSTCP, NEWRENO):
        scenario = paths.scenario(ALABAMA, [(senders[protocol], 1)], duration_s=20, loss=0.003, users=0.0)
        got[protocol] = float(run(scenario).flows["goodput_bps"][0])
    assert got[TCPW] > got[FAST] > got[HSTCP]
    assert got[TCPW] > 5 * got[NEWRENO]


def test_estimators_tell_what_they_see():
    scenario = paths.scenario(
        CALTECH,
        [(coalescing.VARIANTS[coalescing.ADAPTIVE], 1)],
        duration_s=1.0,
        card=paths.COALESCING,
        record={"controller": "flow"},
    )
    seen = run(scenario).controllers.filter(pl.col("t_s") > 0.5)
    ratio = (seen["tau_s"] / seen["sample_rtt_s"]).drop_nulls().to_numpy()
    # the RTT of the filter is the latest sample, which moves by what is queued
    assert ratio.min() >= 0.9
    assert ratio.max() <= 12
    assert (seen["estimate_bps"].drop_nulls() > 1e8).all()


def test_shares_are_those_of_the_flows_compared():
    scenario = paths.scenario(
        ALABAMA, [(SENDERS[NEWRENO], 1), (SENDERS[FAST], 2)], duration_s=4, record={"goodput_interval": "1 s"}
    )
    batch = run_batch(scenario, [1, 2])
    assert set(batch.goodput["flow"]) == {0, 1, 2, 3}  # the fourth is that of other users
    found = sharing.shares(batch)
    assert found["flow"].to_list() == [0, 1, 2, 0, 1, 2]
    own = batch.goodput.filter((pl.col("seed") == 1) & (pl.col("flow") == 2))["goodput_bps"].to_list()
    assert found["goodput_bps"][2] == pytest.approx(sum(own[2:]) / 2)


def test_friendliness_is_that_of_the_metrics():
    same = pl.DataFrame(
        {
            "protocol": [NEWRENO] * 4,
            "flows": [2] * 4,
            "run": [0, 0, 1, 1],
            "flow": [0, 1, 0, 1],
            "goodput_bps": [10.0, 30.0, 20.0, 20.0],
        }
    )
    mixed = pl.DataFrame(
        {
            "protocol": [FAST] * 4,
            "flows": [2] * 4,
            "run": [0, 0, 1, 1],
            "flow": [0, 1, 0, 1],
            "goodput_bps": [5.0, 90.0, 10.0, 90.0],
        }
    )
    found = sharing.friendliness_per_run({"sharing.same": same, "sharing.mixed": mixed}, FAST, 2)
    assert found.tolist() == [metrics.friendliness([5.0], [10.0, 30.0]), metrics.friendliness([10.0], [20.0, 20.0])]


def test_spread_over_runs():
    rows = np.array([[1.0, 2.0], [3.0, 2.0]])
    assert starts.spread(rows) == pytest.approx(2**0.5 / 2 / 2)
    assert np.isnan(starts.quotient(1.0, 0.0))


def test_every_scenario_of_the_report_is_valid():
    for scenario in get("large-pipes").scenarios().values():
        assert scenario.flows
