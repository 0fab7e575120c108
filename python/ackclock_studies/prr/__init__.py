"""Proportional Rate Reduction: the CS244'13 blog and the publications behind it, claim by claim."""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Publication, Study
from ackclock.study.kernel import KernelPart
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
    name="prr",
    title="Proportional Rate Reduction against rate halving and RFC 6675",
    summary=(
        "What Proportional Rate Reduction does in a recovery, and what it gains: the ack-by-ack tables of its RFCs, traces of single "
        "connections, and the fetch latencies of the CS244'13 experiment, once with nothing changed but the recovery rule and once as "
        "published, with two kernels that differ in more than the rule."
    ),
    publications=(
        Publication(
            authors="Y. Geng, B. Wang",
            title="Proportional Rate Reduction for TCP",
            where="CS244'13 blog, Stanford; repository gengyl08/cs244_pa3",
        ),
        Publication(
            authors="N. Dukkipati, M. Mathis, Y. Cheng, M. Ghobadi",
            title="Proportional Rate Reduction for TCP",
            where="IMC 2011",
        ),
        Publication(
            authors="M. Mathis, N. Dukkipati, Y. Cheng",
            title="Proportional Rate Reduction for TCP",
            where="IETF-84 slides; RFC 6937 (2013) and RFC 9937 (2025)",
        ),
    ),
    chapters=(
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
    findings=findings.findings,
    headline=findings.headline,
    sentences=sentences.SENTENCES,
    record=Path(__file__).with_name("recorded.json"),
    golden=rfc_tables.text,
    kernel=_kernel,
)
