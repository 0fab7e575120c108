"""Controllers in C and Rust: compiled by the user's compiler, with an interface of ours, and loaded.

A file of C is a module of Linux (`struct tcp_congestion_ops`):

| file here | what it is |
| --- | --- |
| `include/ackclock_controller.h` | the interface between the engine and any controller in a library |
| `include/ackclock_kernel.h` | what such a module includes: every header that it names stands for this one |
| `ackclock_kernel.c` | the interface over the module's operations; the helpers that modules call |

A file of Rust implements a trait of `ackclock_controller.rs` (`_rust`).

Compiling executes nothing of the user's; loading does. A file that the module includes as `"NAME.h"` is taken from its folder, and so is
`NAME.c` beside that, whose functions it may call.
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
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ackclock import _child
from ackclock._files import has_leave, reads
from ackclock._native import _rust
from ackclock._reads import named
from ackclock.errors import InputError, ScenarioError, UnavailableError, quote, shown

__all__ = ["depends", "digest", "files", "is_rust", "load", "operations"]

HERE = Path(__file__).parent
LARGEST = 2**20
"""Bytes of a file."""
SECONDS = 60
"""Most that the compiler may take for a file."""
MEMORY = 4 * 2**30
"""Bytes of address space that the compiler may take."""
FLAGS = (
    "-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv", "-fno-stack-protector", "-U_FORTIFY_SOURCE",
    "-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types", "-Werror=int-conversion",
)  # fmt: skip
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_ERROR = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<said>.+)$", re.MULTILINE)
_USED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? note: (?:in expansion of|expanded from)", re.MULTILINE)
_UNKNOWN = re.compile(r"undefined (?:reference to|symbol:?) [`'\"]?_?(?P<name>\w+)")
_WORDS = {"in_flight": 2, "SK_PACING_NEEDED": 4, "tcp_enter_cwr": 32}
"""Words of a file, and what the connection has to keep for them: bits of `ACKCLOCK_NEEDS`."""
_INCBIN = re.compile(r'\.incbin\s+\\?"([^"\\\n]+)')
_READS = re.compile(r"ackclock-reads:[ \t]*([^\s*][^\n*]*)")
_NAME = re.compile(r"\.name\s*=\s*\"([^\"]+)\"")


def digest(file: str) -> str:
    """What the code is: the file, what it includes from its folder, our headers and helpers, and the compiler's version.

    Before the user has given leave to run it, no compiler is started; the digest is then one that no run has.

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
    """The file and what belongs to it: what it includes from its folder, and the C files of these headers."""
    return [Path(file)] if is_rust(file) else list(_sources(file))


def is_rust(file: str) -> bool:
    """Whether it is a file of Rust."""
    return file.endswith(".rs")


def operations(file: str) -> str:
    """The name under which the file registers its controller, as its text has it; "" if it does not say."""
    found = _NAME.findall(_text(Path(file)))
    return found[-1] if found else ""


