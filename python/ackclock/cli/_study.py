"""`ackclock study`.

Length: the options of its commands are declared here, each once, with their checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock.cli import _terminal
from ackclock.cli._options import (
    NOTHING,
    Jobs,
    Json,
    Kernels,
    Pbs,
    Scheduler,
    Slurm,
    Stacks,
    Worker,
    file_name,
    load_stacks,
    use,
    whole_number,
)
from ackclock.cli._workers import Workers
from ackclock.errors import AckclockError, InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock.study import Study, StudyResult
    from ackclock.study.reading import Curve
    from ackclock.sweep import Executor


def names(
    as_json: Json = False,
) -> None:
    """Name every study."""
    from ackclock import studies

    found = {}
    for name in (*studies.names(), *studies.installed()):
        try:
            found[name] = studies.get(name).title
        except InputError as error:  # one package is broken; the other studies are available
            _terminal.warn(f"ackclock: {error}")
    if as_json:
        _terminal.show_json([{"name": name, "title": title} for name, title in found.items()])
        return
    width = max(map(len, found), default=0)
    for name, title in found.items():
        _terminal.say(f"{name:<{width}}  {title}")


def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A study by name, or the folder of one: ./mine.", show_default=False)
    ],
    tables: Annotated[bool, typer.Option("--tables", help="Show the exact tables beside the published ones.")] = False,
) -> None:
    """Describe a study: the publication that it reproduces and the claims that it tests."""
    _terminal.say(_get(name).show(tables=tables).removesuffix("\n"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Options for running studies.

    Parameters
    ----------
    store
        Folder in which runs are kept and found.
    readings
        Whether to run the other readings of what the publications leave open.
    record
        Write verdicts and values into the records of the studies.
    kernel
        Whether to run the kernel part of each study.
    registered
        A plan written earlier, from whose hash the seeds follow.
    held_out
        A text fixed in advance, from which the seeds follow.
    claims
        The only claims to judge; empty: all.
    """

    scale: str
    seeds: int | None
    out: Path | None
    store: Path | None
    workers: Workers
    as_json: bool
    readings: bool = False
    record: bool = False
    kernel: bool = False
    registered: Path | None = None
    held_out: str = ""
    claims: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse invalid options before anything is run."""
        from ackclock.study import SCALES

        if self.scale not in SCALES:
            raise InputError(f"--scale: found {quote(self.scale)}; allowed: {one_of(self.scale, SCALES)}")
        self.workers.check()
        if self.workers.elsewhere and self.store is None:
            raise InputError(
                "--scheduler: found it without --store; allowed: with a folder for what the workers send back"
            )
        if self.record and self.seeds is not None:
            raise InputError(f"--record: found --seeds {self.seeds}; allowed: the seeds of a scale")
        if self.kernel:
            from ackclock import linux

            linux.installed()
        if self.out is not None:
            study_folder(self.out)


def study_folder(folder: Path) -> None:
    """Refuse a folder that is not writable, or in which a report would replace files not written by a study."""
    from ackclock.study.result import MARKS, WRITTEN

    _terminal.own_folder(folder, WRITTEN, MARKS, whose="study")


def run(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Studies by name, or folders of them: ./mine.", show_default=False),
    ] = NOTHING,
    every: Annotated[
        bool, typer.Option("--all", help="Run all studies, and write one report that links theirs.")
    ] = False,
    scale: Annotated[str, typer.Option(metavar="quick|paper", help="Scale: the number of repetitions.")] = "quick",
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(2, 500),
            metavar="N",
            help="Seeds of each cell, 2 to 500, instead of those of the scale.",
        ),
    ] = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="DIR", help="Write the report to this folder.")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            parser=file_name,
            metavar="DIR",
            help="Keep runs in this folder and reuse those it holds (with --all --out: OUT/store).",
        ),
    ] = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = NOTHING,
    backend: Annotated[
        str,
        typer.Option(
            metavar="sim|linux|both",
            help="linux: run the kernel part of the study, on the real kernel and in the simulator; both: also the study.",
        ),
    ] = "sim",
    readings: Annotated[
        bool, typer.Option("--readings", help="Also judge every other reading of what the publications leave open.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Record verdicts and values; later runs are compared with them.")
    ] = False,
    registered: Annotated[
        Path | None,
        typer.Option(
            parser=file_name, metavar="FILE", help="Run as planned in FILE (study register); its hash gives the seeds."
        ),
    ] = None,
    held_out: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Take the seeds from this text, fixed beforehand, and count the verdicts that hold. --record keeps them beside the record.",
        ),
    ] = "",
    claim: Annotated[
        list[str],
        typer.Option(metavar="ID", help="Judge this claim alone, and run only what it reads. Repeatable."),
    ] = NOTHING,
    decide: Annotated[
        list[str],
        typer.Option(metavar="ID", help="More runs for this claim, or all, if it is undecided. Repeatable."),
    ] = NOTHING,
    within: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="With --decide: maximum time (default: 10).")
    ] = None,
    kernel: Kernels = None,
    stack: Stacks = NOTHING,
    as_json: Json = False,
) -> int:
    """Run studies. Exit code 1 if a verdict differs from the recorded one. Of other seeds, "undecided" is only listed, as are values that drifted."""
    if backend not in ("sim", "linux", "both"):
        raise InputError(f"--backend: found {quote(backend)}; allowed: sim, linux, both")
    if kernel is not None and backend == "sim":
        raise InputError("--kernel: found it without --backend linux or both; allowed: together")
    use(kernel)
    load_stacks(stack)
    if backend == "linux":
        return run_in_linux(names, seeds=seeds, jobs=jobs, out=out, as_json=as_json, record=record)
    if (not names) != every:
        given = "--all beside a name" if every else "nothing"
        raise InputError(f"NAME: found {given}; allowed: names of studies, or --all")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"NAME: found {quote(twice)} twice; allowed: each study once")
    options = Options(
        scale=scale,
        seeds=seeds,
        out=out,
        store=out / "store" if every and out is not None and store is None else store,
        workers=Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker),
        as_json=as_json,
        readings=readings,
        record=record,
        kernel=backend == "both",
        registered=registered,
        held_out=held_out,
        claims=tuple(claim),
    )
    if claim and (
        len(names) != 1 or out is not None or readings or decide or backend != "sim" or held_out or registered
    ):
        raise InputError(
            "--claim: found it beside several names or other options; allowed: one study, --scale, --seeds, --jobs, --store, --record, --json"
        )
    if held_out and (registered is not None or seeds is not None or len(names) != 1):
        raise InputError(
            "--held-out: found it beside --registered, --seeds or several names; allowed: one study with the runs of its scale"
        )
    if decide:
        if len(names) != 1:
            raise InputError(f"--decide: found {len(names)} names; allowed: one study")
        beside = (out, seeds, registered, backend != "sim" or None, readings or None, record or None)
        if any(x is not None for x in beside) or options.workers.elsewhere:
            raise InputError(
                "--decide: found it beside other options; allowed: --scale, --jobs, --store, --within, --json"
            )
        minutes = 10.0 if within is None else within
        if not 0 < minutes <= 100_000:
            raise InputError(f"--within: found {minutes:g}; allowed: minutes, above 0")
        return _decide(names[0], decide, options, minutes=minutes)
    if within is not None:
        raise InputError("--within: found it without --decide; allowed: together")
    if registered is not None and len(names) != 1:
        raise InputError(f"--registered: found {len(names)} names; allowed: one study")
    if registered is not None and seeds is not None:
        raise InputError(
            "--seeds: found it beside --registered; allowed: as many runs as the scale that was planned has"
        )
    return _run_one(names[0], options) if len(names) == 1 else run_several(names, options)


def _run_one(name: str, options: Options) -> int:
    """Run a study, print its claims, write its report."""
    found = _get(name)
    options.check()
    for claim in options.claims:
        if claim not in (known := [c.id for c in found.claims]):
            raise InputError(f"--claim: found {quote(claim)}; allowed: {one_of(claim, known)}")
    with _terminal.progress() as progress, _executor(options) as executor:
        result = _terminal.interruptible(lambda: _run(found, options, progress, executor))
        report = None if options.out is None else result.write(options.out)
    if options.as_json:
        _terminal.show_json(result.to_json())
    else:
        _terminal.show(result.claims_table())
        for curve in result.curves:
            _terminal.say(f"{curve.claim.id}: {specification_line(curve)}")
        if options.readings and not result.curves:
            _terminal.say("--readings: each claim of this study has one reading")
        if report is not None:
            _terminal.say(f"report: {report}")
    return _compare(result, options, "")


def specification_line(curve: Curve) -> str:
    """Return the verdicts of a claim under its other readings, as a sentence."""
    from ackclock.study.specification import told

    return told(curve)


def _compare(result: StudyResult, options: Options, head: str) -> int:
    """Compare a result with its record, or record it; return the exit code."""
    if options.held_out:
        return _held_out(result, options)
    for line in result.unexpected:
        _terminal.warn(f"ackclock: {head}not as recorded: {line}")
    for line in result.undecided:
        _terminal.warn(f"ackclock: {head}other seeds, no contradiction: {line}")
    for line in result.drifted:
        _terminal.warn(f"ackclock: {head}drifted: {line}")
    if not options.record:
        return 1 if result.unexpected else 0
    path = result.record(**_taken())
    _terminal.warn(f"ackclock: {head}recorded in {path}")
    return 0


def _held_out(result: StudyResult, options: Options) -> int:
    """Print how many verdicts hold with other seeds; return the exit code."""
    from ackclock.study import held_out
    from ackclock.study.record import Record

    words: dict[str, Any] = {
        o.claim.id: {half: {"verdict": word.value, "evidence": {}} for half, word in o.verdicts.items()}
        for o in result.outcomes
    }
    found = list(held_out.halves(result.study, result.scale, {options.held_out: Record(claims=words)}))
    for half in found:
        if not half.kept:
            _terminal.warn(
                f"ackclock: {half.claim}, {half.half}: {half.others[options.held_out]}, recorded {half.recorded}"
            )
    _terminal.warn(f"ackclock: {held_out.told(found) if found else 'nothing is recorded at this scale'}")
    if options.record and (path := held_out.take(result, options.held_out, **_taken())) is not None:
        _terminal.warn(f"ackclock: kept in {path}")
    return 0 if all(half.kept for half in found) else 1


def _taken() -> dict[str, str]:
    """Return version and date for a record."""
    from datetime import date
    from importlib.metadata import version

    return {"version": version("ackclock"), "date": date.today().isoformat()}


def run_in_linux(
    names: list[str], *, seeds: int | None, jobs: int | None, out: Path | None, as_json: bool, record: bool = False
) -> int:
    """Run the part of a study that exists for the real kernel, on both backends."""
    from ackclock import linux, studies
    from ackclock.study import kernel_record

    known = [n for n in studies.names() if studies.get(n).kernel]
    name = names[0] if len(names) == 1 else None
    if name not in known:
        raise InputError(
            f"--backend linux: found {quote(name or ' '.join(names) or None)}; allowed: {', '.join(known)}, the studies with a part for the kernel"
        )
    linux.installed()
    if out is not None:
        study_folder(out)
    found = studies.get(name)
    assert found.kernel is not None
    part = found.kernel()
    if record and (seeds is not None or part.record is None):
        what = f"--seeds {seeds}" if seeds is not None else f"{name}, whose kernel part keeps no record"
        raise InputError(f"--record: found {what}; allowed: the seeds of the part, and a study with such a record")
    with _terminal.progress() as progress:
        result = _terminal.interruptible(
            lambda: part.run(found, seeds=seeds, jobs=jobs or _terminal.cpus(), progress=progress)
        )
        report = None if out is None else result.write(out)
    if record and part.record is not None:
        kernel_record.write(part.record, result.to_record(), **_taken())
        _terminal.warn(f"ackclock: recorded in {part.record}")
    if as_json:
        _terminal.show_json(result.to_json())
        return 0
    _terminal.show(result.claims_table())
    if report is not None:
        _terminal.say(f"report: {report}")
    return 0


def run_several(names: list[str], options: Options) -> int:
    """Run studies, each into its own folder, and write the page that links them."""
    from ackclock import studies
    from ackclock.study import Verdict, overview

    every = not names
    names = names or list(studies.names())
    chosen = [_get(name) for name in names]
    options.check()
    entries = []
    written = []
    code = 0
    with _terminal.progress() as progress, _executor(options) as executor:
        for i, found in enumerate(chosen):
            part = _part(progress, found.name, i / len(chosen), (i + 1) / len(chosen))
            try:
                result = _terminal.interruptible(partial(_run, found, options, part, executor))
            except AckclockError as error:  # the other studies can still run
                entries.append(overview.Entry(name=found.name, title=found.title, problem=str(error)))
                _terminal.warn(f"ackclock: {found.name}: {error}")
                code = max(code, error.exit_code)
                continue
            if options.out is not None:
                result.write(options.out / found.name)
            entries.append(overview.Entry.of(result))
            written.append(result.to_json())
            code = max(code, _compare(result, options, f"{found.name}: "))
    page = None
    if options.out is not None:
        seeds = "" if options.seeds is None else f" --seeds {options.seeds}"
        readings = " --readings" if options.readings else ""
        what = "--all" if every else " ".join(names)
        command = f"ackclock study run {what} --scale {options.scale}{seeds}{readings} --out {options.out}"
        page = overview.write(entries, options.out, scale=options.scale, command=command)
    if options.as_json:
        _terminal.show_json({"studies": written, "problems": {e.name: e.problem for e in entries if e.problem}})
    else:
        for e in entries:
            verdicts = ", ".join(f"{e.count(v)} {v}" for v in Verdict if e.count(v))
            _terminal.say(f"{e.name}: {e.problem or verdicts}")
        if page is not None:
            _terminal.say(f"report: {page}")
    return code


def _run(found: Study, options: Options, progress: _terminal.Progress, executor: Executor | None) -> StudyResult:
    asked = partial(
        found.run,
        scale=options.scale,
        seeds=options.seeds,
        jobs=options.workers.jobs or _terminal.cpus(),
        progress=progress,
        readings=options.readings,
        registered=options.held_out or _registered(found, options.registered),
        held_out=bool(options.held_out),
        claims=options.claims,
    )
    if options.store is None:
        return _with_kernel(asked(), options, progress)
    from ackclock.sweep import Store

    with Store(options.store, write=True) as store:
        return _with_kernel(asked(store=store, executor=executor), options, progress)


def _registered(found: Study, file: Path | None) -> str:
    """Return the hash of the registered plan. Refuse a plan that no longer describes the study."""
    if file is None:
        return ""
    from ackclock.study import register

    kept = register.read(file)
    changed = register.differences(kept, found)
    if changed:
        raise InputError(f"--registered: {file}: not the study that was registered ({'; '.join(changed[:5])})")
    return str(kept["hash"])


def _with_kernel(result: StudyResult, options: Options, progress: _terminal.Progress) -> StudyResult:
    """Return the result with the kernel's added, if requested and if the study has a kernel part."""
    if not options.kernel or result.study.kernel is None:
        return result
    part = result.study.kernel()
    jobs = options.workers.jobs or _terminal.cpus()
    ran = part.run(result.study, seeds=options.seeds, jobs=jobs, progress=progress)
    return replace(result, kernel=ran.to_record())


