"""A finished study: outcomes, tables, and ways to show them."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import report
from ackclock._files import parquet, staged
from ackclock.errors import InputError
from ackclock.judge.bound import Verdict
from ackclock.report.packed import VERSION as PLOTLY
from ackclock.study import edges, held_out, kernel_record, specification
from ackclock.study.claim import DIRECTION, MAGNITUDE, Judged, Outcome, Tables
from ackclock.study.kernel_record import KernelRecord
from ackclock.study.note import Quoted, fill
from ackclock.study.reading import Curve
from ackclock.study.record import Record, write

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ackclock.study.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyResult:
    """A finished run of a study.

    Parameters
    ----------
    study, scale
        Study and scale of the run.
    seeds
        Number of seeds, if it was not the scale's own.
    outcomes
        Outcome of each claim.
    tables
        Tables of the experiments, by name.
    runs, digest
        Number of runs, and a single fingerprint of all of them.
    wall_s
        Wall time of the run, seconds.
    curves
        Specification curve of each claim that depends on a reading, if the other readings were run.
    kernel
        Result of the study's kernel part, if it was run.
    registered
        Hash of the plan from which the seeds were derived, or the text of held-out seeds; empty if there was neither.
    held_out
        Whether `registered` is the text.
    partial
        Whether only some claims were judged.
    """

    study: Study
    scale: str
    seeds: int | None
    outcomes: tuple[Outcome, ...]
    tables: Tables = field(repr=False)
    runs: int
    digest: str
    wall_s: float
    curves: tuple[Curve, ...] = ()
    kernel: KernelRecord | None = None
    registered: str = ""
    held_out: bool = False
    partial: bool = False

    @property
    def recorded(self) -> Record:
        """Record of an earlier run at this scale."""
        return self.study.recorded(self.scale)

    @property
    def unexpected(self) -> list[str]:
        """Verdicts that differ from those recorded, one line each. With seeds other than the scale's own, a verdict that
        is undecided here or in the record is no contradiction: it is listed by `undecided`.
        """
        return self.recorded.changed(self.outcomes, undecided=None if not self.other_seeds else False)

    @property
    def undecided(self) -> list[str]:
        """Verdicts that, with seeds other than the scale's own, are undecided where the record has a word, or the reverse."""
        return self.recorded.changed(self.outcomes, undecided=True) if self.other_seeds else []

    @property
    def other_seeds(self) -> bool:
        """Whether the seeds differ from the recorded ones."""
        return self.seeds is not None or bool(self.registered)

    @property
    def drifted(self) -> list[str]:
        """Values outside their recorded interval under an unchanged verdict, one line each."""
        return self.recorded.drifted(self.outcomes, other_seeds=self.other_seeds)

    @property
    def command(self) -> str:
        """Command that reproduces this result."""
        seeds = "" if self.seeds is None else f" --seeds {self.seeds}"
        readings = " --readings" if self.curves else ""
        registered = (
            "" if not self.registered else f" --held-out {self.registered}" if self.held_out else " --registered PLAN"
        )
        return f"ackclock study run {self.study.named} --scale {self.scale}{seeds}{readings}{registered}"

    def outcome(self, claim_id: str) -> Outcome:
        """Return the outcome of one claim."""
        return next(o for o in self.outcomes if o.claim.id == claim_id)

    def quote(self, claim: str, key: str, scale: str = "") -> Quoted:
        """Return a number from the run by claim and key, or a recorded one at another scale.

        Raises
        ------
        InputError
            If there is none.
        """
        found = None
        if scale in ("", self.scale):
            evidence = next((o.evidence for o in self.outcomes if o.claim.id == claim), ())
            e = next((e for e in evidence if e.key == key), None)
            if e is not None:
                low, high = e.interval or (None, None)
                found = Quoted(value=e.value, low=low, high=high, unit=e.unit)
        else:
            found = self.study.recorded(scale).quote(claim, key)
            if found is not None:
                found = replace(found, taken=f"{scale} scale, {found.taken}")
        if found is None:
            raise InputError(
                f"number: found {claim}.{key}{'@' + scale if scale else ''}; allowed: a key of the claim's evidence"
            )
        return found

    def note(self, outcome: Outcome) -> str:
        """Return a claim's note with its numbers filled in."""

        def lookup(name: str, scale: str) -> Quoted:
            claim, _, key = name.rpartition(".")
            return self.quote(claim or outcome.claim.id, key, scale)

        return fill(outcome.claim.note, lookup)

    def record(self, *, version: str, date: str) -> Path:
        """Write verdicts, values and intervals to the study's record, replacing those at this scale.

        Raises
        ------
        InputError
            If the study keeps no record, if the run had other seeds than the scale's, or if the file cannot be written.
        """
        if self.study.record is None:
            raise InputError(f"--record: found {self.study.name}, which keeps no record")
        if self.seeds is not None:
            raise InputError(f"--record: found --seeds {self.seeds}; allowed: the seeds of a scale")
        if self.registered:
            raise InputError("--record: found --registered, whose seeds are others; allowed: the seeds of a scale")
        write(self.study.record, self.scale, self.outcomes, version=version, date=date, partial=self.partial)
        return self.study.record

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as printed by `--json`."""
        found: dict[str, Any] = {
            "study": self.study.name,
            "scale": self.scale,
            "digest": self.digest,
            "runs": self.runs,
            "unexpected": self.unexpected,
            "undecided": self.undecided,
            "drifted": self.drifted,
            "claims": [self._claim(o) for o in self.outcomes],
        }
        if self.curves:
            found["readings"] = [curve.to_json() for curve in self.curves]
        return found

    def _claim(self, outcome: Outcome) -> dict[str, Any]:
        """Return one claim as plain values: the number that determines its verdict, then each half with its evidence."""
        recorded = self.recorded.verdict(outcome.claim.id)
        shown = outcome.main.to_json() if outcome.main else {}
        return {
            "id": outcome.claim.id,
            "statement": outcome.claim.statement,
            "place": outcome.claim.place,
            "verdict": outcome.verdict.value,
            "expected": (recorded or outcome.verdict).value,
            **{key: shown.get(key) for key in ("measured", "value", "unit", "interval", "bound", "seeds")},
            "reason": outcome.claim.not_comparable or self.note(outcome),
            "halves": {name: half.to_json() for name, half in outcome.halves.items()},
        }

    def claims_table(self) -> RenderableType:
        """Return the claims as a table for the terminal."""
        from rich.table import Table
        from rich.text import Text

        colours = {
            "holds": "green",
            "negligible": "magenta",
            "refuted": "red",
            "fails": "red",
            "depends": "cyan",
            "undecided": "yellow",
            "not comparable": "blue",
        }
        table = Table(title=f"{self.study.name}, scale {self.scale}", title_justify="left", row_styles=["", "dim"])
        for name, options in {
            "claim": {"no_wrap": True},
            "statement": {"ratio": 3},
            "verdict": {"no_wrap": True},
            "measured": {"ratio": 2},
            "95 % interval": {"justify": "right"},
            "asked": {"justify": "right"},
            "samples": {"justify": "right"},
        }.items():
            table.add_column(name, **options)  # type: ignore[arg-type]
        for o in self.outcomes:
            before = self.recorded.verdicts(o.claim.id)
            for i, (half, verdict) in enumerate(o.verdicts.items()):
                judged = o.halves.get(half)
                e = judged.decisive if judged else None
                told = f"{verdict.symbol} {verdict}"
                if before.get(half, verdict) is not verdict:
                    told += f"\n(recorded: {before[half]})"
                table.add_row(
                    o.claim.id if i == 0 else "",
                    o.claim.statement
                    if i == 0
                    else half
                    if half != MAGNITUDE
                    else f"how much: {judged.criterion.printed or 'our bound' if judged else ''}",
                    Text(told, style=colours[verdict.value]),
                    f"{e.label}: {e.value_text}" if e else "",
                    e.interval_text if e else "",
                    e.bound.text(e.unit) if e else "",
                    (str(e.seeds) if e.seeds else "–") if e else "",
                )
        return table

    def write(self, folder: str | Path) -> Path:
        """Write the report and the figures.

        Parameters
        ----------
        folder
            Created if absent. Gets `report.html`, `claims.json`, `figures/` (PDF, PNG, SVG, and the data of each figure as
            CSV or Parquet) and `tables/` (Parquet); all of them or none.

        Returns
        -------
        Path
            The report.

        Raises
        ------
        InputError
            If the folder cannot be written.
        """
        return write_report(Path(folder), self.page(), {"": self.tables}, self.to_json())

    def page(self) -> report.Page:
        """Build the report, without writing it."""
        study = self.study
        headline = study.opening(self)
        rows = tuple(self.row(o) for o in self.outcomes)
        sections = [
            report.Section(title=c.title, blocks=blocks, claims=tuple(claim.id for claim in c.claims))
            for c in study.chapters
            if (blocks := c.shown(self.tables))
        ]
        if (kernel := self.kernel or (kernel_record.read(study.kernel().record) if study.kernel else None)) is not None:
            sections.append(kernel.section())
        if study.readings:
            sections.append(specification.section(study.readings, self.curves, study.name))
        if study.fitted:
            sections.append(_fitted(study))
        sections += filter(None, (held_out.section(study, self.scale), edges.section(study)))
        return report.Page(
            title=study.title,
            summary=study.summary,
            conclusion=headline.sentence if headline else "",
            opening=headline.figure if headline else None,
            findings=(*study.found(self), *self._decided_elsewhere()),
            distrust=tuple(self._distrust()),
            terms={**study.terms, **WORDS},
            publications=tuple(f"{p.authors}: {p.title}. {p.where}" for p in study.publications),
            claims=rows,
            sections=tuple(sections),
            scenarios={name: s.to_toml() for name, s in study.scenarios().items()},
            facts=self.facts(),
            command=self.command,
        )

    def _distrust(self) -> Iterator[str]:
        """Yield reasons for caution: fitted values, verdicts that change with other seeds or with a neighbouring
        constant, undecided claims.
        """
        for f in self.study.fitted:
            yield f"{', '.join(f.claims)}: {f.name} is fitted so that {f.so_that}."
        moved = [h for h in held_out.halves(self.study, self.scale) if not h.kept]
        if moved:
            yield f"With other seeds another word: {', '.join(f'{h.claim} ({h.half})' for h in moved)}."
        if turned := sorted({one.claim for one in edges.turned(self.study)}):
            yield f"Turned by a neighbour of a constant that we adopted: {', '.join(turned)}."
        for word, told in ((Verdict.DEPENDS, "It depends on the cell"), (Verdict.UNDECIDED, "Open")):
            own = [o.claim.id for o in self.outcomes if o.verdict is word]
            if own:
                yield f"{told}: {', '.join(own)}."

    def _decided_elsewhere(self) -> list[str]:
        """Return the claims that need more seeds than this scale provides, with their recorded verdicts at paper scale."""
        paper = self.study.recorded("paper")
        if self.scale == "paper" or not paper:
            return []
        told = []
        for o in self.outcomes:
            before, later = self.recorded.verdict(o.claim.id), paper.verdict(o.claim.id)
            if before is Verdict.UNDECIDED and later is not None:
                told.append(f"{o.claim.id} {'stays undecided' if later is Verdict.UNDECIDED else later}")
        if not told:
            return []
        return [
            f"Too close to call with as few runs as at this scale. With those of --scale paper ({paper.told}): {', '.join(told)}."
        ]

    def row(self, outcome: Outcome) -> report.ClaimRow:
        """Return a claim in the form used by the report."""
        before = self.recorded.verdicts(outcome.claim.id)
        curve = next((c for c in self.curves if c.claim.id == outcome.claim.id), None)
        fitted = tuple(f.name for f in self.study.fitted if outcome.claim.id in f.claims)
        made = claim_row(outcome, self.note(outcome), before, fitted, specification.told(curve) if curve else "")
        turned = edges.words(self.study)
        halves = (replace(h, turns=turned.get((made.id, h.name), "")) for h in made.halves)
        return replace(made, halves=tuple(halves))

    def facts(self) -> dict[str, str]:
        """Return versions and sizes for the end of the report."""
        return {
            "scale": self.scale,
            "seeds per cell": "those of the scale" if self.seeds is None else str(self.seeds),
            **(
                {"registered": f"as planned; seeds from the plan's hash {self.registered[:16]}"}
                if self.registered
                else {}
            ),
            "simulated connections or runs": f"{self.runs:,}",
            "digest of all runs": self.digest,
            "wall time": f"{self.wall_s:.1f} s",
            **versions(),
        }


def versions() -> dict[str, str]:
    """Return the versions of the packages used for a report."""
    from importlib.metadata import PackageNotFoundError, version

    def of(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "not installed"

    packages = {name: of(name) for name in ("ackclock", "polars", "matplotlib")}
    return {**packages, "plotly.js": PLOTLY, "Python": platform.python_version()}


WORDS = {
    "holds, fails": "the interval of the number lies wholly where the claim asks, or wholly on the other side",
    "negligible": "the effect is proven smaller than the margin that was declared beforehand",
    "refuted": "the claim is excluded; it is open whether the effect is negligible or reversed",
    "depends": "cells lie significantly on both sides",
    "undecided": "more runs may decide",
}
"""Verdict explanations for the page."""
WRITTEN = ("claims.json", "figures", "report.html", "tables")
"""Files and folders written into a study's folder."""

