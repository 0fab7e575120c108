"""A study: a published experiment that can be repeated. Experiments make tables, which claims and figures read. A
chapter contains the parts of one question.

Length: a study's fields are declared here, each once, with what is computed from them.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ackclock import _html
from ackclock.errors import InputError
from ackclock.study import answer
from ackclock.study.changed import Before
from ackclock.study.claim import Claim, Criterion, Tables
from ackclock.study.edge import Edge
from ackclock.study.plan import Plan, Progress
from ackclock.study.reach import Lazy
from ackclock.study.reading import Choice, Curve, Read, Reading, Specification, grid
from ackclock.study.record import Record, read
from ackclock.study.result import StudyResult
from ackclock.study.sentence import Sentence

if TYPE_CHECKING:
    import polars as pl

    from ackclock.plot import Figure
    from ackclock.report import Block
    from ackclock.scenario import Scenario
    from ackclock.study.kernel import KernelPart
    from ackclock.sweep import Executor, Store


@dataclass(frozen=True, kw_only=True, slots=True)
class Publication:
    """A publication that makes the claims.

    Parameters
    ----------
    authors, title
        Authors and title as cited.
    where
        Conference, journal or series, and year.
    """

    authors: str
    title: str
    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """Results of an experiment: tables by name, and the digests of their runs."""

    tables: Mapping[str, pl.DataFrame]
    digests: Sequence[str] = ()
    runs: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A part of a study that can be run separately.

    Parameters
    ----------
    name
        Short name; the names of its tables begin with it and a full stop.
    title
        One line.
    run
        Function that does the work and returns the tables.
    weight
        Duration relative to the other experiments.
    reads
        Open questions about it. `run` asks each for its option (`Reading.of(plan)`); under other readings it may omit
        data that no claim needs.
    """

    name: str
    title: str
    run: Callable[[Plan], Data] = field(repr=False)
    weight: float = 1.0
    reads: tuple[Reading, ...] = ()


def _no_blocks(_: Tables) -> Sequence[Block]:
    return ()


