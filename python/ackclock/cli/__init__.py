"""The command `ackclock`. Each command imports what it needs when it runs, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ackclock.cli._app import app
from ackclock.errors import AckclockError

__all__ = ["app", "main"]

INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits: a defect of ours, told apart from the documented 0 to 3."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv
        Arguments; None for those of the process.

    Returns
    -------
    int
        0; 1 if a verdict or check differs from what is recorded; 2 for bad input; 3 if the environment cannot do it.
    """
    try:
        result = app(args=None if argv is None else list(argv), prog_name="ackclock", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except AckclockError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except (BrokenPipeError, SystemExit):
        # The reader (`| head`) has gone, which typer and rich turn into SystemExit; keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except MemoryError:
        return _fail("out of memory", 3)
    except ModuleNotFoundError as error:
        return _fail(f"{error.name} is not installed; run `make setup`", 3)
    except Exception as error:
        return _unforeseen(error)


def _unforeseen(error: Exception) -> int:
    if type(error).__name__ == "Abort":
        return 130
    explain = getattr(error, "format_message", None)
    if explain is not None:  # a usage error of typer, which names the option and what is allowed
        return _fail(str(explain()).replace("\n", " ").strip(), int(getattr(error, "exit_code", 2)))
    if os.environ.get("ACKCLOCK_DEBUG") == "1":
        raise error
    text = str(error).splitlines()[0] if str(error) else ""
    return _fail(
        f"internal error, please report: {type(error).__name__}: {text} (ACKCLOCK_DEBUG=1 shows where)", INTERNAL_ERROR
    )


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"ackclock: {message}\n")
    return code
