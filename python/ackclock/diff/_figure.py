"""Draws both cwnd trajectories over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ackclock import _files
from ackclock.diff._compare import Comparison

if TYPE_CHECKING:
    from pathlib import Path


def draw(result: Comparison, path: Path) -> None:
    """Draw cwnd before each ACK on both backends, and mark the first divergence.

    Parameters
    ----------
    result
        Comparison to draw.
    path
        File; its ending selects the format (svg, pdf, png).
    """
    import polars as pl

    from ackclock.plot import OKABE_ITO
    from ackclock.plot.style import matplotlib, saved

    matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    ax = figure.add_subplot()
    first, second = result.names
    backends = ((first, result.simulator, "blue", 2.6), (second, result.kernel, "vermilion", 1.0))
    for name, run, colour, width in backends:
        acks = run.acks.filter((pl.col("flow") == 0) & (pl.col("event") == "ack"))
        ax.step(acks["t_s"], acks["cwnd_before"], where="post", color=OKABE_ITO[colour], lw=width, label=name)
    if result.divergence is not None:
        ax.axvline(result.divergence.t_s, color="#777777", ls=":", lw=1, label="first divergence")
    ax.set_xlabel("time, s")
    ax.set_ylabel("cwnd, segments")
    ax.legend(frameon=False)
    _files.write(path, saved(figure, path.suffix.removeprefix(".")), f"--figure {path}")
