"""Controllers in C and Rust, compiled with the user's compiler against our interface, and loaded as libraries.
A C file is a Linux congestion-control module (`struct tcp_congestion_ops`):

| file | content |
| --- | --- |
| `include/ackclock_controller.h` | the interface between the engine and any controller in a library |
| `include/ackclock_kernel.h` | the kernel interface for such a module; every header that it includes resolves to this file |
| `ackclock_kernel.c` | hooks of the interface, mapped to the module's operations, and the helpers that modules call |

A Rust file implements the trait of `ackclock_controller.rs` (see `_rust`).

Compiling does not execute the user's code; loading does. Includes of the form `"NAME.h"` are taken from the module's folder. If there is
a `NAME.c` next to such a header, it is compiled as well, and the module may call its functions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from ackclock import _child, _wall
from ackclock._files import has_leave, reads
from ackclock._native import _reasons, _rust, _said
from ackclock._reads import named
from ackclock.errors import InputError, ScenarioError, UnavailableError, quote, shown

__all__ = ["depends", "digest", "files", "is_rust", "listening", "load", "operations"]

HERE = Path(__file__).parent
LARGEST = 2**20
"""Maximum size of a file, bytes."""
SECONDS = 60
"""Maximum compile time for a file, seconds."""
MEMORY = 4 * 2**30
"""Maximum address space of the compiler, bytes."""
FLAGS = (
    "-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv", "-fno-stack-protector", "-U_FORTIFY_SOURCE",
    "-fstack-clash-protection",  # a frame above 4 KiB, which gcc makes by inlining a recursion, must not step over the guard page
    "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types", "-Werror=int-conversion",
)  # fmt: skip
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_ERROR = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<said>.+)$", re.MULTILINE)
_USED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? note: (?:in expansion of|expanded from)", re.MULTILINE)
_UNKNOWN = re.compile(r"undefined (?:reference to|symbol:?) [`'\"]?_?(?P<name>\w+)")
_WORDS = {
    "in_flight": 2, "SK_PACING_NEEDED": 4, "tcp_enter_cwr": 32,
    **dict.fromkeys(("data_segs_out", "segs_out", "total_retrans", "bytes_sent", "bytes_retrans", "lost"), 2),
}  # fmt: skip
"""Identifier found in a file -> state kept for it by the connection, as bits of `ACKCLOCK_NEEDS`."""
_INCBIN = re.compile(r'\.incbin\s+\\?"([^"\\\n]+)')
_READS = re.compile(r"ackclock-reads:[ \t]*([^\s*][^\n*]*)")
_FLAG = re.compile(r"-D[A-Za-z_]\w*(?:\([\w, .]*\))?(?:=[^\s'\"`$;|&<>\\]*)?")
"""Macro definition normally set by a module's own Makefile."""
_FLAGS = re.compile(r"/\*\s*ackclock:((?:\s+-D\S+)+)\s*\*/")
"""Comment in a module that lists such definitions."""
_FORMS = (
    (),
    ("-DACKCLOCK_BARE_CONTROL",),
    ("-DACKCLOCK_BARE_ACKED",),
    ("-DACKCLOCK_BARE_CONTROL", "-DACKCLOCK_BARE_ACKED"),
)
"""Compiler options for operations with signatures that have changed between kernels: newest, before Linux 6.10, before 4.7, both."""
IN_TREE = {"tcp_dctcp.h": "ackclock_dctcp.h"}
"""Headers from the kernel's own folder -> our replacements, used if the module's folder has no file of that name."""
_NAME = re.compile(r"\.name\s*=\s*\"([^\"]+)\"")


@contextmanager
def listening() -> Iterator[Callable[[], list[tuple[float, str]]]]:
    """Collect the lines that C modules print (`printk`) in this thread, each with the simulated time in seconds."""
    with _said.listening() as told:
        yield told


def digest(file: str) -> str:
    """Return the identity of the code, covering the file, its includes from the same folder, our headers and
    helpers, and the compiler's version.

    No compiler is started without the user's permission to run it; the digest then matches no recorded run.

    Raises
    ------
    ScenarioError
        If a file cannot be read, or there is no compiler.
    """
    if is_rust(file):
        return _hash(json.dumps(_rust.digested(file, _bytes(Path(file)))).encode())[:16]
    own = sorted(path for path in HERE.rglob("*") if path.suffix in {".c", ".h"})
    parts = [[path.name, _hash(path.read_bytes())] for path in own]
    parts += [[path.name, _hash(text)] for path, text in sorted(_sources(file).items())]
    version = _compiler(file)[1] if has_leave() else ""
    return _hash(json.dumps([*parts, version, FLAGS]).encode())[:16]


def files(file: str) -> list[Path]:
    """Return the file and its parts: headers included from its folder, and the C files next to those headers."""
    return [Path(file)] if is_rust(file) else list(_sources(file))


