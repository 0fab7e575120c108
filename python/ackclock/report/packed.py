"""Text packed into a page: compressed, in letters that HTML leaves alone, unpacked by the reader's browser.

The library that draws the interactive figures has 4.8 MB; packed it has 1.8 MB. Base 85 costs a quarter over the bytes, base 64 a
third.
"""

from __future__ import annotations

import base64
import zlib
from functools import cache

_SAFE = str.maketrans("<&", ",'")
"""The alphabet of RFC 1924 without the two letters that mean something in HTML."""

SCRIPT = """
const unpack = async (id) => {
  const text = document.getElementById(id).textContent;
  const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%'()*+-;,=>?@^_`{|}~";
  const value = new Uint8Array(128);
  for (let i = 0; i < 85; i++) value[letters.charCodeAt(i)] = i;
  const whole = Math.ceil(text.length / 5), bytes = new Uint8Array(whole * 4);
  for (let i = 0; i < whole; i++) {
    let sum = 0;
    for (let k = 0; k < 5; k++) sum = sum * 85 + (5 * i + k < text.length ? value[text.charCodeAt(5 * i + k)] : 84);
    for (let k = 3; k >= 0; k--) { bytes[4 * i + k] = sum % 256; sum = Math.floor(sum / 256); }
  }
  const packed = bytes.subarray(0, whole * 4 - (whole * 5 - text.length));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return await new Response(stream).text();
};
"""
"""Defines `unpack(id)`: a promise of the text in the element with this id."""


def pack(text: str) -> str:
    """Compress text; `SCRIPT` unpacks it.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    str
        Letters of ASCII, none of them `<` or `&`.

    Examples
    --------
    >>> unpack(pack("windows over time"))
    'windows over time'
    """
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode().translate(_SAFE)


def unpack(packed: str) -> str:
    """Text from its packed form, as the browser unpacks it."""
    back = packed.translate(str.maketrans(",'", "<&"))
    return zlib.decompress(base64.b85decode(back)).decode()


LIBRARY = "plotly.js.packed"
NOTICES = "plotly.js.txt"
"""The library that draws interactive figures, packed, and its notices: of others, written by tools/plotly_js.py."""

VERSION = "4.1.1"
"""Version of the library."""


def _ours(name: str) -> str:
    from importlib.resources import files

    return files("ackclock.report").joinpath(name).read_text(encoding="utf-8")


@cache
def notices() -> str:
    """Authors and licences of the page's scripts: as plain text, because packed they would not be seen."""
    return _ours(NOTICES).strip()


@cache
def plotly() -> str:
    """The drawing library, packed."""
    return _ours(LIBRARY)
