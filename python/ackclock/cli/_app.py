"""The commands and their options.

Length: one function for each command, mostly the declaration of its options.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ackclock.cli._lazy import Branch, root
from ackclock.errors import InputError, quote

commands = Branch()
study = Branch()
linux = Branch()
sweep = Branch()


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
Kernels = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="linux: the kernel that `ackclock linux build --name NAME` made (default: the current one).",
    ),
]
OwnCode = Annotated[
    bool, typer.Option("--own-code", help="Run controllers that the file itself names as FILE.py:CLASS.")
]


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from ackclock.cli import _tools

        _tools.version()
    elif context.invoked_subcommand is None:
        from ackclock.cli import _terminal

        _terminal.say(context.get_help())


@commands.command()
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
    cpu_limit: Annotated[
        str, typer.Option(metavar="DURATION", help="Refuse runs that may need more CPU time.")
    ] = "1 h",
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
    kernel: Kernels = None,
) -> None:
    """Run a scenario."""
    from ackclock.cli import _run

    if kernel is not None and backend != "linux":
        raise InputError("--kernel: found it without --backend linux; allowed: together")
    _use(kernel)
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
        cpu_limit=cpu_limit,
        backend=backend,
        network=network,
        wall_limit=wall_limit,
    )


def _use(kernel: str | None) -> None:
    """Runs of this command use a kernel by its name."""
    if kernel is not None:
        from ackclock import linux

        linux.use(kernel)


@commands.command("report")
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


@commands.command()
def export(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Scenario (TOML) for tc; else the folder that `run --out` wrote.", show_default=False
        ),
    ],
    kind: Annotated[str, typer.Option("--as", metavar="tc|iperf3|ss|qlog|tcp-probe|curl", help="Format.")],
    out: Annotated[str, typer.Option(metavar="FILE", help="File to write (qlog as JSON-SEQ: NAME.sqlog).")],
    group: Annotated[
        int | None,
        typer.Option(parser=whole_number(0), metavar="N", help="iperf3: the group of flows, if there are several."),
    ] = None,
    own_code: OwnCode = False,
) -> None:
    """Write a scenario as a script for a real testbed (tc), or a run as another tool would (iperf3, ss, qlog, tcp-probe, curl)."""
    from ackclock.cli import _export

    _export.export(target, kind=kind, out=_path(out, "--out"), group=group, own_code=own_code)


@commands.command()
def read(
    capture: Annotated[Path, typer.Argument(metavar="CAPTURE", help="pcap or pcapng.", show_default=False)],
    connection: Annotated[
        int | None,
        typer.Option(parser=whole_number(0), metavar="N", help="Only this one; with --csv, its packets."),
    ] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the table of connections, or packets.")] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw the time-sequence graph (png, pdf, svg); of the largest connection."),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DURATION",
            help="Where the graph begins, e.g. 1.5s (default: some round trips before the first retransmission).",
        ),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="DURATION", help="Where it ends.")] = None,
    anonymise: Annotated[bool, typer.Option("--anonymise", help="Write other addresses and ports.")] = False,
    json: Json = False,
) -> None:
    """Read a capture of TCP: its connections, what each has lost and sent for nothing, and the packets of one."""
    from ackclock.cli import _read

    _read.read(
        capture,
        connection=connection,
        csv=_path(csv, "--csv"),
        plot=_path(plot, "--plot"),
        begin=begin,
        end=end,
        anonymise=anonymise,
        as_json=json,
    )


@commands.command()
def diagnose(
    capture: Annotated[
        Path, typer.Argument(metavar="CAPTURE", help="pcap or pcapng, taken at the sender.", show_default=False)
    ],
    connection: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(0), metavar="N", help="Which one, as `ackclock read` numbers them (default: most data)."
        ),
    ] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the table of causes.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the causes over time (png, pdf, svg).")] = None,
    scenario: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a scenario of the path (TOML), run it, and say how well it fits."),
    ] = None,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Run that scenario with one value changed after the other.")
    ] = False,
    controller: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The sender's, for the scenario (default: cubic): a capture does not name it."
        ),
    ] = None,
    anonymise: Annotated[bool, typer.Option("--anonymise", help="Show other addresses and ports.")] = False,
    json: Json = False,
) -> None:
    """Why is this transfer slow? Say what limited each moment of it, and what its path is like."""
    from ackclock.cli import _diagnose

    _diagnose.diagnose(
        capture,
        connection=connection,
        csv=_path(csv, "--csv"),
        plot=_path(plot, "--plot"),
        scenario=_path(scenario, "--scenario"),
        changes=what_if,
        controller=controller,
        anonymise=anonymise,
        as_json=json,
    )


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


@study.command("new")
def study_new(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    out: Annotated[str, typer.Option(metavar="DIR", help="Make the study's folder in this one.")] = ".",
) -> None:
    """Write a small study of your own that runs: NAME/study.toml, NAME/study.py."""
    from ackclock.cli import _study

    _study.new(name, Path(out))


@study.command("register")
def study_register(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    out: Annotated[str, typer.Option(metavar="FILE", help="Write the plan to this file.")] = "plan.json",
) -> None:
    """Write what a study will test, and its hash, before it is run."""
    from ackclock.cli import _study

    _study.register(name, Path(out))


@study.command("artefact")
def study_artefact(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    out: Annotated[str, typer.Option(metavar="DIR", help="Write the artefact to this folder.")] = "artefact",
) -> None:
    """Write a study as an artefact for others: one command, the versions, what is expected to come out."""
    from ackclock.cli import _study

    _study.artefact(name, Path(out))


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
    registered: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Run as planned in FILE (study register); its hash gives the seeds."),
    ] = None,
    decide: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="More runs for this claim, or all, if it is undecided. Repeatable."),
    ] = None,
    within: Annotated[
        float, typer.Option(metavar="MINUTES", help="With --decide: how long at most.", show_default=True)
    ] = 10.0,
    kernel: Kernels = None,
    json: Json = False,
) -> int:
    """Run studies. Exit code 1 if a verdict differs from the recorded one. Values that drifted are listed."""
    from ackclock.cli import _study, _workers

    if backend not in ("sim", "linux", "both"):
        raise InputError(f"--backend: found {quote(backend)}; allowed: sim, linux, both")
    if kernel is not None and backend == "sim":
        raise InputError("--kernel: found it without --backend linux or both; allowed: together")
    _use(kernel)
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
        registered=_path(registered, "--registered"),
    )
    if decide:
        if not names or len(names) != 1:
            raise InputError(f"--decide: found {len(names or [])} names; allowed: one study")
        if seeds is not None or readings or record or registered is not None or options.workers.elsewhere:
            raise InputError(
                "--decide: found it beside other options; allowed: --scale, --jobs, --store, --within, --json"
            )
        if not 0 < within <= 100_000:
            raise InputError(f"--within: found {within:g}; allowed: minutes, above 0")
        return _study.decide(names[0], decide, options, minutes=within)
    if registered is not None and (not names or len(names) != 1):
        raise InputError(f"--registered: found {len(names or [])} names; allowed: one study")
    return _study.run(names[0], options) if names and len(names) == 1 else _study.run_several(names or [], options)


@commands.command("lab")
def lab_(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Scenario (TOML), or a link of the lab; default: first.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(parser=whole_number(0, 2**53 - 1), metavar="N", help="Seed.")] = 1,
    port: Annotated[
        int, typer.Option(parser=whole_number(0, 65_535), metavar="N", help="Port on 127.0.0.1 (0: any that is free).")
    ] = 0,
    save: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the page, with the scenario in it, to this file (HTML).")
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser, or only say the address.")
    ] = True,
) -> None:
    """Open the simulator in a page: edit a scenario, and see its figures change."""
    from ackclock.cli import _lab

    _lab.lab(file=file, seed=seed, port=port, save=_path(save, "--save"), browser=browser)


@commands.command("list")
def list_names(json: Json = False) -> None:
    """List every controller, recovery rule, queue, loss model, profile, workload and topology."""
    from ackclock.cli import _tools

    _tools.names(as_json=json)


@commands.command()
def tables(
    name: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="One of them, with its columns.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Describe the tables of a run: every column with its type, its unit and what null stands for."""
    from ackclock.cli import _tools

    _tools.tables(name, as_json=json)


