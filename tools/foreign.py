"""Plays all shipped scenarios, and drawn ones, on other processors under emulation, and compares their digests with this machine's.

tools/foreign.py [PROCESSOR ...] [--drawn N]

Processors: aarch64, and s390x, which is big-endian. Each needs its Rust target and three Debian packages. Processors
with missing parts are reported and skipped, with exit code 3 if none is left. Exit code 1 if a digest differs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SEED = 1
PROFILE = "quick"


class Processor(NamedTuple):
    """Processor -> commands to build and run programs for it."""

    name: str
    order: str
    packages: tuple[str, ...]

    @property
    def target(self) -> str:
        return f"{self.name}-unknown-linux-gnu"

    @property
    def linker(self) -> str:
        return f"{self.name}-linux-gnu-gcc"

    @property
    def emulator(self) -> str:
        return f"qemu-{self.name}"

    @property
    def root(self) -> Path:
        """Path of the processor's C library."""
        return Path(f"/usr/{self.name}-linux-gnu")

    def missing(self) -> list[str]:
        """Commands to install missing parts."""
        lacks = []
        sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout
        if not (Path(sysroot.strip()) / "lib" / "rustlib" / self.target).is_dir():
            lacks.append(f"rustup target add {self.target}")
        # start files are in the C library's development package, which the compiler's package only recommends
        start = self.root / "lib" / "crti.o"
        if not (shutil.which(self.linker) and shutil.which(self.emulator) and start.is_file()):
            lacks.append(f"apt-get install {' '.join(self.packages)}")
        return lacks


PROCESSORS = (
    Processor(
        name="aarch64", order="little-endian", packages=("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user")
    ),
    Processor(name="s390x", order="big-endian", packages=("gcc-s390x-linux-gnu", "libc6-dev-s390x-cross", "qemu-user")),
)


def jobs(drawn: int) -> list[tuple[str, int, str]]:
    """Runs to play: a name, the seed, the scenario as engine text."""
    import ackclock
    from ackclock._link import runs_in_page

    folder = ROOT / "python" / "ackclock" / "_scenarios"
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.toml"))}
    shipped = [name for name, text in texts.items() if runs_in_page(text)]  # foreign stacks may differ in bits
    found = [(name, SEED, ackclock.load(name).to_engine_json()) for name in shipped]
    if drawn:
        sys.path.insert(0, str(ROOT / "tests" / "python"))
        from engine import test_laws

        found += [(f"drawn {n}", n, test_laws.drawn(n).to_engine_json()) for n in range(drawn)]
    return found


def built(processor: Processor) -> Path:
    """The engine's digest program, built for that processor."""
    command = ["cargo", "build", "--package", "ackclock-sim", "--example", "digests", "--locked", "--quiet"]
    variable = f"CARGO_TARGET_{processor.target.upper().replace('-', '_')}_LINKER"
    environment = {**os.environ, variable: processor.linker}
    subprocess.run(
        [*command, "--target", processor.target, "--profile", PROFILE], cwd=ROOT, env=environment, check=True
    )
    return ROOT / "target" / processor.target / PROFILE / "examples" / "digests"


def played(processor: Processor, program: Path, asked: list[tuple[str, int, str]]) -> list[str]:
    """The digests, in order."""
    lines = "".join(f"{seed} {text}\n" for _, seed, text in asked)
    command = [processor.emulator, "-L", str(processor.root), str(program)]
    told = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise SystemExit(f"{processor.name}: the program ended with {told.returncode}: {told.stderr.strip()}")
    return told.stdout.split()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("processors", nargs="*", metavar="PROCESSOR")
    parser.add_argument(
        "--drawn", type=int, default=0, metavar="N", help="so many drawn scenarios, too (needs the tests' packages)"
    )
    asked = parser.parse_args()
    known = [one.name for one in PROCESSORS]
    for name in asked.processors:
        if name not in known:
            parser.error(f"found {name}; allowed: {', '.join(known)}")
    chosen = [one for one in PROCESSORS if not asked.processors or one.name in asked.processors]
    able = []
    for processor in chosen:
        lacks = processor.missing()
        if lacks:
            print(f"LEFT OUT: {processor.name} ({processor.order}); it needs: {'; '.join(lacks)}")
        else:
            able.append(processor)
    if not able:
        return 3
    from ackclock import _engine

    work = jobs(asked.drawn)
    native = [_engine.run(text, seed)["digest"] for _, seed, text in work]
    differ = 0
    for processor in able:
        program = built(processor)
        began = time.monotonic()
        found = played(processor, program, work)
        wrong = [name for (name, _, _), own, here in zip(work, found, native, strict=True) if own != here]
        differ += len(wrong)
        print(
            f"{processor.name} ({processor.order}): {len(work) - len(wrong)} of {len(work)} digests equal those of this machine, "
            f"{time.monotonic() - began:.0f} s" + (f"; other: {', '.join(wrong)}" if wrong else "")
        )
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
