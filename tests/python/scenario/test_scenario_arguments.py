from __future__ import annotations

import pytest
from conftest import ROOT

from ackclock import InputError, Scenario, ScenarioError, _engine, load, run, run_batch

WHOLE = "a whole number, 0 to 9223372036854775807"


def line(call):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_what_is_no_scenario(minimal):
    allowed = "allowed: a Scenario, as load() and Scenario.from_dict() make it"
    assert line(lambda: run(minimal)) == f"scenario: found a table; {allowed}"
    assert line(lambda: run("x.toml")) == f'scenario: found "x.toml"; {allowed}'
    assert line(lambda: run_batch(None, [1])) == f"scenario: found nothing; {allowed}"


@pytest.mark.parametrize(
    ("seed", "found"), [("1", '"1"'), (True, "true"), (1.0, "1.0"), (-1, "-1"), (2**63, "9223372036854775808")]
)
def test_seeds(minimal, seed, found):
    scenario = Scenario.from_dict(minimal)
    assert line(lambda: run(scenario, seed=seed)) == f"seed: found {found}; allowed: {WHOLE}"
    assert line(lambda: run_batch(scenario, [seed])) == f"seed: found {found}; allowed: {WHOLE}"


def test_lists_of_seeds(minimal):
    scenario = Scenario.from_dict(minimal)
    assert line(lambda: run_batch(scenario, [])) == "seeds: found an empty list; allowed: one seed or more"
    assert line(lambda: run_batch(scenario, [1, 2, 1])) == "seeds: found 1 more than once; allowed: each seed once"
    assert line(lambda: run_batch(scenario, 5)) == "seeds: found 5; allowed: a list of whole numbers"


def test_jobs_and_side(minimal):
    scenario = Scenario.from_dict(minimal)
    assert line(lambda: run_batch(scenario, [1], jobs=0)) == "jobs: found 0; allowed: a whole number, 1 or more"
    assert line(lambda: run_batch(scenario, [1], jobs="2")) == 'jobs: found "2"; allowed: a whole number, 1 or more'
    assert line(lambda: run(scenario, pcap_at="x")) == 'pcap_at: found "x"; allowed: sender, receiver'


def test_what_the_engine_refuses_has_our_form(minimal, monkeypatch):
    def refuse(*_):
        raise _engine.Refusal("flows.0.stack.smss", "65536", "64 to 65000 bytes")

    monkeypatch.setattr(_engine, "run", refuse)
    with pytest.raises(ScenarioError) as caught:
        run(Scenario.from_dict(minimal))
    assert str(caught.value) == "flows.0.stack.smss: found 65536; allowed: 64 to 65000 bytes"


def test_summary_has_the_fetches(minimal):
    summary = run(load(ROOT / "scenarios" / "fetch-lossy.toml").set("flows.0.workload.count", 20)).summary()
    fetches = summary["fetches"]
    assert (fetches["started"], fetches["done"]) == (20, 20)
    assert list(fetches["total_s"]) == ["p25", "p50", "p75", "p95", "mean"]
    assert 0.2 < fetches["total_s"]["p25"] <= fetches["total_s"]["p50"] <= fetches["total_s"]["p95"]
    assert "fetches" not in run(Scenario.from_dict(minimal)).summary()


def test_summary_without_a_fetch_done():
    scenario = load(ROOT / "scenarios" / "fetch-lossy.toml").set("duration", "10 ms")
    fetches = run(scenario).summary()["fetches"]
    assert fetches["done"] == 0
    assert set(fetches["total_s"].values()) == {None}


def test_times_of_the_summary_are_whole_nanoseconds():
    assert run(load(ROOT / "scenarios" / "cubic-100m.toml")).summary()["flows"][0]["stop_s"] == 60.0
