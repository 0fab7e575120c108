"""TCP Westwood over large pipes, against FAST, HighSpeed TCP and NewReno, claim by claim."""

from __future__ import annotations

from ackclock.studies.large_pipes import estimators, page, runs, sharing
from ackclock.studies.large_pipes.claim_list import CLAIMS
from ackclock.study import Experiment, Publication, Study
from ackclock.study.kernel import KernelPart


def _kernel() -> KernelPart:
    from ackclock.studies.large_pipes import kernel

    return kernel.PART


STUDY = Study(
    name="large-pipes",
    title="TCP Westwood over large pipes",
    summary=(
        "TCP Westwood (ABSE and adaptive start), FAST, HighSpeed TCP and NewReno over 155 Mb/s and 64 ms, and over 1 Gb/s and 4 ms: how fast they come "
        "up, how long 100 MB take, what random loss costs, how they share, and what an interrupt-coalescing card does to an estimator that "
        "lives on the gaps between ACKs."
    ),
    publications=(
        Publication(
            authors="C. Marcondes, A. Persson, M. Y. Sanadidi, M. Gerla",
            title="TCP Westwood: Experiments over Large Pipes",
            where="slides, UCLA Network Research Lab; A. Persson et al., TCP Westwood Experiments over Large Bandwidth-Delay Product Networks, PATHNets 2004",
        ),
    ),
    experiments=(
        Experiment(name="probe", title="packet pairs through both readings of path 1", run=sharing.run_probe, weight=1),
        Experiment(name="ramps", title="the first seconds, cold and warm, both paths", run=runs.run_ramps, weight=8),
        Experiment(name="series", title="throughput over a minute, ten runs", run=runs.run_series, weight=20),
        Experiment(name="transfers", title="100 MB over path 1, all queues", run=runs.run_transfers, weight=10),
        Experiment(name="losses", title="random loss on path 1", run=runs.run_losses, weight=12),
        Experiment(name="coalescing", title="path 2 behind a coalescing card", run=estimators.run_coalescing, weight=6),
        Experiment(
            name="damping",
            title="the filter against variance, the interval against the queue",
            run=estimators.run_damping,
            weight=8,
        ),
        Experiment(name="kinds", title="packet pairs against packet trains", run=estimators.run_kinds, weight=8),
        Experiment(name="sharing", title="fairness, friendliness, round-trip times", run=sharing.run, weight=20),
        Experiment(name="sync", title="FAST flows together", run=sharing.run_sync, weight=6),
    ),
    claims=CLAIMS,
    sections=page.sections,
    findings=page.findings,
    scenarios=page.scenarios,
    kernel=_kernel,
)
