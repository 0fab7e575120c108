"""`ackclock compare` with scenarios that name programs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.cli import _terminal
from ackclock.cli._live import listed, raw, scenario_of
from ackclock.errors import InputError

if TYPE_CHECKING:
    from ackclock.sweep.programs import Arm

__all__ = ["compare", "named"]


def named(*files: Path) -> bool:
    """Return whether any of these scenarios names programs."""
    return any("programs" in raw(file) for file in files)


def compare(
    files: tuple[Path, Path],
    *,
    names: tuple[str, str],
    seeds: int,
    metrics: Sequence[str],
    out: Path | None,
    jobs: int,
    own_code: bool,
    as_json: bool,
    apart: Mapping[str, Any],
) -> None:
    """Run two scenarios with their programs under the same seeds; `apart` are options that are refused here, and whether they were given."""
    from ackclock.cli._sweep import stoppable
    from ackclock.sweep import programs
    from ackclock.sweep.compare import Compared

    for option, given in apart.items():
        if given:
            raise InputError(f"{option}: found it with scenarios that name programs; allowed: without programs")
    arms = [_arm(file, name, own_code) for file, name in zip(files, names, strict=True)]
    if out is not None:
        _terminal.writable_folder(out)
    stop = threading.Event()
    with _terminal.progress() as tell:

        def work() -> Compared:
            return programs.compare(
                arms[0], arms[1], seeds=seeds, metrics=metrics, folder=out, jobs=jobs, stop=stop,
                progress=lambda done, total, found: tell(
                    f"{done:,} of {total:,} runs" + (f", {found:,} found" if found else ""), done / total
                ),
            )  # fmt: skip

        found = stoppable(work, stop)
    if as_json:
        _terminal.show_json(found.to_json())
    else:
        _terminal.show(found.table())


def _arm(file: Path, name: str, own_code: bool) -> Arm:
    from ackclock.sweep.programs import Arm

    listed_here = listed(file, own_code)
    if not listed_here:
        raise InputError(f"{file}: found no programs; allowed: two scenarios with [[programs]], or two without")
    scenario, flows = scenario_of(file, {}, None, {})
    return Arm(name=name, scenario=scenario, programs=tuple(listed_here), flows=flows)
