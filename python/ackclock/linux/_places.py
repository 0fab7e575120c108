"""Hosts of a live run: where they stand, the paths between them, and their folders."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.errors import InputError, quote

__all__ = ["HOSTS", "Hosts", "check_folder", "check_name", "contents", "hosts_of", "keep"]

HOSTS = ("server", "client")
"""Names of the two hosts that are always there; the forward direction leads from the first to the second."""

MOST_HOSTS = 16
"""Maximum number of hosts: each has a ring of 16 MiB for its capture, in a guest with 1 GiB."""

MOST_PAIRS = 250
"""Maximum number of pairs of hosts, those of the scenario's flows included: addresses and devices of the relay."""

TAKEN = ("base", "localhost")
"""Names that the guest needs itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hosts:
    """Hosts of a run.

    Parameters
    ----------
    names
        Their names, the two of `HOSTS` first.
    sides
        For each, 0 if it stands where paths begin, 1 if it stands where they end.
    pairs
        Numbers of two hosts that reach each other, and the name of the path from the first to the second; None if the
        network is not a graph.
    """

    names: tuple[str, ...]
    sides: tuple[int, ...]
    pairs: tuple[tuple[int, int, str | None], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the entries of the guest's job."""
        return {
            "hosts": [{"name": name, "side": side} for name, side in zip(self.names, self.sides, strict=True)],
            "pairs": [{"ends": [first, second], "path": path} for first, second, path in self.pairs],
        }


def check_name(name: str, where: str) -> None:
    """Refuse a name that is not valid for a host.

    Raises
    ------
    InputError
        If the name is not valid.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", name) or name in TAKEN:
        raise InputError(
            f"{where}: found {quote(name)}; allowed: up to 31 of a-z, 0-9 and -, first a letter, not {' or '.join(TAKEN)}"
        )


def side_of(name: str) -> int:
    """Return 0 if a host with this name stands where paths begin, 1 if it stands where they end."""
    return 0 if name.startswith("server") else 1


def hosts_of(
    asked: Sequence[str], scenario: Mapping[str, Any], flows: bool, path: str | None, paths: Mapping[str, str]
) -> Hosts:
    """Return the hosts of a run: each at the servers' end reaches each at the clients' end.

    Parameters
    ----------
    asked
        Names of the programs' hosts, which may repeat.
    scenario
        Plain values of the scenario.
    flows
        Whether its flows run, too.
    path, paths
        Paths as for `live`.

    Raises
    ------
    InputError
        If a name, a path or the number of hosts is not valid.
    """
    names = tuple(dict.fromkeys([*HOSTS, *asked]))
    for name in names:
        check_name(name, "--host")
    if len(names) > MOST_HOSTS:
        raise InputError(f"--host: found {len(names)} hosts; allowed: up to {MOST_HOSTS}, server and client among them")
    ways = [one["name"] for one in scenario["network"].get("paths", [])]
    sides = tuple(side_of(name) for name in names)
    for host in paths:
        if host not in names or side_of(host) == 0:
            far = [name for name in names if side_of(name) == 1]
            raise InputError(f"--path: found the host {quote(host)}; allowed: {', '.join(far)}")
    for way in [path, *paths.values()]:
        if way is not None and way not in ways:
            raise InputError(
                f"--path: found {quote(way)}; allowed: {', '.join(ways) or 'none: the network has no paths'}"
            )
    usual = path or (ways[0] if ways else None)
    ends = [[i for i, side in enumerate(sides) if side == end] for end in (0, 1)]
    pairs = tuple((first, second, paths.get(names[second], usual)) for first in ends[0] for second in ends[1])
    others = len(scenario["flows"]) if flows else 0
    if len(pairs) + others > MOST_PAIRS:
        raise InputError(
            f"--host: found {len(pairs)} pairs of hosts beside {others} of flows; allowed: up to {MOST_PAIRS} together"
        )
    return Hosts(names=names, sides=sides, pairs=pairs)


def contents(left: Path, names: Sequence[str]) -> list[bytes]:
    """Return the names and contents of all files that the programs wrote, in order."""
    files = sorted(place for host in names for place in (left / host).rglob("*") if place.is_file())
    told = [part for file in files for part in (os.fsencode(file.relative_to(left)), file.read_bytes())]
    return [*told, (left / "programs.json").read_bytes()]


def _is_ours(place: Path) -> bool:
    return not place.is_symlink() and (place / f"{place.name}.pcapng").is_file()


def check_folder(out: Path, names: Sequence[str]) -> None:
    """Refuse a folder in which a host's folder would replace files not written by such a run (recognised by its
    capture).

    Raises
    ------
    InputError
        If there are such files.
    """
    for host in names:
        if os.path.lexists(out / host) and not _is_ours(out / host):
            raise InputError(
                f"--out {out}: found {host}, which no live run has written; allowed: a folder without it, or that of a live run"
            )


def keep(left: Path, out: Path, names: Sequence[str]) -> None:
    """Move the hosts' folders into the user's folder, replacing those of an earlier run."""
    earlier = [place for place in out.iterdir() if _is_ours(place)] if (out / "run.json").is_file() else []
    for target in [*earlier, *(out / host for host in names)]:
        shutil.rmtree(target, ignore_errors=True)
    for host in names:
        if (left / host).is_dir():
            shutil.copytree(left / host, out / host, symlinks=True)
