from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ackclock import run, run_batch
from ackclock.studies import get
from ackclock.studies.iw10 import bursts, loaded, testbed
from ackclock.studies.iw10.testbed import FAST, FIVE, IW3, IW10, MIX, SINGLE, SLOW
from ackclock.study import Plan, Verdict


@pytest.fixture(scope="module")
def exact():
    return bursts.run_all(Plan()).tables


def test_every_round_of_rfc_6928(exact):
    t = exact["exact.rounds"]
    assert t.height == 26
    assert t["rounds"].to_list() == t["published"].to_list()


def test_isolated_batches_lose_what_arithmetic_says(exact):
    isolated = exact["exact.bursts"].filter(pl.col("isolated"))
    assert isolated["drops"].to_list() == [9, 14, 0, 0, 0]
    assert {e.verdict for e in bursts.i10(exact) if e.weighs} == {Verdict.HOLDS}


def test_the_fin_makes_eleven_of_ten(exact):
    assert exact["exact.first_flight"].select("fin", "segments").rows() == [("off", 10), ("with-data", 11)]
    assert all(e.verdict is Verdict.HOLDS for e in bursts.i26(exact))


def test_one_transaction_alone_takes_what_arithmetic_says(exact):
    t = exact["exact.unloaded"]

    def took(rate: str, acks: str, window: int) -> float:
        row = t.filter((pl.col("rate") == rate) & (pl.col("acks") == acks) & (pl.col("window") == window))
        return float(row["total_s"][0])

    # handshake and request 0.6 s; then rounds of 0.3 s, or ten packets of 187.5 ms
    for acks in bursts.ACKS:
        assert took(FAST, acks, 3) == pytest.approx(1.20, rel=0.01)
        assert took(FAST, acks, 4) == pytest.approx(0.90, rel=0.01)
        assert took(FAST, acks, 10) == pytest.approx(0.606, rel=0.01)
        assert took(SLOW, acks, 10) == pytest.approx(2.475, rel=0.01)
    assert took(SLOW, bursts.EVERY_ACK, 3) == pytest.approx(2.475, rel=0.01)
    assert took(SLOW, bursts.DELAYED_ACKS, 3) == pytest.approx(2.587, rel=0.01)
    assert [took(SLOW, bursts.EVERY_ACK, w) for w in (1, 2)] == pytest.approx([2.89, 2.59], rel=0.01)


def test_arms_meet_the_same_arrivals():
    starts = {
        arm: testbed.transactions_of(run_batch(testbed.loaded(SLOW, FIVE, 0.75, arm, duration_s=120), [7]))
        .sort("flow", "idx")["start_s"]
        .to_list()
        for arm in (IW3, MIX, IW10)
    }
    assert len(starts[IW3]) > 20
    assert starts[IW3] == starts[MIX] == starts[IW10]


def test_load_is_what_it_says():
    batch = run_batch(testbed.loaded(FAST, SINGLE, 0.5, IW10, duration_s=40), range(4))
    bytes_per_s = batch.transactions.height * testbed.SEGMENTS * testbed.MTU / 40 / 4
    assert 8 * bytes_per_s / testbed.BPS[FAST] == pytest.approx(0.5, rel=0.05)


def test_summaries_count_what_was_not_finished():
    rows = pl.DataFrame(
        {
            "seed": [1, 1, 1],
            "iw": pl.Series([3, 10, 10], dtype=pl.UInt32),
            "start_s": [0.0, 1.0, 8.0],
            "connect_s": [0.5, 0.5, None],
            "total_s": [2.0, 70.0, None],
            "segments_sent": [10, 20, 0],
            "retransmissions": [0, 10, 0],
            "rtos": [0, 2, 0],
            "syn_retransmissions": [0, 1, 0],
        }
    )
    all_of_them = loaded.summaries(rows, end_s=100.0).row(by_predicate=pl.col("iw") == 0, named=True)
    assert (all_of_them["started"], all_of_them["completed"], all_of_them["incomplete"]) == (3, 2, 1)
    assert all_of_them["mean_s"] == pytest.approx(36.0)
    assert all_of_them["censored_mean_s"] == pytest.approx((2 + 70 + 92) / 3)
    assert (all_of_them["over_60_s"], all_of_them["over_60_s_two_rtos"]) == (1, 1)


def test_every_reading_is_a_valid_scenario():
    from ackclock.studies.iw10 import extension, sensitivity, why

    for settings in (*sensitivity.READINGS.values(), *why.VARIANTS.values(), *extension.ARMS.values()):
        flows = run(testbed.loaded(SLOW, FIVE, 0.75, IW3, duration_s=20, **settings)).flows
        assert np.isfinite(flows["start_s"].to_numpy()).all()
    for scenario in get("iw10").scenarios().values():
        assert scenario.flows
