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
        f"Do PCC's flows share well? {in_pairs(t)}{in_company(t) if sharing.enough(t, 'depth.shares') else ''}",
    ]


def in_pairs(tables: Tables) -> str:
    """Time until a second flow has reached its fair share."""
    bare, clock, late, apart, tcp = (
        after(tables, kind) for kind in (pair.BARE, pair.BARE_CLOCK, pair.BARE_LATE, pair.APART, pair.TCP)
    )
    return (
        f"With departures exact to the nanosecond a second flow has its share after {bare} in the median (CUBIC's after {tcp}); with senders that both "
        f"wake at one kernel's clock of 1 ms after {clock}; with two such clocks 10 parts in a million apart after {apart}, and with departures up to 1 ms "
        f"late at random after {late}. So it is acting at the same instants that helps, not lateness, and why two machines converged quickly for the "
        "publication is open."
    )


def after(tables: Tables, kind: str) -> str:
    """Median time to equal shares, as text."""
    seconds = float(np.median(pair.pick(tables, kind, "seconds")))
    return f"{seconds:.0f} s" if np.isfinite(seconds) else f"more than {pair.watched(kind)} s"


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
