"""A study: a published experiment run again. Experiments make tables, claims and figures read them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ackclock.study.claim import Claim
from ackclock.study.plan import Plan, Progress
from ackclock.study.result import StudyResult

if TYPE_CHECKING:
    import polars as pl

    from ackclock.report import Section
    from ackclock.scenario import Scenario
    from ackclock.study.kernel import KernelPart
    from ackclock.sweep import Executor, Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Publication:
    """Where the claims come from."""

    authors: str
    title: str
    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """What an experiment leaves: tables by name, and the digests of the runs behind them."""

    tables: Mapping[str, pl.DataFrame]
    digests: Sequence[str] = ()
    runs: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A part of a study that can be run alone.

    Parameters
    ----------
    name
        Short name; the tables it makes begin with it.
    title
        One line.
    run
        Does the work and returns the tables.
    weight
        Share of the time it takes, relative to the others.
    """

    name: str
    title: str
    run: Callable[[Plan], Data] = field(repr=False)
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """A published experiment, ready to be run again.

    Parameters
    ----------
    name
        The word that the command line uses.
    title, summary
        One line, and a short paragraph.
    publications
        What is reproduced.
    experiments
        Run in order; each sees nothing of the others.
    claims
        Tested on all tables together.
    sections
        The body of the report, made from a finished result.
    findings
        What a reader should take home, as short sentences, made from a finished result.
    scenarios
        The scenarios as written, by name, for the report.
    golden
        Prints the study's exact tables, if it has any.
    kernel
        What of it the real kernel can carry out, made when it is asked for.
    """

    name: str
    title: str
    summary: str
    publications: tuple[Publication, ...]
    experiments: tuple[Experiment, ...]
    claims: tuple[Claim, ...]
    sections: Callable[[StudyResult], Sequence[Section]] = field(repr=False)
    findings: Callable[[StudyResult], Sequence[str]] = field(repr=False)
    scenarios: Callable[[], Mapping[str, Scenario]] = field(repr=False)
    golden: Callable[[], str] | None = field(default=None, repr=False)
    kernel: Callable[[], KernelPart] | None = field(default=None, repr=False)

    def show(self, tables: bool = False) -> str:
        """Describe the study in plain text.

        Parameters
        ----------
        tables
            Print the study's exact tables beside the published ones instead.
        """
        if tables:
            return self.golden() if self.golden else f"{self.name}: this study has no exact tables\n"
        lines = [self.title, "=" * len(self.title), "", *_wrap(self.summary), "", "Publications"]
        for p in self.publications:
            lines += _wrap(f"{p.authors}: {p.title}. {p.where}", indent="  ")
        lines += ["", "Experiments"]
        width = max(len(e.name) for e in self.experiments)
        lines += [f"  {e.name:<{width}}  {e.title}" for e in self.experiments]
        lines += ["", "Claims (verdict expected at paper scale)"]
        for claim in self.claims:
            lines += _wrap(claim.statement, first=f"  {claim.id:<4}", indent=" " * 6)
            lines.append(f"      {claim.place}; expected: {claim.expected_at('paper')}")
        return "\n".join(lines) + "\n"

    def run(
        self,
        scale: str = "quick",
        seeds: int | None = None,
        jobs: int = 1,
        progress: Progress | None = None,
        store: Store | None = None,
        executor: Executor | None = None,
    ) -> StudyResult:
        """Run every experiment and judge every claim.

        Parameters
        ----------
        scale
            "quick" or "paper".
        seeds
            Seeds of each cell, instead of the scale's.
        jobs
            Threads.
        progress
            Called with a text and the share done.
        store
            Runs are kept here, and those that it holds are not made again.
        executor
            Makes the runs that go into the store, instead of threads.

        Returns
        -------
        StudyResult
            Outcomes, tables, figures.
        """
        plan = Plan(
            scale=scale, seeds=seeds, jobs=jobs, progress=progress, store=store, executor=executor, name=self.name
        )
        started = time.perf_counter()
        total = sum(e.weight for e in self.experiments)
        done = 0.0
        tables: dict[str, pl.DataFrame] = {}
        digest = hashlib.sha256()
        runs = 0
        for experiment in self.experiments:
            data = experiment.run(plan.part(done / total, (done + experiment.weight) / total, experiment.name))
            done += experiment.weight
            tables.update(data.tables)
            runs += data.runs
            for one in data.digests:
                digest.update(one.encode())
        outcomes = tuple(claim.judge(tables, scale=scale) for claim in self.claims)
        plan.report("done", 1.0)
        return StudyResult(
            study=self,
            scale=scale,
            seeds=seeds,
            outcomes=outcomes,
            tables=tables,
            runs=runs,
            digest=digest.hexdigest(),
            wall_s=time.perf_counter() - started,
        )


def _wrap(text: str, *, indent: str = "", first: str | None = None) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 100, initial_indent=indent if first is None else first, subsequent_indent=indent)
