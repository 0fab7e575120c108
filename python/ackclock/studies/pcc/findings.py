"""What a reader should take home, from the numbers of a run."""

from __future__ import annotations

from collections.abc import Sequence

from ackclock.studies.pcc import hypotheses, sweep
from ackclock.studies.pcc.testbed import BARE, MININET, PCC
from ackclock.study import Headline, StudyResult


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    return ["Why did PCC fall behind in virtual machines? " + hypotheses.why(result.tables)]


def headline(result: StudyResult) -> Headline:
    """What a virtual machine does to PCC."""
    t = result.tables
    share = {model: 100 * float(sweep.pick(t, model, PCC, 20).mean()) for model in (BARE, MININET)}
    return Headline(
        sentence=(
            f"PCC, a sender that learns its rate by trial, fills {share[BARE]:.0f} % of a line behind a small buffer on real machines, and "
            f"{share[MININET]:.0f} % on an emulated network inside one virtual machine: there a limit meant for the buffer counts what is on "
            "the wire as well."
        ),
        figure=sweep.figure(t),
    )
