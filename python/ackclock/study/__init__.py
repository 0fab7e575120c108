"""Claims, verdicts and studies: the machinery that every study shares."""

from ackclock.study.claim import Claim, Evidence, Expected, Outcome, Tables, conjunction
from ackclock.study.plan import SCALES, Plan, Progress
from ackclock.study.result import StudyResult
from ackclock.study.study import Data, Experiment, Publication, Study
from ackclock.study.verdict import Range, Verdict, above, at_least, at_most, below, between, exactly, number

__all__ = [
    "SCALES",
    "Claim",
    "Data",
    "Evidence",
    "Expected",
    "Experiment",
    "Outcome",
    "Plan",
    "Progress",
    "Publication",
    "Range",
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
]
