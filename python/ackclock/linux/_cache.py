"""Files kept between runs: sources, build trees, kernels, the guest program.

    <cache>/ackclock/linux/sources/       archives as downloaded
    <cache>/ackclock/linux/tree-<key>/    a patched, configured, built tree, for quick rebuilds with other controllers
    <cache>/ackclock/linux/kernel-<key>/  the kernel, its config, kernel.json; present only if complete
    <cache>/ackclock/linux/guest-<key>    the guest program
    <cache>/ackclock/linux/current        name of the kernel that runs use by default
    <cache>/ackclock/linux/patched-<key>/ a copy of a tree, with the user's patches
    <cache>/ackclock/linux/followed-<key>/ a built copy of the user's own tree; the key is made from its path
    <cache>/ackclock/linux/names/NAME     kernel to which the user gave this name
    <cache>/ackclock/linux/ours-<key>/    our own sources from the wheel, and Cargo's build products

<cache> is $XDG_CACHE_HOME, else ~/.cache. Keys are hashes of all inputs of an item.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.errors import InputError, UnavailableError, one_of, quote

__all__ = ["Kernel", "folder", "guest_path", "hash_of", "installed", "repository"]

CHOSEN = "ACKCLOCK_KERNEL"
"""Environment variable that names the kernel to run; if empty, the current one."""

CHECKOUT = Path(__file__).resolve().parents[3] / "linux"
"""Folder `linux/` of a checkout."""

SOURCES = Path(__file__).with_name("sources.tar.xz")
"""Our sources packed in a wheel, written by `tools/linux_sources.py`."""

BUILD_IT = "run `ackclock linux build`, which needs what `ackclock doctor` lists"


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """A kernel in the cache.

    Parameters
    ----------
    path
        Executable of the kernel.
    about
        Contents of `kernel.json`: release, source, config (hash), patches (name -> hash), controllers, seccomp.
    """

    path: Path
    about: Mapping[str, Any]

    @property
    def release(self) -> str:
        """Version, e.g. "7.3.4"."""
        return str(self.about["release"])

    @property
    def controllers(self) -> tuple[str, ...]:
        """Names of the built-in congestion controllers."""
        return tuple(self.about["controllers"])


def folder() -> Path:
    """Return the cache's root folder; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "ackclock" / "linux"


def repository() -> Path:
    """Return our folder `linux/` with patches, configuration, controllers and guest program; the crates are beside
    it.

    A checkout uses its own folder. A wheel contains the packed sources, which are unpacked into the cache.

    Raises
    ------
    UnavailableError
        If this installation has no such folder.
    """
    if (CHECKOUT / "uml.config").is_file():
        return CHECKOUT
    if not SOURCES.is_file():
        raise UnavailableError(
            "the linux backend needs the sources of ackclock (the kernel's patches, the guest program), which this "
            "installation lacks; allowed: a wheel, which has them packed, or an installation made by `make setup`"
        )
    return _unpacked(SOURCES) / "linux"


def _unpacked(archive: Path) -> Path:
    """Unpack the archive into the cache; the finished folder is moved into place in one step."""
    place = folder() / f"ours-{hash_of([archive.read_bytes()])}"
    if place.is_dir():
        return place
    with tempfile.TemporaryDirectory(prefix=".ours-", dir=writable()) as made:
        with tarfile.open(archive) as packed:
            packed.extractall(made, filter="data")
        with suppress(OSError):  # another process got there first
            os.rename(made, place)
            os.mkdir(made)  # the context manager removes this folder
    return place


def hash_of(parts: Iterable[bytes]) -> str:
    """Return the cache key of an item made from these parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()[:16]


def check_name(name: str) -> None:
    """Refuse a name that is not valid for a kernel."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", name):
        raise InputError(f"--name: found {quote(name)}; allowed: up to 64 of a-z, 0-9, _, - and .")


def set_name(name: str, kernel: str) -> None:
    """Give a kernel a name by which runs can select it."""
    names = folder() / "names"
    names.mkdir(exist_ok=True)
    part = names / f".{name}-{os.getpid()}"
    part.write_text(kernel + "\n", encoding="utf-8")
    part.replace(names / name)


