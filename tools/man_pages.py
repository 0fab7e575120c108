"""Writes a manual page for each command, from the command's help, for wheels: share/man/man1 below the folder used by maturin as a wheel's data.

None of the pages is committed. They contain no date, so that identical commands give identical bytes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ackclock import __version__
from ackclock.cli._app import SECTIONS, app

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "ackclock._engine.data" / "data" / "share" / "man" / "man1"
"""Folder for the pages. Maturin packs a folder with the module's name and `.data` if there is one."""

STATUS = (
    ("0", "The command ran; what it found is in its output."),
    ("1", "A check that was asked for failed: the help of the command says which."),
    ("2", "Bad input; one line says what was asked, found and allowed."),
    ("3", "This machine cannot do it: no kernel is built, no scheduler answers, the disk is full."),
    ("4", "A run failed, because the engine or the controller raised an error."),
    ("70", "Internal error, a defect of ackclock."),
    ("130", "Stopped by Ctrl-C or SIGTERM; finished runs of sweeps and evaluations are kept."),
)
WIDE = 78
"""Width of a synopsis, columns."""


def main(place: Path = PLACE) -> int:
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.1"):
        old.unlink()
    for name, text in pages().items():
        (place / f"{name}.1").write_text(text, encoding="utf-8")
    return 0


def pages() -> dict[str, str]:
    """Name -> page, for all commands and subcommands."""
    names = [name for name, _ in commands()]
    return {name: page(name, command, names) for name, command in commands()}


def commands(command: Any = app, name: str = "ackclock") -> Iterator[tuple[str, Any]]:
    """Each command with the name of its page, parents before their subcommands."""
    yield name, command
    for below in getattr(command, "commands", {}):
        yield from commands(command.commands[below], f"{name}-{below}")


def page(name: str, command: Any, names: list[str]) -> str:
    """The page in roff's man macros."""
    import click

    words = name.split("-")
    context = click.Context(command, info_name=" ".join(words))
    about = [part.strip() for part in re.split(r"\n\s*\n", command.help or "") if part.strip()]
    brief = about[0].split(". ")[0].rstrip(".")
    out = [
        f'.TH "{name.upper()}" "1" "" "ackclock {__version__}" "ackclock"',
        ".nh",  # options and names must not be hyphenated
        ".ad l",
        ".SH NAME",
        f"{roff(name)} \\- {roff(brief[:1].lower() + brief[1:])}",
        ".SH SYNOPSIS",
        f".B {roff(' '.join(words))}",
        roff(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *paragraphs(about),
    ]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.get_params(context) if p.param_type_name == "option" and not p.hidden]
    out += listed("ARGUMENTS", [(p.make_metavar(context), told(p)) for p in arguments])
    below = getattr(command, "commands", {})
    for title, some in (SECTIONS if name == "ackclock" else {"Commands": tuple(below)}).items():
        out += listed(title.upper(), [(f"{name}-{one}(1)", short(below[one])) for one in some if one in below])
    records = [record for p in options if (record := p.get_help_record(context))]
    out += listed("OPTIONS", [(" ".join(head.split()), " ".join(text.split())) for head, text in records])
    out += listed("EXIT STATUS", STATUS)
    kin = related(name, names)
    return "\n".join([*out, ".SH SEE ALSO", ", ".join(f"\\fB{roff(one)}\\fR(1)" for one in kin), ""])


def related(name: str, names: list[str]) -> list[str]:
    """The parent command, its other subcommands, and the command's own subcommands."""
    above = name.rpartition("-")[0]
    beside = [one for one in names if above not in ("", "ackclock") and one.rpartition("-")[0] == above and one != name]
    below = [one for one in names if one.rpartition("-")[0] == name]
    return [*([above] if above else []), *(beside or below)]


def short(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def told(argument: Any) -> str:
    """An argument's help, and whether it is required."""
    text = " ".join((argument.help or "").split())
    return f"{text} Required.".strip() if argument.required else text


def paragraphs(texts: list[str]) -> list[str]:
    return [line for text in texts for line in (".PP", roff(" ".join(text.split())))]


def listed(title: str, rows: Any) -> list[str]:
    """A section with a list; empty without rows."""
    out = [line for head, text in rows for line in (".TP", f".B {roff(head)}", roff(text))]
    return [f".SH {roff(title)}", *out] if out else []


def roff(text: str) -> str:
    """The text with characters special to roff escaped; hyphens are kept as typed."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


if __name__ == "__main__":
    sys.exit(main())
