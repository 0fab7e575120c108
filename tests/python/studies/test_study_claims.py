"""Tests for the machinery of claims: halves, several numbers at once, times not reached, the record, readings, notes.

Length: everything that all studies share, from a claim's halves to the documents that quote them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import tool

from ackclock import run_batch, studies
from ackclock.errors import InputError
from ackclock.report import render
from ackclock.scenario import Scenario
from ackclock.stats import Estimate
from ackclock.study import (
    Bound,
    Cause,
    Chapter,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Fitted,
    Plan,
    Publication,
    Reading,
    Stated,
    Study,
    Verdict,
    above,
    at_least,
    at_most,
    conjunction,
    number,
    record,
    same,
    sentence,
    specification,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.note import Quoted, fill, typed_in
from ackclock.study.reading import Curve, Specification, grid
from ackclock.study.register import criterion_plan
from ackclock.study.sentence import Sentence
from ackclock_studies.prr import ideal_path, path, rfc_tables, traces
from ackclock_studies.prr.rules import RFC6675, SSRB

HOLDS, NEGLIGIBLE, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.NEGLIGIBLE, Verdict.FAILS, Verdict.UNDECIDED

QUEUE = Reading(
    name="queue", question="How long is the queue?", options={"short": "10", "long": "100"}, why="the script has 10"
)
SHIFT = Reading(name="shift", question="Which zero?", options={"none": "", "one": ""}, why="plain")
COST = Reading(
    name="cost", question="What does a packet cost?", options={"free": "", "dear": ""}, why="none given", crossed=False
)


def measured(value: float, half: float = 0.5, n: int = 10, **more: object) -> Evidence:
    estimate = Estimate(value=value, low=value - half, high=value + half, level=0.95, n=n)
    return Evidence.of(estimate, str(more.pop("label", value)), more.pop("bound", above(0)), **more)  # type: ignore[arg-type]


def study(tmp_path: Path, gain: float = 2.0, half: float = 0.5, note: str = "By {gain}.") -> Study:
    """A study with a gain that depends on the queue, and on an offset added by the measurement."""

    def run(plan: Plan) -> Data:
        value = gain if QUEUE.of(plan) == "short" else -gain
        return Data(tables={"x.gain": pl.DataFrame({"value": [value]})}, digests=[QUEUE.of(plan)], runs=1)

    def direction(tables):
        value = float(tables["x.gain"]["value"][0]) - (0.1 if SHIFT.of(tables) == "one" else 0)
        return [measured(value, half, label="gain", key="gain", unit="%")]

    claim = Claim(
        id="X1",
        place="p. 1",
        statement="It gains.",
        direction=Criterion(measure=direction, bound="stated", reads=(SHIFT,)),
        magnitude=Criterion(
            measure=lambda t: [
                measured(float(t["x.gain"]["value"][0]), half, label="how much", bound=at_least(5), unit="%")
            ],
            bound="printed",
            printed="5 %",
            cell="the only one",
        ),
        note=note,
    )
    experiment = Experiment(name="x", title="x", run=run, reads=(QUEUE, COST))
    return Study(
        name="made-up",
        title="Made up",
        summary="s",
        publications=(Publication(authors="A", title="T", where="W"),),
        chapters=(Chapter(title="One", experiments=(experiment,), claims=(claim,)),),
        findings=lambda result: (),
        fitted=(Fitted(name="a constant", value="3", so_that="it gains", claims=("X1",)),),
        record=tmp_path / "recorded.json",
    )


def test_only_the_direction_counts_as_reproduced(tmp_path):
    result = study(tmp_path).run()
    (outcome,) = result.outcomes
    assert outcome.verdicts == {"direction": HOLDS, "magnitude": FAILS}
    assert outcome.verdict is HOLDS
    page = result.page()
    assert [row[0] for row in page.tally] == ["holds"]
    assert [row[0] for row in page.magnitudes] == ["fails"]
    html = render(page)
    assert "How much: 5 %" in html
    assert "Bound: the publication." in html
    assert "Rests on a fitted input: a constant." in html


def test_a_claim_needs_a_test_or_a_reason():
    with pytest.raises(InputError, match="neither direction nor magnitude"):
        Claim(id="X1", place="p", statement="s")


def test_two_numbers_of_one_name_are_refused():
    with pytest.raises(InputError, match="two numbers called '1'"):
        Criterion(measure=lambda _: [measured(1), measured(1)]).judge({})


def test_one_of_many_may_miss_by_chance_but_not_by_much():
    misses = measured(-0.6)  # -1.1 to -0.1: alone it would fail
    assert conjunction([misses]) is FAILS
    others = [measured(1.0 + i) for i in range(15)]
    assert conjunction([misses, *others]) is UNDECIDED
    assert conjunction([measured(-3.0), *others]) is FAILS
    assert conjunction([Evidence(label="exact", value=-0.1, bound=above(0)), *others]) is FAILS


def test_several_numbers_fail_by_mistake_as_rarely_as_one():
    """Sixteen true differences of zero are claimed to be no worse than zero: at 95 % each, half the families would fail."""
    rng = np.random.default_rng(1)
    failed = 0
    for _ in range(400):
        family = []
        for i in range(16):
            x = rng.normal(size=12)
            se = float(x.std(ddof=1)) / 12**0.5
            half = 2.201 * se
            family.append(measured(float(x.mean()), half, 12, label=str(i), bound=at_least(0)))
        failed += conjunction(family) is FAILS
    assert failed / 400 < 0.06


def test_a_bound_that_stands_with_the_claim_is_handed_to_the_measure_and_part_of_the_plan():
    def gain(_, bound: Bound) -> list[Evidence]:
        return [measured(2.0, bound=bound, label="gain")]

    for bound, verdict in ((above(1), HOLDS), (above(3), FAILS)):
        criterion = Criterion(measure=Stated(bound, gain))
        assert criterion.judge({}).verdict is verdict
        assert criterion_plan(criterion)["bound"]["low"] == bound.low
        assert criterion_plan(criterion)["measure"] == "gain"


def test_equivalence_and_the_least_difference_that_counts():
    assert measured(0.5, bound=same(2)).verdict is HOLDS
    assert measured(3.0, bound=same(2)).verdict is FAILS
    tiny = measured(0.001, 0.002, bound=above(0))
    assert tiny.verdict is UNDECIDED
    assert replace(tiny, bound=above(0, margin=0.01)).verdict is NEGLIGIBLE
    assert measured(0.6, bound=above(0, margin=0.01)).verdict is HOLDS
    assert above(0, margin=0.01).text() == "> 0 (less than 0.0100 counts as none)"


def test_a_time_not_reached_is_never_a_value():
    never = Evidence.reached(np.full(6, np.inf), 50.0, "equal after", at_most(50))
    assert never.verdict is FAILS  # more than 50, not 50
    assert never.value_text == "> 50 s"
    assert "6 of 6 not reached" in never.interval_text
    assert Evidence.reached(np.full(6, np.inf), 50.0, "equal after", at_most(60)).verdict is UNDECIDED
    assert Evidence.reached(np.full(6, np.inf), 50.0, "equal after", at_least(40)).verdict is HOLDS
    some = Evidence.reached(np.array([3.0, 4.0, 5.0, 6.0, 7.0, np.inf]), 50.0, "equal after", at_most(60))
    assert (some.value, some.not_reached) == (5.5, 1)
    assert some.interval == (3.0, np.inf)
    assert some.interval_text == "3 to more than 50; 1 of 6 not reached"


def test_a_changed_verdict_and_a_drifted_value_are_told(tmp_path):
    first = study(tmp_path).run()
    assert first.unexpected == first.drifted == []  # nothing recorded yet
    first.record(version="0.1", date="2026-01-02")
    assert (study(tmp_path).run().unexpected, study(tmp_path).run().drifted) == ([], [])
    within = study(tmp_path, gain=2.3).run()
    assert within.drifted == []
    moved = study(tmp_path, gain=3.0).run()
    assert moved.unexpected == []
    assert moved.drifted == [
        "X1, direction: gain: 3 %, recorded 2 % (1.50 to 2.50)",
        "X1, magnitude: how much: 3 %, recorded 2 % (1.50 to 2.50)",
    ]
    turned = study(tmp_path, gain=-2.0).run()
    assert turned.unexpected == ["X1, direction: fails, recorded holds"]


def test_undecided_with_other_seeds_is_listed_and_no_contradiction(tmp_path, capsys):
    """Regression: it was dropped without a word. With the scale's own seeds it is a changed verdict."""
    study(tmp_path).run().record(version="0.1", date="2026-01-02")
    line = "X1, direction: undecided, recorded holds"
    own, other = study(tmp_path, gain=0.3).run(), study(tmp_path, gain=0.3).run(seeds=5)
    assert (own.unexpected, own.undecided) == ([line], [])
    assert (other.unexpected, other.undecided) == ([], [line])
    assert other.to_json()["undecided"] == [line]
    study(tmp_path, gain=0.3).run().record(version="0.1", date="2026-01-02")
    back = study(tmp_path).run(seeds=5)
    assert (back.unexpected, back.undecided) == ([], ["X1, direction: holds, recorded undecided"])
    turned = study(tmp_path, gain=-2.0).run(seeds=5)
    assert turned.undecided == ["X1, direction: fails, recorded undecided"]


