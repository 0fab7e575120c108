"""The requirements of RFC 9743 for a new congestion controller, as runs that are judged against CUBIC in its place.

The RFC gives no thresholds and is not a checklist. Margins, paths and durations are our choice, as the report says.
"""

from ackclock.evaluate.decide import Decided, Within
from ackclock.evaluate.harness import Evaluation, evaluate
from ackclock.evaluate.plan import Plan
from ackclock.evaluate.rows import rows
from ackclock.evaluate.situation import PLACE, Arm, Cell, Measure, Row
from ackclock.evaluate.verdict import Judged, RowVerdict, Verdict

__all__ = [
    "PLACE",
    "Arm",
    "Cell",
    "Decided",
    "Evaluation",
    "Judged",
    "Measure",
    "Plan",
    "Row",
    "RowVerdict",
    "Verdict",
    "Within",
    "evaluate",
    "rows",
]