def is_rust(file: str) -> bool:
    """Return whether the file is a Rust source."""
    return file.endswith(".rs")


def operations(file: str) -> str:
    """Return the name under which the file registers its controller, found in its text; "" if there is none."""
    found = _NAME.findall(_text(Path(file)))
    return found[-1] if found else ""


@lru_cache(maxsize=64)
def load(file: str, options: str, expected: str) -> Any:
    """Compile and load a file, once for each digest and set of options.

    Parameters
    ----------
    file
        Path of the file.
    options
        Parameters of the module (`module_param`), as JSON.
    expected
        Digest of the code at the time the run was planned.

    Raises
    ------
    InputError
        If the file does not compile, needs features missing from the simulator, or registers no controller.
    UnavailableError
        If the file has changed.
    """
    from ackclock import _engine

    if digest(file) != expected:
        raise UnavailableError(f"{file}: found other code than when the runs were planned; start them again")
    given = json.loads(options)
    folder = None if (file, options, expected) in _prepared else Path(tempfile.mkdtemp(prefix="ackclock-"))
    try:
        library = _prepared[file, options, expected] if folder is None else _built(file, given, folder)
        try:
            with _wall.doing(f"loading {file}"):
                made = _engine.Library(str(library), _lines(file, given), Path(file).name)
            if not is_rust(file):
                _said.remember(library)
            return made
        except ValueError as error:
            raise InputError(f"{file}: {shown(str(error))}") from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


_prepared: dict[tuple[str, str, str], Path] = {}
"""Libraries compiled ahead of their use, by file, options and digest."""


def prepare(file: str, options: str, expected: str, folder: Path, *, apart: bool = False) -> None:
    """Compile a file ahead of `load`, which then needs no compiler. The code is not run.

    Parameters
    ----------
    file, options, expected
        As for `load`.
    folder
        Folder for the library. The caller owns it and keeps it as long as the library may be loaded.
    apart
        Give each connection its own copy of the file's static variables. A Rust file must not have any.

    Raises
    ------
    InputError
        If the file does not compile, or is a Rust file with variables that its connections would share.
    """
    _prepared[file, options, expected] = _built(file, json.loads(options), folder, apart=apart)


def _built(file: str, given: Mapping[str, Any], folder: Path, *, apart: bool = False) -> Path:
    if is_rust(file):
        library = _rust.compiled(file, folder)
        if apart and (name := _rust.shared(file, folder)):
            raise InputError(
                f"{file}: found {name}, which all connections share; allowed in the arena: constants, and fields of the controller"
            )
        return library
    reads(*depends(file)[0])
    return _compiled(file, folder, _flags(file, given), apart=apart)


def depends(file: str) -> tuple[list[str], dict[str, str]]:
    """Return compiled files not covered by the digest, and environment variables read by the code, as reported by the
    compiler. Data files declared in a comment (`ackclock-reads: NAME`) are included.
    """
    with tempfile.TemporaryDirectory(prefix="ackclock-") as place:
        try:
            found, more = _rust.depends(file, Path(place)) if is_rust(file) else (_depends(file, Path(place)), {})
        except InputError:  # errors are reported when the file is loaded
            found, more = [], {}
    known = {str(path.resolve()) for path in files(file)}
    for path in files(file):
        text = _text(path)
        found += [str(path.parent / name) for name in _INCBIN.findall(text)]
        found += named([name.strip() for name in _READS.findall(text)], path.parent, whose=str(path))
    places = {os.path.realpath(path) for path in found}
    return sorted(path for path in places - known if not Path(path).is_relative_to(HERE)), more


def _depends(file: str, folder: Path) -> list[str]:
    sources = _sources(file)
    options = _forwards(sources, folder)
    found: list[str] = []
    for path in (path for path in sources if path.suffix == ".c"):
        rule = folder / "rule"
        _asked([*FLAGS, *options, *_flags(file, {}), "-MM", "-MF", str(rule), str(path)], file)
        found += _rust.listed(rule.read_text(encoding="utf-8", errors="replace"))
    return [one for one in found if not one.startswith(f"{folder}{os.sep}")]


def _flags(file: str, options: Mapping[str, Any]) -> list[str]:
    """Return macro definitions normally set by the file's own Makefile: those in a comment in the file, and options
    with names that begin with -D.
    """
    flags = [flag for remark in _FLAGS.findall(_text(Path(file))) for flag in remark.split()]
    for name, value in options.items():
        if name.startswith("-D"):
            flags.append(name if value is True else f"{name}={value}")
    for flag in flags:
        if not _FLAG.fullmatch(flag):
            raise InputError(f"{file}: found the flag {quote(flag)}; allowed: -DNAME or -DNAME=VALUE")
    return flags