@contextmanager
def _executor(options: Options) -> Iterator[Executor | None]:
    """Yield the executor for remote workers, or None; local threads are created where needed."""
    if not options.workers.elsewhere:
        yield None
        return
    with options.workers.open() as executor:
        yield executor


def _part(progress: _terminal.Progress, name: str, start: float, stop: float) -> _terminal.Progress:
    return lambda text, done: progress(f"{name}: {text}", start + (stop - start) * done)


def _get(name: str) -> Study:
    from ackclock._files import give_leave

    give_leave()  # a study is a program, and may name other programs
    from ackclock import studies

    return studies.get(name)


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the new study, and of its folder.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder in which the study's folder is made.")] = Path(),
) -> None:
    """Write a small study of your own that runs. Its files are NAME/study.toml and NAME/study.py."""
    from ackclock.study import plugin

    place = plugin.new(name, out)
    _terminal.say(f"{place}: study.toml names the tests, study.py computes them")
    _terminal.say(f"ackclock study run {place if place.is_absolute() else f'./{place}'}")


def register(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A study by name, or the folder of one: ./mine.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the plan to this file.")] = Path("plan.json"),
) -> None:
    """Write what a study will test, and its hash, before it is run."""
    from ackclock.study import register as plans

    _terminal.say(f"{out}: {plans.write(_get(name), out)}")


