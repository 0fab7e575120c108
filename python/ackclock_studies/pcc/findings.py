"""Main findings, derived from a run's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.study import Headline, StudyResult, Tables
from ackclock_studies.pcc import hypotheses, pair, sharing, sweep
from ackclock_studies.pcc.testbed import BARE, CUBIC, MININET, PACED, PCC


def findings(result: StudyResult) -> Sequence[str]:
    """Main findings as sentences, from this run's numbers."""
    t = result.tables
    return [
        "Why did PCC fall behind in virtual machines? " + hypotheses.in_short(t),
        f"Do PCC's flows share well? {in_pairs(t)}{in_company(t) if sharing.enough(t, 'depth.shares') else ''} "
        "What the publication saw is what senders do that are a little late.",
    ]


def in_pairs(tables: Tables) -> str:
    """Time until a second flow has reached its fair share."""
    after = {
        kind: float(np.median(pair.pick(tables, kind, "seconds"))) for kind in (pair.BARE, pair.BARE_CLOCK, pair.TCP)
    }
    return (
        f"With departures exact to the nanosecond a second flow has its share after {after[pair.BARE]:.0f} s in the median (CUBIC's after {after[pair.TCP]:.0f} s); "
        f"with senders that wake at a kernel's clock of 1 ms after {after[pair.BARE_CLOCK]:.0f} s."
    )


def in_company(tables: Tables) -> str:
    """Sharing among four flows."""
    exact, clocked, cubic = (
        float(sharing.depth(tables, cc, 250, "jain", hosts=hosts).mean())
        for cc, hosts in ((PCC, sharing.EXACT), (PCC, sharing.CLOCKED), (CUBIC, sharing.EXACT))
    )
    return (
        f" Four flows behind 250 packets of Mininet's link have an index of {exact:.2f} with exact departures and of {clocked:.3f} with this clock; CUBIC's "
        f"is {cubic:.2f}."
    )


def headline(result: StudyResult) -> Headline:
    """Effect of running PCC in a virtual machine."""
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
