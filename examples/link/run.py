#!/usr/bin/env python3
"""Runs quinn-proto's own tests with its simple link, with `ackclock-link` in its place, and on realistic links.

    python3 run.py                       before and after the replacement, and on the presets dsl and lossy: one table
    python3 run.py --links wifi          with a preset, or the text of a link, in place of the tests' own link
    python3 run.py --links               only before and after the replacement

Cargo fetches the version in the repository's Cargo.lock. All output is written to `work/`.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = HERE / "work"
LINKS = ("dsl", "lossy")
"""Presets used if no link is named."""


def fetched() -> Path:
    """Return the folder into which Cargo has unpacked the crate."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    said = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return next(Path(p["manifest_path"]).parent for p in json.loads(said)["packages"] if p["name"] == "quinn-proto")


def prepare(source: Path) -> tuple[Path, Path]:
    """Make an unchanged copy of the crate, and one with our link."""
    before, after = WORK / "before", WORK / "after"
    for copy in (before, after):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
    # git must not find an enclosing repository, whose ignore rules would apply
    alone = os.environ | {"GIT_CEILING_DIRECTORIES": str(WORK)}
    subprocess.run(["git", "apply", str(HERE / "quinn-proto.patch")], cwd=after, env=alone, check=True)
    shutil.copy(HERE / "wire.rs", after / "src/tests/wire.rs")
    return before, after


def limits() -> None:
    """Limit CPU time and memory of a test, because some tests may never end on a link."""
    resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def outcomes(copy: Path, link: str | None, at_once: int) -> dict[str, str]:
    """Return the outcome of each test, run in a separate process: `ok`, `FAILED`, or `endless` above 5 s of CPU time
    or 2 GiB.
    """
    environ = {key: value for key, value in os.environ.items() if key != "LINK"}
    environ |= {"CARGO_TARGET_DIR": str(WORK / "target"), "RUST_BACKTRACE": "0"}
    build = ["cargo", "test", "--lib", "--no-run", "--message-format=json"]
    said = subprocess.run(build, cwd=copy, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
    program = next(p for p in (json.loads(line).get("executable") for line in said.splitlines()) if p)
    listed = subprocess.check_output([program, "--list", "--format=terse"], cwd=copy, env=environ, text=True)
    tests = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
    environ |= {} if link is None else {"LINK": link}
    logs = WORK / "logs" / re.sub(r"[^a-z0-9]+", "-", f"{copy.name} {link or ''}".lower()).strip("-")[:60]
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)

    def run(test: str) -> str:
        with (logs / f"{test.replace('::', '.')}.log").open("w") as log:
            done = subprocess.run(
                [program, "--exact", test],
                check=False,
                env=environ,
                cwd=copy,
                stdout=log,
                stderr=log,
                preexec_fn=limits,
            )
        return {0: "ok", 101: "FAILED"}.get(done.returncode, "endless")

    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(tests, pool.map(run, tests), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", nargs="*", default=LINKS, metavar="LINK", help="presets, or texts of links")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), metavar="N", help="tests that run at a time")
    parser.add_argument("--prepare", action="store_true", help="fetch and patch, run nothing")
    asked = parser.parse_args()
    before, after = prepare(fetched())
    if asked.prepare:
        return
    plain = outcomes(before, None, asked.at_once)
    runs = {"before": plain} | {
        f"after, {link or 'link of the tests'}": outcomes(after, link, asked.at_once) for link in [None, *asked.links]
    }
    print(*table(runs), sep="\n")
    for name, tests in runs.items():
        for test in sorted(tests.keys() | plain.keys()):
            if tests.get(test) != plain.get(test):
                print(f"{name}: {test}: {plain.get(test, 'not there')} -> {tests.get(test, 'not there')}")


def table(runs: dict[str, dict[str, str]]) -> list[str]:
    """Return the lines of the table, one for each run of all tests."""
    plain = runs["before"]
    width = max(map(len, runs))
    rows = [f"{'link':<{width}}  passed  failed  endless  not as before"]
    for name, tests in runs.items():
        counts = [sum(outcome == kind for outcome in tests.values()) for kind in ("ok", "FAILED", "endless")]
        other = sum(tests.get(test) != plain.get(test) for test in tests.keys() | plain.keys())
        rows.append(f"{name:<{width}}  {counts[0]:>6}  {counts[1]:>6}  {counts[2]:>7}  {other:>13}")
    return rows


if __name__ == "__main__":
    main()
