"""IW10 against IW3: the testbed study of the slides of IETF 79, claim by claim."""

from __future__ import annotations

from ackclock.studies.iw10 import background, bursts, extension, light, loaded, page, photos, sensitivity, why
from ackclock.studies.iw10.claims import CLAIMS
from ackclock.study import Experiment, Publication, Study
from ackclock.study.kernel import KernelPart


def _kernel() -> KernelPart:
    from ackclock.studies.iw10 import kernel

    return kernel.PART


STUDY = Study(
    name="iw10",
    title="An initial window of ten segments against three",
    summary=(
        "Short responses over a slow and a fast bottleneck, coming and going by the thousand: what an initial window of 10 instead of 3 "
        "gains in completion time and costs in loss, alone and mixed, with single and simultaneous opens; why IW3 gains from IW10 "
        "beside it at high load; and what lies beyond 10."
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
            where="RFC 6928 (2013): the table of rounds in section 2; Appendix A sums the study up",
        ),
    ),
    experiments=(
        Experiment(
            name="exact",
            title="what needs no chance: bursts, rounds, one transaction alone",
            run=bursts.run_all,
            weight=1,
        ),
        Experiment(
            name="loaded",
            title="both links, single and five opens, all loads, IW3, IW10, mix",
            run=loaded.run,
            weight=60,
        ),
        Experiment(
            name="light", title="the lightly loaded slow link, with and without delayed ACKs", run=light.run, weight=1
        ),
        Experiment(name="traces", title="queues over time", run=loaded.run_traces, weight=1),
        Experiment(name="windows", title="cwnd and ssthresh of a long flow", run=background.run_traces, weight=1),
        Experiment(name="background", title="two long flows beside transactions", run=background.run, weight=4),
        Experiment(name="photos", title="pages of photographs on lossy access links", run=photos.run, weight=4),
        Experiment(name="why", title="why IW3 gains in the mix: three hypotheses", run=why.run, weight=35),
        Experiment(name="sensitivity", title="other readings of the set-up", run=sensitivity.run, weight=4),
        Experiment(
            name="extension", title="initial windows of 1 to 100, paced, CoDel, FQ-CoDel", run=extension.run, weight=20
        ),
    ),
    claims=CLAIMS,
    sections=page.sections,
    findings=page.findings,
    scenarios=page.scenarios,
    kernel=_kernel,
)
