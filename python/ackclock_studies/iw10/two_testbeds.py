"""Two testbeds that need not agree (I29): no measurements here, only the results of other readings of the set-up."""

from __future__ import annotations

from ackclock.study import Chapter
from ackclock.study.table import declared

CHAPTER = Chapter(
    **declared(__name__),
)
