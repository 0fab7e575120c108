"""The arena: controllers of anybody on the same drawn scenarios, where none of them can be fitted to what is asked."""

from ackclock.arena.play import Entry, Plan, Row, Standing, Table, play
from ackclock.arena.task import TIERS, Draw, Family, Task, built_in, drawn, load, read

__all__ = [
    "TIERS",
    "Draw",
    "Entry",
    "Family",
    "Plan",
    "Row",
    "Standing",
    "Table",
    "Task",
    "built_in",
    "drawn",
    "load",
    "play",
    "read",
]
