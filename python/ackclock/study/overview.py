"""One page that links the reports of several studies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from ackclock import report
from ackclock._files import staged
from ackclock.judge.bound import Verdict
from ackclock.study.claim import Outcome
from ackclock.study.result import StudyResult
from ackclock.study.study import Headline

_VERDICTS = tuple(Verdict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """Entry for one study on the page, without the study's tables.

    Parameters
    ----------
    name, title, summary
        Name, title and summary of the study.
    headline
        Opening sentence and figure.
    rows, outcomes
        Its claims, as text and judged.
    unexpected, drifted
        Verdicts that differ from those recorded; values that left their recorded interval.
    runs, wall_s, digest
        Number of runs, duration and digest.
    problem
        Why the study could not be run; empty if it could.
    """

    name: str
    title: str
    summary: str = ""
    headline: Headline | None = None
    rows: tuple[report.ClaimRow, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    unexpected: tuple[str, ...] = ()
    drifted: tuple[str, ...] = ()
    runs: int = 0
    wall_s: float = 0.0
    digest: str = ""
    problem: str = ""

    @classmethod
    def of(cls, result: StudyResult) -> Entry:
        """Return the entry of a finished study."""
        return cls(
            name=result.study.name,
            title=result.study.title,
            summary=result.study.summary,
            headline=result.study.opening(result),
            rows=tuple(result.row(o) for o in result.outcomes),
            outcomes=result.outcomes,
            unexpected=tuple(result.unexpected),
            drifted=tuple(result.drifted),
            runs=result.runs,
            wall_s=result.wall_s,
            digest=result.digest,
        )

    def count(self, verdict: Verdict) -> int:
        """Return the number of claims with this verdict."""
        return sum(o.verdict is verdict for o in self.outcomes)


def page(entries: Sequence[Entry], *, scale: str, command: str) -> report.Page:
    """Build the page, without writing it."""
    ran = [e for e in entries if not e.problem]
    total = {verdict: sum(e.count(verdict) for e in ran) for verdict in _VERDICTS}
    told = ", ".join(f"{n} {verdict}" for verdict, n in total.items() if n)
    claims = sum(total.values())
    return report.Page(
        title=f"All studies, scale {scale}",
        summary=f"{claims} claims: {told}. {sum(e.runs for e in ran):,} runs." if claims else "No study could be run.",
        sections=(
            *(_opening(e) for e in entries),
            report.Section(title="Claims by verdict", blocks=(_table(entries),)),
            *(_section(e) for e in ran),
        ),
        facts={f"digest of {e.name}": e.digest for e in ran},
        command=command,
        beside="Each study has its own report, with the numbers behind its figures beside it.",
    )


def write(entries: Sequence[Entry], folder: Path, *, scale: str, command: str) -> Path:
    """Write `report.html`, which links to each `<study>/report.html`.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    with staged(folder, marks=("report.html",)) as part:
        made = page(entries, scale=scale, command=command)
        drawn = {f.name: files["svg"] for f in made.figures if (files := f.write(part / "figures"))}
        report.write(made, part / "report.html", drawn=drawn)
    return folder / "report.html"


def _table(entries: Sequence[Entry]) -> report.Table:
    rows: list[tuple[report.TableCell | str, ...]] = []
    for e in entries:
        head = report.TableCell(text=e.name, kind="head")
        if e.problem:
            rows.append((head, *("–" for _ in _VERDICTS), "–", "–", report.TableCell(text="not run", kind="differs")))
            continue
        recorded = report.TableCell(text="all", kind="agrees")
        if e.unexpected:
            recorded = report.TableCell(text=f"{len(e.unexpected)} not", kind="differs")
        counts = (str(e.count(v)) for v in _VERDICTS)
        rows.append((head, *counts, f"{e.runs:,}", f"{e.wall_s:,.0f} s", recorded))
    return report.Table(
        caption="Claims of each study by verdict.",
        header=("study", *(f"{v.symbol} {v}" for v in _VERDICTS), "runs", "wall time", "as recorded"),
        rows=tuple(rows),
    )


def _link(e: Entry) -> str:
    return f'<a href="{escape(e.name)}/report.html">{escape(e.title)}</a>'


def _opening(e: Entry) -> report.Section:
    """Return a study's introduction for readers without background knowledge."""
    if e.problem:
        return report.Section(title=e.name, blocks=(report.Prose(html=f"<p>Not run: {escape(e.problem)}</p>"),))
    if e.headline is None:
        return report.Section(title=e.name, blocks=(report.Prose(html=f"<p>{_link(e)}</p><p>{escape(e.summary)}</p>"),))
    sentence = report.Prose(html=f'<p class="conclusion">{escape(e.headline.sentence)}</p><p>{_link(e)}</p>')
    figure = replace(e.headline.figure, name=f"{e.name}-{e.headline.figure.name}")
    return report.Section(title=e.name, blocks=(sentence, figure))


def _section(e: Entry) -> report.Section:
    rows: list[tuple[report.TableCell | str, ...]] = []
    for row in e.rows:
        for i, half in enumerate(row.halves):
            shown = half.shown
            differs = half.verdict != half.recorded
            verdict = f"{half.symbol} {half.verdict}" + (f" (recorded: {half.recorded})" if differs else "")
            rows.append(
                (
                    report.TableCell(text="" if i else row.id, kind="head"),
                    report.TableCell(text=verdict, kind="differs" if differs else ""),
                    f"{shown.value} ({shown.interval})" if shown else "–",
                    report.TableCell(text=half.about if i else row.statement, kind="text"),
                )
            )
    claims = report.Table(
        caption="Claims; the report of the study has the evidence.",
        header=("claim", "verdict", "measured (95 % interval)", "statement"),
        rows=tuple(rows),
    )
    drifted = [report.items([f"Drifted from the record: {line}" for line in e.drifted])] if e.drifted else []
    return report.Section(title=f"Claims of {e.name}", blocks=(claims, *drifted))
