"""`ackclock arena`."""

from __future__ import annotations

import json
import secrets
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._evaluate import PREFIXES, checked, resolved
from ackclock.cli._options import NOTHING, Jobs, Json, file_name, use, whole_number
from ackclock.cli._sweep import stoppable
from ackclock.errors import InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock.arena import Entry, Table

TaskName = Annotated[
    str, typer.Argument(metavar="TASK", help="internet, latency, satellite, or a file (TOML).", show_default=False)
]
Entries = Annotated[
    list[str],
    typer.Option(
        "--entry", metavar="NAME|FILE.py:CLASS|FILE.c|FILE.rs", help="A controller that takes part. Repeatable."
    ),
]
LARGEST = 2**27
"""Maximum size of a saved table, bytes."""

LONGEST = 2**22
"""Maximum number of characters in a request: a controller's text has at most 1 MiB."""


def tasks(as_json: Json = False) -> None:
    """List the tasks that come with ackclock, with their families and the number of draws per tier."""
    from ackclock import arena

    found = [arena.load(name) for name in arena.built_in()]
    if as_json:
        _terminal.show_json(
            [
                {
                    "name": t.name, "title": t.title, "about": t.about, "digest": t.digest, "weights": dict(t.weights), "draws": dict(t.draws),
                    "families": [{"id": f.id, "about": f.about, "counts": list(f.counts)} for f in t.families],
                }
                for t in found
            ]
        )  # fmt: skip
        return
    for task in found:
        _terminal.say(f"{task.name}: {task.title}")
        for family in task.families:
            _terminal.say(f"  {family.id:<10} {family.about} ({', '.join(family.counts)})")


def run(
    task: TaskName,
    entry: Entries = NOTHING,
    salt: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Salt from which the draws follow (default: a new one, which is printed)."),
    ] = None,
    tier: Annotated[
        str, typer.Option(metavar="NAME", help="Number of draws of each family: quick, medium or full.")
    ] = "medium",
    draws: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, 1000), metavar="N", help="Number of draws of each family, instead of a tier."
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Public draws, for development: their result is no score.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(parser=file_name, metavar="DIR", help="Folder of report and runs (default: TASK.arena)."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Play the draws in this Linux kernel, too (`linux build --name NAME`)."),
    ] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Score controllers on drawn scenarios. All entries face the same scenarios, unknown beforehand; each rank is shown with its certainty.

    Your own code is executed behind a system-call filter. In the folder of an interrupted arena, only missing runs are made.
    """
    from ackclock.arena import TIERS, Plan, files, load

    wanted = load(task)
    if tier not in TIERS:
        raise InputError(f"--tier: found {quote(tier)}; allowed: {', '.join(TIERS)}")
    if public and salt is not None:
        raise InputError("--public: found it beside --salt; allowed: one of them")
    entries = entries_of(entry)
    if not entries:
        raise InputError("--entry: found none; allowed: one or more controllers")
    folder = out or Path(f"{wanted.name}.arena")
    _terminal.own_folder(folder, files.WRITTEN, files.MARKS, whose="arena")
    plan = Plan(
        task=wanted, entries=entries, salt="public" if public else salt or _kept_salt(folder) or secrets.token_hex(8),
        draws=draws or wanted.draws[tier],
    )  # fmt: skip
    if kernel is not None:
        from ackclock import linux

        use(kernel)
        linux.installed()  # fails before the table is computed
    table = played(plan, folder, jobs)
    if kernel is not None:
        table = _confirmed(table)
    place = files.write(table, folder)
    if as_json:
        _terminal.show_json(files.to_json(table))
        return
    tell(table)
    _terminal.say(
        f"salt {plan.salt}{', the public draws: no score' if public else ''}; {table.runs:,} runs in {table.seconds:.1f} s"
    )
    _terminal.say(f"report: {place}")


def rerun(
    result: Annotated[Path, typer.Argument(metavar="FILE", help="arena.json of a table.", show_default=False)],
    entry: Annotated[
        str,
        typer.Argument(
            metavar="ENTRY", help="Name of the entry in the table; for a file, its path here.", show_default=False
        ),
    ],
    jobs: Jobs = None,
) -> int:
    """Repeat an entry's runs, and compare their digests with the table's. Exit code 1 if one differs."""
    import tempfile

    from ackclock.arena import Plan, files, load
    from ackclock.own import short

    said = _read(result)
    wanted = load(said["task"]["name"])
    if wanted.digest != said["task"]["digest"]:
        raise InputError(
            f"{result}: found the task {wanted.name} in another form ({said['task']['digest']}); allowed: {wanted.digest}"
        )
    known = files.digests(said, short(entry))
    if not known:
        names = [s["entry"] for s in said["standings"]]
        raise InputError(f"ENTRY: found {quote(entry)}; allowed: {one_of(entry, names)}")
    plan = Plan(task=wanted, entries=entries_of([entry]), salt=said["salt"], draws=said["draws"])
    with tempfile.TemporaryDirectory(prefix="ackclock-") as place:
        table = played(plan, Path(place), jobs)
    standing = next(s for s in table.standings if s.entry == plan.entries[0])
    apart = [row.draw.id for row in standing.rows if known.get(row.draw.id) != row.digest]
    if apart:
        _terminal.say(f"{standing.entry.name}: {len(apart)} of {len(known)} digests differ: {', '.join(apart[:10])}")
        return 1
    _terminal.say(f"{standing.entry.name}: {len(known)} digests are as in {result}")
    return 0


def scenarios(
    task: TaskName,
    out: Annotated[Path, typer.Option(parser=file_name, metavar="DIR", help="New folder for the scenarios.")],
    draws: Annotated[
        int, typer.Option(parser=whole_number(1, 1000), metavar="N", help="Number of draws of each family.")
    ] = 6,
) -> None:
    """Write the public draws of a task as scenarios. CUBIC takes the entry's place."""
    from ackclock.arena import drawn, load
    from ackclock.arena.task import PUBLIC

    wanted = load(task)
    if out.exists():
        raise InputError(f"--out {out}: found something there; allowed: a new folder")
    found = [draw for draw in drawn(wanted, PUBLIC, draws) if draw.keys]
    with _files.staged(out, marks=()) as part:
        for draw in found:
            text = (
                f"# seed {draw.seed}; counts: {', '.join(draw.family.counts)}\n{draw.scenario('cubic', {}).to_toml()}"
            )
            (part / f"{draw.id}.toml").write_text(text, encoding="utf-8")
    _terminal.say(f"{out}: {len(found)} scenarios")


