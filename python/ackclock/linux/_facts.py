"""Kernel features: read from the source before the build, and queried from the running kernel.

No feature is decided by a version number, because distributions backport changes; only kernels before 6.1 are excluded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.errors import InputError

__all__ = ["FACTS_FILE", "PARTS", "Has", "concerns", "header", "lacks", "oldest", "release"]

OLDEST = (6, 1)
"""Oldest version accepted."""

FACTS_FILE = "ackclock_tree.h"
"""Header beside our modules, listing the optional tree features they use."""

PARTS = (
    "Makefile", "Kbuild", "Kconfig*", "arch/um/*", "arch/x86/um/*", "include/net/tcp.h", "include/linux/hrtimer.h", "include/linux/netdevice.h",
    "include/trace/events/tcp.h", "net/ipv4/sysctl_net_ipv4.c", "net/ipv4/tcp_input.c", "fs/hostfs/*",
)  # fmt: skip
"""Files read from an archive before it is unpacked."""

_FACTS = {
    "HAS_HRTIMER_SETUP": ("include/linux/hrtimer.h", r"\bhrtimer_setup\("),
    "HAS_LLTX": ("include/linux/netdevice.h", r"\blltx\b"),
    "HAS_UPDATE_PACING_RATE": ("include/net/tcp.h", r"\btcp_update_pacing_rate\("),
    "HAS_TX_START": ("include/net/tcp.h", r"\(\*cwnd_event_tx_start\)"),
    "CONTROL_HAS_FLAG": ("include/net/tcp.h", r"\(\*cong_control\)\([^;]*\bint flag\b"),
}
"""Macro -> file and pattern for a kernel feature that our modules test for."""

_LACKING = {
    "the queue dualpi2": ("net/sched/Kconfig", r"^config NET_SCH_DUALPI2\b"),
    "accurate ECN (stack.ecn accecn, stack.accecn_option)": ("net/ipv4/sysctl_net_ipv4.c", r"\"tcp_ecn_option\""),
    "the tracepoint tcp_rcvbuf_grow (how the receive buffer grew)": (
        "include/trace/events/tcp.h",
        r"TRACE_EVENT\(tcp_rcvbuf_grow\b",
    ),
}
"""Feature that a source may lack, in words -> file and pattern that identify it."""


def _found(tree: Path, file: str, pattern: str) -> bool:
    try:
        text = (tree / file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(pattern, text, re.MULTILINE) is not None


def concerns(tree: Path, patch: bytes) -> bool:
    """Return whether one of our patches applies to this tree: it has no line "Where: FILE has TEXT", or the line
    holds.
    """
    wanted = re.search(rb"^Where: (\S+) has (.+)$", patch, re.MULTILINE)
    return wanted is None or _found(tree, wanted[1].decode(), re.escape(wanted[2].decode()))


def header(tree: Path) -> bytes:
    """Return the header that states which optional features used by our modules a tree has."""
    lines = ["/* What this tree has. Made by ackclock. */", "#pragma once"]
    lines += [f"#define {name} 1" for name, (file, pattern) in _FACTS.items() if _found(tree, file, pattern)]
    return ("\n".join(lines) + "\n").encode()


def lacks(tree: Path, config: Path) -> list[str]:
    """Return, in words, the features missing from a kernel built from this source.

    Parameters
    ----------
    tree
        Tree, or the part of it with the files in `PARTS`.
    config
        Our configuration fragment: an option that no Kconfig file defines also counts as lacking.
    """
    said = [what for what, (file, pattern) in _LACKING.items() if not _found(tree, file, pattern)]
    known = set()
    for file in tree.rglob("Kconfig*"):
        text = file.read_text(encoding="utf-8", errors="replace")
        known.update(re.findall(r"^\s*(?:menu)?config (\w+)[ \t]*$", text, re.MULTILINE))
    for line in config.read_text(encoding="utf-8").splitlines():
        name, _, _ = line.removeprefix("CONFIG_").partition("=")
        if line.startswith("CONFIG_") and not line.endswith("# optional") and name not in known:
            said.append(f"the option CONFIG_{name}")
    return said


def release(tree: Path) -> str:
    """Return the release from the makefile, e.g. "6.1.192"; "" if it is not a kernel's makefile."""
    try:
        text = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return ".".join(re.findall(r"^(?:VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)", text, re.MULTILINE))


def oldest(where: str, tree: Path) -> None:
    """Refuse a tree that is too old.

    Raises
    ------
    InputError
        If the tree is too old, or has no version.
    """
    found = release(tree)
    if not found:
        raise InputError(f"{where}: found a Makefile without a version of Linux; allowed: Linux 6.1 or later")
    if tuple(int(part) for part in found.split("."))[:2] < OLDEST:
        raise InputError(f"{where}: found Linux {found}; allowed: Linux {'.'.join(map(str, OLDEST))} or later")


@dataclass(frozen=True, kw_only=True, slots=True)
class Has:
    """Features reported by a built kernel.

    Parameters
    ----------
    release
        Version of the kernel.
    controllers
        Names of the congestion controllers.
    queues
        Kinds of its queueing disciplines; None: unknown, so every request is tried.
    sysctls
        Names below /proc/sys/net/ipv4; None: unknown.
    accecn
        Whether `tcp_ecn` accepts 3.
    """

    release: str
    controllers: tuple[str, ...]
    queues: frozenset[str] | None = None
    sysctls: frozenset[str] | None = None
    accecn: bool = True

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Has:
        """Return the features listed in `kernel.json`."""
        has = about.get("has", {})
        return cls(
            release=str(about["release"]),
            controllers=tuple(about["controllers"]),
            queues=frozenset(has["queues"]) if "queues" in has else None,
            sysctls=frozenset(has["sysctls"]) if "sysctls" in has else None,
            accecn=bool(has.get("accecn", True)),
        )

    @property
    def name(self) -> str:
        """The kernel's name in messages."""
        return f"Linux {self.release}"

    def is_of(self, version: str) -> bool:
        """Return whether the kernel has this version, such as "7.3"."""
        return re.findall(r"\d+", self.release)[:2] == version.split(".")

    def queue(self, kind: str) -> bool:
        """Return whether the kernel provides the queueing discipline with this kernel name."""
        return self.queues is None or kind in self.queues or kind in ("bfifo", "pfifo", "pfifo_fast", "noqueue")

    def sets(self, name: str, value: str) -> bool:
        """Return whether the kernel has a setting below /proc/sys that accepts the value."""
        short = name.removeprefix("net/ipv4/")
        if self.sysctls is not None and short != name and short not in self.sysctls:
            return False
        return self.accecn or short != "tcp_ecn" or int(value) < 3
