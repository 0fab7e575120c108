"""Proportional Rate Reduction: the CS244'13 blog and the publications behind it, claim by claim."""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Study
from ackclock.study.kernel import KernelPart
from ackclock.study.table import face
from ackclock_studies.prr import (
    burst_loss,
    findings,
    ideal_path,
    kernels,
    latency,
    loss_or_not,
    noise,
    paths,
    recoveries,
    rfc_tables,
    sentences,
    short,
    slides,
    stall,
    timeouts,
    traces,
)


def _kernel() -> KernelPart:
    from ackclock_studies.prr import kernel

    return kernel.PART


STUDY = Study(
    **face(
        __name__,
        (
            ideal_path.CHAPTER,
            rfc_tables.CHAPTER,
            traces.CHAPTER,
            latency.CHAPTER,
            loss_or_not.CHAPTER,
            timeouts.CHAPTER,
            paths.CHAPTER,
            burst_loss.CHAPTER,
            stall.CHAPTER,
            slides.CHAPTER,
            kernels.CHAPTER,
            noise.CHAPTER,
            short.CHAPTER,
            recoveries.CHAPTER,
        ),
    ),
    findings=findings.findings,
    headline=findings.headline,
    sentences=sentences.SENTENCES,
    record=Path(__file__).with_name("recorded.json"),
    golden=rfc_tables.text,
    kernel=_kernel,
)
