"""A finished study: outcomes, tables, and the ways to show them."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import report
from ackclock._files import staged
from ackclock.errors import InputError
from ackclock.study.claim import Outcome, Tables
from ackclock.study.verdict import Verdict, interval, number

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ackclock.study.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyResult:
    """A finished run of a study."""

    study: Study
    scale: str
    seeds: int | None
    outcomes: tuple[Outcome, ...]
    tables: Tables = field(repr=False)
    runs: int
    digest: str
    wall_s: float

    @property
    def unexpected(self) -> list[str]:
        """Claims whose verdict differs from the recorded one, one line each.

        With a number of seeds other than the scale's own, a verdict may become (un)decided; then only a claim that
        turned from holding to failing, or back, counts.
        """
        found = []
        for o in self.outcomes:
            if o.verdict is o.expected:
                continue
            if self.seeds is not None and Verdict.UNDECIDED in (o.verdict, o.expected):
                continue
            found.append(f"{o.claim.id}: {o.verdict}, recorded {o.expected}")
        return found

    @property
    def command(self) -> str:
        """What to type to get this result again."""
        seeds = "" if self.seeds is None else f" --seeds {self.seeds}"
        return f"ackclock study run {self.study.name} --scale {self.scale}{seeds}"

    def outcome(self, claim_id: str) -> Outcome:
        """The outcome of one claim."""
        return next(o for o in self.outcomes if o.claim.id == claim_id)

    def to_json(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return {
            "study": self.study.name,
            "scale": self.scale,
            "digest": self.digest,
            "runs": self.runs,
            "unexpected": self.unexpected,
            "claims": [o.to_json() for o in self.outcomes],
        }

    def claims_table(self) -> RenderableType:
        """Claims as a table for the terminal."""
        from rich.table import Table
        from rich.text import Text

        colours = {"holds": "green", "fails": "red", "undecided": "yellow", "not comparable": "blue"}
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
            e = o.decisive
            verdict = f"{o.verdict.symbol} {o.verdict}"
            if o.verdict is not o.expected:
                verdict += f"\n(expected: {o.expected})"
            table.add_row(
                o.claim.id,
                o.claim.statement,
                Text(verdict, style=colours[o.verdict.value]),
                f"{e.label}: {number(e.value, e.unit)}" if e else "",
                "" if e is None else "exact" if e.interval is None else interval(*e.interval),
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
        folder = Path(folder)
        try:
            with staged(folder) as part:
                (part / "tables").mkdir()
                for name, table in self.tables.items():
                    table.write_parquet(part / "tables" / f"{name}.parquet")
                (part / "claims.json").write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")
                page = self.page()
                drawn = {figure.name: figure.write(part / "figures")["svg"] for figure in page.figures}
                report.write(page, part / "report.html", drawn=drawn)
        except OSError as error:
            raise InputError(f"{folder}: cannot be written ({(error.strerror or str(error)).lower()})") from None
        return folder / "report.html"

    def page(self) -> report.Page:
        """The report as a value."""
        return report.Page(
            title=self.study.title,
            summary=self.study.summary,
            findings=tuple(self.study.findings(self)),
            publications=tuple(f"{p.authors}: {p.title}. {p.where}" for p in self.study.publications),
            claims=tuple(claim_row(o) for o in self.outcomes),
            sections=tuple(self.study.sections(self)),
            scenarios={name: s.to_toml() for name, s in self.study.scenarios().items()},
            facts=self.facts(),
            command=self.command,
        )

    def facts(self) -> dict[str, str]:
        """Versions and sizes, for the foot of the report."""
        from importlib.metadata import PackageNotFoundError, version

        def of(package: str) -> str:
            try:
                return version(package)
            except PackageNotFoundError:
                return "not installed"

        return {
            "scale": self.scale,
            "seeds per cell": "those of the scale" if self.seeds is None else str(self.seeds),
            "simulated connections or runs": f"{self.runs:,}",
            "digest of all runs": self.digest,
            "wall time": f"{self.wall_s:.1f} s",
            "ackclock": of("ackclock"),
            "Python": platform.python_version(),
            "polars": of("polars"),
            "matplotlib": of("matplotlib"),
            "plotly": of("plotly"),
        }


def claim_row(outcome: Outcome) -> report.ClaimRow:
    """An outcome in the words of the report."""
    return report.ClaimRow(
        id=outcome.claim.id,
        place=outcome.claim.place,
        statement=outcome.claim.statement,
        reading=outcome.claim.reading,
        verdict=outcome.verdict.value,
        symbol=outcome.verdict.symbol,
        expected=outcome.expected.value,
        reason=" ".join(t for t in (outcome.claim.not_comparable, outcome.claim.note) if t),
        decisive=outcome.evidence.index(outcome.decisive) if outcome.decisive else None,
        evidence=tuple(
            report.EvidenceRow(
                label=e.label,
                value=number(e.value, e.unit),
                interval="exact" if e.interval is None else interval(*e.interval),
                bound=e.bound.text(e.unit) if e.weighs else "(for context)",
                seeds=f"{e.seeds:,}" if e.seeds else "–",
                verdict=e.verdict.value if e.weighs else "",
                symbol=e.verdict.symbol if e.weighs else "",
            )
            for e in outcome.evidence
        ),
    )
