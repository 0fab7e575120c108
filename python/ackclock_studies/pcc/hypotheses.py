"""H0 to H7 against each other: which of them reproduce the observations from virtual machines?

There are three observations: the shallower the buffer, the larger PCC's deficit (C2, C3); no deficit behind the deepest buffer (C4); CUBIC
is unaffected (C5). A hypothesis is judged by these three, over all sizes that were run. A link is compared with the testbed's, and a host
with exact hosts on its own link, so that effects of the link are not attributed to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import Figure, new
from ackclock.report import Block, Table, TableCell, paragraph
from ackclock.study import (
    Chapter,
    Tables,
)
from ackclock_studies.pcc import sweep
from ackclock_studies.pcc.testbed import BARE, CUBIC, CUT, ENVIRONMENTS, LABEL, MININET, MODELS, NEAR, NEWER, PACED, PCC

SHALLOW, DEEP = (5, 20), (100, 275)
"""Ranges of shallow and of deep buffer sizes, packets, inclusive."""
CLEAR, LITTLE = 10.0, 5.0
"""Deficits, in percentage points, that count as present and as absent, as in C2 and C4."""


def gaps(tables: Tables) -> pl.DataFrame:
    """Deficit, in percentage points, under each model at each size run. Links are compared with the
    testbed's link, hosts with exact hosts on the same link.
    """
    found = sweep.means(tables).select("model", "cc", "buffer", "share")
    base = found.rename({"model": "base"})
    links = {name: BARE if name in ENVIRONMENTS else model.link for name, model in MODELS.items()}
    named = found.filter(~pl.col("model").is_in((BARE, NEAR, NEWER))).with_columns(
        base=pl.col("model").replace_strict(links)
    )
    joined = named.join(base, on=("base", "cc", "buffer"), suffix="_base", maintain_order="left", how="inner")
    return joined.with_columns(points=100 * (pl.col("share_base") - pl.col("share"))).drop(
        "base", "share", "share_base"
    )


def judged(tables: Tables) -> pl.DataFrame:
    """Table of models, with the observations reproduced by their means."""
    rows = []
    for (model,), own in gaps(tables).filter(pl.col("buffer") >= SHALLOW[0]).group_by("model", maintain_order=True):

        def points(controller: str, sizes: tuple[int, int], own: pl.DataFrame = own) -> float:
            inside = own.filter((pl.col("cc") == controller) & pl.col("buffer").is_between(*sizes))
            return float(inside["points"].to_numpy().mean())

        shallow, deep = (points(PCC, sizes) for sizes in (SHALLOW, DEEP))
        rows.append(
            {
                "model": str(model),
                "worse_shallow": shallow >= CLEAR and shallow > deep + LITTLE,
                "recovers": points(PCC, (DEEP[1], DEEP[1])) <= LITTLE,
                "cubic_same": abs(points(CUBIC, (SHALLOW[0], DEEP[1]))) <= LITTLE,
                "shallow": shallow,
                "deep": deep,
                "cubic": points(CUBIC, (SHALLOW[0], DEEP[1])),
            }
        )
    return pl.DataFrame(rows)


def overstated(tables: Tables) -> tuple[float, float]:
    """H6: packets sent in excess of those delivered, PCC on bare metal: mean and maximum over sizes, percent."""
    t = sweep.means(tables).filter((pl.col("model") == BARE) & (pl.col("cc") == PCC))
    more = 100 * (t["sent_mbps"].to_numpy() * 1456 / 1500 / t["goodput_mbps"].to_numpy() - 1)
    return float(np.mean(more)), float(np.max(more))


def answer(tables: Tables) -> Sequence[Block]:
    """Answer to the study's open question from this run's numbers: the hypotheses that reproduce the observations, each with its deviation."""
    table = judged(tables)
    three = pl.col("worse_shallow") & pl.col("recovers") & pl.col("cubic_same")
    two = pl.col("worse_shallow") & pl.col("recovers") & ~pl.col("cubic_same")
    never = ~pl.col("recovers")
    kinds = (
        ("all three", three),
        (f"the first two; CUBIC changes by more than {LITTLE:g} points", two),
        ("not the second: too much is missing behind the deepest buffer", never),
        ("not the first: too little is missing behind shallow buffers", ~three & ~two & ~never),
    )
    rows: list[tuple[TableCell | str, ...]] = []
    for shown, kind in kinds:
        found = table.filter(kind)
        for i, r in enumerate(found.iter_rows(named=True)):
            first = (TableCell(text=shown, kind="text", span=found.height),) if i == 0 else ()
            numbers = (f"{r[name]:.0f}" for name in ("shallow", "deep", "cubic"))
            rows.append((*first, TableCell(text=r["model"], kind="head"), *numbers))
    question = (
        "Why did PCC fall behind in virtual machines? Three things were seen, against bare metal: the shallower the buffer the more is missing, "
        "nothing is missing behind 275 packets, CUBIC is as before. Each link is held against the testbed's, each host against exact hosts on the same "
        "link."
    )
    missing = Table(
        caption="What each hypothesis shows of the three. Points of the capacity below the testbed's link, or below exact hosts on the same link, on average.",
        header=(
            "shows",
            "hypothesis",
            f"PCC, {SHALLOW[0]} to {SHALLOW[1]} packets",
            f"PCC, from {DEEP[0]} packets on",
            "CUBIC, all sizes",
        ),
        rows=tuple(rows),
    )
    return (paragraph(question), missing, paragraph(why(tables)))


def in_short(tables: Tables) -> str:
    """Difference between the two sufficient causes."""
    by = {r["model"]: r for r in judged(tables).iter_rows(named=True)}
    netem, paced = by[MININET], by[PACED]
    return (
        "Two causes suffice for what was seen of PCC, and its throughput cannot tell them apart. One is the emulator's link (H3): netem's limit also "
        f"counts the packets in its delay line, which takes {netem['shallow']:.0f} points from PCC on average behind {SHALLOW[0]} to {SHALLOW[1]} packets and "
        f"{netem['deep']:.0f} from {DEEP[0]} on. The other is what the publication itself supposed (H7): pacing that wakes late and sends a batch. Every 10 ms it takes "
        f"{paced['shallow']:.0f} and {paced['deep']:.0f} points. What tells them apart is CUBIC, which is not paced: H7 leaves it as it was, as the publication saw it; netem "
        f"changes it by {netem['cubic']:.0f} points over all sizes, because a packet of several segments, as TCP hands it over, counts once there (cause of C5)."
    )


def why(tables: Tables) -> str:
    """Evidence that discriminates between the hypotheses, and evidence that does not."""
    mean, most = overstated(tables)
    return (
        f"{in_short(tables)} Hosts that stall and make up for it "
        "(H1, H5) harm both protocols: CUBIC's row shows it. Stalls that are not made up for (H2) and a core that is too slow (H4) take a share that no buffer gives back, "
        "which is what a dedicated single core showed (C6). H6, that the numbers of PCC's tools count what was sent, works the other way: it favours PCC, on bare metal by "
        f"{mean:.1f} % on average and {most:.1f} % at most. Which cause it was, the publication's logs could tell; they are lost."
    )


def figure(tables: Tables) -> Figure:
    """Deficit in percentage points at each size, one row per model."""
    table = gaps(tables).filter(pl.col("model") != CUT)

    def draw() -> Any:
        from matplotlib.colors import TwoSlopeNorm

        figure, axes = new(8.2, 4.6, ncols=2, sharey=True)
        names = table["model"].unique(maintain_order=True).to_list()
        shown = sorted(set(table.filter(pl.col("model") == PACED)["buffer"]))
        for ax, controller in zip(axes, (PCC, CUBIC), strict=True):
            found = np.full((len(names), len(shown)), np.nan)
            for r in table.filter((pl.col("cc") == controller) & pl.col("buffer").is_in(shown)).iter_rows(named=True):
                found[names.index(r["model"]), shown.index(r["buffer"])] = r["points"]
            image = ax.imshow(found, cmap="RdBu_r", norm=TwoSlopeNorm(0, -95, 95), aspect="auto")
            for (i, k), value in np.ndenumerate(found):
                if np.isfinite(value):
                    ax.text(
                        k,
                        i,
                        f"{value:.0f}",
                        ha="center",
                        va="center",
                        fontsize=6,
                        color="white" if abs(value) > 60 else "black",
                    )
            ax.set_xticks(range(len(shown)), [str(q) for q in shown])
            ax.set_xlabel("buffer (packets)")
            ax.set_title(LABEL[controller], fontsize=9)
            ax.grid(visible=False)
        axes[0].set_yticks(range(len(names)), names, fontsize=7)
        figure.colorbar(image, ax=axes, label="points below", shrink=0.8)
        return figure

    return Figure(
        name="hypotheses",
        title="What PCC and CUBIC lose under each hypothesis",
        caption=(
            "Points of the capacity below the testbed's link (links) or below exact hosts on the same link (hosts), means over seeds; negative: more than there. Seen in virtual machines: much missing "
            "behind shallow buffers, nothing behind 275 packets, CUBIC about zero."
        ),
        draw=draw,
        data={"gaps": table, "judged": judged(tables)},
    )


def blocks(t: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (figure(t), *answer(t))


CHAPTER = Chapter(title="Why PCC falls behind in virtual machines", blocks=blocks)