def artefact(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A study by name, or the folder of one: ./mine.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Write the artefact to this folder.")] = Path("artefact"),
    wheel: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.whl",
            help="Include the package itself, so that nothing else is needed.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a study as an artefact that others can run. It has one command, the versions, and the expected results."""
    from ackclock.study import artefact as written

    found = _get(name)
    _terminal.writable_folder(out)
    _terminal.say(f"written: {written.write(found, out, wheel=wheel)}")


def edges(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A study by name, or the folder of one: ./mine.", show_default=False)
    ],
    scale: Annotated[str, typer.Option(metavar="quick|paper", help="Scale: the number of repetitions.")] = "quick",
    only: Annotated[
        list[str],
        typer.Option("--only", metavar="CONSTANT", help="Vary this constant alone, such as path.DELAY. Repeatable."),
    ] = NOTHING,
    jobs: Jobs = None,
    store: Annotated[
        Path | None,
        typer.Option(parser=file_name, metavar="DIR", help="Keep runs in this folder and reuse those it holds."),
    ] = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Keep the verdicts that changed, beside the study's record, after each constant."
        ),
    ] = False,
) -> int:
    """Vary the constants that a study adopted. Each is varied alone, with the same seeds. Shows which verdicts change."""
    from ackclock.study import SCALES, Plan
    from ackclock.study import edges as varied

    found = _get(name)
    if scale not in SCALES:
        raise InputError(f"--scale: found {quote(scale)}; allowed: {one_of(scale, SCALES)}")
    known = [e.place for e in found.edges]
    for constant in only:
        if constant not in known:
            raise InputError(
                f"--only: found {quote(constant)}; allowed: {one_of(constant, known) if known else 'none, for the study declares none'}"
            )
    chosen = [e for e in found.edges if not only or e.place in only]
    turned = set[tuple[str, str]]()

    def done(one: varied.Varied) -> None:
        turned.update((t.claim, t.half) for t in one.turned)
        if record:
            varied.write(found, one, scale=scale, **_taken())
        for t in one.turned:
            instead = f" in place of {t.adopted}" if t.adopted else ""
            _terminal.say(f"{t.edge} {t.neighbour}{instead}: {t.claim}, {t.half}: {t.before} to {t.after}")
        for value, moved in zip(one.edge.neighbours, one.moved, strict=True):
            if not moved:
                _terminal.warn(f"ackclock: {one.edge.name} {one.edge.told(value)}: no number moves")

    with _terminal.progress() as progress:

        def vary() -> None:
            # SQLite connections belong to the thread that opens them
            from ackclock.sweep import Store

            with ExitStack() as stack:
                kept = None if store is None else stack.enter_context(Store(store, write=True))
                plan = Plan(scale=scale, jobs=jobs or _terminal.cpus(), progress=progress, store=kept, name=found.name)
                varied.vary(found, plan, chosen, done)

        _terminal.interruptible(vary)
    _terminal.say(f"{len(chosen)} constants varied, {len(turned)} verdicts turn")
    if record and found.record is not None:
        _terminal.warn(f"ackclock: recorded in {found.record.with_name(varied.FILE)}")
    return 0


