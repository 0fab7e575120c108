"""`ackclock sweep` and `ackclock compare`.

Length: eight commands, mostly the declaration of their options.
"""

from __future__ import annotations

import dataclasses
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._options import (
    NOTHING,
    Jobs,
    Json,
    Metric,
    MostSeeds,
    Out,
    OwnCode,
    Pbs,
    Scheduler,
    Slurm,
    Stacks,
    Target,
    TimeLimit,
    Width,
    Worker,
    file_name,
    load_stacks,
    whole_number,
)
from ackclock.cli._workers import Workers
from ackclock.errors import AckclockError, InputError, ScenarioError, quote
from ackclock.text import share as told_share

if TYPE_CHECKING:
    from ackclock.sweep import Precision, Results, Status, Sweep

T = TypeVar("T")


def run(
    file: Target,
    out: Out = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = NOTHING,
    until_width: Width = None,
    metric: Metric = "goodput_bps",
    most_seeds: MostSeeds = 10_000,
    time_limit: TimeLimit = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that failed before.")] = False,
    own_code: OwnCode = False,
    stack: Stacks = NOTHING,
    as_json: Json = False,
) -> int:
    """Make the runs missing from the folder. Exit code 1 if runs failed."""
    from ackclock.cli import _live_arms

    workers = Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker)
    if (scenario := _live_arms.scenario_file(file)) is not None:
        apart = {
            "--scheduler": scheduler, "--slurm": slurm, "--pbs": pbs, "--worker": worker, "--until-width": until_width,
            "--time-limit": time_limit, "--stack": stack, "--retry": retry,
        }  # fmt: skip
        return _live_arms.grid(
            file, scenario, out=out, jobs=jobs or _terminal.cpus(), own_code=own_code, as_json=as_json, apart=apart
        )
    load_stacks(stack)
    return _make(
        file,
        out,
        workers,
        width=until_width,
        metric=metric,
        most_seeds=most_seeds,
        time_limit=time_limit,
        retry=retry,
        own_code=own_code,
        as_json=as_json,
    )


def _make(
    file: Path,
    out: Path | None,
    workers: Workers,
    *,
    time_limit: str | None,
    retry: bool,
    own_code: bool,
    as_json: bool,
    width: str | None = None,
    metric: str = "goodput_bps",
    most_seeds: int = 0,
) -> int:
    """Make the missing runs; exit code 1 if runs failed."""
    from ackclock import stacks
    from ackclock import sweep as sweeps
    from ackclock.sweep.precision import parse_width

    workers.check()
    sweep, folder = _find(file, out, own_code=own_code)
    if (absent := stacks.missing(cell.text for cell in sweep.cells)) is not None:
        raise InputError(
            f"congestion_control: found {quote(absent)}; allowed: stacks that are given to the command with --stack FILE"
        )
    if time_limit is not None:
        try:
            sweep = dataclasses.replace(sweep, time_limit=time_limit)
        except ScenarioError as error:
            raise ScenarioError(key="--time-limit", found=error.found, allowed=error.allowed) from None
    precision = None
    if width is not None:
        precision = sweeps.Precision(metric=metric, width=parse_width(width), most_seeds=most_seeds)
    if not folder.is_dir():
        _terminal.writable_folder(folder)
    stop = threading.Event()
    with _terminal.progress() as tell:

        def work() -> tuple[Results, Status]:
            with workers.open() as executor:
                return sweeps.run(
                    sweep, folder, executor, precision=precision, retry=retry, progress=told(tell), stop=stop
                )

        results, status = stoppable(work, stop)
    for lost in status.lost:
        _terminal.warn(f"ackclock: {lost}: made again")
    if as_json:
        _terminal.show_json(_status_json(folder, sweep.name))
    else:
        if status.engine_cpu_s:
            _terminal.warn(f"{speed(status)}, {percent(status.simulating)} of the time simulating ({slots(status)})")
        _terminal.say(
            f"{status.done:,} of {status.total:,} runs done"
            + (f", {status.found:,} of them found" if status.found else "")
            + (f", {status.failed:,} failed (`ackclock sweep status` says why)" if status.failed else "")
        )
        _terminal.say(f"table: {folder / 'sweeps' / sweep.name / 'table.parquet'} ({results.runs.height:,} rows)")
        for line in told_same(results):
            _terminal.say(line)
        if precision is not None:
            _terminal.say(reached(results, precision))
    if not status.finished:
        from ackclock.sweep.page import trusting

        again = " ".join(("ackclock sweep resume", str(file), *trusting(sweep)))
        _terminal.warn(f"ackclock: stopped; go on with `{again}`")
        return 130
    return 1 if status.failed else 0


