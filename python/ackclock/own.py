"""User-defined controllers by file: `wary.py:Wary`, `tcp_mine.c` and `mine.rs` can be used wherever a controller's name can.

Such a file is a program: a Python class, a Linux module in C, or a Rust type (`_native`). Reading a scenario never executes it;
running the scenario does. Reading a scenario or a sweep from a file therefore requires permission for such names (`own_code=True`,
`--own-code`).

The compiled scenario contains the class's name, its options and a hash of the file, but not the file's location. A
run's identity therefore follows the code: after a change to the file, a sweep repeats its runs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from ackclock import _files, _native, _wall
from ackclock._files import reads
from ackclock._reads import Source, content, heard
from ackclock._reads import digest as digest_of
from ackclock._reads import named as declared
from ackclock.errors import InputError, ScenarioError, UnavailableError, one_of, quote, said

__all__ = ["OwnClass", "Source", "anchored", "classes", "copied", "described", "named", "planned", "refuse", "short"]

_NAMED = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)|(?P<compiled>.+\.(?:c|rs))")
FORMS = "FILE.py:CLASS, FILE.c or FILE.rs"
"""Forms of a controller's file name, for messages."""

LARGEST = 2**20
"""Maximum size of a file, bytes."""

MOST_MODULES = 32
"""Maximum number of files with cached modules."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnClass:
    """A class in a Python file, or a C or Rust file, with its options, as plain values that can be sent to a worker.

    Parameters
    ----------
    file, name
        Path of the file, and name of the class. For a C or Rust file the name is the file's.
    options
        Keyword arguments of the class, or parameters of the module, as JSON.
    digest
        Hash of the file when the scenario was compiled; for C and Rust it includes the compiler's version.
    whole
        Hash of everything else that the code reads, when its runs were planned; None if the runs are not stored.
    """

    file: str
    name: str
    options: str
    digest: str
    whole: str | None = None

    @property
    def key(self) -> str:
        """Name in the compiled scenario."""
        return f"{self.name}@{self.digest}" + ("" if self.options == "{}" else self.options)

    @property
    def is_compiled(self) -> bool:
        """Whether the code is a C or Rust file, which has to be compiled."""
        return self.name.endswith((".c", ".rs"))

    def load(self) -> Callable[[], Any]:
        """Return the class, a function that makes its instances with the options, or the library compiled from a C or
        Rust file.

        Raises
        ------
        InputError
            If the file cannot be imported, or has no such class.
        UnavailableError
            If the file has changed since the scenario was compiled.
        """
        _wall.note(Path(self.file).name)
        return self._loaded()

    def planned(self) -> OwnClass:
        """Return the code with a hash of everything that it currently reads, found by running or compiling it.

        Raises
        ------
        InputError, UnavailableError
            See `load`.
        """
        _wall.note(Path(self.file).name)
        return replace(self, whole=self._whole())

    def prepare(self, folder: Path, *, apart: bool = False) -> None:
        """Compile the code ahead of `load`, so that loading needs no compiler. Nothing is executed; for a Python class
        there is nothing to do.

        Parameters
        ----------
        folder
            Folder for the library, which must exist as long as the library may be loaded.
        apart
            Give each connection its own copy of the file's variables; a Rust file must not have any.
        """
        if self.is_compiled:
            self._whole()
            _native.prepare(self.file, self.options, self.digest, folder, apart=apart)

    def copies(self, count: int) -> Callable[..., Any]:
        """Return a function that makes instances from `count` copies of the file's module in turn, so that few
        instances share the state of modules and classes.

        Parameters
        ----------
        count
            Number of copies.
        """
        made = []
        for _ in range(count):
            _modules.clear()
            made.append(self.load())
        turn = iter(cycle(made))

        def one(*arguments: Any, **options: Any) -> Any:
            return next(turn)(*arguments, **options)

        one.__name__ = self.name
        return one

    def _whole(self) -> str:
        """Return the hash of everything that the code reads, computed once per state of the files."""
        key = (self.file, self.name, self.options, self.digest)
        known = _wholes.get(key)
        if known is None or any(content(path) != was for path, was in known[1].items()):
            while len(_wholes) >= MOST_MODULES:
                _wholes.pop(next(iter(_wholes)))
            paths, more = self._read()
            whole = digest_of(paths, Path(self.file).parent, more)
            known = _wholes[key] = (whole, {path: content(path) for path in paths})
        return known[0]

    def _read(self) -> tuple[list[str], dict[str, str]]:
        """Return the files, besides its own, and the environment variables that the code reads."""
        folder = Path(self.file).parent
        if self.is_compiled:
            return _native.depends(self.file)
        made = self._class()
        _, read = _module(self.file, self.digest)
        with (
            heard(folder) as later,
            _wall.doing(f"making {self.file}:{self.name}"),
            suppress(Exception, SystemExit, GeneratorExit),
        ):  # errors are reported by the run
            made(**json.loads(self.options))
        data = declared(getattr(made, "reads", ()), folder, whose=f"{self.file}:{self.name}")
        return sorted({path for path in (*read, *later, *data) if path != self.file}), {}

    def _loaded(self) -> Callable[[], Any]:
        if self.whole is not None and self._whole() != self.whole:
            raise UnavailableError(
                f"{self.file}: found other data or modules than when the runs were planned; start them again"
            )
        if self.is_compiled:
            return _native.load(self.file, self.options, self.digest)  # type: ignore[no-any-return]
        made = self._class()
        options = json.loads(self.options)
        if not options:
            return made
        with_options = partial(made, **options)
        with_options.__name__ = made.__name__  # type: ignore[attr-defined]
        return with_options

    def _class(self) -> type:
        if _digest(self.file) != self.digest:
            raise UnavailableError(f"{self.file}: found other code than when the runs were planned; start them again")
        module, _ = _module(self.file, self.digest)
        made = getattr(module, self.name, None)
        if not isinstance(made, type):
            found = "nothing" if made is None else quote(repr(made))
            there = [n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__]
            allowed = one_of(self.name, there) if there else "a class, of which the file has none"
            raise InputError(f"{self.file}:{self.name}: found {found} of this name; allowed: {allowed}")
        return made


def class_meant(name: str) -> str:
    """Return the part of a message about a Python file named without its class; empty for any other name.

    Examples
    --------
    >>> class_meant("ten.py"), class_meant("tne")
    ('; did you mean "ten.py:CLASS"?', '')
    """
    return f'; did you mean "{name}:CLASS"?' if re.fullmatch(r"[\w./=-]+\.py", name) else ""


def named(text: object) -> bool:
    """Return whether a controller's name is that of a file: `FILE.py:CLASS`, `FILE.c` or `FILE.rs`."""
    return isinstance(text, str) and _NAMED.fullmatch(text) is not None


