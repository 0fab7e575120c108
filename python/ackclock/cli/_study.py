"""`ackclock study`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ackclock.cli import _terminal
from ackclock.cli._workers import Workers
from ackclock.errors import AckclockError, InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock.study import Study, StudyResult
    from ackclock.sweep import Executor


def names(*, as_json: bool) -> None:
    """List the studies."""
    from ackclock import studies

    found = [studies.get(name) for name in studies.names()]
    if as_json:
        _terminal.show_json([{"name": s.name, "title": s.title} for s in found])
        return
    width = max(len(s.name) for s in found)
    for s in found:
        typer.echo(f"{s.name:<{width}}  {s.title}")


def show(name: str, *, tables: bool) -> None:
    """Describe a study."""
    typer.echo(_get(name).show(tables=tables), nl=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How a study is run.

    Parameters
    ----------
    store
        Folder in which runs are kept and found.
    """

    scale: str
    seeds: int | None
    out: Path | None
    store: Path | None
    workers: Workers
    as_json: bool

    def check(self) -> None:
        """Refuse what cannot be, before anything is run."""
        from ackclock.study import SCALES

        if self.scale not in SCALES:
            raise InputError(f"--scale: found {quote(self.scale)}; allowed: {one_of(self.scale, SCALES)}")
        self.workers.check()
        if self.workers.elsewhere and self.store is None:
            raise InputError(
                "--scheduler: found it without --store; allowed: with a folder for what the workers send back"
            )
        if self.out is not None:
            _terminal.writable_folder(self.out)


def run(name: str, options: Options) -> int:
    """Run a study, print its claims, write its report."""
    found = _get(name)
    options.check()
    with _terminal.progress() as progress, _executor(options) as executor:
        result = _terminal.interruptible(lambda: _run(found, options, progress, executor))
        report = None if options.out is None else result.write(options.out)
    if options.as_json:
        _terminal.show_json(result.to_json())
    else:
        _terminal.show(result.claims_table())
        if report is not None:
            typer.echo(f"report: {report}")
    for line in result.unexpected:
        _terminal.warn(f"ackclock: not as recorded: {line}")
    return 1 if result.unexpected else 0


def run_in_linux(name: str | None, *, seeds: int | None, jobs: int | None, out: Path | None, as_json: bool) -> int:
    """Run the part of a study that the real kernel can run, on both backends."""
    from ackclock import linux, studies

    known = [*(n for n in studies.names() if n == "prr" or studies.get(n).kernel)]
    if name not in known:
        raise InputError(
            f"--backend linux: found {quote(name)}; allowed: {', '.join(known)}, the studies with a part for the kernel"
        )
    linux.installed()
    if out is not None:
        _terminal.writable_folder(out)
    cpus = jobs or _terminal.cpus()
    if name == "prr":
        return _prr_in_linux(seeds=seeds, jobs=cpus, out=out, as_json=as_json)
    found = studies.get(name)
    assert found.kernel is not None
    part = found.kernel()
    with _terminal.progress() as progress:
        result = _terminal.interruptible(lambda: part.run(found, seeds=seeds, jobs=cpus, progress=progress))
        report = None if out is None else result.write(out)
    if as_json:
        _terminal.show_json(result.to_json())
        return 0
    _terminal.show(result.claims_table())
    if report is not None:
        typer.echo(f"report: {report}")
    return 0


def _prr_in_linux(*, seeds: int | None, jobs: int, out: Path | None, as_json: bool) -> int:
    from ackclock.studies.prr import kernel
    from ackclock.study import Plan

    with _terminal.progress() as progress:
        plan = Plan(seeds=seeds, jobs=jobs, progress=progress)
        result = _terminal.interruptible(lambda: kernel.run(plan))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        result.cells.write_csv(out / "kernel.csv")
    if as_json:
        claims = [{"id": i, "statement": text, **verdicts} for i, text, verdicts in result.claims]
        _terminal.show_json({"cells": result.cells.to_dicts(), "claims": claims})
        return 0
    typer.echo("| page | loss | rule | backend | mean of hit fetches, s | gain over rate halving | timeouts |")
    typer.echo("| --- | --- | --- | --- | --- | --- | --- |")
    for row in result.cells.sort("page", "loss", maintain_order=True).iter_rows(named=True):
        gain = f"{row['gain_percent']:+.2f} % [{row['gain_low']:+.2f}, {row['gain_high']:+.2f}]"
        cells = (f"{row['page']:,}", f"{row['loss']:.0%}", row["rule"], row["backend"], f"{row['mean_s']:.3f}", gain)
        typer.echo(f"| {' | '.join(cells)} | {row['timeouts']} |")
    for claim, text, verdicts in result.claims:
        for backend, verdict in verdicts.items():
            typer.echo(f"{claim}, {backend}: {text}: {verdict}")
    return 0


def run_all(options: Options) -> int:
    """Run every study, each into a folder of its own, and write the page that links them."""
    from ackclock import studies
    from ackclock.study import Verdict, overview

    options.check()
    entries = []
    written = []
    names = studies.names()
    code = 0
    with _terminal.progress() as progress, _executor(options) as executor:
        for i, name in enumerate(names):
            found = _get(name)
            part = _part(progress, name, i / len(names), (i + 1) / len(names))
            try:
                result = _terminal.interruptible(partial(_run, found, options, part, executor))
            except AckclockError as error:  # the others can still be run
                entries.append(overview.Entry(name=name, title=found.title, problem=str(error)))
                _terminal.warn(f"ackclock: {name}: {error}")
                code = max(code, error.exit_code)
                continue
            if options.out is not None:
                result.write(options.out / name)
            entries.append(overview.Entry.of(result))
            written.append(result.to_json())
            for line in result.unexpected:
                _terminal.warn(f"ackclock: {name}: not as recorded: {line}")
                code = max(code, 1)
    page = None
    if options.out is not None:
        seeds = "" if options.seeds is None else f" --seeds {options.seeds}"
        command = f"ackclock study run --all --scale {options.scale}{seeds} --out {options.out}"
        page = overview.write(entries, options.out, scale=options.scale, command=command)
    if options.as_json:
        _terminal.show_json({"studies": written, "problems": {e.name: e.problem for e in entries if e.problem}})
    else:
        for e in entries:
            verdicts = ", ".join(f"{e.count(v)} {v}" for v in Verdict if e.count(v))
            typer.echo(f"{e.name}: {e.problem or verdicts}")
        if page is not None:
            typer.echo(f"report: {page}")
    return code


def _run(found: Study, options: Options, progress: _terminal.Progress, executor: Executor | None) -> StudyResult:
    jobs = options.workers.jobs or _terminal.cpus()
    if options.store is None:
        return found.run(scale=options.scale, seeds=options.seeds, jobs=jobs, progress=progress)
    from ackclock.sweep import Store

    with Store(options.store, write=True) as store:
        return found.run(
            scale=options.scale, seeds=options.seeds, jobs=jobs, progress=progress, store=store, executor=executor
        )


@contextmanager
def _executor(options: Options) -> Iterator[Executor | None]:
    """Workers elsewhere, if any; threads are made where they are needed."""
    if not options.workers.elsewhere:
        yield None
        return
    with options.workers.open() as executor:
        yield executor


def _part(progress: _terminal.Progress, name: str, start: float, stop: float) -> _terminal.Progress:
    return lambda text, done: progress(f"{name}: {text}", start + (stop - start) * done)


def _get(name: str) -> Study:
    from ackclock import studies

    known = list(studies.names())
    if name not in known:
        raise InputError(f"study: found {quote(name)}; allowed: {one_of(name, known)}")
    return studies.get(name)
