"""Where the kernel's source comes from: a Debian package `linux-source-*`, or any archive of a kernel tree."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ackclock.errors import InputError, UnavailableError, quote
from ackclock.linux import _cache

__all__ = ["Source", "find", "unpack"]

SUITES = ("trixie-backports", "bookworm-security", "bookworm")
"""Suites of Debian in which `linux-source-*` is looked for; the newest version wins."""

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
NEEDED_FILES = ("Makefile", "Kbuild", "arch/um/Kconfig", "net/ipv4/tcp_input.c")
ARCHIVES = ".tar.xz, .tar.gz, .tar.bz2 or .tar of a Linux source tree"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """An archive of a kernel's source.

    Parameters
    ----------
    archive
        The file.
    name
        What it is called in provenance.
    digest
        SHA-256 of the archive.
    """

    archive: Path
    name: str
    digest: str


def find(wanted: str | None) -> Source:
    """The archive that was asked for.

    Parameters
    ----------
    wanted
        Path of an archive, name of a Debian package, or None: the newest package.

    Raises
    ------
    InputError
        If the file cannot be read, or there is no such package.
    UnavailableError
        If packages cannot be fetched here.
    """
    if wanted is not None and not re.fullmatch(r"linux-source-\d+\.\d+", wanted):
        return _archive(Path(wanted), Path(wanted).name)
    return _package(wanted)


def _archive(path: Path, name: str) -> Source:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except OSError as error:
        raise InputError(
            f"--source {path}: found {(error.strerror or str(error)).lower()}; allowed: {ARCHIVES}, or the name of a "
            "Debian package, e.g. linux-source-6.1"
        ) from None
    return Source(archive=path, name=name, digest=digest.hexdigest())


def _package(wanted: str | None) -> Source:
    """Fetch a package with apt, from lists of our own, so that neither rights nor the machine's lists are touched."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise UnavailableError(
            f"Debian's apt-get and dpkg-deb were not found; allowed: `ackclock linux build --source ARCHIVE`, {ARCHIVES}"
        )
    sources = _cache.writable() / "sources"
    apt = sources / "apt"
    for sub in ("lists/partial", "archives/partial"):
        (apt / sub).mkdir(parents=True, exist_ok=True)
    signed = f"[signed-by={KEYRING}] " if Path(KEYRING).exists() else ""
    mirror = "http://deb.debian.org/debian"
    (apt / "sources.list").write_text(
        "".join(
            f"deb {signed}{mirror}{'-security' if suite.endswith('-security') else ''} {suite} main\n"
            for suite in SUITES
        ),
        encoding="utf-8",
    )
    (apt / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{apt}/sources.list";\nDir::Etc::sourceparts "/dev/null";\n'
        f'Dir::State::lists "{apt}/lists";\nDir::Cache "{apt}";\nAcquire::Languages "none";\n'
        'APT::Sandbox::User "";\n',
        encoding="utf-8",
    )
    environment = {**os.environ, "APT_CONFIG": str(apt / "apt.conf"), "LC_ALL": "C"}

    def call(*command: str) -> str:
        done = subprocess.run(command, env=environment, cwd=sources, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise UnavailableError(
                f"{command[0]} {command[1]}: {lines[-1]}; allowed: a machine that reaches {mirror}, or --source ARCHIVE"
            )
        return done.stdout

    try:
        call("apt-get", "-qq", "update")
    except UnavailableError:
        # Without the network, what was fetched before serves again.
        kept = max(sources.glob(f"{wanted or 'linux-source-*'}_*.tar.xz"), key=_version, default=None)
        if kept is None:
            raise
        return _archive(kept, kept.name.removesuffix(".tar.xz"))
    listed = call("apt-cache", "search", "--names-only", r"^linux-source-[0-9.]+$")
    known = sorted(
        {line.split()[0] for line in listed.splitlines()},
        key=lambda name: [int(part) for part in name.removeprefix("linux-source-").split(".")],
    )
    if not known or (wanted is not None and wanted not in known):
        raise InputError(f"--source: found {quote(wanted)}; allowed: {', '.join(known) or 'an archive'}")
    name = wanted or known[-1]
    version = re.search(r"^Version: (\S+)", call("apt-cache", "show", "--no-all-versions", name), re.MULTILINE)
    full = f"{name}_{version[1] if version else 'unknown'}"
    archive = sources / f"{full.replace(':', '%3a').replace('~', '-')}.tar.xz"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=sources) as place:
            call_in = subprocess.run(
                ["apt-get", "-qq", "download", name],
                env=environment, cwd=place, capture_output=True, text=True, check=False,
            )  # fmt: skip
            packages = list(Path(place).glob("*.deb"))
            if call_in.returncode or not packages:
                raise UnavailableError(f"apt-get download {name}: {(call_in.stderr.strip() or 'no file')[-200:]}")
            call("dpkg-deb", "-x", str(packages[0]), f"{place}/x")
            found = sorted(Path(place).glob("x/usr/src/linux-source-*.tar.*"))
            if not found:
                raise UnavailableError(
                    f"{packages[0].name}: found no archive of a kernel in it; allowed: --source ARCHIVE"
                )
            found[0].replace(archive)
    return _archive(archive, full)


def _version(archive: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", archive.name)]


def unpack(source: Source, place: Path) -> None:
    """Unpack into `place`, which is made.

    Raises
    ------
    InputError
        If it is no archive of a kernel.
    OSError
        If it cannot be written.
    """
    refused = f"--source {source.archive}: found %s; allowed: {ARCHIVES}"
    if not tarfile.is_tarfile(source.archive):
        raise InputError(refused % "no tar archive")
    place.mkdir()
    command = ["tar", "-x", "--no-same-owner", "--strip-components=1", "-f", str(source.archive), "-C", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    if "No space left on device" in done.stderr:
        raise OSError(28, "No space left on device", str(place))
    missing = [name for name in NEEDED_FILES if not (place / name).is_file()]
    if missing:
        raise InputError(refused % f"no {missing[0]} in it")
    if done.returncode:
        raise InputError(refused % f"an archive that tar cannot read ({done.stderr.strip().splitlines()[0]})")
