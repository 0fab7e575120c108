"""Verdicts that differ from an earlier version's, each with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ackclock.study.claim import DIRECTION, MAGNITUDE, Claim
from ackclock.study.record import Record


def told(claim: Claim, records: tuple[Record, ...]) -> str:
    """Return a claim's verdicts at all scales, such as "fails" or "holds / undecided, how much fails"; empty if nothing
    is recorded.
    """
    halves = {half: [str(r.verdicts(claim.id).get(half) or "") for r in records] for half in (DIRECTION, MAGNITUDE)}
    if claim.not_comparable:
        halves = {DIRECTION: ["not comparable"], MAGNITUDE: [""]}
    return ", ".join(
        ("how much " if half == MAGNITUDE else "")
        + (words[0] if len(set(words)) == 1 else " / ".join(word or "–" for word in words))
        for half, words in halves.items()
        if any(words)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Before:
    """An earlier version's verdicts, and reasons for later changes.

    Parameters
    ----------
    commit
        Commit of that version.
    verdicts
        A line "claim | verdicts" for each claim, at quick scale, and after a slash at paper scale where they differ.
    why
        A line "claim | sentence" for each claim whose verdicts changed, and for each that is new.
    """

    commit: str
    verdicts: str
    why: str

    @staticmethod
    def _read(text: str) -> dict[str, str]:
        pairs = (line.partition("|") for line in filter(None, map(str.strip, text.splitlines())))
        return {name.strip(): rest.strip() for name, _, rest in pairs}

    def rows(self, claims: Iterable[Claim], records: tuple[Record, ...]) -> Iterator[tuple[str, str, str, str]]:
        """Yield claim, former verdicts, current verdicts and reason; a missing reason is empty."""
        before, why = self._read(self.verdicts), self._read(self.why)
        for claim in claims:
            was, now = before.get(claim.id, "not asked"), told(claim, records)
            if was != now:
                yield claim.id, was, now, why.get(claim.id, "")

    def missing(self, claims: Iterable[Claim], records: tuple[Record, ...]) -> tuple[set[str], set[str]]:
        """Return the claims that changed without a stated reason, and the claims with a reason that did not change."""
        changed = {name: reason for name, _, _, reason in self.rows(claims, records)}
        return {name for name, reason in changed.items() if not reason}, set(self._read(self.why)) - set(changed)

    def table(self, claims: Iterable[Claim], records: tuple[Record, ...]) -> str:
        """Return a Markdown table."""
        lines = ["| claim | was | is | why |", "| --- | --- | --- | --- |"]
        return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in self.rows(claims, records)])
