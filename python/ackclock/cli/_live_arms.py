"""`ackclock compare` and `ackclock sweep run` with scenarios that name programs."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.cli import _terminal
from ackclock.cli._live import listed, raw, scenario_of
from ackclock.errors import InputError, ScenarioError, quote
from ackclock.text import NONE

if TYPE_CHECKING:
    import polars as pl

    from ackclock.scenario import Scenario
    from ackclock.sweep.programs import Arm

__all__ = ["compare", "grid", "named", "scenario_file"]

GRID = ("name", "scenario", "seeds", "zip", "axes", "names", "labels")
"""Allowed keys of a grid over such a scenario."""


def named(*files: Path) -> bool:
    """Return whether any of these scenarios names programs."""
    return any("programs" in raw(file) for file in files)


def compare(
    files: tuple[Path, Path],
    *,
    names: tuple[str, str],
    seeds: int,
    metrics: Sequence[str],
    out: Path | None,
    jobs: int,
    own_code: bool,
    as_json: bool,
    apart: Mapping[str, Any],
) -> None:
    """Run two scenarios with their programs under the same seeds; `apart` maps each option not allowed here to whether it was given."""
    from ackclock.cli._sweep import stoppable
    from ackclock.sweep import programs
    from ackclock.sweep.compare import Compared

    _refuse(apart)
    arms = [_arm(file, name, own_code) for file, name in zip(files, names, strict=True)]
    if out is not None:
        _terminal.writable_folder(out)
    stop = threading.Event()
    with _terminal.progress() as tell:

        def work() -> Compared:
            return programs.compare(
                arms[0], arms[1], seeds=seeds, metrics=metrics, folder=out, jobs=jobs, stop=stop,
                progress=lambda done, total, found: tell(_told(done, total, found), done / total),
            )  # fmt: skip

        found = stoppable(work, stop)
    if as_json:
        _terminal.show_json(found.to_json())
    else:
        _terminal.show(found.table())


def scenario_file(grid: Path) -> Path | None:
    """Return the file of a grid's scenario if that scenario names programs; None otherwise."""
    name = raw(grid).get("scenario") if grid.is_file() else None
    file = grid.parent / name if isinstance(name, str) and name else None
    return file if file is not None and named(file) else None


def grid(
    file: Path, scenario: Path, *, out: Path | None, jobs: int, own_code: bool, as_json: bool, apart: Mapping[str, Any]
) -> int:
    """Run a grid over a scenario with its programs. Exit code 1 if an awaited program failed."""
    import io

    import polars as pl

    from ackclock import _files
    from ackclock.cli._sweep import stoppable
    from ackclock.sweep import Sweep, programs

    _refuse(apart)
    values = raw(file)
    if other := [key for key in values if key not in GRID]:
        raise InputError(
            f"{file}: {other[0]}: found it with a scenario that names programs; allowed: {', '.join(GRID)}"
        )
    listed(scenario, own_code)
    base, flows = scenario_of(scenario, {}, None, {})
    sweep = Sweep.from_dict({"name": file.stem, **values, "scenario": base}, folder=file.parent)
    cells = [_cell(point, at, scenario, base, flows, own_code) for at, point in enumerate(sweep.points)]
    folder = out or Path(f"{file.stem}.sweep")
    _terminal.writable_folder(folder)
    place = programs.inside(folder) / f"{sweep.name}.parquet"
    stop = threading.Event()
    with _terminal.progress() as tell:
        rows = stoppable(
            lambda: programs.grid(
                cells, sweep.seeds, folder=folder, jobs=jobs, stop=stop,
                progress=lambda done, total, found: tell(_told(done, total, found), done / total),
            ),
            stop,
        )  # fmt: skip
    steps = [{axis.column: axis.show(point[axis.key]) for axis in sweep.axes} for point in sweep.points]
    table = pl.DataFrame([{"cell": row["cell"], **_plain(steps[row["cell"]]), **row} for row in rows], strict=False)
    table.write_parquet(buffer := io.BytesIO())
    _files.write(place, buffer.getvalue(), str(place))
    if as_json:
        _terminal.show_json({"sweep": sweep.name, "folder": str(folder), "table": str(place), "runs": table.to_dicts()})
    else:
        _show(table, [axis.column for axis in sweep.axes])
        _terminal.say(f"table: {place} ({table.height:,} rows)")
    return 1 if any(row["failed"] for row in rows) else 0


def _cell(point: Mapping[str, Any], at: int, file: Path, base: Scenario, flows: bool, own_code: bool) -> Arm:
    from ackclock.sweep.programs import Arm

    own = {key: value for key, value in point.items() if key.startswith("programs.")}
    rest = {key: value for key, value in point.items() if key not in own}
    try:
        return Arm(name=str(at), scenario=base.set_all(rest), programs=tuple(listed(file, own_code, own)), flows=flows)
    except ScenarioError as error:
        where = ", ".join(f"{key} = {quote(value)}" for key, value in point.items())
        raise ScenarioError(key=error.key, found=f"{error.found} in the cell {where}", allowed=error.allowed) from None


def _plain(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return an axis's values as stored in columns: a list of words becomes text."""
    return {
        name: shlex.join(map(str, value)) if isinstance(value, list | tuple) else value for name, value in step.items()
    }


def _show(table: pl.DataFrame, axes: Sequence[str]) -> None:
    """Print one row per cell: axis values, means of the main metrics, and the number of runs in which an awaited program failed."""
    import polars as pl

    from ackclock.cli._sheet import Sheet
    from ackclock.sweep.compare import number

    shown = ("completion_s", "goodput_bps", "retransmissions", "dropped_queue")
    sheet = Sheet("means", ["cell", *axes, "runs", *shown, "failed"], narrow=False)
    for (cell,), runs in table.group_by("cell", maintain_order=True):
        means = [runs[name].cast(pl.Float64).mean() for name in shown]
        told = [number(mean) if isinstance(mean, float) else NONE for mean in means]
        steps = [str(runs[name][0]) for name in axes]
        sheet.add_row(str(cell), *steps, str(runs.height), *told, str((runs["failed"] != "").sum()))
    _terminal.show(sheet)


def _told(done: int, total: int, found: int) -> str:
    return f"{done:,} of {total:,} runs" + (f", {found:,} found" if found else "")


def _refuse(apart: Mapping[str, Any]) -> None:
    for option, given in apart.items():
        if given:
            raise InputError(f"{option}: found it with scenarios that name programs; allowed: without programs")


def _arm(file: Path, name: str, own_code: bool) -> Arm:
    from ackclock.sweep.programs import Arm

    listed_here = listed(file, own_code)
    if not listed_here:
        raise InputError(f"{file}: found no programs; allowed: two scenarios with [[programs]], or two without")
    scenario, flows = scenario_of(file, {}, None, {})
    return Arm(name=name, scenario=scenario, programs=tuple(listed_here), flows=flows)
