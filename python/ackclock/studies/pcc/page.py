"""The body of the study's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import polars as pl

from ackclock.report import Cell, Prose, Section, Table
from ackclock.scenario import Scenario
from ackclock.stats import mean_interval
from ackclock.studies.pcc import hypotheses, pair, paper, prototype, sharing, sweep, testbed, video, video_traces
from ackclock.studies.pcc.testbed import CUBIC, LABEL, PCC
from ackclock.study import StudyResult, Tables, Verdict


def sections(result: StudyResult) -> Sequence[Section]:
    """The body of the report."""
    t = result.tables
    return (
        Section(title="Throughput against the buffer", blocks=(sweep.figure(t), sweep_table(t), prototype.table(t))),
        Section(
            title="Why virtual machines spoil it",
            blocks=(hypotheses.figure(t), Prose(html=f"<p>{escape(hypotheses.answer(t), quote=False)}</p>")),
        ),
        Section(title="Four flows", blocks=(sharing.figure(t), sharing_table(t))),
        Section(title="Two flows, and why they take their time", blocks=(pair.figure(t), pair_table(t))),
        *paper.sections(t),
        *video.sections(t),
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
    for host, controller in sharing.RUNS:
        for n in (2, 3, 4):
            jain, sd, total = (
                mean_interval(sharing.pick(tables, host, controller, n, column))
                for column in ("jain", "sd_mbps", "total_mbps")
            )
            rows.append(
                (
                    Cell(text=f"{LABEL[controller]}, {host}, {n} flows", kind="head"),
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


def pair_table(tables: Tables) -> Table:
    """Time until both have their share, and who lost."""
    rows: list[tuple[Cell | str, ...]] = []
    for kind in pair.KINDS:
        seconds, sd, first, late = (
            mean_interval(pair.pick(tables, kind, column))
            for column in ("seconds", "sd_mbps", "loss_first", "loss_late")
        )
        never = int((pair.pick(tables, kind, "converged") == 0).sum())
        rows.append(
            (
                Cell(text=kind, kind="head"),
                f"{seconds.value:.0f} ({max(seconds.low, 0):.0f} to {seconds.high:.0f})"
                + (f"; {never} of {seconds.n} not" if never else ""),
                f"{first.value:.2f}",
                f"{late.value:.2f}",
                f"{sd.value:.1f}",
            )
        )
    return Table(
        caption=(
            f"Seconds until both flows are within {100 * pair.NEAR:.0f} % of half of what they have together, mean over {pair.HELD_S} s; runs that "
            "never are count with all the time that they had. Losses of the first 25 s in which both are there. Deviation: 1-s goodput, "
            "second half."
        ),
        header=(
            "departures",
            "converged after (s)",
            "loss of the first (%)",
            "loss of the late one (%)",
            "deviation (Mb/s)",
        ),
        rows=tuple(rows),
        dense=True,
    )


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    found = ["Why did PCC fall behind in virtual machines? " + hypotheses.why(result.tables)]
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
        "PCC, four flows, 2 cores": testbed.wishbone(testbed.HOSTS["2 cores"], PCC, 500),
        "CUBIC, four flows": testbed.wishbone({}, CUBIC, 500),
        **paper.scenarios(),
        **video.scenarios(),
        **video_traces.scenarios(),
    }
