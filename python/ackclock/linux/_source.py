"""Source of the kernel: a Debian package `linux-source-*`, or any archive of a kernel tree."""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ackclock import _child
from ackclock.errors import InputError, UnavailableError, quote
from ackclock.linux import _cache

__all__ = ["Source", "find", "looked_at", "unpack"]

SUITES = ("trixie-backports", "bookworm-security", "bookworm")
"""Debian suites that are searched for `linux-source-*`; for a requested package, the newest version is used."""

PINNED = ("linux-source-7.3", "7.3.4-1~bpo13+1")
PINNED_SHA256 = "76df1affb19f24926949369be1d74b60071c963c598ce8780bddd4bbf0fc3bc4"
"""Kernel behind the documentation's numbers: package, version, hash of the archive in the package."""

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
NEEDED_FILES = ("Makefile", "Kbuild", "arch/um/Kconfig", "net/ipv4/tcp_input.c")
NOT_THERE = re.compile(r"Not found in archive|Exiting with failure status due to previous errors")
"""tar's message about a name that is not in the archive."""
ARCHIVES = ".tar.xz, .tar.gz, .tar.bz2 or .tar of a Linux source tree"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A kernel source archive.

    Parameters
    ----------
    archive
        Archive file.
    name
        Name in provenance.
    digest
        SHA-256 of the archive.
    """

    archive: Path
    name: str
    digest: str


def find(wanted: str | None) -> Source:
    """Return the requested archive.

    Parameters
    ----------
    wanted
        Path of an archive, name of a Debian package (its newest version), or None: the kernel of the documentation.

    Raises
    ------
    InputError
        If the file cannot be read, or the package does not exist.
    UnavailableError
        If packages cannot be fetched on this machine.
    """
    if wanted is None:
        return _pinned()
    if not re.fullmatch(r"linux-source-\d+\.\d+", wanted):
        return _archive(Path(wanted), Path(wanted).name)
    return _package(wanted)


def _archive(path: Path, name: str) -> Source:
    try:
        digest = _cache.sha256(path)
    except OSError as error:
        raise InputError(
            f"--source {path}: found {(error.strerror or str(error)).lower()}; allowed: {ARCHIVES}, or the name of a "
            "Debian package, e.g. linux-source-6.1"
        ) from None
    return Source(archive=path, name=name, digest=digest)


class _Apt:
    """Debian's apt with separate package lists, which needs no privileges and leaves the machine's lists untouched."""

    def __init__(self) -> None:
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            raise UnavailableError(
                f"Debian's apt-get and dpkg-deb were not found; allowed: `ackclock linux build --source ARCHIVE`, {ARCHIVES}"
            )
        self.sources = _cache.writable() / "sources"
        apt = self.sources / "apt"
        for sub in ("lists/partial", "archives/partial"):
            (apt / sub).mkdir(parents=True, exist_ok=True)
        signed = f"[signed-by={KEYRING}] " if Path(KEYRING).exists() else ""
        (apt / "sources.list").write_text(
            "".join(
                f"deb {signed}{MIRROR}{'-security' if suite.endswith('-security') else ''} {suite} main\n"
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
        self._environment = _child.environment(APT_CONFIG=str(apt / "apt.conf"), LC_ALL="C")

    def call(self, *command: str, cwd: Path | None = None) -> str:
        """Return the output of an apt command."""
        done = _child.run(command, env=self._environment, cwd=cwd or self.sources)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise UnavailableError(
                f"{' '.join(command[:4])}: {lines[-1][-200:]}; allowed: a machine that reaches {MIRROR}, or --source ARCHIVE"
            )
        said: str = done.stdout
        return said

    def kept(self, package: str, version: str) -> Path:
        """Return the location of a fetched package's archive."""
        return self.sources / f"{package}_{version}.tar.xz".replace(":", "%3a").replace("~", "-")

    def versions(self, package: str) -> list[str]:
        """Return the versions of a package in the suites, newest first."""
        return re.findall(r"^Version: (\S+)", self.call("apt-cache", "show", package), re.MULTILINE)

    def fetch(self, package: str, version: str) -> Path:
        """Return the archive in a package."""
        archive = self.kept(package, version)
        if archive.exists():
            return archive
        with tempfile.TemporaryDirectory(dir=self.sources) as folder:
            place = Path(folder)
            self.call("apt-get", "-qq", "download", f"{package}={version}", cwd=place)
            packages = list(place.glob("*.deb"))
            if not packages:
                raise UnavailableError(f"apt-get download {package}={version}: no file")
            self.call("dpkg-deb", "-x", str(packages[0]), f"{place}/x")
            found = sorted(place.glob("x/usr/src/linux-source-*.tar.*"))
            if not found:
                raise UnavailableError(
                    f"{packages[0].name}: found no archive of a kernel in it; allowed: --source ARCHIVE"
                )
            found[0].replace(archive)
        return archive


