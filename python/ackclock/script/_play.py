"""Plays a packet script: the engine or the guest kernel plays packets and calls, and code blocks are evaluated here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ackclock.errors import InputError, one_of, quote
from ackclock.script._blocks import Block, check, evaluate

__all__ = ["BACKENDS", "Backend", "Played", "find", "linux_differs", "play"]

Backend = Literal["sim", "linux"]
BACKENDS: tuple[Backend, ...] = ("sim", "linux")

_LINUX_DIFFERS = re.compile(r"^// linux-differs: (\S.*)$", re.MULTILINE)
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """Outcome of a script.

    Parameters
    ----------
    path
        The file.
    verdict
        "unsupported" if the script contains something that cannot be played.
    line
        Line of the script that decided; 0 if all passed, or if no line decided.
    expected, actual
        Expectation of the script, and the actual event, for a failure.
    unsupported
        Construct that is not supported.
    deviation_s
        Maximum deviation of an expected packet from its expected time, within the tolerance.
    trace
        Packets in both directions, one per line, up to the one that decided.
    printed
        Arguments of `print` in the code blocks.
    """

    path: str
    verdict: Literal["pass", "fail", "unsupported"]
    line: int = 0
    expected: str | None = None
    actual: str | None = None
    unsupported: str | None = None
    deviation_s: float = 0.0
    trace: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()

    def to_json(self) -> dict[str, str | int | None]:
        """Return plain values for `ackclock script --json`."""
        names = ("path", "verdict", "line", "expected", "actual", "unsupported")
        return {name: getattr(self, name) for name in names}


def find(paths: Sequence[Path]) -> list[Path]:
    """Return the scripts among files and folders; those of a folder in order of their names.

    Raises
    ------
    InputError
        If a path does not exist, or a folder contains no script.
    """
    scripts: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*.pkt") if p.is_file())
            if not inside:
                raise InputError(f"{path}: found no script; allowed: a folder with *.pkt files")
            scripts += inside
        elif path.exists():
            scripts.append(path)
        else:
            raise InputError(f"{path}: found nothing; allowed: a script or a folder of scripts")
    return scripts


def play(
    path: str | Path,
    *,
    profile: str = "linux-6",
    hz: int = 1000,
    tolerance_us: int | None = None,
    sysctls: Sequence[tuple[str, str]] = (),
    defines: Sequence[tuple[str, str]] = (),
    strict: bool = False,
    backend: Backend = "sim",
    cpu: int | None = None,
) -> Played:
    """Play one script in virtual time, against the simulated stack or the real kernel.

    Parameters
    ----------
    path
        The file.
    profile
        Host profile.
    hz
        Timer ticks per second; 0 = exact timers.
    tolerance_us
        Time tolerance, in place of the script's own (4000 if it sets none).
    sysctls
        Kernel parameters set after the script's own.
    defines
        Words of the script and their replacements; the script's own definitions take precedence.
    strict
        Whether an unexpected packet is a failure, even after the last expectation.
    backend
        "sim": the simulated stack; "linux": the guest kernel (`ackclock linux build`), which has one profile and 1000
        ticks per second.
    cpu
        CPU to which the guest is pinned; None: any.

    Raises
    ------
    InputError
        If the file cannot be read, is not a packet script, or a parameter is out of range.
    UnavailableError
        If there is no kernel, or the guest fails.
    """
    if backend not in BACKENDS:
        raise InputError(f"--backend: found {quote(backend)}; allowed: {one_of(str(backend), BACKENDS)}")
    _check_kind(Path(path))
    plays = _in_the_kernel if backend == "linux" else _simulated
    told = plays(path, profile, hz, (tolerance_us, list(sysctls), list(defines), strict), cpu)
    return _with_blocks(str(path), told)


def linux_differs(path: Path) -> str | None:
    """Return the reason why the kernel differs from the script, if its author states one in a line `//
    linux-differs: reason`.
    """
    found = _LINUX_DIFFERS.search(_text(path))
    return found[1] if found else None


def _check_kind(path: Path) -> None:
    if path.exists() and not path.is_file():  # a pipe or device may have no end, or block when opened
        raise InputError(f"{path}: found no regular file; allowed: a packet script")


def _text(path: Path) -> str:
    _check_kind(path)
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path}:1:1: bytes of the file: more than the limit of {_MOST_BYTES}")
    return data.decode(errors="replace")


_Arguments = tuple[int | None, list[tuple[str, str]], list[tuple[str, str]], bool]


def _in_the_kernel(path: str | Path, profile: str, hz: int, arguments: _Arguments, cpu: int | None) -> dict[str, Any]:
    from ackclock import linux

    if profile not in ("linux-6", "linux-7.3"):
        raise InputError(f"--profile: found {quote(profile)}; allowed: linux-6, linux-7.3, with the linux backend")
    if hz != 1000:
        raise InputError(f"--hz: found {hz}; allowed: 1000, with the linux backend")
    tolerance_us, sysctls, defines, strict = arguments
    told = linux.play_script(
        _text(Path(path)), tolerance_us=tolerance_us, sysctls=sysctls, defines=defines, strict=strict, cpu=cpu
    )
    if "invalid" in told:
        raise InputError(f"{path}:{told['invalid']}")
    return told


def _simulated(path: str | Path, profile: str, hz: int, arguments: _Arguments, _: int | None) -> dict[str, Any]:
    from ackclock import _engine

    profiles = [name for name, _ in _engine.registry()["profiles"]]
    if profile not in profiles:
        raise InputError(f"--profile: found {quote(profile)}; allowed: {one_of(profile, profiles)}")
    if hz > 10_000:
        raise InputError(f"--hz: found {hz}; allowed: 0 to 10000")
    try:
        told = _engine.play_script(str(path), profile, hz, *arguments)
    except (ValueError, OSError) as error:
        message = str(error)
        raise InputError(message if isinstance(error, OSError) else f"{path}:{message}") from None
    return dict(told)


def _with_blocks(path: str, told: dict[str, Any]) -> Played:
    blocks = [Block(line=line, text=text, names=names) for line, text, names in told["blocks"]]
    allowed = check(blocks)
    outcome = allowed if allowed.verdict != "pass" else evaluate(blocks)
    played = Played(
        path=path,
        verdict=told["verdict"],
        line=told["line"],
        expected=told["expected"],
        actual=told["actual"],
        unsupported=told["unsupported"],
        deviation_s=told["deviation_s"],
        trace=tuple(told["trace"]),
        printed=outcome.printed,
    )
    if told["verdict"] == "unsupported" or outcome.verdict == "pass":
        return played
    # An unsupported construct decides the verdict; otherwise the first line that differs does.
    if told["verdict"] == "fail" and outcome.verdict == "fail" and outcome.line > told["line"]:
        return played
    if outcome.verdict == "unsupported":
        return replace(
            played,
            verdict="unsupported",
            line=outcome.line,
            expected=None,
            actual=None,
            unsupported=outcome.message,
        )
    return replace(played, verdict="fail", line=outcome.line, expected=outcome.message, actual="it does not hold")
