"""Plays packet scripts against the real kernel, one boot per script, so that scripts do not affect each other."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ackclock.linux import _cache, _guest
from ackclock.linux._run import a_cpu

__all__ = ["play_script"]

WALL_LIMIT_S = 60.0
"""Wall-clock time limit, s: a script normally takes a quarter of a second; one that waits forever in virtual time
is killed.
"""

SEED = 1


def play_script(
    text: str,
    *,
    tolerance_us: int | None = None,
    sysctls: Sequence[tuple[str, str]] = (),
    defines: Sequence[tuple[str, str]] = (),
    strict: bool = False,
    cpu: int | None = None,
) -> dict[str, Any]:
    """Play the text of a script in the guest kernel.

    Parameters
    ----------
    text
        The script.
    tolerance_us, sysctls, defines, strict
        See `ackclock.script.play`.
    cpu
        CPU to run on; None: any.

    Returns
    -------
    dict
        Result of the engine's `play_script`: verdict, line, expected, actual, unsupported, blocks, deviation_s, trace;
        or only `invalid` if the text is not a script.

    Raises
    ------
    UnavailableError
        If there is no kernel, or the guest fails.
    """
    kernel = _cache.installed()
    job = {
        "text": text,
        "defines": list(defines),
        "sysctls": list(sysctls),
        "tolerance_us": tolerance_us,
        "strict": strict,
    }
    ipv6 = re.search(r"^--ip_version=ipv6\s", text, re.MULTILINE) is not None
    files = {"script.json": json.dumps(job)}
    where = a_cpu() if cpu is None else cpu
    with _guest.ran(files, SEED, kernel=kernel, cpu=where, wall_limit_s=WALL_LIMIT_S, ipv6=ipv6) as (out, _):
        outcome: dict[str, Any] = json.loads((out / "outcome.json").read_bytes())
    return outcome