@commands.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Scenario files, or names of shipped ones.")],
    json: Json = False,
) -> None:
    """Say everything that is wrong with a scenario, and where, without running it."""
    from ackclock.cli import _check

    _check.check(files, as_json=json)


@commands.command()
def schema() -> None:
    """Print the JSON Schema of a scenario."""
    from ackclock.cli import _tools

    _tools.schema()


@commands.command()
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


@commands.command()
def script(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE_OR_FOLDER...]", help="Packet scripts (*.pkt).", show_default=False),
    ] = None,
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
    drawn: Annotated[
        str | None,
        typer.Option(metavar="receiver|free", help="Play drawn scripts on both backends, and compare their packets."),
    ] = None,
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="With --drawn: what they depend on.")
    ] = 1,
    count: Annotated[
        int, typer.Option(parser=whole_number(1, 100_000), metavar="N", help="With --drawn: number of scripts.")
    ] = 50,
    keep: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="With --drawn: write those that differ there, made shorter.")
    ] = None,
) -> int:
    """Play packet scripts. Exit code 1 if one fails or the backends differ, 4 if one is unsupported."""
    from ackclock.cli import _script

    if drawn is not None:
        if paths:
            raise InputError("--drawn: found it beside a file; allowed: one of them")
        return _script.drawn(drawn, seed=seed, count=count, keep=_path(keep, "--keep"), as_json=json)
    if not paths:
        raise InputError("script: found no script; allowed: FILE_OR_FOLDER..., or --drawn")
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


