"""The part of a study that can run on the real kernel: the same cells on both backends, with the claims' verdicts
side by side.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import report
from ackclock.study.claim import Claim, Outcome, Tables
from ackclock.study.kernel_record import KernelRecord
from ackclock.study.plan import BACKENDS, KERNEL, Plan, Progress
from ackclock.study.result import claim_row, versions, write_report
from ackclock.study.study import Ran, carry_out

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ackclock.report import Section
    from ackclock.scenario import Scenario
    from ackclock.study.study import Experiment, Study

NAMES = {"linux": "kernel", "sim": "simulator"}
"""Names of the backends in reports."""

_KINDS = ("head", "text", "", "", "text", "")
"""Kinds of cells in the table with both backends."""

SHARES = {"linux": 0.95, "sim": 0.05}
"""Fraction of the total time taken by each backend, for progress."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelPart:
    """Part of a study that can be run on the kernel.

    Parameters
    ----------
    summary
        Differences from the study: hosts, lengths, cells.
    experiments
        Experiments run on each backend, whose tables the claims read.
    claims
        Claims judged on both backends.
    left_out
        Claims of the study that are not judged -> why they cannot be compared here.
    sections
        Further parts of the report, made from each backend's tables.
    scenarios
        Scenarios as written, by name, for the report.
    record
        File with an earlier run's results, shown in the study's report; None: nothing is recorded.
    """

    summary: str
    experiments: tuple[Experiment, ...]
    claims: tuple[Claim, ...]
    left_out: Mapping[str, str]
    sections: Callable[[Mapping[str, Tables]], tuple[Section, ...]] = field(repr=False)
    scenarios: Callable[[], Mapping[str, Scenario]] = field(repr=False)
    record: Path | None = field(default=None, repr=False)

    def run(
        self, study: Study, *, seeds: int | None = None, jobs: int = 1, progress: Progress | None = None
    ) -> KernelResult:
        """Run every experiment on both backends and judge every claim on both.

        Parameters
        ----------
        study
            Study to which the part belongs.
        seeds
            Seeds of each cell, instead of those chosen for this scale.
        jobs
            Threads, and parallel kernels, at most one per CPU.
        progress
            Called with a text and the fraction completed.
        """
        started = time.perf_counter()
        ran: dict[str, Ran] = {}
        done = 0.0
        for backend, share in SHARES.items():
            plan = Plan(
                scale=KERNEL, seeds=seeds, jobs=jobs, progress=progress, name=f"{study.name}-kernel", backend=backend
            )
            ran[backend] = carry_out(self.experiments, plan.part(done, done + share, NAMES[backend]))
            done += share
        digest = hashlib.sha256()
        for one in ran.values():
            digest.update(one.digest.digest())
        tables = {backend: one.tables for backend, one in ran.items()}
        return KernelResult(
            study=study,
            part=self,
            seeds=seeds,
            outcomes={backend: tuple(c.judge(own) for c in self.claims) for backend, own in tables.items()},
            tables=tables,
            runs=sum(one.runs for one in ran.values()),
            digest=digest.hexdigest(),
            wall_s=time.perf_counter() - started,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelResult:
    """Result of a study's kernel part.

    Parameters
    ----------
    outcomes, tables
        Outcomes and tables by backend.
    """

    study: Study
    part: KernelPart
    seeds: int | None
    outcomes: Mapping[str, tuple[Outcome, ...]]
    tables: Mapping[str, Tables] = field(repr=False)
    runs: int
    digest: str
    wall_s: float

    @property
    def command(self) -> str:
        """Command that reproduces this result."""
        seeds = "" if self.seeds is None else f" --seeds {self.seeds}"
        return f"ackclock study run {self.study.name} --backend linux{seeds}"

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as printed by `--json`."""
        claims = []
        for i, claim in enumerate(self.part.claims):
            verdicts = {
                backend: {name: half.to_json() for name, half in self.outcomes[backend][i].halves.items()}
                for backend in BACKENDS
            }
            claims.append({"id": claim.id, "statement": claim.statement, "recorded": self._recorded(claim), **verdicts})
        return {
            "study": self.study.name,
            "scale": KERNEL,
            "digest": self.digest,
            "runs": self.runs,
            "claims": claims,
            "not_comparable": dict(self.part.left_out),
        }

    def _recorded(self, claim: Claim) -> str:
        """Return the verdicts of the whole study at paper scale."""
        return self.study.recorded("paper").verdict(claim.id) or ""

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for i, claim in enumerate(self.part.claims):
            for name, _ in claim.halves:
                told = []
                for backend in BACKENDS:
                    half = self.outcomes[backend][i].halves[name]
                    value = "" if half.decisive is None else f": {half.decisive.value_text}"
                    told.append(f"{half.verdict.symbol} {half.verdict}{value}")
                shown = self.outcomes["linux"][i].halves[name].decisive
                asked = "" if shown is None else f"{shown.label}: {shown.bound.text(shown.unit)}"
                rows.append((claim.id, claim.statement, *told, asked, self._recorded(claim)))
        return rows

    def claims_table(self) -> RenderableType:
        """Return the claims as a table for the terminal."""
        from rich.table import Table

        table = Table(title=f"{self.study.name}, on both backends", title_justify="left", row_styles=["", "dim"])
        for name, ratio in (
            ("claim", 0),
            ("statement", 3),
            ("kernel", 2),
            ("simulator", 2),
            ("asked", 3),
            ("study", 0),
        ):
            table.add_column(name, ratio=ratio or None, no_wrap=not ratio)
        for row in self._rows():
            table.add_row(*row)
        for claim, why in self.part.left_out.items():
            table.add_row(claim, why, "– not comparable", "", "", "")
        return table

    def to_record(self) -> KernelRecord:
        """Return the tables shown in the report of the whole study."""
        from ackclock import linux

        own = [b for s in self.part.sections(self.tables) for b in s.blocks if isinstance(b, report.Table)]
        return KernelRecord(
            kernel=linux.installed().release,
            runs=self.runs,
            command=self.command,
            tables=(self._beside(), *own),
            taken={},
        )

    def _beside(self) -> report.Table:
        return report.Table(
            caption=(
                "The number that settles the verdict on the kernel, and that of the simulator. The last column is the verdict recorded for "
                "the whole study at paper scale, with the hosts of the publication."
            ),
            header=("claim", "statement", "kernel", "simulator, same hosts", "asked", "study"),
            rows=tuple(
                tuple(report.TableCell(text=text, kind=kind) for text, kind in zip(row, _KINDS, strict=True))
                for row in self._rows()
            ),
        )

    def page(self) -> report.Page:
        """Build the report, without writing it."""
        refused = report.Table(
            caption="Claims that are not tested on the kernel, and why.",
            header=("claim", "why not"),
            rows=tuple((claim, report.TableCell(text=why, kind="text")) for claim, why in self.part.left_out.items()),
        )
        return report.Page(
            title=f"{self.study.title}: on the real kernel",
            summary=self.part.summary,
            publications=tuple(f"{p.authors}: {p.title}. {p.where}" for p in self.study.publications),
            claims=tuple(claim_row(outcome) for outcome in self.outcomes["linux"]),
            sections=(
                report.Section(title="Both backends side by side", blocks=(self._beside(),)),
                *self.part.sections(self.tables),
                report.Section(title="Not comparable", blocks=(refused,)),
            ),
            scenarios={name: scenario.to_toml() for name, scenario in self.part.scenarios().items()},
            facts=self.facts(),
            command=self.command,
        )

    def facts(self) -> dict[str, str]:
        """Return versions and sizes for the end of the report."""
        from ackclock import linux

        return {
            "kernel": f"Linux {linux.installed().release}",
            "seeds per cell": "those of the scale" if self.seeds is None else str(self.seeds),
            "runs, both backends": f"{self.runs:,}",
            "digest of all runs": self.digest,
            "wall time": f"{self.wall_s:.0f} s",
            **versions(),
        }

    def write(self, folder: str | Path) -> Path:
        """Write the report like `StudyResult.write`, with a folder of tables for each backend.

        Raises
        ------
        InputError
            If the folder cannot be written.
        """
        return write_report(Path(folder), self.page(), self.tables, self.to_json())