def resume(
    file: Target,
    out: Out = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = NOTHING,
    time_limit: TimeLimit = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that failed before.")] = False,
    own_code: OwnCode = False,
    stack: Stacks = NOTHING,
    as_json: Json = False,
) -> int:
    """Continue a sweep. The same as run, for an existing folder."""
    from ackclock import sweep as sweeps

    folder, _ = _folder(file, out)
    with sweeps.Store(folder):
        pass
    load_stacks(stack)
    workers = Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker)
    return _make(file, out, workers, time_limit=time_limit, retry=retry, own_code=own_code, as_json=as_json)


def status(
    file: Target,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Show a sweep's progress, even while it is running."""
    folder, name = _folder(file, out)
    found = _status_json(folder, name)
    if as_json:
        _terminal.show_json(found)
        return
    named = {} if found["at_work"] else {"running": "interrupted"}
    counts = ", ".join(f"{n:,} {named.get(state, state)}" for state, n in found["runs"].items() if n) or "no runs"
    _terminal.say(f"{found['sweep']}: {found['total']:,} runs: {counts}")
    for lost in found["lost"]:
        _terminal.say(f"lost: {lost}; `ackclock sweep resume` makes them again")
    for i, failure in enumerate(found["failures"]):
        if i == 0 and failure["cell"] is not None:
            from ackclock import sweep as sweeps
            from ackclock.sweep.page import trusting

            text = folder / "sweeps" / found["sweep"] / "sweep.toml"  # missing until the end of the first session
            held = trusting(sweeps.load(text, own_code=True)) if text.is_file() else ()  # only parsed
            asked = f"ackclock sweep rerun {file} --cell {failure['cell']} --seed {failure['seed']}"
            again = " ".join((asked, *held))
            _terminal.say(f"`{again}` repeats the first that failed:")
        cell = "" if failure["cell"] is None else f"cell {failure['cell']} ("
        _terminal.say(
            f"failed: {cell}{failure['told']}{')' if cell else ''}, seed {failure['seed']}: {failure['error']}"
        )


def rerun(
    file: Target,
    cell: Annotated[int, typer.Option(metavar="N", help="Number of the cell, as in tables and `status`.")],
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the run.")] = 1,
    out: Out = None,
    own_code: OwnCode = False,
    stack: Stacks = NOTHING,
) -> None:
    """Make one run again, and print its tables. Nothing is kept."""
    from ackclock._results.run import run as simulate
    from ackclock.cli._tables import tables

    load_stacks(stack)
    sweep, _ = _find(file, out, own_code=own_code)
    if not 0 <= cell < len(sweep.points):
        raise InputError(f"--cell: found {cell}; allowed: 0 to {len(sweep.points) - 1}")
    scenario = sweep.cells[cell].scenario
    result = _terminal.interruptible(lambda: simulate(scenario, seed=seed))
    _terminal.say(f"cell {cell}: {sweep.told(cell)}")
    _terminal.show(*tables(result))
    _terminal.show(f"seed {result.seed}, engine {result.engine}, digest {result.digest}")


def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a sweep.")],
    repair: Annotated[
        bool, typer.Option("--repair", help="Mark runs whose rows are lost, so that they are made again.")
    ] = False,
) -> int:
    """Compare every file of a store with what was written. Exit code 1 if something is lost."""
    from ackclock.sweep import Store, integrity
    from ackclock.sweep.database import set_aside

    if not repair:
        with Store(folder) as store:
            found = [str(damage) for damage in store.check()]
        for line in found:
            _terminal.say(line)
        _terminal.say(
            "nothing is lost" if not found else f"`ackclock sweep check {folder} --repair` lets them be made again"
        )
        return 1 if found else 0
    try:
        with Store(folder) as store:
            store.check()
    except integrity.DamagedError:
        for line in set_aside(folder):
            _terminal.say(line)
    with Store(folder, write=True, again=True) as store:
        for line in store.lost:
            _terminal.say(line)
        _terminal.say("`ackclock sweep run` makes again what is missing")
    return 0


