"""From an archive to a kernel in the cache: unpack, patch, configure, make; and the guest program beside it."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ackclock.errors import AckclockError, InputError, UnavailableError
from ackclock.linux import _cache, _guest, _source
from ackclock.linux._cache import Kernel

__all__ = ["build"]

Progress = Callable[[str, float], None]

STEPS = 1300
"""Lines that a full build prints, roughly: for the bar only."""

GUESTS = 4
"""Guest programs that are kept: source trees side by side share the cache."""

OURS = "net/ipv4/ackclock"
"""Folder of the tree for controllers: ours and the user's."""


IDENTITY = {
    "KBUILD_BUILD_TIMESTAMP": "0",
    "KBUILD_BUILD_USER": "ackclock",
    "KBUILD_BUILD_HOST": "ackclock",
    "KBUILD_BUILD_VERSION": "1",
}
"""What a kernel says of its own making, the number of the build included: it is mixed into its randomness."""


def build(
    *,
    source: str | None = None,
    controllers: Sequence[Path] = (),
    jobs: int = 1,
    progress: Progress = lambda _text, _done: None,
) -> Kernel:
    """Build kernel and guest program, or find them in the cache.

    Parameters
    ----------
    source
        Archive of a kernel tree or name of a Debian package (its newest version); None: the kernel of the documentation.
    controllers
        C files with a `tcp_congestion_ops` each, to be built in beside ours.
    jobs
        Processes of `make`.
    progress
        Called with a text and the share done.

    Returns
    -------
    Kernel
        Which runs use from now on.

    Raises
    ------
    InputError
        If the archive is no kernel, or a controller cannot be read or compiled.
    UnavailableError
        If something is missing on this machine, or the disk is full.
    """
    linux = _cache.repository()
    here = _cache.writable()
    _need_tools()
    with _one_at_a_time(here), _explained(here):
        progress("source", 0.0)
        found = _source.find(source)
        patches = sorted((linux / "patches").glob("*.patch"))
        config = linux / "uml.config"
        ours = sorted((linux / "modules").glob("*.[ch]"))
        identity = repr(sorted(IDENTITY.items())).encode()
        parts = (identity, config.read_bytes(), *(p.read_bytes() for p in patches))
        tree_key = _cache.hash_of([found.digest.encode(), *parts])
        extra = _read_controllers(ours, controllers)
        progress("guest program", 0.02)
        _build_guest(linux, jobs)
        key = _cache.hash_of([tree_key.encode(), *(part for name, text in extra for part in (name.encode(), text))])
        place = here / f"kernel-{key}"
        if not (place / "kernel.json").is_file():
            tree = here / f"tree-{tree_key}"
            if not tree.is_dir():
                progress(f"unpacking {found.name}", 0.04)
                _prepare(found, tree, patches, config)
            _put_controllers(tree, extra)
            _make(tree, jobs, progress)
            about: dict[str, object] = {
                "source": found.name,
                "source_sha256": found.digest,
                "config": _cache.hash_of([config.read_bytes()]),
                "patches": {p.name: _cache.hash_of([p.read_bytes()]) for p in patches},
                "files": {name: _cache.hash_of([text]) for name, text in extra},
            }
            _install(tree, place, about)
        _cache.set_current(place.name)
        progress("done", 1.0)
    return _cache.installed()


def _need_tools() -> None:
    from ackclock.linux._doctor import missing

    for finding in missing():
        if finding.needed == "build":
            raise UnavailableError(finding.what)


