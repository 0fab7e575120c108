from __future__ import annotations

import copy
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from forked import Commands, commands

from ackclock import _native, linux

ROOT = Path(__file__).resolve().parents[2]

MINIMAL: dict[str, Any] = {
    "name": "minimal",
    "duration": "2 s",
    "network": {
        "bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    },
    "flows": [{"congestion_control": "reno"}],
}


@pytest.fixture
def minimal() -> dict[str, Any]:
    return copy.deepcopy(MINIMAL)


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    from ackclock import Scenario

    path = tmp_path / "minimal.toml"
    path.write_text(Scenario.from_dict(MINIMAL).to_toml(), encoding="utf-8")
    return path


def tool(name: str) -> ModuleType:
    """Load a program of `tools` as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "tools"))  # as in the program itself, because tools may import each other
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return module


# Several hundred child processes import several hundred modules each. If bytecode may not be written next to the
# sources, it is cached in the environment's folder.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(sys.prefix) / ".bytecode"))
    sys.pycache_prefix, sys.dont_write_bytecode = os.environ["PYTHONPYCACHEPREFIX"], False

os.environ.pop(
    "COLUMNS", None
)  # workers inherit the terminal's width; without a terminal, output is as wide as its contents

# A shell without job control starts `pytest &` with SIGINT ignored, and every child inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def running(argv: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a process and end it with the block, even if an assertion in it fails; `with Popen` would wait for the
    process.
    """
    with subprocess.Popen(argv, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process; wall time means little on a busy machine."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="session")
def command() -> Iterator[Commands]:
    """Run the command as a process without the cost of starting an interpreter."""
    with commands() as made:
        yield made


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile our part of a C controller once per variant; it dominates the compile time of a small file."""
    made: dict[object, Path] = {}
    plain = _native._object

    def object_(source: Path, into: Path, options: list[str], file: str) -> Path:
        if not source.is_relative_to(_native.HERE):
            return plain(source, into, options, file)
        key = (source, _native._compiler(file), *options)
        if key not in made:
            made[key] = plain(source, tmp_path_factory.mktemp("object") / into.name, options, file)
        return Path(shutil.copy(made[key], into))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_native, "_object", object_)
        yield


@pytest.fixture
def kernel() -> linux.Kernel:
    """Return the real kernel; skip if it is not built."""
    lacking = [finding.what for finding in linux.missing(build=False)]
    if lacking:
        pytest.skip(lacking[0])
    return linux.installed()
