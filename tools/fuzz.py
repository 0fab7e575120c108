"""Fuzzes what reads from outside: `python tools/fuzz.py [TARGET...]`, each for FUZZ_SECONDS (default 60), or for --runs.

| target | input | tool |
| --- | --- | --- |
| segments | segments, calls and time for one TCP endpoint | libFuzzer, on the pinned compiler |
| script | packet scripts | the same |
| scenario, mahimahi, blocks, store | tests/fuzz/<target>.py | Atheris |

The engine is built with overflow checks and debug assertions (profile `fuzz`). Inputs that were new are kept in
target/fuzz/<target>; a finding lies in target/fuzz as <target>-crash-..., and ends the program with exit code 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "fuzz"
NATIVE = {"segments": 512, "script": 2000}
PYTHON = {"scenario": 64, "mahimahi": 256, "blocks": 512, "store": 64}
"""Longest input that is drawn, bytes."""

COVERAGE = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
]
"""What libFuzzer listens to: passes of LLVM, which need no nightly compiler."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join([*NATIVE, *PYTHON]))
    parser.add_argument("--runs", type=int, help="inputs for each target, instead of a time")
    parser.add_argument("--python", help=argparse.SUPPRESS)
    given, rest = parser.parse_known_args()
    if given.python:
        return within_python(given.python, rest)
    unknown = sorted(set(given.targets) - {*NATIVE, *PYTHON})
    if unknown:
        parser.error(f"found {unknown[0]}; allowed: {', '.join([*NATIVE, *PYTHON])}")
    seconds = os.environ.get("FUZZ_SECONDS", "60")
    bound = f"-runs={given.runs}" if given.runs is not None else f"-max_total_time={seconds}"
    failed = []
    for target in given.targets or [*NATIVE, *PYTHON]:
        corpus = WORK / target
        corpus.mkdir(parents=True, exist_ok=True)
        kept = ROOT / "tests" / "fuzz" / "corpus" / target
        folders = [str(corpus), *([str(kept)] if kept.is_dir() else []), *seeds(target)]
        length = {**NATIVE, **PYTHON}[target]
        options = [f"-max_len={length}", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1", bound]
        program = native(target) if target in NATIVE else python(target)
        print(f"fuzz: {target}", flush=True)
        done = subprocess.run(
            [*program, *options, f"-artifact_prefix={WORK}/{target}-", *folders], cwd=WORK, check=False
        )
        if done.returncode:
            failed.append(target)
    print("fuzz: " + (f"findings in {', '.join(failed)}; see {WORK}" if failed else "no finding"))
    return 1 if failed else 0


def seeds(target: str) -> list[str]:
    """Folders of files that are inputs as they are."""
    if target != "script":
        return []
    places = {file.parent for file in (ROOT / "tests" / "scripts").rglob("*.pkt")}
    return [str(place) for place in sorted(places | {ROOT / "crates" / "script" / "tests" / "scripts"})]


def native(target: str) -> list[str]:
    """The program that libFuzzer drives."""
    folder = ROOT / "target" / "fuzzing"
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    triple = next(line.removeprefix("host: ") for line in host.splitlines() if line.startswith("host: "))
    # with --target the flags are not for build scripts
    command = [
        "cargo",
        "build",
        "--quiet",
        "--locked",
        "-p",
        "ackclock-fuzz",
        "--features",
        "libfuzzer",
        "--profile",
        "fuzz",
    ]
    flags = {**os.environ, "RUSTFLAGS": " ".join(COVERAGE)}
    subprocess.run([*command, "--target", triple, "--target-dir", str(folder)], cwd=ROOT, env=flags, check=True)
    return [str(folder / triple / "fuzz" / f"fuzz-{target}")]


def python(target: str) -> list[str]:
    """This program again, with the checked engine and Atheris."""
    folder = ROOT / "target" / "checked"
    command = ["cargo", "build", "--quiet", "--locked", "-p", "ackclock-python", "--profile", "fuzz"]
    env = {**os.environ, "PYO3_PYTHON": sys.executable}
    subprocess.run([*command, "--target-dir", str(folder)], cwd=ROOT, env=env, check=True)
    return [sys.executable, str(Path(__file__)), "--python", target]


def within_python(target: str, options: list[str]) -> int:
    """Give the target to Atheris; what it imports of ours is instrumented."""
    import importlib
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    import atheris

    loader = ExtensionFileLoader("ackclock._engine", str(ROOT / "target" / "checked" / "fuzz" / "lib_engine.so"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    engine = module_from_spec(spec)
    loader.exec_module(engine)
    sys.modules[loader.name] = engine
    sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
    with atheris.instrument_imports(include=["ackclock", "tomllib"]):
        import ackclock

        ackclock._engine = engine  # type: ignore[attr-defined]
        play = importlib.import_module(target).play
    atheris.Setup([sys.argv[0], *options], lambda data: play(data) and None)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
