"""IW10 against IW3: the testbed study in the IETF 79 slides, claim by claim."""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Study
from ackclock.study.kernel import KernelPart
from ackclock.study.table import face
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
    **face(
        __name__,
        (
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
    ),
    findings=findings.findings,
    headline=findings.headline,
    fitted=(photos.FITTED, photos.LOST),
    sentences=sentences.SENTENCES,
    record=Path(__file__).with_name("recorded.json"),
    kernel=_kernel,
)
