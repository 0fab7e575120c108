"""The commands and their options.

Length: one function for each command, mostly the declaration of its options.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ackclock.errors import InputError, quote

app = typer.Typer(
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A laboratory for TCP congestion control and loss recovery.",
)
study = typer.Typer(rich_markup_mode=None, help="Published experiments, run again, with a verdict on each claim.")
app.add_typer(study, name="study")
linux = typer.Typer(rich_markup_mode=None, help="The real Linux TCP, in virtual time.")
app.add_typer(linux, name="linux")
sweep = typer.Typer(rich_markup_mode=None, help="Grids of scenarios under many seeds, kept in a folder and resumable.")
app.add_typer(sweep, name="sweep")


def whole_number(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """Parser of an option; its message names value and bounds, which typer's own does not."""

    def parse(text: str | int) -> int:
        plain = str(text)
        # `int` also takes blanks, underscores and the digits of other scripts.
        value = int(plain) if re.fullmatch("-?[0-9]{1,30}", plain) else least - 1
        if not least <= value <= most:
            raise typer.BadParameter(f"found {quote(plain)}; allowed: a whole number, {least} to {most}")
        return value

    return parse


def _path(text: str | None, option: str) -> Path | None:
    if text in ("", "-"):
        raise InputError(f'{option}: found {quote(text)}; allowed: a name in the file system (one that is "-": ./-)')
    if text is not None and not text.isprintable():
        raise InputError(f"{option}: found {quote(text)}; allowed: a name that can be printed")
    return None if text is None else Path(text)


Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Jobs = Annotated[
    int | None,
    typer.Option(parser=whole_number(1, 256), metavar="N", help="Threads, at most 256 (default: one per CPU)."),
]


Target = Annotated[Path, typer.Argument(metavar="FILE", help="Sweep (TOML), or the folder of one.", show_default=False)]
Out = Annotated[
    str | None, typer.Option(metavar="DIR", help="Folder of the runs (default: the file's name with .sweep).")
]
Scheduler = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, e.g. tcp://head:8786.")]
Slurm = Annotated[
    int | None, typer.Option(parser=whole_number(1, 100_000), metavar="N", help="Workers: N jobs of SLURM.")
]
Pbs = Annotated[int | None, typer.Option(parser=whole_number(1, 100_000), metavar="N", help="Workers: N jobs of PBS.")]
Worker = Annotated[
    list[str] | None,
    typer.Option("--worker", metavar="KEY=VALUE", help="Setting of each job: queue, cores, walltime, ... Repeatable."),
]
Width = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="Add seeds until the 95 % interval is this narrow, e.g. 1% of the mean."),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="Let a run fail that takes more CPU time than this, e.g. 10min (key: time_limit)."
    ),
]
MostSeeds = Annotated[
    int, typer.Option(parser=whole_number(2, 1_000_000), metavar="N", help="Most seeds that --until-width uses.")
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A metric that the sweep keeps, or flow.NUMBER.COLUMN, group.NAME.COLUMN, run.COLUMN of its table performance.",
    ),
]


Report = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Write one page (HTML) with figures and tables of the run."),
]
Plots = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Draw cwnd.png (also rtt, goodput, in_flight, queue; pdf, svg), or TABLE.COLUMN=FILE. Repeatable.",
    ),
]
PlotWidth = Annotated[
    str, typer.Option("--plot-width", metavar="single|double", help="One column of a paper, or both.")
]


Beside = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Draw in --report and --plot what was measured elsewhere: iperf3 -J, ss -tin, qlog, or the folder of a run. Repeatable.",
    ),
]