def use(name: str) -> None:
    """Make this process and its children use the kernel with this name from now on.

    Raises
    ------
    InputError
        If there is no such kernel.
    """
    check_known(name)
    os.environ[CHOSEN] = name


def check_known(name: str) -> None:
    """Refuse a name that does not belong to a kernel.

    Raises
    ------
    InputError
        If there is no such kernel.
    """
    known = sorted(file.name for file in (folder() / "names").glob("[!.]*"))
    if name not in known:
        allowed = one_of(name, known) if known else "none yet, `ackclock linux build --name NAME` makes one"
        raise InputError(f"--kernel: found {quote(name)}; allowed: {allowed}")


def installed(name: str | None = None) -> Kernel:
    """Return the kernel with this name, or the one that runs use by default.

    Raises
    ------
    UnavailableError
        If no such kernel is built.
    """
    here = folder()
    chosen = name or os.environ.get(CHOSEN)
    which = here / "names" / chosen if chosen else here / "current"
    try:
        place = here / which.read_text(encoding="utf-8").strip()
        about = json.loads((place / "kernel.json").read_bytes())
    except OSError:
        raise UnavailableError(f"no Linux kernel for the linux backend; {BUILD_IT}") from None
    except ValueError as error:
        raise UnavailableError(f"{here / 'current'}: found no kernel ({error}); {BUILD_IT}") from None
    kernel = Kernel(path=place / "linux", about=about)
    if not os.access(kernel.path, os.X_OK):
        raise UnavailableError(f"{kernel.path}: found no executable file; {BUILD_IT}")
    return kernel


def guest_key() -> str:
    """Return the hash of the sources of the guest program and its crates."""
    linux = repository()
    files = [linux.parent / "Cargo.lock"]
    for root in (
        linux / "guest",
        *(linux.parent / "crates" / name for name in ("cc", "core", "net", "pcc", "schema", "script", "sim", "tcp")),
    ):
        files += sorted([*root.glob("src/**/*.rs"), root / "Cargo.toml"])
    return hash_of(part for file in files for part in (str(file.relative_to(linux.parent)).encode(), file.read_bytes()))


def guest_path() -> Path:
    """Return the path of the guest program built from the current sources.

    Raises
    ------
    UnavailableError
        If the program is not built, or was built from other sources.
    """
    place = folder() / f"guest-{guest_key()}"
    if not place.is_file():
        raise UnavailableError(f"the guest program of the linux backend is not built of these sources; {BUILD_IT}")
    return place


def check_sources(kernel: Kernel, *, patches: bool = False) -> None:
    """Refuse a kernel built with different versions of our modules than those of this installation. The guest program
    depends on them; with a mismatch, packets might never arrive.

    Parameters
    ----------
    kernel
        The kernel.
    patches
        Whether to compare our patches, too, and to require all of them.

    Raises
    ------
    UnavailableError
        If a file differs.
    """
    linux = repository()
    known: dict[str, str] = kernel.about.get("files", {})
    differ = [
        file.name
        for file in sorted((linux / "modules").glob("*.[ch]"))
        if known.get(file.name, own := hash_of([file.read_bytes()])) != own
    ]
    built: dict[str, str] = kernel.about.get("patches", {})
    if patches and built:
        every = sorted((linux / "patches").glob("*.patch"))
        differ += [file.name for file in every if built.get(file.name) != hash_of([file.read_bytes()])]
    if differ:
        raise UnavailableError(
            f"{kernel.path}: found a kernel built with another {' and '.join(differ)} than the guest program of this version "
            "works with; allowed: one of the same sources, as `ackclock linux build` builds (with --name for a named one)"
        )


def set_current(name: str) -> None:
    """Make this kernel the one that runs use by default."""
    place = folder() / f".current-{os.getpid()}"
    place.write_text(name + "\n", encoding="utf-8")
    place.replace(folder() / "current")


def writable() -> Path:
    """Return the cache folder, created if absent.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    here = folder()
    try:
        here.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{here}: found {(error.strerror or str(error)).lower()}; allowed: a folder that can be written "
            "(XDG_CACHE_HOME says where)"
        ) from None
    return here


def hash_file(parts: Iterable[bytes]) -> str:
    """Return the full SHA-256 of parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()
