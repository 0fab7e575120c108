"""Parses the words of `tc` commands (rates, times, sizes and percentages in iproute2's syntax) and the surrounding shell script."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from fractions import Fraction

from ackclock.errors import InputError, quote

__all__ = ["bits", "commands", "duration", "links_of_mininet", "share", "size"]

RATES = {
    "": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12, "kibit": 2**10, "mibit": 2**20, "gibit": 2**30,
    "bps": 8, "kbps": 8 * 10**3, "mbps": 8 * 10**6, "gbps": 8 * 10**9, "kibps": 2**13, "mibps": 2**23, "gibps": 2**33,
}  # fmt: skip
"""Factors to bit/s; a bare number is bit/s, and "bps" means bytes."""

TIMES = {
    "": 10**3, "ns": 1, "nsec": 1, "nsecs": 1, "us": 10**3, "usec": 10**3, "usecs": 10**3, "ms": 10**6, "msec": 10**6, "msecs": 10**6,
    "s": 10**9, "sec": 10**9, "secs": 10**9,
}  # fmt: skip
"""Factors to ns; a bare number is microseconds."""

SIZES = {
    "": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30, "kbit": 2**7, "mbit": 2**17, "gbit": 2**27,
}  # fmt: skip
"""Factors to bytes, with k = 1,024."""

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([a-zA-Z]*)")


def _amount(text: str, units: dict[str, int], what: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if not match or match[2].lower() not in units:
        raise InputError(f"{what}: found {quote(text)}; allowed: a number and one of {', '.join(filter(None, units))}")
    return int(Fraction(match[1]) * units[match[2].lower()] + Fraction(1, 2))


def bits(text: str) -> int:
    """Return a rate, bit/s."""
    return _amount(text, RATES, "rate")


def duration(text: str) -> int:
    """Return a time, ns."""
    return _amount(text, TIMES, "time")


def size(text: str) -> int:
    """Return a size, bytes. The cell size behind a slash is obsolete and ignored."""
    return _amount(text.partition("/")[0], SIZES, "size")


def share(text: str) -> float:
    """Return a percentage, with or without its sign, as a fraction."""
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"share: found {quote(text)}; allowed: 0% to 100%")
    return value


_ASSIGNMENT = re.compile(r"(?:export\s+|local\s+|readonly\s+)?([A-Za-z_]\w*)=(\S*|\"[^\"]*\"|'[^']*')\s*;?\s*")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_TC = re.compile(r"(?:^|[\s'\"(&|;/])(tc\s+(?:-\S+\s+)*(?:qdisc|class|filter|-n(?:etns)?)\b[^'\"|&;\n]*)")


def commands(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Return the `tc` commands in a shell script, or in the strings of a Python program: line, namespace, words after `tc`.

    Variables that the script assigns are replaced by their values; a command with any other variable is refused.
    """
    values: dict[str, str] = {}
    lines = re.sub(r"\\\n", "  ", text).splitlines()
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if line.startswith("#"):
            continue
        if given := _ASSIGNMENT.fullmatch(line):
            values[given[1]] = _filled(given[2].strip("\"'"), values, number, known=False)
            continue
        for match in _TC.finditer(line):
            words = shlex.split(_filled(match[1], values, number), comments=True)[1:]
            before = line[: match.start(1)]
            namespace = re.search(r"ip\s+netns\s+exec\s+(\S+)", before)
            host = re.search(r"(\w+)\.cmd\(", before)
            place = _filled(namespace[1], values, number) if namespace else host[1] if host else ""
            while words and words[0].startswith("-"):
                if words[0] in ("-n", "-netns"):
                    place = words[1]
                    words = words[1:]
                words = words[1:]
            if words:
                yield number, place, words


def _filled(text: str, values: dict[str, str], number: int, *, known: bool = True) -> str:
    def value(match: re.Match[str]) -> str:
        name, default = match[1] or match[3], match[2]
        if name in values:
            return values[name]
        if default is not None:
            return default
        if known:
            raise InputError(
                f"line {number}: found ${name}, which has no value; allowed: names that the script gives a value before"
            )
        return match[0]

    return _VARIABLE.sub(value, text)


TC_LINK = (
    "bw",
    "delay",
    "jitter",
    "loss",
    "max_queue_size",
    "use_hfsc",
    "use_tbf",
    "use_htb",
    "enable_ecn",
    "enable_red",
    "burst",
    "latency_ms",
)
"""Options of Mininet's `TCLink` that describe the link."""


def links_of_mininet(text: str) -> list[tuple[int, dict[str, object]]]:
    """Return the options of the links in a Mininet program, in call order: line, options. A call to
    `addLink` counts if it has one of these options, directly or in a dictionary passed with `**`.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    named: dict[str, dict[str, object]] = {}
    plain: dict[str, object] = {}

    def value(node: ast.expr) -> object:
        if isinstance(node, ast.Name) and node.id in plain:
            return plain[node.id]
        try:
            return ast.literal_eval(node)
        except ValueError:
            return node

    def options(call: ast.Call) -> dict[str, object]:
        made: dict[str, object] = {}
        for word in call.keywords:
            if word.arg is None:
                made |= named.get(getattr(word.value, "id", ""), {})
            else:
                made[word.arg] = value(word.value)
        return made

    found: list[tuple[int, dict[str, object]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "dict":
                named[name] = options(node.value)
            elif isinstance(given := value(node.value), dict):
                named[name] = {str(key): of for key, of in given.items()}
            elif not isinstance(given, ast.expr):
                plain[name] = given
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            "addLink",
            "TCLink",
        ):
            made = {key: of for key, of in options(node).items() if key in TC_LINK and of is not None}
            for key, of in made.items():
                if isinstance(of, ast.expr):
                    raise InputError(
                        f"line {node.lineno}: {key}: found {quote(ast.unparse(of))}; allowed: a number or a text, or a name that has one"
                    )
            if made:
                found.append((node.lineno, made))
    return sorted(found, key=lambda entry: entry[0])
