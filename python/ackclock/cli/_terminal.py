"""Output to terminal and disk: tables, progress, and checks that folders are writable."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ackclock._files import check_file, check_folder, refused, resolved, scratch
from ackclock.cli._sheet import plain
from ackclock.errors import InputError, quote, shown
from ackclock.text import printable

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console, RenderableType

T = TypeVar("T")
Progress = Callable[[str, float], None]

WIDE = 140
"""Width in columns of a table written to a file or a pipe."""

PATIENCE_S = 2
"""Time after which a command shows that it is working, s."""

GRACE_S = 0.7
"""Time allowed for interrupted work to clean up, s."""

_works: list[Future[Any]] = []


def show(*parts: RenderableType) -> None:
    """Print renderables to standard output. Without a terminal the width is COLUMNS or `WIDE`, and lines have no
    trailing blanks.
    """
    if not _may_be_terminal(sys.stdout) and (text := plain(parts, width())) is not None:
        say(text)
        return
    console = _console()
    if console.is_terminal:
        for part in parts:
            console.print(_harmless(console, part), highlight=False, end="")
        return
    console = _console(width=width())
    with console.capture() as captured:
        for part in parts:
            console.print(part, highlight=False)
    say("\n".join(line.rstrip() for line in captured.get().split("\n")).rstrip("\n"))


def _harmless(console: Console, part: RenderableType) -> RenderableType:
    """Return a renderable without control characters in names; only rich's own styles may control the terminal."""
    from rich.segment import Segment, Segments
    from rich.text import Text

    lines = console.render_lines(Text(part) if isinstance(part, str) else part, pad=False)
    told = [[Segment(shown(text), style, control) for text, style, control in line] for line in lines]
    return Segments([segment for line in told for segment in (*line, Segment.line())])


def say(text: str) -> None:
    """Print arbitrary text to standard output. Control characters except line breaks are shown as text."""
    typer.echo(printable(text))


def complain(text: str) -> None:
    """Print to standard error, as `say` does; ignore a failure to write."""
    with suppress(OSError):
        typer.echo(printable(text), err=True)


def warn(text: str) -> None:
    """Print a line to standard error, with control characters shown as text; ignore a failure to write."""
    with suppress(OSError):
        typer.echo(shown(text), err=True)


def width() -> int:
    """Return the width of the terminal in columns; without a terminal, COLUMNS or `WIDE`."""
    if _may_be_terminal(sys.stdout) and (console := _console()).is_terminal:
        return console.width
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isascii() and columns.isdecimal() and int(columns) > 0 else WIDE


def _may_be_terminal(stream: Any) -> bool:
    """Return whether rich, whose import is slow, has to decide. Without a terminal it does only if the environment
    forces colour.
    """
    return stream.isatty() or any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))


