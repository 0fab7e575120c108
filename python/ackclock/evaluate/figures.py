"""Figures of an evaluation: throughput against delay, harm, and the worst cell of a row over time."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from ackclock.evaluate.harness import Evaluation
from ackclock.evaluate.plan import REFERENCE
from ackclock.evaluate.verdict import Judged, RowVerdict, Verdict, judge, judge_part
from ackclock.judge.intervals import bootstrap_mean
from ackclock.plot import Figure
from ackclock.plot.grid import Line, draw_bars, log_axis, series, wide


def named(evaluation: Evaluation, arm: str) -> str:
    """Return an arm's name in figures."""
    plan = evaluation.plan
    if arm == "candidate":
        return plan.candidate.name if plan.candidate.name != REFERENCE else f"{plan.candidate.name} (candidate)"
    return plan.rival.name if arm == "rival" and plan.rival is not None else arm


def folded(text: str, letters: float) -> str:
    """Break a name into as many lines as it needs. Names with file, class and options may be long."""
    return "\n".join(textwrap.wrap(text, max(8, int(letters)), break_on_hyphens=False)) or text


def _legend_above(figure: Any, axes: Sequence[Any], width: float) -> None:
    """Draw one legend above all panels, so that it hides nothing, with as many names per line as fit."""
    seen: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            seen.setdefault(label, handle)
    names = [folded(name, 5 * width) for name in seen]
    widest = max((len(line) for name in names for line in name.split("\n")), default=0)
    columns = max(1, min(len(names), int(LETTERS_PER_INCH * width / (widest + 6))))
    figure.legend(seen.values(), names, loc="outside upper left", ncols=columns)


LETTERS_PER_INCH = 13
"""Characters per inch of a legend or title."""


def arms(evaluation: Evaluation) -> list[str]:
    """Return all arms' keys."""
    return [a.key for a in evaluation.plan.arms]


def as_candidate(evaluation: Evaluation, row: RowVerdict, arm: str) -> Verdict | None:
    """Return the row's verdict if this arm were the candidate."""
    found: list[Judged] = []
    for j in row.cells:
        theirs = evaluation.numbers.get((row.row.id, j.cell.id, j.measure.name, arm))
        if theirs is not None:
            reference = evaluation.numbers[(row.row.id, j.cell.id, j.measure.name, REFERENCE)]
            found.append(judge(j.measure, j.cell, theirs, reference))
    return judge_part(row.row, found, evaluation.plan.scale).verdict if found else None


def overview(evaluation: Evaluation) -> list[Figure]:
    """Draw the figures of rows 12, 8 and 14, if they were run."""
    drawn = (_scatter(evaluation), _harm(evaluation), _harm_map(evaluation), _loss_map(evaluation))
    return [f for f in drawn if f is not None]


def _row(evaluation: Evaluation, name: str) -> RowVerdict | None:
    return next((r for r in evaluation.rows if r.row.id == name and r.cells), None)


