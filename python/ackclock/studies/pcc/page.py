"""The body of the study's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import polars as pl

from ackclock.report import Cell, Prose, Section, Table
from ackclock.scenario import Scenario
from ackclock.stats import mean_interval
from ackclock.studies.pcc import hypotheses, paper, sharing, sweep, testbed
from ackclock.studies.pcc.testbed import CORES, CUBIC, LABEL, PCC
from ackclock.study import StudyResult, Tables, Verdict


def sections(result: StudyResult) -> Sequence[Section]:
    """The body of the report."""
    t = result.tables
    return (
        Section(title="Throughput against the buffer", blocks=(sweep.figure(t), sweep_table(t))),
        Section(
            title="Why virtual machines spoil it",
            blocks=(hypotheses.figure(t), Prose(html=f"<p>{escape(hypotheses.answer(t), quote=False)}</p>")),
        ),
        Section(title="Four flows", blocks=(sharing.figure(t), sharing_table(t))),
        *paper.sections(t),
    )


def sweep_table(tables: Tables) -> Table:
    """Goodput, what was sent, and the noise that was measured."""
    rows: list[tuple[Cell | str, ...]] = []
    table = sweep.means(tables).filter(pl.col("buffer").is_in([6, 20, 50, 275]))
    for r in table.sort("buffer", maintain_order=True).iter_rows(named=True):
        rows.append(
            (
                Cell(text=f"{r['buffer']} packets, {LABEL[r['cc']]}, {r['model']}", kind="head"),
                f"{r['goodput_mbps']:.1f}",
                f"{r['sent_mbps']:.1f}",
                f"{100 * r['share']:.0f} ({100 * r['least']:.0f} to {100 * r['greatest']:.0f})",
                f"{r['departure_cv']:.2f}",
                f"{r['largest_burst']}",
            )
        )
    return Table(
        caption=(
            "Means over seeds (least and greatest). Sent: 1500-byte packets on the wire, those lost included. Variation of gaps "
            "between departures and the largest burst are measured where packets leave the host."
        ),
        header=("run", "goodput (Mb/s)", "sent (Mb/s)", "of the link (%)", "variation of gaps", "largest burst"),
        rows=tuple(rows),
        dense=True,
    )


def sharing_table(tables: Tables) -> Table:
    """Index, deviation, total."""
    rows: list[tuple[Cell | str, ...]] = []
    for cores in CORES:
        for controller in (PCC, CUBIC):
            for n in (2, 3, 4):
                jain, sd, total = (
                    mean_interval(sharing.pick(tables, cores, controller, n, column))
                    for column in ("jain", "sd_mbps", "total_mbps")
                )
                rows.append(
                    (
                        Cell(text=f"{cores}, {LABEL[controller]}, {n} flows", kind="head"),
                        f"{jain.value:.3f} ({jain.low:.3f} to {min(jain.high, 1):.3f})",
                        f"{sd.value:.1f}",
                        f"{total.value:.1f}",
                    )
                )
    return Table(
        caption="Windows of a fifth of a stretch. Deviation: of the 1-s goodput of a flow, mean over active flows.",
        header=("run", "Jain's index", "standard deviation (Mb/s)", "total (Mb/s)"),
        rows=tuple(rows),
        dense=True,
    )


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    found = [hypotheses.answer(result.tables)]
    for verdict, text in (
        (Verdict.FAILS, "Claims that do not hold as stated: {}."),
        (Verdict.UNDECIDED, "Too close to call with the seeds of this run: {}."),
    ):
        ids = [o.claim.id for o in result.outcomes if o.verdict is verdict]
        if ids:
            found.append(text.format(", ".join(ids)))
    return found


def scenarios() -> Mapping[str, Scenario]:
    """The scenarios, one of each kind."""
    return {
        "PCC on the testbed, 6 packets": testbed.shallow(testbed.TESTBED, PCC, 6, 60),
        "PCC, stalls made up for, 20 packets": testbed.shallow(testbed.OFTEN, PCC, 20, 60),
        "PCC, netem's limit, 20 packets": testbed.shallow(testbed.NETEM, PCC, 20, 60),
        "CUBIC, four flows, 8 cores": testbed.wishbone("8 cores", CUBIC, 500),
        **paper.scenarios(),
    }
