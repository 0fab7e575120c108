"""The body of the study's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ackclock.report import Section, Table, paragraph
from ackclock.scenario import Scenario
from ackclock.studies.large_pipes import estimators as est
from ackclock.studies.large_pipes import figures, paths, runs
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    CALTECH,
    COALESCING,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    SENDERS,
    TCPW,
)
from ackclock.studies.large_pipes.runs import COLD, WARM
from ackclock.study import StudyResult, Tables, Verdict

READINGS: tuple[tuple[str, str, str, str], ...] = (
    ("A1", "155 Mb/s: line, cells or IP?", "at IP", "ATM profile, 132.45 Mb/s at IP (paths.ALABAMA_ATM)"),
    ("A2", '"100 MB"', "10^8 bytes, acknowledged", "any workload bytes"),
    ("A3", "PER 0.1 to 0.5", "percent", "loss ="),
    ("A4", "2 MB socket buffers", "window 1.5 MiB on Linux, 2 MiB on FreeBSD", "receive_buffer"),
    ("A5", "64 ms, 4 ms", "round trip without queueing", "paths.Path(rtt_s=)"),
    (
        "A6",
        "queue of the bottleneck",
        "400 packets on path 1, one bandwidth-delay product on path 2; swept from 50 to 827",
        "queue =",
    ),
    ("A7", "SACK", "on for Linux, off for FreeBSD", "westwood(sack=True); shown under loss"),
    ("A8", "which packets random loss takes", "data", "network.reverse.bottleneck.loss"),
    ("A9", "cache", "run 1 cold, the others warm; both reported", "metrics_cache"),
    ("A10", '"excellent" fairness', "Jain's index of 0.95", "-"),
    ("A11", "metric of friendliness", "NewReno's throughput beside X over that among its like", "metrics.friendliness"),
    ("A12", "initial window", "2", "initial_window"),
)


def readings_table() -> Table:
    """What the slides leave open, and how it is read here."""
    return Table(
        caption="Readings of what the slides leave open; each can be changed in one place.",
        header=("", "open", "read as", "other readings by"),
        rows=READINGS,
    )


def sections(result: StudyResult) -> Sequence[Section]:
    """The body of the report."""
    t = result.tables
    return (
        Section(title="Readings", blocks=(readings_table(),)),
        Section(
            title="Path 1: Alabama",
            blocks=(
                figures.over_time(t, ALABAMA, "path-1", "10 and 11"),
                figures.completion_times(t),
                paragraph(
                    "The slides' 7.5 s and 11 s fit together if slow start ended at about 345 segments, as a cached ssthresh from an earlier run makes it. "
                    "With a cold cache and a queue that holds the window's excess, nothing is lost and NewReno is as fast as the window allows."
                ),
            ),
        ),
        Section(title="Random loss", blocks=(figures.random_loss(t),)),
        Section(
            title="Path 2: Caltech, and interrupt coalescing",
            blocks=(
                figures.over_time(t, CALTECH, "path-2", "18 and 19"),
                figures.coalescing(t),
                figures.damping(t),
            ),
        ),
        Section(title="Sharing", blocks=(figures.sharing_bars(t), figures.fast_in_step(t))),
    )


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    t = result.tables
    loss = {p: float(np.median(runs.throughputs(t, p, 0.001))) / 1e6 for p in PROTOCOLS}
    found = [
        "Under 0.1 % random loss "
        + ", ".join(f"{p} gets {loss[p]:.0f} Mb/s" for p in PROTOCOLS)
        + ", of 150 possible.",
        _times(t),
        _ramps(t),
    ]
    for verdict, text in (
        (Verdict.FAILS, "Claims that do not hold as stated: {}. The reasons stand with each."),
        (Verdict.UNDECIDED, "Too close to call with the runs of this scale: {}."),
    ):
        ids = [o.claim.id for o in result.outcomes if o.verdict is verdict]
        if ids:
            found.append(text.format(", ".join(ids)))
    return found


def _times(tables: Tables) -> str:
    cold = {p: float(np.median(runs.completions(tables, p, COLD))) for p in PROTOCOLS}
    warm = {p: float(np.median(runs.completions(tables, p, WARM))) for p in (HSTCP, NEWRENO)}
    return (
        f"100 MB take {cold[TCPW]:.1f} s with TCPW and {cold[FAST]:.1f} s with FAST (slides: 5.8 both). HSTCP and NewReno need the cached ssthresh to be as "
        f"slow as in the slides: {warm[HSTCP]:.1f} and {warm[NEWRENO]:.1f} s (7.5 and 11), against {cold[HSTCP]:.1f} and {cold[NEWRENO]:.1f} s cold."
    )


def _ramps(tables: Tables) -> str:
    value = {
        name: float(
            np.median(
                np.minimum(est.pick(tables, "coalescing.ramps", "ramp_s", protocol=name, card=est.COALESCED), 3.0)
            )
        )
        for name in est.VARIANTS
    }
    return (
        f"At 1 Gb/s behind a coalescing card TCPW comes up in {value[est.ADAPTIVE]:.2f} s with its stability filter, {value[est.FIXED]:.2f} s at fixed gain, and "
        f"{value[est.BATCH]:.2f} s if it takes its samples over whole batches."
    )


def scenarios() -> Mapping[str, Scenario]:
    """The scenarios, one of each kind."""
    return {
        "path 1, TCPW": paths.scenario(ALABAMA, [(SENDERS[TCPW], 1)], duration_s=60),
        "path 1, NewReno, warm": paths.scenario(
            ALABAMA, [(SENDERS[NEWRENO], 1)], duration_s=60, **runs.warmth(NEWRENO, ALABAMA, True)
        ),
        "path 1, FAST at 0.1 % loss": paths.scenario(
            ALABAMA, [(SENDERS[FAST], 1)], duration_s=120, loss=0.001, users=0.0
        ),
        "path 2, TCPW behind a coalescing card": paths.scenario(
            CALTECH, [(SENDERS[TCPW], 1)], duration_s=3, card=COALESCING
        ),
        "two HSTCP and two NewReno": paths.scenario(
            ALABAMA, [(SENDERS[NEWRENO], 2), (SENDERS[HSTCP], 2)], duration_s=120, stagger_s=1.0
        ),
    }
