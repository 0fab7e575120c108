"""TCP Westwood over large pipes, against FAST, HighSpeed TCP and NewReno, claim by claim."""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Fitted, Publication, Study
from ackclock.study.kernel import KernelPart
from ackclock_studies.large_pipes import (
    changed,
    coalescing,
    damping,
    findings,
    kinds,
    losses,
    one_loss,
    probe,
    readings,
    sentences,
    sharing,
    stale,
    starts,
    sync,
    together,
    transfers,
)


def _kernel() -> KernelPart:
    from ackclock_studies.large_pipes import kernel

    return kernel.PART


STUDY = Study(
    name="large-pipes",
    title="TCP Westwood over large pipes",
    summary=(
        "TCP Westwood (ABSE and adaptive start), FAST, HighSpeed TCP and NewReno over 155 Mb/s and 64 ms, and over 1 Gb/s and 4 ms: how fast they reach "
        "the rate, how long 100 MB take, what random loss costs, how they share, and what an interrupt-coalescing card does to an estimator that "
        "measures the gaps between ACKs."
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
        stale.CHAPTER,
        transfers.CHAPTER,
        together.CHAPTER,
        one_loss.CHAPTER,
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
            name="reading of experiment `together`",
            value=", ".join(f"{name} {option}" for name, option in readings.TOGETHER.items()),
            so_that="all four times of slide 12 come out",
            claims=("N2",),
        ),
    ),
    sentences=sentences.SENTENCES,
    record=Path(__file__).with_name("recorded.json"),
    kernel=_kernel,
    before=changed.BEFORE,
)
