"""`ackclock attack`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock.cli import _terminal
from ackclock.cli._evaluate import checked, option_of, resolved
from ackclock.cli._options import (
    NOTHING,
    Jobs,
    Json,
    Pbs,
    Scheduler,
    Slurm,
    Stacks,
    Worker,
    file_name,
    load_stacks,
    whole_number,
)
from ackclock.cli._sweep import stoppable
from ackclock.cli._workers import Workers
from ackclock.errors import InputError, quote
from ackclock.text import share

if TYPE_CHECKING:
    from ackclock.attack import Found
    from ackclock.attack.confirm import Confirmed
    from ackclock.attack.explain import Parting


def attack_(
    target: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.py:CLASS|FILE.c|FILE.rs|zoo:NAME",
            help="A controller by name, your own, or a bug of the zoo.",
            show_default=False,
        ),
    ],
    option: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="Option of the controller. Repeatable.")
    ] = NOTHING,
    budget: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="Choices that the search may make: steps, wide, jitter, box, one-held, two-bdp, loss, chosen, trouble, cross, application, receiver, or a TOML file.",
        ),
    ] = "steps",
    objective: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Weakness to look for: utilisation, delay, loss, starvation, harm, stall, stuck, early or divergence.",
        ),
    ] = "utilisation",
    reference: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Controller that shows what the environment allows (default: cubic, reno, bbr3). Repeatable.",
        ),
    ] = NOTHING,
    beside: Annotated[
        str, typer.Option(metavar="NAME", help="With --objective harm: controller of the other flow.")
    ] = "cubic",
    search: Annotated[str, typer.Option(metavar="NAME", help="genetic, random or evolution.")] = "genetic",
    evaluations: Annotated[
        int, typer.Option(parser=whole_number(1, 1_000_000), metavar="N", help="Number of environments to try.")
    ] = 500,
    seed: Annotated[
        int, typer.Option(parser=whole_number(0), metavar="N", help="Seed of the search and of the runs.")
    ] = 1,
    at_most: Annotated[
        str | None, typer.Option(metavar="SCORE", help="Exit code 1 if a case above this score is found, 0 to 1.")
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Run the worst case in the Linux kernel, too.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(parser=file_name, metavar="DIR", help="Folder of report and journal (default: NAME.attack)."),
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    slurm: Slurm = None,
    pbs: Pbs = None,
    worker: Worker = NOTHING,
    stack: Stacks = NOTHING,
    as_json: Json = False,
) -> int:
    """Search for the environment in which a controller does worst. The score is relative to what other controllers achieve there.

    Your own class is executed. In the folder of an interrupted search only the missing runs are made.
    """
    workers = Workers(jobs=jobs, scheduler=scheduler, slurm=slurm, pbs=pbs, options=worker)
    from ackclock import attack
    from ackclock.attack import confirm as confirming
    from ackclock.attack import explain, files

    workers.check()
    load_stacks(stack)
    given: dict[str, Any] = dict(option_of(text) for text in option)
    checked(target, given, "TARGET")
    for name in reference:
        checked(name, {}, "--reference")
    checked(beside, {}, "--beside")
    wanted = attack.Attack(
        target=resolved(target),
        options=given,
        budget=attack.load(budget),
        objective=objective,
        references=tuple(resolved(name) for name in reference) or attack.Attack.references,
        victim=resolved(beside),
        search=search,
        evaluations=evaluations,
        seed=seed,
    )
    most = _at_most(at_most)
    folder = out or Path(f"{Path(target.partition(':')[2] or target).name}.attack")
    _terminal.own_folder(folder, files.WRITTEN, files.MARKS, whose="attack")
    folder.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    with _terminal.progress() as tell:

        def told(looked_at: int, best: float) -> None:
            tell(
                f"{looked_at:,} of {evaluations:,} environments, worst so far {best:.3f}",
                looked_at / evaluations,
            )

        def work() -> tuple[Found, Parting, Confirmed | None]:
            with workers.open() as executor:
                found = attack.run(wanted, executor, folder=folder, progress=told, stopped=stop.is_set)
            return found, explain.parting(found), confirming.ask(found) if confirm else None

        found, parted, confirmed = stoppable(work, stop)
    place = files.write(found, parted, folder, confirmed=confirmed, at_most=most)
    if as_json:
        _terminal.show_json(files.to_json(found, parted, confirmed=confirmed, at_most=most))
    else:
        _tell(found, parted, confirmed)
        _terminal.say(f"report: {place}")
    return 1 if most is not None and found.score > most else 0


def _tell(found: Found, parted: Parting, confirmed: Confirmed | None) -> None:
    from rich.table import Table

    from ackclock.attack.files import conclusion

    _terminal.say(conclusion(found))
    if found.score <= 0:
        return
    _terminal.say(f"environment: {found.attack.budget.words(found.worst)}")
    table = Table()
    table.add_column("controller", overflow="fold")
    for head in (f"{found.attack.objective} ({found.attack.wanted.unit})", "delivered"):
        table.add_column(head, justify="right", overflow="fold")
    scored = found.scores[1]
    for arm, value, sent in zip(found.attack.arms, scored.values, scored.delivered, strict=True):
        table.add_row(arm.name, f"{value:,.4g}" if value < 1e5 else f"{value:,.0f}", f"{sent / 1e3:,.0f} KB")
    _terminal.show(table)
    other = found.attack.arms[found.reference].name
    if parted.at_s is not None:
        _terminal.say(
            f"{found.attack.arms[0].name} and {other} diverge at {parted.at_s:.3f} s; "
            f"from there {found.attack.arms[0].name} is held by: {parted.cause}"
        )
    _terminal.say(f"{share(found.width)} of the neighbouring environments keep four fifths of the score")
    if confirmed is not None:
        _terminal.say(confirmed.words)


def _at_most(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"--at-most: found {quote(text)}; allowed: a score, 0 to 1")
    return value
