"""The entry point of `ackclock`: streams, signals, one-line errors, exit codes."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from ackclock import _files, _wall
from ackclock.errors import AckclockError, said, shown

__all__ = ["carry_out"]

INTERRUPTED = 130
"""128 + SIGINT, the exit code that shells use."""

LONGEST = 1000
"""Maximum number of characters in a message."""

INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits: a bug in ackclock, distinct from the documented codes 0 to 3."""


def carry_out(argv: Sequence[str] | None = None) -> int:
    """Run the command in this process."""
    from ackclock.cli._app import app

    _files.begin()
    _wall.forget()
    _prepare_streams()
    _heed_sigterm()
    gc.set_threshold(
        50_000
    )  # start-up creates many objects but no garbage, and garbage collection took a tenth of its time
    if "_ACKCLOCK_COMPLETE" in os.environ:
        from ackclock.cli import _complete

        _complete.join_words()
    try:
        if sys.stdout is None:
            return _fail("standard output: found closed; allowed: open", 3)
        stdout = sys.stdout
        words = _habits(sys.argv[1:] if argv is None else list(argv))
        result = app(args=words, prog_name="ackclock", standalone_mode=False)
        if (code := _wall.ran()) and (sys.stdout is not stdout or stdout.closed):
            return _fail(f"{code}: found that it took standard output away; allowed: code that leaves it as it is", 2)
        stdout.flush()
        if result == INTERRUPTED:  # typer returns this code after KeyboardInterrupt
            return _interrupted()
        return result if isinstance(result, int) else 0
    except AckclockError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _interrupted()
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code in (0, None) and not _wall.ran():
            return 0  # shell completion has printed its result
        if isinstance(error, SystemExit) and not _reader_gone():
            return _unforeseen(error)
        # The process reading the pipe (`| head`) has closed it, which typer and rich turn into SystemExit. Discarding
        # the output keeps the interpreter from complaining at exit.
        _discard(1)
        return 0
    except OSError as error:
        if error.filename is not None:
            return _unforeseen(error)
        # File errors carry a file name; errors of standard output do not.
        _discard(1)
        return _fail(f"standard output: cannot be written ({(error.strerror or str(error)).lower()})", 3)
    except MemoryError:
        return _fail("out of memory", 3)
    except ModuleNotFoundError as error:
        return _fail(f"{error.name} is not installed; run `make setup`", 3)
    except BaseException as error:  # raised by user code: GeneratorExit, and classes derived from BaseException
        return _unforeseen(error)
    finally:
        _files.end()


def _habits(words: list[str]) -> list[str]:
    """Translate words accepted by other tools into options: `help`, `help COMMAND`, `version`."""
    if words[:1] == ["help"]:
        return [*words[1:], "--help"]
    return ["--version"] if words == ["version"] else words


def _unforeseen(error: BaseException) -> int:
    if type(error).__name__ == "Abort":
        return _interrupted()
    if type(error).__module__ == "sqlite3" and str(error) == "interrupted":  # after KeyboardInterrupt
        return _interrupted()
    if hasattr(error, "format_message"):
        from ackclock.cli._usage import explain

        return _fail(explain(error), int(getattr(error, "exit_code", 2)))
    if os.environ.get("ACKCLOCK_DEBUG") == "1":
        raise error
    text = said(error).removeprefix(f"{type(error).__name__}: ").splitlines()[0]
    if place := _in_a_study(error):
        return _fail(f"{place}: {type(error).__name__}: {text} (ACKCLOCK_DEBUG=1 shows all of it)", 2)
    if code := _wall.ran():
        found = "SystemExit" if isinstance(error, SystemExit) else f"{type(error).__name__}: {text}"
        return _fail(
            f"{code}: found a command that fails after this code has run in its process ({found}; ACKCLOCK_DEBUG=1 shows where); "
            "allowed: code that leaves streams and modules as they are; please report it if the code does",
            2,
        )
    return _fail(
        f"internal error, please report: {type(error).__name__}: {text} (ACKCLOCK_DEBUG=1 shows where)", INTERNAL_ERROR
    )


def _in_a_study(error: BaseException) -> str:
    """Return the line in a user's study where an error was raised; empty if it did not pass through one."""
    place, step = "", error.__traceback__
    while step is not None:
        frame = step.tb_frame
        if str(frame.f_globals.get("__name__")).startswith("_ackclock_study_"):  # module name set by `study.plugin`
            place = f"{frame.f_code.co_filename}, line {step.tb_lineno}"
        step = step.tb_next
    return place


def _fail(message: str, code: int) -> int:
    message = shown(message)
    if len(message) > LONGEST:  # for example because of a long name in the input
        message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
    try:
        sys.stderr.write(f"ackclock: {message}\n")
        sys.stderr.flush()
    except (
        OSError,
        ValueError,
        AttributeError,
    ):  # the stream has no reader, or user code has closed it; the exit code still reports the result
        with suppress(OSError):
            _discard(2)
    return code


def _heed_sigterm() -> None:
    """Handle SIGTERM like Ctrl-C: batch systems send it before they kill a process."""

    def end(number: int, frame: object) -> None:
        _wall.heard(number, frame)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def _interrupted() -> int:
    terminal = sys.modules.get("ackclock.cli._terminal")
    if terminal is not None and terminal.busy():
        with suppress(KeyboardInterrupt):
            terminal.end()
    # Do not wait for threads that are still running, for example in a user's hook.
    if any(t is not threading.main_thread() and not t.daemon for t in threading.enumerate()) or (
        terminal is not None and terminal.busy()
    ):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError):
                stream.flush()
        os._exit(INTERRUPTED)
    return INTERRUPTED


def _prepare_streams() -> None:
    """Adapt to the caller's streams: some may be closed, or use an encoding that lacks our characters."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # otherwise the next file to be opened would get this number and receive the output
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def _reader_gone() -> bool:
    """Return whether standard output is a pipe that nothing reads."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _discard(stream: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