def _scatter(evaluation: Evaluation) -> Figure | None:
    import polars as pl

    row = _row(evaluation, "12")
    if row is None:
        return None
    cells = list({j.cell.id: j.cell for j in row.cells}.values())
    table: list[dict[str, Any]] = []
    for cell in cells:
        for arm in arms(evaluation):
            if ("12", cell.id, "utilisation", arm) not in evaluation.numbers:
                continue  # arms shown for information skip some cells
            got = {}
            for measure in ("utilisation", "p95 queue delay"):
                values = [
                    v for v in evaluation.numbers[("12", cell.id, measure, arm)].numbers.values() if math.isfinite(v)
                ]
                got[measure] = sum(values) / len(values) if values else math.nan
            table.append({"cell": cell.id, "rate_bps": cell.about["rate_bps"], "controller": named(evaluation, arm),
                          "utilisation": got["utilisation"], "p95_queue_delay_s": got["p95 queue delay"]})  # fmt: skip
    data = pl.DataFrame(table)
    rates = sorted(set(data["rate_bps"]))

    def draw() -> Any:
        from ackclock.plot.style import new

        width = 3.4 * len(rates) if len(rates) > 1 else 5.0
        figure, axes = new(width, 3.6, ncols=len(rates), squeeze=False)
        for ax, rate in zip(axes[0], rates, strict=True):
            for look in series([named(evaluation, a) for a in arms(evaluation)]):
                some = data.filter((pl.col("rate_bps") == rate) & (pl.col("controller") == look.label))
                delay = (some["p95_queue_delay_s"] * 1e3).to_numpy()
                ax.plot(delay.clip(min=0.05), some["utilisation"].to_numpy() * 100, ls="none", color=look.colour, marker=look.marker,
                        ms=6, mfc="none", mew=1.3, label=look.label)  # fmt: skip
            delays = [max(v * 1e3, 0.05) for v in data["p95_queue_delay_s"] if math.isfinite(v)]
            if wide(delays):
                log_axis(ax.xaxis, delays, ax.set_xscale)
            else:
                ax.margins(x=0.05)
                low, high = ax.get_xlim()
                apart = max(
                    0.05 * high - (high - low) / 2, 0.0
                )  # at least a tenth of the delay, so that small differences are not exaggerated
                ax.set_xlim(low - apart, high + apart)
            ax.invert_xaxis()
            ax.set_ylim(min(95.0, 100 * min(v for v in data["utilisation"] if math.isfinite(v)) - 1), 101)
            ax.set_title(f"{rate / 1e6:g} Mbit/s")
            ax.set_xlabel("p95 queue delay, ms")
        axes[0][0].set_ylabel("utilisation, %")
        _legend_above(figure, axes[0], width)
        return figure

    return Figure(
        name="throughput-delay",
        title="Throughput against delay, alone on a drop-tail path",
        caption="A point for each path of row 12, the mean over its seeds. Better is up and to the right.",
        draw=draw,
        data={"throughput-delay": data},
    )


def _harm(evaluation: Evaluation) -> Figure | None:
    import polars as pl

    row = _row(evaluation, "8")
    if row is None:
        return None
    name = "harm to the other's goodput"
    cells = [
        c
        for c in {j.cell.id: j.cell for j in row.cells}.values()
        if (c.about["rate_bps"], c.about["rtt_s"], c.about["own"], c.about["others"]) == (10e6, 0.04, 1, 1)
    ]
    victims = [v for v in ("reno", "cubic", "bbr3") if any(c.about["victim"] == v for c in cells)]
    table: list[dict[str, Any]] = []
    for cell in cells:
        for arm in arms(evaluation):
            found = evaluation.numbers.get(("8", cell.id, name, arm))
            if found is None:
                continue
            e = bootstrap_mean([v for v in found.numbers.values() if math.isfinite(v)])
            table.append({"victim": cell.about["victim"], "buffer_bdp": cell.about["buffer_bdp"], "controller": named(evaluation, arm),
                          "harm": e.value, "low": e.low, "high": e.high})  # fmt: skip
    if not table:
        return None
    data = pl.DataFrame(table)

    def draw() -> Any:
        from ackclock.plot.style import new

        width = 3.6 * len(victims) if len(victims) > 1 else 5.0
        figure, axes = new(width, 3.6, ncols=len(victims), squeeze=False, sharey=True)
        for ax, victim in zip(axes[0], victims, strict=True):
            some = data.filter(pl.col("victim") == victim)
            buffers = sorted(set(some["buffer_bdp"]))
            bars = {}
            for label in [named(evaluation, a) for a in arms(evaluation)]:
                one = some.filter(pl.col("controller") == label).sort("buffer_bdp")
                if one.height:
                    at = [buffers.index(b) for b in one["buffer_bdp"]]
                    bars[label] = Line(
                        x=at,
                        y=(one["harm"] * 100).to_list(),
                        low=(one["low"] * 100).to_list(),
                        high=(one["high"] * 100).to_list(),
                    )
            draw_bars(ax, [f"{b:g} BDP" for b in buffers], bars)
            ax.set_title(f"beside {victim}")
            ax.set_xlabel("buffer")
        axes[0][0].set_ylabel("harm to its goodput, %")
        _legend_above(figure, axes[0], width)
        return figure

    return Figure(
        name="harm",
        title="Harm to one other flow at 10 Mbit/s, 40 ms",
        caption="Goodput that the other flow loses, as a share of what it has alone, with 95 % intervals. An equal share is a harm of 50 %.",
        draw=draw,
        data={"harm": data},
    )


