"""Claims, verdicts and studies: the machinery that every study shares."""

from ackclock.study.claim import Claim, Criterion, Outcome, Tables
from ackclock.study.evidence import Evidence, conjunction
from ackclock.study.plan import SCALES, Plan, Progress
from ackclock.study.reading import Reading
from ackclock.study.result import StudyResult
from ackclock.study.study import Chapter, Data, Experiment, Fitted, Headline, Publication, Study
from ackclock.study.verdict import Range, Verdict, above, at_least, at_most, below, between, exactly, number, same

__all__ = [
    "SCALES",
    "Chapter",
    "Claim",
    "Criterion",
    "Data",
    "Evidence",
    "Experiment",
    "Fitted",
    "Headline",
    "Outcome",
    "Plan",
    "Progress",
    "Publication",
    "Range",
    "Reading",
    "Study",
    "StudyResult",
    "Tables",
    "Verdict",
    "above",
    "at_least",
    "at_most",
    "below",
    "between",
    "conjunction",
    "exactly",
    "number",
    "same",
]
