"""Two testbeds that need not agree (I29): nothing to measure here but what the other readings of the set-up give."""

from __future__ import annotations

from ackclock.study import Chapter
from ackclock.study.table import declared

CHAPTER = Chapter(
    **declared(__name__),
)
