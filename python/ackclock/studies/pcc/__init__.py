"""PCC on shallow queues and its fairness: the reproduction of 2016, and the question that it left open."""

from __future__ import annotations

from ackclock.studies.pcc import page, pair, paper, sharing, sweep, video, video_traces
from ackclock.studies.pcc.claims import CLAIMS
from ackclock.study import Experiment, Publication, Study
from ackclock.study.kernel import KernelPart


def _kernel() -> KernelPart:
    from ackclock.studies.pcc import kernel

    return kernel.PART


STUDY = Study(
    name="pcc",
    title="PCC: shallow queues and fairness, and why virtual machines spoil it",
    summary=(
        "A transport that runs experiments on itself, against CUBIC: throughput behind buffers from 2 to 275 packets and four flows that "
        "come and go, on ideal hosts, on a testbed's clock, and under each explanation of what was seen in virtual machines. And the paper's own "
        "experiments: satellite, loss, RTTs, changing networks, incast, convergence, friendliness, short flows, delay. And video players "
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
    experiments=(
        Experiment(name="sweep", title="throughput against the buffer, every model", run=sweep.run, weight=60),
        Experiment(name="sharing", title="four flows that come and go; 8, 2, 1 cores", run=sharing.run, weight=20),
        Experiment(name="pair", title="two flows, the second one late", run=pair.run, weight=8),
        *paper.EXPERIMENTS,
        video.EXPERIMENT,
        video_traces.EXPERIMENT,
    ),
    claims=(*CLAIMS, *paper.CLAIMS, *video.CLAIMS, *video_traces.CLAIMS),
    sections=page.sections,
    findings=page.findings,
    scenarios=page.scenarios,
    kernel=_kernel,
)