def _harm_map(evaluation: Evaluation) -> Figure | None:
    """Draw the candidate's harm minus CUBIC's, over paths and buffers."""
    row = _row(evaluation, "8")
    if row is None:
        return None
    table = []
    for j in row.cells:
        c = j.cell.about
        if j.measure.name == "harm to the other's goodput" and (c["own"], c["others"]) == (1, 1):
            path = f"{c['rate_bps'] / 1e6:g} Mbit/s, {c['rtt_s'] * 1e3:g} ms"
            at = {"panel": f"beside {c['victim']}", "down": path, "across": f"{c['buffer_bdp']:g}"}
            table.append({**at, "value": 100 * j.difference.value, "order": c["rate_bps"] + c["rtt_s"]})
    return _map(
        "harm-map", "Harm to one other flow, beyond that of CUBIC",
        "Percentage points of the other's goodput alone: above zero (orange) the candidate takes more than CUBIC would.",
        table, across="buffer, BDP", signed=True,
    )  # fmt: skip


def _loss_map(evaluation: Evaluation) -> Figure | None:
    """Draw utilisation under random loss, over paths and loss rates."""
    row = _row(evaluation, "14")
    if row is None:
        return None
    table = []
    for j in row.cells:
        c = j.cell.about
        if j.measure.name == "utilisation" and "loss" in c:
            path = f"{c['rate_bps'] / 1e6:g} Mbit/s, {c['rtt_s'] * 1e3:g} ms"
            at = {"down": path, "across": f"{c['loss'] * 100:g}", "order": c["rate_bps"] + c["rtt_s"]}
            for panel, e in ((named(evaluation, "candidate"), j.candidate), ("CUBIC in its place", j.reference)):
                table.append({**at, "panel": panel, "value": 100 * e.value})
    return _map(
        "loss-map", "Utilisation under random loss", "Percent of what the bottleneck carries.", table,
        across="loss, %", signed=False,
    )  # fmt: skip


def _map(
    name: str, title: str, caption: str, table: list[dict[str, Any]], *, across: str, signed: bool
) -> Figure | None:
    """Draw a grid of numbers in panels side by side; None if there is only one number."""
    import polars as pl

    if len({(r["down"], r["across"]) for r in table}) < 2:
        return None
    data = pl.DataFrame(table)
    panels = list(dict.fromkeys(data["panel"]))
    downs = list(dict.fromkeys(data.sort("order")["down"]))
    acrosses = sorted(set(data["across"]), key=float)
    most = max(abs(v) for v in data["value"]) or 1.0

    def draw() -> Any:
        from ackclock.plot.style import new

        width = max(5.0, 1.6 + len(panels) * (0.6 * len(acrosses) + 0.5))
        titles = [folded(panel, LETTERS_PER_INCH * (width - 1.6) / len(panels)) for panel in panels]
        height = 1.1 + 0.32 * len(downs) + 0.15 * max(title.count("\n") for title in titles)
        figure, axes = new(width, height, ncols=len(panels), squeeze=False, sharey=True)
        for ax, panel, title in zip(axes[0], panels, titles, strict=True):
            some = {(r["down"], r["across"]): r["value"] for r in data.iter_rows(named=True) if r["panel"] == panel}
            fields = [[some.get((d, a), math.nan) for a in acrosses] for d in downs]
            limits = (
                {"vmin": -most, "vmax": most, "cmap": "PuOr_r"} if signed else {"vmin": 0, "vmax": 100, "cmap": "Blues"}
            )
            ax.imshow(fields, aspect="auto", **limits)
            for y, line in enumerate(fields):
                for x, value in enumerate(line):
                    if math.isfinite(value):
                        strong = abs(value) > 0.7 * (most if signed else 100)
                        ax.text(x, y, f"{value:.0f}".replace("-", "−"), ha="center", va="center", fontsize=7.5,
                                color="white" if strong else "black")  # fmt: skip
            ax.set_xticks(range(len(acrosses)), acrosses)
            ax.set_yticks(range(len(downs)), downs)
            ax.grid(visible=False)
            ax.set_title(title)
            ax.set_xlabel(across)
        return figure

    return Figure(name=name, title=title, caption=caption, draw=draw, data={name: data.drop("order")})


