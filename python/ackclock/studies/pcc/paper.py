"""The experiments of the paper itself (NSDI 2015): one module each, put together here for the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ackclock.plot import Figure
from ackclock.report import Section, paragraph
from ackclock.scenario import Scenario
from ackclock.studies.pcc import (
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
from ackclock.study import Claim, Evidence, Experiment, Tables, Verdict

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

EXPERIMENTS: tuple[Experiment, ...] = tuple(part.EXPERIMENT for part in PARTS)


def nothing(_: Tables) -> Sequence[Evidence]:
    """Nothing to measure."""
    return []


CLAIMS: tuple[Claim, ...] = (
    *(claim for part in PARTS for claim in part.CLAIMS),
    Claim(
        id="P24",
        place="NSDI 2015: the Internet",
        statement="Over 510 pairs of hosts on the Internet PCC has a median of 5.52 times the throughput of CUBIC.",
        measure=nothing,
        expected=Verdict.NOT_COMPARABLE,
        not_comparable="the paths are not described: capacity, buffers, loss and cross traffic of the 510 pairs are not known",
    ),
)

ABOUT = (
    'The experiments of NSDI 2015, as far as they can be simulated. "PCC" has the constants of its authors\' code of that time, with which the '
    "paper's numbers were measured; \"PCC as printed\" has those of the text. Most of the paper's numbers are quoted from memory or from "
    "notes by others: a claim asks for half of a factor, or for a share less ten points, never for equality."
)


def figures(tables: Tables) -> Sequence[Figure]:
    """One for each experiment."""
    return [part.figure(tables) for part in PARTS]


def sections(tables: Tables) -> Sequence[Section]:
    """For the report."""
    return (Section(title="The paper's own experiments", blocks=(paragraph(ABOUT), *figures(tables))),)


def scenarios() -> Mapping[str, Scenario]:
    """Of every experiment, one or two."""
    return {name: scenario for part in PARTS for name, scenario in part.scenarios().items()}