def export(
    file: Target,
    out: Out = None,
    csv: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Write the table as CSV, the axes first.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Write the table as Parquet.")
    ] = None,
    of: Annotated[str, typer.Option("--of", metavar="runs|flows|groups", help="Subject of a row.")] = "runs",
) -> None:
    """Write one of a sweep's tables; works while the sweep is still running. One row per run, or per flow or group within each run."""
    from ackclock import sweep as sweeps
    from ackclock.text import csv as as_csv

    if of not in ROWS:
        raise InputError(f"--of: found {quote(of)}; allowed: {', '.join(ROWS)}")
    places = [(option, place) for option, place in (("--csv", csv), ("--parquet", parquet)) if place is not None]
    if not places:
        raise InputError("--csv: found nothing; allowed: a file that can be written, or --parquet FILE")
    folder, name = _folder(file, out)
    results = sweeps.read(folder, name)
    _files.reads(folder, *([file] if file.is_file() else []))
    for option, place in places:
        _terminal.writable_file(place, option)
    table = results.numbered(getattr(results, of))
    for option, place in places:
        content: str | bytes
        if option == "--csv":
            content = as_csv(table)
        else:
            table.write_parquet(buffer := io.BytesIO())
            content = buffer.getvalue()
        _files.write(place, content, f"{option} {place}")
        _terminal.say(f"written: {place} ({table.height:,} {'runs' if of == 'runs' else 'rows'})")


ROWS = ("runs", "flows", "groups")
"""Kinds of rows in an exported table."""


