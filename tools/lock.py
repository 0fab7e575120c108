"""Writes requirements.lock (to build and run), requirements-dev.lock (to test and check), requirements-docs.lock (to build the
documentation) and requirements-fuzz.lock (to fuzz; separate because Atheris is prebuilt for few platforms), with hashes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build = project["build-system"]["requires"]
    extras = project["project"]["optional-dependencies"]
    run = [*project["project"]["dependencies"], *extras["figures"]]
    extras = {name: [one for one in wanted if one != "ackclock[figures]"] for name, wanted in extras.items()}
    dev = [
        *extras["dev"],
        *extras["cluster"],
        *extras["agents"],
        *extras["mcp"],
    ]  # the tests run a local cluster, environments, and a server for agents
    compile_lock("requirements.lock", [*run, *build])
    compile_lock("requirements-dev.lock", ["-c requirements.lock", *dev])
    compile_lock("requirements-docs.lock", ["-c requirements.lock", "-c requirements-dev.lock", *extras["docs"]])
    compile_lock("requirements-fuzz.lock", extras["fuzz"])


def compile_lock(name: str, wanted: list[str]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".in", dir=ROOT) as file:
        file.write("\n".join(wanted) + "\n")
        file.flush()
        options = [
            "--quiet",
            "--upgrade",
            "--generate-hashes",
            "--allow-unsafe",
            "--strip-extras",
            "--no-header",
            "--no-annotate",
        ]
        options += ["--no-emit-find-links", "--no-emit-index-url", "--no-emit-trusted-host"]
        command = [sys.executable, "-m", "piptools", "compile", *options, "-o", name, file.name]
        subprocess.run(command, cwd=ROOT, check=True)
    lock = ROOT / name
    lock.write_text("# Written by `make lock`.\n" + lock.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    main()
