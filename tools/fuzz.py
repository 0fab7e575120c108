"""Fuzzes readers of external input: `python tools/fuzz.py [TARGET...]`, each for FUZZ_SECONDS (default 60), or for --runs.

| target | input | tool |
| --- | --- | --- |
| segments | segments, calls and time for one TCP endpoint | libFuzzer, on the pinned compiler |
| script | packet scripts | the same |
| capture | captures, pcap and pcapng | the same |
| frames | captures with consistent layers: link layers, tags, tunnels, an exchange between two ends | the same |
| scenario, mahimahi, blocks, store, measured, run | tests/fuzz/<target>.py | Atheris; with --drawn, inputs drawn from a seed, many more per second |

The engine is built with overflow checks and debug assertions (profile `fuzz`). New inputs are kept in
target/fuzz/<target>; a finding is stored in target/fuzz as <target>-crash-..., and ends the program with exit code 1.
The number of inputs per target is summed in target/fuzz/counts.json; --counts prints it.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "fuzz"
NATIVE = {"segments": 512, "script": 2000, "capture": 3000, "frames": 2000}
PYTHON = {"scenario": 64, "mahimahi": 256, "blocks": 512, "store": 64, "measured": 512, "run": 128}
"""Maximum length of a drawn input, bytes."""

COVERAGE = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
]
"""Coverage instrumentation read by libFuzzer: LLVM passes, which need no nightly compiler. Comparison operands are
not instrumented: that would take two thirds of the time, and inputs are drawn from lists, or consist of words from
the stored scripts.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join([*NATIVE, *PYTHON]))
    parser.add_argument("--runs", type=int, help="inputs for each target, instead of a time")
    parser.add_argument("--drawn", action="store_true", help="inputs drawn from a seed, for the targets in Python")
    parser.add_argument("--counts", action="store_true", help="only print how many inputs there were")
    parser.add_argument("--python", help=argparse.SUPPRESS)
    given, rest = parser.parse_known_args()
    if given.python:
        return within_python(given.python, rest, drawn=given.drawn)
    if given.counts:
        print(counted())
        return 0
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
        drawn = given.drawn and target in PYTHON
        if drawn:
            program.append("--drawn")
        if not fed([*program, *options, f"-artifact_prefix={WORK}/{target}-", *folders], target, drawn=drawn):
            failed.append(target)
    print(counted())
    print("fuzz: " + (f"findings in {', '.join(failed)}; see {WORK}" if failed else "no finding"))
    return 1 if failed else 0


def fed(command: list[str], target: str, *, drawn: bool) -> bool:
    """Run the target, and add up its inputs; return true if it found nothing."""
    inputs, before = 0, resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, cwd=WORK, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        for line in process.stderr:
            sys.stderr.write(line)
            if said := re.match(r"stat::number_of_executed_units: *(\d+)", line):
                inputs = int(said[1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    by = "drawn" if drawn else "libFuzzer" if target in NATIVE else "Atheris"
    with (WORK / "counts.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        counts = json.loads(file.read() or "{}")
        entry = counts.setdefault(version("ackclock"), {}).setdefault(target, {}).setdefault(by, {})
        entry["inputs"] = entry.get("inputs", 0) + inputs
        entry["cpu_s"] = round(entry.get("cpu_s", 0) + cpu_s)
        entry["findings"] = entry.get("findings", 0) + (process.returncode != 0)
        entry["until"] = time.strftime("%Y-%m-%d")
        file.truncate(0)
        file.write(json.dumps(counts, indent=1))
    return process.returncode == 0


def counted() -> str:
    """Return the number of inputs per target, by version."""
    place = WORK / "counts.json"
    counts = json.loads(place.read_text()) if place.is_file() else {}
    return "\n".join(
        f"{of} {target} {by}: {entry['inputs']:,} inputs in {entry.get('cpu_s', 0):,} s of CPU until {entry['until']}, {entry['findings']} findings"
        for of, targets in counts.items()
        for target, tools in targets.items()
        for by, entry in tools.items()
    )


def seeds(target: str) -> list[str]:
    """Folders with files usable as inputs without changes."""
    if target != "script":
        return []
    places = {file.parent for file in (ROOT / "tests" / "scripts").rglob("*.pkt")}
    return [str(place) for place in sorted(places | {ROOT / "crates" / "script" / "tests" / "scripts"})]


def native(target: str) -> list[str]:
    """The program driven by libFuzzer."""
    folder = ROOT / "target" / "fuzzing"
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    triple = next(line.removeprefix("host: ") for line in host.splitlines() if line.startswith("host: "))
    # with --target the flags do not apply to build scripts
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
    """Restart this program with the checked engine and Atheris."""
    folder = ROOT / "target" / "checked"
    command = ["cargo", "build", "--quiet", "--locked", "-p", "ackclock-python", "--profile", "fuzz"]
    env = {**os.environ, "PYO3_PYTHON": sys.executable}
    subprocess.run([*command, "--target-dir", str(folder)], cwd=ROOT, env=env, check=True)
    return [sys.executable, str(Path(__file__)), "--python", target]


def within_python(target: str, options: list[str], *, drawn: bool) -> int:
    """Pass the target to Atheris, with our imported modules instrumented, or feed it inputs drawn from a seed."""
    import importlib
    from contextlib import nullcontext
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
    with nullcontext() if drawn else atheris.instrument_imports(include=["ackclock", "tomllib"]):
        import ackclock

        ackclock._engine = engine  # type: ignore[attr-defined]
        module = importlib.import_module(target)
    if drawn:
        return draw(module, target, dict(option[1:].partition("=")[::2] for option in options))
    atheris.Setup([sys.argv[0], *options], lambda data: module.play(data) and None)
    atheris.Fuzz()
    return 0


def draw(module: Any, target: str, options: dict[str, str]) -> int:
    """Draw inputs for this many seconds, or this many inputs; every run draws different ones."""
    from draw import drawn

    most = int(options["runs"]) if "runs" in options else sys.maxsize
    until = time.monotonic() + float(options.get("max_total_time", "inf"))
    seed = time.time_ns()
    count = 0
    try:
        for data in drawn(seed, getattr(module, "EXAMPLES", ()), int(options["max_len"])):
            if count == most or (count % 64 == 0 and time.monotonic() > until):
                return 0
            count += 1
            try:
                module.play(data)
            except BaseException:
                (WORK / f"{target}-crash-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
                raise
        return 0
    finally:
        print(f"stat::number_of_executed_units: {count}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
