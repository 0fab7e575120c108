from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from chance import near

from ackclock import run, run_batch
from ackclock.studies import get
from ackclock.study import Plan, Verdict
from ackclock.study.note import typed_in
from ackclock.study.plan import KERNEL
from ackclock.study.study import carry_out
from ackclock_studies.iw10 import (
    bursts,
    extension,
    kernel,
    loaded,
    mix,
    parts,
    paths,
    photos,
    readings,
    testbed,
    why,
    writes,
)
from ackclock_studies.iw10.testbed import FAST, FIVE, IW3, IW10, MIX, SINGLE, SLOW


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
    assert {e.key: e.value for e in bursts.i30(exact) if e.key}["one"] > 0


def test_windows_that_do_not_grow_need_two_other_batches(exact):
    """The slide's sentence holds for the other two batches; the study's own windows refute it."""
    one, two = bursts.held(exact)
    assert (one.value, one.verdict) == (0, Verdict.HOLDS)
    assert two.value > 0
    assert {e.key: e.value for e in bursts.i30(exact) if e.key}["one"] > 0


def first_burst(size, packets, nagle=True):
    """Return the payloads of a response's first packets, written in pieces under Minshall's variant of Nagle: one
    short segment at a time.
    """
    queued, sent, short = 0, [], False
    left = writes.RESPONSE
    while left:
        piece = min(size, left)
        left -= piece
        queued += piece
        while queued >= testbed.SEGMENT and len(sent) < packets:
            sent.append(testbed.SEGMENT)
            queued -= testbed.SEGMENT
        if queued and (not nagle or not short) and len(sent) < packets:
            sent.append(queued)
            queued, short = 0, True
    if queued and not left and not short and len(sent) < packets:
        sent.append(queued)
    return len(sent), sum(sent)


@pytest.mark.parametrize("size", writes.SIZES)
def test_a_write_that_is_no_whole_segment_costs_the_first_burst_payload(size):
    table = writes.run(Plan()).tables["writes.bursts"]
    rows = {row["host"]: row for row in table.filter(size=size).iter_rows(named=True)}
    assert (rows[writes.WIDE]["packets"], rows[writes.WIDE]["bytes"]) == first_burst(size, 10)
    packets = rows[writes.AT_ONCE]["packets"]
    assert rows[writes.AT_ONCE]["bytes"] == first_burst(size, packets, nagle=False)[1]
    small = rows[writes.SMALL]
    assert small["packets"] in (9, 10)
    assert small["bytes"] == first_burst(size, small["packets"])[1]
    assert small["packets"] == 9 or small["bytes"] + (testbed.SEGMENT + 456) > 16384 - 9 * 456 - small["bytes"]


def test_a_client_that_leaves_data_unread_resets():
    tables = writes.run(Plan()).tables
    assert tables["writes.ends"]["ends"].to_list() == ["FIN", "FIN", "RST", "RST"]
    outcome = next(c for c in writes.CHAPTER.claims if c.id == "I34").judge(tables)
    assert outcome.verdict is Verdict.NOT_COMPARABLE
    assert [e.value for e in outcome.evidence] == [0, 0, 1, 1]


def _population(changed):
    """Return two paths with six runs each; IW10 is identical to IW3 except for `changed`."""
    base = {
        "path": 0.0,
        "rate": 1.0,
        "rtt": 100.0,
        "queue": 1.0,
        "load": 0.4,
        "opens": 1.0,
        "packets": 80.0,
        "bdp": 8.0,
    }
    times, links = [], []
    for path in (0.0, 1.0):
        for arm in (IW3, IW10):
            own = {"arm": arm, **base, "path": path, "rate": 1.0 + 3 * path}
            more = changed if arm == IW10 and path else {}
            found = {"mean_s": 2.0, "p50_s": 1.0, "p95_s": 4.0, "plr": 0.01, "mean_queue": 5.0, **more}
            for i in range(6):
                drawn = {name: near(value, name, arm, path, i) for name, value in found.items()}
                times.append({**own, "seed": i, **{k: x for k, x in drawn.items() if k.endswith("_s")}})
                links.append({**own, "seed": i, **{k: x for k, x in drawn.items() if not k.endswith("_s")}})
    return {"paths.times": pl.DataFrame(times), "paths.links": pl.DataFrame(links)}


