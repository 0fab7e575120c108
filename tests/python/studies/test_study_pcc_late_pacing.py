"""Tests for the publication's own explanation: pacing timers that fire late, the resulting batches, and the effect of a
buffer on them.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from chance import near

from ackclock import run, run_batch
from ackclock.scenario import Scenario
from ackclock.study import Verdict
from ackclock_studies.pcc import batches, crossed, instances, pair, sharing, testbed
from ackclock_studies.pcc.crossed import EXACT, LATE_10, LINE, XEN
from ackclock_studies.pcc.testbed import BARE, CUBIC, MININET, PACED, PCC


def _goodput(scenario: Scenario, seconds: float) -> float:
    return float(run(scenario.set("duration", f"{seconds:g} s"), seed=1).flows["goodput_bps"][0]) / 1e6


def test_a_batch_is_what_arrives_in_a_period_and_a_smaller_buffer_loses_of_it():
    """50 Mb/s are 4.17 packets per ms: 41 or 42 in 10 ms. The link takes 8.33 per ms, so a 50-packet buffer can
    absorb them and a 6-packet one cannot.
    """

    def found(model: str, packets: int) -> tuple[int, float]:
        flow = run(batches.held(model, packets).set("duration", "5 s"), seed=1).flows
        return int(flow["largest_burst"][0]), float(flow["lost_packets"][0]) / float(flow["sent_packets"][0])

    assert found(BARE, 6) == (1, 0.0)
    burst, lost = found(PACED, 6)
    assert burst in (41, 42)
    assert lost > 0.5
    assert found(PACED, 50)[1] == 0.0


def test_late_pacing_as_long_as_netems_delay_line_has_its_throughput_and_spares_cubic():
    netem, late, exact = (
        _goodput(crossed.scenario(link, host, PCC, 20), 10) for link, host in ((MININET, EXACT), (BARE, LINE), (BARE, EXACT))
    )  # fmt: skip
    assert abs(netem - late) < 3
    assert exact > netem + 40
    # the host specifies which processes wake up late, and TCP is not paced: the run is identical, packet for packet
    cubic = [_goodput(crossed.scenario(BARE, host, CUBIC, 20), 5) for host in (EXACT, LATE_10)]
    assert cubic[0] == cubic[1]


def test_hosts_that_stall_change_cubic_too():
    cubic = [_goodput(crossed.scenario(BARE, host, CUBIC, 50), 10) for host in (EXACT, XEN)]
    assert cubic[1] < 0.5 * cubic[0]


def test_a_report_that_says_nothing_twice_is_the_same_where_none_is_lost():
    scenario = testbed.shallow(BARE, PCC, 20, 5)
    assert scenario.to_dict()["flows"][0]["congestion_control_options"] == {"feedback": 20, "feedback_repeats": False}
    repeats = scenario.set("flows.0.congestion_control_options.feedback_repeats", True)
    once, twice = (run_batch(s, [1, 2]).flows["goodput_bps"].to_list() for s in (scenario, repeats))
    assert once == twice


def _crossed(**share: float) -> dict[str, pl.DataFrame]:
    rows = [
        {"link": link, "host": host, "cc": cc, "buffer": q, "seed": seed, "burst": 1.0, "lost": 0.0}
        | {"share": near(share.get(f"{link} {host} {cc} {q}", 0.98), link, host, cc, q, seed)}
        for link in crossed.LINKS
        for host in crossed.FEW
        for cc in (PCC, CUBIC)
        for q in crossed.SIZES
        for seed in (0, 1, 2)
    ]
    return {"crossed.flows": pl.DataFrame(rows)}


def _ramp(link: str, host: str, *, further: float = 0.0) -> dict[str, float]:
    return {f"{link} {host} {PCC} {q}": x + further for q, x in ((6, 0.09), (20, 0.31), (50, 0.78))}


def test_pairs_that_show_what_was_seen_are_named_and_those_alike_too():
    both = {**_ramp(MININET, EXACT), **_ramp(BARE, LINE, further=0.02), f"{MININET} {EXACT} {CUBIC} 20": 0.5}
    tables = _crossed(**both)
    seen = crossed.prints(tables).filter(pl.col("worse_shallow") & pl.col("recovers"))
    assert [(r["link"], r["host"], r["cubic_same"]) for r in seen.iter_rows(named=True)] == [
        (BARE, LINE, True),
        (MININET, EXACT, False),
    ]
    assert crossed.alike(tables, MININET, EXACT) == [f"{BARE}, {LINE}"]
    (claim,) = crossed.CHAPTER.claims
    assert claim.judge(tables).verdict is Verdict.HOLDS
    apart = _crossed(**{**both, **_ramp(BARE, LINE, further=0.15)})
    assert claim.judge(apart).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("index", "verdict"), [(0.999, Verdict.HOLDS), (0.991, Verdict.NEGLIGIBLE), (0.9, Verdict.FAILS)]
)
def test_flows_that_wake_late_are_held_against_cubics_on_the_same_link(index: float, verdict: Verdict):
    rows = [
        {"model": model, "cc": cc, "seed": seed, "seconds": sharing.TOGETHER_S, "jain": near(jain, model, cc, seed), "sd_mbps": near(sd, model, cc, seed)}
        for model, cc, jain, sd in ((BARE, PCC, 0.9, 5.0), (PACED, PCC, index, 1.0), (BARE, CUBIC, 0.99, 4.0))
        for seed in range(sharing.LEAST_RUNS)
    ]  # fmt: skip
    held = pl.DataFrame(
        {"model": [BARE, PACED], "buffer": [6, 6], "seed": [0, 0], "lost": [0.0, 1.0], "burst": [1.0, 42.0]}
    )
    claim = next(c for c in batches.CHAPTER.claims if c.id == "C22")
    shares = pl.DataFrame(rows)
    assert claim.judge({"batches.shares": shares, "batches.held": held}).verdict is verdict
    short = shares.with_columns(pl.lit(sharing.PICTURED_S).alias("seconds"))
    for pictured in (shares.filter(pl.col("seed") < 3), short):
        few = claim.judge({"batches.shares": pictured, "batches.held": held})
        assert few.verdict is Verdict.UNDECIDED
        assert all("not asked at this scale" in e.label for e in few.evidence)


def test_machines_are_compared_at_the_sizes_of_the_claim():
    rows = [
        {"machine": machine, "buffer": q, "seed": seed, "share": near(share, machine, q, seed)}
        for machine in instances.MACHINES
        for q in instances.SIZES
        for share in [0.5 if machine == instances.M3 else 0.5 + (0.2 if q >= 50 else 0.002)]
        for seed in (0, 1, 2)
    ]
    several = pl.DataFrame(rows).filter(pl.col("buffer") == 6).drop("buffer")
    found = {
        c.id: c.judge({"instances.flows": pl.DataFrame(rows), "instances.several": several})
        for c in instances.CHAPTER.claims
    }
    assert found["C7"].verdict is Verdict.NEGLIGIBLE  # with 6 to 20 packets the difference is two tenths of a point
    assert found["C8"].verdict is Verdict.NOT_COMPARABLE
    assert np.isclose(instances.pick({"instances.flows": pl.DataFrame(rows)}, instances.T2, 50).mean(), 70, rtol=1e-3)


def test_one_clock_of_1_ms_makes_two_flows_equal_at_once_and_two_clocks_do_not():
    """Acting at the same instants helps, not lateness: clocks 10 ppm apart or random lateness leave the late flow small."""
    seconds = {}
    for kind in (pair.BARE, pair.BARE_CLOCK, pair.BARE_LATE, pair.APART):
        controller, model, jitter = pair.KINDS[kind]
        made = pair.own_clocks(pair.joined(controller, model, jitter), kind)
        scenario = made.set("duration", f"{pair.JOINS_S + 30} s")
        own = run(scenario, seed=1).goodput
        found = testbed.series(own, 2, pair.JOINS_S + 30)[pair.JOINS_S :]
        seconds[kind] = pair.converged_after(found)
    assert {kind for kind, found in seconds.items() if found is None} == {pair.BARE, pair.BARE_LATE, pair.APART}
    assert seconds[pair.BARE_CLOCK] is not None
    assert seconds[pair.BARE_CLOCK] <= 5


def test_the_cause_of_an_unfair_share_is_judged_against_cubic_and_against_exact_departures():
    def made(clocked: float) -> dict[str, pl.DataFrame]:
        index = {(PCC, sharing.EXACT): 0.9, (CUBIC, sharing.EXACT): 0.95, (PCC, sharing.CLOCKED): clocked}
        rows = [
            {
                "cc": cc,
                "hosts": hosts,
                "limit": limit,
                "seed": seed,
                "seconds": sharing.TOGETHER_S,
                "jain": near(x, cc, hosts, limit, seed),
            }
            for (cc, hosts), x in index.items()
            for limit in sharing.FEW_LIMITS
            for seed in range(sharing.LEAST_RUNS)
        ]
        return {"depth.shares": pl.DataFrame(rows)}

    (cause,) = next(c for c in sharing.CHAPTER.claims if c.id == "C18").causes
    assert cause.criterion is not None
    assert [cause.criterion.judge(made(x)).verdict for x in (0.999, 0.92)] == [Verdict.HOLDS, Verdict.FAILS]