Controllers = Annotated[
    list[str] | None,
    typer.Option(
        "--controller",
        metavar="FILE.py:CLASS",
        help="Your own congestion controller, for all flows; or NAME=FILE.py:CLASS, for those with custom:NAME. Repeatable.",
    ),
]
OwnCode = Annotated[
    bool, typer.Option("--own-code", help="Run controllers that the file itself names as FILE.py:CLASS.")
]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from ackclock.cli import _tools

        _tools.version()
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scenario (TOML).", show_default=False)],
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="Seed of every random stream.")
    ] = 1,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value: flows.0.congestion_control=reno. Repeatable."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Write the tables (Parquet) and run.json to this folder, replacing those of an earlier run.",
        ),
    ] = None,
    json: Json = False,
    trace: Annotated[
        str | None, typer.Option(metavar="none|flow|all", help="Record every ACK of no flow, flow 0, or all.")
    ] = None,
    pcap: Annotated[str | None, typer.Option(metavar="FILE", help="Capture one side's packets (pcapng).")] = None,
    pcap_at: Annotated[
        str | None,
        typer.Option(metavar="sender|receiver", help="Side that --pcap captures (default: sender)."),
    ] = None,
    snaplen: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, 262_144), metavar="N", help="Bytes of each frame that --pcap keeps (default: all)."
        ),
    ] = None,
    memory_limit: Annotated[str, typer.Option(metavar="SIZE", help="Refuse runs that may need more memory.")] = "4 GiB",
    backend: Annotated[
        str, typer.Option(metavar="sim|linux", help="The simulator, or the real Linux TCP in virtual time.")
    ] = "sim",
    network: Annotated[
        str | None,
        typer.Option(
            metavar="auto|qdisc|relay",
            help="linux: the network consists of the kernel's queueing disciplines or of the simulator's links.",
        ),
    ] = None,
    wall_limit: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, 10**6), metavar="S", help="linux: stop a kernel that takes longer."),
    ] = None,
    report: Report = None,
    plot: Plots = None,
    width: PlotWidth = "double",
    beside: Beside = None,
    controller: Controllers = None,
    own_code: OwnCode = False,
) -> None:
    """Run a scenario."""
    from ackclock.cli import _run

    _run.run(
        controllers=controller or [],
        own_code=own_code,
        report=_path(report, "--report"),
        plots=plot or [],
        width=width,
        beside=beside or [],
        snaplen=snaplen,
        file=file,
        seed=seed,
        changes=change or [],
        out=_path(out, "--out"),
        as_json=json,
        trace=trace,
        pcap=_path(pcap, "--pcap"),
        pcap_at=pcap_at,
        memory_limit=memory_limit,
        backend=backend,
        network=network,
        wall_limit=wall_limit,
    )


@app.command("report")
def report_(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that `run --out` has written.", show_default=False)
    ],
    report: Report = None,
    plot: Plots = None,
    width: PlotWidth = "double",
    beside: Beside = None,
) -> None:
    """Draw a run that was written with --out: its report, or single figures."""
    from ackclock.cli import _run

    _run.report(folder=folder, page=_path(report, "--report"), plots=plot or [], width=width, beside=beside or [])


@app.command()
def export(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Scenario (TOML) for tc; else the folder that `run --out` wrote.", show_default=False
        ),
    ],
    kind: Annotated[str, typer.Option("--as", metavar="tc|iperf3|ss|qlog", help="Format.")],
    out: Annotated[str, typer.Option(metavar="FILE", help="File to write (qlog as JSON-SEQ: NAME.sqlog).")],
    group: Annotated[
        int | None,
        typer.Option(parser=whole_number(0), metavar="N", help="iperf3: the group of flows, if there are several."),
    ] = None,
    own_code: OwnCode = False,
) -> None:
    """Write a scenario as a script for a real testbed (tc), or a run as another tool would (iperf3, ss, qlog)."""
    from ackclock.cli import _export

    _export.export(target, kind=kind, out=_path(out, "--out"), group=group, own_code=own_code)


@study.command("list")
def study_list(json: Json = False) -> None:
    """Name every study."""
    from ackclock.cli import _study

    _study.names(as_json=json)


@study.command("show")
def study_show(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    tables: Annotated[bool, typer.Option("--tables", help="Show the exact tables beside the published ones.")] = False,
) -> None:
    """Describe a study: what it reproduces and which claims it tests."""
    from ackclock.cli import _study

    _study.show(name, tables=tables)


@study.command("run")
def study_run(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", show_default=False)] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Run all studies, and write one report that links theirs.")
    ] = False,
    scale: Annotated[str, typer.Option(metavar="quick|paper", help="How many repetitions.")] = "quick",
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(2, 500),
            metavar="N",
            help="Seeds of each cell, 2 to 500, instead of those of the scale.",
        ),
    ] = None,
    jobs: Jobs = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Write the report to this folder.")] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Keep runs in this folder and reuse those it holds (with --all --out: OUT/store)."
        ),
    ] = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = None,
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
    json: Json = False,
) -> int:
    """Run studies. Exit code 1 if a verdict differs from the recorded one. Values that drifted are listed."""
    from ackclock.cli import _study, _workers

    if backend not in ("sim", "linux", "both"):
        raise InputError(f"--backend: found {quote(backend)}; allowed: sim, linux, both")
    if backend == "linux":
        return _study.run_in_linux(
            names or [], seeds=seeds, jobs=jobs, out=_path(out, "--out"), as_json=json, record=record
        )

    if (not names) != every:
        given = "--all beside a name" if every else "nothing"
        raise InputError(f"NAME: found {given}; allowed: names of studies, or --all")
    folder = _path(out, "--out")
    kept = _path(store, "--store")
    options = _study.Options(
        scale=scale,
        seeds=seeds,
        out=folder,
        store=folder / "store" if every and folder is not None and kept is None else kept,
        workers=_workers.Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker or []),
        as_json=json,
        readings=readings,
        record=record,
        kernel=backend == "both",
    )
    return _study.run(names[0], options) if names and len(names) == 1 else _study.run_several(names or [], options)


