"""`ackclock sweep` and `ackclock compare`."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ackclock._files import reason
from ackclock.cli import _terminal
from ackclock.cli._workers import Workers
from ackclock.errors import AckclockError, InputError, ScenarioError, UnavailableError

if TYPE_CHECKING:
    from ackclock.sweep import Precision, Results, Status, Sweep

T = TypeVar("T")


def run(
    target: Path,
    *,
    out: Path | None,
    workers: Workers,
    width: str | None,
    metric: str,
    most_seeds: int,
    time_limit: str | None = None,
    retry: bool,
    own_code: bool,
    as_json: bool,
) -> int:
    """Run what is missing; exit code 1 if runs failed."""
    from ackclock import sweep as sweeps
    from ackclock.sweep.precision import parse_width

    workers.check()
    sweep, folder = _find(target, out, own_code=own_code)
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
        typer.echo(
            f"{status.done:,} of {status.total:,} runs done"
            + (f", {status.found:,} of them found" if status.found else "")
            + (f", {status.failed:,} failed (`ackclock sweep status` says why)" if status.failed else "")
        )
        typer.echo(f"table: {folder / 'sweeps' / sweep.name / 'table.parquet'} ({results.runs.height:,} rows)")
        for line in told_same(results):
            typer.echo(line)
        if precision is not None:
            typer.echo(reached(results, precision))
    if not status.finished:
        _terminal.warn(f"ackclock: stopped; go on with `ackclock sweep resume {target}`")
        return 130
    return 1 if status.failed else 0


def resume(
    target: Path,
    *,
    out: Path | None,
    workers: Workers,
    time_limit: str | None = None,
    retry: bool,
    own_code: bool,
    as_json: bool,
) -> int:
    """Run what is missing in a folder that there is."""
    from ackclock import sweep as sweeps

    folder, _ = _folder(target, out)
    with sweeps.Store(folder):
        pass
    return run(
        target,
        out=out,
        workers=workers,
        width=None,
        metric="goodput_bps",
        most_seeds=0,
        time_limit=time_limit,
        retry=retry,
        own_code=own_code,
        as_json=as_json,
    )


def status(target: Path, *, out: Path | None, as_json: bool) -> None:
    """Print how far a sweep is."""
    folder, name = _folder(target, out)
    found = _status_json(folder, name)
    if as_json:
        _terminal.show_json(found)
        return
    named = {} if found["at_work"] else {"running": "interrupted"}
    counts = ", ".join(f"{n:,} {named.get(state, state)}" for state, n in found["runs"].items() if n) or "no runs"
    typer.echo(f"{found['sweep']}: {found['total']:,} runs: {counts}")
    for lost in found["lost"]:
        typer.echo(f"lost: {lost}; `ackclock sweep resume` makes them again")
    for failure in found["failures"]:
        typer.echo(f"failed: scenario {failure['scenario'][:12]}, seed {failure['seed']}: {failure['error']}")


def check(folder: Path, *, repair: bool) -> int:
    """Compare every file of a store with what was written; exit code 1 if something is lost."""
    from ackclock.sweep import Store, integrity
    from ackclock.sweep.database import set_aside

    if not repair:
        with Store(folder) as store:
            found = [str(damage) for damage in store.check()]
        for line in found:
            typer.echo(line)
        typer.echo(
            "nothing is lost" if not found else f"`ackclock sweep check {folder} --repair` lets them be made again"
        )
        return 1 if found else 0
    try:
        with Store(folder) as store:
            store.check()
    except integrity.DamagedError:
        for line in set_aside(folder):
            typer.echo(line)
    with Store(folder, write=True, again=True) as store:
        for line in store.lost:
            typer.echo(line)
        typer.echo("`ackclock sweep run` makes again what is missing")
    return 0


def export(target: Path, *, out: Path | None, csv: Path | None) -> None:
    """Write the table of a sweep as CSV."""
    from ackclock import sweep as sweeps

    if csv is None:
        raise InputError("--csv: found nothing; allowed: a file that can be written")
    folder, name = _folder(target, out)
    if csv.exists() and target.is_file() and csv.samefile(target):
        raise InputError(f"--csv {csv}: found the sweep itself; allowed: another name")
    _terminal.writable_file(csv, "--csv")
    results = sweeps.read(folder, name)
    try:
        results.runs.write_csv(csv)
    except Exception as error:  # polars says one thing of a full disk, the system another
        if not csv.is_char_device():
            csv.unlink(missing_ok=True)
        raise UnavailableError(f"--csv {csv}: cannot be written ({reason(error)})") from None
    typer.echo(f"written: {csv} ({results.runs.height:,} runs)")


def plot(
    target: Path,
    *,
    out: Path | None,
    metric: str,
    kinds: Sequence[str],
    x: str | None,
    by: str | None,
    scale: str = "auto",
) -> None:
    """Draw the figures and write the report."""
    from ackclock import sweep as sweeps
    from ackclock.sweep import figures, page

    folder, name = _folder(target, out)
    results = sweeps.read(folder, name)
    drawn = figures.figures(results, metric=metric, kinds=kinds or figures.KINDS, x=x, by=by, scale=scale)
    with sweeps.Store(folder) as store:
        place = page.write(results, store, drawn, folder / "sweeps" / results.sweep.name, metric=metric)
    typer.echo(f"report: {place}")
    typer.echo(f"figures: {place.parent / 'figures'} ({', '.join(f.name for f in drawn)})")


def compare(
    first: Path,
    second: Path,
    *,
    seeds: int,
    metrics: Sequence[str],
    width: str | None,
    most_seeds: int,
    out: Path | None,
    workers: Workers,
    own_code: bool,
    as_json: bool,
) -> None:
    """Run two scenarios under the same seeds and print what differs."""
    import ackclock
    from ackclock.sweep import Precision
    from ackclock.sweep import compare as arms
    from ackclock.sweep.precision import parse_width

    workers.check()
    arms.check_metrics(metrics)
    scenarios = [ackclock.load(path, own_code=own_code) for path in (first, second)]
    names = (first.stem, second.stem)
    if names[0] == names[1]:
        names = (str(first), str(second))
    if names[0] == names[1]:
        names = ("first", "second")
    precision = None
    if width is not None:
        wanted = metrics[0] if metrics else "goodput_bps"
        precision = Precision(metric=wanted, width=parse_width(width), most_seeds=most_seeds)
    stop = threading.Event()
    with _terminal.progress() as tell:

        def work() -> arms.Compared:
            with workers.open() as executor:
                return arms.compare(
                    scenarios[0],
                    scenarios[1],
                    executor,
                    names=names,
                    seeds=seeds,
                    metrics=metrics,
                    precision=precision,
                    folder=out,
                    progress=told(tell),
                    stop=stop,
                )

        found = stoppable(work, stop)
    if as_json:
        _terminal.show_json(found.to_json())
    else:
        _terminal.show(found.table())


def told(tell: _terminal.Progress) -> Callable[[Status], None]:
    """Progress as a line: how many, how fast, how long still."""

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
    """How narrow the intervals of the cells have become."""
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
    """What to say of cells whose seeds do not matter."""
    from ackclock.sweep.measures import SAME

    same, cells = len(results.same), results.runs["cell"].n_unique()
    if not same:
        return []
    which = "the cell" if cells == 1 else "every cell" if same == cells else f"{same:,} of {cells:,} cells"
    return [f"all seeds of {which} gave one and the same run: {SAME}"]


def percent(share: float) -> str:
    """A share for people: "91.4 %"."""
    return f"{share * 100:.3g} %"


def speed(status: Status) -> str:
    """Runs per second, for people."""
    return f"{status.rate:,.0f}/s" if status.rate >= 10 else f"{status.rate:.2g}/s"


def slots(status: Status) -> str:
    """How many runs were made at a time, for people."""
    return f"{status.slots:,} at a time" if status.slots > 1 else "one at a time"


def duration(seconds: float) -> str:
    """A duration for people: "8 s", "3 min", "2 h 10 min"."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def stoppable(work: Callable[[], T], stop: threading.Event) -> T:
    """Ctrl-C once: keep what is done and end; twice: end. What is to be kept may take longer than a run."""
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
    """The sweep, and the folder of its runs: of a file, or of a folder that holds it."""
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
    """Folder and name of a sweep that has been run."""
    from ackclock import sweep as sweeps

    if target.is_dir():
        return target, ""
    sweep = sweeps.load(target, own_code=True)  # is read, not run
    return out or Path(f"{target.stem}.sweep"), sweep.name


def _status_json(folder: Path, name: str) -> dict[str, Any]:
    from ackclock import sweep as sweeps
    from ackclock.sweep.database import is_held

    with sweeps.Store(folder) as store:
        if not name:
            name = sweeps.sweep_of(store).name
        counts = store.counts(name)
        lost = [] if is_held(folder) else [str(damage) for damage in store.missing()]
        failures = [{"scenario": h, "seed": s, "error": e} for h, s, e in store.failures(name)]
    return {
        "sweep": name,
        "folder": str(folder),
        "at_work": is_held(folder),
        "total": sum(counts.values()),
        "runs": counts,
        "lost": lost,
        "failures": failures,
    }
