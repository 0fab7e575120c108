"""Builds wheels for other systems into dist/, and plays a scenario with that for aarch64 Linux under emulation.

tools/wheels.py [SYSTEM ...] [--profile NAME]

Each system needs Rust's target and a linker; what is missing is told and left out, with exit code 3 if nothing was left to do. What no
emulator here can run is built, its file is looked at, and it is called untested. An engine for aarch64 is played by Debian's own Python for
arm64, which is fetched into target/foreign/ and not installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "dist"
BIN = Path(sys.executable).parent
FETCHED = ROOT / "target" / "foreign"
PYTHON = "python3.11"


class System(NamedTuple):
    """How a wheel for it is built here."""

    name: str
    target: str
    linker: str
    packages: str
    tag: str
    magic: bytes
    """With what a compiled module begins there."""
    tested: bool = False


SYSTEMS = (
    System("linux-aarch64", "aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc", "apt-get install gcc-aarch64-linux-gnu qemu-user", "aarch64", b"\x7fELF", tested=True),
    System("windows-x86_64", "x86_64-pc-windows-gnu", "x86_64-w64-mingw32-gcc", "apt-get install gcc-mingw-w64-x86-64", "win_amd64", b"MZ"),
    System("macos-aarch64", "aarch64-apple-darwin", "zig", "pip install ziglang", "macosx", b"\xcf\xfa\xed\xfe"),
)  # fmt: skip


def missing(system: System) -> list[str]:
    """What is to be installed, as commands."""
    lacks = []
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout
    if not (Path(sysroot.strip()) / "lib" / "rustlib" / system.target).is_dir():
        lacks.append(f"rustup target add {system.target}")
    zig = [sys.executable, "-c", "import ziglang"]
    there = shutil.which(system.linker)
    if system.linker == "zig":
        there = there or subprocess.run(zig, capture_output=True, check=False).returncode == 0
    if not there:
        lacks.append(system.packages)
    return lacks


def built(system: System, profile: str) -> Path:
    """The wheel, whose compiled module is of that system."""
    variable = f"CARGO_TARGET_{system.target.upper().replace('-', '_')}_LINKER"
    environment = dict(os.environ)
    command = [BIN / "maturin", "build", "--target", system.target, "--profile", profile, "--locked"]
    command += ["--out", OUT, "--interpreter", PYTHON]
    if system.linker == "zig":
        command.append("--zig")
        # maturin asks the first Python there for ziglang
        environment["PATH"] = f"{BIN}{os.pathsep}{environment.get('PATH', '')}"
    else:
        environment[variable] = system.linker
    before = set(OUT.glob("*.whl"))
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    made = [path for path in OUT.glob("*.whl") if system.tag in path.name]
    wheel = max(set(made) - before or made, key=lambda path: path.stat().st_mtime)
    with zipfile.ZipFile(wheel) as archive:
        module = next(name for name in archive.namelist() if "/_engine." in name and not name.endswith(".pyi"))
        if not archive.read(module).startswith(system.magic):
            raise SystemExit(f"{wheel.name}: {module} is no module of {system.name}")
    return wheel


def debian_python() -> Path:
    """A folder with Debian's Python for arm64, as it would lie in /."""
    root = FETCHED / "root"
    if (root / "usr" / "bin" / PYTHON).exists():
        return root
    state = FETCHED / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State::lists": str(state / "lists"),
        "Dir::State::status": str(state / "status"),
        "Dir::Cache": str(state / "cache"),
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in settings.items())]
    subprocess.run([*apt, "update"], check=True)
    names = [f"{PYTHON}-minimal", f"lib{PYTHON}-minimal", f"lib{PYTHON}-stdlib"]
    names += ["libc6", "zlib1g", "libexpat1", "libgcc-s1", "libffi8", "libbz2-1.0", "liblzma5", "libssl3"]
    subprocess.run([*apt, "download", *names], cwd=state, check=True)
    for package in state.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, root], check=True)
    return root


PLAYS = """
import sys
sys.path.insert(0, sys.argv[1])
import platform
import ackclock
from ackclock import _engine
for name in ("first", "fetch-lossy", "l4s"):
    print(platform.machine(), name, _engine.run(ackclock.load(name).to_engine_json(), 1)["digest"])
"""


def played(wheel: Path) -> str:
    """Digests of three scenarios, by Debian's Python for arm64 and this wheel."""
    root = debian_python()
    unpacked = FETCHED / "wheel"
    shutil.rmtree(unpacked, ignore_errors=True)
    zipfile.ZipFile(wheel).extractall(unpacked)
    command = ["qemu-aarch64", "-L", root, root / "usr" / "bin" / PYTHON, "-I", "-c", PLAYS, unpacked]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise SystemExit(f"{wheel.name}: {told.stderr.strip()}")
    return told.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="*", metavar="SYSTEM")
    parser.add_argument("--profile", default="release")
    asked = parser.parse_args()
    known = [system.name for system in SYSTEMS]
    for name in asked.systems:
        if name not in known:
            parser.error(f"found {name}; allowed: {', '.join(known)}")
    OUT.mkdir(exist_ok=True)
    done = 0
    for system in SYSTEMS:
        if asked.systems and system.name not in asked.systems:
            continue
        lacks = missing(system)
        if lacks:
            print(f"LEFT OUT: {system.name}; it needs: {'; '.join(lacks)}")
            continue
        wheel = built(system, asked.profile)
        done += 1
        if not system.tested:
            print(f"{wheel.name}: built, UNTESTED: nothing here can run it")
            continue
        if not (shutil.which("qemu-aarch64") and shutil.which("apt-get") and shutil.which("dpkg")):
            print(f"{wheel.name}: built, UNTESTED: playing it needs {system.packages}")
            continue
        import ackclock
        from ackclock import _engine

        here = "".join(
            f"aarch64 {name} {_engine.run(ackclock.load(name).to_engine_json(), 1)['digest']}\n"
            for name in ("first", "fetch-lossy", "l4s")
        )
        told = played(wheel)
        if told != here:
            print(f"{wheel.name}: found\n{told}instead of\n{here}", file=sys.stderr)
            return 1
        print(f"{wheel.name}: built, imported and played under emulation; digests are those of this machine")
    return 0 if done else 3


if __name__ == "__main__":
    sys.exit(main())
