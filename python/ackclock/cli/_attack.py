"""`ackclock attack`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.cli import _terminal
from ackclock.cli._evaluate import checked, option_of, resolved
from ackclock.cli._sweep import stoppable
from ackclock.cli._workers import Workers
from ackclock.errors import InputError, quote

if TYPE_CHECKING:
    from ackclock.attack import Attack, Found
    from ackclock.attack.confirm import Confirmed
    from ackclock.attack.explain import Parting


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The options of the command."""

    options: Sequence[str]
    budget: str
    objective: str
    references: Sequence[str]
    beside: str
    search: str
    evaluations: int
    seed: int
    at_most: str | None
    confirm: bool
    out: Path | None
    workers: Workers
    as_json: bool


def run(target: str, asked: Options) -> int:
    """Search; exit code 1 if the score is above `--at-most`."""
    from ackclock import attack
    from ackclock.attack import confirm, explain, files

    asked.workers.check()
    wanted = _attack(target, asked)
    at_most = _at_most(asked.at_most)
    folder = asked.out or Path(f"{Path(target.partition(':')[2] or target).name}.attack")
    files.check_folder(folder)
    _terminal.writable_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    with _terminal.progress() as tell:

        def told(looked_at: int, best: float) -> None:
            tell(
                f"{looked_at:,} of {asked.evaluations:,} environments, worst so far {best:.3f}",
                looked_at / asked.evaluations,
            )

        def work() -> tuple[Found, Parting, Confirmed | None]:
            with asked.workers.open() as executor:
                found = attack.run(wanted, executor, folder=folder, progress=told, stopped=stop.is_set)
            return found, explain.parting(found), confirm.ask(found) if asked.confirm else None

        found, parted, confirmed = stoppable(work, stop)
    place = files.write(found, parted, folder, confirmed=confirmed, at_most=at_most)
    if asked.as_json:
        _terminal.show_json(files.to_json(found, parted, confirmed=confirmed, at_most=at_most))
    else:
        _tell(found, parted, confirmed)
        _terminal.say(f"report: {place}")
    return 1 if at_most is not None and found.score > at_most else 0


def _tell(found: Found, parted: Parting, confirmed: Confirmed | None) -> None:
    from rich.table import Table

    from ackclock.attack.files import conclusion

    _terminal.say(conclusion(found))
    if found.score <= 0:
        return
    _terminal.say(f"environment: {found.attack.budget.words(found.worst)}")
    table = Table()
    table.add_column("controller")
    for head in (f"{found.attack.objective} ({found.attack.wanted.unit})", "delivered"):
        table.add_column(head, justify="right")
    scored = found.scores[1]
    for arm, value, sent in zip(found.attack.arms, scored.values, scored.delivered, strict=True):
        table.add_row(arm.name, f"{value:,.4g}" if value < 1e5 else f"{value:,.0f}", f"{sent / 1e3:,.0f} KB")
    _terminal.show(table)
    other = found.attack.arms[found.reference].name
    if parted.at_s is not None:
        _terminal.say(
            f"{found.attack.arms[0].name} and {other} part at {parted.at_s:.3f} s; what then holds it: {parted.cause}"
        )
    _terminal.say(f"{found.width * 100:.0f} % of its neighbours keep four fifths of the score")
    if confirmed is not None:
        _terminal.say(confirmed.words)


def _attack(target: str, asked: Options) -> Attack:
    from ackclock import attack

    options: dict[str, Any] = dict(option_of(text) for text in asked.options)
    checked(target, options, "TARGET")
    for name in asked.references:
        checked(name, {}, "--reference")
    checked(asked.beside, {}, "--beside")
    return attack.Attack(
        target=resolved(target),
        options=options,
        budget=attack.load(asked.budget),
        objective=asked.objective,
        references=tuple(resolved(name) for name in asked.references) or attack.Attack.references,
        victim=resolved(asked.beside),
        search=asked.search,
        evaluations=asked.evaluations,
        seed=asked.seed,
    )


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
