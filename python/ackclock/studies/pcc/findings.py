"""What a reader should take home, from the numbers of a run."""

from __future__ import annotations

from collections.abc import Sequence

from ackclock.studies.pcc import hypotheses, sweep
from ackclock.studies.pcc.testbed import BARE, MININET, PACED, PCC
from ackclock.study import Headline, StudyResult


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    return ["Why did PCC fall behind in virtual machines? " + hypotheses.why(result.tables)]


def headline(result: StudyResult) -> Headline:
    """What a virtual machine does to PCC."""
    t = result.tables
    share = {model: 100 * float(sweep.pick(t, model, PCC, 20).mean()) for model in (BARE, MININET, PACED)}
    return Headline(
        sentence=(
            f"PCC, a sender that learns its rate by trial, fills {share[BARE]:.0f} % of a link with a small buffer on real machines, but only "
            f"{share[MININET]:.0f} % on an emulated network, whose limit for the buffer also counts packets on the wire. A sender that wakes late, every 10 ms, "
            f"has {share[PACED]:.0f} % there, on real links. Either suffices to explain what was seen in virtual machines."
        ),
        figure=sweep.figure(t),
    )