def _pinned() -> Source:
    """Return the kernel used in the documentation, or report that it is not available."""
    package, version = PINNED
    name = f"{package}_{version}"
    apt = _Apt()
    if not apt.kept(package, version).exists():
        apt.call("apt-get", "-qq", "update")
        known = apt.versions(package) if package in _packages(apt) else []
        if version not in known:
            others = f"--source {package} ({known[0]}), or " if known else ""
            raise UnavailableError(
                f"{name}, the kernel whose numbers the documentation prints, is not in Debian's archive any more; allowed: "
                f"{others}--source with its archive, SHA-256 {PINNED_SHA256} (snapshot.debian.org keeps old packages)"
            )
    source = _archive(apt.fetch(package, version), name)
    if source.digest != PINNED_SHA256:
        raise UnavailableError(
            f"{source.archive}: found SHA-256 {source.digest}; allowed: {PINNED_SHA256} for {name}, or --source with this file"
        )
    return source


def _packages(apt: _Apt) -> list[str]:
    listed = apt.call("apt-cache", "search", "--names-only", r"^linux-source-[0-9.]+$")
    return sorted(
        {line.split()[0] for line in listed.splitlines()},
        key=lambda name: [int(part) for part in name.removeprefix("linux-source-").split(".")],
    )


def _package(wanted: str) -> Source:
    """Return the newest version of a package."""
    apt = _Apt()
    try:
        apt.call("apt-get", "-qq", "update")
    except UnavailableError:
        # Without network access, an archive fetched earlier is used.
        kept = max(apt.sources.glob(f"{wanted}_*.tar.xz"), key=_version, default=None)
        if kept is None:
            raise
        return _archive(kept, kept.name.removesuffix(".tar.xz"))
    known = _packages(apt)
    if wanted not in known:
        raise InputError(f"--source: found {quote(wanted)}; allowed: {', '.join(known) or 'an archive'}")
    version = apt.versions(wanted)[0]
    return _archive(apt.fetch(wanted, version), f"{wanted}_{version}")


def _version(archive: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", archive.name)]


def looked_at(source: Source, place: Path, parts: Sequence[str]) -> None:
    """Extract a few files from an archive into the new folder `place`. This takes seconds; the whole archive would
    take a minute and 1.5 GB.

    Parameters
    ----------
    source
        Archive to read.
    place
        Folder for them.
    parts
        Patterns for `tar --wildcards`; missing ones are skipped.

    Raises
    ------
    InputError
        If the file is not a kernel archive.
    OSError
        If the folder cannot be written.
    """
    _extract(source, place, ["--wildcards", *(f"*/{part}" for part in parts)])


def unpack(source: Source, place: Path) -> None:
    """Unpack into the new folder `place`.

    Raises
    ------
    InputError
        If the file is not a kernel archive.
    OSError
        If the folder cannot be written.
    """
    _extract(source, place, [])


def _extract(source: Source, place: Path, chosen: Sequence[str]) -> None:
    refused = f"--source {source.archive}: found %s; allowed: {ARCHIVES}"
    if not tarfile.is_tarfile(source.archive):
        raise InputError(refused % "no tar archive")
    place.mkdir()
    archive, into = source.archive.absolute(), place.absolute()
    # tar would treat a name with a colon as a remote file, and start ssh
    command = [
        "tar",
        "-x",
        "--force-local",
        "--no-same-owner",
        "--strip-components=1",
        "-f",
        str(archive),
        "-C",
        str(into),
        *chosen,
    ]
    done = _child.run(command, env=_child.environment(LC_ALL="C"))
    if "No space left on device" in done.stderr:
        raise OSError(28, "No space left on device", str(place))
    missing = [name for name in NEEDED_FILES if not (place / name).is_file()]
    if missing:
        raise InputError(refused % f"no {missing[0]} in it")
    wrong = [line for line in done.stderr.strip().splitlines() if not NOT_THERE.search(line)]
    if done.returncode and wrong:
        raise InputError(refused % f"an archive that tar cannot read ({wrong[0]})")
