"""The worst case found by a search, which may not be in any list of situations. Row x5."""

from __future__ import annotations

from ackclock.evaluate.situation import Row

ID = "x5"

ROWS = (
    Row(
        id=ID, section="", level="", title="The worst case of a search",
        quote="not in the RFC: situations that were chosen beforehand can miss the one in which a controller fails",
        needs=("the simulator: `ackclock attack` looks for it",),
        note="Reported, not judged: a search finds one number, without an interval. The same search with CUBIC is beside it.",
    ),
)  # fmt: skip
