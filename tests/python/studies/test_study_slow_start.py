"""Tests for the study of slow starts: quantities measured from a run, and a small run of the study."""

import numpy as np
import polars as pl
import pytest
from chance import near

from ackclock import studies
from ackclock.study import Plan
from ackclock_studies.slow_start import causes, exits, noise, paths, population, resume


class Runs:
    """Tables of two runs with a BDP of 1,000 packets and a 100 ms RTT."""

    flows = pl.DataFrame(
        {
            "seed": [1, 1, 2, 2],
            "flow": [0, 1, 0, 1],
            "slow_start_by": ["rule", "", "", ""],
            "slow_start_ssthresh": [500.0, None, None, None],
            "slow_start_lost": [50.0, None, None, None],
        }
    )
    goodput = pl.DataFrame(
        {
            "seed": [1] * 8 + [2] * 8,
            "flow": [0] * 16,
            # Mbit/s; 98.8 of 120 has to be reached, over four intervals
            "goodput_bps": [1e6 * x for x in (0, 10, 20, 100, 100, 99, 99, 99, 0, 98, 98, 98, 98, 98, 98, 98)],
        }
    )


def test_an_exit_is_measured_by_the_path_without_its_queue():
    place = paths.Place(rate=120, rtt=100, queue=3.0)
    assert place.bdp == 1000
    found = paths.quality(place, Runs)
    assert found["exit"][0] == 0.5
    assert np.isnan(found["exit"][1])
    assert found["lost_bdp"].to_list() == [0.05, 0.0]
    # four intervals from the fourth on: seven round trips
    needed = 0.9 * 0.95 * 120e6 * 1448 / 1500
    assert 98e6 < needed < 99.4e6
    assert found["settled"].to_list() == [7.0, float("inf")]


def test_others_take_their_share_on_average():
    others = paths.Place(rate=50, rtt=40, queue=1.0, background=0.4).others()["workload"]
    assert others["rate"] == "40000000 bit/s"
    assert others["on"] == others["off"]


@pytest.mark.parametrize("case", resume.CASES)
def test_every_arm_is_a_scenario(case):
    place, stack = resume.CASES[case]
    work = {"kind": "transfer", "bytes": "1 MB"}
    made = place.scenario(resume.SAVED, 10, stack=stack, workload=work)
    assert made.flows[0].stack.slow_start.saved_cwnd == 417


def test_a_small_run_judges_every_claim(monkeypatch):
    """Verdicts do not matter here, so the longest chapters are shortened."""
    monkeypatch.setattr(exits, "QUEUES", (0.5, 1.0, 4.0))
    monkeypatch.setattr(exits, "ROUND_TRIPS", 20)
    monkeypatch.setattr(causes, "ROUND_TRIPS", 20)
    study = studies.get("slow-start")
    result = study.run(seeds=2, jobs=2)
    assert [outcome.claim.id for outcome in result.outcomes] == [f"S{i}" for i in range(1, 20)]
    assert set(result.tables) >= {exits.TABLE, noise.TABLE, noise.IDLE, resume.TABLE}
    assert "Careful Resume" in " ".join(study.findings(result))
    assert study.headline(result).figure.name == "headline"


def test_what_all_slow_starts_meet_is_the_same():
    cells = noise._cells(Plan(seeds=2), "noise")
    assert len({(cell.stream, cell.first(Plan())) for cell in cells}) == len(noise.PLACES)


def test_a_jitter_that_rounds_to_nothing_is_none():
    one = population.drawn(1)[0]
    assert not population.place({**one, "jitter": 0.004}).link
    assert population.place({**one, "jitter": 0.006}).link == {"wifi": {"mean": "0.01 ms"}}


def test_a_longer_population_begins_with_the_shorter_one():
    short, long = population.drawn(20), population.drawn(60)
    assert short == long[:20]
    assert len(long) == 60
    assert min(one["bdp"] for one in long) >= population.LEAST_PACKETS
    quiet = [one for one in long if one["jitter"] == 0]
    assert 10 < len(quiet) < 35
    assert not population.place(quiet[0]).link


@pytest.mark.parametrize(
    ("key", "changed", "way"),
    [
        ("hystartpp_loses_less", {"hystart++": {"lost": 50.0}}, 1),
        ("hystartpp_loses_less", {"hystart++": {"lost": 98.0}}, 0),
        ("hystartpp_loses_less", {"hystart++": {"lost": 150.0}}, -1),
        ("hystart_early", {"hystart": {"exit": 0.4}}, 1),
        ("hystart_early", {"hystart": {"exit": float("nan")}}, 1),
        ("search_near", {"search": {"exit": 1.2}}, 1),
        ("search_near", {"search": {"exit": 1.3}}, -1),
        ("search_clean", {"search": {"lost_bdp": 0.04}}, 1),
        ("limited_bounded", {"limited": {"lost": 51.0}}, -1),
        ("limited_slower", {"limited": {"settled": float("inf")}}, 1),
    ],
)
def test_a_sentence_on_a_path_is_read_from_its_runs(key, changed, way):
    base = {"lost": 100.0, "lost_bdp": 1.0, "exit": 1.0, "settled": 20.0}
    rows = [
        {
            "arm": arm,
            "path": 0.0,
            "seed": seed,
            **dict.fromkeys(population.NAMES, 1.0),
            **{name: near(x, name, arm, seed) for name, x in {**base, **changed.get(arm, {})}.items()},
        }
        for arm in paths.ARMS
        for seed in range(24)
    ]
    assert population.sentence({"paths.runs": pl.DataFrame(rows)}, key).way.tolist() == [way]