def anchored(text: str, folder: Path) -> str:
    """Return the name with an absolute path, resolved from a folder."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return text
    return f"{(folder / (found['compiled'] or found['file'])).resolve()}" + (
        f":{found['name']}" if found["name"] else ""
    )


def short(text: str) -> str:
    """Return the name without its folders."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return text
    return Path(found["compiled"]).name if found["compiled"] else f"{Path(found['file']).name}:{found['name']}"


def copied(text: str, folder: Path) -> str:
    """Copy the files of a name into a folder, which is created if needed, and return the name without its folders."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return text
    folder.mkdir(parents=True, exist_ok=True)
    for file in _native.files(found["compiled"]) if found["compiled"] else [Path(found["file"])]:
        (folder / file.name).write_bytes(file.read_bytes())
    return short(text)


def described(text: str, options: Mapping[str, Any]) -> OwnClass:
    """Return the class or file that a name refers to, with its current digest.

    Raises
    ------
    ScenarioError
        If the file cannot be read.
    """
    found = _NAMED.fullmatch(text)
    if found is None:
        raise ScenarioError(key="congestion_control", found=quote(text), allowed=FORMS)
    file = str(Path(found["compiled"] or found["file"]).resolve())
    written = json.dumps(dict(options), sort_keys=True, separators=(",", ":"))
    if found["compiled"]:
        return OwnClass(file=file, name=Path(file).name, options=written, digest=_native.digest(file))
    return OwnClass(file=file, name=found["name"], options=written, digest=_digest(file))


def planned(own: Iterable[OwnClass]) -> str:
    """Return hashes of everything that runs depend on besides files named in their scenarios; empty if there is
    nothing else.
    """
    return "".join(f"+{one.name}@{one.whole}" for one in own if one.whole)


def remember(one: OwnClass, whole: str, read: Mapping[str, str | None]) -> None:
    """Store the files that another process found this code to read: the hash and each file's content. `planned` then runs no code in this process."""
    _wholes[one.file, one.name, one.options, one.digest] = (whole, dict(read))


