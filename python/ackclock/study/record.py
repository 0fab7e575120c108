"""Record of an earlier run of a study (verdicts, values and intervals, with version, date and build), in a file
beside the study.

`ackclock study run NAME --record` writes it. A later run is compared with it: changed verdicts are reported, and so are
values outside their recorded interval under the same verdict (drift).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ackclock._files import refused, regular
from ackclock.errors import InputError
from ackclock.judge.bound import Verdict, interval, number
from ackclock.judge.evidence import Evidence
from ackclock.study.claim import Outcome
from ackclock.study.note import Quoted


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A study's record at one scale.

    Parameters
    ----------
    taken
        "version", "date" and "build" of the run; older records have no build.
    claims
        Claim -> half -> "verdict" and "evidence": label -> "value", "interval", "unit", "key", and "weighs" if false.
    """

    taken: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.claims)

    def verdicts(self, claim: str) -> dict[str, Verdict]:
        """Return the verdict of each half; empty for a claim that is not recorded."""
        return {half: Verdict(found["verdict"]) for half, found in self.claims.get(claim, {}).items()}

    def verdict(self, claim: str) -> Verdict | None:
        """Return the verdict of a claim: that of its direction, or that of a bare number."""
        found = self.verdicts(claim)
        return found.get("direction") or found.get("magnitude")

    @property
    def told(self) -> str:
        """Date and version of the record, in words."""
        return f"recorded {self.taken.get('date', '')} with {self.taken.get('version', '')}"

    @property
    def build(self) -> str:
        """Engine build that made the record, as printed by `ackclock --version`; empty if not recorded."""
        return " ".join(self.taken.get("build", "").split())

    def quote(self, claim: str, key: str) -> Quoted | None:
        """Return a number by the key of its evidence."""
        for half in self.claims.get(claim, {}).values():
            for found in half["evidence"].values():
                if found.get("key") == key:
                    low, high = _ends(found)
                    return Quoted(
                        value=_number(found["value"]), low=low, high=high, unit=found["unit"], taken=self.told
                    )
        return None

    def numbers(self, claim: str, half: str) -> list[str]:
        """Return the deciding numbers of a half with their intervals, as text. Records from earlier versions list
        all numbers.
        """
        found = self.claims.get(claim, {}).get(half, {}).get("evidence", {})
        quoted = (
            Quoted(value=_number(e["value"]), low=low, high=high, unit=e["unit"])
            for e in found.values()
            if e.get("weighs", True)
            for low, high in (_ends(e),)
        )
        return [number.text("i") for number in quoted]

    def changed(self, outcomes: Sequence[Outcome], *, undecided: bool | None = None) -> list[str]:
        """Return verdicts that differ from the recorded ones, one line each.

        Parameters
        ----------
        outcomes
            Outcomes of a run.
        undecided
            True: only those where one of the two is undecided; False: only the others; None: all.
        """
        found = []
        for outcome in outcomes:
            before = self.verdicts(outcome.claim.id)
            for half, verdict in outcome.verdicts.items():
                recorded = before.get(half, verdict)
                if recorded is verdict:
                    continue
                if undecided is None or undecided is (Verdict.UNDECIDED in (recorded, verdict)):
                    found.append(f"{_name(outcome, half)}: {verdict}, recorded {before[half]}")
        return found

    def drifted(self, outcomes: Sequence[Outcome], *, other_seeds: bool = False) -> list[str]:
        """Return values outside their recorded interval under an unchanged verdict, one line each.

        Parameters
        ----------
        other_seeds
            Whether the run has other seeds than the recorded one, so that its values differ by chance: then only
            disjoint intervals count.
        """
        found = []
        for outcome in outcomes:
            before = self.verdicts(outcome.claim.id)
            for half, judged in outcome.halves.items():
                if before.get(half) is not outcome.verdicts[half]:
                    continue
                recorded = self.claims[outcome.claim.id][half]["evidence"]
                for e in judged.evidence:
                    old = recorded.get(e.label)
                    if old is not None and _left(e, old, other_seeds=other_seeds):
                        told = number(_number(old["value"]), e.unit)
                        if old["interval"] is not None:
                            told += f" ({interval(*_ends(old))})"  # type: ignore[arg-type]
                        found.append(f"{_name(outcome, half)}: {e.label}: {e.value_text}, recorded {told}")
        return found


def _name(outcome: Outcome, half: str) -> str:
    return f"{outcome.claim.id}, {half}" if len(outcome.halves) > 1 else outcome.claim.id