def plot(
    file: Target,
    out: Out = None,
    metric: Metric = "goodput_bps",
    kind: Annotated[
        list[str],
        typer.Option(
            metavar="lines|bars|groups|heat-map|cdf|pareto", help="Draw only figures of this kind. Repeatable."
        ),
    ] = NOTHING,
    x: Annotated[str | None, typer.Option(metavar="AXIS", help="Axis of the grid along x.")] = None,
    by: Annotated[str | None, typer.Option(metavar="AXIS", help="Axis of the grid with a line for each value.")] = None,
    panel: Annotated[
        list[str], typer.Option(metavar="AXIS", help="Axis of the grid with a panel for each value. Repeatable.")
    ] = NOTHING,
    row: Annotated[
        str | None, typer.Option(metavar="AXIS", help="Axis of the grid with a row of panels for each value.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="AXIS", help="Axis of the grid with a column of panels for each value.")
    ] = None,
    where: Annotated[
        list[str], typer.Option(metavar="AXIS=VALUE", help="Only runs with this value. Repeatable.")
    ] = NOTHING,
    average: Annotated[
        list[str],
        typer.Option(
            metavar="AXIS",
            help="Take means over this axis: of a metric that is a share, or with --normalise. Repeatable.",
        ),
    ] = NOTHING,
    against: Annotated[
        str | None,
        typer.Option(metavar="AXIS=VALUE", help="Show differences from the run with this value, seed by seed."),
    ] = None,
    normalise: Annotated[
        bool | None,
        typer.Option(
            "--normalise/--as-measured",
            help="Show rates as a share of what the bottleneck can carry, times as multiples of the base RTT; or in their own units. By itself: shares, where rates are an axis of the grid.",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="auto|shared|free", help="One y axis for all panels, or each its own; auto: as they need."
        ),
    ] = "auto",
    width: Annotated[
        str | None, typer.Option(metavar="single|double", help="As wide as one column of a paper, or both.")
    ] = None,
    style: Annotated[
        str | None, typer.Option(metavar="FILE", help="Settings of matplotlib (.mplstyle) on top of our own.")
    ] = None,
    formats: Annotated[
        list[str],
        typer.Option(
            "--format", metavar="pdf|png|svg", help="Further format of the figures (svg is always written). Repeatable."
        ),
    ] = NOTHING,
) -> None:
    """Draw the figures of a sweep. Lines with bands, heat map, distributions, throughput against delay; and a report."""
    from ackclock import sweep as sweeps
    from ackclock.plot.figure import FORMATS
    from ackclock.plot.style import needed
    from ackclock.sweep import figures, page

    needed("sweep plot")
    for one in formats:
        if one not in FORMATS:
            raise InputError(f"--format: found {quote(one)}; allowed: {', '.join(FORMATS)}")
    folder, name = _folder(file, out)
    results = sweeps.read(folder, name)
    drawn = figures.figures(
        results,
        metric=metric,
        kinds=kind,
        x=x,
        by=by,
        panel=panel,
        row=row,
        column=column,
        where=where,
        average=average,
        against=against,
        normalise=normalise,
        scale=scale,
        width=width,
        style=style,
    )
    chosen = any((kind, x, by, panel, row, column, where, average, against, normalise is not None, width, style))
    with sweeps.Store(folder) as store:
        # the sweep's report is written even if a figure is requested
        place = page.write(
            results,
            store,
            drawn,
            folder / "sweeps" / results.sweep.name,
            metric=metric,
            formats=formats,
            name="plot" if chosen else "report",
        )
    _terminal.say(f"report: {place}")
    _terminal.say(f"figures: {place.parent / 'figures'} ({', '.join(f.name for f in drawn)})")


def compare(
    first: Annotated[Path | None, typer.Argument(metavar="A.toml", help="Scenario.", show_default=False)] = None,
    second: Annotated[
        Path | None, typer.Argument(metavar="[B.toml]", help="Scenario; none with two kernels.", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(2, 100_000),
            metavar="N",
            help="Pairs of runs, 2 to 100000 (default: 20; kernels: one pair).",
        ),
    ] = None,
    metric: Annotated[
        list[str],
        typer.Option(
            metavar="NAME", help="A metric to compare, or group.NAME.COLUMN of the table performance. Repeatable."
        ),
    ] = NOTHING,
    until_width: Width = None,
    most_seeds: MostSeeds = 10_000,
    out: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="DIR", help="Keep the runs in this folder.")
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="Each pair on a path of its own, drawn from this population (uk-homes-2015, or yours).",
        ),
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    own_code: OwnCode = False,
    stack: Stacks = NOTHING,
    kernel: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Twice: two kernels of `ackclock linux build --name NAME` instead, on one scenario; the first ACK that differs.",
        ),
    ] = NOTHING,
    network: Annotated[
        str, typer.Option(metavar="relay|qdisc|auto", help="With two kernels: their network.")
    ] = "relay",
    drawn: Annotated[
        bool, typer.Option("--drawn", help="With two kernels: scenarios drawn from the seed, family by family.")
    ] = False,
    family: Annotated[
        list[str], typer.Option("--family", metavar="NAME", help="With --drawn: only this family. Repeatable.")
    ] = NOTHING,
    count: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, 10_000), metavar="N", help="With --drawn: number of scenarios of each family."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run two scenarios under the same seeds. Print for each metric which scenario has the larger value and by how
    much, or that no difference is shown.
    """
    if kernel:
        from ackclock.cli import _diff

        given = (second, until_width, out, scheduler, population)
        if metric or any(value is not None for value in given):
            raise InputError(
                "--kernel: found it beside a second scenario or options of sweeps; allowed: "
                "--seeds, --network, --drawn, --family, --count, --jobs, --json"
            )
        _diff.kernels(
            kernel,
            file=first,
            seeds=seeds,
            network=network,
            drawn=drawn,
            families=family,
            count=count,
            jobs=jobs,
            as_json=as_json,
        )
        return
    if network != "relay" or drawn or family or count is not None:
        raise InputError("--network, --drawn, --family, --count: found one without --kernel; allowed: with two kernels")
    if first is None or second is None:
        raise InputError(
            f"compare: found {'no scenario' if first is None else 'one scenario'}; allowed: two, or one with two kernels"
        )
    workers = Workers(jobs=jobs, scheduler=scheduler)
    pairs = seeds or 20
    names = _arm_names(first, second)
    from ackclock.cli import _live_arms

    if _live_arms.named(first, second):
        _live_arms.compare(
            (first, second),
            names=names,
            seeds=pairs,
            metrics=metric,
            out=out,
            jobs=jobs or _terminal.cpus(),
            own_code=own_code,
            as_json=as_json,
            apart={
                "--until-width": until_width,
                "--population": population,
                "--scheduler": scheduler,
                "--stack": stack,
            },
        )
        return
    from ackclock import population as populations
    from ackclock.scenario import load
    from ackclock.sweep import Precision
    from ackclock.sweep import compare as arms
    from ackclock.sweep.precision import parse_width

    workers.check()
    arms.check_metrics(metric)
    load_stacks(stack)
    scenarios = [load(path, own_code=own_code) for path in (first, second)]
    precision = None
    if until_width is not None:
        wanted = metric[0] if metric else "goodput_bps"
        precision = Precision(metric=wanted, width=parse_width(until_width), most_seeds=most_seeds)
    if population is not None and precision is not None:
        raise InputError(
            "--until-width: found it with --population, which draws a path for each pair; allowed: --seeds"
        )
    drawn_from = None if population is None else populations.read(population)
    paths = [] if drawn_from is None else [path.on for path in drawn_from.draw(pairs, seed=1)]
    stop = threading.Event()
    with _terminal.progress() as tell:

        def work() -> arms.Compared:
            with workers.open() as executor:
                return arms.compare(
                    scenarios[0],
                    scenarios[1],
                    executor,
                    names=names,
                    seeds=pairs,
                    metrics=metric,
                    precision=precision,
                    folder=out,
                    paths=paths,
                    progress=told(tell),
                    stop=stop,
                )

        found = stoppable(work, stop)
    if as_json:
        said = {} if drawn_from is None else {"population": {"name": drawn_from.name, **drawn_from.source}}
        _terminal.show_json({**found.to_json(), **said})
        return
    _terminal.show(found.table())
    if drawn_from is not None:
        _terminal.say(f"each pair on a path of its own, drawn from {drawn_from.told}")


def _arm_names(first: Path, second: Path) -> tuple[str, str]:
    """Return the names of two arms: the file stems, or the full paths if the stems are identical."""
    for names in ((first.stem, second.stem), (str(first), str(second))):
        if names[0] != names[1]:
            return names
    return "first", "second"


def told(tell: _terminal.Progress) -> Callable[[Status], None]:
    """Return a callback that shows progress as one line: runs made, speed, time left."""

    def progress(status: Status) -> None:
        made = status.done + status.failed
        parts = [f"{made:,} of {status.total:,} runs"]
        if status.failed:
            parts.append(f"{status.failed:,} failed")
        if status.rate and status.left_s is not None:
            parts += [speed(status), f"{duration(status.left_s)} left"]
        tell(", ".join(parts), made / max(status.total, 1))

    return progress


def reached(results: Results, precision: Precision) -> str:
    """Return a sentence about the interval widths reached in the cells."""
    import polars as pl

    metric, wanted = precision.metric, precision.width
    cells = results.cells(metric)
    if not cells.height:
        return f"interval of {metric}: no runs"
    share = (cells["high"] - cells["low"]) / cells["mean"].abs()
    judged = cells.with_columns(share.alias("share")).filter(pl.col("share").is_finite())
    if not judged.height:
        return f"interval of {metric}: no share of a mean that is zero or not there; no seeds were added"
    widest = judged.row(judged["share"].arg_max() or 0, named=True)
    place = ", ".join(str(widest[column]) for column in results.columns)
    said = f"interval of {metric}: at most {percent(widest['share'])} of the mean, with {widest['n']:,} seeds"
    said += f" ({place})" if place else ""
    wide = judged.filter(pl.col("share") > wanted).height
    more = "; more with a larger --most-seeds" if widest["n"] >= precision.most_seeds else ""
    return f"{said}; wider than {percent(wanted)}: {wide:,} of {cells.height:,} cells{more}" if wide else said


def told_same(results: Results) -> list[str]:
    """Return a note about cells in which all seeds produce the same run."""
    from ackclock.sweep.measures import SAME

    same, cells = len(results.same), results.runs["cell"].n_unique()
    if not same:
        return []
    which = "the cell" if cells == 1 else "every cell" if same == cells else f"{same:,} of {cells:,} cells"
    return [f"all seeds of {which} gave one and the same run: {SAME}"]


def percent(share: float) -> str:
    """Return a fraction as text: "91.4 %"."""
    text = f"{share * 100:.3g}"
    return told_share(share, 2) if text == "100" else f"{text} %"


def speed(status: Status) -> str:
    """Return the runs per second as text."""
    return f"{status.rate:,.0f}/s" if status.rate >= 10 else f"{status.rate:.2g}/s"


def slots(status: Status) -> str:
    """Return the number of parallel runs, in words."""
    return f"{status.slots:,} at a time" if status.slots > 1 else "one at a time"


def duration(seconds: float) -> str:
    """Return a duration as text: "8 s", "3 min", "2 h 10 min"."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def stoppable(work: Callable[[], T], stop: threading.Event) -> T:
    """Do work that Ctrl-C stops. The first Ctrl-C keeps finished runs, which may take longer than a run; a second one ends at once."""
    ended: list[T] = []
    said: list[AckclockError] = []

    def call() -> None:
        try:
            ended.append(work())
        except AckclockError as error:
            said.append(error)
            raise

    try:
        _terminal.interruptible(call)
    except KeyboardInterrupt:
        if _terminal.busy():
            stop.set()
            _terminal.warn("ackclock: stopping; what is done is kept (Ctrl-C again: at once)")
            _terminal.wait()
        if not ended:
            for error in said:
                _terminal.warn(f"ackclock: {error}")
            raise
    return ended[0]


