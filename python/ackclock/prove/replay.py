"""Replays cases in the real kernel, with a case's losses as a script, segment by segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ackclock.errors import InputError
from ackclock.prove.adversary import Adversary
from ackclock.prove.cases import Cases, pattern
from ackclock.prove.numbers import S, summary
from ackclock.prove.proof import Proof, Target
from ackclock.scenario import Scenario

DRAWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """Comparison of one case in the simulator and in the kernel.

    Parameters
    ----------
    target, case
        Target, and case as a string of digits.
    what
        "worst", "median" or "drawn".
    equal
        Whether all events are identical, segment by segment, to the end of the transfer.
    first_difference
        First difference; empty if there is none.
    simulator_s, kernel_s
        Times to completion.
    """

    target: str
    case: str
    what: str
    equal: bool
    first_difference: str
    simulator_s: float
    kernel_s: float
    kernel: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {name: getattr(self, name) for name in self.__slots__}


def scripted(scenario: Scenario, adversary: Adversary, answers: int) -> Scenario:
    """Return the scenario of a case with its losses as a script, ready to be run.

    Examples
    --------
    >>> from ackclock import Scenario
    >>> path = {"bottleneck": {"rate": "10 Mbit/s", "delay": "25 ms"}}
    >>> scenario = Scenario.from_dict({"duration": "9 s", "network": path, "flows": [{"workload": {"kind": "transfer", "bytes": "9 KB"}}]})
    >>> scripted(scenario, Adversary(name="losses", first=6), 0b100).to_dict()["network"]["bottleneck"]["loss"]["drops"]
    [{'first': 3}]
    """
    if adversary.name == "start":
        from ackclock.prove.proof import started

        return started(scenario, adversary, answers)
    if adversary.name not in ("losses", "burst") or scenario.flow_count != 1:
        raise InputError(
            f"case: found {adversary.name} with {scenario.flow_count} flows; allowed: losses or burst with one flow, whose cases are scripts"
        )
    drops = [{"first": k + 1} for k in range(answers.bit_length()) if answers >> k & 1]
    return scenario.set("network.bottleneck.loss", {"kind": "scripted", "drops": drops})


def chosen(cases: Cases, seed: int, drawn: int = DRAWN) -> list[tuple[str, int]]:
    """Return the worst case, the median one, and this many randomly drawn ones, each with a name and its answers."""
    import numpy as np

    found = summary(cases)
    places = np.random.default_rng(seed).choice(len(cases), size=min(drawn, len(cases)), replace=False)
    return [
        ("worst", found.worst),
        ("median", found.median),
        *(("drawn", cases.answers(int(place))) for place in np.sort(places)),
    ]


def replay(proof: Proof, target: Target, cases: Cases, *, seed: int = 1, drawn: int = DRAWN) -> list[Replayed]:
    """Run the worst case, the median one and some drawn ones in the kernel as well.

    Parameters
    ----------
    proof, target, cases
        Cases from which to choose.
    seed
        Seed of the draw.
    drawn
        Number of drawn cases.
    """
    from ackclock import diff

    made = []
    for what, answers in chosen(cases, seed, drawn):
        scenario = scripted(target.scenario, proof.adversary, answers)
        both = diff.compare(scenario, seed=proof.seed)
        times = [_took(run) for run in (both.simulator, both.kernel)]
        made.append(
            Replayed(
                target=target.name,
                case=pattern(answers, proof.adversary.first),
                what=what,
                equal=both.divergence is None,
                first_difference=""
                if both.divergence is None
                else f"{both.divergence.t_s:.6f} s: {both.divergence.text}",
                simulator_s=times[0],
                kernel_s=times[1],
                kernel=str(both.kernel.provenance["kernel"]["release"]),
            )
        )
    return made


def _took(run: Any) -> float:
    value = run.flows["completion_s"][0]
    return float("inf") if value is None else round(float(value) * S) / S
