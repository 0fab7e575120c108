"""Options shared by several commands, and parsers of option values."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ackclock._files import give_leave
from ackclock.errors import quote


def whole_number(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """Return an option parser with an error message that names the value and the bounds, unlike typer's own."""

    def parse(text: str | int) -> int:
        plain = str(text)
        # `int` also accepts blanks, underscores and non-ASCII digits.
        value = int(plain) if re.fullmatch("-?[0-9]{1,30}", plain) else least - 1
        if not least <= value <= most:
            raise typer.BadParameter(f"found {quote(plain)}; allowed: a whole number, {least} to {most}")
        return value

    return parse


def file_name(text: str | Path) -> Path:
    """Parse an option that names a file or a folder."""
    plain = str(text)
    if plain in ("", "-"):
        raise typer.BadParameter(f'found {quote(plain)}; allowed: a name in the file system (one that is "-": ./-)')
    if not plain.isprintable():
        raise typer.BadParameter(f"found {quote(plain)}; allowed: a name that can be printed")
    if plain.startswith("-"):  # the next option, in place of a value that is missing
        raise typer.BadParameter(f"found {quote(plain)}, an option; allowed: a name (a file of that name: ./{plain})")
    return Path(plain)


def use(kernel: str | None) -> None:
    """Use the kernel with this name for this command's runs."""
    if kernel is not None:
        from ackclock import linux

        linux.use(kernel)


def load_stacks(files: list[Path]) -> None:
    """Load the stack libraries given to the command."""
    if files:
        from ackclock import stacks

        for file in files:
            stacks.load(file)


NOTHING: list[Any] = []
"""Default of a repeatable option."""


Json = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Jobs = Annotated[
    int | None,
    typer.Option(parser=whole_number(1, 256), metavar="N", help="Threads, at most 256 (default: one per CPU)."),
]


Target = Annotated[Path, typer.Argument(metavar="FILE", help="Sweep (TOML), or the folder of one.", show_default=False)]
Out = Annotated[
    Path | None,
    typer.Option(parser=file_name, metavar="DIR", help="Folder of the runs (default: the file's name with .sweep)."),
]
Scheduler = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, e.g. tcp://head:8786.")]
Slurm = Annotated[
    int | None, typer.Option(parser=whole_number(1, 100_000), metavar="N", help="Workers: N jobs of SLURM.")
]
Pbs = Annotated[int | None, typer.Option(parser=whole_number(1, 100_000), metavar="N", help="Workers: N jobs of PBS.")]
Worker = Annotated[
    list[str],
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
    int,
    typer.Option(
        parser=whole_number(2, 1_000_000), metavar="N", help="Maximum number of seeds that --until-width uses."
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A metric that the sweep keeps, or flow.NUMBER.COLUMN, group.NAME.COLUMN, run.COLUMN of its table performance.",
    ),
]


Report = Annotated[
    Path | None,
    typer.Option(
        "--report", parser=file_name, metavar="FILE", help="Write one page (HTML) with figures and tables of the run."
    ),
]
Plots = Annotated[
    list[str],
    typer.Option(
        "--plot",
        metavar="NAME.png|TABLE.COLUMN=FILE",
        help="Draw cwnd.png (also rtt, goodput, in_flight, queue; pdf, svg), or TABLE.COLUMN=FILE. Repeatable.",
    ),
]
PlotWidth = Annotated[
    str, typer.Option("--plot-width", metavar="single|double", help="One column of a paper, or both.")
]


Beside = Annotated[
    list[str],
    typer.Option(
        metavar="FILE",
        help="Measurements from elsewhere, drawn in --report and --plot: iperf3 -J, ss -tin, qlog, or the folder of a run. Repeatable.",
    ),
]


Controllers = Annotated[
    list[str],
    typer.Option(
        "--controller",
        metavar="NAME|FILE.py:CLASS|FILE.c|FILE.rs",
        help="Congestion controller, built in or your own, for all flows; or NAME=FILE.py:CLASS, for those with custom:NAME. Repeatable.",
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
Stacks = Annotated[
    list[Path],
    typer.Option(
        "--stack",
        parser=file_name,
        metavar="LIB",
        help="Shared library of a transport stack, for flows with stack:NAME:CONTROLLER. Its code is run. Repeatable.",
    ),
]


def _leave(given: bool) -> bool:
    if given:
        give_leave()
    return given


OwnCode = Annotated[
    bool,
    typer.Option(
        "--own-code",
        help="Run controllers that the file itself names as FILE.py:CLASS, FILE.c or FILE.rs.",
        callback=_leave,
    ),
]
