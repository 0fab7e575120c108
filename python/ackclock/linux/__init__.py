"""The real Linux TCP as a backend: a User-Mode Linux kernel that runs a scenario in virtual time.

`build` makes the kernel and the guest program, `missing` lists the tools that the machine lacks for a build, `run`
and `run_batch` return the same tables as the simulator. See docs/how-to/run-in-the-linux-kernel.md.
"""

from __future__ import annotations

from ackclock.linux._build import build
from ackclock.linux._cache import Kernel, check_known, installed, use
from ackclock.linux._doctor import Finding, missing
from ackclock.linux._kept import Kept, kept, remove, remove_unused, unused
from ackclock.linux._live import HOSTS, Live, live
from ackclock.linux._places import check_name as check_host
from ackclock.linux._programs import Ended, Program
from ackclock.linux._run import check, run, run_batch
from ackclock.linux._script import play_script
from ackclock.linux._translate import PACKET_MEMORY, NetworkKind, kernel_controller

__all__ = [
    "HOSTS",
    "PACKET_MEMORY",
    "Ended",
    "Finding",
    "Kept",
    "Kernel",
    "Live",
    "NetworkKind",
    "Program",
    "build",
    "check",
    "check_host",
    "check_known",
    "installed",
    "kept",
    "kernel_controller",
    "live",
    "missing",
    "play_script",
    "remove",
    "remove_unused",
    "run",
    "run_batch",
    "unused",
    "use",
]
