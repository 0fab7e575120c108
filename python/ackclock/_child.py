"""The only module that starts other processes. The current folder may belong to another user, so nothing in it
may be executed.

| kind | current folder | environment | for |
| --- | --- | --- | --- |
| `run`, `start` | `/`, or a folder of ours | `environment()`: listed variables, without relative paths | our own modules, compilers, tools |
| `run`, `start` with `leave=True` | the user's | the user's | our modules that run the user's code, with permission |

Why `/`: compilers (rustup), valgrind and others search the current folder and its parents for configuration files, and obey them. A
temporary folder may have parents that strangers can write to; only the administrator writes into `/`.

Our modules are started by the name of a function (`python("ackclock.stacks:answer", ...)`). The current folder is therefore never on the
module path, as it would be with `python -m`.

Examples
--------
>>> from ackclock import _child
>>> _child.run(_child.python("builtins:print", "hello")).stdout.strip()
'hello'
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, CompletedProcess, Popen, TimeoutExpired
from typing import IO, Any

__all__ = [
    "DEVNULL", "NOWHERE", "PIPE", "STDOUT", "CompletedProcess", "Popen", "TimeoutExpired", "environment", "program", "python", "run", "start",
]  # fmt: skip

NOWHERE = "/"
"""Current folder for processes that use no relative paths."""

PASSED = frozenset({
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    # locations of programs, libraries and headers
    "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "PATH", "CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "PKG_CONFIG_PATH",
    "MACOSX_DEPLOYMENT_TARGET", "SDKROOT", "VALGRIND_LIB", "NIX_LDFLAGS", "NIX_CFLAGS_COMPILE",
    "RUST_BACKTRACE", "SOURCE_DATE_EPOCH",
    # variables of Python and of packages that it imports
    "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONUSERBASE",
    "PYTHONUTF8", "VIRTUAL_ENV", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "MPLCONFIGDIR",
    # variables for fetching packages and crates
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
})  # fmt: skip
"""Environment variables passed to our own processes, in addition to those that match `PREFIXES`."""

PREFIXES = ("ACKCLOCK_", "CARGO_", "LC_", "RUSTUP_", "XDG_")

LISTS = frozenset({
    "LD_LIBRARY_PATH", "LIBRARY_PATH", "PATH", "CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "PKG_CONFIG_PATH", "PYTHONPATH",
})  # fmt: skip
"""Variables that list folders, where an empty or relative entry means the current folder."""

BOOT = """\
import sys
from importlib import import_module
_, root, path, loads, target, *arguments = sys.argv
if root not in sys.path:
    sys.path.append(root)
module, function = target.split(":")
for name in (*loads.split(), module):
    import_module(name)
if path:
    sys.path[:] = import_module("json").loads(path)
sys.argv = [target, *arguments]
getattr(sys.modules[module], function)(*arguments)
"""
"""Program run by our Python processes. The first modules are loaded before the user process's module path is
restored.
"""

SHELL = "/bin/sh"
"""Shell that limits a program's memory before starting it; a multi-threaded process cannot do that for its child."""

ROOT = Path(__file__).resolve().parent.parent


def python(target: str, *arguments: str, leave: bool = False, loads: Sequence[str] = ()) -> list[str]:
    """Return the command that calls one of our functions in a new interpreter.

    Parameters
    ----------
    target
        `MODULE:FUNCTION`.
    arguments
        Texts passed to the function.
    leave
        The function runs the user's code, so modules are looked up on this process's own module path.
    loads
        Modules to load first, in addition to the function's own.

    Returns
    -------
    list of str
        Command for `run` and `start`.
    """
    path = json.dumps(sys.path) if leave else ""
    return [sys.executable, "-P", "-c", BOOT, str(ROOT), path, " ".join(loads), target, *arguments]


def environment(**more: str) -> dict[str, str]:
    """Return the environment for our processes.

    Parameters
    ----------
    more
        Further variables.
    """
    kept = {name: value for name, value in os.environ.items() if name in PASSED or name.startswith(PREFIXES)}
    for name in LISTS & kept.keys():
        kept[name] = _absolute(kept[name])
        if not kept[name]:
            del kept[name]
    return {**kept, "PYTHONSAFEPATH": "1", **more}


def program(name: str, path: str | None = None) -> str | None:
    """Return a program's absolute path; None if it is not found. The current folder is not searched.

    Parameters
    ----------
    name
        Name of the program, or its path as given by the user.
    path
        Folders; None: those of PATH.
    """
    path = environment().get("PATH", os.defpath) if path is None else _absolute(path)
    if os.path.dirname(name):
        name = os.path.abspath(name)
    return shutil.which(name, path=path)


def _absolute(places: str) -> str:
    return os.pathsep.join(place for place in places.split(os.pathsep) if os.path.isabs(place))


def start(
    command: Sequence[str],
    *,
    leave: bool = False,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[Any] | None = DEVNULL,
    memory: int | None = None,
    **options: Any,
) -> Popen[Any]:
    """Start a process.

    Parameters
    ----------
    command
        Program and arguments; a name without a folder is looked up in PATH.
    leave
        Whether the user has given permission to run their own code.
    cwd
        Current folder: one of our own, or `/`; with `leave`, that of this process.
    env
        Environment variables; None: `environment()`, or with `leave` those of this process.
    stdin
        Standard input; nothing by default.
    memory
        Largest address space of the process, and of each of its children, bytes.
    options
        Options of `subprocess.Popen`; none of them runs a shell.

    Raises
    ------
    OSError
        If the process cannot be started.
    """
    asked, *arguments = command
    place = program(asked)
    if place is None:
        raise FileNotFoundError(2, os.strerror(2), asked)
    if not leave:
        cwd = NOWHERE if cwd is None else os.path.abspath(cwd)
        env = environment() if env is None else env
    whole = [place, *arguments]
    if memory is not None and os.path.exists(SHELL):
        whole = [SHELL, "-c", f'ulimit -v {memory // 1024}; exec "$@"', SHELL, *whole]
    return Popen(whole, cwd=cwd, env=env, stdin=stdin, shell=False, **options)


def run(
    command: Sequence[str], *, input: str | bytes | None = None, timeout: float | None = None, **options: Any
) -> CompletedProcess[Any]:
    """Run a process to its end and capture its output.

    Parameters
    ----------
    command, options
        See `start`. Output is text, unless `text=False`.
    input
        Standard input.
    timeout
        Time after which the process is killed, seconds.

    Raises
    ------
    OSError
        If the process cannot be started.
    TimeoutExpired
        If the process does not end in time.
    """
    if options.get("text", True):
        options = {"errors": "replace", **options, "text": True}
    given = DEVNULL if input is None else PIPE
    with start(command, stdin=given, stdout=PIPE, stderr=PIPE, **options) as process:
        try:
            out, said = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return CompletedProcess(process.args, process.returncode, out, said)
