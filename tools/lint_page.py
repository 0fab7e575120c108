"""Lints the JavaScript in web/ with the ESLint version in tools/eslint/package-lock.json, installed into .venv/eslint from the npm registry.

Files of the page are scripts that share one scope, joined in the order of `SCRIPTS` and `WORKERS` (tools/lab.py).
Each is linted with the names exported by earlier files, and no others: using a later file's name is an error, and so
is an unused name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import SCRIPTS, WEB, WORKERS

ROOT = Path(__file__).resolve().parent.parent
PINNED = ROOT / "tools" / "eslint"
PLACE = ROOT / ".venv" / "eslint"
FILES = ("package.json", "package-lock.json", "eslint.config.mjs")

LANGUAGE = "AbortController Blob CompressionStream DecompressionStream TextDecoder TextEncoder URL URLSearchParams WebAssembly Worker atob btoa clearTimeout performance setTimeout"
PAGE = f"{LANGUAGE} Image InputEvent Option ReadableStream ResizeObserver XMLSerializer addEventListener cancelAnimationFrame devicePixelRatio document getComputedStyle history innerHeight innerWidth location matchMedia navigator requestAnimationFrame"
WORKER = "TextDecoder TextEncoder WebAssembly listen performance post structuredClone"
"""Browser globals used by scripts; a worker keeps those kept by `WORKER` in tools/lab.py."""

DECLARED = re.compile(r"^(?:async )?(?:const|let|function\*?|class) (?:(\w+)|\{([^}]*)\})", re.MULTILINE)


def handed(text: str) -> list[str]:
    """Names that a script declares for later scripts."""
    found = []
    for one, several in DECLARED.findall(text):
        found += [one] if one else re.findall(r"(\w+)\s*(?:,|$)", several.strip())
    return found


def visible(web: Path, order: Sequence[str], given: str) -> dict[str, list[str]]:
    """File -> names it may use from other files."""
    names, found = given.split(), {}
    for name in order:
        found[name] = list(names)
        names += handed((web / name).read_text(encoding="utf-8"))
    return found


def unused(web: Path, order: Sequence[str]) -> list[str]:
    """One message for each name that is declared but never used."""
    texts = {name: (web / name).read_text(encoding="utf-8") for name in order}
    whole = "".join(texts.values())
    return [
        f"web/{name}: {one}: found no use; allowed: names that some file of the page uses"
        for name, text in texts.items()
        for one in handed(text)
        if len(re.findall(rf"\b{one}\b", whole)) < 2
    ]


def installed(npm: str) -> Path:
    """Return ESLint, reinstalled whenever the pinned versions have changed."""
    stamp = PLACE / "installed"
    pinned = "".join((PINNED / name).read_text(encoding="utf-8") for name in FILES[:2])
    for name in FILES:
        PLACE.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PINNED / name, PLACE / name)
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != pinned:
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run([npm, "ci", *quiet], cwd=PLACE, check=True, stdout=sys.stderr)
        stamp.write_text(pinned, encoding="utf-8")
    return PLACE / "node_modules" / "eslint" / "bin" / "eslint.js"


def lint(root: Path, seen: dict[str, list[str]]) -> int:
    """Print ESLint's findings in web/ below `root`, and return its exit code."""
    node, npm = shutil.which("node"), shutil.which("npm")
    assert node is not None
    assert npm is not None
    command = [node, str(installed(npm)), "--config", str(PLACE / "eslint.config.mjs"), "--max-warnings", "0"]
    files = [f"web/{name}" for name in seen]
    env = {**os.environ, "ACKCLOCK_SEEN": json.dumps(seen)}
    return subprocess.run([*command, *files], cwd=root, env=env, check=False).returncode


def main() -> int:
    seen = {**visible(WEB, SCRIPTS, PAGE), **visible(WEB, WORKERS, WORKER)}
    if missing := sorted({file.name for file in WEB.glob("*.js")} - set(seen)):
        print(f"web/: found {', '.join(missing)}; allowed: files of the lists in tools/lab.py", file=sys.stderr)
        return 1
    for message in (found := unused(WEB, SCRIPTS) + unused(WEB, WORKERS)):
        print(message, file=sys.stderr)
    if shutil.which("node") is None or shutil.which("npm") is None:
        print("LEFT OUT: the linter of web/; it needs Node 20 or later, with npm", file=sys.stderr)
        return 1 if found else 0
    return 1 if lint(ROOT, seen) or found else 0


if __name__ == "__main__":
    sys.exit(main())
