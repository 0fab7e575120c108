"""IW3 and IW10 beside each other (I15 to I18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import GREY, Figure
from ackclock.report import Block
from ackclock.scenario import Scenario
from ackclock.stats import bootstrap_interval
from ackclock.studies.iw10 import testbed
from ackclock.studies.iw10.bursts import unloaded_s
from ackclock.studies.iw10.loaded import cells, loads, times
from ackclock.studies.iw10.style import COLOUR, MARKER, panels, percent
from ackclock.studies.iw10.testbed import (
    FAST,
    FIVE,
    HEAVY,
    IW3,
    IW10,
    MIX,
    MODES,
    RATES,
    SINGLE,
    SLOW,
    where,
)
from ackclock.study import (
    Chapter,
    Claim,
    Criterion,
    Evidence,
    Tables,
    at_least,
    at_most,
    between,
)
from ackclock.study.estimates import Array, median


def in_mix(tables: Tables, rate: str, mode: str, load: float, arm: str) -> Array:
    """Mean completion time of flows with this initial window in the mix over the same among their like."""
    iw = 3 if arm == IW3 else 10
    return times(tables, rate, mode, load, MIX, "mean_s", iw=iw) / times(tables, rate, mode, load, arm, "mean_s")


def i15(tables: Tables) -> Sequence[Evidence]:
    """IW10 in the mix, where the slide compares them."""
    return [
        Evidence.of(
            median(in_mix(tables, SLOW, mode, load, IW10)),
            f"{where(SLOW, mode, load)}: UCT of IW10 in the mix / alone",
            at_most(0.85),
        )
        for mode, load in ((SINGLE, HEAVY[SLOW]), (FIVE, 0.75), (FIVE, HEAVY[SLOW]))
    ]


def i16(tables: Tables) -> Sequence[Evidence]:
    """IW3 in the mix at light and medium load."""
    return [
        Evidence.of(
            median(in_mix(tables, rate, mode, load, IW3)),
            f"{where(rate, mode, load)}: UCT of IW3 in the mix / alone",
            between(1.00, 1.15),
        )
        for rate, mode, load in cells(tables)
        if load <= 0.75
    ]


def i17(tables: Tables) -> Sequence[Evidence]:
    """IW3 in the mix at high load."""
    heavy = [c for c in cells(tables) if c[2] >= 0.96]
    ratios = [in_mix(tables, *cell, IW3) for cell in heavy]

    def share(rows: Array) -> float:
        return 100 * float((np.median(rows, axis=0) <= 1.0).mean())

    return [
        Evidence.of(
            bootstrap_interval(np.column_stack(ratios), share),
            f"cells of {len(heavy)} in which IW3 is no slower in the mix than alone",
            at_least(50),
            unit="%",
        ),
        *(
            Evidence.of(median(ratio), f"{where(*cell)}: UCT of IW3 in the mix / alone", at_most(1.0), weighs=False)
            for cell, ratio in zip(heavy, ratios, strict=True)
        ),
    ]


def i18(tables: Tables) -> Sequence[Evidence]:
    """IW3 against IW10 in the mix, without what the round trips cost."""
    found = []
    for rate, mode, load in cells(tables):
        three, ten = (times(tables, rate, mode, load, MIX, "mean_s", iw=iw) for iw in (3, 10))
        saving = unloaded_s(tables, rate, IW3) - unloaded_s(tables, rate, IW10)
        found.append(
            Evidence.of(
                median((three - saving) / ten),
                f"{where(rate, mode, load)}: (UCT(IW3) − {saving:.2f} s) / UCT(IW10) in the mix",
                at_most(1.5),
            )
        )
    return found


def mixes(tables: Tables) -> Figure:
    """Completion time in the mix over that among their like."""
    rows = []
    for rate, mode, load in cells(tables):
        for arm in (IW3, IW10):
            e = median(in_mix(tables, rate, mode, load, arm))
            rows.append(
                {"rate": rate, "mode": mode, "load": load, "arm": arm, "ratio": e.value, "low": e.low, "high": e.high}
            )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = panels()
        for row, mode in enumerate(MODES):
            for column, rate in enumerate(RATES):
                ax = axes[row][column]
                at = loads(tables, rate)
                for i, arm in enumerate((IW3, IW10)):
                    own = table.filter(
                        (pl.col("rate") == rate) & (pl.col("mode") == mode) & (pl.col("arm") == arm)
                    ).sort("load")
                    value = own["ratio"].to_numpy()
                    error = np.abs(own.select("low", "high").to_numpy().T - value)
                    error[~np.isfinite(error)] = 0.0
                    x = np.arange(len(at)) + 0.16 * (2 * i - 1)
                    ax.errorbar(x, value, yerr=error, fmt=MARKER[arm], color=COLOUR[arm], label=arm, lw=1.1)
                ax.axhline(1.0, color=GREY, lw=0.9)
                ax.set_xticks(range(len(at)), [percent(x) for x in at])
            axes[row][0].set_ylabel("completion time,\nin the mix / alone")
        for ax in axes[-1]:
            ax.set_xlabel("offered load")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return Figure(
        name="mix",
        title=_mix_title(table),
        caption="Mean completion time of the flows with one initial window in the mix, over the same where all have it. Below 1: better off in the mix.",
        draw=draw,
        data={"mix": table},
    )


def _mix_title(table: pl.DataFrame) -> str:
    def span(arm: str) -> str:
        ratio = table.filter(pl.col("arm") == arm)["ratio"].to_numpy()
        return f"{ratio.min():.2f} to {ratio.max():.2f}"

    return f"In the half-and-half mix IW3 takes {span(IW3)} times as long as alone, IW10 {span(IW10)} times"


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="I15",
        place="slides: mix",
        statement="IW10 does much better mixed with IW3 than alone, since it meets a shorter queue.",
        direction=Criterion(
            measure=i15,
            reading="At most 0.85 times, in the three cells of the slide.",
        ),
        note="On the slow link the mix meets nearly the queue of IW10 alone. On the fast link at 96 % IW10 does gain in the mix: 30 to 40 %.",
    ),
    Claim(
        id="I16",
        place="slides: mix; RFC 6928, Appendix A",
        statement="At light and medium load IW3 suffers slightly from IW10 beside it.",
        direction=Criterion(
            measure=i16,
            reading="1.00 to 1.15 times in each cell up to 75 %.",
        ),
        note="The cells of the slow link with five opens are too noisy, and that with single opens at 75 % lies on the bound; on the fast link it holds in every cell.",
    ),
    Claim(
        id="I17",
        place="slides: mix; RFC 6928, Appendix A",
        statement="At high load it does not; often it gains.",
        direction=Criterion(
            measure=i17,
            reading="No slower in at least half of the cells with 96 % or more. The slides ask why: see the section on the mix.",
        ),
        note="It gains on the slow link and not on the fast one: half of the cells. The section on the mix says why.",
    ),
    Claim(
        id="I18",
        place="slides: mix; RFC 6928, Appendix A",
        statement="There is no serious unfairness between IW3 and IW10.",
        direction=Criterion(
            measure=i18,
            reading="In the mix, without what the round trips cost unloaded: at most 1.5 times in each cell.",
        ),
        note="On the empty slow link with five opens IW3 takes 1.7 times as long as IW10 beside it: the burst that comes first fills the queue, and IW3 waits behind it. In the other cells the ratio is below the bound or near it.",
    ),
)


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (mixes(t),)


def scenarios() -> Mapping[str, Scenario]:
    """As written."""
    return {"20 Mb/s, single opens, 72 %, mix": testbed.loaded(FAST, SINGLE, 0.72, MIX, duration_s=300)}


CHAPTER = Chapter(title="Mixed", claims=CLAIMS, blocks=blocks, scenarios=scenarios)
