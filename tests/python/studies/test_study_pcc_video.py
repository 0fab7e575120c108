from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ackclock import run_batch
from ackclock.study import Verdict
from ackclock_studies.pcc import STUDY, video, video_traces
from ackclock_studies.pcc.arms import CUBIC, PCC, PRINTED
from ackclock_studies.pcc.video import FESTIVE, METRICS, RATE_BASED, RULES

HOLDS, FAILS = Verdict.HOLDS, Verdict.FAILS


def players(**values: float) -> dict[str, pl.DataFrame]:
    """Return made-up runs: every metric is 0.1, or 0.05 with FESTIVE; `values` sets other values for an arm, a rule and a metric."""
    rows = []
    for arm in (CUBIC, PCC, PRINTED):
        for rule in RULES:
            base = 0.05 if rule == FESTIVE else 0.1
            for seed in range(6):
                row = {m: values.get(f"{arm.name} {rule} {m}", base) + 1e-4 * seed for m in METRICS}
                rows.append({"arm": arm.name, "rule": rule, "players": 4, "seed": seed, **row, "lost": 0.01})
    long = [{"arm": PCC.name, "seed": seed, "lost": 0.1} for seed in (1, 2, 3)]
    return {"video.players": pl.DataFrame(rows), "traces.runs": pl.DataFrame(long)}


def verdict(name: str, tables: dict[str, pl.DataFrame], half: str = "direction") -> Verdict:
    claim = next(c for c in STUDY.claims if c.id == name)
    return claim.judge(tables).verdicts[half]


def test_claims_hold_or_fail_by_the_numbers():
    much = "magnitude"
    assert [verdict(v, players(), much) for v in ("V1", "V2", "V3")] == [HOLDS, FAILS, HOLDS]  # 49.9 % is less than 50
    assert [verdict(v, players()) for v in ("V1", "V2", "V3")] == [HOLDS] * 3
    steady = {"CUBIC FESTIVE instability": 0.04}
    assert verdict("V2", players(**steady), much) is HOLDS
    assert verdict("V1", players(**{"CUBIC FESTIVE unfairness": 0.07}), much) is FAILS
    assert verdict("V3", players(**{"CUBIC FESTIVE inefficiency": 0.12}), much) is FAILS
    assert verdict("V3", players(**{"CUBIC FESTIVE inefficiency": 0.5})) is FAILS
    # results over PCC are only context
    assert verdict("V1", players(**{f"{PCC.name} FESTIVE unfairness": 0.5}), much) is HOLDS
    over_pcc = {f"{PCC.name} {rule} {metric}": 0.01 for rule in RULES for metric in METRICS}
    assert verdict("V4", players(**over_pcc)) is HOLDS
    assert verdict("V4", players(**{**over_pcc, f"{PCC.name} FESTIVE unfairness": 0.06})) is FAILS


def test_toy_players_by_hand():
    # a player follows the last second: 0.3 Mb/s is below the ladder, 2.5 allows 2, 9 allows 3
    bps = 1e6 * np.array([[0.3, 2.5], [9.0, 2.0], [1.0, 1.99]])
    assert (video_traces.toy(bps) / 1e6).tolist() == [[0.35, 2.0], [3.0, 2.0]]
    # four identical, constant flows of 2.2: bitrates of 2, so 8 of 8.8 Mb/s
    steady = np.full((100, 4), 2.2)
    numbers = video_traces.measured(steady, 8.8e6, 60)
    assert numbers == pytest.approx(
        {"inefficiency": 0.8 / 8.8, "unfairness": 0, "instability": 0, "jain": 1, "sd_mbps": 0}, abs=1e-9
    )
    # a flow that alternates between 1.2 and 2.2 switches between 1 and 2 every second
    restless = steady.copy()
    restless[::2, 0] = 1.2
    numbers = video_traces.measured(restless, 8.8e6, 60)
    weights = np.arange(20, 0, -1)
    level = np.where(np.arange(1, 21) % 2, 1.0, 2.0)
    low, high = (
        weights.sum() / (np.where(level == 1, a, b) * np.append(weights[1:], 0)).sum() for a, b in ((1, 2), (2, 1))
    )
    assert numbers["instability"] == pytest.approx((low + high) / 2 / 4, rel=1e-2)
    assert numbers["unfairness"] > 0.1


@pytest.mark.parametrize("arm", [CUBIC, PCC])
def test_two_players_end_to_end(arm):
    rates = {}
    for rule in RULES:
        batch = run_batch(video.scenario(arm, rule, 2, 100), [1, 2])
        capacity = arm.carried(2 * video.SHARE_MBPS * 1e6)
        found = video.reduce(batch, capacity_bps=capacity, duration_s=100)
        assert found["seed"].to_list() == [1, 2]
        assert found["bitrate_bps"].is_between(0.35e6, 3e6).all()
        assert found["lost"].is_between(0, 0.6).all()
        rates[rule] = found
        series = video.example(batch, duration_s=100)
        assert series["flow"].n_unique() == 2
        assert set(series["bitrate_bps"].unique()) <= {0.0, *(1e6 * mbps for mbps in video.LADDER_MBPS)}
    assert rates[FESTIVE]["instability"].mean() < rates[RATE_BASED]["instability"].mean()
