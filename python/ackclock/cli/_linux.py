"""`ackclock linux build` and `ackclock doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ackclock.cli import _terminal


def build(
    *,
    source: str | None,
    tree: Path | None,
    controllers: Sequence[Path],
    patches: Sequence[Path],
    name: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Build the kernel and say what it is."""
    from ackclock import linux

    with _terminal.progress() as progress:
        kernel = linux.build(
            source=source,
            tree=tree,
            controllers=controllers,
            patches=patches,
            name=name,
            jobs=jobs or _terminal.cpus(),
            progress=progress,
        )
    if as_json:
        _terminal.show_json({"path": str(kernel.path), **kernel.about})
        return
    _terminal.say(f"Linux {kernel.release} ({kernel.about['source']}): {kernel.path}")
    _terminal.say(f"controllers: {', '.join(kernel.controllers)}")


def doctor(*, packages: bool, as_json: bool) -> int:
    """Say what is missing; nothing is missing without the linux backend but that."""
    from ackclock import linux

    found = linux.missing()
    if packages:
        found = [finding for finding in found if finding.package]
    if as_json:
        _terminal.show_json([{"needed": f.needed, "missing": f.what, "package": f.package} for f in found])
    elif packages:
        for finding in found:
            _terminal.say(finding.package or "")
    else:
        for finding in found:
            _terminal.say(f"to {finding.needed} the linux backend: {finding.what}")
        if not found:
            kernel = linux.installed()
            _terminal.say(f"nothing is missing; the linux backend runs Linux {kernel.release}")
    return 3 if found else 0