def test_a_record_keeps_the_other_scale_and_says_when(tmp_path):
    study(tmp_path).run().record(version="0.1", date="2026-01-02")
    study(tmp_path, gain=4.0).run(scale="paper").record(version="0.2", date="2026-01-03")
    found = record.read(tmp_path / "recorded.json")
    assert list(found) == ["paper", "quick"]
    assert found["paper"].told == "recorded 2026-01-03 with 0.2"
    told = study(tmp_path, note="Here {gain:i}; {gain@paper}; bare {X1.gain:n}.").run()
    assert told.note(told.outcomes[0]) == (
        "Here 2 % (1.50 to 2.50); 4 % (paper scale, recorded 2026-01-03 with 0.2); bare 2."
    )
    with pytest.raises(InputError, match="--seeds 5; allowed: the seeds of a scale"):
        study(tmp_path).run(seeds=5).record(version="", date="")


def test_with_other_seeds_only_intervals_that_do_not_meet_drift(tmp_path):
    study(tmp_path).run().record(version="0.1", date="2026-01-02")
    assert study(tmp_path, gain=2.9).run(seeds=5).drifted == []
    assert len(study(tmp_path, gain=3.6).run(seeds=5).drifted) == 2


def test_a_note_with_an_unknown_number_is_refused(tmp_path):
    result = study(tmp_path, note="By {loss}.").run()
    with pytest.raises(InputError, match=r"found X1\.loss"):
        result.note(result.outcomes[0])