def _left(e: Evidence, old: Mapping[str, Any], *, other_seeds: bool) -> bool:
    """Return whether a value is outside its recorded range."""
    value = _number(old["value"])
    if old["interval"] is None:
        return not other_seeds and not _same(e.value, value)
    low, high = _ends(old)
    assert low is not None
    assert high is not None
    if math.isnan(e.value) or math.isnan(value):
        return not other_seeds and math.isnan(e.value) != math.isnan(value)
    if other_seeds and e.interval is not None:
        return e.interval[1] < low or e.interval[0] > high
    return not low <= e.value <= high and not _same(e.value, value)


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=2e-5, abs_tol=1e-9)


def _number(value: float | str) -> float:
    return float(value)


def _ends(found: Mapping[str, Any]) -> tuple[float | None, float | None]:
    if found["interval"] is None:
        return None, None
    low, high = found["interval"]
    return _number(low), _number(high)


def _kept(value: float) -> float | str:
    """Return a value in its recorded form: six digits, more than any interval needs, and text for numbers that JSON
    cannot express.
    """
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


def read(path: Path) -> dict[str, Record]:
    """Return the records by scale; empty if there is no file yet."""
    if not path.exists():
        return {}
    with as_written(path):
        found = json.loads(regular(path, LARGEST))
        records = {scale: Record(taken={**one["taken"]}, claims={**one["claims"]}) for scale, one in found.items()}
        for one in records.values():
            for claim in one.claims:
                one.verdicts(claim)
                for half in one.claims[claim].values():
                    _check(half["evidence"])
            " ".join([*one.taken, *one.taken.values()])
    return records


LARGEST = 2**24
"""Maximum size of a record, bytes; ours have up to 200,000."""


@contextmanager
def as_written(path: Path) -> Iterator[None]:
    """Read a record of unknown origin: unexpected contents are refused with a one-line message."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: found no record; allowed: as `ackclock study run --record` has written it") from None


def _check(evidence: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise an error if a value is not a number."""
    for label, found in evidence.items():
        ends = _ends(found)
        Quoted(value=_number(found["value"]), low=ends[0], high=ends[1], unit=found["unit"], taken="")
        "".join((label, found["unit"], found.get("key", "")))


def build() -> str:
    """Return the engine's build information, as printed by `ackclock --version`."""
    from ackclock import _engine

    return f"build {_engine.build()}, profile {_engine.profile()}"


def write(
    path: Path, scale: str, outcomes: Sequence[Outcome], *, version: str, date: str, partial: bool = False
) -> None:
    """Write a run's record in place of the previous one at its scale. Records at other scales are kept. With
    `partial`, so are the other claims at this scale, and each new claim is stored with its date.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    claims = {
        outcome.claim.id: {
            half: {
                "verdict": outcome.verdicts[half].value,
                "evidence": {e.label: _entry(e) for e in outcome.halves[half].evidence}
                if half in outcome.halves
                else {},
            }
            for half in outcome.verdicts
        }
        for outcome in outcomes
    }
    records = {name: {"taken": dict(one.taken), "claims": one.claims} for name, one in read(path).items()}
    whole: dict[str, Any] = {"taken": {"version": version, "date": date, "build": build()}, "claims": claims}
    if partial and scale in records:
        kept: dict[str, Any] = records[scale]
        own = dict.fromkeys(claims, f"version {version}, {date}, {build()}")
        whole = {"taken": {**kept["taken"], **own}, "claims": {**kept["claims"], **claims}}
    records[scale] = whole
    try:
        path.write_text(_lines(dict(sorted(records.items()))) + "\n", encoding="utf-8")
    except OSError as error:
        raise refused(error, str(path)) from None


def _lines(value: Any, depth: int = 0) -> str:
    """Return JSON with one line per piece of evidence, so that diffs of records are readable."""
    flat = isinstance(value, dict) and "value" in value
    if flat or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    pad = " " * (depth + 1)
    inner = ",\n".join(f"{pad}{json.dumps(k, ensure_ascii=False)}: {_lines(v, depth + 1)}" for k, v in value.items())
    return f"{{\n{inner}\n{' ' * depth}}}"


def _entry(e: Evidence) -> dict[str, Any]:
    return {
        "value": _kept(e.value),
        "interval": None if e.interval is None else [_kept(x) for x in e.interval],
        "unit": e.unit,
        **({"key": e.key} if e.key else {}),
        **({} if e.weighs else {"weighs": False}),
    }
