"""Main findings, derived from a run's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.study import Headline, StudyResult, Tables, number
from ackclock_studies.large_pipes import transfers
from ackclock_studies.large_pipes.coalescing import COALESCED, REMEDIES, ramps
from ackclock_studies.large_pipes.losses import throughputs
from ackclock_studies.large_pipes.paths import PROTOCOLS
from ackclock_studies.large_pipes.readings import TOGETHER


def _mean(values: object) -> str:
    x = np.asarray(values, dtype=float)
    return number(float(x.mean()), "s") if np.isfinite(x).all() else "not always within a minute"


def _four(tables: Tables) -> dict[str, str]:
    queue = int(TOGETHER["queue"])
    return {p: _mean(transfers.means(tables, p, queue=queue, table="together.times")) for p in PROTOCOLS}


def findings(result: StudyResult) -> Sequence[str]:
    """Main findings as sentences, from this run's numbers."""
    t = result.tables
    loss = {p: float(np.median(throughputs(t, p, 0.001))) / 1e6 for p in PROTOCOLS}
    main = {p: _mean(transfers.means(t, p)) for p in PROTOCOLS}
    four = _four(t)
    return [
        "100 MB behind a queue of 400 packets: "
        + ", ".join(f"{p} {main[p]}" for p in PROTOCOLS)
        + " (slides: 5.8, 5.8, 7.5, 11). Nothing is lost there, and no sender is slow.",
        f"Behind {TOGETHER['queue']} packets, with a window of {TOGETHER['window']}, SACK, α = {TOGETHER['alpha']} and the fixed exponential average of slide 21 in place of TCPW's stability filter, the four times are those of the slides: "
        + ", ".join(f"{p} {four[p]}" for p in PROTOCOLS)
        + ".",
        "Under 0.1 % random loss "
        + ", ".join(f"{p} gets {loss[p]:.0f} Mb/s" for p in PROTOCOLS)
        + ", of 150 possible.",
        _starts(t),
    ]


def _starts(tables: Tables) -> str:
    value = {name: float(np.median(ramps(tables, name, COALESCED))) for name in REMEDIES}
    told = ", ".join(
        f"{name} {number(v, 's') if np.isfinite(v) else 'not within the run'}" for name, v in value.items()
    )
    return f"At 1 Gb/s behind a coalescing card TCPW reaches 90 % of the link after: {told}."


def headline(result: StudyResult) -> Headline:
    """Completion time of the transfer on the slides."""
    t = result.tables
    main = {p: _mean(transfers.means(t, p)) for p in PROTOCOLS}
    few = 100
    shallow = _mean(transfers.means(t, "TCPW", queue=few))
    return Headline(
        sentence=(
            f"Sending 100 MB over a long fast path takes {main['TCPW']} with TCP Westwood and {main['FAST']} with FAST here, behind a queue in which their starts find room; the slides have 5.8 s for both. "
            f"HighSpeed TCP, which they call slow, takes {main['HSTCP']} there, and NewReno {main['NewReno']}. Behind {few} packets Westwood is the slowest of the four, with {shallow}. "
            f"What the slides measured is decided by a queue that they do not name."
        ),
        figure=transfers.completion_times(t),
    )