def test_templates():
    quoted = Quoted(value=6.04, low=5.8, high=6.2, unit="%")
    assert (
        fill("{a} and {a:i}, {a:n} {{x}}", lambda name, scale: quoted) == "6.04 % and 6.04 % (5.80 to 6.20), 6.04 {x}"
    )
    with pytest.raises(InputError, match="template"):
        fill("{a:.2f}", lambda name, scale: quoted)


def test_a_typed_number_is_found():
    setting = "pages of 75 KB and 750 KB at 3 %, RFC 6675"
    assert typed_in("For 750 KB at 3 % it is {gain}, as in RFC 6675 §5.", setting) == []
    assert typed_in("For 750 KB it is 6.0 %.", setting) == ["6.0"]


@pytest.mark.parametrize("name", studies.names())
def test_notes_quote_only_numbers_that_are_recorded(name):
    found = studies.get(name)
    for scale in ("quick", "paper"):
        recorded = found.recorded(scale)
        for claim in found.claims:

            def lookup(key: str, other: str, claim: str = claim.id, own: str = scale) -> Quoted:
                of, _, key = key.rpartition(".")
                quoted = found.recorded(other or own).quote(of or claim, key)
                assert quoted is not None, f"{of or claim}.{key}"
                return quoted

            if recorded.claims.get(claim.id, {}).get("direction", {}).get("evidence"):
                fill(claim.note, lookup)


