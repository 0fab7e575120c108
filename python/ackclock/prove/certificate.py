"""The certificate of an enumeration (its parameters, its statements, and the roots of the hash trees), and its
verification.

Verification recomputes every printed number from the cases, and reruns some or all of the cases.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock import _engine, _files
from ackclock._results.run import engine_call
from ackclock.errors import InputError
from ackclock.prove.adversary import Adversary
from ackclock.prove.cases import Cases, pattern, whole
from ackclock.prove.chance import Bernoulli, Chance, GilbertElliott, expectation
from ackclock.prove.numbers import compare, summary
from ackclock.prove.proof import PART, Progress, Proof, Target, heard, plan, prove, read, run_with, started
from ackclock.prove.words import sentences
from ackclock.scenario import Scenario

SCHEMA = "ackclock.proof/1"
FILE = "proof.json"
DRAWN = 200
"""Default number of cases that a check reruns."""


@dataclass(frozen=True, eq=False, slots=True)
class Certificate:
    """A proof in written form.

    Parameters
    ----------
    proof
        All cases.
    chances
        Loss models for which an expectation is given.
    """

    proof: Proof
    chances: tuple[Chance, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary. Every printed number is a function of the cases."""
        proof = self.proof
        names = [target.name for target in proof.targets]
        pairs = [
            compare((names[i], names[j]), proof.cases[i], proof.cases[j])
            for i in range(len(names))
            for j in range(i + 1, len(names))
        ]
        return {
            "schema": SCHEMA,
            **plan(proof.targets, proof.adversary, proof.seed),
            "about": proof.adversary.words,
            "results": [
                {
                    "target": target.name,
                    "root": cases.root,
                    "digest": _joined(digests),
                    "unshared": why,
                    "cuts": [list(cut) for cut in cases.cuts],
                    "summary": summary(cases).to_json(),
                    "expectations": [
                        expectation(cases, chance, proof.adversary, rest_s(target.scenario)).to_json()
                        for chance in self.chances
                    ],
                }
                for target, cases, digests, why in zip(
                    proof.targets, proof.cases, proof.digests, proof.unshared, strict=True
                )
            ],
            "comparisons": [pair.to_json() for pair in pairs if pair is not None],
            "chances": [_chance_to_json(chance) for chance in self.chances],
            "sentences": sentences(proof),
        }

    def write(self, folder: Path) -> Path:
        """Write the certificate next to its cases."""
        return _files.write(folder / FILE, json.dumps(self.to_json(), indent=1, allow_nan=False), "the certificate")


def rest_s(scenario: Scenario) -> float:
    """Return the time from the first flow's start to the run's end, s."""
    engine = scenario.to_engine()
    return float((engine["duration_ns"] - engine["flows"][0].get("start_ns", 0)) / 1e9)


def _joined(digests: Sequence[str]) -> str:
    import hashlib

    return hashlib.sha256("".join(digests).encode()).hexdigest()[:32]


