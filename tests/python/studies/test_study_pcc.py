from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from chance import near

from ackclock import run_batch
from ackclock._results.run import check_memory
from ackclock.errors import InputError
from ackclock.study import Verdict, above
from ackclock_studies.pcc import STUDY, hypotheses, pair, processors, prototype, sharing, sweep, testbed
from ackclock_studies.pcc.testbed import (
    BARE,
    CORE,
    COSTLY,
    CUBIC,
    CUT,
    FLOWS,
    IDEAL,
    LATE,
    MEDIUM,
    MININET,
    MODELS,
    NO_CATCH_UP,
    OFTEN,
    PACED,
    PCC,
    STALLED,
    TESTBED,
    TICK_8_1,
    TWINS,
)

BASE = dict.fromkeys(
    (BARE, MININET, IDEAL, OFTEN, PACED, STALLED, LATE, CORE, COSTLY, TESTBED, "H4: single core", NO_CATCH_UP), 0.98
)


def shares(**lower: float) -> dict[str, pl.DataFrame]:
    """Return a made-up sweep with every model at its base; `lower` selects the model, controller and size with a smaller share."""
    rows = []
    for model in BASE:
        for cc in (PCC, CUBIC):
            for buffer in (1, 6, 10, 20, 50, 100, 275):
                share = lower.get(f"{model} {cc} {buffer}", BASE[model])
                rows += [
                    {
                        "model": model,
                        "cc": cc,
                        "buffer": buffer,
                        "seed": seed,
                        "share": near(share, model, cc, buffer, seed),
                        "goodput_mbps": near(97 * share, model, cc, buffer, seed),
                        "sent_mbps": 100 * share,
                        "rtt_ms": 31.0,
                    }
                    for seed in (1, 2, 3)
                ]
    return {"sweep.flows": pl.DataFrame(rows)}


def test_every_model_is_a_scenario_that_the_engine_takes():
    for name, model in MODELS.items():
        for controller in (PCC, CUBIC):
            scenario = testbed.shallow(name, controller, 20, 0.1)
            assert scenario.network.bottleneck.queue.kind == model.queue
            assert run_batch(scenario, [1]).flows.height == 1


def test_models_that_are_the_same_to_a_protocol_are_and_what_draws_nothing_has_one_outcome():
    def digest(model, controller, seed=1):
        return run_batch(testbed.shallow(model, controller, 10, 2), [seed]).digests[0]

    for (model, controller), run in TWINS.items():
        assert digest(model, controller) == digest(run, controller), model
    for model in (IDEAL, BARE, MININET, COSTLY):
        assert digest(model, CUBIC, 1) == digest(model, CUBIC, 2), model
    assert digest(NO_CATCH_UP, CUBIC, 1) != digest(NO_CATCH_UP, CUBIC, 2)
    assert digest(NO_CATCH_UP, PCC) != digest(testbed.TENTH, PCC)


def test_one_run_stands_for_all_seeds_and_a_model_for_its_twin():
    rows = pl.DataFrame(
        [
            {"model": model, "cc": cc, "buffer": 10, "seed": 7 + k, "share": 0.1 * k}
            for model, run in MODELS.items()
            for cc in (PCC, CUBIC)
            if (model, cc) not in TWINS
            for k in range(3 if cc == PCC or run.draws else 1)
        ]
    )
    found = sweep.spread(rows, 3)
    assert found.height == len(MODELS) * 2 * 3
    assert found["model"].unique(maintain_order=True).to_list() == list(MODELS)
    assert found.filter((pl.col("model") == IDEAL) & (pl.col("cc") == CUBIC))["seed"].to_list() == [7, 8, 9]
    for (model, cc), run in TWINS.items():
        ours, theirs = (found.filter((pl.col("model") == m) & (pl.col("cc") == cc)).drop("model") for m in (model, run))
        assert ours.equals(theirs)


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
    found = np.zeros((sharing.STRETCHES * unit, FLOWS))
    for flow in range(FLOWS):
        found[flow * unit : (flow + 4) * unit, flow] = 10.0 * (flow + 1)
    table = pl.DataFrame(sharing.windows(found, unit))
    assert table["flows"].to_list() == [n for n in (1, 2, 3, 4, 3, 2) for _ in range(5)]
    assert table["sd_mbps"].to_list() == [0.0] * 30
    two, four = table[5], table[15]
    assert two["jain"][0] == pytest.approx(30**2 / (2 * (100 + 400)))
    assert four["jain"][0] == pytest.approx(100**2 / (4 * 3000))
    assert four["total_mbps"][0] == pytest.approx(100.0)


