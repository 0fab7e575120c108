"""H1 to H6 against each other: which of them gives what was seen in virtual machines?

Seen were three things: the shallower the buffer, the more is missing (C2, C3); nothing is missing behind the deepest one (C4);
CUBIC is as before (C5). A hypothesis is judged by these three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.report import Block, paragraph
from ackclock.studies.pcc import sweep
from ackclock.studies.pcc.testbed import CUBIC, IDEAL, OFFLOAD, PCC, TESTBED
from ackclock.study import (
    Chapter,
    Tables,
)

SHALLOW, MIDDLE, DEEP = 20, 50, 275
CLEAR, LITTLE = 10.0, 5.0
"""Points that count as missing, and as not missing: those of C2 and C4."""


def gaps(tables: Tables) -> pl.DataFrame:
    """What is missing under each model: PCC against the testbed, CUBIC against ideal hosts; points with intervals."""
    rows = []
    for model in sweep.models(tables):
        if model in (IDEAL, TESTBED):
            continue
        for controller, base in ((PCC, TESTBED), (CUBIC, IDEAL)):
            for packets in (SHALLOW, MIDDLE, DEEP):
                e = sweep.gap(tables, model, controller, packets, base=base)
                rows.append(
                    {
                        "model": model,
                        "cc": controller,
                        "buffer": packets,
                        "points": e.value,
                        "low": e.low,
                        "high": e.high,
                    }
                )
    return pl.DataFrame(rows)


def judged(tables: Tables) -> pl.DataFrame:
    """Per model, which of the three observations its means give."""
    rows = []
    for (model,), own in gaps(tables).group_by("model", maintain_order=True):

        def points(controller: str, packets: int, own: pl.DataFrame = own) -> float:
            return float(own.filter((pl.col("cc") == controller) & (pl.col("buffer") == packets))["points"][0])

        rows.append(
            {
                "model": str(model),
                "worse_shallow": points(PCC, SHALLOW) >= CLEAR and points(PCC, SHALLOW) > points(PCC, DEEP) + LITTLE,
                "recovers": points(PCC, DEEP) <= LITTLE,
                "cubic_same": max(abs(points(CUBIC, q)) for q in (SHALLOW, MIDDLE, DEEP)) <= LITTLE,
                "at_20": points(PCC, SHALLOW),
                "at_50": points(PCC, MIDDLE),
                "at_275": points(PCC, DEEP),
                "cubic_worst": max((points(CUBIC, q) for q in (SHALLOW, MIDDLE, DEEP)), key=abs),
            }
        )
    return pl.DataFrame(rows)


def overstated(tables: Tables) -> tuple[float, float]:
    """H6: by how much sent packets exceed delivered ones, PCC on the testbed: mean and greatest over sizes, percent."""
    t = sweep.means(tables).filter((pl.col("model") == TESTBED) & (pl.col("cc") == PCC))
    more = 100 * (t["sent_mbps"].to_numpy() * 1456 / 1500 / t["goodput_mbps"].to_numpy() - 1)
    return float(np.mean(more)), float(np.max(more))


def answer(tables: Tables) -> str:
    """The study's open question in one paragraph, from this run's numbers."""
    table = judged(tables)

    def listed(rows: pl.DataFrame) -> str:
        return (
            "; ".join(
                f"{r['model']} ({r['at_20']:.0f} points missing at 20 packets, {r['at_50']:.0f} at 50, {r['at_275']:.0f} at 275; "
                f"CUBIC {r['cubic_worst']:+.0f} at most)"
                for r in rows.iter_rows(named=True)
            )
            or "none"
        )

    three = pl.col("worse_shallow") & pl.col("recovers") & pl.col("cubic_same")
    two = pl.col("worse_shallow") & pl.col("recovers") & ~pl.col("cubic_same")
    never = ~pl.col("recovers")
    rest = table.filter(~three & ~two & ~never)
    return (
        "Why did PCC fall behind in virtual machines? Three things were seen: the shallower the buffer the more is missing, nothing is "
        f"missing behind 275 packets, CUBIC is as before. All three are given by: {listed(table.filter(three))}. The first two, but with "
        f"a CUBIC that changes by more than {LITTLE:g} points: {listed(table.filter(two))}. Too much is still missing behind the deepest "
        f"buffer under: {listed(table.filter(never))}. Too little is missing behind shallow ones under: {listed(rest)}. {why(tables)}"
    )


def why(tables: Tables) -> str:
    """What tells the hypotheses apart."""
    mean, most = overstated(tables)
    netem = {r["model"]: r for r in judged(tables).iter_rows(named=True)}.get(OFFLOAD)
    measured = (
        f"it takes {netem['at_20']:.0f} points from PCC behind 20 packets and {netem['at_275']:.0f} behind 275, and "
        f"{'takes at most' if netem['cubic_worst'] > 0 else 'gives at most'} {abs(netem['cubic_worst']):.0f} "
        f"{'from' if netem['cubic_worst'] > 0 else 'to'} CUBIC, whose large packets carry their headers once"
        if netem
        else "it was not run"
    )
    return (
        "What tells the hypotheses apart is CUBIC: a host that stalls and makes up for it (H1, H5) spoils both protocols, for TCP's window is "
        "a burst as well. The emulator's limit (H3) counts what is in its delay line, and counts a packet of several segments, as "
        f"TCP hands it over, once; PCC's packets count one by one: {measured}. It needs no fault of the host at all. Stalls that are not made up for "
        "(H2) and a core that is too slow (H4) take a share that no buffer gives back, which is what a dedicated single core showed (C6). "
        f"H6, that PCC's column counts what was sent, works the other way: it flatters PCC, on the testbed by {mean:.1f} % on average and "
        f"{most:.1f} % at most."
    )


def figure(tables: Tables) -> Figure:
    """Gaps side by side."""
    table = gaps(tables)

    def draw() -> Any:
        figure, axes = new(8.2, 4.2, ncols=2, sharey=True)
        names = table["model"].unique(maintain_order=True).to_list()
        looks = ((SHALLOW, "vermilion", "o"), (MIDDLE, "orange", "s"), (DEEP, "blue", "^"))
        for ax, controller, against in zip(
            axes, (PCC, CUBIC), ("PCC, below the testbed", "CUBIC, below ideal"), strict=True
        ):
            for i, (packets, colour, marker) in enumerate(looks):
                own = table.filter((pl.col("cc") == controller) & (pl.col("buffer") == packets))
                value = own["points"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                y = np.arange(len(names)) + 0.22 * (i - 1)
                ax.errorbar(
                    value, y, xerr=error, fmt=marker, color=OKABE_ITO[colour], label=f"{packets} packets", lw=1, ms=4
                )
            ax.axvspan(-LITTLE, LITTLE, color=GREY, alpha=0.15, lw=0)
            ax.axvline(0, color=GREY, lw=0.9)
            ax.set_xlim(-40, 105)
            ax.set_title(against, fontsize=9)
            ax.set_xlabel("points of the link's capacity")
            ax.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(names)), names)
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    return Figure(
        name="hypotheses",
        title="What is missing under each hypothesis",
        caption=(
            "Means over seeds with 95 % intervals; the grey band is what counts as nothing. Seen in virtual machines: much missing at 20 "
            "packets, nothing at 275, CUBIC in the band."
        ),
        draw=draw,
        data={"gaps": table, "judged": judged(tables)},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """For the report."""
    return (figure(t), paragraph(answer(t)))


CHAPTER = Chapter(title="Why virtual machines spoil it", blocks=blocks)
