"""Controllers in Rust: a single file, compiled with the user's rustc against `ackclock_controller.rs`, the safe form of the interface."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from ackclock import _child
from ackclock._files import has_leave, reads
from ackclock.errors import InputError, ScenarioError, quote, shown

INTERFACE = Path(__file__).parent / "ackclock_controller.rs"
CONTRACT = Path(__file__).parent / "ackclock_contract.rs"
"""File that the interface includes with `include!`."""
MEMORY = 8 * 2**30
"""Maximum compiler address space, bytes. The compiler reserves far more than it uses."""
SECONDS = 60
"""Maximum compile time of a file, seconds."""
FLAGS = ("--edition", "2021", "-O", "-C", "overflow-checks=on", "--error-format=short", "--cap-lints", "allow")
CRATE = "libackclock_controller.rlib"
"""File name of the compiled interface."""
_ERROR = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: error(?:\[\w+\])?: (?P<said>.+)$", re.MULTILINE)
_VARIABLE = re.compile(
    r"^(?:@\"?(?P<name>[^\s\"]+)\"? = (?!external )(?!.*\bconstant\b.*).*\bglobal\b|module asm )", re.MULTILINE
)
_ELSEWHERE = re.compile(rb"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)


def digested(file: str, text: bytes) -> list[str]:
    """Return the parts that make up the code's identity: the texts of the file and the interface, and the compiler's
    version and options.

    Raises
    ------
    ScenarioError
        If the file has modules in other files, or there is no compiler.
    """
    if found := _ELSEWHERE.search(text):
        raise ScenarioError(
            key="congestion_control",
            found=f'{quote(Path(file).name)} with "mod {found[1].decode()};"',
            allowed="a controller in one file",
        )
    return [
        text.decode(errors="replace"),
        *(part.read_text(encoding="utf-8") for part in (INTERFACE, CONTRACT)),
        _compiler(file)[1] if has_leave() else "",
        *FLAGS,
    ]


def compiled(file: str, folder: Path) -> Path:
    """Compile a file and return the path of the library.

    Raises
    ------
    InputError
        If the file does not compile.
    """
    crate = folder / CRATE
    _asked(
        ["--crate-type", "rlib", "--crate-name", "ackclock_controller", "--emit", f"link={crate}", str(INTERFACE)],
        file,
        folder,
    )
    library = folder / f"{Path(file).stem}.so"
    name = re.sub(r"\W", "_", Path(file).stem)
    beside = ["--crate-name", f"own_{name}", "--extern", f"ackclock_controller={crate}"]
    rule = folder / "rule"
    _asked(["--crate-type", "cdylib", *beside, "--emit", f"link={library},dep-info={rule}", file], file, folder)
    reads(*listed(rule.read_text(encoding="utf-8", errors="replace")))
    return library


def shared(file: str, folder: Path) -> str:
    """Return the name of a variable shared by all connections; empty if the file has none.

    Variables are found in the compiler's LLVM IR: every global that is not constant, thread-local ones included. Module-level assembly counts too,
    because it may define variables.
    """
    name = re.sub(r"\W", "_", Path(file).stem)
    words = folder / "words"
    beside = ["--crate-name", f"own_{name}", "--extern", f"ackclock_controller={folder / CRATE}"]
    _asked(["--crate-type", "rlib", "-C", "codegen-units=1", *beside, "--emit", f"llvm-ir={words}", file], file, folder)
    found = _VARIABLE.search(words.read_text(encoding="utf-8", errors="replace"))
    return "" if found is None else _plain(found["name"]) if found["name"] else "assembler"


def _plain(symbol: str) -> str:
    """Return the variable name in a linker symbol."""
    names, at = [], symbol.find("_ZN") + 3
    while symbol.startswith("_ZN") and (length := re.match(r"\d+", symbol[at:])):
        at += len(length[0])
        names.append(symbol[at : at + int(length[0])])
        at += int(length[0])
    return next((name for name in reversed(names[1:-1]) if re.fullmatch(r"(?!__RUST)[A-Za-z]\w*", name)), symbol)


def depends(file: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the files from which the code is compiled and the environment variables it reads, as reported by the
    compiler (`include!`, `env!` and similar).
    """
    crate = folder / "libackclock_controller.rmeta"
    _asked(
        ["--crate-type", "rlib", "--crate-name", "ackclock_controller", "--emit", f"metadata={crate}", str(INTERFACE)],
        file,
        folder,
    )
    rule = folder / "rule"
    beside = ["--crate-name", "own", "--extern", f"ackclock_controller={crate}"]
    _asked(["--crate-type", "cdylib", *beside, "--emit", f"dep-info={rule}", file], file, folder)
    text = rule.read_text(encoding="utf-8", errors="replace")
    more = dict(
        line.removeprefix("# env-dep:").partition("=")[::2]
        for line in text.splitlines()
        if line.startswith("# env-dep:")
    )
    return listed(text), more


def listed(rules: str) -> list[str]:
    """Return the prerequisites in rules of the form that `make` reads."""
    found: list[str] = []
    for line in rules.replace("\\\n", " ").splitlines():
        if line.startswith("#"):
            continue
        _, colon, right = line.partition(": ")
        words = re.findall(r"(?:\\.|[^\s\\])+", right) if colon else []
        found += [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words]
    return found


def _asked(arguments: list[str], file: str, folder: Path) -> None:
    """Run the compiler; raise its first error as one line.

    Object files go to the folder. Without `--out-dir` they would go to the current folder, which is `/` for every
    compiler: two files of one name that are compiled at once would exchange their code.
    """
    compiler = _compiler(file)[0]
    try:
        done = _child.run([compiler, *FLAGS, "--out-dir", str(folder), *arguments], timeout=SECONDS, memory=MEMORY)
    except _child.TimeoutExpired:
        raise InputError(f"{file}: found a file that {compiler} compiles for more than {SECONDS} s") from None
    except OSError as error:
        raise InputError(f"{file}: found that {compiler} cannot be run ({error.strerror})") from None
    if done.returncode == 0:
        return
    if wrong := _ERROR.search(done.stderr):
        raise InputError(
            f"{wrong['file']}, line {wrong['line']}: found {shown(wrong['said'][:300])}; allowed: a file that rustc compiles"
        )
    first = next(iter(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
    raise InputError(f"{file}: found a file that rustc does not compile ({shown(first[:300])})")


def _compiler(file: str) -> tuple[str, str]:
    found = _version(os.environ.get("RUSTC") or "rustc", os.environ.get("PATH", ""))
    if found is None:
        raise ScenarioError(
            key="congestion_control",
            found=f"{quote(Path(file).name)}, and no compiler of Rust",
            allowed="a compiler by the name rustc, or that of the environment variable RUSTC",
        )
    return found


@lru_cache(maxsize=8)
def _version(asked: str, path: str) -> tuple[str, str] | None:
    """Return the compiler's path and its version output."""
    place = _child.program(asked, path)
    if place is None:
        return None
    try:
        done = _child.run([place, "-vV"], timeout=10)
    except (OSError, _child.TimeoutExpired):
        return None
    return None if done.returncode or not done.stdout else (place, done.stdout)