def _decide(name: str, ids: list[str], options: Options, *, minutes: float) -> int:
    """Make more runs for undecided claims."""
    from ackclock.judge.looks import BEYOND
    from ackclock.study import Plan, Verdict
    from ackclock.study import decide as more
    from ackclock.sweep import Store

    found = _get(name)
    options.check()
    known = [c.id for c in found.claims]
    for claim in ids:
        if claim != "all" and claim not in known:
            raise InputError(f"--decide: found {quote(claim)}; allowed: all, {one_of(claim, known)}")
    chosen = None if "all" in ids else ids
    with _terminal.progress() as progress:

        def run() -> list[more.Decided]:
            # SQLite connections belong to the thread that opens them
            with ExitStack() as stack:
                store = None if options.store is None else stack.enter_context(Store(options.store, write=True))
                plan = Plan(
                    scale=options.scale,
                    jobs=options.workers.jobs or _terminal.cpus(),
                    progress=progress,
                    store=store,
                    name=found.name,
                )
                return more.decide(found, chosen, plan, 60 * minutes)

        results = _terminal.interruptible(run)
    if options.as_json:
        _terminal.show_json(
            [
                {
                    "claim": r.claim.id,
                    "verdict": r.outcome.verdict.value,
                    "times": r.times,
                    "asked": r.asked,
                    "needed": r.needed if r.needed <= BEYOND else None,
                }
                for r in results
            ]
        )
    else:
        for r in results:
            _terminal.say(r.told)
        left = sum(r.outcome.verdict is Verdict.UNDECIDED for r in results)
        unasked = sum(not r.asked for r in results)
        too_small = f", {unasked} of them because the scale does not ask them" if unasked else ""
        _terminal.say(f"{len(results)} claims were undecided at scale {options.scale}, {left} still are{too_small}")
    return 0
