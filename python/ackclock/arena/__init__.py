"""The arena: controllers by different authors on the same randomly drawn scenarios, so that no controller can be
tuned for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ackclock.arena.game import Entry, Plan, Row, Standing, Table, play
    from ackclock.arena.task import TIERS, Draw, Family, Task, built_in, drawn, load, read
    from ackclock.arena.training import TaskEnv, paths, steered

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
    "TaskEnv",
    "built_in",
    "drawn",
    "load",
    "paths",
    "play",
    "read",
    "steered",
]

_OF_GAME = frozenset({"Entry", "Plan", "Row", "Standing", "Table", "play"})
_OF_TRAINING = frozenset({"TaskEnv", "paths", "steered"})
"""Names that need Gymnasium."""


def __getattr__(name: str) -> Any:
    """Load names on first use (PEP 562), because processes for user code need none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'ackclock.arena' has no attribute {name!r}")
    from importlib import import_module

    room = "game" if name in _OF_GAME else "training" if name in _OF_TRAINING else "task"
    value = getattr(import_module(f"ackclock.arena.{room}"), name)
    globals()[name] = value
    return value
