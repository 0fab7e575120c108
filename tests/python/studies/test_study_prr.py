from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from chance import near

from ackclock import run_batch, studies
from ackclock.judge.bound import AGAINST
from ackclock.plot import Figure
from ackclock.study import SCALES, Plan, Verdict
from ackclock.study.note import typed_in
from ackclock.study.result import write_report
from ackclock_studies.prr import burst_loss, latency, noise, paths, population, rfc_tables, stall, timeouts, traces
from ackclock_studies.prr.fetches import paired
from ackclock_studies.prr.published import PATTERNS, TABLES
from ackclock_studies.prr.rules import LINUX_6, LINUX_32, PRR, RATE_HALVING, RFC6675, RFC9937, RULES, SSRB, label

SEEDS = 2


def smaller(jobs: int):
    """Return all chapters; the largest is reduced to a fifth of its clients."""
    plain = population.scenario
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(population, "scenario", lambda *of, **changed: plain(*of[:2], of[2] // 5, **changed))
        return studies.get("prr").run(scale="quick", seeds=SEEDS, jobs=jobs)


@pytest.fixture(scope="module")
def result():
    return smaller(2)


@pytest.fixture(scope="module")
def page(result):
    return result.page()


def test_the_name_is_offered():
    with pytest.raises(studies.UnknownStudyError, match="nearest: prr"):
        studies.get("pr")
    with pytest.raises(KeyError):
        studies.get("iw99")
    assert "prr" in studies.names()


def test_printed_tables_differ_only_where_known():
    """RFC 6937 §3.1: the pipe row of PRR, shifted from ACK 5; RFC 9937 Figure 1: ACKs 19 and 20."""
    found = set()
    for table in TABLES:
        for row in rfc_tables.compare(table):
            for ack, differs in zip(table.acks, row.differs, strict=True):
                if differs:
                    found.add((table.place, row.rule.name, row.name, ack))
                    assert row.rule.remark
    shifted = {("RFC 6937 §3.1", "PRR", "pipe", ack) for ack in (5, 7, 9, 11, 13, 15, 17, 18)}
    figure_1 = {
        ("RFC 9937 §8, Figure 1", "PRR", name, ack)
        for name, ack in (("cwnd", 19), ("pipe", 20), ("sent", 19), ("sent", 20))
    }
    assert found == shifted | figure_1


def test_the_slides_print_what_the_rfc_prints_with_its_misprint():
    found = rfc_tables.slides()
    assert len(found) == 16
    assert all(s.printed for s in found)
    assert [(s.row.rule, s.row.row) for s in found if not s.computed] == [(SSRB, "pipe")]
    assert rfc_tables.in_order(("1", "3"), ("1", "2", "3"))
    assert not rfc_tables.in_order(("3", "1"), ("1", "2", "3"))


def test_sentences_on_paths_are_read_from_the_fetches_and_recoveries_of_each():
    own = {"rtt": 100.0, "queue": 1.0, "loss": 0.02, "size": 100.0, "bdp": 10.0, "packets": 10.0}
    slower = {PRR: 1.0, RFC6675: 1.05, RATE_HALVING: 1.2}
    fetches, ends = [], []
    for path in (0.0, 1.0):
        for rule, factor in slower.items():
            keys = {"rule": rule, **own, "path": path, "rate": 1.0 + path}
            short = 9 if rule == RATE_HALVING and path else 2
            for i in range(12):
                fetches.append(
                    {
                        **keys,
                        "seed": i,
                        "total_s": near(factor if path else 1.0, rule, path, i),
                        "data_retransmissions": near(5, rule, path, i),
                        "data_rtos": 1,
                        "lost_retransmits": 0,
                    }
                )
                ends.append({**keys, "seed": i, "short": near(short, rule, path, i), "recoveries": 10})
    tables = {"paths.fetches": pl.DataFrame(fetches), "paths.ends": pl.DataFrame(ends)}
    assert paths.sentence(tables, "longer").way.tolist() == [0, 1]
    assert paths.sentence(tables, "similar").way.tolist() == [1, -1]
    assert paths.sentence(tables, "ends").way.tolist() == [0, 1]
    assert paths.sentence(tables, "retransmissions").way.tolist() == [0, 0]
    assert {e.key for e in paths.on_paths(tables, "longer")} >= {"longer_all", "longer_holds_on", "longer_first"}


def test_the_misprinted_row_is_the_computed_one_shifted():
    table = TABLES[0]
    pipe = next(row for row in rfc_tables.compare(table) if row.rule.name == "PRR" and row.name == "pipe")
    assert pipe.printed[:4] == pipe.computed[:4]
    assert pipe.printed[5:] == pipe.computed[4:-1]


def test_printed_rows_are_as_wide_as_their_table():
    for table in TABLES:
        for rule in table.rules:
            assert {len(cells) for cells in rule.rows.values()} == {len(table.acks)}


def test_golden_episodes():
    episodes = rfc_tables.run(Plan()).tables["tables.episodes"].filter(pl.col("golden").is_not_null())
    assert episodes.height == 52
    assert episodes.filter(pl.col("golden") != pl.col("computed")).is_empty()
    assert {p.name for p in PATTERNS} == set(episodes["pattern"])


def test_show():
    study = studies.get("prr")
    text = study.show()
    for claim in study.claims:
        assert f"  {claim.id}" in text
    tables = study.show(tables=True)
    assert "RFC 9937 §8, Figure 1" in tables
    assert tables.count("differs") == 4
    assert "shifted right by one" in tables


def test_every_claim_is_complete():
    study = studies.get("prr")
    numbered = {"T": 12, "P": 28, "V": 4}
    assert {c.id for c in study.claims} == {f"{k}{i}" for k, n in numbered.items() for i in range(1, n + 1)}
    for claim in study.claims:
        assert claim.place
        assert claim.statement.endswith(".")
        if any(study.recorded(scale).verdict(claim.id) in AGAINST for scale in SCALES):
            assert claim.note, f"{claim.id} needs a reason"


def test_threads_change_no_number_and_progress_runs_to_the_end(result):
    """With two threads, the study makes the same runs."""
    seen: list[float] = []
    one = latency.run(Plan(seeds=SEEDS, jobs=1, progress=lambda _, done: seen.append(done))).tables
    assert one
    assert all(one[name].equals(result.tables[name]) for name in one)
    assert seen == sorted(seen)
    assert 0 <= seen[0] <= seen[-1] <= 1


@pytest.mark.deep
def test_threads_change_nothing(result):
    again = smaller(1)
    assert again.digest == result.digest
    assert again.to_json() == result.to_json()


def test_exact_claims_hold_whatever_the_seeds(result):
    for name in ("T1", "T2", "T4", "P7", "P8", "P13", "P14"):
        assert result.outcome(name).verdict is Verdict.HOLDS


def test_rules_meet_the_same_losses(result):
    """Common random numbers: fetches without loss are identical, and so is everything before the first recovery."""
    t = result.tables["latency.fetches"]
    for page in t["page"].unique():
        for loss in t["loss"].unique():
            x, y = paired(t, page, loss, RATE_HALVING, SSRB, "connect_s", hit=None)
            assert (x == y).all()


def test_every_cell_is_there(result):
    t = result.tables["latency.fetches"]
    cells = t.filter(pl.col("arm").is_in(RULES)).group_by("page", "loss", "arm").len()
    assert cells.height == 4 * 2 * len(RULES)
    assert set(cells["len"]) == {SEEDS}


def test_scripted_losses_hit_the_named_segments():
    data = traces.run(Plan())
    drops = data.tables["traces.drops"].filter(pl.col("pattern") == "1-4, 11-16")
    assert set(drops["rule"]) == set(traces.RULES)
    for rule in traces.RULES:
        hit = drops.filter(pl.col("rule") == rule)
        assert hit["seg_no"].to_list() == [1, 2, 3, 4, 11, 12, 13, 14, 15, 16]
        assert set(hit["rexmit"]) == {0}


def test_after_rate_halving_the_next_write_is_slow():
    """IETF-84 slides: with no data to send, rate halving ends with a window of 1 to 3."""
    t = traces.run(Plan()).tables["traces.sequence"].filter(pl.col("pattern") == "1-4")

    def sent_at_once(rule: str) -> int:
        late = t.filter(
            (pl.col("rule") == rule) & (pl.col("event") == "send") & (pl.col("len") > 1) & (pl.col("t_s") > 0.45)
        )
        return late.filter(pl.col("t_s") == late["t_s"].min()).height

    assert sent_at_once(RATE_HALVING) <= 3
    assert sent_at_once(SSRB) == sent_at_once(LINUX_6) == 10


def test_the_enlarged_recovery_shows_what_its_heading_says(result):
    """In a long recovery, rate halving keeps reducing, to half of ssthresh with Reno; PRR stops at ssthresh."""
    r = result.tables["traces.long_recoveries"]
    idx = traces.farthest_below(result.tables)
    rh, prr = (r.filter(pl.col("arm") == arm).row(idx, named=True) for arm in ("without PRR", "with PRR"))
    assert rh["cwnd_before_exit"] < 0.6 * rh["ssthresh"]
    assert prr["cwnd_before_exit"] == prr["ssthresh"]
    figure = traces.long_flow(result.tables)
    assert f"leaves {rh['cwnd_before_exit']} segments" in figure.title
    assert figure.title.endswith(f"PRR {prr['cwnd_before_exit']}")


def test_headings_of_time_sequences_come_from_the_traces(result, page):
    sent = traces.next_write(result.tables, "1-4")
    last = traces.last_repair(result.tables, "1-4, 11-16")
    titles = {f.name: f.title for f in page.figures}
    assert sent[RATE_HALVING] < min(n for rule, n in sent.items() if rule != RATE_HALVING)
    assert f"{sent[RATE_HALVING]} segments leave at once after rate halving" in titles["sequence-1-4"]
    assert f"{1000 * last[SSRB]:.0f} ms after the first with PRR-SSRB" in titles["sequence-1-4-11-16"]


@pytest.mark.parametrize(
    ("more", "low", "high", "text"),
    [
        (28.9, 26.5, 31.3, "29 % more timeouts"),
        (-1.67, -3.4, -0.1, "1.7 % fewer timeouts"),
        (-1.67, -3.4, 0.03, "about as many timeouts"),
        (float("nan"), float("nan"), float("nan"), "about as many timeouts"),
    ],
)
def test_a_difference_in_words_follows_its_interval(more, low, high, text):
    assert timeouts.compared(more, low, high, "timeouts") == text


def test_findings_name_the_rules_and_what_stays_open(result, page):
    text = "\n".join(page.findings)
    for rule in (SSRB, RFC9937, LINUX_6, RFC6675):
        assert label(rule) in text
    for claim in result.study.claims:
        paper = result.study.recorded("paper").verdict(claim.id)
        if result.study.recorded("quick").verdict(claim.id) is Verdict.UNDECIDED and paper is not None:
            assert f"{claim.id} {'stays undecided' if paper is Verdict.UNDECIDED else paper}" in text


def test_report_of_the_first_figure(result, page, tmp_path):
    """The whole page with one figure, because each of the others takes half a second."""
    first, *_ = page.figures
    sections = tuple(replace(s, blocks=tuple(b for b in s.blocks if not isinstance(b, Figure))) for s in page.sections)
    small = replace(page, opening=first, sections=sections)
    _written(result, write_report(tmp_path / "out", small, {"": result.tables}, result.to_json()))


@pytest.mark.deep
def test_report(result, tmp_path):
    _written(result, result.write(tmp_path / "out"))
    assert {p.stem for p in (tmp_path / "out" / "figures").iterdir()} >= {f.name for f in result.page().figures}


def _written(result, path):
    html = path.read_text(encoding="utf-8")
    for claim in result.study.claims:
        assert f'id="claim-{claim.id}"' in html
    assert result.digest in html
    assert f"ackclock study run prr --scale quick --seeds {SEEDS}" in html
    figures = {p.suffix for p in (path.parent / "figures").iterdir()}
    assert {".pdf", ".png", ".svg", ".csv"} <= figures
    claims = json.loads((path.parent / "claims.json").read_text(encoding="utf-8"))
    assert claims["study"] == "prr"
    assert {"id", "statement", "verdict", "expected", "value", "interval", "bound", "seeds"} <= set(claims["claims"][0])


def test_with_other_seeds_undecided_is_no_surprise(result):
    for line in result.unexpected:
        assert "undecided" not in line


def test_notes_have_no_number_of_a_run_typed_in(result):
    """Numbers come from the evidence; a note itself may contain only names, cells or bounds."""
    known = []
    for outcome in result.outcomes:
        known += [outcome.claim.statement, outcome.claim.place]
        for half in outcome.halves.values():
            known += [half.criterion.reading, half.criterion.cell, half.criterion.printed]
            known += [f"{e.label} {e.bound.text(e.unit)}" for e in half.evidence]
    known += [scenario.to_toml() for scenario in result.study.scenarios().values()]
    for claim in result.study.claims:
        assert typed_in(claim.note, " ".join(known)) == [], claim.id
    assert typed_in("It gains 5.83 %.", " ".join(known)) == ["5.83"]


def test_what_weighs_is_named():
    for claim in studies.get("prr").claims:
        for _, criterion in claim.halves:
            assert criterion.cell, claim.id


def test_a_stall_is_banked_by_prr_alone():
    tables = stall.run(Plan()).tables
    assert stall.at_once(tables, RATE_HALVING) == 1
    assert stall.at_once(tables, LINUX_32) == stall.at_once(tables, SSRB) == 8
    assert stall.left(tables, RATE_HALVING) < 0 == stall.left(tables, LINUX_32)


def test_bursts_of_losses_lose_as_much_as_single_ones():
    """Two percent in total, whatever the burst length; a long burst hits neighbours."""
    lost = {}
    for length in burst_loss.LENGTHS:
        batch = run_batch(burst_loss.scenario(LINUX_32, length, 100), range(1, 41))
        links = batch.links.filter(pl.col("link") == 0)
        lost[length] = links["dropped_loss"].sum() / links["arrivals_data"].sum()
    assert all(0.014 < share < 0.026 for share in lost.values()), lost


def test_bars_are_nearly_equal_within_a_quarter_of_the_larger():
    small, large = np.array([76.0, 100.0, 74.0, 100.0]), np.array([100.0, 76.0, 100.0, 74.0])
    assert noise.near(small, large).tolist() == [True, True, False, False]
