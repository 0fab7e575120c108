"""Profile-guided optimisation of the profile `release`: what rustc is told about where a run spends its instructions.

    python tools/train.py release    prints the flags of rustc, and trains first if a source has changed

Training builds the engine with counters in it, and runs the scenarios of the repository and the smaller cells of the
benchmark. A run is deterministic, so the same sources give the same counts, but for how often a signal was looked for. Digests
do not depend on it. Other profiles are built without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "trained"

TRAINING = """
from pathlib import Path
from ackclock import Scenario, load, run
from ackclock.bench.cells import COUNTED, scenario
for path in sorted(Path("scenarios").glob("*.toml")):
    run(load(path).set("duration", "4 s"))
for counted in COUNTED:
    if counted.cell.flows <= 100:
        run(Scenario.from_dict(scenario(counted.cell)).set("duration", "10 s"))
"""


def main() -> None:
    flags = os.environ.get("RUSTFLAGS", "")
    if sys.argv[1:] == ["release"]:
        version = said("rustc", "-vV")
        trained = FOLDER / f"{key(version)}.profdata"
        host = next(line.split()[1] for line in version.splitlines() if line.startswith("host:"))
        if trained.exists() or (merger := tool(host)) and train(trained, merger, host, flags):
            flags += f" -Cprofile-use={trained}"
    print(flags)


def key(version: str) -> str:
    """Names everything that the counts depend on."""
    sources = [Path(__file__), ROOT / "Cargo.toml", ROOT / "Cargo.lock", ROOT / "python" / "ackclock" / "bench" / "cells.py"]
    sources += (path for path in ROOT.glob("scenarios/**/*") if path.is_file())
    sources += (path for path in ROOT.glob("crates/**/*") if path.suffix in {".rs", ".toml"})
    hashed = hashlib.sha256(version.encode())
    for path in sorted(sources):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def tool(host: str) -> Path | None:
    """`llvm-profdata` of this compiler: Debian's may be older than the counts. None, and a line that says so, without it."""
    merger = Path(said("rustc", "--print", "sysroot"), "lib", "rustlib", host, "bin", "llvm-profdata")
    if not merger.exists() and shutil.which("rustup"):
        subprocess.run(["rustup", "component", "add", "llvm-tools"], cwd=ROOT, check=False, stdout=sys.stderr)
    if merger.exists():
        return merger
    print("release: built without training, some 15 % slower: `rustup component add llvm-tools` is missing", file=sys.stderr)
    return None


def train(trained: Path, merger: Path, host: str, flags: str) -> bool:
    """Build, run, and write `trained`. What an older profile was used for is deleted."""
    print("release: counting where runs spend their instructions, a minute or two", file=sys.stderr)
    shutil.rmtree(FOLDER / "target", ignore_errors=True)
    for old in FOLDER.glob("*.profdata"):
        old.unlink()
    counts = FOLDER / "counts"
    shutil.rmtree(counts, ignore_errors=True)
    env = {
        **os.environ,
        "CARGO_TARGET_DIR": str(FOLDER / "counting"),
        "RUSTFLAGS": f"{flags} -Cprofile-generate={counts}",
        "PYO3_PYTHON": sys.executable,
    }
    # with --target, programs that Cargo runs while it builds do not count
    build = ["cargo", "build", "--quiet", "--locked", "--release", "--package", "ackclock-python", "--target", host]
    subprocess.run(build, cwd=ROOT, env=env, check=True)
    with tempfile.TemporaryDirectory() as scratch:
        package = Path(scratch, "ackclock")
        shutil.copytree(ROOT / "python" / "ackclock", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        shutil.copy(FOLDER / "counting" / host / "release" / "lib_engine.so", package / "_engine.abi3.so")
        env = {**os.environ, "PYTHONPATH": scratch}
        subprocess.run([sys.executable, "-c", TRAINING], cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([merger, "merge", "-o", trained, counts], check=True)
    return True


def said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    main()
