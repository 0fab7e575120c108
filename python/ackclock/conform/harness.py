"""Runs a pack's cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ackclock.conform.packs import Case, Pack
from ackclock.conform.predicates import PREDICATES, Found, seconds, stays

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.scenario import Scenario

Outcome = Literal["holds", "fails", "void", "not applicable", "not expressible"]

SYMBOLS: Mapping[str, str] = {"holds": "✓", "fails": "✗", "void": "∅", "not applicable": "·", "not expressible": "–"}

PLACE = "@"


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Result of one case.

    Parameters
    ----------
    case
        The case that was run.
    outcome
        "void" means that the precondition was not met, which never counts as passed.
    said
        Measured numbers of the deciding run.
    seed, digest
        Seed and digest of that run.
    """

    case: Case
    outcome: Outcome
    said: str
    seed: int | None = None
    digest: str = ""


def conform(
    controller: str,
    asked: Pack,
    *,
    options: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    progress: Callable[[str, float], None] | None = None,
) -> list[Result]:
    """Run a pack's cases with a controller in the candidate's place.

    Parameters
    ----------
    controller, options
        As a scenario names them.
    asked
        The pack.
    only
        Ids of cases; empty: all.
    progress
        Called with each case.
    """
    cases = [c for c in asked.cases if not only or c.id in only]
    results = []
    for i, case in enumerate(cases):
        if progress is not None:
            progress(case.id, i / len(cases))
        results.append(_case(case, controller, options or {}))
    return results


def scenario(case: Case, controller: str, options: Mapping[str, Any]) -> Scenario:
    """Return the case as a scenario."""
    from ackclock.scenario import Scenario

    groups = []
    for group in case.scenario["flows"]:
        mine = {"congestion_control": controller, **({"congestion_control_options": dict(options)} if options else {})}
        groups.append({**group, **mine} if group.get("congestion_control") == PLACE else group)
    record = {"controller": "flow", "goodput_interval": "100 ms", **case.scenario.get("record", {})}
    return Scenario.from_dict({**case.scenario, "flows": groups, "record": record})


def _case(case: Case, controller: str, options: Mapping[str, Any]) -> Result:
    if case.missing:
        return Result(case=case, outcome="not expressible", said=f"needs {case.missing}")
    if case.only and controller not in case.only:
        return Result(case=case, outcome="not applicable", said=f"for {', '.join(case.only)}")
    from ackclock._results.run import run as simulate

    made = scenario(case, controller, options)
    worst: Result | None = None
    for seed in range(1, case.seeds + 1):
        run: Run | None = simulate(made, seed=seed)
        if case.trigger is not None:
            assert run is not None
            run = _triggered(case, made, run, seed)
        if run is None:
            return Result(
                case=case, outcome="void", said=f"{case.trigger and case.trigger['state']} is never entered", seed=seed
            )
        found = [PREDICATES[e["is"]](run, e) for e in case.expects]
        outcome = _outcome(found)
        result = Result(case=case, outcome=outcome, said="; ".join(f.said for f in found), seed=seed, digest=run.digest)
        if outcome != "holds":
            return result
        worst = result
    assert worst is not None, "a case has a seed"
    return worst


def _outcome(found: Sequence[Found]) -> Outcome:
    if any(f.holds is False for f in found):
        return "fails"
    return "void" if any(f.holds is None for f in found) else "holds"


def _triggered(case: Case, made: Scenario, first: Run, seed: int) -> Run | None:
    """Repeat a run with a change 1 ns after the candidate enters a state; until then the two runs are identical."""
    from ackclock._results.run import run as simulate

    trigger = case.trigger
    assert trigger is not None
    least = seconds(trigger.get("from", "0 s"))
    entered = [begin for name, begin, _ in stays(first) if name == trigger["state"] and begin >= least]
    number = int(trigger.get("which", 1))
    if len(entered) < number:
        return None
    at_ns = round(entered[number - 1] * 1e9) + 1
    steps = [{"at": f"{at_ns} ns", **trigger["step"]}]
    if "then" in trigger:
        steps.append({"at": f"{at_ns + round(seconds(trigger['lasts']) * 1e9)} ns", **trigger["then"]})
    changed = made.set("network.bottleneck.capacity", {"kind": "schedule", "steps": steps})
    run = simulate(changed, seed=seed)
    before = [s for s in stays(first) if s[2] * 1e9 < at_ns]
    assert stays(run)[: len(before)] == before, "a run is a function of its past"
    return run
