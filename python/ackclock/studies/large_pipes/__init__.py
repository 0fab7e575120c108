"""TCP Westwood over large pipes, against FAST, HighSpeed TCP and NewReno, claim by claim."""

from __future__ import annotations

from pathlib import Path

from ackclock.studies.large_pipes import (
    coalescing,
    damping,
    findings,
    kinds,
    losses,
    paths,
    probe,
    readings,
    runs,
    sharing,
    starts,
    sync,
    transfers,
)
from ackclock.study import Fitted, Publication, Study
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
    chapters=(
        readings.CHAPTER,
        probe.CHAPTER,
        starts.CHAPTER,
        transfers.CHAPTER,
        losses.CHAPTER,
        coalescing.CHAPTER,
        damping.CHAPTER,
        kinds.CHAPTER,
        sharing.CHAPTER,
        sync.CHAPTER,
    ),
    findings=findings.findings,
    headline=findings.headline,
    fitted=(
        Fitted(
            name="cached ssthresh on path 1",
            value=f"{runs.W1} segments",
            so_that="NewReno takes 11 s and HSTCP 7.5 s for 100 MB",
            claims=("W3", "W4", "W7", "W8", "W9"),
        ),
        Fitted(
            name="cached ssthresh on path 2",
            value=f"{runs.WARM_SSTHRESH[paths.CALTECH.name]} segments",
            so_that="slow start ends at the pipe",
            claims=("W12",),
        ),
    ),
    record=Path(__file__).with_name("recorded.json"),
    kernel=_kernel,
)