@app.command("list")
def list_names(json: Json = False) -> None:
    """List every controller, recovery rule, queue, loss model, profile, workload and topology."""
    from ackclock.cli import _tools

    _tools.names(as_json=json)


@app.command()
def tables(
    name: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="One of them, with its columns.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Describe the tables of a run: every column with its type, its unit and what null stands for."""
    from ackclock.cli import _tools

    _tools.tables(name, as_json=json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a scenario."""
    from ackclock.cli import _tools

    _tools.schema()


@app.command()
def bench(
    json: Json = False,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter runs without repeats, for a first look.")] = False,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Count instructions instead (needs valgrind).")
    ] = False,
) -> None:
    """Measure ns of user CPU per delivered packet, beside the yardstick loop; or count instructions."""
    from ackclock.cli import _tools

    _tools.bench(as_json=json, quick=quick, instructions=instructions)


@app.command()
def script(
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE_OR_FOLDER...", help="Packet scripts (*.pkt).", show_default=False)
    ],
    profile: Annotated[str, typer.Option(metavar="NAME", help="Host profile.")] = "linux-6",
    hz: Annotated[int, typer.Option(parser=whole_number(0), metavar="N", help="Timer ticks per second.")] = 1000,
    tolerance: Annotated[
        int | None, typer.Option(parser=whole_number(0), metavar="US", help="How much times may differ, microseconds.")
    ] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", metavar="SYSCTL=VALUE", help="Set a kernel parameter. Repeatable.")
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option("-D", "--define", metavar="WORD=VALUE", help="Define a word of the scripts. Repeatable."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on packets that no expectation matched, also after the last one.")
    ] = False,
    backend: Annotated[
        str, typer.Option(metavar="sim|linux|both", help="The simulator, the real Linux TCP, or both, compared.")
    ] = "sim",
    json: Json = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show packets and printed text.")] = False,
) -> int:
    """Play packet scripts. Exit code 1 if one fails or the backends differ, 4 if one is unsupported."""
    from ackclock.cli import _script

    return _script.play(
        paths,
        profile=profile,
        hz=hz,
        tolerance=tolerance,
        changes=change or [],
        defines=define or [],
        strict=strict,
        backend=backend,
        as_json=json,
        verbose=verbose,
    )


@app.command()
def fidelity(
    seeds: Annotated[
        int, typer.Option(parser=whole_number(2, 1000), metavar="N", help="Seeds of each lossy cell, 2 to 1000.")
    ] = 40,
    jobs: Jobs = None,
    json: Json = False,
) -> int:
    """Compare the simulator with measurements of a real Linux kernel. Exit code 1 if a miss is not a known one."""
    from ackclock.cli import _tools

    return _tools.fidelity(seeds=seeds, jobs=jobs, as_json=json)


@linux.command("build")
def linux_build(
    source: Annotated[
        str | None,
        typer.Option(
            metavar="ARCHIVE|PACKAGE",
            help="Kernel source: a tar archive or a Debian package (default: Linux 7.3.4, pinned).",
        ),
    ] = None,
    controller: Annotated[
        list[Path] | None,
        typer.Option("--controller", metavar="FILE", help="Congestion controller (C) to build in. Repeatable."),
    ] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Build the kernel of the linux backend. Takes minutes the first time, seconds with another controller."""
    from ackclock.cli import _linux

    _linux.build(source=source, controllers=controller or [], jobs=jobs, as_json=json)


@app.command()
def doctor(
    packages: Annotated[
        bool, typer.Option("--packages", help="Print only the names of missing Debian packages, for `apt-get install`.")
    ] = False,
    json: Json = False,
) -> int:
    """List what the linux backend lacks on this machine. Exit code 3 if anything is missing."""
    from ackclock.cli import _linux

    return _linux.doctor(packages=packages, as_json=json)


@sweep.command("run")
def sweep_run(
    file: Target,
    out: Out = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = None,
    until_width: Width = None,
    metric: Metric = "goodput_bps",
    most_seeds: MostSeeds = 10_000,
    time_limit: TimeLimit = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that failed before.")] = False,
    own_code: OwnCode = False,
    json: Json = False,
) -> int:
    """Make the runs that the folder does not have yet. Exit code 1 if runs failed."""
    from ackclock.cli import _sweep, _workers

    workers = _workers.Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker or [])
    return _sweep.run(
        file,
        out=_path(out, "--out"),
        workers=workers,
        width=until_width,
        metric=metric,
        most_seeds=most_seeds,
        time_limit=time_limit,
        retry=retry,
        own_code=own_code,
        as_json=json,
    )


@sweep.command("resume")
def sweep_resume(
    file: Target,
    out: Out = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = None,
    time_limit: TimeLimit = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that failed before.")] = False,
    own_code: OwnCode = False,
    json: Json = False,
) -> int:
    """Continue a sweep. The same as run, for an existing folder."""
    from ackclock.cli import _sweep, _workers

    workers = _workers.Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker or [])
    return _sweep.resume(
        file,
        out=_path(out, "--out"),
        workers=workers,
        time_limit=time_limit,
        retry=retry,
        own_code=own_code,
        as_json=json,
    )


