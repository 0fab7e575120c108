"""`ackclock conform`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import typer

from ackclock.cli import _terminal
from ackclock.cli._evaluate import checked, option_of, resolved
from ackclock.errors import InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock.conform import Pack, Result


def run(
    controller: str,
    *,
    packs: Sequence[str],
    cases: Sequence[str],
    options: Sequence[str],
    junit: Path | None,
    as_json: bool,
) -> int:
    """Run packs; exit code 1 if a case fails."""
    from ackclock.conform import conform, names, pack

    given = dict(option_of(text) for text in options)
    name = checked(controller, given, "CONTROLLER")
    asked = [pack(p) for p in packs or names()]
    known = [c.id for p in asked for c in p.cases]
    for case in cases:
        if case not in known:
            raise InputError(f"--case: found {quote(case)}; allowed: {one_of(case, known)}")
    if junit is not None:
        _terminal.writable_file(junit, "--junit")
    with _terminal.progress() as tell:

        def made(p: Pack) -> list[Result]:
            return conform(
                resolved(controller), p, options=given, only=cases, progress=lambda c, d: tell(f"{p.name} {c}", d)
            )

        def work() -> list[tuple[Pack, list[Result]]]:
            return [(p, made(p)) for p in asked]

        found = _terminal.interruptible(work)
    if junit is not None:
        junit.write_text(to_junit(found), encoding="utf-8")
    if as_json:
        _terminal.show_json(to_json(name, found))
    else:
        for one, results in found:
            if results:
                _terminal.show(_table(name, one, results))
                typer.echo(f"{one.name}: " + ", ".join(f"{n} {o}" for o, n in counts(results).items() if n))
    return 1 if any(r.outcome == "fails" for _, results in found for r in results) else 0


def counts(results: Sequence[Result]) -> dict[str, int]:
    """Outcome -> number of cases."""
    from ackclock.conform.harness import SYMBOLS

    return {o: sum(r.outcome == o for r in results) for o in SYMBOLS}


def to_json(name: str, found: Sequence[tuple[Pack, Sequence[Result]]]) -> dict[str, Any]:
    """Plain values."""
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
    """A suite for each pack; fails is a failure, void and what cannot be looked at is skipped."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for p, results in found:
        fails = sum(r.outcome == "fails" for r in results)
        skipped = sum(r.outcome not in ("holds", "fails") for r in results)
        lines.append(
            f'<testsuite name={quoteattr(p.name)} tests="{len(results)}" failures="{fails}" skipped="{skipped}">'
        )
        for r in results:
            inner = ""
            if r.outcome == "fails":
                inner = f"<failure message={quoteattr(r.said)}/>"
            elif r.outcome != "holds":
                inner = f"<skipped message={quoteattr(f'{r.outcome}: {r.said}')}/>"
            lines.append(
                f"<testcase classname={quoteattr(p.name)} name={quoteattr(f'{r.case.id}: {r.case.title}')}>{inner}</testcase>"
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
