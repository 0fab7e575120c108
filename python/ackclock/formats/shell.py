"""Bash scripts: two ways to insert untrusted text, and a final check.

Names in a scenario may come from third parties, and the script is executed, often as root. Text is therefore inserted
either as a comment, with unprintable characters shown as text, or as a word, quoted so that the shell takes it
literally.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from ackclock.errors import InputError, quote, shown

__all__ = ["comment", "join", "script", "word"]


def comment(text: str) -> str:
    r"""Return a line that the shell ignores.

    Examples
    --------
    >>> comment("two flows\nrm -rf /")
    '# two flows\\x0arm -rf /'
    """
    return f"# {shown(text)}"


def word(text: str) -> str:
    r"""Quote any content as one word; control characters are written as `$'...'`, so that the script stays
    printable.

    Raises
    ------
    InputError
        If it contains a NUL, which no word of a command can hold.

    Examples
    --------
    >>> word("cubic"), word("$(reboot)"), word("a\nb")
    ('cubic', "'$(reboot)'", "$'a\\x0ab'")
    """
    if "\0" in text:
        raise InputError(f"found {quote(shown(text))}, which holds a NUL; allowed: text that a command can take")
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(c if _PLAIN.fullmatch(c) else _bytes(c) for c in text) + "'"


def join(words: Iterable[str]) -> str:
    """Return the words of a command, each quoted."""
    return " ".join(word(one) for one in words)


def script(lines: Iterable[str]) -> str:
    """Return the script: lines of printable characters only, so that no text can start a new line.

    Parameters
    ----------
    lines
        Lines of our own text, in which untrusted text comes from `comment`, `word` or `join`.
    """
    made = list(lines)
    for line in made:
        assert line.isprintable(), f"invariant: a line of a script is printable: {line!r}"
    return "\n".join(made) + "\n"


_PLAIN = re.compile(r"[A-Za-z0-9 _./:=+,@%-]")


def _bytes(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