def test_the_grid_crosses_what_is_crossed():
    found = grid((QUEUE, SHIFT, COST))
    assert found[0] == (("queue", "short"), ("shift", "none"), ("cost", "free"))
    assert len(found) == 5
    assert found[-1] == (("queue", "short"), ("shift", "none"), ("cost", "dear"))
    assert grid(()) == [()]


def test_readings_give_a_curve_and_what_decides(tmp_path):
    made = study(tmp_path)
    assert made.run().curves == ()
    result = made.run(readings=True)
    (curve,) = result.curves
    assert [r.name for r in curve.readings] == ["queue", "cost", "shift"]
    assert len(curve.specifications) == 5
    assert curve.share == 0.6
    assert curve.decides is QUEUE
    assert result.outcomes[0].verdict is HOLDS
    assert result.runs == 3  # the main reading, the other queue, the other cost
    html = render(result.page())
    assert "Holds in 3 of 5 readings, fails in 2; what decides is queue (short: 100 %, long: 0 %)." in html
    assert result.to_json()["readings"][0]["share"] == 0.6
    assert "--readings" in result.command
    shifted = curve.specifications[1]
    assert dict(shifted.choice)["shift"] == "one"
    assert shifted.decisive is not None
    assert shifted.decisive.value == pytest.approx(1.9)


def test_the_reading_with_the_most_claims_is_the_one_nearest_to_the_main_one(tmp_path):
    (curve,) = study(tmp_path).run(readings=True).curves
    chosen = specification.best((curve,))
    assert chosen == {r.name: r.main for r in curve.readings if r.crossed}
    assert specification.under(curve, chosen) is curve.specifications[0]
    failing = replace(
        curve,
        specifications=tuple(
            replace(s, verdict=HOLDS if dict(s.choice)["queue"] == "long" else FAILS) for s in curve.specifications
        ),
    )
    found = specification.best((curve, failing, failing))
    assert found is not None
    assert found["queue"] == "long"
    assert specification.under(failing, found).verdict is HOLDS


def test_what_is_undecided_decides_nothing():
    """The reading that turns "holds" into "fails" is decisive, not the one with fewer runs."""
    claim = Claim(id="X1", place="p. 1", statement="It gains.", direction=Criterion(measure=lambda _: []))
    verdicts = {
        ("short", "none"): HOLDS,
        ("short", "one"): UNDECIDED,
        ("long", "none"): FAILS,
        ("long", "one"): UNDECIDED,
    }
    curve = Curve(
        claim=claim,
        half="direction",
        readings=(SHIFT, QUEUE),
        specifications=tuple(
            Specification(choice=(("queue", queue), ("shift", shift)), verdict=verdict, decisive=None)
            for (queue, shift), verdict in verdicts.items()
        ),
    )
    assert curve.decides is QUEUE
    assert [curve.share_of(QUEUE, option) for option in QUEUE.options] == [1.0, 0.0]
    assert np.isnan(curve.share_of(SHIFT, "one"))
    assert specification.told(curve).endswith("undecided in 2; what decides is queue (short: 100 %, long: 0 %).")


def test_a_report_without_the_other_readings_says_how_to_run_them(tmp_path):
    html = render(study(tmp_path).run().page())
    assert "ackclock study run made-up --readings" in html
    assert "the script has 10" in html


def exact_outcomes():
    """Return the deterministic claims of the study `prr`."""
    tables = {**rfc_tables.run(Plan()).tables, **traces.run(Plan()).tables}
    claims = (*ideal_path.CHAPTER.claims, *traces.CHAPTER.claims)
    return [claim.judge(tables) for claim in claims]


def test_what_needs_no_chance_is_as_recorded():
    recorded = studies.get("prr").recorded("quick")
    outcomes = exact_outcomes()
    assert recorded.changed(outcomes) == recorded.drifted(outcomes) == []
    assert set(recorded.claims) >= {o.claim.id for o in outcomes}