def _console(*, stderr: bool = False, width: int | None = None) -> Console:
    from rich.console import Console

    # rich keeps bold and dim under NO_COLOR, but no-color.org forbids all escapes. Text in brackets is a name, not
    # markup.
    return Console(
        stderr=stderr,
        width=width,
        markup=False,
        emoji=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


def show_json(value: Any) -> None:
    """Print JSON to standard output."""
    import json

    typer.echo(json.dumps(value, indent=1, allow_nan=False))


def show_json_rows(head: Mapping[str, Any], name: str, table: pl.DataFrame) -> None:
    """Print JSON to standard output: an object with `head`, and the rows of a table under `name`. Rows are printed one
    by one, because Python values take a hundred times the memory of the table.
    """
    import json

    def text(value: Any, depth: int) -> str:
        return json.dumps(value, indent=1, allow_nan=False).replace("\n", "\n" + " " * depth)

    put = sys.stdout.write
    put("{")
    for key, value in head.items():
        put(f"\n {json.dumps(key)}: {text(value, 1)},")
    put(f"\n {json.dumps(name)}: [")
    for at, row in enumerate(table.iter_rows(named=True, buffer_size=1024)):
        put(("," if at else "") + "\n  " + text(row, 2))
    put("\n ]\n}\n" if table.height else "]\n}\n")


@contextmanager
def progress() -> Iterator[Progress]:
    """Yield a progress display on standard error: a bar on a terminal, otherwise plain lines."""
    if not _may_be_terminal(sys.stderr) or not (console := _console(stderr=True)).is_terminal:
        yield _lines()
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda text, done: bar.update(task, completed=done, description=text)


def _lines() -> Progress:
    told = -1

    def tell(text: str, done: float) -> None:
        nonlocal told
        tenth = int(done * 10 + 1e-9)
        if tenth > told:
            told = tenth
            warn(f"{tenth * 10:4d} %  {text}".rstrip())

    return tell


def interruptible(work: Callable[[], T], *, doing: Callable[[], str] | None = None) -> T:
    """Do work in another thread, so that Ctrl-C ends the command even while the engine is busy.

    Parameters
    ----------
    work
        Function that does the work.
    doing
        Function that returns the activity, shown on a terminal with the elapsed time if it takes long; None: nothing is shown.
    """
    done: Future[T] = Future()

    def call() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    _works.append(done)
    threading.Thread(target=call, daemon=True).start()
    with _clock(doing) as tick:
        _wait(done, tick)
    return done.result()


@contextmanager
def _clock(doing: Callable[[], str] | None) -> Iterator[Callable[[], None]]:
    """Show on a terminal what is being done and for how long; the line is erased at the end."""
    started = time.monotonic()
    shown = widest = 0

    def tick() -> None:
        nonlocal shown, widest
        passed = int(time.monotonic() - started)
        if doing is not None and passed > max(shown, PATIENCE_S - 1):
            shown = passed
            text = f"{doing()}, {passed} s"
            widest = max(widest, len(text))
            sys.stderr.write("\r" + text.ljust(widest))
            sys.stderr.flush()

    if doing is None or not sys.stderr.isatty():
        yield lambda: None
        return
    try:
        yield tick
    finally:
        if shown:
            sys.stderr.write("\r" + " " * widest + "\r")


def _wait(done: Future[Any], tick: Callable[[], None] = lambda: None) -> None:
    # Wait in slices: the signal may be delivered to another thread, and then does not wake this one. Joining the thread
    # does not work, because an interrupted join treats the thread as ended (Python 3.11).
    while not done.done():
        futures.wait([done], timeout=0.1)
        tick()


def busy() -> bool:
    """Return whether interrupted work is still running in its thread."""
    return any(not done.done() for done in _works)


def end() -> None:
    """End interrupted work: the engine stops at once, other work within `GRACE_S`."""
    from ackclock._results import run

    run.stopped.set()
    until = time.monotonic() + GRACE_S
    while busy() and time.monotonic() < until:
        time.sleep(0.01)


def wait() -> None:
    """Wait until interrupted work has ended."""
    for done in _works:
        _wait(done)


def writable_folder(folder: Path) -> None:
    """Check that a folder is writable, leaving no trace. Missing folders are tested elsewhere, because another
    process may be creating the same one.

    Raises
    ------
    InputError, UnavailableError
        If it cannot.
    """
    missing = [p for p in (folder, *folder.parents) if not os.path.lexists(p)]
    there = missing[-1].parent if missing else folder
    try:
        with scratch(there) as made:
            place = made / folder.relative_to(there)
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                pass
    except (OSError, ValueError) as error:
        raise refused(error, f"--out {folder}", instead="a folder that can be written") from None


def own_folder(folder: Path, names: Sequence[str], marks: Sequence[str], *, whose: str) -> None:
    """Refuse an --out that is not writable, or that would replace a file not written by ackclock. Called before anything runs.

    Parameters
    ----------
    folder, names, marks, whose
        See `ackclock._files.check_folder`.

    Raises
    ------
    InputError, UnavailableError
        If it is such a folder.
    """
    writable_folder(folder)
    try:
        check_folder(folder, names, marks, whose=whose)
    except InputError as error:
        raise InputError(f"--out {error}") from None


def writable_file(path: Path, option: str) -> None:
    """Check that a file is writable, leaving no trace.

    Raises
    ------
    InputError, UnavailableError
        If it cannot.
    """
    check_file(path, f"{option} {path}")
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return  # device, or pipe with a reader
        if path.exists():
            with path.open("ab"):
                return
        place = resolved(path, f"{option} {path}")
        with scratch(
            place.parent
        ) as part:  # under a different name, so that a killed command leaves no empty file behind
            (part / place.name).touch()
    except (OSError, ValueError) as error:
        raise refused(error, f"{option} {path}", instead="a file that can be written") from None


def page_file(path: Path, option: str) -> None:
    """Check as in `writable_file`, and that the name is that of a page, because the file will contain HTML. A device
    or pipe may have any name.

    Raises
    ------
    InputError, UnavailableError
        If it cannot be written, or has another ending.
    """
    writable_file(path, option)
    if path.suffix.lower() not in (".html", ".htm") and (path.is_file() or not path.exists()):
        raise InputError(f"{option}: found {quote(path.name)}; allowed: a name that ends in .html or .htm")


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
