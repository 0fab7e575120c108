"""The reading that reproduces all four times of slide 12 (N2), and the negative control (N1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, mean_over_runs
from ackclock.plot import Figure, new
from ackclock.report import Block, Table, TableCell
from ackclock.scenario import Scenario
from ackclock.study import Bound, Chapter, Data, Evidence, Experiment, Plan, Tables, number
from ackclock.study.cells import collect
from ackclock.study.table import declared
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import HSTCP, NEWRENO, PROTOCOLS, TCPW
from ackclock_studies.large_pipes.readings import FILTER, TOGETHER
from ackclock_studies.large_pipes.runs import NO_BOUND, mean_time
from ackclock_studies.large_pipes.style import COLOUR, DASH, MARKER
from ackclock_studies.large_pipes.transfers import (
    CONTROL,
    EVERY_S,
    GROUP,
    PUBLISHED_S,
    cells_of,
    groups,
    means,
    scenario,
    time_of_group,
)

AS_QUOTED = f"{TCPW}, filter as quoted"
"""Reading of TCPW with ABSE's filter as quoted."""


def run_together(plan: Plan) -> Data:
    """All four protocols in the reading that reproduces their times, and the negative control in the main reading.

    Returns
    -------
    Data
        `together.times`: columns of the transfers' tables.
    """
    where = replace(plan, reading=TOGETHER)
    queue = paths.queue_of(where)
    cells = []
    for name, protocol in paths.senders(where).items():
        one = name == TCPW
        seeds = plan.count(quick=12 if one else 12 if name == NEWRENO else 4, paper=60 if one else 40)
        cells += cells_of(protocol, (queue,), where, seeds)
    quoted = replace(plan, reading={**TOGETHER, "filter": FILTER.main})
    own = replace(paths.senders(quoted)[TCPW], name=AS_QUOTED)
    cells += cells_of(own, (queue,), quoted, plan.count(quick=12, paper=60))
    cells += [cell for protocol in paths.SENDERS.values() for cell in cells_of(protocol, (CONTROL,), paths.MAIN, 2)]
    return collect("together", cells, plan, numbered=True)


def w26(tables: Tables) -> Sequence[Evidence]:
    """All four printed times, in the one reading found to reproduce them."""
    queue = int(TOGETHER["queue"])
    quoted = mean_time(
        means(tables, AS_QUOTED, queue=queue, table="together.times"),
        EVERY_S,
        f"{AS_QUOTED}: mean of the group",
        NO_BOUND,
        weighs=False,
        key="time_quoted",
    )
    return [*(time_of_group(tables, p, queue=queue, table="together.times") for p in PROTOCOLS), quoted]


def control(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """Negative control: the window is the only limit."""
    m = {p: groups(tables, p, queue=CONTROL, table="together.times")[:, 0] for p in PROTOCOLS}
    worst = max(m.values(), key=lambda x: float(x.max())).max() / min(m.values(), key=lambda x: float(x.min())).min()
    label = "100 MB, queue of 2000, no other flow, cold: slowest over fastest"
    return [Evidence(label=label, value=float(worst), bound=bound, key="worst")]


def _tens(tables: Tables, protocol: str) -> Array:
    """Times by group and position; TCPW's transfers, which use no cache, are grouped by ten."""
    own = groups(tables, protocol, queue=int(TOGETHER["queue"]), table="together.times")
    return own if own.shape[1] > 1 else own[: len(own) // GROUP * GROUP].reshape(-1, GROUP)


def in_a_row(tables: Tables) -> Figure:
    """Each of the ten transfers, in the reading that reproduces all four times."""
    rows = []
    for protocol in PROTOCOLS:
        ten = _tens(tables, protocol)
        for k in range(ten.shape[1]):
            e = mean_over_runs(ten[:, k])
            row = {"protocol": protocol, "transfer": k + 1, "completion_s": e.value, "low": float(ten[:, k].min())}
            rows.append(row | {"high": float(ten[:, k].max())})
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, ax = new(6.8, 3.4)
        for i, protocol in enumerate(PROTOCOLS):
            own = table.filter(pl.col("protocol") == protocol)
            ax.plot(
                own["transfer"], own["completion_s"], color=COLOUR[protocol], ls=DASH[protocol], lw=0.9, label=protocol
            )
            every = _tens(tables, protocol)
            for k in range(every.shape[1]):
                x = k + 1 + 0.12 * (i - 1.5) + np.linspace(-0.04, 0.04, every.shape[0])
                ax.plot(x, every[:, k], MARKER[protocol], color=COLOUR[protocol], ms=2.5, alpha=0.6)
            ax.plot([11.2], [PUBLISHED_S[protocol]], color=COLOUR[protocol], marker=MARKER[protocol], mfc="none", ms=7)
        ax.set(xlabel="transfer of the group", ylabel="100 MB (s)", ylim=(0, 15))
        ax.set_xticks([*range(1, GROUP + 1), 11.2], [*(str(k) for k in range(1, GROUP + 1)), "slides"])
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="in-a-row",
        title="Ten transfers in a row, in the reading in which all four times come out",
        caption=(
            f"A point for each transfer, a line for the mean over groups; large open symbols: slide 12. Reading: {', '.join(f'{k} {v}' for k, v in TOGETHER.items())}. The first run finds an empty cache, each later one "
            "the ssthresh that those before have left."
        ),
        draw=draw,
        data={"in-a-row": table},
    )


def beside_the_slides(tables: Tables) -> Table:
    """The four times: on the slides, in the main reading, and in the reading found."""

    def told(values: Array) -> str:
        return number(float(values.mean()), "s") if np.isfinite(values).all() else "> 60 s in some"

    queue = int(TOGETHER["queue"])
    return Table(
        caption="100 MB: the slides, the main reading, and the reading in which all four come out.",
        header=("protocol", "slide 12", "main reading", "all four"),
        rows=tuple(
            (
                TableCell(text=p, kind="head"),
                number(PUBLISHED_S[p], "s"),
                told(means(tables, p)),
                told(means(tables, p, queue=queue, table="together.times")),
            )
            for p in PROTOCOLS
        ),
    )


def scenarios() -> Mapping[str, Scenario]:
    """Scenarios in this chapter, by name."""
    where = Plan(reading=TOGETHER)
    four = paths.senders(where)
    queue = paths.queue_of(where)
    return {f"ten times 100 MB, {name}, all four": scenario(four[name], queue, where) for name in (HSTCP, NEWRENO)}


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (beside_the_slides(t), in_a_row(t))


CHAPTER = Chapter(
    experiments=(
        Experiment(
            name="together", title="100 MB in the reading in which all four come out", run=run_together, weight=5
        ),
    ),
    **declared(__name__),
    blocks=blocks,
    scenarios=scenarios,
)