@sweep.command("status")
def sweep_status(file: Target, out: Out = None, json: Json = False) -> None:
    """Show how far a sweep is, also while it runs."""
    from ackclock.cli import _sweep

    _sweep.status(file, out=_path(out, "--out"), as_json=json)


@sweep.command("check")
def sweep_check(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of a sweep.")],
    repair: Annotated[bool, typer.Option("--repair", help="Mark runs whose rows are lost to be made again.")] = False,
) -> int:
    """Compare every file of a store with what was written; exit code 1 if something is lost."""
    from ackclock.cli import _sweep

    return _sweep.check(Path(folder), repair=repair)


@sweep.command("export")
def sweep_export(
    file: Target,
    out: Out = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write a row per run, the axes first.")] = None,
) -> None:
    """Write the table of a sweep, also while it runs."""
    from ackclock.cli import _sweep

    _sweep.export(file, out=_path(out, "--out"), csv=_path(csv, "--csv"))


@sweep.command("plot")
def sweep_plot(
    file: Target,
    out: Out = None,
    metric: Metric = "goodput_bps",
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="lines|bars|groups|heat-map|cdf|pareto", help="Draw only figures of this kind. Repeatable."
        ),
    ] = None,
    x: Annotated[str | None, typer.Option(metavar="AXIS", help="Axis of the grid along x.")] = None,
    by: Annotated[str | None, typer.Option(metavar="AXIS", help="Axis of the grid with a line for each value.")] = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="auto|shared|free", help="One y axis for all panels, or each its own; auto: as they need."
        ),
    ] = "auto",
) -> None:
    """Draw lines with bands, heat map, distributions and throughput against delay; write a report."""
    from ackclock.cli import _sweep

    _sweep.plot(file, out=_path(out, "--out"), metric=metric, kinds=kind or [], x=x, by=by, scale=scale)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A.toml", help="Scenario.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="B.toml", help="Scenario.", show_default=False)],
    seeds: Annotated[
        int, typer.Option(parser=whole_number(2, 100_000), metavar="N", help="Pairs of runs, 2 to 100000.")
    ] = 20,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A metric to compare, or group.NAME.COLUMN of the table performance. Repeatable."
        ),
    ] = None,
    until_width: Width = None,
    most_seeds: MostSeeds = 10_000,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the runs in this folder.")] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    own_code: OwnCode = False,
    json: Json = False,
) -> None:
    """Run two scenarios under the same seeds. Print for each metric which has more and by how much, or that no difference shows."""
    from ackclock.cli import _sweep, _workers

    _sweep.compare(
        first,
        second,
        seeds=seeds,
        metrics=metric or [],
        width=until_width,
        most_seeds=most_seeds,
        out=_path(out, "--out"),
        workers=_workers.Workers(jobs=jobs, scheduler=scheduler),
        own_code=own_code,
        as_json=json,
    )


