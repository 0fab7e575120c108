"""The experiments in the paper itself (NSDI 2015), one module each, combined here for the study."""

from __future__ import annotations

from collections.abc import Sequence

from ackclock.report import Block, paragraph
from ackclock.study import (
    Chapter,
    Tables,
)
from ackclock.study.table import declared
from ackclock_studies.pcc import (
    paper_changing,
    paper_convergence,
    paper_datacentres,
    paper_friendly,
    paper_lossy,
    paper_power,
    paper_rtt,
    paper_satellite,
    paper_short,
)

PARTS = (
    paper_satellite,
    paper_lossy,
    paper_rtt,
    paper_changing,
    paper_short,
    paper_datacentres,
    paper_convergence,
    paper_friendly,
    paper_power,
)


ABOUT = (
    'The experiments of NSDI 2015, as far as they can be simulated. "PCC" has the constants of its authors\' code of that time, with which the '
    "paper's numbers were measured; \"PCC as printed\" has those of the text. Most of the paper's numbers are quoted from memory or from "
    "notes by others: a claim asks for half of a factor, or for a share less ten points, never for equality."
)


def blocks(_: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (paragraph(ABOUT),)


CHAPTERS = (
    Chapter(**declared(__name__), blocks=blocks),
    *(part.CHAPTER for part in PARTS),
)
