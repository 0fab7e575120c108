"""TCP Westwood over large pipes, against FAST, HighSpeed TCP and NewReno, claim by claim."""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Fitted, Study
from ackclock.study.kernel import KernelPart
from ackclock.study.table import face
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
    **face(
        __name__,
        (
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