def test_claims_on_windows_of_100_s_are_not_asked_of_short_stretches():
    """Stretches that are too short serve only for pictures and yield no verdict."""

    def found(stretch: int) -> dict[str, pl.DataFrame]:
        windows = [
            {"host": MININET, "cc": cc, "flows": n, "seed": seed, "jain": jain + seed / 1000, "sd_mbps": sd + seed / 10}
            for cc, jain, sd in ((PCC, 0.99, 1.0), (CUBIC, 0.9, 9.0))
            for n in (1, 2, 3, 4)
            for seed in (1, 2, 3)
        ]
        return {
            "sharing.windows": pl.DataFrame(windows),
            "sharing.series": pl.DataFrame({"t_s": [1.0, float(sharing.STRETCHES * stretch)]}),
        }

    (c11,) = (c.direction for c in STUDY.claims if c.id == "C11")
    assert c11 is not None
    assert c11.judge(found(sharing.STRETCH_S)).verdict is Verdict.HOLDS
    short = c11.judge(found(sharing.SHORT_S))
    assert short.verdict is Verdict.UNDECIDED
    assert all(np.isnan(e.value) and "not asked at this scale" in e.label for e in short.evidence)


def test_a_flow_without_data_is_refused_by_number():
    batch = run_batch(testbed.wishbone(IDEAL, CUBIC, 1), [1])
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


def verdicts(claim, half, tables):
    """Return the verdicts on the numbers that decide half of a claim, as declared in the table."""
    (judged,) = (dict(c.halves)[half].judge(tables) for c in sweep.CHAPTER.claims if c.id == claim)
    return {e.verdict for e in judged.evidence if e.weighs}


def test_claims_see_the_gap_and_its_absence():
    same = shares()
    assert verdicts("C2", "magnitude", same) == {Verdict.FAILS}
    for claim in ("C4", "C5", "C17"):
        assert verdicts(claim, "direction", same) == {Verdict.HOLDS}
    lower = {f"{MININET} {PCC} {q}": x for q, x in ((6, 0.1), (10, 0.2), (20, 0.4), (50, 0.7))}
    worse = shares(**lower)
    for claim, half in (("C2", "direction"), ("C2", "magnitude"), ("C3", "direction")):
        assert verdicts(claim, half, worse) == {Verdict.HOLDS}
    assert verdicts("C17", "direction", worse) == {Verdict.FAILS}


def test_the_buffer_needed_is_the_smallest_from_which_on_it_suffices():
    """A size that suffices by chance, followed by a larger one that does not, is ignored; if no size suffices the value is infinite."""
    tables = shares(**{f"{BARE} {CUBIC} {q}": 0.5 for q in (1, 6, 20)}, **{f"{BARE} {PCC} 1": 0.1})
    assert sweep.needed(tables, CUBIC).tolist() == [50.0] * 3
    assert sweep.needed(tables, PCC).tolist() == [6.0] * 3
    never = shares(**{f"{BARE} {CUBIC} {q}": 0.5 for q in (1, 6, 10, 20, 50, 100, 275)})
    assert np.isinf(sweep.needed(never, CUBIC)).all()
    assert [e.verdict for e in sweep.f1(tables, above(1))] == [Verdict.HOLDS]
    assert [e.verdict for e in sweep.f1(never, above(1))] != [Verdict.HOLDS]


def test_hypotheses_are_told_apart_over_all_sizes():
    seen = {f"{MININET} {PCC} {q}": 0.3 for q in (6, 10, 20)} | {f"{OFTEN} {PCC} {q}": 0.5 for q in (6, 10, 20)}
    seen |= {f"{OFTEN} {CUBIC} {q}": 0.6 for q in (6, 10, 20)}
    seen |= {f"H4: single core {PCC} {q}": 0.5 for q in (1, 6, 10, 20, 50, 100, 275)}
    tables = shares(**seen)
    table = {r["model"]: r for r in hypotheses.judged(tables).iter_rows(named=True)}
    assert table[MININET]["worse_shallow"]
    assert table[MININET]["recovers"]
    assert table[MININET]["cubic_same"]
    assert not table[OFTEN]["cubic_same"]
    assert not table["H4: single core"]["recovers"]
    paced = hypotheses.judged(shares(**{f"{PACED} {PCC} {q}": 0.3 for q in (6, 10, 20)}))
    both = {r["model"]: r for r in paced.iter_rows(named=True)}[PACED]
    assert both["worse_shallow"]
    assert both["recovers"]
    assert both["cubic_same"]
    slower = hypotheses.judged(shares(**{f"{IDEAL} {c} {q}": 0.5 for c in (PCC, CUBIC) for q in (6, 10, 20)}))
    on_it = {r["model"]: r for r in slower.iter_rows(named=True)}[OFTEN]
    assert on_it["shallow"] < 0  # a host is compared with its own link, so the link's deficit does not count
    _, listed, _ = hypotheses.answer(tables)
    assert [cell.text for cell in listed.cells[0][:2]] == ["all three", MININET]
    assert {len(row) for row in listed.cells} <= {4, 5}  # only the first row of a kind includes the common part
    assert len(listed.cells) == len(table)


