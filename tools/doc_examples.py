"""Runs the examples of the prose docs. `--check` reports outdated outputs; without it they are updated.

A block ```` ```toml name ```` or ```` ```python name ```` becomes a file. The lines of a ```` ```console ```` block that start with `$ `
are run in order, in a folder with these files, the scenarios and the examples. Blocks that need a program that is not
installed are skipped. A ```` ```python ```` block without a name is also run, and must not fail; one of ```` ```toml
```` must be TOML.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "python" / "README.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
BLOCK = re.compile(r"```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<body>.*?)```", re.DOTALL)
OPTIONAL = ("tshark", "capinfos")
BROKEN = "Traceback (most recent call last)"


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        renewed = run(text)
        if BROKEN in renewed and BROKEN not in text:
            print(f"{page.relative_to(ROOT)}: an example ends with an exception; the page is left as it was")
            return 1
        if renewed != text:
            stale.append(page)
            if not check:
                page.write_text(renewed, encoding="utf-8")
    for page in stale:
        print(
            f"{page.relative_to(ROOT)}: {'printed outputs are stale; `make docs` renews them' if check else 'renewed'}"
        )
    return 1 if check and stale else 0


def run(text: str) -> str:
    """The page with its commands' current outputs."""
    environment = {
        **os.environ,
        "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "Agg",
        "COLUMNS": "120",
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shipped in ("scenarios", "examples"):
            (folder / shipped).symlink_to(ROOT / shipped)

        def renew(match: re.Match[str]) -> str:
            if match["name"]:
                (folder / match["name"]).write_text(match["body"], encoding="utf-8")
            if match["language"] == "python" and not match["name"]:
                (folder / "unnamed.py").write_text(match["body"], encoding="utf-8")
                broken(output("python unnamed.py", folder, environment), BROKEN)
            if match["language"] == "toml" and not match["name"]:
                tomllib.loads(match["body"])
            if match["language"] != "console":
                return match[0]
            commands = [line[2:] for line in match["body"].split("\n") if line.startswith("$ ")]
            if any(tool in command and not shutil.which(tool) for command in commands for tool in OPTIONAL):
                return match[0]
            return "\n".join(["```console", *(output(c, folder, environment) for c in commands), "```"])

        return BLOCK.sub(renew, text)


def broken(printed: str, sign: str) -> None:
    """Refuse an example that failed."""
    if sign in printed:
        raise SystemExit(f"an example of the documentation fails:\n{printed}")


def output(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Return a command and its output, without programs' warnings about running as root."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    lines = [line.rstrip() for line in done.stdout.split("\n") if "Running as user" not in line]
    printed = "\n".join(lines).rstrip()
    return f"$ {command}\n{printed}" if printed else f"$ {command}"


if __name__ == "__main__":
    sys.exit(main())