def _no_scenarios() -> Mapping[str, Scenario]:
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """Part of a study about one question, in its own module.

    Parameters
    ----------
    title
        Heading of its section in the report.
    experiments
        Experiments, run in order. Claims and figures may read the tables of other chapters as well.
    claims
        Claims; the study orders them by number.
    blocks
        Contents of the section: text, tables and figures, made from all tables of the study. None: no section.
    scenarios
        Scenarios as written, by name, for the report.
    """

    title: str
    experiments: tuple[Experiment, ...] = ()
    claims: tuple[Claim, ...] = ()
    blocks: Callable[[Tables], Sequence[Block]] = field(default=_no_blocks, repr=False)
    scenarios: Callable[[], Mapping[str, Scenario]] = field(default=_no_scenarios, repr=False)

    def shown(self, tables: Tables) -> tuple[Block, ...]:
        """Return the blocks of the chapter's section."""
        from ackclock.report.page import Block as Kinds

        with answer.of(self.blocks):
            return answer.every(
                self.blocks, self.blocks(tables), Kinds, "paragraphs, tables and figures of ackclock.report"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Headline:
    """Outcome of a study for readers without background knowledge.

    Parameters
    ----------
    sentence
        The outcome, in words that need no knowledge of TCP; numbers from the run.
    figure
        Figure that shows it.
    """

    sentence: str
    figure: Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """An input that was chosen to reproduce a published result.

    Parameters
    ----------
    name, value
        Name and value of the input.
    so_that
        The result to be reproduced.
    claims
        Claims that depend on it.
    """

    name: str
    value: str
    so_that: str
    claims: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """A published experiment that can be repeated.

    Parameters
    ----------
    name
        The word that the command line uses.
    title, summary
        One line, and a short paragraph.
    publications
        Publications that it reproduces.
    chapters
        Chapters in the order of the report.
    findings
        Function that turns a finished result into the main findings, as short sentences.
    headline
        Function that turns a finished result into an opening sentence and figure.
    fitted
        Inputs that were fitted, with the claims that rest on them.
    record
        File with the results of earlier runs; None: nothing is recorded.
    golden
        Function that prints the study's exact tables, if it has any.
    kernel
        Function that makes the part for the real kernel, called when it is needed.
    source
        Folder of a study that is not part of the package.
    sentences
        Every sentence, number, table and figure of its publications, with its outcome.
    runs
        Minimum number of seeds per cell, by scale. No criterion may need more.
    before
        Verdicts of an earlier version, and reasons for changes.
    edges
        Constants that we adopted, with their neighbours, ranked by what the publication leaves open.
    terms
        Codes and words used on its page, with explanations.
    """

    name: str
    title: str
    summary: str
    publications: tuple[Publication, ...]
    chapters: tuple[Chapter, ...]
    findings: Callable[[StudyResult], Sequence[str]] = field(repr=False)
    headline: Callable[[StudyResult], Headline] | None = field(default=None, repr=False)
    fitted: tuple[Fitted, ...] = ()
    record: Path | None = field(default=None, repr=False)
    golden: Callable[[], str] | None = field(default=None, repr=False)
    kernel: Callable[[], KernelPart] | None = field(default=None, repr=False)
    source: Path | None = field(default=None, repr=False)
    sentences: tuple[Sentence, ...] = field(default=(), repr=False)
    runs: Mapping[str, int] = field(default_factory=dict, repr=False)
    before: Before | None = field(default=None, repr=False)
    edges: tuple[Edge, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<Study {self.name}: {self.title}; {len(self.claims)} claims in {len(self.chapters)} chapters>"

    def _repr_html_(self) -> str:
        """HTML for notebooks: title and summary of the study."""
        return (
            _html.heading(self.title, f"study {self.name}, {len(self.claims)} claims")
            + f"<p>{_html.escape(self.summary)}</p>"
        )

    def __post_init__(self) -> None:
        for scale, seeds in self.runs.items():
            self._enough(seeds, f"{seeds} runs at scale {scale}")

    def _enough(self, seeds: int, found: str) -> None:
        """Refuse a number of runs too small for a claim ever to be decided."""
        for claim in self.claims:
            for half, criterion in claim.halves:
                if seeds < criterion.needs and not claim.not_comparable:
                    raise InputError(
                        f"claim {claim.id}, {half}: found {found}, which cannot decide it; allowed: {criterion.needs} or more"
                    )

    @property
    def named(self) -> str:
        """Name on the command line: the study's name or its folder."""
        if self.source is None:
            return self.name
        return str(self.source) if self.source.is_absolute() or self.source.parts[:1] == ("..",) else f"./{self.source}"

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """Experiments of all chapters, in order."""
        return tuple(experiment for chapter in self.chapters for experiment in chapter.experiments)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Claims of all chapters: T1, T2, ... before P1, P2, ..., with letters in order of first appearance."""
        found = [claim for chapter in self.chapters for claim in chapter.claims]
        letters = list(dict.fromkeys(_letters(claim.id) for claim in found))
        return tuple(
            sorted(found, key=lambda c: (letters.index(_letters(c.id)), int(c.id.lstrip(_letters(c.id)) or 0)))
        )

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Open questions of all experiments and claims, without duplicates."""
        of_claims = [r for claim in self.claims for _, criterion in claim.halves for r in criterion.reads]
        found = [r for experiment in self.experiments for r in experiment.reads]
        return tuple({r.name: r for r in (*found, *of_claims)}.values())

    def scenarios(self) -> dict[str, Scenario]:
        """Return the scenarios as written, by name."""
        from ackclock.scenario import Scenario

        found: dict[str, Scenario] = {}
        for chapter in self.chapters:
            with answer.of(chapter.scenarios):
                made = answer.one(chapter.scenarios, chapter.scenarios(), Mapping, "scenarios by name")
                answer.every(chapter.scenarios, made, str, "a text as the name of a scenario")
                answer.every(chapter.scenarios, made.values(), Scenario, "ackclock.Scenario")
                found.update(made)
        return found

    def opening(self, result: StudyResult) -> Headline | None:
        """Return the headline of the report; None if the study has none."""
        if self.headline is None:
            return None
        from ackclock.plot import Figure

        with answer.of(self.headline):
            found: Headline = answer.one(self.headline, self.headline(result), Headline, "ackclock.study.Headline")
            answer.one(self.headline, found.sentence, str, "a sentence")
            answer.one(self.headline, found.figure, Figure, "ackclock.plot.Figure")
        return found

    def found(self, result: StudyResult) -> tuple[str, ...]:
        """Return the main findings as sentences."""
        with answer.of(self.findings):
            return answer.every(self.findings, self.findings(result), str, "sentences")

    def recorded(self, scale: str) -> Record:
        """Return the record of an earlier run at this scale; empty if there is none."""
        found = read(self.record) if self.record is not None else {}
        return found.get(scale, Record())

    def show(self, tables: bool = False) -> str:
        """Return a description of the study in plain text.

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
        if self.readings:
            lines += ["", "Left open by the publications, read as (--readings runs the others)"]
            for r in self.readings:
                others = ", ".join(list(r.options)[1:])
                lines += _wrap(f"{r.question} {r.main}; others: {others}", first=f"  {r.name}: ", indent=" " * 6)
        paper = self.recorded("paper")
        lines += ["", "Claims (verdict recorded at paper scale)"]
        for claim in self.claims:
            lines += _wrap(claim.statement, first=f"  {claim.id:<4}", indent=" " * 6)
            lines.append(f"      {claim.place}; {paper.verdict(claim.id) or 'not recorded'}")
        return "\n".join(lines) + "\n"

    def run(
        self,
        scale: str = "quick",
        seeds: int | None = None,
        jobs: int = 1,
        progress: Progress | None = None,
        store: Store | None = None,
        executor: Executor | None = None,
        readings: bool = False,
        registered: str = "",
        held_out: bool = False,
        claims: Sequence[str] = (),
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
            Called with a text and the fraction completed.
        store
            Store for the runs; stored runs are not repeated.
        executor
            Executor of the runs that go into the store; None: threads.
        readings
            Whether to run the other readings of open questions as well.
        registered
            Hash of a registered plan, or a text that was fixed before, from which the seeds are derived.
        held_out
            Whether `registered` is such a text.
        claims
            Judge these claims only, and run only the experiments that they read; empty: all.

        Returns
        -------
        StudyResult
            Outcomes, tables, figures.
        """
        plan = Plan(
            scale=scale,
            seeds=seeds,
            jobs=jobs,
            progress=progress,
            store=store,
            executor=executor,
            name=self.name,
            salt=registered,
        )
        if seeds is not None:
            self._enough(seeds, f"--seeds {seeds}")
        started = time.perf_counter()
        if claims:
            tables = Lazy(self.experiments, plan)
            outcomes = tuple(claim.judge(tables) for claim in self.claims if claim.id in claims)
            ran = tables.ran
        else:
            ran = carry_out(self.experiments, plan.part(0.0, 0.2 if readings else 1.0, ""))
            outcomes = tuple(claim.judge(ran.tables) for claim in self.claims)
        curves = self._curves(ran, plan.part(0.2, 1.0, "readings")) if readings else ()
        plan.report("done", 1.0)
        return StudyResult(
            study=self,
            scale=scale,
            seeds=seeds,
            outcomes=outcomes,
            tables=ran.tables,
            runs=ran.runs,
            digest=ran.digest.hexdigest(),
            wall_s=time.perf_counter() - started,
            curves=curves,
            registered=registered,
            held_out=held_out,
            partial=bool(claims),
        )

    def _curves(self, ran: Ran, plan: Plan) -> tuple[Curve, ...]:
        """Run every experiment under each reading of its description, and judge every claim that depends on such an experiment."""
        tables: dict[tuple[str, Choice], Tables] = {}
        asked = [(e, choice) for e in self.experiments for choice in grid(e.reads)[1:]]
        total = sum(e.weight for e, _ in asked)
        done = 0.0
        for experiment, choice in asked:
            part = replace(plan.part(done / total, (done + experiment.weight) / total, ""), reading=dict(choice))
            made = carry_out((experiment,), part)
            done += experiment.weight
            tables[experiment.name, choice] = made.tables
            ran.add(made)
        curves = []
        for claim in self.claims:
            half = next((name for name, _ in claim.halves), None)
            if half is None or claim.not_comparable:
                continue
            criterion = dict(claim.halves)[half]
            used = self._used(criterion, ran.tables)
            readings = tuple({r.name: r for r in (*(r for e in used for r in e.reads), *criterion.reads)}.values())
            if readings:
                found = [self._specification(criterion, choice, used, ran.tables, tables) for choice in grid(readings)]
                curves.append(Curve(claim=claim, half=half, readings=readings, specifications=tuple(found)))
        return tuple(curves)

    def used_by(self, claims: Sequence[Claim], tables: Tables) -> list[Experiment]:
        """Return the experiments with tables read by these claims."""
        used = {e.name for claim in claims for _, criterion in claim.halves for e in self._used(criterion, tables)}
        return [e for e in self.experiments if e.name in used]

    def _used(self, criterion: Criterion, tables: Tables) -> list[Experiment]:
        looked_at = Read(tables)
        criterion.judge(looked_at)
        names = {table.partition(".")[0] for table in looked_at.seen}
        return [e for e in self.experiments if e.name in names]

    def _specification(
        self,
        criterion: Criterion,
        choice: Choice,
        used: Sequence[Experiment],
        main: Tables,
        others: Mapping[tuple[str, Choice], Tables],
    ) -> Specification:
        own = dict(main)
        for experiment in used:
            names = {r.name for r in experiment.reads}
            chosen = dict(choice)
            key = (
                next(c for c in grid(experiment.reads) if all(chosen[name] == option for name, option in c))
                if names
                else ()
            )
            own.update(others.get((experiment.name, key), {}))
        judged = criterion.judge(Read(own, dict(choice)))
        return Specification(choice=choice, verdict=judged.verdict, decisive=judged.decisive)


@dataclass(kw_only=True, slots=True)
class Ran:
    """Combined tables, digest and number of runs of all experiments."""

    tables: dict[str, pl.DataFrame]
    digest: hashlib._Hash
    runs: int

    def take(self, run: Callable[[Plan], Data], found: Data) -> None:
        """Add an experiment's results after checking their types."""
        import polars as pl

        data: Data = answer.one(run, found, Data, "ackclock.study.Data")
        tables: Mapping[str, pl.DataFrame] = answer.one(run, data.tables, Mapping, "tables by name")
        answer.every(run, tables, str, "a text as the name of a table")
        answer.every(run, tables.values(), pl.DataFrame, "tables of polars")
        self.tables.update(tables)
        self.runs += answer.one(run, data.runs, int, "a whole number of runs")
        for digest in answer.every(run, data.digests, str, "texts as digests"):
            self.digest.update(digest.encode())

    def add(self, other: Ran) -> None:
        """Count other runs without adding their tables."""
        self.runs += other.runs
        self.digest.update(other.digest.digest())


def carry_out(experiments: Sequence[Experiment], plan: Plan) -> Ran:
    """Run experiments in order, and return their combined results."""
    total = sum(e.weight for e in experiments)
    done = 0.0
    ran = Ran(tables={}, digest=hashlib.sha256(), runs=0)
    for experiment in experiments:
        part = plan.part(done / total, (done + experiment.weight) / total, experiment.name)
        done += experiment.weight
        with answer.of(experiment.run):
            ran.take(experiment.run, experiment.run(part))
    return ran


def _letters(claim: str) -> str:
    found = re.match(r"\D*", claim)
    assert found is not None
    return found[0]


def _wrap(text: str, *, indent: str = "", first: str | None = None) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 100, initial_indent=indent if first is None else first, subsequent_indent=indent)