@app.command()
def evaluate(
    controller: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE.py:CLASS", help="The candidate: a controller by name, or your own.", show_default=False
        ),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the controller. Repeatable.")
    ] = None,
    rival: Annotated[
        str | None, typer.Option(metavar="NAME|FILE.py:CLASS", help="Another controller to show beside it.")
    ] = None,
    rival_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of that controller. Repeatable.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few cells of each situation, three seeds: an indication.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Every cell up to 100 Mbit/s, up to 80 seeds.")] = False,
    gigabit: Annotated[bool, typer.Option("--gigabit", help="With --full: also the cells of 1 Gbit/s.")] = False,
    rows: Annotated[str | None, typer.Option(metavar="ID,...", help="Only these situations, e.g. 5,10,x1.")] = None,
    statement: Annotated[
        str | None, typer.Option(metavar="FILE", help="TOML with the author's texts for sections 5.3.1, 5.3.2 and 8.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of report and runs (default: NAME.evaluate).")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also if a situation with a MUST shows no difference.")
    ] = False,
    false_alarms: Annotated[
        bool,
        typer.Option("--false-alarms", help="Without a candidate: how often CUBIC against itself is called worse."),
    ] = False,
    record: Annotated[bool, typer.Option("--record", help="Keep the rate of false alarms for reports.")] = False,
    backend: Annotated[
        str,
        typer.Option(metavar="sim|linux", help="linux: on the real kernel, with a controller that is built into it."),
    ] = "sim",
    environment: Annotated[
        str,
        typer.Option(
            metavar="internet|datacentre", help="datacentre: also situation 25, for a controller meant for it."
        ),
    ] = "internet",
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = None,
    json: Json = False,
) -> int:
    """Run a congestion controller in the situations of RFC 9743, and again with CUBIC in its place. Exit code 1 if it is worse in one.

    Your own class is executed. In an existing folder only the missing runs are made.
    """
    from ackclock.cli import _evaluate, _workers

    asked = _evaluate.Options(
        options=option or [],
        rival=rival,
        rival_options=rival_option or [],
        quick=quick,
        full=full,
        rows=rows,
        gigabit=gigabit,
        statement=_path(statement, "--statement"),
        out=_path(out, "--out"),
        strict=strict,
        workers=_workers.Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker or []),
        as_json=json,
        backend=backend,
        environment=environment,
    )
    if backend not in ("sim", "linux"):
        raise InputError(f"--backend: found {quote(backend)}; allowed: sim, linux")
    if backend == "linux" and false_alarms:
        raise InputError("--backend: found linux beside --false-alarms; allowed: sim")
    if record and not false_alarms:
        raise InputError("--record: found it without --false-alarms; allowed: together")
    if (controller is None) != false_alarms:
        given = "nothing" if controller is None else f"{quote(controller)} beside --false-alarms"
        raise InputError(f"CONTROLLER: found {given}; allowed: a controller, or --false-alarms")
    if controller is None:
        return _evaluate.false_alarms(asked, record=record)
    return _evaluate.run(controller, asked)


@app.command()
def conform(
    controller: Annotated[
        str, typer.Argument(metavar="NAME|FILE.py:CLASS", help="A controller by name, or your own.", show_default=False)
    ],
    pack: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ccwg-bbr-06|c4|quiche-bbr2", help="Only cases of this source (default: all). Repeatable."
        ),
    ] = None,
    case: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this case. Repeatable.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the controller. Repeatable.")
    ] = None,
    junit: Annotated[str | None, typer.Option(metavar="FILE", help="Write the outcomes as JUnit XML.")] = None,
    json: Json = False,
) -> int:
    """Run published test cases for congestion controllers. Exit code 1 if one fails."""
    from ackclock.cli import _conform

    return _conform.run(
        controller,
        packs=pack or [],
        cases=case or [],
        options=option or [],
        junit=_path(junit, "--junit"),
        as_json=json,
    )


@app.command()
def diff(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Scenario (TOML).", show_default=False)] = None,
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="Seed of both backends.")
    ] = 1,
    change: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value. Repeatable.")
    ] = None,
    network: Annotated[
        str, typer.Option(metavar="relay|qdisc|auto", help="relay: the simulator's links and losses.")
    ] = "relay",
    figure: Annotated[str | None, typer.Option(metavar="FILE", help="Draw both windows (svg, pdf, png).")] = None,
    patterns: Annotated[
        bool, typer.Option("--patterns", help="Run twenty patterns of loss instead of a file.")
    ] = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Run the measured cells of `ackclock fidelity`.")
    ] = False,
    drawn: Annotated[bool, typer.Option("--drawn", help="Run scenarios drawn from the seed.")] = False,
    json: Json = False,
) -> None:
    """Run a scenario in the simulator and in the real Linux TCP, and show where they first differ."""
    from ackclock.cli import _diff

    _diff.diff(
        file=file,
        seed=seed,
        changes=change or [],
        network=network,
        figure=_path(figure, "--figure"),
        patterns=patterns,
        reference=reference,
        drawn=drawn,
        as_json=json,
    )
