"""What a reader should take home, from the numbers of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackclock.studies.large_pipes.coalescing import ADAPTIVE, BATCH, COALESCED, FIXED, VARIANTS
from ackclock.studies.large_pipes.losses import throughputs
from ackclock.studies.large_pipes.paths import (
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    TCPW,
)
from ackclock.studies.large_pipes.runs import COLD, WARM, pick
from ackclock.studies.large_pipes.transfers import completion_times, completions
from ackclock.study import (
    Headline,
    StudyResult,
    Tables,
)


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    t = result.tables
    loss = {p: float(np.median(throughputs(t, p, 0.001))) / 1e6 for p in PROTOCOLS}
    return [
        "Under 0.1 % random loss "
        + ", ".join(f"{p} gets {loss[p]:.0f} Mb/s" for p in PROTOCOLS)
        + ", of 150 possible.",
        _times(t),
        _starts(t),
    ]


def _times(tables: Tables) -> str:
    cold = {p: float(np.median(completions(tables, p, COLD))) for p in PROTOCOLS}
    warm = {p: float(np.median(completions(tables, p, WARM))) for p in (HSTCP, NEWRENO)}
    return (
        f"100 MB take {cold[TCPW]:.1f} s with TCPW and {cold[FAST]:.1f} s with FAST (slides: 5.8 both). HSTCP and NewReno need the cached ssthresh to be as "
        f"slow as in the slides: {warm[HSTCP]:.1f} and {warm[NEWRENO]:.1f} s (7.5 and 11), against {cold[HSTCP]:.1f} and {cold[NEWRENO]:.1f} s cold."
    )


def _starts(tables: Tables) -> str:
    value = {
        name: float(
            np.median(np.minimum(pick(tables, "coalescing.ramps", "ramp_s", protocol=name, card=COALESCED), 3.0))
        )
        for name in VARIANTS
    }
    return (
        f"At 1 Gb/s behind a coalescing card TCPW comes up in {value[ADAPTIVE]:.2f} s with its stability filter, {value[FIXED]:.2f} s at fixed gain, and "
        f"{value[BATCH]:.2f} s if it takes its samples over whole batches."
    )


def headline(result: StudyResult) -> Headline:
    """How long the transfer of the slides takes."""
    t = result.tables
    cold = {p: float(np.median(completions(t, p, COLD))) for p in PROTOCOLS}
    return Headline(
        sentence=(
            f"Moving 100 MB across a long fast line takes {cold[TCPW]:.1f} s with TCP Westwood and {cold[FAST]:.1f} s with FAST here; the slides have 5.8 s "
            f"for both. The two senders that they call slow are slow only if they begin with what they remember of an earlier transfer: without "
            f"it HighSpeed TCP takes {cold[HSTCP]:.1f} s and NewReno {cold[NEWRENO]:.1f} s."
        ),
        figure=completion_times(t),
    )
