"""FRCC's grid: `python tools/frcc.py FOLDER` runs the sweeps of examples/frcc, writes measured/frcc.json and the figure of docs/frcc.md.

The module is the file published by its authors; fetch it and put it next to the sweeps as `tcp_frcc.c`. Runs already
in FOLDER are not repeated.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import polars as pl  # noqa: E402

import ackclock.sweep as sweeps  # noqa: E402
from ackclock.plot import style  # noqa: E402
from book import record  # noqa: E402

HERE = ROOT / "examples" / "frcc"
IMAGE = ROOT / "docs" / "images" / "frcc.png"
SWEEPS = {
    "flows": ("number of flows", "many", "jain"),
    "delay": ("base RTT, ms", "delay", "jain"),
    "rate": ("rate, Mbit/s", "rate", "jain"),
    "jitter": ("ACKs of one flow held, ms", "bursts", "ratio"),
    "rtt-ratio": ("base RTT, times the other's", "far", "ratio"),
}
"""Sweep -> axis label, axis column, quantity plotted by the authors."""

NAMES = {"tcp_frcc.c": "FRCC", "bbr": "BBR", "bbr3": "BBRv3", "cubic": "CUBIC", "reno": "Reno", "copa": "Copa"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    if not (HERE / "tcp_frcc.c").is_file():
        sys.exit(
            f"frcc: {HERE / 'tcp_frcc.c'}: found nothing; allowed: the module of the repository 108anup/frcc_kernel"
        )
    found = {name: measured(name, folder / name) for name in SWEEPS}
    rows = [
        [name, x, NAMES[controller], *(f"{value:.3g}" for value in (jain, ratio, rtt, share))]
        for name, table in found.items()
        for controller, x, jain, ratio, rtt, share in table.rows()
    ]
    record(
        "frcc",
        what="FRCC, its authors' module as published, beside five built-in controllers on the grid of its paper's scripts",
        heads=[
            "sweep",
            "at",
            "controller",
            "Jain's index",
            "most / least goodput",
            "mean RTT, ms",
            "share of the rate",
        ],
        rows=rows,
        seeds="1 to 3, means",
        command="tools/frcc.py FOLDER",
        notes=["Over the last two fifths of the time in which all flows run, as the authors' scripts take it."],
    )
    draw(found)
    return 0


def measured(name: str, folder: Path) -> pl.DataFrame:
    """Run a sweep, and return the controller, axis position, Jain's index, ratio, mean RTT in ms and fraction of the rate, as means over the seeds."""
    sweep = sweeps.load(HERE / f"{name}.toml", own_code=True)
    threads = sweeps.Threads(1)
    try:
        results, _ = sweeps.run(sweep, folder, threads)
    finally:
        threads.close()
    axis = SWEEPS[name][1]
    goodput = pl.col("goodput_bps")
    runs = (
        results.flows.group_by("controller", axis, "cell", "seed", maintain_order=True)
        .agg(
            jain=goodput.sum() ** 2 / (pl.len() * (goodput**2).sum()),
            ratio=goodput.max() / goodput.min(),
            rtt=1e3 * pl.col("mean_rtt_s").mean(),
            sum=goodput.sum(),
        )
        .with_columns(x=pl.col(axis).map_elements(lambda value: place(name, value), return_dtype=pl.Float64))
        .with_columns(
            share=pl.col("sum") / (1e6 * {"rate": pl.col("x"), "rtt-ratio": pl.lit(96)}.get(name, pl.lit(48)))
        )
    )
    return runs.group_by("controller", "x", maintain_order=True).agg(pl.col("jain", "ratio", "rtt", "share").mean())


def place(name: str, value: object) -> float:
    """Return an axis value's position in the figure."""
    number = float(str(value).split()[0])
    return {"delay": 2 * number, "rtt-ratio": number / 2}.get(name, number)


LINES = {
    "tcp_frcc.c": ("black", "o", 2.4),
    "bbr": ("blue", "s", 1.2),
    "bbr3": ("sky", "D", 1.2),
    "cubic": ("vermilion", "^", 1.2),
    "reno": ("orange", "v", 1.2),
    "copa": ("green", "P", 1.2),
}
"""Controller -> colour, marker and line width."""


def draw(found: dict[str, pl.DataFrame]) -> None:
    """Draw one panel per sweep, one line per controller."""
    import matplotlib.pyplot as plt

    with style.styled():
        figure, axes = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
        for ax, (name, (label, _, quantity)) in zip(axes.flat, SWEEPS.items(), strict=False):
            for controller, title in NAMES.items():
                line = found[name].filter(pl.col("controller") == controller).sort("x")
                colour, marker, width = LINES[controller]
                ax.plot(
                    line["x"], line[quantity], label=title,
                    color=style.OKABE_ITO[colour], marker=marker, markersize=4, linewidth=width,
                )  # fmt: skip
            if name == "rtt-ratio":
                ratios = found[name]["x"].unique().sort()
                ax.plot(ratios, ratios, linestyle=":", color=style.GREY, label="as the base RTTs")
            if name in ("delay", "jitter", "rtt-ratio"):
                ax.set_xscale("log", base=2)
                ticks = sorted(set(found[name]["x"]) - {30.0, 80.0})
                ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
                ax.minorticks_off()
            ax.set_xlabel(label)
            if quantity == "ratio":
                ax.set_yscale("log")
                ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200) if tick < 1.2 * max(found[name]["ratio"])]
                ax.set_yticks(ticks, [str(tick) for tick in ticks])
                ax.minorticks_off()
                ax.set_ylabel("most / least goodput")
            else:
                ax.set_ylim(0.75, 1.01)
                ax.set_ylabel("Jain's index")
        last = axes.flat[-1]
        last.axis("off")
        last.legend(*axes.flat[4].get_legend_handles_labels(), loc="center left")
        IMAGE.write_bytes(style.saved(figure, "png"))
        plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
