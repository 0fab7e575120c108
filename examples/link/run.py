#!/usr/bin/env python3
"""quinn-proto's own tests, before and after its toy link is replaced by `ackclock-link`, and on links that are no toys.

    python3 run.py                       before, after
    python3 run.py --links dsl lossy     and with a preset, or the text of a link, in place of the link that the tests ask for

Cargo fetches the version that the repository's Cargo.lock names. What is made here lies in `work/`.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = HERE / "work"


def fetched() -> Path:
    """The folder into which Cargo has unpacked the crate."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    said = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return next(Path(p["manifest_path"]).parent for p in json.loads(said)["packages"] if p["name"] == "quinn-proto")


def prepare(source: Path) -> tuple[Path, Path]:
    """A copy as it is, and one with our link."""
    before, after = WORK / "before", WORK / "after"
    for copy in (before, after):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
    # no repository of git is looked for above, or its rules of what is ignored would count
    alone = os.environ | {"GIT_CEILING_DIRECTORIES": str(WORK)}
    subprocess.run(["git", "apply", str(HERE / "quinn-proto.patch")], cwd=after, env=alone, check=True)
    shutil.copy(HERE / "wire.rs", after / "src/tests/wire.rs")
    return before, after


def outcomes(copy: Path, link: str | None, threads: int, seconds: int) -> dict[str, str]:
    """Test by test: ok, or FAILED, or `endless` for those that run when the time is over."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("LINK")}
    environ |= {"CARGO_TARGET_DIR": str(WORK / "target"), "RUST_BACKTRACE": "0"}
    build = ["cargo", "test", "--lib", "--no-run", "--message-format=json"]
    said = subprocess.run(build, cwd=copy, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
    program = next(p for p in (json.loads(line).get("executable") for line in said.splitlines()) if p)
    names = subprocess.run([program, "--list", "--format=terse"], check=True, stdout=subprocess.PIPE, text=True).stdout
    tests = {line.removesuffix(": test"): "endless" for line in names.splitlines() if line.endswith(": test")}
    log = WORK / f"{copy.name}{'' if link is None else '-' + re.sub(r'[^a-z0-9]+', '-', link)[:40]}.log"
    with log.open("w") as out:
        environ |= {} if link is None else {"LINK": link}
        try:
            subprocess.run(
                [program, f"--test-threads={threads}"], env=environ, cwd=copy, stdout=out, stderr=subprocess.STDOUT, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            pass
    tests |= dict(re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)$", log.read_text(), re.MULTILINE))
    return tests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", nargs="*", default=[], metavar="LINK", help="presets, or texts of links")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of a test run")
    parser.add_argument("--seconds", type=int, default=300, help="a test run is ended after this many seconds")
    parser.add_argument("--prepare", action="store_true", help="fetch and patch, run nothing")
    asked = parser.parse_args()
    before, after = prepare(fetched())
    if asked.prepare:
        return
    plain = outcomes(before, None, asked.threads, asked.seconds)
    runs = {"before": plain} | {
        f"after, {link or 'link of the tests'}": outcomes(after, link, asked.threads, asked.seconds) for link in [None, *asked.links]
    }
    for name, tests in runs.items():
        passed = sum(outcome == "ok" for outcome in tests.values())
        print(f"{name}: {passed} of {len(tests)} passed")
        for test in sorted(tests.keys() | plain.keys()):
            if tests.get(test) != plain.get(test):
                print(f"  {test}: {plain.get(test, 'not there')} -> {tests.get(test, 'not there')}")


if __name__ == "__main__":
    main()
