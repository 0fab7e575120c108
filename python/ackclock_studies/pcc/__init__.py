"""PCC on shallow queues and its fairness: the 2016 reproduction, and its open question."""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Fitted, Study
from ackclock.study.kernel import KernelPart
from ackclock.study.table import face
from ackclock_studies.pcc import (
    batches,
    changed,
    crossed,
    findings,
    hypotheses,
    instances,
    pair,
    paper,
    processors,
    sentences,
    sharing,
    sweep,
    today,
    video,
    video_traces,
)


def _kernel() -> KernelPart:
    from ackclock_studies.pcc import kernel

    return kernel.PART


STUDY = Study(
    **face(
        __name__,
        (
            sweep.CHAPTER,
            hypotheses.CHAPTER,
            crossed.CHAPTER,
            batches.CHAPTER,
            sharing.CHAPTER,
            processors.CHAPTER,
            pair.CHAPTER,
            instances.CHAPTER,
            *paper.CHAPTERS,
            video.CHAPTER,
            video_traces.CHAPTER,
            today.CHAPTER,
        ),
    ),
    findings=findings.findings,
    headline=findings.headline,
    fitted=(
        Fitted(
            name="cost of a packet at either end of a machine with few processors",
            value="100 us",
            so_that="four flows on one processor have about 30 % of the link",
            claims=("C6", "C7", "C12", "C13", "C14", "C23"),
        ),
    ),
    sentences=sentences.SENTENCES,
    record=Path(__file__).with_name("recorded.json"),
    kernel=_kernel,
    before=changed.BEFORE,
)
