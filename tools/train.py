"""Profile-guided optimisation of the profile `release`: rustc gets the execution counts of a run's instructions.

    python tools/train.py PROFILE COMMAND...    runs the command, a build; trains first if the profile is release and a source has changed

Training builds the engine with counters, and runs the repository's scenarios and the benchmark's smaller cells. A run
is deterministic, so the same sources produce the same counts, apart from the number of checks for signals. Digests do
not depend on the profile. Other cargo profiles are built without it.
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
    run(load(path).set_all({"record.warm_up": "0 s", "duration": "4 s"}))
for counted in COUNTED:
    if counted.cell.flows <= 10_000:
        seconds = max(counted.cell.duration_s, 1000 / counted.cell.rate_mbps)  # as many packets of each
        run(Scenario.from_dict(scenario(counted.cell)).set("duration", f"{seconds} s"))
"""


def main() -> None:
    profile, *command = sys.argv[1:]
    env = dict(os.environ)
    if profile == "release":
        version = said("rustc", "-vV")
        host = next(line.split()[1] for line in version.splitlines() if line.startswith("host:"))
        trained = FOLDER / f"{key(version)}.profdata"
        if trained.exists() or ((merger := tool(host)) and train(trained, merger, host)):
            env |= asked(f"-Cprofile-use={trained}", "using", host)
    sys.exit(subprocess.run(command, env=env, check=False).returncode)


def asked(flag: str, folder: str, host: str) -> dict[str, str]:
    """Environment for Cargo. With a target, function names are identical in both builds, and programs that run during the build are not counted."""
    return {
        "RUSTFLAGS": f"{os.environ.get('RUSTFLAGS', '')} {flag}".strip(),
        "CARGO_TARGET_DIR": str(FOLDER / folder),
        "CARGO_BUILD_TARGET": host,
    }


def key(version: str) -> str:
    """Name derived from a hash of everything that affects the counts."""
    sources = [
        Path(__file__),
        ROOT / "Cargo.toml",
        ROOT / "Cargo.lock",
        ROOT / "python" / "ackclock" / "bench" / "cells.py",
    ]
    sources += (path for path in ROOT.glob("scenarios/**/*") if path.is_file())
    sources += (path for path in ROOT.glob("crates/**/*") if path.suffix in {".rs", ".toml"})
    hashed = hashlib.sha256(version.encode())
    for path in sorted(sources):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def tool(host: str) -> Path | None:
    """This compiler's `llvm-profdata`, because Debian's may be older than the counts. Prints a line and returns `None` if it is missing."""
    merger = Path(said("rustc", "--print", "sysroot"), "lib", "rustlib", host, "bin", "llvm-profdata")
    if not merger.exists() and shutil.which("rustup"):
        subprocess.run(["rustup", "component", "add", "llvm-tools"], cwd=ROOT, check=False, stdout=sys.stderr)
    if merger.exists():
        return merger
    print(
        "release: built without training, some 15 % slower: `rustup component add llvm-tools` is missing",
        file=sys.stderr,
    )
    return None


def train(trained: Path, merger: Path, host: str) -> bool:
    """Build, run, and write `trained`. Builds that used an older profile are deleted."""
    print("release: counting where runs spend their instructions, a minute or two", file=sys.stderr)
    shutil.rmtree(FOLDER / "using", ignore_errors=True)
    for old in FOLDER.glob("*.profdata"):
        old.unlink()
    counts = FOLDER / "counts"
    shutil.rmtree(counts, ignore_errors=True)
    env = {**os.environ, **asked(f"-Cprofile-generate={counts}", "counting", host), "PYO3_PYTHON": sys.executable}
    build = ["cargo", "build", "--quiet", "--locked", "--release", "--package", "ackclock-python"]
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
