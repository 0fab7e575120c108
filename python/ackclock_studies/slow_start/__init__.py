"""Slow starts: which exit is good?"""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Publication, Study
from ackclock_studies.slow_start import careful, causes, exits, findings, noise, population, resume

STUDY = Study(
    name="slow-start",
    title="Slow starts: which exit is good?",
    summary=(
        "Classic slow start, HyStart as in Linux, HyStart++, SEARCH and limited slow start under CUBIC, over rates, round-trip times, queues, radio links "
        "and other traffic: with which window they end, how much they lose, how long they take to reach the rate; and Careful Resume on a path that is "
        "unchanged, or has shrunk."
    ),
    publications=(
        Publication(
            authors="P. Balasubramanian, Y. Huang, M. Olson",
            title="HyStart++: Modified Slow Start for TCP",
            where="RFC 9406 (2023)",
        ),
        Publication(
            authors="M. Claypool, F. Chung and others",
            title="SEARCH: a new slow start algorithm for TCP and QUIC",
            where="draft-chung-ccwg-search-09, from an earlier version of its text",
        ),
        Publication(
            authors="S. Floyd",
            title="Limited Slow-Start for TCP with Large Congestion Windows",
            where="RFC 3742 (2004)",
        ),
        Publication(
            authors="N. Kuhn, E. Stephan, G. Fairhurst, R. Secchi, C. Huitema",
            title="Convergence of Congestion Control from Retained State (Careful Resume)",
            where="RFC 9959 (2026), from its draft",
        ),
        Publication(
            authors="S. Ha, I. Rhee",
            title="Taming the elephants: New TCP slow start",
            where="Computer Networks 55(9), 2011; its text was not read, HyStart is as Linux has it",
        ),
    ),
    chapters=(exits.CHAPTER, noise.CHAPTER, resume.CHAPTER, careful.CHAPTER, causes.CHAPTER, population.CHAPTER),
    findings=findings.findings,
    headline=findings.headline,
    record=Path(__file__).with_name("recorded.json"),
)
