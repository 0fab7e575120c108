"""Claims, verdicts and studies: the parts that all studies share."""

from ackclock.judge.bound import Bound, Verdict, above, at_least, at_most, below, between, exactly, number, same
from ackclock.judge.evidence import Evidence, Quantity, conjunction
from ackclock.study.claim import Asked, Cause, Claim, Criterion, Outcome, Stated, Tables
from ackclock.study.plan import SCALES, Plan, Progress
from ackclock.study.reading import Reading
from ackclock.study.result import StudyResult
from ackclock.study.study import Chapter, Data, Experiment, Fitted, Headline, Publication, Study

__all__ = [
    "SCALES",
    "Asked",
    "Bound",
    "Cause",
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
    "Quantity",
    "Reading",
    "Stated",
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