def _lines(file: str, options: Mapping[str, Any]) -> str:
    lines = []
    for name, given in options.items():
        if name.startswith("-D") and not is_rust(file):
            continue
        if isinstance(given, str) and not is_rust(file) and re.fullmatch(r"\w+", name) and "\n" not in given:
            lines.append(f"{name}={given}")
            continue
        value = int(given) if isinstance(given, float) and given.is_integer() else given
        if is_rust(file) and isinstance(value, float) and re.fullmatch(r"\w+", name):
            lines.append(f"{name}={value!r}")
            continue
        if not isinstance(value, bool | int) or not re.fullmatch(r"\w+", name):
            raise InputError(
                f"{file}: option {quote(name)}: found {quote(value)}; allowed: a whole number, true or false, or a text"
            )
        lines.append(f"{name}={str(value).lower()}")
    return "\n".join(lines)


def _compiled(file: str, folder: Path, flags: list[str], *, apart: bool = False) -> Path:
    sources = _sources(file)
    options = _forwards(sources, folder)
    ours = options[2:]
    words = set(re.findall(r"\w+", sources[Path(file)].decode(errors="replace")))
    needs = 0
    for word, bit in _WORDS.items():
        needs |= bit if word in words else 0
    sized = [flag for flag in flags if flag.startswith("-DICSK_CA_PRIV_SIZE=")]
    form, objects, beside = _modules(file, folder, sources, [*options, *flags])
    more = [f"-DACKCLOCK_NEEDS={needs}u", *sized, *form, *(["-DACKCLOCK_APART"] if apart else [])]
    objects.append(_object(HERE / "ackclock_kernel.c", folder / "ours.o", [*ours, *more], file))
    library = folder / f"{Path(file).stem}.so"
    # symbols are bound at load time, so that any later write to library memory comes from the module
    whole = [] if sys.platform == "darwin" else ["-Wl,-z,defs", "-Wl,-z,relro,-z,now"]
    try:
        _asked(["-shared", "-o", str(library), *map(str, objects), *whole, "-lpthread"], file)
    except InputError as error:
        raise beside or error from None
    return library


def _forwards(sources: Mapping[Path, bytes], folder: Path) -> list[str]:
    """Return compiler options that redirect every header included by the sources to ours, and that add our include folder."""
    forwards = folder / "include"
    forwards.mkdir(exist_ok=True)
    for name in {name for text in sources.values() for kind, name in _includes(text) if kind == "<" or name in IN_TREE}:
        if ".." in Path(name).parts or Path(name).is_absolute():
            continue
        (forwards / name).parent.mkdir(parents=True, exist_ok=True)
        ours = IN_TREE.get(name, "ackclock_kernel.h")
        (forwards / name).write_text(f"#include <{ours}>\n", encoding="utf-8")
    return ["-I", str(forwards), "-I", str(HERE / "include")]


def _modules(
    file: str, folder: Path, sources: Mapping[Path, bytes], options: list[str]
) -> tuple[tuple[str, ...], list[Path], InputError | None]:
    """Compile the files with the first set of operation signatures that the main file accepts; if none fits, raise the
    main file's errors.

    A C file next to a header may be unused because the main file's macros exclude it. Its compile error is therefore returned and raised only if
    linking fails.
    """
    main, refused = Path(file), None
    for form in _FORMS:
        try:
            objects = [_object(main, folder / "main.o", [*options, *form], file)]
        except InputError as error:
            old = _OLD_FORM.search(str(error)) is not None
            refused = error if refused is None or (form and not old) else refused
            if not (old or form):
                break
            continue
        beside: InputError | None = None
        for i, path in enumerate(path for path in sources if path.suffix == ".c" and path != main):
            try:
                given = [*options, *form, "-DACKCLOCK_BESIDE"]
                objects.append(_object(path, folder / f"{i}.o", given, file))
            except InputError as error:
                beside = error
        return form, objects, beside
    assert refused is not None
    raise refused


_OLD_FORM = re.compile(
    r"(?=.*incompatible).*\((?:\*|[^()]*)\)?\(struct sock \*, [^()]*(?:rate_sample|ack_sample|s32|\bint\b)[^()]*\)"
)
"""Compiler message about an operation with the wrong signature."""


def _object(source: Path, into: Path, options: list[str], file: str) -> Path:
    _asked([*FLAGS, *options, "-c", str(source), "-o", str(into)], file, source)
    return into


