"""Comparison with measured kernels: all cells, their bounds, and the results table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ackclock.errors import InputError
from ackclock.fidelity import reference, simulate
from ackclock.fidelity.reference import Values
from ackclock.fidelity.verdict import Bound, Row, judge

if TYPE_CHECKING:
    from rich.table import Table

Progress = Callable[[str, float], None]

BULK: Mapping[str, Bound | None] = {
    reference.GOODPUT: Bound(relative=0.02),
    reference.CWND: Bound(relative=0.05),
    reference.SRTT: Bound(relative=0.05),
    reference.RETRANSMISSIONS: Bound(relative=0.15, or_spread=True),
}
FAMILY: Mapping[str, Bound | None] = {
    reference.GOODPUT: Bound(relative=0.05),
    reference.CWND: None,
    reference.SRTT: Bound(relative=0.10),
    reference.RETRANSMISSIONS: Bound(relative=0.25, or_spread=True),
}
"""Bounds for all controllers except reno and cubic."""
ANY_PHASE: Mapping[str, Bound | None] = {reference.RETRANSMISSIONS: None}
SHARING: Mapping[str, Bound | None] = {
    reference.AGGREGATE: Bound(relative=0.02),
    reference.FIRST_SHARE: None,
    reference.RETRANSMISSIONS: None,
}
FETCHES: Mapping[str, Bound | None] = {
    **dict.fromkeys(reference.QUARTILES.values(), Bound(relative=0.05)),
    reference.SHARE_ANY: Bound(relative=0.05),
    reference.SHARE_DATA: Bound(relative=0.05),
}

CONTROLLERS = ("reno", "cubic")
OTHERS = ("westwood", "highspeed", "bbr", "vegas", "htcp", "illinois", "bic", "scalable", "yeah", "hybla")
"""Other measured algorithms, by their Linux names."""
LOSSES = (0.1, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredCell:
    """An experiment: the kernel's result, its simulation, and the quantities that are judged."""

    name: str
    kernel: Callable[[], Values]
    simulator: Callable[[], Values]
    bounds: Mapping[str, Bound | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A finished comparison.

    Parameters
    ----------
    kernel
        Release of the kernel that was measured.
    seeds
        Seeds of the simulator where it draws its own losses.
    rows
        One per cell and quantity.
    """

    kernel: str
    seeds: int
    rows: Sequence[Row] = field(repr=False)

    @property
    def unexpected(self) -> tuple[str, ...]:
        """Return one line for each miss without a known cause."""
        return tuple(
            f"{row.cell}, {row.quantity}: kernel {_number(row.kernel.mean)}, simulator {_number(row.simulator.mean)}"
            for row in self.rows
            if row.verdict == "misses"
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "kernel": self.kernel,
            "profile": "linux-6",
            "seeds": self.seeds,
            "rows": [row.to_json() for row in self.rows],
            "unexpected": list(self.unexpected),
        }

    def table(self) -> Table:
        """Return the table for the terminal."""
        from rich.table import Table

        table = Table(title=f"profile linux-6 beside Linux {self.kernel}", title_justify="left", caption_justify="left")
        table.add_column("cell")
        table.add_column("quantity")
        for name in ("kernel", "simulator", "difference", "bound", "2 SE"):
            table.add_column(name, justify="right")
        table.add_column("verdict")
        for before, row in zip((None, *self.rows), self.rows, strict=False):
            table.add_row("" if before and before.cell == row.cell else row.cell, *_cells(row))
        notes = [
            "mean ± standard deviation over seeds or starts; 2 SE: two standard errors of the kernel's mean, which count for "
            "retransmissions only"
        ]
        notes += [f"{row.cell}, {row.quantity}: {row.cause}" for row in self.rows if row.cause]
        table.caption = "\n".join(notes)
        return table

    def markdown(self) -> str:
        """Return the table in Markdown."""
        lines = ["| cell | quantity | kernel | simulator | difference | bound | 2 SE | verdict |"]
        lines.append("|---|---|---:|---:|---:|---:|---:|---|")
        lines += [f"| {row.cell} | " + " | ".join(_cells(row)) + " |" for row in self.rows]
        return "\n".join(lines)


def compare(*, seeds: int = 40, jobs: int = 1, progress: Progress | None = None) -> Comparison:
    """Simulate every cell and compare it with the kernel's.

    Parameters
    ----------
    seeds
        Seeds of the simulator where it draws its own losses, 2 or more.
    jobs
        Number of threads, which does not affect the result.
    progress
        Called with the cell and the fraction done.

    Returns
    -------
    Comparison
        Rows with verdicts.

    Raises
    ------
    InputError
        If there are fewer than 2 seeds.
    """
    if seeds < 2:
        raise InputError(f"seeds is {seeds}; allowed: 2 or more")
    rows = []
    todo = cells(seeds=seeds, jobs=jobs)
    for i, cell in enumerate(todo):
        if progress is not None:
            progress(cell.name, i / len(todo))
        kernel, simulator = cell.kernel(), cell.simulator()
        rows += [
            judge(cell.name, quantity, kernel=kernel[quantity], simulator=simulator[quantity], bound=bound)
            for quantity, bound in cell.bounds.items()
        ]
    if progress is not None:
        progress("", 1.0)
    return Comparison(kernel=reference.kernel_release(), seeds=seeds, rows=tuple(rows))


def cells(*, seeds: int, jobs: int) -> list[MeasuredCell]:
    """Return every experiment, in table order."""
    quiet = [(network, controller) for network in ("n1", "n3") for controller in CONTROLLERS]
    others = [(network, controller) for network in ("n1", "n3") for controller in OTHERS]
    lossy = [(loss, controller) for loss in LOSSES for controller in CONTROLLERS]
    return [
        *(_lossless(network, controller) for network, controller in quiet),
        *(_any_phase(network, controller) for network, controller in quiet),
        *(_lossless(network, controller, FAMILY) for network, controller in others),
        *(_same_losses(controller, loss, jobs) for loss, controller in lossy),
        *(_own_losses(controller, loss, seeds, jobs) for loss, controller in lossy),
        MeasuredCell(name="n2, two cubic flows", kernel=reference.sharing, simulator=simulate.sharing, bounds=SHARING),
        *(_fetches(size, seeds, jobs) for size in simulate.FETCHES),
    ]


def _lossless(network: str, controller: str, bounds: Mapping[str, Bound | None] = BULK) -> MeasuredCell:
    return MeasuredCell(
        name=f"{network} {controller}",
        kernel=partial(reference.bulk, network, controller),
        simulator=partial(simulate.bulk, network, simulate.OURS.get(controller, controller)),
        bounds=bounds,
    )


def _any_phase(network: str, controller: str) -> MeasuredCell:
    """Influence of the start phase: the kernel's three starts compared with simulated starts over a whole tick."""
    return MeasuredCell(
        name=f"{network} {controller}, any phase",
        kernel=partial(reference.bulk, network, controller),
        simulator=partial(simulate.bulk, network, controller, phases_us=tuple(range(0, 1000, 50))),
        bounds=ANY_PHASE,
    )


def _same_losses(controller: str, loss: float, jobs: int) -> MeasuredCell:
    return MeasuredCell(
        name=f"n2 {controller}, {loss:g} %, the kernel's losses",
        kernel=partial(reference.bulk, "n2", controller, loss),
        simulator=partial(simulate.same_losses, controller, loss, jobs=jobs),
        bounds=BULK,
    )


def _own_losses(controller: str, loss: float, seeds: int, jobs: int) -> MeasuredCell:
    return MeasuredCell(
        name=f"n2 {controller}, {loss:g} %, own losses",
        kernel=partial(reference.bulk, "n2", controller, loss),
        simulator=partial(simulate.own_losses, controller, loss, seeds=seeds, jobs=jobs),
        bounds=BULK,
    )


def _fetches(size: int, seeds: int, jobs: int) -> MeasuredCell:
    return MeasuredCell(
        name=f"fetches of {size:,} bytes, 1 %",
        kernel=partial(reference.fetches, size),
        simulator=partial(simulate.fetches, size, seeds=seeds, jobs=jobs),
        bounds=FETCHES,
    )


def _cells(row: Row) -> list[str]:
    bound = "–" if row.bound is None else f"{100 * row.bound.relative:g} %"
    return [
        row.quantity,
        f"{_number(row.kernel.mean)} ± {_number(row.kernel.sd)}",
        f"{_number(row.simulator.mean)} ± {_number(row.simulator.sd)}",
        f"{100 * row.difference:+.2f} %" if row.kernel.mean else ("none" if row.simulator.mean == 0 else "–"),
        bound,
        "–" if row.bound is None or not row.kernel.mean else f"{200 * row.kernel.se / abs(row.kernel.mean):.2f} %",
        row.verdict,
    ]


def _number(x: float) -> str:
    return f"{x:.1f}" if abs(x) >= 1000 else f"{x:.4g}"
