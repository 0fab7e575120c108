"""One page that links the reports of several studies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ackclock import report
from ackclock._files import staged
from ackclock.errors import InputError
from ackclock.study.claim import Outcome
from ackclock.study.result import StudyResult, claim_row
from ackclock.study.verdict import Verdict

_VERDICTS = (Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED, Verdict.NOT_COMPARABLE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What the page says about one study; its tables need not be kept for it.

    Parameters
    ----------
    name, title, summary
        Of the study.
    findings
        What to take home.
    outcomes
        Its claims, judged.
    unexpected
        Verdicts that differ from those recorded.
    runs, wall_s, digest
        How much was run, for how long, and what it came to.
    problem
        Why the study could not be run, if it could not.
    """

    name: str
    title: str
    summary: str = ""
    findings: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    unexpected: tuple[str, ...] = ()
    runs: int = 0
    wall_s: float = 0.0
    digest: str = ""
    problem: str = ""

    @classmethod
    def of(cls, result: StudyResult) -> Entry:
        """The entry of a finished study."""
        return cls(
            name=result.study.name,
            title=result.study.title,
            summary=result.study.summary,
            findings=tuple(result.study.findings(result)),
            outcomes=result.outcomes,
            unexpected=tuple(result.unexpected),
            runs=result.runs,
            wall_s=result.wall_s,
            digest=result.digest,
        )

    def count(self, verdict: Verdict) -> int:
        """Claims with this verdict."""
        return sum(o.verdict is verdict for o in self.outcomes)


def page(entries: Sequence[Entry], *, scale: str, command: str) -> report.Page:
    """The page as a value."""
    ran = [e for e in entries if not e.problem]
    total = {verdict: sum(e.count(verdict) for e in ran) for verdict in _VERDICTS}
    told = ", ".join(f"{n} {verdict}" for verdict, n in total.items() if n)
    claims = sum(total.values())
    return report.Page(
        title=f"All studies, scale {scale}",
        summary=f"{claims} claims: {told}. {sum(e.runs for e in ran):,} runs." if claims else "No study could be run.",
        sections=(report.Section(title="Studies", blocks=(_table(entries),)), *(_section(e) for e in entries)),
        facts={f"digest of {e.name}": e.digest for e in ran},
        command=command,
        beside="Each study has its own report, with the numbers behind its figures beside it.",
    )


def write(entries: Sequence[Entry], folder: Path, *, scale: str, command: str) -> Path:
    """Write `report.html`, which links `<study>/report.html`.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    try:
        with staged(folder) as part:
            report.write(page(entries, scale=scale, command=command), part / "report.html")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({(error.strerror or str(error)).lower()})") from None
    return folder / "report.html"


def _table(entries: Sequence[Entry]) -> report.Table:
    rows: list[tuple[report.Cell | str, ...]] = []
    for e in entries:
        head = report.Cell(text=e.name, kind="head")
        if e.problem:
            rows.append((head, *("–" for _ in _VERDICTS), "–", "–", report.Cell(text="not run", kind="differs")))
            continue
        recorded = report.Cell(text="all", kind="agrees")
        if e.unexpected:
            recorded = report.Cell(text=f"{len(e.unexpected)} not", kind="differs")
        counts = (str(e.count(v)) for v in _VERDICTS)
        rows.append((head, *counts, f"{e.runs:,}", f"{e.wall_s:,.0f} s", recorded))
    return report.Table(
        caption="Claims of each study by verdict.",
        header=("study", *(f"{v.symbol} {v}" for v in _VERDICTS), "runs", "wall time", "as recorded"),
        rows=tuple(rows),
    )


def _section(e: Entry) -> report.Section:
    if e.problem:
        return report.Section(title=e.name, blocks=(report.Prose(html=f"<p>Not run: {escape(e.problem)}</p>"),))
    link = f'<p><a href="{escape(e.name)}/report.html">{escape(e.title)}</a></p>'
    findings = "".join(f"<li>{escape(text)}</li>" for text in e.findings)
    prose = f"{link}<p>{escape(e.summary)}</p>" + (f'<ul class="findings">{findings}</ul>' if findings else "")
    rows: list[tuple[report.Cell | str, ...]] = []
    for outcome in e.outcomes:
        row = claim_row(outcome)
        shown = row.shown
        differs = any(line.startswith(f"{row.id}:") for line in e.unexpected)
        verdict = f"{row.symbol} {row.verdict}" + (f" (recorded: {row.expected})" if differs else "")
        rows.append(
            (
                report.Cell(text=row.id, kind="head"),
                report.Cell(text=verdict, kind="differs" if differs else ""),
                f"{shown.value} ({shown.interval})" if shown else "–",
                report.Cell(text=row.statement, kind="text"),
            )
        )
    claims = report.Table(
        caption="Claims; the report of the study has the evidence.",
        header=("claim", "verdict", "measured (95 % interval)", "statement"),
        rows=tuple(rows),
    )
    return report.Section(title=e.name, blocks=(report.Prose(html=prose), claims))
