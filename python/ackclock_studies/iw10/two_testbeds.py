"""Two testbeds that need not agree (I29): nothing to measure here but what the other readings of the set-up give."""

from __future__ import annotations

from ackclock.study import Chapter, Claim

CHAPTER = Chapter(
    title="Two testbeds",
    claims=(
        Claim(
            id="I29",
            place="slides: testbed setup",
            statement="The two testbeds differ in places.",
            not_comparable=(
                "the slides give no numbers for either testbed; how far other readings of the set-up move each claim stands under *Readings*"
            ),
        ),
    ),
)