@pytest.mark.parametrize(
    ("key", "changed", "way"),
    [
        ("faster", {"mean_s": 1.8}, 1),
        ("faster", {"mean_s": 2.2}, -1),
        ("faster", {"mean_s": 1.95}, 0),
        ("more_lost", {"plr": 0.02}, 1),
        ("more_lost", {"plr": 0.0105}, 0),
        ("longer_queue", {"mean_queue": 4.0}, -1),
        ("longer_tail", {"p95_s": 8.0}, 1),
    ],
)
def test_a_sentence_on_a_path_is_read_from_its_runs(key, changed, way):
    found = paths.sentence(_population(changed), key)
    assert found.way.tolist() == [0, way]
    assert [e.key for e in found.evidence()][:2] == [f"{key}_holds_on", f"{key}_reverse_on"]


def test_the_kernels_part_has_no_population():
    assert paths.on_paths({}, "faster") == paths.keeps({}) == paths.dominated({}) == []


def test_every_claim_is_asked_of_the_kernel_or_says_why_not():
    assert {*kernel.ASKED, *kernel.LEFT_OUT} == {claim.id for claim in get("iw10").claims}


@pytest.mark.deep
def test_the_kernels_claims_need_no_more_than_the_kernel_runs():
    """An arm added to the study for a claim would break that claim on the kernel, which only a run there would reveal."""
    ran = carry_out(kernel.PART.experiments, Plan(scale=KERNEL, seeds=2, backend="sim"))
    verdicts = {claim.id: claim.judge(ran.tables).verdict for claim in kernel.PART.claims}
    assert set(verdicts) == set(kernel.ASKED)
    assert verdicts["I9"] is verdicts["I10"] is Verdict.HOLDS


def test_hypotheses_about_the_mix_are_causes():
    (claim,) = (c for c in mix.CHAPTER.claims if c.id == "I17")
    rows = [
        {"variant": variant, "rate": SLOW, "mode": mode, "arm": arm, "iw": iw, "seed": seed, "mean_s": mean}
        for variant in (why.PACED, why.QUICK_REPAIR)
        for mode in (SINGLE, FIVE)
        for arm, iw, mean in ((MIX, 3, 11.0 if variant == why.PACED else 9.0), (IW3, 0, 10.0))
        for seed in range(6)
    ]
    verdicts = [cause.criterion.judge({"why.times": pl.DataFrame(rows)}).verdict for cause in claim.causes[:2]]
    assert verdicts == [Verdict.HOLDS, Verdict.FAILS]


def test_the_fin_makes_eleven_of_ten(exact):
    assert exact["exact.first_flight"].select("fin", "segments").rows() == [("off", 10), ("with-data", 11)]
    assert all(e.verdict is Verdict.HOLDS for e in bursts.i26(exact))


def test_one_transaction_alone_takes_what_arithmetic_says(exact):
    t = exact["exact.unloaded"]

    def took(rate: str, acks: str, window: int) -> float:
        row = t.filter((pl.col("rate") == rate) & (pl.col("acks") == acks) & (pl.col("window") == window))
        return float(row["total_s"][0])

    # handshake and request take 0.6 s; then rounds of 0.3 s, or ten packets of 187.5 ms
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
            "total_s": [2.0, 72.0, None],
            "segments_sent": [10, 20, 0],
            "retransmissions": [0, 10, 0],
            "rtos": [0, 2, 0],
            "syn_retransmissions": [0, 1, 0],
            "syns_again": [0, 1, 0],
        }
    )
    all_of_them = loaded.summaries(rows, end_s=100.0).row(by_predicate=pl.col("iw") == 0, named=True)
    assert (all_of_them["started"], all_of_them["completed"], all_of_them["incomplete"]) == (3, 2, 1)
    assert all_of_them["mean_s"] == pytest.approx(37.0)
    assert all_of_them["censored_mean_s"] == pytest.approx((2 + 72 + 92) / 3)
    assert (all_of_them["long"], all_of_them["long_two_timeouts"]) == (1, 1)


