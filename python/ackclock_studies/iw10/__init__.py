"""IW10 against IW3: the testbed study of the slides of IETF 79, claim by claim."""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Publication, Study
from ackclock.study.kernel import KernelPart
from ackclock_studies.iw10 import (
    background,
    bursts,
    completion_times,
    extension,
    findings,
    lengths,
    light,
    loss,
    mix,
    parts,
    paths,
    photos,
    queues,
    rounds,
    sack,
    sentences,
    tails,
    two_testbeds,
    why,
    writes,
)


def _kernel() -> KernelPart:
    from ackclock_studies.iw10 import kernel

    return kernel.PART


STUDY = Study(
    name="iw10",
    title="An initial window of ten segments against three",
    summary=(
        "Thousands of short responses over a slow and a fast bottleneck: what an initial window of 10 instead of 3 "
        "gains in completion time and costs in loss, alone and mixed, with single and simultaneous opens; why IW3 gains from IW10 "
        "beside it at high load; and what larger initial windows do."
    ),
    publications=(
        Publication(
            authors="J. Chu, Y. Wang (results of NCSU and Google)",
            title="A Testbed Study on IW10 vs IW3",
            where="slides, TCPM working group, IETF 79, November 2010",
        ),
        Publication(
            authors="J. Chu, N. Dukkipati, Y. Cheng, M. Mathis",
            title="Increasing TCP's Initial Window",
            where="RFC 6928 (2013): the table of rounds in section 2; Appendix A summarises the study",
        ),
    ),
    chapters=(
        bursts.CHAPTER,
        writes.CHAPTER,
        rounds.CHAPTER,
        loss.CHAPTER,
        lengths.CHAPTER,
        completion_times.CHAPTER,
        light.CHAPTER,
        queues.CHAPTER,
        tails.CHAPTER,
        parts.CHAPTER,
        paths.CHAPTER,
        sack.CHAPTER,
        mix.CHAPTER,
        why.CHAPTER,
        background.CHAPTER,
        photos.CHAPTER,
        two_testbeds.CHAPTER,
        extension.CHAPTER,
    ),
    findings=findings.findings,
    headline=findings.headline,
    fitted=(photos.FITTED,),
    sentences=sentences.SENTENCES,
    record=Path(__file__).with_name("recorded.json"),
    kernel=_kernel,
)
