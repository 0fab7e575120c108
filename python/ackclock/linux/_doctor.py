"""Checks which requirements of the linux backend this machine does not meet."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ackclock import _child
from ackclock.errors import AckclockError
from ackclock.linux import _cache

__all__ = ["Finding", "missing"]

DISK = 4 * 2**30
"""Maximum disk space for a build, bytes: archive, tree with object files, kernel."""

TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "patch": "patch",
    "tar": "tar",
    "xz": "xz-utils",
}
"""Program -> Debian package. Rust is omitted because Debian's version is too old."""

HEADERS = {"/usr/include/gelf.h": "libelf-dev", "/usr/include/openssl/evp.h": "libssl-dev"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A requirement that the machine does not meet.

    Parameters
    ----------
    what
        Description in one line.
    needed
        "build" or "run".
    package
        Debian package that provides it; None: no package does.
    """

    what: str
    needed: str
    package: str | None = None


def missing(*, build: bool = True) -> list[Finding]:
    """Return all unmet requirements, in the best installation order.

    Parameters
    ----------
    build
        Whether to include requirements of `ackclock linux build` alone.
    """
    out: list[Finding] = []
    if sys.platform != "linux" or platform.machine() != "x86_64":
        here = f"{platform.system()} on {platform.machine()}"
        return [Finding(what=f"the linux backend runs on Linux on x86_64; found {here}", needed="run")]
    if build:
        packages = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
        if shutil.which("gcc") is not None:
            packages += [package for header, package in HEADERS.items() if not _has_header(header)]
        out += [_build(f"{package} is not installed: apt install {package}", package) for package in packages]
        try:
            _cache.repository()
        except AckclockError as error:
            out.append(_build(str(error)))
        if shutil.which("cargo") is None:
            out.append(_build("Rust is not installed: https://rustup.rs"))
        free = shutil.disk_usage(_existing(_cache.folder())).free
        if free < DISK and not _has_kernel():
            out.append(
                _build(f"{_cache.folder()}: {free / 2**30:.1f} GiB are free; a build takes {DISK / 2**30:.0f} GiB")
            )
    runs = [_executable_memory(), _may_confine()]
    try:
        _cache.installed()
        _cache.guest_path()
    except AckclockError as error:
        runs.append(str(error))
    return out + [Finding(what=line, needed="run") for line in runs if line]


def _build(what: str, package: str | None = None) -> Finding:
    return Finding(what=what, needed="build", package=package)


def _has_kernel() -> bool:
    try:
        _cache.installed()
    except AckclockError:
        return False
    return True


def _existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if place.exists())


def _has_header(header: str) -> bool:
    if Path(header).exists():
        return True
    name = header.removeprefix("/usr/include/")
    asked = _child.run(["gcc", "-fsyntax-only", "-x", "c", "-"], input=f"#include <{name}>\n")
    return asked.returncode == 0


def _executable_memory() -> str | None:
    """Return why a file in TMPDIR or /dev/shm cannot be executed from memory, as User-Mode Linux requires; None if it can."""
    import mmap

    place = os.environ.get("TMPDIR") or ("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp")
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.truncate(4096)
            mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        if not os.access(place, os.W_OK | os.X_OK):
            return f"{place}: cannot be written ({why}); set TMPDIR to a folder that can"
        return (
            f"{place}: memory from files there cannot be executed ({why}), which User-Mode Linux needs; "
            "set TMPDIR to a folder without noexec"
        )
    return None


def _may_confine() -> str | None:
    """Return why neither seccomp filters nor tracing of a child works; None if either does."""
    libc = ctypes.CDLL(None, use_errno=True)
    pr_get_seccomp = 21
    if libc.prctl(pr_get_seccomp, 0, 0, 0, 0) >= 0:
        return None
    try:
        traced = Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return "neither seccomp nor ptrace is allowed here, one of which User-Mode Linux needs" if traced == "3" else None