def test_every_reading_is_a_valid_scenario():
    for setup in readings.SETUP.options:
        for rate in (SLOW, FAST):
            plan = Plan(reading={"set-up": setup, "mixed": "connection", "counts": "all"})
            scenario = testbed.loaded(rate, FIVE, 0.75, MIX, duration_s=5, **readings.settings(plan, rate))
            assert np.isfinite(run(scenario).flows["start_s"].to_numpy()).all()
    for settings in (*why.CHANGED.values(), *extension.ARMS.values()):
        assert run(testbed.loaded(SLOW, FIVE, 0.75, IW3, duration_s=20, **settings)).flows.height
    for scenario in get("iw10").scenarios().values():
        assert scenario.flows


def test_a_client_draws_for_all_its_connections():
    for mix_by, together in (("client", True), ("connection", False)):
        rows = run(testbed.loaded(SLOW, FIVE, 0.75, MIX, duration_s=300, mix_by=mix_by)).transactions
        windows = rows.group_by("flow", "batch").agg(pl.col("initial_window").n_unique())
        assert (windows["initial_window"].max() == 1) == together
        assert set(rows["initial_window"]) == {3, 10}


def test_the_parts_of_a_completion_time_add_up():
    batch = run_batch(testbed.loaded(SLOW, FIVE, 0.975, IW10, duration_s=900, record={"trace": "all"}), [1, 2])
    rows = parts.each(batch)
    assert rows.select(pl.sum_horizontal(parts.PARTS) - pl.col("total_s")).to_series().abs().max() < 1e-9
    assert rows.select(pl.min_horizontal(parts.PARTS)).to_series().min() > -1e-9
    assert rows.filter(pl.col(parts.TIMEOUT) > 0)["rtos"].min() >= 1
    assert rows.filter(pl.col("retransmissions") == 0)[parts.REPAIR].sum() == 0
    # on its own, a transaction takes only its round trips
    alone = parts.each(run_batch(testbed.loaded(FAST, SINGLE, 0.05, IW3, duration_s=20, record={"trace": "all"}), [3]))
    assert alone[parts.REST].to_numpy() == pytest.approx(0.9, abs=0.03)
    assert alone[parts.CONNECTING].to_numpy() == pytest.approx(0.3, abs=0.03)


def test_photographs_are_judged_where_iw3_loses_what_the_slide_says():
    """On made-up pages with rate-dependent loss, the fitted rate and the ratio there are known, and no fraction of
    random loss changes them.
    """
    rows = [
        {
            "access_mbps": rate,
            "arm": arm,
            "run": run_,
            "loss": loss,
            "mean_s": (2.0 if arm == photos.IW3_SACK else 1.5),
            "retransmission_rate": 0.033 * (4.0 / rate) ** 0.5 * (1.0 if arm == photos.IW3_SACK else 1.24),
        }
        for loss in (*photos.OTHER_LOSSES, photos.LOSS)
        for rate in photos.rates(loss)
        for arm in photos.ARMS
        for run_ in range(4)
    ]
    pages = pl.DataFrame(rows)
    own = pl.col("loss") == photos.LOSS
    tables = {"photos.pages": pages.filter(own).drop("loss"), "losses.pages": pages.filter(~own)}
    assert photos.fitted_rate(tables).value == pytest.approx(4.0)
    assert photos.judged(tables, photos.IW10_SACK, "mean_s").value == pytest.approx(0.75)
    assert {e.verdict for e in (*photos.i23(tables), *photos.i24(tables), *photos.i24_much(tables)) if e.weighs} == {
        Verdict.HOLDS
    }


def test_notes_have_no_number_of_a_run_typed_in():
    study = get("iw10")
    known = " ".join(scenario.to_toml() for scenario in study.scenarios().values())
    records = study.recorded("quick")
    for claim in study.claims:
        text = [claim.statement, claim.place, known, *(cause.intervention for cause in claim.causes)]
        for half, criterion in claim.halves:
            text += [criterion.reading, criterion.cell, criterion.printed]
            text += list(records.claims[claim.id].get(half, {}).get("evidence", {}))
        assert typed_in(claim.note, " ".join(text)) == [], claim.id


def test_what_weighs_is_named():
    for claim in get("iw10").claims:
        for _, criterion in claim.halves:
            assert criterion.cell, claim.id
