"""Measures the cost of an installation: the size in megabytes of each package installed by pip with a wheel, and the CPU time of the first commands.

    python tools/weight.py [WHEEL]    # default: the one in dist/; writes measured/weight.json

Without a wheel, the files that a wheel would pack are measured in the checkout, and the output says so.
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
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BOUND, BEFORE = 450, 632
"""Total size of all packages, MiB, as reported by `du -m`: the target, and the environment before anything was removed."""
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
        site = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
        sizes = by_package(site)
        if not given:
            sizes["ackclock"] = checkout(folder / "ours")
        whole = sum(on_disk(path) for path in (folder / "venv").rglob("*")) + (0 if given else sizes["ackclock"])
        times = {what: cpu_ms(python, words, folder) for what, words in TIMES.items()}
        pip(python, PROJECT["optional-dependencies"]["figures"])
        figures = {name: size for name, size in by_package(site).items() if name not in sizes}
    packages, more = sum(sizes.values()), sum(figures.values())
    rows: list[list[str | float]] = [
        ["all", round(packages / 1e6, 1), "MB"],
        ["all, as du -m counts", round(packages / 2**20, 1), "MiB"],
        ["with pip and setuptools of the environment", round(whole / 2**20, 1), "MiB"],
    ]
    rows += [[n, round(size / 1e6, 1), "MB"] for n, size in sorted(sizes.items(), key=lambda s: -s[1]) if size >= 1e6]
    rows += [["the extra figures", round(more / 1e6, 1), "MB more"]]
    rows += [[what, round(ms), "ms of CPU"] for what, ms in times.items()]
    book.record(
        "weight",
        what="Size on disk of what `pip install` of a wheel brings, by package, with the bytecode that pip compiles (without pip itself), and the "
        f"CPU time of commands, the least of {REPEATS}.",
        heads=["what", "value", "unit"],
        rows=rows,
        notes=[
            f"Wanted: at most {BOUND} MiB without extras, from {BEFORE} MiB ({BEFORE * 2**20 / 1e6:.0f} MB): those had plotly, engines with names for debuggers, "
            "and matplotlib.",
            f"The extra `figures` is matplotlib with {', '.join(sorted(name for name in figures if name != 'matplotlib'))}.",
            *([] if given else ["Ours is what a wheel packs of this checkout, with the engine stripped and bytecode."]),
        ],
    )
    for row in rows:
        print(*row)
    return 0


def installed(venv: Path, given: Sequence[str]) -> Path:
    """Interpreter of an environment with the wheel, or with only its dependencies, in the locked versions."""
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    versions = venv / "versions.txt"
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    versions.write_text("\n".join(line.rstrip(" \\") for line in locked if "==" in line), encoding="utf-8")
    python = venv / "bin" / "python"
    pip(python, given or PROJECT["dependencies"])
    if not given:
        site = next((venv / "lib").glob("python*")) / "site-packages"
        about = Path(str(metadata.distribution("ackclock").locate_file(""))).glob("ackclock-*.dist-info")
        shutil.copytree(next(about), site / "ackclock-0.dist-info")
        (site / "ackclock.pth").write_text(str(ROOT / "python"), encoding="utf-8")
    return python


def pip(python: Path, wanted: Sequence[str]) -> None:
    versions = python.parent.parent / "versions.txt"
    options = ["--quiet", "--disable-pip-version-check", "-c", str(versions)]
    subprocess.run([python, "-m", "pip", "install", *options, *wanted], check=True)


def by_package(site: Path) -> dict[str, int]:
    """Size on disk of each package's files, bytes."""
    found = {}
    for package in metadata.distributions(path=[str(site)]):
        files = {Path(str(package.locate_file(f))) for f in package.files or ()}
        if package.name not in ("pip", "setuptools"):
            found[package.name] = sum(on_disk(path) for path in files)
    return found


def checkout(folder: Path) -> int:
    """Size of our own package as installed from a wheel, bytes: files packed from the checkout, a stripped engine, bytecode."""
    listed = subprocess.run(["git", "ls-files", "python"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    packed = [ROOT / line for line in listed.splitlines()]
    packed += (ROOT / "python" / "ackclock" / name for name in ("_lab/lab.html", "linux/sources.tar.xz"))
    packed += (ROOT / "python" / "ackclock").glob("_engine*.so")
    packed += (ROOT / name for name in (*PROJECT["license-files"], "sbom.cyclonedx.json"))
    packed += (ROOT / "ackclock._engine.data").rglob("*.1")
    for file in packed:
        if file.is_file():
            copy = folder / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            if copy.suffix == ".so":
                subprocess.run(["strip", copy], check=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", folder / "python"], check=True)
    return sum(on_disk(path) for path in folder.rglob("*"))


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
