from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ackclock import run_batch
from ackclock.errors import InputError
from ackclock.studies.pcc import STUDY, claims, hypotheses, sharing, sweep, testbed
from ackclock.studies.pcc.testbed import CUBIC, FLOWS, IDEAL, MODELS, NETEM, OFTEN, PCC, TESTBED
from ackclock.study import Verdict

BASE = {IDEAL: 0.98, TESTBED: 0.97, OFTEN: 0.98, NETEM: 0.98, "H4: single core": 0.98}


def shares(**lower: float) -> dict[str, pl.DataFrame]:
    """A made-up sweep: every model at its base, `lower` names model, controller and size at which it is less."""
    rows = []
    for model in (IDEAL, TESTBED, OFTEN, NETEM, "H4: single core"):
        for cc in (PCC, CUBIC):
            for buffer in (6, 10, 20, 50, 275):
                share = lower.get(f"{model} {cc} {buffer}", BASE[model])
                rows += [
                    {
                        "model": model,
                        "cc": cc,
                        "buffer": buffer,
                        "seed": seed,
                        "share": share + 0.001 * seed,
                        "goodput_mbps": 97 * share,
                        "sent_mbps": 100 * share,
                        "departure_cv": 0.1,
                        "largest_burst": 1,
                    }
                    for seed in (1, 2, 3)
                ]
    return {"sweep.flows": pl.DataFrame(rows)}


def test_every_model_is_a_scenario_that_the_engine_takes():
    for name, model in MODELS.items():
        scenario = testbed.shallow(name, PCC, 20, 0.1)
        assert scenario.network.bottleneck.queue.kind == model.queue
        assert run_batch(scenario, [1]).flows.height == 1


def test_the_script_has_28_sizes():
    assert len(testbed.SIZES) == 28
    assert (testbed.SIZES[0], testbed.SIZES[-1]) == (5, 275)


def test_flows_are_active_as_in_the_script():
    assert [sharing.active(s) for s in range(7)] == [
        [0],
        [0, 1],
        [0, 1, 2],
        [0, 1, 2, 3],
        [1, 2, 3],
        [2, 3],
        [3],
    ]


def test_windows_hold_what_arithmetic_says():
    unit = 10
    found = np.zeros((7 * unit, FLOWS))
    for flow in range(FLOWS):
        found[flow * unit : (flow + 4) * unit, flow] = 10.0 * (flow + 1)
    table = pl.DataFrame(sharing.windows(found, unit))
    assert table["flows"].to_list() == [n for n in (1, 2, 3, 4, 3, 2, 1) for _ in range(5)]
    assert table["sd_mbps"].to_list() == [0.0] * 35
    two, four = table[5], table[15]
    assert two["jain"][0] == pytest.approx(30**2 / (2 * (100 + 400)))
    assert four["jain"][0] == pytest.approx(100**2 / (4 * 3000))
    assert four["total_mbps"][0] == pytest.approx(100.0)


def test_a_flow_without_data_is_refused_by_number():
    batch = run_batch(testbed.wishbone("8 cores", CUBIC, 1), [1])
    found = testbed.series(batch.goodput, FLOWS, 7)
    assert found.shape == (7, FLOWS)
    assert found[0, 1] == 0.0
    assert found[2, 1] > 0.0
    with pytest.raises(InputError, match="flow 2 delivered nothing in 7 s"):
        testbed.series(batch.goodput.filter(pl.col("flow") != 2), FLOWS, 7)
    with pytest.raises(InputError, match="ends at 3 s; 7 s are needed"):
        testbed.series(batch.goodput.filter(pl.col("t_s") < 3.5), FLOWS, 7)
    with pytest.raises(InputError, match="ends at 0 s"):
        testbed.series(batch.goodput.clear(), FLOWS, 7)


def test_claims_see_the_gap_and_its_absence():
    same = shares()
    assert {e.verdict for e in claims.c2(same)} == {Verdict.FAILS}
    assert {e.verdict for e in claims.c4(same)} == {Verdict.HOLDS}
    assert {e.verdict for e in claims.c5(same)} == {Verdict.HOLDS}
    lower = {f"{m} {PCC} {q}": x for m in (OFTEN, NETEM) for q, x in ((10, 0.2), (20, 0.4), (50, 0.7))}
    worse = shares(**lower)
    assert {e.verdict for e in claims.c2(worse)} == {Verdict.HOLDS}
    assert {e.verdict for e in claims.c3(worse)} == {Verdict.HOLDS}


def test_hypotheses_are_told_apart():
    seen = {f"{NETEM} {PCC} 20": 0.3, f"{OFTEN} {PCC} 20": 0.5, f"{OFTEN} {CUBIC} 20": 0.6}
    seen |= {f"H4: single core {PCC} {q}": 0.5 for q in (6, 10, 20, 50, 275)}
    tables = shares(**seen)
    table = {r["model"]: r for r in hypotheses.judged(tables).iter_rows(named=True)}
    assert table[NETEM]["worse_shallow"]
    assert table[NETEM]["recovers"]
    assert table[NETEM]["cubic_same"]
    assert not table[OFTEN]["cubic_same"]
    assert not table["H4: single core"]["recovers"]
    text = hypotheses.answer(tables)
    assert f"All three are given by: {NETEM}" in text


def test_netems_limit_caps_the_rate_and_a_real_queue_does_not():
    """1.6 Mb/s for each packet of the limit: 7.5 ms hold no more than that."""
    netem, real = (run_batch(testbed.shallow(m, PCC, 20, 5), [1]).flows["goodput_bps"][0] for m in (NETEM, IDEAL))
    assert netem < 20 * 1.7e6
    assert real > 2 * netem


def test_claims_are_named_in_order():
    assert [c.id for c in STUDY.claims][:16] == [f"C{i}" for i in range(1, 17)]
    assert sweep.style(IDEAL) != sweep.style(NETEM)