def test_a_prr_that_bursts_is_reported_by_the_record(monkeypatch):
    right = rfc_tables.ideal

    def broken(rule: str, **more):
        return right(RFC6675 if rule == SSRB else rule, **more)

    monkeypatch.setattr(rfc_tables, "ideal", broken)
    told = studies.get("prr").recorded("quick").changed(exact_outcomes())
    assert any(line.startswith("P7") for line in told), told


def test_a_rule_that_moves_under_an_unchanged_verdict_is_reported_as_drift(monkeypatch):
    """RFC 6675 reduces the window less, but T1 still holds, because the rule reduces it in one step."""
    monkeypatch.setitem(traces.LONG, "RFC 6675", path.host(recovery=RFC6675, beta=0.8))
    recorded, outcomes = studies.get("prr").recorded("quick"), exact_outcomes()
    assert recorded.changed(outcomes) == []
    (told,) = recorded.drifted(outcomes)
    assert told.startswith("T1: in one step: largest fall with RFC 6675: ")


def fast_study(tmp_path: Path, alpha: int) -> Study:
    """Return a FAST flow that keeps `alpha` packets in a 300-packet queue."""

    def run_fast(_: Plan) -> Data:
        scenario = Scenario.from_dict(
            {
                "duration": "20 s",
                "network": {
                    "bottleneck": {
                        "rate": "100 Mbit/s",
                        "delay": "20 ms",
                        "queue": {"kind": "drop-tail", "limit": "300 packets"},
                    }
                },
                "flows": [
                    {
                        "congestion_control": "fast",
                        "congestion_control_options": {"alpha": alpha},
                        "workload": {"kind": "bulk"},
                    }
                ],
            }
        )
        runs = run_batch(scenario, range(3))
        return Data(tables={"fast.links": runs.links.filter(pl.col("link") == 0)}, digests=runs.digests, runs=3)

    def claim(name: str, column: str, bound: Bound) -> Claim:
        def measure(tables):
            return [Evidence(label=column, value=float(tables["fast.links"][column].max()), bound=bound)]

        return Claim(id=name, place="p. 1", statement=column, direction=Criterion(measure=measure))

    return replace(
        study(tmp_path),
        chapters=(
            Chapter(
                title="FAST",
                experiments=(Experiment(name="fast", title="FAST", run=run_fast),),
                claims=(claim("X1", "dropped_queue", at_most(0)), claim("X2", "mean_packets", at_most(300))),
            ),
        ),
        fitted=(),
    )


def test_a_fast_that_overflows_is_reported_by_the_record(tmp_path):
    """FAST is configured to keep more packets queued than the queue's limit."""
    right = fast_study(tmp_path, 200).run()
    right.record(version="0.1", date="2026-01-02")
    assert right.outcome("X1").verdict is HOLDS
    assert fast_study(tmp_path, 200).run().drifted == []
    broken = fast_study(tmp_path, 1000).run()
    assert broken.unexpected == ["X1: fails, recorded holds"]
    (told,) = broken.drifted
    assert told.startswith("X2: mean_packets: ")


def test_a_wrong_number_in_a_document_is_found():
    numbers = tool("study_numbers")
    right = numbers.renewed("falls by <!-- prr.T1.step@quick -->?<!-- . --> at once")
    quoted = studies.get("prr").recorded("quick").quote("T1", "step")
    assert quoted is not None
    assert right == f"falls by <!-- prr.T1.step@quick -->{replace(quoted, taken='').text('')}<!-- . --> at once"
    assert numbers.renewed(right) == right
    assert numbers.renewed(right.replace(" segments", " packets")) == right
    with pytest.raises(InputError, match=r"found prr\.T1\.nothing@quick"):
        numbers.renewed("<!-- prr.T1.nothing@quick -->1<!-- . -->")


def test_documents_have_the_numbers_of_the_records():
    numbers = tool("study_numbers")
    for document in numbers.documents():
        text = document.read_text(encoding="utf-8")
        assert numbers.renewed(text) == text, document.name


