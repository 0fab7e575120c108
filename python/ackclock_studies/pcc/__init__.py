"""PCC on shallow queues and its fairness: the reproduction of 2016, and the question that it left open."""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Fitted, Publication, Study
from ackclock.study.kernel import KernelPart
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
    name="pcc",
    title="PCC: shallow queues and fairness, and why it falls behind in virtual machines",
    summary=(
        "A transport that tries rates and keeps the better one, against CUBIC: throughput behind buffers from 1 to 275 packets and four flows that "
        "come and go, on a testbed of bare metal, on Mininet's link, and under each explanation of what was seen in virtual machines. Also the paper's own "
        "experiments: satellite, loss, RTTs, changing networks, incast, convergence, friendliness, short flows, delay; and video players "
        "that adapt their bitrate, over both."
    ),
    publications=(
        Publication(
            authors="B. Cheshire, M. Daviau",
            title="PCC: Shallow Queues and Fairness",
            where="Reproducing Network Research (CS244), 2016",
        ),
        Publication(
            authors="M. Dong, Q. Li, D. Zarchy, P. B. Godfrey, M. Schapira",
            title="PCC: Re-architecting Congestion Control for Consistent High Performance",
            where="NSDI 2015",
        ),
        Publication(
            authors="J. Jiang, V. Sekar, H. Zhang",
            title="Improving Fairness, Efficiency, and Stability in HTTP-based Adaptive Video Streaming with FESTIVE",
            where="CoNEXT 2012",
        ),
    ),
    chapters=(
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
