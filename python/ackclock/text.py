"""Text for readers: rates, durations and percentages; and external text with special characters escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ackclock.errors import shown

if TYPE_CHECKING:
    import polars as pl

__all__ = ["change", "count", "csv", "markdown", "printable", "rate", "seconds", "share", "xml"]

NONE = "–"
"""Sign used for a missing value."""


def rate(bps: float | None) -> str:
    """Return a rate as text.

    Examples
    --------
    >>> rate(9_544_000.0)
    '9.544 Mbit/s'
    """
    if bps is None:
        return NONE
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bps >= size:
            return f"{bps / size:.3f} {unit}"
    return f"{bps:.0f} bit/s"


def seconds(value: Any) -> str:
    """Return a duration as text.

    Examples
    --------
    >>> seconds(1.5), seconds(0.0402)
    ('1.500 s', '40.20 ms')
    """
    if value is None:
        return NONE
    return f"{value:.3f} s" if value >= 1 else f"{value * 1e3:.2f} ms"


def count(value: int | None) -> str:
    """Return a count as text.

    Examples
    --------
    >>> count(24975), count(None)
    ('24,975', '–')
    """
    return NONE if value is None else f"{value:,}"


def share(value: float | None, places: int | None = None) -> str:
    """Return a fraction as text, in percent. Only 0 is printed as 0 %, and only 1 as 100 %.

    Parameters
    ----------
    value
        Fraction; values within 1e-9 of 1 are 1.
    places
        Decimal places; None: two significant digits, whole numbers from 10 % on.

    Examples
    --------
    >>> share(0.9734), share(0.0023), share(3.8e-7), share(None)
    ('97 %', '0.23 %', '< 0.01 %', '–')
    >>> share(0.99957), share(0.99999), share(1.0), share(0.99957, 1), share(0.0004, 1)
    ('99.96 %', '> 99.99 %', '100 %', '99.96 %', '0.04 %')
    """
    if value is None:
        return NONE
    percent = value * 100
    if 0 < percent < 0.01:
        return "< 0.01 %"
    if abs(percent - 100) < 1e-7:
        percent = 100.0
    elif 99.99 < percent < 100:
        return "> 99.99 %"
    if places is None:
        text = f"{percent:.0f}" if percent >= 10 or percent == 0 else f"{percent:.2g}"
    else:
        text = f"{percent:.{places}f}"
    rounds_away = (float(text) == 100) != (percent == 100) or (float(text) == 0) != (percent == 0)
    return f"{percent:.2f} %" if rounds_away else f"{text} %"


def change(value: float | None, places: int = 2) -> str:
    """Return a relative difference as text, in percent with its sign. Only 0 is printed as 0 %.

    Examples
    --------
    >>> change(0.0141), change(-0.2, 1), change(0.0), change(3e-6), change(-3e-6), change(None)
    ('+1.41 %', '-20.0 %', '0.00 %', '< +0.01 %', '> -0.01 %', '–')
    """
    if value is None:
        return NONE
    least = 10.0**-places
    if abs(value) < EQUAL:
        return f"{0.0:.{places}f} %"
    if abs(value) * 100 < least / 2:
        return f"{'< +' if value > 0 else '> -'}{least:.{places}f} %"
    return f"{value * 100:+.{places}f} %"


EQUAL = 1e-12
"""Relative difference that is the rounding of a division."""


def printable(text: str) -> str:
    r"""Return lines with unprintable characters made visible, such as those that control a terminal or the writing
    direction.

    Examples
    --------
    >>> printable("one\ntwo\x1b[31m")
    'one\ntwo\\x1b[31m'
    """
    return text if text.isprintable() else "\n".join(shown(line) for line in text.split("\n"))


def xml(text: str) -> str:
    r"""Return an attribute value in quotes, with characters that XML does not allow made visible.

    Examples
    --------
    >>> xml('<"\x00">')
    '\'&lt;"\\x00"&gt;\''
    """
    from xml.sax.saxutils import quoteattr  # imported here because it loads urllib

    return quoteattr(shown(text))


def markdown(cells: Sequence[str]) -> str:
    r"""Return a Markdown table row with cells that cannot end the row or turn into HTML, links or code.

    Examples
    --------
    >>> markdown(["a|b", "<i>", "2"])
    '| a\\|b | \\<i\\> | 2 |'
    """
    return "| " + " | ".join(shown(cell).translate(_MARKS) for cell in cells) + " |"


_MARKS = str.maketrans({c: f"\\{c}" for c in "\\|<>`[]*_$!&"})


def csv(frame: pl.DataFrame) -> str:
    """Return a table as CSV in which no text spans several lines or is taken for a formula by a spreadsheet.

    Text that begins like a formula is prefixed with an apostrophe, which spreadsheets read as "this is text". Numbers are unchanged.

    Examples
    --------
    >>> import polars as pl
    >>> print(csv(pl.DataFrame({"name": ["=1+1", "reno"], "x": [-1, 2]})), end="")
    name,x
    '=1+1,-1
    reno,2
    """
    import polars as pl

    def harmless(text: str) -> str:
        text = shown(text)
        return f"'{text}" if text.startswith(_FORMULA) else text

    columns = [
        pl.Series(harmless(column.name), [None if v is None else harmless(v) for v in column.cast(pl.String)])
        if column.dtype in (pl.String, pl.Categorical, pl.Enum)
        else column.alias(harmless(column.name))
        for column in frame.get_columns()
    ]
    return pl.DataFrame(columns).write_csv()


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
