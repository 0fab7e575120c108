"""`ackclock script`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from ackclock.cli import _terminal
from ackclock.errors import InputError, quote

UNSUPPORTED = 4


def play(
    paths: Sequence[Path],
    *,
    profile: str,
    hz: int,
    tolerance: int | None,
    changes: Sequence[str],
    defines: Sequence[str],
    strict: bool,
    as_json: bool,
    verbose: bool,
) -> int:
    """Play, print a line per script, and return the exit code."""
    from ackclock import script

    sysctls = [_assignment("--set", change, "a kernel parameter, e.g. tcp_sack=0") for change in changes]
    words = [_assignment("--define", define, "a word and its value, e.g. COOKIE=0123") for define in defines]
    files = script.find(paths)
    results: list[script.Played] = []
    invalid: list[str] = []
    for file in files:
        try:
            played = script.play(
                file,
                profile=profile,
                hz=hz,
                tolerance_us=tolerance,
                sysctls=sysctls,
                defines=words,
                strict=strict,
            )
        except InputError as error:
            if len(files) == 1:
                raise
            invalid.append(str(error))
            continue
        results.append(played)
        if not as_json:
            _show(played, verbose=verbose)
    if as_json:
        _terminal.show_json({"scripts": [r.to_json() for r in results]})
    elif len(files) > 1:
        counts = {v: sum(r.verdict == v for r in results) for v in ("pass", "fail", "unsupported")}
        typer.echo(", ".join(f"{n} {verdict}" for verdict, n in counts.items()))
    for message in invalid:
        typer.echo(f"ackclock: {message}", err=True)
    verdicts = {r.verdict for r in results}
    if invalid:
        return 2
    return 1 if "fail" in verdicts else UNSUPPORTED if "unsupported" in verdicts else 0


def _assignment(option: str, text: str, allowed: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"{option}: found {quote(text)}; allowed: {allowed}")
    return name, value


def _show(played: object, *, verbose: bool) -> None:
    from ackclock.script import Played

    assert isinstance(played, Played)
    off = f"  (times within {played.deviation_s * 1e3:.3f} ms)" if played.deviation_s else ""
    if played.verdict == "pass":
        typer.echo(f"pass         {played.path}{off}")
    elif played.verdict == "fail":
        typer.echo(f"fail         {played.path}:{played.line}")
        typer.echo(f"    expected {played.expected}")
        typer.echo(f"    actual   {played.actual}")
    else:
        typer.echo(f"unsupported  {played.path}:{played.line}  {played.unsupported}")
    if verbose or played.verdict == "fail":
        for line in played.trace[-200:]:
            typer.echo(f"    | {line}")
    if verbose:
        for text in played.printed:
            typer.echo(f"    print: {text}")