def _chance_to_json(chance: Chance) -> dict[str, float]:
    return {"p": chance.p} if isinstance(chance, Bernoulli) else {"p": chance.p, "r": chance.r}


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """Result of a check.

    Parameters
    ----------
    cases
        Cases of all targets.
    drawn
        Number of those run again; all with `--all`.
    seed
        Seed of the draw.
    faults
        Faults, one line each; empty if everything holds.
    """

    cases: int
    drawn: int
    seed: int
    faults: tuple[str, ...]

    @property
    def words(self) -> str:
        """The result in a sentence."""
        if self.faults:
            return f"refused: {self.faults[0]}" + (
                f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
            )
        if self.drawn >= self.cases:
            return f"holds: every number follows from the cases, and all {self.cases:,} cases were run anew"
        one, many = escapes(self.cases, self.drawn, 1), escapes(self.cases, self.drawn, max(self.cases // 50, 1))
        return (
            f"holds: every number follows from {self.cases:,} cases, of which {self.drawn} were run anew (--draw {self.seed}); one wrong case "
            f"would escape with probability {one:.4g}, wrong cases that are 2 % of all with {many:.2g}; --all runs all"
        )


def escapes(cases: int, drawn: int, wrong: int) -> float:
    """Return the probability that none of this many wrong cases is drawn."""
    chance = 1.0
    for i in range(drawn):
        chance *= max(cases - wrong - i, 0) / max(cases - i, 1)
    return chance


def check(
    folder: Path,
    *,
    every: bool = False,
    drawn: int = DRAWN,
    seed: int | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Checked:
    """Compare a certificate with its cases, and cases with new runs.

    Parameters
    ----------
    folder
        Folder of the certificate.
    every
        Whether to rerun all cases.
    drawn
        Number of cases to rerun.
    seed
        Seed of the draw; None: unpredictable.
    jobs, progress, stopped
        See `prove`; used with `every`.
    """
    import numpy as np

    said = _read(folder)
    adversary, targets, chances, number = _planned(said, folder)
    cases, faults = _cases(folder, targets, adversary)
    proof = Proof(
        adversary=adversary,
        targets=targets,
        seed=number,
        cases=tuple(one for one, _ in cases),
        digests=tuple(digests for _, digests in cases),
        unshared=tuple(result.get("unshared") for result in said["results"]),
        cpu_s=0.0,
    )
    fresh = json.loads(json.dumps(Certificate(proof, chances).to_json()))
    faults += [
        f"{key}: found other numbers than the cases give"
        for key in fresh
        if key not in ("engine", "results") and fresh[key] != said.get(key)
    ]
    for new, old in zip(fresh["results"], said["results"], strict=False):
        faults += [
            f"{new['target']}.{key}: found {_short(old.get(key))}; the cases give {_short(new[key])}"
            for key in new
            if new[key] != old.get(key)
        ]
    total = sum(len(one) for one in proof.cases)
    seed = secrets.randbelow(2**32) if seed is None else seed
    if every:
        again = prove(targets, adversary, seed=number, jobs=jobs, progress=progress, stopped=stopped)
        for target, old, new, digests, fresh_digests in zip(
            targets, proof.cases, again.cases, proof.digests, again.digests, strict=True
        ):
            if old.root != new.root:
                faults.append(f"{target.name}: found cases that differ from new runs ({_first(old, new)})")
            elif digests != fresh_digests:
                faults.append(f"{target.name}: found a digest of its runs that differs from new runs")
        return Checked(cases=total, drawn=total, seed=seed, faults=tuple(faults))
    random = np.random.default_rng(seed)
    places = np.sort(random.choice(total, size=min(drawn, total), replace=False))
    before = 0
    for target, one in zip(targets, proof.cases, strict=True):
        for place in places[(places >= before) & (places < before + len(one))] - before:
            found = one.row(int(place))
            new = _again(target, adversary, number, one.answers(int(place)))
            if found != new:
                name = pattern(one.answers(int(place)), found[0])
                faults.append(f"{target.name}, case {name}: found {_row(found)}; a new run gives {_row(new)}")
        before += len(one)
    return Checked(cases=total, drawn=len(places), seed=seed, faults=tuple(faults))


def _again(target: Target, adversary: Adversary, seed: int, answers: int) -> tuple[int, ...]:
    own = run_with(target)
    if adversary.name == "start":
        nothing = ("originals", "lost", 0, 1, 0, None)
        compiled = started(target.scenario, adversary, answers).compiled
        raw = engine_call(lambda: heard(_engine.prove_case(compiled, seed, nothing, 0, False, own)))
        return (0, *Cases.of_engine(raw).row(0)[1:])
    raw = engine_call(
        lambda: heard(_engine.prove_case(target.scenario.compiled, seed, adversary.engine, answers, False, own))
    )
    return Cases.of_engine(raw).row(0)


def _row(row: Sequence[int]) -> str:
    asked, took, timeouts, retransmissions, _ = row
    time = "no completion" if took < 0 else f"{took / 1e9:.9f} s"
    return f"{time}, {timeouts} timeouts, {retransmissions} retransmissions, {asked} packets"


def _first(old: Cases, new: Cases) -> str:
    for at in range(min(len(old), len(new))):
        if old.row(at) != new.row(at) or old.answers(at) != new.answers(at):
            return f"case {pattern(old.answers(at), old.row(at)[0])}: {_row(old.row(at))}; new {_row(new.row(at))}"
    return f"{len(old)} cases; new {len(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else text[:77] + "..."


def _read(folder: Path) -> dict[str, Any]:
    place = folder / FILE
    if not place.is_file():
        raise InputError(f"--check {folder}: found no {FILE} in it; allowed: the folder of a whole proof")
    try:
        said = json.loads(_files.contents(place, 2**28))
    except ValueError as error:
        raise InputError(f"{place}: found no JSON ({error}); allowed: what prove wrote") from None
    if not isinstance(said, dict) or said.get("schema") != SCHEMA:
        raise InputError(f"{place}: found another schema; allowed: {SCHEMA}")
    return said


def _planned(said: dict[str, Any], folder: Path) -> tuple[Adversary, tuple[Target, ...], tuple[Chance, ...], int]:
    try:
        adversary = Adversary.from_json(said["adversary"])
        texts = [(str(entry["name"]), str(entry["scenario"])) for entry in said["targets"]]
        chances = tuple(GilbertElliott(c["p"], c["r"]) if "r" in c else Bernoulli(c["p"]) for c in said["chances"])
        seed = int(said["seed"])
        if len(said["results"]) != len(texts) or not texts:
            raise ValueError("results")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder / FILE}: found a certificate without {error}; allowed: what prove wrote") from None
    targets = tuple(Target(name=name, scenario=parsed(text)) for name, text in texts)
    return adversary, targets, chances, seed


def parsed(text: str) -> Scenario:
    """Return a scenario parsed from TOML."""
    from ackclock.scenario._toml import read_toml

    return Scenario.from_dict(read_toml(text)[0])


def _cases(
    folder: Path, targets: Sequence[Target], adversary: Adversary
) -> tuple[list[tuple[Cases, tuple[str, ...]]], list[str]]:
    made, faults = [], []
    for at, target in enumerate(targets):
        place = folder / PART / f"{at}"
        files = sorted(file for file in place.glob("[0-9]*") if file.suffix != ".part") if place.is_dir() else []
        if not files:
            raise InputError(f"{place}: found no cases of {target.name}; allowed: the files that prove wrote")
        parts = [read(file) for file in files]
        cases = Cases.joined([part for part, _ in parts])
        made.append((cases, tuple(digest for _, digests in parts for digest in digests)))
        if adversary.name != "start" and not whole(cases, adversary.first, burst=adversary.length):
            faults.append(f"{target.name}: found cases that are not all, or one twice")
    return made, faults
