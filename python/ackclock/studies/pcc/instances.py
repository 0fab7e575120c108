"""What the publication says of machines and scripts, which nothing here can be held against (C7, C8, C16)."""

from __future__ import annotations

from ackclock.study import (
    Chapter,
    Claim,
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="C7",
        place="blog: instances",
        statement="A dedicated m3-medium does worse than a t2-medium on demand.",
        not_comparable="the two machines differ in what the publication does not describe",
    ),
    Claim(
        id="C8",
        place="blog: instances",
        statement="Micro and nano instances crash with three or more flows.",
        not_comparable="a crash of an operating system is not simulated",
    ),
    Claim(
        id="C16",
        place="reader's comment under the blog",
        statement="The scripts divided by zero on an empty log, and hung.",
        not_comparable="it is about the scripts; here a flow without data is refused with its number",
    ),
)

CHAPTER = Chapter(title="Machines and scripts", claims=CLAIMS)
