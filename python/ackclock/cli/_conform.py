"""`ackclock conform`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock import _files
from ackclock.cli import _terminal
from ackclock.cli._evaluate import checked, option_of, resolved
from ackclock.cli._options import NOTHING, Json, file_name, whole_number
from ackclock.errors import InputError, one_of, quote
from ackclock.text import xml

if TYPE_CHECKING:
    from ackclock.conform import Pack, Result


def conform_(
    controller: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.py:CLASS|FILE.c|FILE.rs|zoo:NAME",
            help="A controller by name, your own, or a bug of the zoo.",
            show_default=False,
        ),
    ],
    pack: Annotated[
        list[str],
        typer.Option(
            metavar="ccwg-bbr-06|c4|quiche-bbr2", help="Only cases of this source (default: all). Repeatable."
        ),
    ] = NOTHING,
    case: Annotated[list[str], typer.Option(metavar="ID", help="Only this case. Repeatable.")] = NOTHING,
    option: Annotated[
        list[str], typer.Option(metavar="NAME=VALUE", help="Option of the controller. Repeatable.")
    ] = NOTHING,
    junit: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Write the outcomes as JUnit XML.")
    ] = None,
    trouble: Annotated[
        int,
        typer.Option(
            parser=whole_number(0, 1_000_000),
            metavar="RUNS",
            help="Instead: draw this many paths with trouble that ends, and check whether the flow recovers.",
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="With --trouble: seed of the draws.")
    ] = 1,
    as_json: Json = False,
) -> int:
    """Run published test cases for congestion controllers. Exit code 1 if one fails."""
    if trouble:
        if pack or case or junit:
            raise InputError("--trouble: found --pack, --case or --junit beside it; allowed: alone")
        return after_trouble(controller, runs=trouble, seed=seed, options=option, as_json=as_json)
    from ackclock.conform import conform, names
    from ackclock.conform import pack as pack_of

    given = dict(option_of(text) for text in option)
    name = checked(controller, given, "CONTROLLER")
    asked = [pack_of(p) for p in pack or names()]
    known = [c.id for p in asked for c in p.cases]
    for wanted in case:
        if wanted not in known:
            raise InputError(f"--case: found {quote(wanted)}; allowed: {one_of(wanted, known)}")
    if junit is not None:
        _terminal.writable_file(junit, "--junit")
    with _terminal.progress() as tell:

        def made(p: Pack) -> list[Result]:
            return conform(
                resolved(controller), p, options=given, only=case, progress=lambda c, d: tell(f"{p.name} {c}", d)
            )

        def work() -> list[tuple[Pack, list[Result]]]:
            return [(p, made(p)) for p in asked]

        found = _terminal.interruptible(work)
    if junit is not None:
        _files.write(junit, to_junit(found), f"--junit {junit}")
    if as_json:
        _terminal.show_json(to_json(name, found))
    else:
        for one, results in found:
            if results:
                _terminal.show(_table(name, one, results))
                _terminal.say(f"{one.name}: " + ", ".join(f"{n} {o}" for o, n in counts(results).items() if n))
    return 1 if any(r.outcome == "fails" for _, results in found for r in results) else 0


def after_trouble(controller: str, *, runs: int, seed: int, options: Sequence[str], as_json: bool) -> int:
    """Draw paths with trouble that ends; exit code 1 if a flow does not recover."""
    from ackclock.conform.trouble import OWN, comes_back
    from ackclock.sweep import engine_identity

    given = dict(option_of(text) for text in options)
    name = checked(controller, given, "CONTROLLER")
    with _terminal.progress() as tell:
        misses = _terminal.interruptible(
            lambda: comes_back(resolved(controller), runs=runs, seed=seed, options=given, progress=tell)
        )
    if as_json:
        found = [
            {"number": m.number, "reached": m.reached, "limit_s": m.drawn.limit_s, "said": m.drawn.said,
             "scenario": m.drawn.scenario.to_dict()}
            for m in misses
        ]  # fmt: skip
        _terminal.show_json(
            {"schema": "ackclock.trouble/1", "engine": engine_identity(), "controller": name, "seed": seed,
             "runs": runs, "misses": found}
        )  # fmt: skip
    else:
        for miss in misses:
            _terminal.say(str(miss))
        if misses and controller in OWN:
            _terminal.say(f"known: {controller} {OWN[controller]}")
        _terminal.say(f"{name}: comes back in {runs - len(misses)} of {runs} runs")
    return 1 if misses else 0


def counts(results: Sequence[Result]) -> dict[str, int]:
    """Return the number of cases by outcome."""
    from ackclock.conform.harness import SYMBOLS

    return {o: sum(r.outcome == o for r in results) for o in SYMBOLS}


def to_json(name: str, found: Sequence[tuple[Pack, Sequence[Result]]]) -> dict[str, Any]:
    """Return the results as plain values for JSON."""
    from ackclock.sweep import engine_identity

    return {
        "schema": "ackclock.conform/1",
        "engine": engine_identity(),
        "controller": name,
        "packs": [
            {
                "name": p.name,
                "source": p.source,
                "counts": counts(results),
                "cases": [
                    {"id": r.case.id, "title": r.case.title, "outcome": r.outcome, "said": r.said, "note": r.case.note,
                     "seed": r.seed, "digest": r.digest}
                    for r in results
                ],
            }
            for p, results in found
        ],
    }  # fmt: skip


def to_junit(found: Sequence[tuple[Pack, Sequence[Result]]]) -> str:
    """Return one test suite per pack. A "fails" case is a failure; "void" and untestable cases are skipped."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for p, results in found:
        fails = sum(r.outcome == "fails" for r in results)
        skipped = sum(r.outcome not in ("holds", "fails") for r in results)
        lines.append(f'<testsuite name={xml(p.name)} tests="{len(results)}" failures="{fails}" skipped="{skipped}">')
        for r in results:
            inner = ""
            if r.outcome == "fails":
                inner = f"<failure message={xml(r.said)}/>"
            elif r.outcome != "holds":
                inner = f"<skipped message={xml(f'{r.outcome}: {r.said}')}/>"
            lines.append(
                f"<testcase classname={xml(p.name)} name={xml(f'{r.case.id}: {r.case.title}')}>{inner}</testcase>"
            )
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _table(name: str, one: Pack, results: Sequence[Result]) -> Any:
    from rich.table import Table

    from ackclock.conform.harness import SYMBOLS

    table = Table(title=f"{name}: {one.title}", caption=one.source, title_justify="left", caption_justify="left")
    for head in ("case", "what", "outcome", "found"):
        table.add_column(head, overflow="fold")
    for r in results:
        table.add_row(r.case.id, r.case.title, f"{SYMBOLS[r.outcome]} {r.outcome}", r.said)
    return table
