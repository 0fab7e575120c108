"""Every sentence, number, table and figure in a publication, and its coverage: by a claim, by a figure, or not at all
for a stated reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ackclock.errors import InputError
from ackclock.study.claim import DIRECTION, MAGNITUDE, Claim
from ackclock.study.record import Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A statement of a publication.

    Parameters
    ----------
    source
        Publication.
    place
        Position in it: a section, a slide, a figure.
    says
        The statement, in our words.
    claims
        Claims that test it.
    beside
        Other evidence: a figure, a table, a reading.
    none
        Why there is neither a claim nor other evidence.
    """

    source: str
    place: str
    says: str
    claims: tuple[str, ...] = ()
    beside: str = ""
    none: str = ""

    def __post_init__(self) -> None:
        if bool(self.claims or self.beside) == bool(self.none):
            raise InputError(
                f"sentence {self.says!r}: found {'both' if self.none else 'neither'}; allowed: claims or what shows it, or a reason why none"
            )


def read(text: str) -> tuple[Sentence, ...]:
    r"""Read sentences from a table: a line "= SOURCE", then a line "place | words | claims | other evidence" for each
    sentence.

    If a sentence is not tested, the last column is "none: REASON".

    Examples
    --------
    >>> first, second = read("= A paper\npage 2 | it is faster | A1 A2 | a figure\npage 3 | thanks | | none: no statement")
    >>> (first.source, first.claims, first.beside, second.none)
    ('A paper', ('A1', 'A2'), 'a figure', 'no statement')
    """
    found = []
    source = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("= "):
            source = line[2:]
            continue
        place, says, claims, *rest = (part.strip() for part in line.split("|"))
        last = "".join(rest)
        none = last.removeprefix("none: ") if last.startswith("none: ") else ""
        beside = "" if none else last
        found.append(
            Sentence(source=source, place=place, says=says, claims=tuple(claims.split()), beside=beside, none=none)
        )
    return tuple(found)


def told(verdicts: Iterable[tuple[str, ...]]) -> str:
    """Return the verdicts at both scales, as a single word if they agree."""
    return "; ".join(
        words[0] if len(set(words)) == 1 else " / ".join(word or "–" for word in words)
        for words in verdicts
        if any(words)
    )


MOST = 4
"""Maximum number of values shown in a cause's row; the report shows the others."""


def measured(record: Record, claim: str, half: str) -> str:
    """Return the deciding numbers of a half with their intervals; empty if it is not recorded."""
    found = record.numbers(claim, half)
    more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + more


def answered(records: tuple[Record, ...], claim: str, half: str, reading: str = "") -> str:
    """Return the verdicts at all scales, and the numbers from the largest scale that has any."""
    words = told([tuple(str(r.verdicts(claim).get(half) or "") for r in records)])
    numbers = next(filter(None, (measured(r, claim, half) for r in reversed(records))), "")
    asked = f"{reading}: " if reading and numbers else ""
    return ", ".join(filter(None, (words or "not recorded yet", asked + numbers)))


def causes_of(claim: Claim, records: tuple[Record, ...]) -> list[str]:
    """Return a claim's causes, each with its verdict and deciding numbers, and the guesses about it."""
    name = claim.id
    causes = []
    if claim.intervention and claim.direction:
        causes.append(
            f"{name} is itself an intervention: {answered(records, name, DIRECTION, claim.direction.reading)} (changed: {claim.intervention})"
        )
    for cause in claim.causes:
        answer = answered(records, name, cause.name, cause.criterion.reading)
        causes.append(f"{name} because {cause.because}: {answer} (changed: {cause.intervention})")
    return causes + [f"{name}, a guess: {guess}" for guess in claim.guesses]


def row(
    sentence: Sentence,
    claims: dict[str, Claim],
    records: tuple[Record, ...],
    above: set[str],
    turned: Mapping[tuple[str, str], str],
) -> tuple[str, str, str, str, str]:
    """Return a sentence's position, wording, claims, verdicts and causes as a row of the document's table. `above` is
    the set of claims with causes listed in an earlier row; this row's claims are added to it. `turned` tells by claim
    and half with which neighbouring constant the verdict changes.
    """
    found, causes = [], []
    for name in sentence.claims:
        claim = claims[name]
        halves = [tuple(str(r.verdicts(name).get(half) or "") for r in records) for half in (DIRECTION, MAGNITUDE)]
        direction, magnitude = (told([words]) for words in halves)
        if claim.not_comparable:
            direction, magnitude = "not comparable", ""
        direction, magnitude = (
            f"{word} ({turned[name, half]})" if word and (name, half) in turned else word
            for word, half in ((direction, DIRECTION), (magnitude, MAGNITUDE))
        )
        much = f"how much {magnitude}" if magnitude else ""
        found.append(f"{name} " + (", ".join(filter(None, (direction, much))) or "not recorded yet"))
        told_here = causes_of(claim, records)
        causes += [f"{name}: above"] if told_here and name in above else told_here
        above.add(name)
    what = "; ".join(
        filter(None, (", ".join(sentence.claims), sentence.beside, f"none: {sentence.none}" if sentence.none else ""))
    )
    return sentence.place, sentence.says, what, "; ".join(found), "; ".join(causes)


OWN = "Sentences that are claims, word for word"

NONE_TURNED: Mapping[tuple[str, str], str] = {}
"""No verdict that changes with a neighbouring constant."""


def table(
    sentences: Iterable[Sentence],
    claims: Iterable[Claim],
    records: tuple[Record, ...],
    turned: Mapping[tuple[str, str], str] = NONE_TURNED,
) -> str:
    """Return the sentences of each publication as a Markdown table, followed by the claims that do not belong to any
    sentence. Verdicts that change with a neighbouring constant are told as such.
    """
    known = {claim.id: claim for claim in claims}
    sentences = tuple(sentences)
    named = {name for sentence in sentences for name in sentence.claims}
    own = (
        Sentence(source=OWN, place=c.place, says=c.statement, claims=(c.id,))
        for c in known.values()
        if c.id not in named
    )
    lines: list[str] = []
    source = ""
    above: set[str] = set()
    for sentence in (*sentences, *own):
        if sentence.source != source:
            source = sentence.source
            lines += [
                "",
                f"{source}:",
                "",
                "| where | what | claim, or why none | verdict | cause |",
                "| --- | --- | --- | --- | --- |",
            ]
        lines.append("| " + " | ".join(row(sentence, known, records, above, turned)) + " |")
    return "\n".join(lines[1:])
