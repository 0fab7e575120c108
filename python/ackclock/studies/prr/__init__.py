"""Proportional Rate Reduction: the CS244'13 blog and the publications behind it, claim by claim."""

from __future__ import annotations

from ackclock.studies.prr import golden, latency, page, population, traces
from ackclock.studies.prr.claims_blog import CLAIMS as BLOG
from ackclock.studies.prr.claims_paper import CLAIMS as PAPER
from ackclock.study import Experiment, Publication, Study

STUDY = Study(
    name="prr",
    title="Proportional Rate Reduction against rate halving and RFC 6675",
    summary=(
        "What Proportional Rate Reduction does in a recovery, and what it is worth: the ack-by-ack tables of its RFCs, traces of single "
        "connections, and the fetch latencies of the CS244'13 experiment, once with nothing changed but the recovery rule and once as "
        "published, with two kernels that differ in more than that."
    ),
    publications=(
        Publication(
            authors="Y. Geng, Y. Wang",
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
    experiments=(
        Experiment(
            name="tables", title="every rule on the ideal path, beside the rows of the RFCs", run=golden.run, weight=1
        ),
        Experiment(name="traces", title="long Reno flow; time-sequence of two loss patterns", run=traces.run, weight=2),
        Experiment(name="latency", title="fetch latency per rule, everything else equal", run=latency.run, weight=60),
        Experiment(
            name="kernels", title="fetch latency as published: kernels 3.0 and 3.2", run=latency.run_kernels, weight=20
        ),
        Experiment(
            name="short",
            title="short responses with early retransmit and tail loss probes",
            run=latency.run_short,
            weight=5,
        ),
        Experiment(name="population", title="Web and long-RTT video clients", run=population.run, weight=20),
    ),
    claims=(*BLOG, *PAPER),
    sections=page.sections,
    findings=page.findings,
    scenarios=page.scenarios,
    golden=golden.text,
)