@commands.command()
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
    tree: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Kernel source: a folder, which is only read. What changed is compiled."),
    ] = None,
    controller: Annotated[
        list[Path] | None,
        typer.Option("--controller", metavar="FILE", help="Congestion controller (C) to build in. Repeatable."),
    ] = None,
    patch: Annotated[
        list[Path] | None,
        typer.Option("--patch", metavar="FILE", help="Patch of the kernel tree to apply. Repeatable."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Keep the kernel under this name (default: it becomes the one that runs use)."
        ),
    ] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Build the kernel of the linux backend. Takes minutes the first time, seconds with another controller or a patch."""
    from ackclock.cli import _linux

    _linux.build(
        source=source,
        tree=tree,
        controllers=controller or [],
        patches=patch or [],
        name=name,
        jobs=jobs,
        as_json=json,
    )


@commands.command()
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


@sweep.command("rerun")
def sweep_rerun(
    file: Target,
    cell: Annotated[int, typer.Option(metavar="N", help="Number of the cell, as tables and `status` have it.")],
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the run.")] = 1,
    out: Out = None,
    own_code: OwnCode = False,
) -> None:
    """Make one run of a sweep again and print what came of it; nothing is kept."""
    from ackclock.cli import _sweep

    _sweep.rerun(file, out=_path(out, "--out"), cell=cell, seed=seed, own_code=own_code)


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
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write it as CSV, the axes first.")] = None,
    parquet: Annotated[str | None, typer.Option(metavar="FILE", help="Write it as Parquet.")] = None,
    of: Annotated[str, typer.Option("--of", metavar="runs|flows|groups", help="What has a row.")] = "runs",
) -> None:
    """Write a table of a sweep, also while it runs: a row per run, per flow or per group of each run."""
    from ackclock.cli import _sweep

    _sweep.export(file, out=_path(out, "--out"), csv=_path(csv, "--csv"), parquet=_path(parquet, "--parquet"), of=of)


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
    panel: Annotated[
        list[str] | None, typer.Option(metavar="AXIS", help="Axis of the grid with a panel for each value. Repeatable.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="AXIS=VALUE", help="Only runs with this value. Repeatable.")
    ] = None,
    average: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS",
            help="Take means over this axis: of a metric that is a share, or with --normalise. Repeatable.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="AXIS=VALUE", help="Show differences from the run with this value, seed by seed."),
    ] = None,
    normalise: Annotated[
        bool,
        typer.Option(
            "--normalise",
            help="Show rates as a share of what the bottleneck can carry, times as multiples of the base RTT.",
        ),
    ] = False,
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
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="pdf|png|svg", help="Write the figures so, too (always: svg). Repeatable."),
    ] = None,
) -> None:
    """Draw lines with bands, heat map, distributions and throughput against delay; write a report."""
    from ackclock.cli import _sweep

    _sweep.plot(
        file,
        out=_path(out, "--out"),
        metric=metric,
        kinds=kind or [],
        x=x,
        by=by,
        panel=panel or [],
        where=where or [],
        average=average or [],
        against=against,
        normalise=normalise,
        scale=scale,
        width=width,
        style=style,
        formats=format_ or [],
    )


@commands.command()
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
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Twice: two kernels of `ackclock linux build --name NAME` instead, on one scenario; the first ACK that differs.",
        ),
    ] = None,
    network: Annotated[str, typer.Option(metavar="relay|qdisc|auto", help="Of kernels.")] = "relay",
    drawn: Annotated[
        bool, typer.Option("--drawn", help="Kernels: scenarios that are drawn, family by family.")
    ] = False,
    family: Annotated[
        list[str] | None, typer.Option("--family", metavar="NAME", help="With --drawn: only this family. Repeatable.")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, 10_000), metavar="N", help="With --drawn: scenarios of each family."),
    ] = None,
    json: Json = False,
) -> None:
    """Run two scenarios under the same seeds. Print for each metric which has more and by how much, or that no difference shows."""
    from ackclock.cli import _sweep, _workers

    if kernel:
        from ackclock.cli import _diff

        if second is not None or metric or until_width is not None or out is not None or scheduler is not None:
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
            families=family or [],
            count=count,
            jobs=jobs,
            as_json=json,
        )
        return
    if network != "relay" or drawn or family or count is not None:
        raise InputError("--network, --drawn, --family, --count: found one without --kernel; allowed: with two kernels")
    if first is None or second is None:
        raise InputError(
            f"compare: found {'no scenario' if first is None else 'one scenario'}; allowed: two, or one with two kernels"
        )

    _sweep.compare(
        first,
        second,
        seeds=seeds or 20,
        metrics=metric or [],
        width=until_width,
        most_seeds=most_seeds,
        out=_path(out, "--out"),
        workers=_workers.Workers(jobs=jobs, scheduler=scheduler),
        own_code=own_code,
        as_json=json,
    )


@commands.command()
def attack(
    target: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.py:CLASS|zoo:NAME",
            help="A controller by name, your own, or a bug of the zoo.",
            show_default=False,
        ),
    ],
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the controller. Repeatable.")
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="What may be chosen: steps, wide, jitter, box, one-held, two-bdp, loss, chosen, trouble, cross, application, receiver, or a TOML file.",
        ),
    ] = "steps",
    objective: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What it is to lack: utilisation, delay, loss, starvation, harm, stall, stuck, early or divergence.",
        ),
    ] = "utilisation",
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Who shows what could be had (default: cubic, reno, bbr3). Repeatable."),
    ] = None,
    beside: Annotated[str, typer.Option(metavar="NAME", help="Who stands beside it, with --objective harm.")] = "cubic",
    search: Annotated[str, typer.Option(metavar="NAME", help="genetic, random or evolution.")] = "genetic",
    evaluations: Annotated[
        int, typer.Option(parser=whole_number(1, 1_000_000), metavar="N", help="Environments to look at.")
    ] = 500,
    seed: Annotated[int, typer.Option(parser=whole_number(0), metavar="N", help="Of the search and of the runs.")] = 1,
    at_most: Annotated[
        str | None, typer.Option(metavar="SCORE", help="Exit code 1 if a case above this score is found, 0 to 1.")
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Ask the Linux kernel about the worst case, too.")] = False,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of report and journal (default: NAME.attack).")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = None,
    json: Json = False,
) -> int:
    """Search for the environment in which a controller does worst, by what others get in the same one.

    Your own class is executed. In the folder of an interrupted search only the missing runs are made.
    """
    from ackclock.cli import _attack, _workers

    asked = _attack.Options(
        options=option or [],
        budget=budget,
        objective=objective,
        references=reference or [],
        beside=beside,
        search=search,
        evaluations=evaluations,
        seed=seed,
        at_most=at_most,
        confirm=confirm,
        out=_path(out, "--out"),
        workers=_workers.Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker or []),
        as_json=json,
    )
    return _attack.run(target, asked)


@commands.command()
def evaluate(
    controller: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE.py:CLASS|zoo:NAME",
            help="The candidate: a controller by name, your own, or a bug of the zoo.",
            show_default=False,
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
    kernel: Kernels = None,
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
    if kernel is not None and backend != "linux":
        raise InputError("--kernel: found it without --backend linux; allowed: together")
    _use(kernel)
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


@commands.command()
def conform(
    controller: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.py:CLASS|zoo:NAME",
            help="A controller by name, your own, or a bug of the zoo.",
            show_default=False,
        ),
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
    trouble: Annotated[
        int,
        typer.Option(
            parser=whole_number(0, 1_000_000),
            metavar="RUNS",
            help="Instead: draw so many paths with trouble that ends, and look whether the flow comes back.",
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="With --trouble: seed of the draws.")
    ] = 1,
    json: Json = False,
) -> int:
    """Run published test cases for congestion controllers. Exit code 1 if one fails."""
    from ackclock.cli import _conform

    if trouble:
        if pack or case or junit:
            raise InputError("--trouble: found --pack, --case or --junit beside it; allowed: alone")
        return _conform.after_trouble(controller, runs=trouble, seed=seed, options=option or [], as_json=json)
    return _conform.run(
        controller,
        packs=pack or [],
        cases=case or [],
        options=option or [],
        junit=_path(junit, "--junit"),
        as_json=json,
    )


@commands.command()
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
    drawn: Annotated[
        bool, typer.Option("--drawn", help="Run scenarios drawn from the seed, family by family.")
    ] = False,
    family: Annotated[
        list[str] | None, typer.Option("--family", metavar="NAME", help="With --drawn: only this family. Repeatable.")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, 10_000), metavar="N", help="With --drawn: scenarios of each family."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, 1024), metavar="N", help="With --drawn or --seeds: guests side by side."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(5, 10_000),
            metavar="N",
            help="Run so many seeds on both, and compare the distributions of each flow's goodput, retransmissions and RTT.",
        ),
    ] = None,
    kernel: Kernels = None,
    json: Json = False,
) -> None:
    """Run a scenario in the simulator and in the real Linux TCP, and show where they first differ."""
    from ackclock.cli import _diff

    _use(kernel)
    _diff.diff(
        file=file,
        seed=seed,
        changes=change or [],
        network=network,
        figure=_path(figure, "--figure"),
        patterns=patterns,
        reference=reference,
        drawn=drawn,
        families=family or [],
        count=count,
        jobs=jobs,
        seeds=seeds,
        as_json=json,
    )


commands.add("study", study, help="Published experiments, run again, with a verdict on each claim.")
commands.add("linux", linux, help="The real Linux TCP, in virtual time.")
commands.add("sweep", sweep, help="Grids of scenarios under many seeds, kept in a folder and resumable.")
app = root(_root, commands, help="A laboratory for TCP congestion control and loss recovery.")
