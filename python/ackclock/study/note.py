"""Text with numbers taken from the evidence: claims' notes, and passages in documents.

A template names a number as `{key}`, the `key` of a piece of evidence of the same claim, or `{P5.key}`, one of another claim:

========================  ==============================================================
`{key}`                   value with unit: `6.0 %`
`{key:i}`                 with its 95 % interval: `6.0 % (5.8 to 6.2)`
`{key:n}`                 the bare number: `6.0`
`{key@paper}`             as recorded at that scale, with a remark unless the run has it
========================  ==============================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from string import Formatter

from ackclock.errors import InputError
from ackclock.judge.bound import interval, number

Lookup = Callable[[str, str], "Quoted"]
"""(claim and key, scale or "") -> quoted number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quoted:
    """A number quoted in the text of a note.

    Parameters
    ----------
    value, low, high
        Value and 95 % interval; None for exact values.
    unit
        Unit of all three.
    taken
        Where the number comes from, if not from the run described.
    """

    value: float
    low: float | None
    high: float | None
    unit: str
    taken: str = ""

    def text(self, form: str) -> str:
        """Format the number in one of a template's forms: "", "i" or "n"."""
        if form == "n":
            return number(self.value)
        told = number(self.value, self.unit)
        inside = (
            [interval(self.low, self.high)] if form == "i" and self.low is not None and self.high is not None else []
        )
        inside += [self.taken] if self.taken else []
        return f"{told} ({'; '.join(inside)})" if inside else told


def fill(template: str, lookup: Lookup) -> str:
    """Insert the numbers into a template.

    Raises
    ------
    InputError
        If it names an unknown number.
    """
    made = []
    for literal, name, form, _ in Formatter().parse(template):
        made.append(literal)
        if name is None:
            continue
        if form not in ("", "i", "n"):
            raise InputError(f"template: found {{{name}:{form}}}; allowed: {{{name}}}, {{{name}:i}}, {{{name}:n}}")
        key, _, scale = name.partition("@")
        made.append(lookup(key, scale).text(form or ""))
    return "".join(made)


_NUMBER = re.compile(r"(?<![\w.§])[-−]?\d+(?:[.,]\d+)*(?!\w)")


def typed_in(template: str, setting: str) -> list[str]:
    """Return the numbers written literally in a template, except those occurring in `setting` (names, cells and bounds)."""
    own = "".join(literal for literal, *_ in Formatter().parse(template))
    known = set(_NUMBER.findall(setting))
    return [text for text in _NUMBER.findall(own) if text not in known]