def _asked(arguments: list[str], file: str, source: Path | None = None) -> None:
    """Run the compiler; raise a one-line error if it fails."""
    compiler = _compiler(file)[0]
    try:
        done = _child.run([compiler, *arguments], timeout=SECONDS, memory=MEMORY, env=_child.environment(LC_ALL="C"))
    except _child.TimeoutExpired:
        raise InputError(f"{file}: found a file that {compiler} compiles for more than {SECONDS} s") from None
    except OSError as error:
        raise InputError(f"{file}: found that {compiler} cannot be run ({error.strerror})") from None
    if done.returncode == 0:
        return
    text = _text(source) if source is not None else ""
    if errors := list(_ERROR.finditer(done.stderr)):
        raise InputError(_wrong(errors, done.stderr, text, Path(compiler).name))
    if unknown := _UNKNOWN.search(done.stderr):
        called = unknown["name"]
        reason = _reasons.of([done.stderr], called)
        allowed = reason or "its own functions, and those of ackclock_kernel.h"
        raise InputError(f"{file}: found a call of {called}, which is nowhere; allowed: {allowed}")
    first = next(iter(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
    raise InputError(f"{file}: found a file that {Path(compiler).name} does not compile ({shown(first[:300])})")


def _wrong(errors: list[re.Match[str]], said_all: str, text: str, compiler: str) -> str:
    """Return the first relevant error with its position and an explanation."""
    first = next((one for one in errors if not _OLD_FORM.search(one["said"])), errors[0])
    said = shown(re.sub(r" \[-W[^\]]*\]$", "", first["said"]))
    place = first
    if Path(first["file"]).is_relative_to(HERE):  # the error is inside one of our macros: report the line that uses it
        place = next((used for used in _USED.finditer(said_all) if not Path(used["file"]).is_relative_to(HERE)), first)
    head = f"{place['file']}, line {place['line']}: found"
    if reason := _reasons.of([one["said"] for one in errors], text):
        return f"{head} {said}: {reason}"
    if missing := re.match(r"'?(.+?\.h)'?: No such file|'(.+?\.h)' file not found", said):
        name = missing[1] or missing[2]
        return f"{head} {quote(name)} included, which is not beside it; allowed: headers in angle brackets, and files of its folder (its own Makefile may make this one)"
    if "ICSK_CA_PRIV_SIZE" in said:
        return (
            f"{head} more state than a connection of Linux has room for (104 bytes without a flag); allowed: less, or the flag "
            "-DICSK_CA_PRIV_SIZE=144 (kernels with BBRv3) or what its own kernel has"
        )
    if "has no member named" in said or "undeclared" in said or "implicit declaration" in said:
        macro = ", or -DNAME, if its Makefile sets it" if re.search(r"\b[A-Z][A-Z0-9_]*'", said) else ""
        return f"{head} {said}; allowed: what the simulator's connection has (ackclock_kernel.h){macro}"
    return f"{head} {said}; allowed: a file that {compiler} compiles"


def _compiler(file: str) -> tuple[str, str]:
    asked = os.environ.get("CC") or "cc"
    found = _version(asked, os.environ.get("PATH", ""))
    if found is None:
        raise ScenarioError(
            key="congestion_control",
            found=f"{quote(Path(file).name)}, and no compiler of C ({shown(asked)})",
            allowed="a compiler by the name cc, or that of the environment variable CC",
        )
    return found


@lru_cache(maxsize=8)
def _version(asked: str, path: str) -> tuple[str, str] | None:
    """Return the compiler's path, and the first line of its version output."""
    place = _child.program(asked, path)
    if place is None:
        return None
    try:
        done = _child.run([place, "--version"], timeout=10)
    except (OSError, _child.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    return None if done.returncode or not lines else (place, lines[0])


def _includes(text: bytes) -> Iterator[tuple[str, str]]:
    return ((kind, name) for kind, name in _INCLUDE.findall(text.decode(errors="replace")))


def _sources(file: str) -> dict[Path, bytes]:
    """Return the file, the headers that it includes from its folder, and the C files next to these headers, with their contents."""
    main = Path(file)
    found = {main: _bytes(main)}
    waiting = [main]
    while waiting:
        path = waiting.pop()
        for kind, name in _includes(found[path]):
            header = path.parent / name
            if kind != '"' or not header.is_file():
                continue
            for one in (header, header.with_suffix(".c")):
                if one not in found and one.is_file():
                    found[one] = _bytes(one)
                    waiting.append(one)
    return found


def _bytes(path: Path) -> bytes:
    allowed = "FILE.rs, a controller in Rust" if is_rust(str(path)) else "FILE.c, a controller as a module of Linux"
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise ScenarioError(key="congestion_control", found=f"{path}, which is no file", allowed=allowed)
        if about.st_size > LARGEST:
            raise ScenarioError(key="congestion_control", found=f"{path} of over 1 MiB", allowed="a smaller file")
        reads(path)
        return path.read_bytes()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ScenarioError(
            key="congestion_control", found=f"{path}, which cannot be read ({why})", allowed=allowed
        ) from None


def _text(path: Path) -> str:
    return _bytes(path).decode(errors="replace")


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
