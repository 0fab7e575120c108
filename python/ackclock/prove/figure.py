"""The entire tree in one figure: the spread of all cases by number of losses, one colour per target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ackclock.prove.numbers import UNFINISHED, S, times
from ackclock.prove.proof import Proof

NOUN = {"marks": "marks", "late": "late packets", "start": "ticks"}


def draw(proof: Proof, place: Path) -> Path:
    """Draw median, quartiles and extremes by number of losses, and the fraction of all cases below each time.

    Parameters
    ----------
    proof
        All cases.
    place
        File: png, svg or pdf.
    """
    from ackclock.plot.style import OKABE_ITO, matplotlib

    matplotlib()
    from matplotlib.figure import Figure

    palette = [OKABE_ITO[name] for name in ("blue", "vermilion", "green", "purple", "orange", "sky", "black")]
    figure = Figure(figsize=(9.2, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.55, 1))
    width = 0.8 / len(proof.targets)
    for at, (target, cases) in enumerate(zip(proof.targets, proof.cases, strict=True)):
        took, groups = times(cases), []
        for yes in range(int(cases.yes.max()) + 1):
            of = took[(cases.yes == yes) & (took != UNFINISHED)] / S
            if len(of):
                groups.append((yes, *np.quantile(of, (0, 0.25, 0.5, 0.75, 1))))
        rows = np.array(groups)
        x = rows[:, 0] + (at - (len(proof.targets) - 1) / 2) * width
        colour: Any = palette[at % len(palette)]
        left.vlines(x, rows[:, 1], rows[:, 5], color=colour, linewidth=1)
        left.vlines(
            x, rows[:, 2], rows[:, 4], color=colour, linewidth=max(220 * width / max(len(rows), 8), 2), alpha=0.55
        )
        left.plot(x, rows[:, 3], "o", color=colour, markersize=3.2, label=target.name, linestyle="none")
        order = np.sort(took[took != UNFINISHED]) / S
        right.step(order, np.arange(1, len(order) + 1) / len(took), where="post", color=colour, linewidth=1.4)
    noun = NOUN.get(proof.adversary.name, "losses")
    left.set_xlabel(f"{noun} in a case")
    left.set_ylabel("completion (s)")
    left.set_ylim(bottom=0)
    left.legend(frameon=False, fontsize=8, title="dot: median; bar: half of the cases; line: all", title_fontsize=7)
    right.set_xlabel("completion (s)")
    right.set_ylabel("share of all cases")
    right.set_ylim(0, 1)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.suptitle(f"All {len(proof.cases[0]):,} cases: {proof.adversary.words}", fontsize=9)
    figure.savefig(place, dpi=150)
    return place
