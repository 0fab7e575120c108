"""Embeds text in a page, compressed and encoded in characters that need no escaping in HTML; the reader's browser
unpacks it.

The library that draws the interactive figures is 1.2 MB, or 0.5 MB when packed. Base 85 adds a quarter to the size,
base 64 a third.
"""

from __future__ import annotations

import base64
import zlib
from functools import cache

_SAFE = str.maketrans("<&", ",'")
"""RFC 1924 alphabet without the two characters that have a meaning in HTML."""

SCRIPT = """
const inflate = (from) => {
  let at = 2, hold = 0, bits = 0, to = new Uint8Array(8 * from.length), size = 0;
  const need = (n) => { while (bits < n) { hold |= from[at++] << bits; bits += 8; } };
  const take = (n) => { need(n); const value = hold & ((1 << n) - 1); hold >>>= n; bits -= n; return value; };
  const table = (lengths) => {
    const count = new Uint16Array(16), next = new Uint16Array(16), found = new Uint16Array(32768);
    for (const length of lengths) count[length]++;
    count[0] = 0;
    for (let length = 1; length < 16; length++) next[length] = (next[length - 1] + count[length - 1]) << 1;
    lengths.forEach((length, symbol) => {
      if (!length) return;
      let code = next[length]++, turned = 0;
      for (let k = 0; k < length; k++) { turned = (turned << 1) | (code & 1); code >>= 1; }
      for (; turned < 32768; turned += 1 << length) found[turned] = (symbol << 4) | length;
    });
    return found;
  };
  const decode = (codes) => { need(15); const found = codes[hold & 32767]; hold >>>= found & 15; bits -= found & 15; return found >> 4; };
  const room = (more) => {
    if (size + more <= to.length) return;
    const wider = new Uint8Array(2 * to.length + more);
    wider.set(to); to = wider;
  };
  // Each code stands for a range: those of lengths grow after each four, those of distances after each two.
  const ranges = (first, after, codes) => {
    const base = [], extra = [];
    for (let k = 0, value = first; k < codes; k++) {
      const more = Math.max(0, Math.floor(k / after) - 1);
      base.push(value); extra.push(more); value += 1 << more;
    }
    return [base, extra];
  };
  const [lengths, lengthBits] = ranges(3, 4, 28), [distances, distanceBits] = ranges(1, 2, 30);
  lengths.push(258); lengthBits.push(0);
  for (let last = 0; !last;) {
    last = take(1);
    const kind = take(2);
    if (kind === 0) {
      at -= bits >> 3; hold = bits = 0;
      const many = from[at] | (from[at + 1] << 8);
      room(many); to.set(from.subarray(at + 4, at + 4 + many), size); at += 4 + many; size += many;
      continue;
    }
    let all = Array.from({ length: 320 }, (_, k) => k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : k < 288 ? 8 : 5), many = 288;
    if (kind === 2) {
      many = take(5) + 257;
      const further = take(5) + 1, given = take(4) + 4, first = new Array(19).fill(0);
      for (let k = 0; k < given; k++) first[[16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15][k]] = take(3);
      const codes = table(first);
      for (all = []; all.length < many + further;) {
        const symbol = decode(codes);
        if (symbol < 16) { all.push(symbol); continue; }
        const again = symbol === 16 ? all[all.length - 1] : 0;
        for (let k = symbol === 16 ? 3 + take(2) : symbol === 17 ? 3 + take(3) : 11 + take(7); k > 0; k--) all.push(again);
      }
    }
    const letters = table(all.slice(0, many)), backwards = table(all.slice(many));
    for (let symbol = decode(letters); symbol !== 256; symbol = decode(letters)) {
      room(258);
      if (symbol < 256) { to[size++] = symbol; continue; }
      const length = lengths[symbol - 257] + take(lengthBits[symbol - 257]), code = decode(backwards);
      const back = distances[code] + take(distanceBits[code]);
      for (let k = 0; k < length; k++, size++) to[size] = to[size - back];
    }
  }
  return to.subarray(0, size);
};
const unpack = (id) => {
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
  return new TextDecoder().decode(inflate(bytes.subarray(0, whole * 4 - (whole * 5 - text.length))));
};
"""
"""Definition of `unpack(id)`, which returns the text of the element with this id synchronously (RFC 1951). The
browser's own DecompressionStream is asynchronous, so a page printed right after loading would have no figures.
"""


def pack(text: str) -> str:
    """Compress text for unpacking by `SCRIPT`.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    str
        ASCII characters, none of them `<` or `&`.

    Examples
    --------
    >>> unpack(pack("windows over time"))
    'windows over time'
    """
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode().translate(_SAFE)


def unpack(packed: str) -> str:
    """Unpack a text, as the browser does."""
    back = packed.translate(str.maketrans(",'", "<&"))
    return zlib.decompress(base64.b85decode(back)).decode()


LIBRARY = "plotly.js.packed"
NOTICES = "plotly.js.txt"
"""Third-party library that draws interactive figures, packed, and its notices; written by tools/plotly_js.py."""

VERSION = "4.1.1"
"""Version of that library."""

KINDS = frozenset(["scatter", "bar", "pie"])
"""Kinds of series that the library can draw; its "basic" edition has no others."""


def _ours(name: str) -> str:
    from importlib.resources import files

    return files("ackclock.report").joinpath(name).read_text(encoding="utf-8")


@cache
def notices() -> str:
    """Return authors and licences of the page's scripts as plain text, because they are not readable in packed form."""
    return _ours(NOTICES).strip()


@cache
def plotly() -> str:
    """The drawing library, packed."""
    return _ours(LIBRARY)
