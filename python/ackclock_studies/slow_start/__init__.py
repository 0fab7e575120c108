"""Slow starts: which exit is a good one?"""

from __future__ import annotations

from pathlib import Path

from ackclock.study import Study
from ackclock.study.table import face
from ackclock_studies.slow_start import careful, causes, exits, findings, noise, population, resume

STUDY = Study(
    **face(
        __name__,
        (exits.CHAPTER, noise.CHAPTER, resume.CHAPTER, careful.CHAPTER, causes.CHAPTER, population.CHAPTER),
    ),
    findings=findings.findings,
    headline=findings.headline,
    record=Path(__file__).with_name("recorded.json"),
)
