"""Measures the cost of an installation: megabytes of each package that pip installs with a wheel, and the CPU time of the first commands.

    python tools/weight.py [WHEEL]    # default: the one in dist/; writes measured/weight.json

Without a wheel, the package in the checkout is measured, and the output says so.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import book

ROOT = Path(__file__).resolve().parent.parent
BOUND_MB = 450
BEFORE_MB = 658
FIGURES = ("matplotlib", "fonttools", "pillow", "kiwisolver", "contourpy", "pyparsing", "cycler", "python-dateutil")
TIMES = {
    "import ackclock": ["-c", "import ackclock"],
    "ackclock --version": ["-m", "ackclock", "--version"],
    "ackclock run first": ["-m", "ackclock", "run", "first"],
    "ackclock run first --report": ["-m", "ackclock", "run", "first", "--report", "page.html"],
}
REPEATS = 5


def main() -> int:
    given = sys.argv[1:] or [str(path) for path in sorted(ROOT.glob("dist/*.whl"))[:1]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = installed(folder / "venv", given)
        sizes = by_package(next((folder / "venv" / "lib").glob("python*")) / "site-packages")
        if not given:
            sizes["ackclock"] = checkout()
        times = {what: cpu_ms(python, words, folder) for what, words in TIMES.items()}
    whole = sum(sizes.values())
    rows: list[list[str | float]] = [["all", round(whole / 1e6, 1), "MB"]]
    rows += [[n, round(size / 1e6, 1), "MB"] for n, size in sorted(sizes.items(), key=lambda s: -s[1]) if size >= 1e6]
    rows += [[what, round(ms), "ms of CPU"] for what, ms in times.items()]
    book.record(
        "weight",
        what="Size on disk of what `pip install` of a wheel brings, by package, with the bytecode that pip compiles (without pip itself), and the "
        f"CPU time of commands, the least of {REPEATS}.",
        heads=["what", "value", "unit"],
        rows=rows,
        notes=[
            f"Wanted: at most {BOUND_MB} MB. matplotlib and what it alone needs take {sum(sizes.get(n, 0) for n in FIGURES) / 1e6:.0f} of these: "
            "runs, their reports, lab and `diagnose` do without, the figures of sweeps, evaluations and studies do not.",
            f"Before plotly's one file came with reports and wheels had engines without names for debuggers: {BEFORE_MB} MB, 75 of them plotly and narwhals.",
            *(
                []
                if given
                else ["Ours is the checkout, whose engine has these names: 35 MB that a wheel does not have."]
            ),
        ],
    )
    for row in rows:
        print(*row)
    return 0


def installed(venv: Path, given: Sequence[str]) -> Path:
    """The interpreter of an environment with the wheel, or only with its dependencies, in the versions of the lock."""
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    wanted = given or tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    versions = venv / "versions.txt"
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    versions.write_text("\n".join(line.rstrip(" \\") for line in locked if "==" in line), encoding="utf-8")
    python = venv / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", versions]
    subprocess.run([*pip, *wanted], check=True)
    if not given:
        site = next((venv / "lib").glob("python*")) / "site-packages"
        about = Path(str(metadata.distribution("ackclock").locate_file(""))).glob("ackclock-*.dist-info")
        shutil.copytree(next(about), site / "ackclock-0.dist-info")
        (site / "ackclock.pth").write_text(str(ROOT / "python"), encoding="utf-8")
    return python


def by_package(site: Path) -> dict[str, int]:
    """Bytes on disk of each package's files."""
    found = {}
    for package in metadata.distributions(path=[str(site)]):
        files = {Path(str(package.locate_file(f))) for f in package.files or ()}
        if package.name not in ("pip", "setuptools"):
            found[package.name] = sum(on_disk(path) for path in files)
    return found


def checkout() -> int:
    listed = subprocess.run(["git", "ls-files", "python"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    engine = (ROOT / "python" / "ackclock").glob("_engine*.so")
    return sum(on_disk(path) for path in [*(ROOT / line for line in listed.splitlines()), *engine])


def on_disk(path: Path) -> int:
    return path.stat().st_blocks * 512 if path.is_file() else 0


def cpu_ms(python: Path, words: Sequence[str], folder: Path) -> float:
    """Minimum CPU time of a command, ms; the first run, which compiles bytecode, does not count."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    taken = []
    for _ in range(REPEATS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([python, *words], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min(taken[1:])


if __name__ == "__main__":
    sys.exit(main())