def remembered(one: OwnClass) -> dict[str, str | None]:
    """Return the contents, at the time of planning, of the files read by this code; empty if it was not planned."""
    known = _wholes.get((one.file, one.name, one.options, one.digest))
    return {} if known is None else dict(known[1])


def classes(own: Iterable[OwnClass]) -> dict[str, Callable[[], Any]]:
    """Return the controller factories for the engine, by name in the compiled scenario."""
    return {one.key: one.load() for one in own}


def refuse(names: Iterable[tuple[str, str]], *, source: str = "") -> None:
    """Refuse program names that come from a file.

    Parameters
    ----------
    names
        Key and value of each controller.
    source
        The file.

    Raises
    ------
    ScenarioError
        If one of them names a file.
    """
    for key, value in names:
        if named(value):
            raise ScenarioError(
                key=key,
                found=f"{quote(short(value))}, a program that the run would execute",
                allowed="with --own-code (in Python: own_code=True) if you trust it",
                source=source,
            )


def _digest(file: str) -> str:
    try:
        about = Path(file).stat()
        if not stat.S_ISREG(about.st_mode):
            raise ScenarioError(key="congestion_control", found=f"{file}, which is no file", allowed="FILE.py:CLASS")
        if about.st_size > LARGEST:
            raise ScenarioError(
                key="congestion_control", found=f"{file} of over 1 MiB", allowed="a smaller file of Python"
            )
        reads(file)
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        prefix, colon, _ = Path(file).name.partition(":")
        allowed = f'FILE.py:CLASS without "{prefix}:", in flows of TCP only' if colon else "FILE.py:CLASS"
        raise ScenarioError(
            key="congestion_control", found=f"{file}, which cannot be read ({why})", allowed=allowed
        ) from None


_wholes: dict[tuple[str, ...], tuple[str, dict[str, str | None]]] = {}
"""Code -> hash of the files it reads, and each file's content when hashed."""

_modules: dict[tuple[str, str], tuple[Any, dict[str, str | None]]] = {}
"""(file, digest) -> module, and the files it read with their contents at import."""


def _module(file: str, digest: str) -> tuple[Any, dict[str, str | None]]:
    """Import a file, again only if it or a file it reads has changed; return the module and those files."""
    known = _modules.get((file, digest))
    if known is not None and all(content(path) == was for path, was in known[1].items()):
        return known
    name = f"_ackclock_own_{digest}"
    spec = importlib.util.spec_from_file_location(name, file, loader=Source(name, file))
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: found no Python module; allowed: FILE.py:CLASS")
    module = importlib.util.module_from_spec(spec)
    with heard(Path(file).parent) as read, _wall.doing(f"loading {file}"):
        sys.modules[name] = module  # needed by dataclasses and pickles of the module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:  # includes a sys.exit at the end of a program
            sys.modules.pop(name, None)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise InputError(f"{file}: cannot be imported ({said(error)})") from error
    while len(_modules) >= MOST_MODULES:
        _modules.pop(next(iter(_modules)))
    _modules[file, digest] = (module, {path: content(path) for path in read if path != file})
    _files.reads(*read)
    return _modules[file, digest]
