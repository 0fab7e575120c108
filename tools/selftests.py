"""Play the packet scripts of Linux's own self-tests on both backends: `make selftests`.

The scripts come from the kernel source package fetched by `ackclock linux build`, and are cached next to it: none of
them are part of this project. Exit code 1 if the simulator's verdict on a script that it plays, or a packet that it
sends, differs from the kernel's.
"""

from __future__ import annotations

import collections
import subprocess
import sys
import tempfile
from pathlib import Path

from ackclock import linux
from ackclock.errors import AckclockError, UnavailableError
from ackclock.linux import _cache
from ackclock.script import Compared, find, play_each

FOLDER = "tools/testing/selftests/net/packetdrill"
DEFINES = [
    ("CMSG_LEVEL_IP", "SOL_IP"),
    ("CMSG_TYPE_RECVERR", "IP_RECVERR"),
    ("TFO_COOKIE", "3021b9d889017eeb"),
    ("TFO_COOKIE_ZERO", "b7c12350a90dc8f5"),
]
"""Definitions from the kernel's own runner, for IPv4."""


def scripts() -> Path:
    """Folder with the scripts, unpacked once per source.

    Raises
    ------
    UnavailableError
        If the kernel is missing, or its source is not in the cache.
    """
    about = linux.installed().about
    digest = str(about["source_sha256"])
    place = _cache.folder() / f"selftests-{digest[:16]}"
    if place.is_dir():
        return place
    kept = sorted((_cache.folder() / "sources").glob("*.tar.*"))
    archive = next((path for path in kept if _cache.sha256(path) == digest), None)
    if archive is None:
        raise UnavailableError(f"{about['source']}: its archive is not in the cache; run `ackclock linux build`")
    with tempfile.TemporaryDirectory(dir=_cache.folder()) as folder:
        command = ["tar", "-x", "-f", str(archive), "-C", folder, "--wildcards", f"*/{FOLDER}/*.pkt"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = sorted(Path(folder).glob(f"*/{FOLDER}"))
        if done.returncode or not found:
            raise UnavailableError(f"{archive}: found no {FOLDER} in it")
        found[0].replace(place)
    return place


def main() -> int:
    """Play the scripts, print a line for each, and return the exit code."""
    try:
        told = [r for r in play_each(find([scripts()]), backend="both", defines=DEFINES) if isinstance(r, Compared)]
    except AckclockError as error:
        print(f"selftests: {error}", file=sys.stderr)
        return error.exit_code
    wrong = 0
    for result in told:
        sim, real = result.sim, result.linux
        differs = sim.verdict != "unsupported" and result.difference is not None
        wrong += differs
        why = f"  {sim.unsupported}" if sim.verdict == "unsupported" else ""
        mark = "  <- differs" if differs else ""
        print(f"sim {sim.verdict:<12} linux {real.verdict:<12} {Path(sim.path).name}{mark}{why}")
        if differs:
            print(f"    {result.difference}")
        for name, played in (("sim", sim), ("linux", real)):
            if played.verdict == "fail":
                print(f"    {name}, line {played.line}: expected {played.expected}\n    actual {played.actual}")
            elif name == "linux" and played.verdict == "unsupported":
                print(f"    linux, line {played.line}: {played.unsupported}")
    release = linux.installed().release
    for name, verdicts in (("sim", [r.sim for r in told]), (f"Linux {release}", [r.linux for r in told])):
        counts = collections.Counter(played.verdict for played in verdicts)
        print(f"{name}: " + ", ".join(f"{counts[v]} {v}" for v in ("pass", "fail", "unsupported")))
    print(
        f"{wrong} of {sum(r.sim.verdict != 'unsupported' for r in told)} played by the simulator have another verdict or send another packet"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