MARKS = ("report.html",)
"""Files that identify a study's folder."""


def write_report(folder: Path, page: report.Page, tables: Mapping[str, Tables], claims: Mapping[str, Any]) -> Path:
    """Write `report.html`, `claims.json`, `figures/`, and `tables/` with a folder for each non-empty name. Either all
    of them are written or none.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    with staged(folder, marks=MARKS) as part:
        for name, own in tables.items():
            (part / "tables" / name).mkdir(parents=True, exist_ok=True)
            for table, rows in own.items():
                parquet(rows, part / "tables" / name / f"{table}.parquet")
        (part / "claims.json").write_text(json.dumps(claims, indent=1) + "\n", encoding="utf-8")
        drawn = {f.name: made["svg"] for f in page.figures if (made := f.write(part / "figures"))}
        report.write(page, part / "report.html", drawn=drawn)
    return folder / "report.html"


def _fitted(study: Study) -> report.Section:
    """Return the section on inputs chosen to reproduce a published number."""
    table = report.Table(
        caption="Inputs that were chosen so that a number comes out as published. A claim that depends on such an input does not test it independently.",
        header=("input", "value", "chosen so that", "claims that rest on it"),
        rows=tuple(
            (
                report.TableCell(text=f.name, kind="text"),
                f.value,
                report.TableCell(text=f.so_that, kind="text"),
                ", ".join(f.claims) or "none",
            )
            for f in study.fitted
        ),
    )
    return report.Section(title="Fitted inputs", blocks=(table,))


def claim_row(
    outcome: Outcome,
    note: str = "",
    recorded: Mapping[str, object] | None = None,
    fitted: Sequence[str] = (),
    readings: str = "",
) -> report.ClaimRow:
    """Return an outcome in the form used by the report.

    Parameters
    ----------
    outcome
        The judged claim.
    note
        Note with numbers filled in.
    recorded
        Half -> verdict of an earlier run.
    fitted
        Fitted inputs on which it depends.
    readings
        Verdicts under other readings.
    """
    before = recorded or {}
    removed = {DIRECTION: outcome.claim.intervention} | {c.name: c.intervention for c in outcome.claim.causes}
    halves = tuple(
        replace(
            _half(name, verdict.value, verdict.symbol, outcome.halves.get(name), str(before.get(name, verdict))),
            intervention=removed.get(name, ""),
        )
        for name, verdict in outcome.verdicts.items()
    )
    return report.ClaimRow(
        id=outcome.claim.id,
        place=outcome.claim.place,
        statement=outcome.claim.statement,
        halves=halves,
        reason=" ".join(t for t in (outcome.claim.not_comparable, note) if t),
        fitted=tuple(fitted),
        readings=readings,
        guesses=tuple(f"A guess: {text}" for text in outcome.claim.guesses),
    )


_BOUND = {"stated": "the sentence", "printed": "the publication", "ours": "ours"}


def _half(name: str, verdict: str, symbol: str, judged: Judged | None, recorded: str) -> report.HalfRow:
    weighing = sum(e.weighs for e in judged.evidence) if judged else 0
    shown = judged.decisive if judged else None
    criterion = judged.criterion if judged else None
    return report.HalfRow(
        name=name,
        verdict=verdict,
        symbol=symbol,
        recorded=recorded,
        reading=criterion.reading if criterion else "",
        cell=criterion.cell if criterion else "",
        bound_by=_BOUND[criterion.bound] if criterion else "",
        printed=criterion.printed if criterion else "",
        decisive=judged.evidence.index(shown) if judged and shown else None,
        evidence=tuple(
            report.EvidenceRow(
                label=e.label,
                value=e.value_text,
                interval=e.interval_text,
                bound=e.bound.text(e.unit) if e.weighs else "(for context)",
                seeds=f"{e.seeds:,}" if e.seeds else "–",
                verdict=e.judge(weighing).value if e.weighs else "",
                symbol=e.judge(weighing).symbol if e.weighs else "",
            )
            for e in (judged.evidence if judged else ())
        ),
    )
