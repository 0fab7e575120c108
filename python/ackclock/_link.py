"""Lab links: the fragment of the page's address contains a compressed scenario and a seed."""

from __future__ import annotations

import base64
import re
import zlib

from ackclock.errors import InputError, quote

LONGEST = 2**20
"""Maximum size of a scenario, bytes."""

_LINK = re.compile(
    r"[^#]*#s=(?P<text>[\w-]+)(?:&c=(?P<own>[\w-]+))?(?:&seed=(?P<seed>[0-9]{1,16}))?(?:&lesson=(?P<lesson>[a-z0-9-]{1,80}))?"
)


def made(text: str, seed: int | str = 1) -> str:
    """Return the link fragment for a scenario.

    Examples
    --------
    >>> made("duration", 7)
    '#s=SyktSizJzM8DAA&seed=7'
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(text.encode()) + packer.flush()
    return f"#s={base64.urlsafe_b64encode(packed).decode().rstrip('=')}&seed={seed}"


def is_link(text: str) -> bool:
    """Return whether a text looks like a link."""
    return "#s=" in text


def read(link: str) -> tuple[str, str]:
    """Return the scenario text and the seed from a link.

    Raises
    ------
    InputError
        If there is no scenario in it.

    Examples
    --------
    >>> read("http://127.0.0.1:8000/#s=SyktSizJzM8DAA&seed=7")
    ('duration', '7')
    """
    allowed = 'allowed: a link of the lab ("Copy link", or a report), #s=...&seed=...'
    found = _LINK.fullmatch(link)
    if found is None:
        raise InputError(f"lab: found {quote(link[:80])}; {allowed}")
    if found["own"]:
        raise InputError(
            "lab: found a link with a controller in JavaScript; allowed: one without, or the link in a browser"
        )
    try:
        packed = base64.urlsafe_b64decode(found["text"] + "=" * (-len(found["text"]) % 4))
        unpacker = zlib.decompressobj(-15)
        text = unpacker.decompress(packed, LONGEST + 1)
        if len(text) > LONGEST:
            raise InputError(f"lab: found a scenario of more than {LONGEST} bytes in the link; {allowed}")
        if not unpacker.eof:
            raise ValueError("it breaks off")
        return text.decode(), found["seed"] or "1"
    except (ValueError, zlib.error) as error:
        raise InputError(f"lab: found a link with no scenario in it ({error}); {allowed}") from None


def lesson(link: str) -> str:
    """Return the name of the lesson that the link was copied from; empty if there is none.

    Examples
    --------
    >>> lesson("#s=SyktSizJzM8DAA&seed=7&lesson=slow-start")
    'slow-start'
    """
    found = _LINK.fullmatch(link)
    return (found["lesson"] or "") if found else ""


def runs_in_page(scenario: str) -> bool:
    """Return whether the page's engine supports everything in the scenario: foreign stacks exist only in the native engine."""
    return '"quinn' not in scenario and '"stack:' not in scenario and '"stack"' not in scenario
