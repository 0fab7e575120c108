"""The command `ackclock`. Each command imports what it needs when it runs, so that `--help` is quick.

This module imports almost nothing, because a command that runs user code is a child of this process, created before
anything is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ackclock import _wall

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv
        Arguments; None for those of the process, which then belongs to the command: a command that runs user code does
        so in a child process (`_wall`).

    Returns
    -------
    int
        0; 1 if a verdict or check differs from what is recorded; 2 for bad input; 3 if the environment cannot do it;
        130 after Ctrl-C or SIGTERM.
    """

    def carried_out() -> int:
        from ackclock.cli import _main

        return _main.carry_out(argv)

    if argv is None and _wall.needed(sys.argv[1:]) and _wall.alone():
        return _wall.behind(carried_out)
    return carried_out()