def test_numbers_are_quoted_as_the_report_prints_them():
    assert Quoted(value=-2.6449, low=None, high=None, unit="%").text("") == number(-2.6449, "%")


def test_a_sentence_without_a_claim_says_why():
    with pytest.raises(InputError, match="neither; allowed"):
        Sentence(source="s", place="p", says="it is so")
    with pytest.raises(InputError, match="both; allowed"):
        Sentence(source="s", place="p", says="it is so", claims=("X1",), none="a definition")


def test_the_table_of_sentences_has_verdicts_and_causes(tmp_path):
    made = study(tmp_path)
    made.run().record(version="0.1", date="2026-01-02")
    cause = Cause(because="the sun shines", intervention="night", criterion=made.claims[0].direction)
    claim = replace(made.claims[0], causes=(cause,), guesses=("the moon",))
    rows = (
        Sentence(source="A", place="p. 1", says="it gains", claims=("X1",)),
        Sentence(source="A", place="p. 2", says="so it is called", none="a name"),
    )
    text = sentence.table(rows, [claim], (made.recorded("quick"), made.recorded("paper")))
    assert (
        "| p. 1 | it gains | X1 | X1 holds / –, how much fails / – | X1 because the sun shines: not recorded yet (changed: night); X1, a guess: the moon |"
        in text
    )
    assert "| p. 2 | so it is called | none: a name |  |  |" in text
    again = sentence.table([*rows, replace(rows[0], place="p. 3")], [claim], (made.recorded("quick"),))
    assert again.count("the sun shines") == 1
    assert "| p. 3 | it gains | X1 | X1 holds, how much fails | X1: above |" in again


def test_a_cause_stands_beside_the_interval_of_its_intervention(tmp_path):
    plain = study(tmp_path)
    (chapter,), (claim,) = plain.chapters, plain.claims
    night = Criterion(
        measure=lambda _: [
            measured(12.0, 2.0, label="left", unit="%"),
            replace(measured(77.0, 2.0, label="beside", unit="%"), weighs=False),
        ],
        reading="less than half is left",
    )
    cause = Cause(because="the sun shines", intervention="night", criterion=night)
    asked = replace(claim, causes=(cause,), intervention="the queue is exchanged")
    made = replace(plain, chapters=(replace(chapter, claims=(asked,)),))
    made.run().record(version="0.1", date="2026-01-02")
    rows = (Sentence(source="A", place="p. 1", says="it gains", claims=("X1",)),)
    text = sentence.table(rows, [asked], (made.recorded("quick"), made.recorded("paper")))
    assert "X1 because the sun shines: holds / –, less than half is left: 12 % (10 to 14) (changed: night)" in text
    assert "X1 is itself an intervention: holds / –, 2 % (1.50 to 2.50) (changed: the queue is exchanged)" in text
    assert "77" not in text


def test_a_cell_keeps_the_columns_that_it_reads_and_no_others():
    scenario = Scenario.from_dict(
        {
            "duration": "1 s",
            "network": {"topology": "chain", "bottleneck": {"rate": "1 Mbit/s", "delay": "5 ms"}},
            "flows": [{"workload": {"kind": "bulk"}}],
        }
    )
    kept: list[list[str]] = []

    def keep(batch):
        kept.append(batch.flows.columns)
        return batch.flows.select("seed", "goodput_bps")

    cell = Cell(
        scenario=scenario, keys={}, stream="s", seeds=2, needs={"flows": ("goodput_bps",)}, keep={"flows": keep}
    )
    assert collect("x", [cell], Plan(seeds=2)).tables["x.flows"].height == 2
    assert kept == [["seed", "goodput_bps"]]
    said: list[str] = []
    drawn = replace(cell, keys={"queue": "1 BDP", "rate": 0.5784333961115037, "n": 1000})
    collect("x", [drawn], Plan(seeds=2, progress=lambda text, _: said.append(text)))
    assert said[0] == "1 BDP, 0.5784, 1000"
