"""`ackclock script`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackclock.cli import _terminal
from ackclock.cli._options import NOTHING, Json, file_name, whole_number
from ackclock.errors import InputError, quote

if TYPE_CHECKING:
    from ackclock.script import Compared, Played

UNSUPPORTED = 4
BOTH = ("same", "differs", "known", "stale")


def play(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="[FILE_OR_FOLDER...]", help="Packet scripts (*.pkt).", show_default=False),
    ] = NOTHING,
    profile: Annotated[str, typer.Option(metavar="NAME", help="Host profile.")] = "linux-6",
    hz: Annotated[int, typer.Option(parser=whole_number(0), metavar="N", help="Timer ticks per second.")] = 1000,
    tolerance: Annotated[
        int | None, typer.Option(parser=whole_number(0), metavar="US", help="Tolerance of times, microseconds.")
    ] = None,
    change: Annotated[
        list[str], typer.Option("--set", metavar="SYSCTL=VALUE", help="Set a kernel parameter. Repeatable.")
    ] = NOTHING,
    define: Annotated[
        list[str],
        typer.Option("-D", "--define", metavar="WORD=VALUE", help="Define a word of the scripts. Repeatable."),
    ] = NOTHING,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on packets that no expectation matched, also after the last one.")
    ] = False,
    backend: Annotated[
        str, typer.Option(metavar="sim|linux|both", help="The simulator, the real Linux TCP, or both, compared.")
    ] = "sim",
    as_json: Json = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show packets and printed text.")] = False,
    drawn: Annotated[
        str | None,
        typer.Option(metavar="receiver|free", help="Play drawn scripts on both backends, and compare their packets."),
    ] = None,
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="With --drawn: seed of the scripts.")
    ] = 1,
    count: Annotated[
        int, typer.Option(parser=whole_number(1, 100_000), metavar="N", help="With --drawn: number of scripts.")
    ] = 50,
    keep: Annotated[
        Path | None,
        typer.Option(
            parser=file_name, metavar="FOLDER", help="With --drawn: folder for scripts that differ, shortened."
        ),
    ] = None,
) -> int:
    """Play packet scripts. Exit code 1 if one fails or the backends differ, 4 if one is unsupported."""
    from ackclock import script

    if drawn is not None:
        if paths:
            raise InputError("--drawn: found it beside a file; allowed: one of them")
        return _drawn(drawn, seed=seed, count=count, keep=keep, as_json=as_json)
    if not paths:
        raise InputError("script: found no script; allowed: FILE_OR_FOLDER..., or --drawn")

    if backend not in (*script.BACKENDS, "both"):
        raise InputError(f"--backend: found {quote(backend)}; allowed: {', '.join(script.BACKENDS)}, both")
    sysctls = [_assignment("--set", text, "a kernel parameter, e.g. tcp_sack=0") for text in change]
    words = [_assignment("--define", text, "a word and its value, e.g. COOKIE=0123") for text in define]
    files = script.find(paths)
    results: list[script.Played | script.Compared] = []
    invalid: list[InputError] = []
    options = {"profile": profile, "hz": hz, "tolerance_us": tolerance, "sysctls": sysctls, "defines": words}
    for result in script.play_each(files, backend=backend, strict=strict, **options):  # type: ignore[arg-type]
        if isinstance(result, InputError):
            if len(files) == 1:
                raise result
            invalid.append(result)
            continue
        results.append(result)
        if not as_json:
            _show_both(result, verbose=verbose) if isinstance(result, script.Compared) else _show(
                result, verbose=verbose
            )
    words_of: list[str] = [r.agreement if isinstance(r, script.Compared) else r.verdict for r in results]
    if as_json:
        _terminal.show_json({"scripts": [r.to_json() for r in results]})
    elif len(files) > 1:
        kinds = BOTH if backend == "both" else ("pass", "fail", "unsupported")
        _terminal.say(", ".join(f"{words_of.count(kind)} {kind}" for kind in kinds))
    for message in invalid:
        _terminal.warn(f"ackclock: {message}")
    if invalid:
        return 2
    if {"fail", "differs", "stale"}.intersection(words_of):
        return 1
    sims = [r.sim if isinstance(r, script.Compared) else r for r in results]
    verdicts = {r.verdict for r in sims}
    return 1 if "fail" in verdicts else UNSUPPORTED if "unsupported" in verdicts else 0


def _drawn(kind: str, *, seed: int, count: int, keep: Path | None, as_json: bool) -> int:
    """Play randomly drawn scripts on both backends and compare their packets; return the exit code."""
    from ackclock import script

    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    todo = script.drawn_scripts(kind, seed, count)
    told: list[tuple[script.DrawnScript, str | None]] = []
    with tempfile.TemporaryDirectory() as name, _terminal.progress() as progress:
        folder = Path(name)

        def compared(some: Sequence[script.DrawnScript]) -> Iterator[str | None]:
            files = [folder / f"{number}.pkt" for number in range(len(some))]
            for file, one in zip(files, some, strict=True):
                file.write_text(one.text(), encoding="ascii")
            for result in script.play_each(files, backend="both"):
                if isinstance(result, InputError):
                    raise result
                assert isinstance(result, script.Compared)
                yield result.difference

        for one, difference in zip(todo, compared(todo), strict=True):
            told.append((one, difference))
            progress(one.name, len(told) / count)
        if keep is not None:
            for one, difference in told:
                if difference is not None:
                    less = script.shrink(one, lambda script: next(compared([script])) is not None)
                    said = next(compared([less]))
                    (keep / f"{one.name}.pkt").write_text(f"// {said}\n{less.text()}", encoding="ascii")
    different = [(one, difference) for one, difference in told if difference is not None]
    if as_json:
        _terminal.show_json([{"script": one.name, "difference": difference} for one, difference in told])
    else:
        for one, difference in different:
            _terminal.say(f"differs      {one.name}")
            _terminal.say(f"    {difference}")
        _terminal.say(f"{count - len(different)} of {count} are equal packet by packet")
    return 1 if different else 0


def _assignment(option: str, text: str, allowed: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"{option}: found {quote(text)}; allowed: {allowed}")
    return name, value


def _show(played: Played, *, verbose: bool, indent: str = "") -> None:
    off = f"  (times within {played.deviation_s * 1e3:.3f} ms)" if played.deviation_s else ""
    if played.verdict == "pass":
        _terminal.say(f"{indent}pass         {played.path}{off}")
    elif played.verdict == "fail":
        _terminal.say(f"{indent}fail         {played.path}:{played.line}")
        _terminal.say(f"{indent}    expected {played.expected}")
        _terminal.say(f"{indent}    actual   {played.actual}")
    else:
        _terminal.say(f"{indent}unsupported  {played.path}:{played.line}  {played.unsupported}")
    if verbose or played.verdict == "fail":
        for line in played.trace[-200:]:
            _terminal.say(f"{indent}    | {line}")
    if verbose:
        for text in played.printed:
            _terminal.say(f"{indent}    print: {text}")


def _show_both(compared: Compared, *, verbose: bool) -> None:
    sim, linux = compared.sim, compared.linux
    what = {"same": sim.verdict, "known": "known", "stale": "stale", "differs": "differs"}[compared.agreement]
    line = f":{linux.line or sim.line}" if linux.line or sim.line else ""
    _terminal.say(f"{what:<12} {sim.path}{line}")
    if compared.difference is not None:
        _terminal.say(f"    {compared.difference}")
    if compared.reason is not None:
        _terminal.say(f"    linux-differs: {compared.reason}")
    if compared.agreement == "stale":
        _terminal.say("    the kernel does the same: the line `// linux-differs:` is not true any more")
    if not verbose and compared.agreement in ("known", "stale"):
        return
    if compared.agreement == "same" and sim.verdict == "pass" and not verbose:
        return
    for name, played in (("sim", sim), ("linux", linux)):
        _terminal.say(f"  {name}:")
        _show(played, verbose=verbose, indent="    ")