@contextmanager
def _one_at_a_time(here: Path) -> Iterator[None]:
    """Two builds would write into one tree."""
    import fcntl

    with (here / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UnavailableError(f"{here}: another `ackclock linux build` is running there") from None
        yield


@contextmanager
def _explained(here: Path) -> Iterator[None]:
    """Errors of the file system as one line."""
    try:
        yield
    except OSError as error:
        if isinstance(error, AckclockError):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            free = shutil.disk_usage(here).free / 2**30
            raise UnavailableError(
                f"{error.filename or here}: no room left on the disk ({free:.1f} GiB free); a build takes 4 GiB. "
                "Nothing was installed"
            ) from None
        raise InputError(f"{error.filename or here}: {(error.strerror or str(error)).lower()}") from None


def _read_controllers(ours: Sequence[Path], files: Sequence[Path]) -> list[tuple[str, bytes]]:
    read = {path.name: path.read_bytes() for path in ours}
    for path in files:
        allowed = "a C file of a controller (`struct tcp_congestion_ops`), of a name of its own"
        if path.suffix not in (".c", ".h") or not re.fullmatch(r"[a-z0-9_]+", path.stem):
            raise InputError(f"--controller {path}: found another kind of name; allowed: {allowed}, e.g. my_cc.c")
        if path.name in read:
            raise InputError(f"--controller {path}: found the name a second time; allowed: {allowed}")
        try:
            read[path.name] = path.read_bytes()
        except OSError as error:
            found = (error.strerror or str(error)).lower()
            raise InputError(f"--controller {path}: found {found}; allowed: {allowed}") from None
        if path.suffix == ".c" and b"tcp_congestion_ops" not in read[path.name]:
            raise InputError(f"--controller {path}: found no tcp_congestion_ops; allowed: {allowed}")
    return sorted(read.items())


def _prepare(found: _source.Source, tree: Path, patches: Sequence[Path], config: Path) -> None:
    """Unpack, patch and configure beside the place, then move there: a tree is whole or absent."""
    part = Path(tempfile.mkdtemp(prefix=".tree-", dir=tree.parent))
    try:
        fresh = part / "tree"
        _source.unpack(found, fresh)
        for patch in patches:
            done = _call(["patch", "-s", "-p1", "-i", str(patch)], fresh)
            if done.returncode:
                said = (done.stdout or done.stderr).strip().splitlines()
                _full_disk("\n".join(said), fresh)
                raise InputError(
                    f"--source {found.archive}: found a tree that {patch.name} does not fit ({said[0] if said else ''}); "
                    "allowed: Linux 6.1 or later"
                )
        ipv4 = fresh / "net/ipv4/Makefile"
        ipv4.write_text(ipv4.read_text(encoding="utf-8") + "\nobj-y += ackclock/\n", encoding="utf-8")
        _put_controllers(fresh, [])
        done = _call(
            ["make", "-s", "ARCH=um", f"KCONFIG_ALLCONFIG={_clean_config(config, part)}", "allnoconfig"], fresh
        )
        if done.returncode:
            _full_disk(done.stderr, fresh)
            raise UnavailableError(f"configuring {found.name}: {_first_error(done.stderr)}")
        made = set((fresh / ".config").read_text(encoding="utf-8").splitlines())
        for line in config.read_text(encoding="utf-8").splitlines():
            wanted, _, remark = line.partition(" # ")
            if wanted and not wanted.startswith("#") and wanted not in made and remark != "optional":
                raise InputError(
                    f"--source {found.archive}: found a kernel that does not accept {wanted}; allowed: Linux 6.1 or later"
                )
        fresh.replace(tree)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _clean_config(config: Path, part: Path) -> Path:
    """The fragment without its remarks."""
    lines = [line.partition(" # ")[0] for line in config.read_text(encoding="utf-8").splitlines()]
    place = part / "allno.config"
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place


def _put_controllers(tree: Path, files: Sequence[tuple[str, bytes]]) -> None:
    """Make the folder hold exactly these files; what is unchanged keeps its date, so that it is not compiled again."""
    place = tree / OURS
    place.mkdir(exist_ok=True)
    objects = [name.removesuffix(".c") + ".o" for name, _ in files if name.endswith(".c")]
    wanted = dict(files) | {"Makefile": f"obj-y := {' '.join(objects)}\n".encode()}
    for old in [*place.glob("*.[ch]"), *place.glob("*.o")]:
        if old.name not in wanted and old.with_suffix(".c").name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        target = place / name
        if not target.is_file() or target.read_bytes() != text:
            target.write_bytes(text)


def _make(tree: Path, jobs: int, progress: Progress) -> None:
    command = ["make", "ARCH=um", f"-j{jobs}", "linux"]
    log = tree / "ackclock-build.log"
    lines = 0
    with (
        log.open("w", encoding="utf-8") as sink,
        subprocess.Popen(
            command, cwd=tree, env=_environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            for line in process.stdout or ():
                sink.write(line)
                lines += 1
                progress(f"building: {line.strip()[:60]}", min(0.1 + 0.88 * lines / STEPS, 0.98))
        except BaseException:
            process.kill()
            raise
    if process.returncode == 0:
        return
    said = log.read_text(encoding="utf-8", errors="replace")
    _full_disk(said, tree)
    ours = re.search(rf"^{OURS}/(\S+?):(\d+):\S* (?:fatal )?error: (.*)$", said, re.MULTILINE)
    if ours:
        raise InputError(
            f"--controller {ours[1]}, line {ours[2]}: {ours[3]}; allowed: a file that compiles in this kernel"
        )
    raise UnavailableError(f"the kernel does not build: {_first_error(said)} (all of it: {log})")


def _install(tree: Path, place: Path, about: dict[str, object]) -> None:
    """Put kernel, config and description in place at once."""
    part = Path(tempfile.mkdtemp(prefix=".kernel-", dir=place.parent))
    try:
        done = _call(["strip", "-o", str(part / "linux"), str(tree / "linux")], tree)
        if done.returncode:
            raise OSError(errno.ENOSPC, done.stderr.strip(), str(place))
        shutil.copy(tree / ".config", part / "config")
        kernel = part / "linux"
        release = _call([str(kernel), "--version"], part).stdout.strip()
        about |= {
            "release": release,
            "sha256": _cache.hash_of([kernel.read_bytes()]),
            "seccomp": "seccomp=" in _call([str(kernel), "--help"], part).stdout,
        }
        about["controllers"] = _controllers(Kernel(path=kernel, about=about))
        (part / "kernel.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        part.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
        part.replace(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _controllers(kernel: Kernel) -> list[str]:
    """Names of the controllers that are built in: the kernel is started and asked."""
    with _guest.ran({}, 1, kernel=kernel, cpu=min(os.sched_getaffinity(0)), wall_limit_s=60) as (out, _):
        report = json.loads((out / "report.json").read_bytes())
    return sorted(report["controllers"])


def _build_guest(linux: Path, jobs: int) -> None:
    """Compile the guest program, linked statically: the guest has no libraries."""
    place = _cache.folder() / f"guest-{_cache.guest_key()}"
    if place.is_file():
        return
    target = "x86_64-unknown-linux-gnu"
    # of this checkout: Cargo takes the crates of two checkouts for the same, and would mix what it made of them
    made_in = linux.parent / "target" / "linux"
    command = [
        "cargo", "build", "--quiet", "--locked", "--profile", "guest", "-p", "ackclock-guest", "--target", target,
        "-j", str(jobs), "--target-dir", str(made_in),
    ]  # fmt: skip
    environment = {**os.environ, "RUSTFLAGS": "-C target-feature=+crt-static"}
    done = subprocess.run(command, cwd=linux.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        _full_disk(done.stderr, place)
        raise UnavailableError(f"the guest program does not build: {_first_error(done.stderr)}")
    made = made_in / target / "guest" / "ackclock-guest"
    part = place.with_name(f".{place.name}")
    shutil.copy(made, part)
    part.replace(place)
    built = [old for old in _cache.folder().glob("guest-*") if old.is_file()]
    for old in sorted(built, key=lambda file: file.stat().st_mtime)[:-GUESTS]:
        old.unlink()


def _call(command: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=_environment(), capture_output=True, text=True, check=False)


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C", **IDENTITY}


def _full_disk(said: str, place: Path) -> None:
    if "No space left on device" in said or "Disk quota exceeded" in said:
        raise OSError(errno.ENOSPC, "No space left on device", str(place))


def _first_error(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "rror" in line), lines[-1] if lines else "no message")[:300]
