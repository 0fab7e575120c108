"""The content of a report: claims, sections of text, tables and figures, scenarios, versions. It is independent of studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ackclock.plot import Figure


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceRow:
    """One measured number for a claim, as text.

    Parameters
    ----------
    label
        Quantity that was measured.
    value, interval
        The number with its unit; its confidence interval.
    bound
        Range that the reading requires.
    verdict, symbol
        Verdict as a word and as a sign.
    seeds
        Number of independent samples; the report's column is headed "samples".
    """

    label: str
    value: str
    interval: str
    bound: str
    seeds: str
    verdict: str
    symbol: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HalfRow:
    """One half of a claim (its direction or its magnitude), as text.

    Parameters
    ----------
    name
        "direction" or "magnitude"; for a cause, the sentence "because ...".
    verdict, symbol
        Verdict of the evidence, as a word and as a sign.
    recorded
        Verdict of an earlier run.
    reading
        Interpretation of vague words as numbers.
    cell
        Decisive cell, and its description.
    bound_by
        Origin of the bound, in words.
    printed
        Published number, if there is one.
    decisive
        Index of the evidence that decides the verdict.
    intervention
        For a cause: how the arm without it differs.
    turns
        Neighbours of adopted constants with which the verdict is another, as text.
    """

    name: str
    verdict: str
    symbol: str
    recorded: str
    evidence: tuple[EvidenceRow, ...]
    decisive: int | None
    reading: str = ""
    cell: str = ""
    bound_by: str = ""
    printed: str = ""
    intervention: str = ""
    turns: str = ""

    @property
    def cause(self) -> bool:
        """Whether the half is a cause of the claim rather than its direction or magnitude."""
        return self.name not in ("direction", "magnitude")

    @property
    def about(self) -> str:
        """Text shown instead of the claim in rows after its first."""
        return self.name if self.cause else f"How much: {self.printed or 'a bound of ours'}"

    @property
    def heading(self) -> str:
        """The question this half of the page answers."""
        return {"direction": "What it says", "magnitude": "How much"}.get(self.name, f"Why: {self.name}")

    @property
    def slug(self) -> str:
        """Verdict as a CSS class."""
        return self.verdict.replace(" ", "-")

    @property
    def shown(self) -> EvidenceRow | None:
        """Evidence that determines the verdict; None if there is none."""
        return None if self.decisive is None else self.evidence[self.decisive]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimRow:
    """A claim with its verdicts, as text.

    Parameters
    ----------
    id, place
        Claim name in the study, and its position in the publication.
    statement
        The claim in words.
    reason
        Reason for the verdict, if it needs one.
    halves
        Halves of the claim; the first one's verdict is the claim's.
    fitted
        Fitted inputs on which the claim rests.
    readings
        Outcome under other readings, in a sentence.
    guesses
        Causes that were not tested, a sentence each.
    """

    id: str
    place: str
    statement: str
    reason: str
    halves: tuple[HalfRow, ...]
    fitted: tuple[str, ...] = ()
    readings: str = ""
    guesses: tuple[str, ...] = ()

    @property
    def main(self) -> HalfRow:
        """Half whose verdict is the claim's."""
        return self.halves[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prose:
    """A paragraph of marked-up text written by ackclock, never by a user.

    Parameters
    ----------
    html
        The text.
    """

    html: str


def paragraph(text: str) -> Prose:
    """A paragraph of plain text."""
    return Prose(html=f"<p>{escape(text, quote=False)}</p>")


def items(texts: Sequence[str]) -> Prose:
    """A list of plain texts."""
    return Prose(html="<ul>" + "".join(f"<li>{escape(t, quote=False)}</li>" for t in texts) + "</ul>")


LONG = 40
"""Number of rows above which a table is shown folded."""

SHORT = 8
"""Maximum number of rows in a table that may represent a section without a figure."""

MANY = 20
"""Number of claims above which parts of the page are folded, to keep it readable in ten minutes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableCell:
    """A cell of a table.

    Parameters
    ----------
    text
        Content of the cell.
    kind
        "head" for a row's name, "differs" and "agrees" for comparisons, "faint" for what matters less, "text" for sentences, else
        empty.
    span
        Number of rows that the cell covers.
    """

    text: str
    kind: str = ""
    span: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table.

    Parameters
    ----------
    caption
        Main point, and how to read the table.
    header
        Column names with units.
    rows
        Cells; plain strings are ordinary cells.
    dense
        Narrow cells of equal width, for ack-by-ack tables.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell | str, ...], ...]
    dense: bool = False

    @property
    def folds(self) -> bool:
        """Whether the table is long enough to be folded initially."""
        return len(self.rows) > LONG

    @property
    def cells(self) -> list[list[TableCell]]:
        """Every cell as a `TableCell`."""
        return [[c if isinstance(c, TableCell) else TableCell(text=c) for c in row] for row in self.rows]


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """A figure drawn by the reader's browser, with zoom and hover. Figures that share a time axis move together.

    Parameters
    ----------
    name, title, caption
        As for a figure.
    figure
        Returns the plotly figure (`data`, `layout`).
    """

    name: str
    title: str
    caption: str
    figure: Callable[[], dict[str, Any]] = field(repr=False)


Block = Prose | Table | Figure | Live


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A heading and its contents.

    Parameters
    ----------
    title
        The heading.
    blocks
        Contents of the section, in order.
    claims
        Ids of the claims that the section discusses.
    """

    title: str
    blocks: tuple[Block, ...]
    claims: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Anchor of the section, for links."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())

    @property
    def shown(self) -> int:
        """Number of unfolded blocks in a page with one picture per section: those up to the first figure or, without a
        figure, the first block if it is short.
        """
        figures = [i for i, block in enumerate(self.blocks) if isinstance(block, Figure)]
        if figures:
            return figures[0] + 1
        first = self.blocks[0] if self.blocks else None
        return 0 if isinstance(first, Table) and len(first.rows) > SHORT else 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A whole report.

    Parameters
    ----------
    title, summary
        One line, one paragraph.
    conclusion
        The outcome in one sentence, to begin with.
    opening
        Figure that shows the outcome.
    findings
        Main findings, one sentence each.
    distrust
        What should not be relied on, as short sentences.
    terms
        Codes and words of the page, with explanations.
    publications
        Publications that are reproduced.
    claims
        The claims table.
    sections
        The body.
    scenarios
        Name -> TOML.
    facts
        Versions, seeds, digest: name -> value.
    command
        Command that reproduces the result.
    beside
        Other files in the page's folder.
    """

    title: str
    summary: str
    conclusion: str = ""
    opening: Figure | None = None
    findings: tuple[str, ...] = ()
    distrust: tuple[str, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    publications: tuple[str, ...] = ()
    claims: tuple[ClaimRow, ...] = ()
    sections: tuple[Section, ...] = ()
    scenarios: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    beside: str = "The folder figures/ has the numbers behind each figure, the folder tables/ whole tables."

    @property
    def figures(self) -> Sequence[Figure]:
        """Return every figure once, in order."""
        own = [b for s in self.sections for b in s.blocks if isinstance(b, Figure)]
        opening = [] if self.opening is None else [self.opening]
        return list({figure.name: figure for figure in (*opening, *own)}.values())

    def claim(self, name: str) -> ClaimRow:
        """Return one claim by its id."""
        return next(claim for claim in self.claims if claim.id == name)

    @property
    def short(self) -> bool:
        """Whether there are too many claims to show all pictures, so that each section shows one and folds the rest."""
        return len(self.claims) > MANY

    @property
    def tally(self) -> list[tuple[str, str, int]]:
        """Number of claims with each verdict: verdict, symbol, number."""
        return _count([claim.main for claim in self.claims])

    @property
    def magnitudes(self) -> list[tuple[str, str, int]]:
        """Number of magnitudes with each verdict."""
        return _count([half for claim in self.claims for half in claim.halves[1:] if not half.cause])


def _count(halves: Sequence[HalfRow]) -> list[tuple[str, str, int]]:
    counts: dict[tuple[str, str], int] = {}
    for half in halves:
        key = (half.verdict, half.symbol)
        counts[key] = counts.get(key, 0) + 1
    order = ["holds", "negligible", "refuted", "fails", "depends", "undecided", "not comparable"]
    return sorted(((v, s, n) for (v, s), n in counts.items()), key=lambda row: order.index(row[0]))