@lru_cache(maxsize=64)
def load(file: str, options: str, expected: str) -> Any:
    """Compile a file and load it, once for each state of it and its options.

    Parameters
    ----------
    file
        Where it is.
    options
        Parameters of the module (`module_param`), as JSON.
    expected
        Its digest when the run was planned.

    Raises
    ------
    InputError
        If it does not compile, asks for what the simulator does not have, or registers no controller.
    UnavailableError
        If the file has changed.
    """
    from ackclock import _engine

    if digest(file) != expected:
        raise UnavailableError(f"{file}: found other code than when the runs were planned; start them again")
    folder = Path(tempfile.mkdtemp(prefix="ackclock-"))
    try:
        if not is_rust(file):
            reads(*depends(file)[0])
        library = (_rust.compiled if is_rust(file) else _compiled)(file, folder)
        try:
            return _engine.Library(str(library), _lines(file, json.loads(options)), Path(file).name)
        except ValueError as error:
            raise InputError(f"{file}: {shown(str(error))}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def depends(file: str) -> tuple[list[str], dict[str, str]]:
    """What the file is compiled from beside itself and what stands in its digest, as the compiler says, and variables of the environment
    that it reads; with the data files that it declares (`ackclock-reads: NAME` in a comment).
    """
    with tempfile.TemporaryDirectory(prefix="ackclock-") as place:
        try:
            found, more = _rust.depends(file, Path(place)) if is_rust(file) else (_depends(file, Path(place)), {})
        except InputError:  # whoever loads it says what is wrong with it
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
        _asked([*FLAGS, *options, "-MM", "-MF", str(rule), str(path)], file)
        found += _rust.listed(rule.read_text(encoding="utf-8", errors="replace"))
    return [one for one in found if not one.startswith(f"{folder}{os.sep}")]


def _lines(file: str, options: Mapping[str, Any]) -> str:
    lines = []
    for name, given in options.items():
        value = int(given) if isinstance(given, float) and given.is_integer() else given
        if is_rust(file) and isinstance(value, float) and re.fullmatch(r"\w+", name):
            lines.append(f"{name}={value!r}")
            continue
        if not isinstance(value, bool | int) or not re.fullmatch(r"\w+", name):
            raise InputError(
                f"{file}: option {quote(name)}: found {quote(value)}; allowed: a whole number, true or false"
            )
        lines.append(f"{name}={str(value).lower()}")
    return "\n".join(lines)


def _compiled(file: str, folder: Path) -> Path:
    sources = _sources(file)
    options = _forwards(sources, folder)
    main = Path(file)
    words = set(re.findall(r"\w+", sources[main].decode(errors="replace")))
    needs = sum(bit for word, bit in _WORDS.items() if word in words)
    ours = options[2:]
    objects = [_object(HERE / "ackclock_kernel.c", folder / "ours.o", [*ours, f"-DACKCLOCK_NEEDS={needs}u"], file)]
    for i, path in enumerate(path for path in sources if path.suffix == ".c"):
        beside = [] if path == main else ["-DACKCLOCK_BESIDE"]
        objects.append(_object(path, folder / f"{i}.o", [*options, *beside], file))
    library = folder / f"{main.stem}.so"
    whole = [] if sys.platform == "darwin" else ["-Wl,-z,defs"]
    _asked(["-shared", "-o", str(library), *map(str, objects), *whole, "-lpthread"], file)
    return library


def _forwards(sources: Mapping[Path, bytes], folder: Path) -> list[str]:
    """Options by which every header that the sources name stands for ours, and where those are."""
    forwards = folder / "include"
    forwards.mkdir(exist_ok=True)
    for name in {name for text in sources.values() for kind, name in _includes(text) if kind == "<"}:
        if ".." in Path(name).parts or Path(name).is_absolute():
            continue
        (forwards / name).parent.mkdir(parents=True, exist_ok=True)
        (forwards / name).write_text("#include <ackclock_kernel.h>\n", encoding="utf-8")
    return ["-I", str(forwards), "-I", str(HERE / "include")]


def _object(source: Path, into: Path, options: list[str], file: str) -> Path:
    _asked([*FLAGS, *options, "-c", str(source), "-o", str(into)], file)
    return into


def _asked(arguments: list[str], file: str) -> None:
    """Run the compiler; its first error in a line."""
    compiler = _compiler(file)[0]
    try:
        done = _child.run([compiler, *arguments], timeout=SECONDS, memory=MEMORY, env=_child.environment(LC_ALL="C"))
    except _child.TimeoutExpired:
        raise InputError(f"{file}: found a file that {compiler} compiles for more than {SECONDS} s") from None
    except OSError as error:
        raise InputError(f"{file}: found that {compiler} cannot be run ({error.strerror})") from None
    if done.returncode == 0:
        return
    if wrong := _ERROR.search(done.stderr):
        said = shown(re.sub(r" \[-W[^\]]*\]$", "", wrong["said"]))
        lacks = "has no member named" in said or "undeclared" in said or "implicit declaration" in said
        allowed = (
            "what the simulator's connection has (ackclock_kernel.h)"
            if lacks
            else f"a file that {Path(compiler).name} compiles"
        )
        place = wrong
        if Path(wrong["file"]).is_relative_to(HERE):  # a macro of ours: where it is used
            place = next(
                (used for used in _USED.finditer(done.stderr) if not Path(used["file"]).is_relative_to(HERE)), wrong
            )
        raise InputError(f"{place['file']}, line {place['line']}: found {said}; allowed: {allowed}")
    if unknown := _UNKNOWN.search(done.stderr):
        raise InputError(
            f"{file}: found a call of {unknown['name']}, which is nowhere; allowed: its own functions, and those of ackclock_kernel.h"
        )
    first = next(iter(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
    raise InputError(f"{file}: found a file that {Path(compiler).name} does not compile ({shown(first[:300])})")


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
    """Where the compiler is, and the first line of what it says of itself."""
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
    """The file, what it includes from its folder, and the C files of these headers."""
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