def serve(
    salt: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Salt from which the draws follow (default: a new one for each server)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=file_name, metavar="DIR", help="Folder that keeps runs and entries (default: nothing is kept)."
        ),
    ] = None,
    names_only: Annotated[
        bool, typer.Option("--names-only", help="Refuse text of controllers: only built-in ones, with options.")
    ] = False,
    jobs: Jobs = None,
) -> None:
    """Score controllers for a program. Each line of standard input is a JSON object; its score is a line of standard output.

    {"task": "satellite", "entry": {"language": "c", "text": "..."}, "tier": "full", "beat": "bbr3"} goes through the tiers, and stops when it is certainly behind.
    The text is executed behind a system-call filter.
    """
    import tempfile

    from ackclock.arena.game import Plan
    from ackclock.arena.serve import Server
    from ackclock.arena.task import load

    chosen = salt or secrets.token_hex(8)
    Plan(task=load("internet"), entries=[], salt=chosen, draws=1)  # checks the salt
    with tempfile.TemporaryDirectory(prefix="ackclock-") as place:
        folder = out or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        _files.give_leave()
        server = Server(folder, chosen, jobs or _terminal.cpus(), code=not names_only)
        while line := sys.stdin.readline(LONGEST):
            if len(line) == LONGEST and not line.endswith("\n"):
                raise InputError(f"standard input: found a line of over {LONGEST:,} characters; allowed: shorter ones")
            if line.strip():
                _terminal.say(json.dumps(server.answer(line)))


def played(plan: Any, folder: Path, jobs: int | None) -> Table:
    """Compute the table, with a progress display; Ctrl-C stops it."""
    from ackclock.arena import play

    folder.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    with _terminal.progress() as tell_:
        return stoppable(lambda: play(plan, folder, jobs or _terminal.cpus(), tell=tell_, stop=stop), stop)


def _confirmed(table: Table) -> Table:
    from ackclock.arena.confirm import ask

    with _terminal.progress() as tell_:
        return replace(table, verdicts=ask(table, tell=tell_))


def entries_of(names: list[str]) -> list[Entry]:
    """Return the entries specified by the options."""
    from ackclock.arena import Entry
    from ackclock.own import described, named

    found = []
    for name in names:
        if named(name):
            _files.give_leave()
            described(resolved(name), {})  # only read here; the class is run in a separate process
            for prefix, allowed in PREFIXES.items():
                if name.startswith(prefix):
                    raise InputError(f"--entry: found {quote(name)}; allowed: {allowed}")
        else:
            checked(name, {}, "--entry")
        found.append(Entry(controller=resolved(name)))
    return [entry for i, entry in enumerate(found) if entry not in found[:i]]


def tell(table: Table) -> None:
    """Print the table to the terminal."""
    from rich.table import Table as Shown

    from ackclock.arena import files

    shown = Shown()
    for i, head in enumerate(files.HEAD):
        shown.add_column(head, justify="left" if i in (1, 7) else "right", overflow="fold")
    for standing in table.standings:
        shown.add_row(*files.cells(standing))
    _terminal.show(shown)
    if table.verdicts:
        shown = Shown()
        for i, head in enumerate(files.OF_KERNEL):
            shown.add_column(head, justify="left" if i in (0, 6) else "right", overflow="fold")
        for row in files.kernel_cells(table):
            shown.add_row(*row)
        _terminal.show(shown)
    _terminal.say(files.conclusion(table))


def _kept_salt(folder: Path) -> str:
    """Return the salt of the finished or interrupted table in the folder; empty if there is none."""
    try:
        return str(_read(folder / "arena.json")["salt"])
    except (InputError, KeyError, TypeError):
        return ""


def _read(file: Path) -> dict[str, Any]:
    from ackclock.arena.files import SCHEMA

    try:
        said = json.loads(_files.contents(file, LARGEST))
    except ValueError:
        said = None
    if not isinstance(said, dict) or said.get("schema") != SCHEMA:
        raise InputError(f"{file}: found no table of the arena; allowed: arena.json, of this version")
    return said