def worst(evaluation: Evaluation, row: RowVerdict) -> Figure:
    """Draw the goodput of every group in the row's worst cell, or of its flows if they are few, with the candidate and
    with CUBIC in its place.
    """
    import polars as pl

    j = row.worst
    assert j is not None, "the row was tested"
    frames = {}
    for arm in ("candidate", REFERENCE):
        rows = evaluation.over_time[(row.row.id, arm)]
        scenario = evaluation.scenarios[(row.row.id, j.cell.id, arm)]
        names = [name for group in scenario.flows for name in _lines_of(group)]
        numbered = rows.with_columns(group=pl.Series([names[f] for f in rows["flow"]], dtype=pl.String))
        grouped = numbered.group_by("t_s", "group").agg(pl.col("goodput_bps").sum()).sort("t_s", "group")
        frames[arm] = _smoothed(grouped)

    def draw() -> Any:
        from ackclock.plot.style import new

        figure, axes = new(WORST_WIDTH, 2.6, ncols=2, sharey=True)
        for ax, (arm, frame) in zip(axes, frames.items(), strict=True):
            groups = evaluation.scenarios[(row.row.id, j.cell.id, arm)].flows
            labels = [name for group in groups for name in _lines_of(group)]
            for look in series(list(dict.fromkeys(labels))):
                one = frame.filter(pl.col("group") == look.label)
                ax.plot(one["t_s"], one["goodput_bps"] / 1e6, color=look.colour, ls=look.dash, label=look.label)
            title = named(evaluation, arm) if arm == "candidate" else "CUBIC in its place"
            ax.set_title(folded(title, LETTERS_PER_INCH * WORST_WIDTH / 2.5))
            ax.set_xlabel("time, s")
        axes[0].set_ylim(bottom=0)
        if len(set(labels)) > 1:
            _legend_above(figure, axes, WORST_WIDTH)
        axes[0].set_ylabel("goodput, Mbit/s")
        return figure

    return Figure(
        name=f"worst-{row.row.id}",
        title=f"Row {row.row.id}, {row.row.title}: {row.verdict}",
        caption=f"Worst cell by “{j.measure.name}”: {j.cell.words}. Seed {j.worst_seed}, the worst of {j.difference.n}.",
        draw=draw,
        data=frames,
    )


def _lines_of(group: Any) -> list[str]:
    """Return the label of each flow in a group: its own, or one for all flows."""
    few = 1 < group.count <= FEW
    return [f"{group.label} {i + 1}" if few else group.label for i in range(group.count)]


FEW = 4
"""Maximum number of flows in a group drawn as separate lines; for larger groups the sum is shown."""

WORST_WIDTH = 8.6
"""Width of a worst-cell figure, inches."""


def _smoothed(frame: Any) -> Any:
    """Reduce a line to about 150 points at most."""
    import polars as pl

    times = frame["t_s"].unique().sort()
    step = max(1, len(times) // 150)
    if step == 1:
        return frame
    width = float(times[1] - times[0]) * step
    binned = frame.with_columns(t_s=((pl.col("t_s") - 1e-9) / width).floor() * width + width)
    return binned.group_by("t_s", "group").agg(pl.col("goodput_bps").mean()).sort("t_s", "group")
