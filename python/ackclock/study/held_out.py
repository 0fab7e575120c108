"""Held-out seeds: a study rerun with seeds never used before, compared with its record.

`ackclock study run NAME --held-out TEXT` derives the seeds from a text fixed in advance, such as the first eight
digits of the commit that last changed claims or measures, optionally with -1 or -2 appended. The results are stored
in `held_out.json` beside the record, and the report shows both verdicts of each half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ackclock import report
from ackclock.judge.bound import Verdict
from ackclock.study.record import Record, read, write

if TYPE_CHECKING:
    from ackclock.study.result import StudyResult
    from ackclock.study.study import Study

FILE = "held_out.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Half:
    """One half of a claim, with its recorded verdict and the verdicts under other seeds."""

    claim: str
    half: str
    recorded: Verdict
    others: Mapping[str, Verdict]

    @property
    def kept(self) -> bool:
        """Whether every set of seeds yields the recorded verdict."""
        return all(word is self.recorded for word in self.others.values())


def file(study: Study) -> Path | None:
    """Return the file where a study stores results for other seeds; None if it has no record."""
    return None if study.record is None else study.record.with_name(FILE)


def kept(study: Study, scale: str) -> dict[str, Record]:
    """Return the records for other seeds at a scale, by the text from which the seeds were derived."""
    path = file(study)
    if path is None:
        return {}
    return {name.partition(" ")[2]: one for name, one in read(path).items() if name.partition(" ")[0] == scale}


def halves(study: Study, scale: str, others: Mapping[str, Record] | None = None) -> Iterator[Half]:
    """Yield every recorded half for which other seeds have a verdict."""
    recorded, found = study.recorded(scale), kept(study, scale) if others is None else others
    for claim in recorded.claims:
        for half, word in recorded.verdicts(claim).items():
            of = {salt: words[half] for salt, one in found.items() if half in (words := one.verdicts(claim))}
            if of and word is not Verdict.NOT_COMPARABLE:
                yield Half(claim=claim, half=half, recorded=word, others=of)


def take(result: StudyResult, salt: str, *, version: str, date: str) -> Path | None:
    """Write the results of a run with other seeds; None if the study has no record."""
    path = file(result.study)
    if path is not None:
        write(path, f"{result.scale} {salt}", result.outcomes, version=version, date=date)
    return path


def told(found: list[Half]) -> str:
    """Return a sentence with the number of verdicts confirmed."""
    same = [
        sum(h.others[salt] is h.recorded for h in found) for salt in dict.fromkeys(s for h in found for s in h.others)
    ]
    return f"{' and '.join(f'{n} of {len(found)}' for n in same)} halves keep their recorded word"


def section(study: Study, scale: str) -> report.Section | None:
    """Return a report section with each half's recorded verdict and those under other seeds; None if none were run."""
    found = list(halves(study, scale))
    if not found:
        return None
    salts = list(dict.fromkeys(salt for half in found for salt in half.others))
    changed = [half for half in found if not half.kept]
    rows: tuple[tuple[report.TableCell | str, ...], ...] = tuple(
        (
            report.TableCell(text=half.claim, kind="head"),
            report.TableCell(text=half.half, kind="text"),
            f"{half.recorded.symbol} {half.recorded}",
            *(
                report.TableCell(text=f"{word.symbol} {word}", kind="" if word is half.recorded else "differs")
                for word in (half.others.get(salt) for salt in salts)
                if word is not None
            ),
        )
        for half in sorted(found, key=lambda half: half.kept)
    )
    listed = ", ".join(f"{half.claim} ({half.half})" for half in changed) or "none"
    return report.Section(
        title="Other seeds",
        blocks=(
            report.paragraph(
                f"The study was run again with seeds that follow from texts fixed beforehand: {told(found)}. A word that does not stand is one of the seeds: {listed}."
            ),
            report.Table(
                caption=f"Words of the record at {scale} scale, and with other seeds.",
                header=("claim", "half", "recorded", *salts),
                rows=rows,
            ),
        ),
    )