def _find(target: Path, out: Path | None, *, own_code: bool) -> tuple[Sweep, Path]:
    """Return the sweep and its run folder, given the sweep file or that folder."""
    from ackclock import sweep as sweeps
    from ackclock.own import refuse

    if target.is_dir():
        if out is not None:
            raise InputError(f"--out: found it beside the folder {target}; allowed: with a sweep file")
        with sweeps.Store(target) as store:
            sweep = sweeps.sweep_of(store)
        if not own_code:
            refuse(sweep.controllers(), source=str(target))
        return sweep, target
    return sweeps.load(target, own_code=own_code), out or Path(f"{target.stem}.sweep")


def _folder(target: Path, out: Path | None) -> tuple[Path, str]:
    """Return the folder and name of a sweep that has been run."""
    from ackclock import sweep as sweeps

    if target.is_dir():
        return target, ""
    sweep = sweeps.load(target, own_code=True)  # read, not run
    return out or Path(f"{target.stem}.sweep"), sweep.name


def _status_json(folder: Path, name: str) -> dict[str, Any]:
    from ackclock import sweep as sweeps
    from ackclock.sweep.database import is_held

    with sweeps.Store(folder) as store:
        if not name:
            name = sweeps.sweep_of(store).name
        counts = store.counts(name)
        lost = [] if is_held(folder) else [str(damage) for damage in store.missing()]
        failures: list[dict[str, Any]] = [{"scenario": h, "seed": s, "error": e} for h, s, e in store.failures(name)]
        if failures:
            sweep = sweeps.sweep_of(store, name)
            numbers = {cell.hash: i for i, cell in enumerate(sweep.cells)}
            for failure in failures:
                at = numbers.get(failure["scenario"])
                told = f"scenario {failure['scenario'][:12]}" if at is None else sweep.told(at)
                failure.update(cell=at, told=told)
    return {
        "sweep": name,
        "folder": str(folder),
        "at_work": is_held(folder),
        "total": sum(counts.values()),
        "runs": counts,
        "lost": lost,
        "failures": failures,
    }