def goodput(model, controller, packets, seconds=5):
    return run_batch(testbed.shallow(model, controller, packets, seconds), [1]).flows["goodput_bps"][0]


def test_netems_limit_caps_the_rate_and_a_real_queue_does_not():
    """1.6 Mb/s per packet of the limit, because packets stay in the queue for 7.5 ms."""
    assert goodput(MININET, PCC, 20) < 20 * 1.7e6
    assert goodput(IDEAL, PCC, 20) > 2 * goodput(MININET, PCC, 20)


def test_netems_limit_spares_tcp_with_segmentation_offload():
    """The limit is 30 packets of several segments each, so the queue can contain several times the data."""
    assert goodput(CUT, CUBIC, 30) < 30 * 1.7e6
    assert goodput(MININET, CUBIC, 30) > 2 * goodput(CUT, CUBIC, 30)


def test_the_testbeds_ticks_cap_pcc_at_the_slots_of_the_queue_and_starve_cubic():
    """The shape of Figure 7: six packets per 1 ms tick are 69.9 Mb/s; CUBIC's bursts do not fit."""
    assert 0.93 * 69.9e6 < goodput(BARE, PCC, 6, 20) < 69.9e6
    assert goodput(BARE, CUBIC, 6, 20) < 5e6
    assert goodput(testbed.bare(TICK_8_1), PCC, 6, 20) > 90e6


def test_one_core_that_is_too_slow_limits_the_rate_and_starves_nobody():
    """100 us at each end allow at most 5000 packets per second, 58.3 Mb/s, less the time wasted by spinning senders."""
    flow = run_batch(testbed.shallow(COSTLY, PCC, 275, 5), [1]).flows.to_dicts()[0]
    assert 0.6 * 58e6 < flow["goodput_bps"] < 58.3e6
    four = run_batch(testbed.wishbone(MEDIUM, PCC, 5), [1])
    total = testbed.series(four.goodput, FLOWS, 35)[16:20].sum(axis=1).mean()
    assert 15 < total < 58.3


def test_convergence_is_measured_as_arithmetic_says():
    found = np.array([[90.0 - 4 * min(t, 10), 10.0 + 4 * min(t, 10)] for t in range(30)])
    # from 7 s on: the mean of 62, 58, 54, 50, 50 is 54.8, 9.6 more than the other
    assert pair.converged_after(found) == 7
    assert pair.converged_after(found[:9]) is None
    assert pair.converged_after(np.zeros((20, 2))) is None


def test_a_late_flow_loses_more_beside_a_perfect_clock_and_no_more_beside_an_imperfect_one():
    """The timing of departures decides which flow loses packets behind a full queue."""
    ratio = {}
    for kind in (pair.EXACT, pair.MUCH):
        found = pair.losses(run_batch(pair.early(*pair.KINDS[kind]), [1, 2], jobs=2))
        ratio[kind] = found["loss_late"].mean() / found["loss_first"].mean()
    assert ratio[pair.EXACT] > 5
    assert ratio[pair.MUCH] < 2


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_every_scenario_of_the_study_fits_into_memory(scale):
    unit = sharing.STRETCH_S if scale == "paper" else sharing.SHORT_S
    runs = [cell.scenario for make in (pair._long, pair._early) for cell in make(pair.KINDS, 4)]
    runs += [sharing.come_and_go(host, controller, unit) for host, controller in sharing.RUNS]
    runs += [sharing.abreast(PCC, processors.LIMIT, host=host) for host in processors.HOSTS.values()]
    for scenario in runs:
        check_memory(scenario.to_engine_json(), 4 << 30, runs=4)


def test_the_prototypes_table_is_complete_and_far_cells_are_marked():
    assert all(len(row) == len(prototype.SIZES) for row in prototype.FOUND.values())
    tables = shares(**{f"{OFTEN} {PCC} 10": 0.29, f"{OFTEN} {PCC} 20": 0.9})
    found = {(r["model"], r["buffer"]): r["difference"] for r in prototype.cells(tables).iter_rows(named=True)}
    assert found[OFTEN, 10] == pytest.approx(0.0, abs=1e-3)
    assert found[OFTEN, 20] == pytest.approx(0.37, abs=1e-3)
    assert (TESTBED, 6) in found
    marked = [
        c.text for row in prototype.table(tables).rows for c in row if not isinstance(c, str) and c.kind == "differs"
    ]
    assert "0.90 (0.53)" in marked


def test_claims_are_named_in_order():
    assert [c.id for c in STUDY.claims][:29] == [*(f"C{i}" for i in range(1, 24)), *(f"F{i}" for i in range(1, 7))]
