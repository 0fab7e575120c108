"""Trouble simulation: `python tools/trouble.py --seed S --steps N`, or `--seed S --story K` to replay one of its stories.

Commands are killed, or encounter a failing disk, a second writer, jumping clocks or damaged bytes, all drawn from the
seed. The final files are compared bit for bit with an undisturbed command's. `tests/python/trouble/stories.py` lists
the troubles. Needs a C compiler, and `unshare` for full disks. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests" / "python" / "trouble"


def main() -> int:
    sys.path[:0] = [str(HERE), str(ROOT / "tests" / "python" / "sweep")]
    from troubled import again

    program = "power.py" if "--power" in sys.argv else "stories.py"
    with tempfile.TemporaryDirectory(prefix="trouble-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        done = again(Path(place), HERE / program, [place, *sys.argv[1:]])
    sys.stdout.write(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
