"""Reads what `ping` prints: iputils with and without `-D`, macOS and BSD, busybox, and Windows in any language.

Windows numbers no probe: each line between its heading and the next empty line is one, and one without a time has no
answer. The others number the answers, so a gap is a loss. Losses after the last answer are known from the lines that
say so (`Request timeout`, `no answer yet`) or from the summary's count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ackclock.errors import InputError

__all__ = ["is_ping", "read", "start_s"]

INTERVAL_S = 1.0
"""Default interval of a ping without timestamps, s."""

NUMBERED = re.compile(
    r"^(?:\[(?P<at>[0-9.]+)\] )?.*\b(?:icmp_)?seq=(?P<seq>[0-9]+)\b.*\btime[=<](?P<ms>[0-9]+(?:[.,][0-9]+)?) ?ms"
)
UNANSWERED = re.compile(r"(?:icmp_seq[= ]|timeout for icmp_seq )(?P<seq>[0-9]+)")
SENT = re.compile(r"^(?P<count>[0-9]+) packets transmitted")
NO_PROBE = re.compile(r"^(?:Control-C|\^C)| = [0-9]")
"""Lines of Windows among its probes that are none: a break, and a summary that follows without an empty line."""

WINDOWS = re.compile(r"[=<](?P<ms>[0-9]+) ?ms +TTL=")


def is_ping(head: str) -> bool:
    """Return whether a text begins as ping's output does."""
    return head.startswith("PING ") or bool(re.search(r"\bicmp_seq=|\bseq=[0-9]+ ttl=", head) or WINDOWS.search(head))


def read(text: str, most: int) -> tuple[list[tuple[float, float]], list[tuple[float, bool]]]:
    """Return the answers (time since the first probe and RTT, s) and the probes (time, whether it was lost).

    Parameters
    ----------
    text
        The output.
    most
        Maximum number of probes.

    Raises
    ------
    InputError
        If there are more probes.
    """
    if WINDOWS.search(text):
        return _windows(text)
    found, unanswered, sent = _numbered(text)
    if not found:
        return [], []
    first, last = min(found), max([*found, *unanswered])
    last = max(last, first + sent - 1) if sent < 65536 and last < 65536 else last
    if last - first > most:
        raise InputError(f"found {last - first + 1:,} probes; allowed: at most {most:,}")
    timed = {number: at - rtt for number, (at, rtt) in found.items() if at is not None}
    ends = min(found), max(found)
    apart = INTERVAL_S
    if ends[1] > ends[0] and set(ends) <= set(timed):
        apart = (timed[ends[1]] - timed[ends[0]]) / (ends[1] - ends[0])
    answers: list[tuple[float, float]] = []
    probes: list[tuple[float, bool]] = []
    for number in range(first, last + 1):
        t = (number - first) * apart
        if number in found:
            if number in timed:
                t = max(timed[number] - timed[first], answers[-1][0]) if answers and first in timed else t
            answers.append((t, found[number][1]))
        probes.append((t, number not in found))
    return answers, probes


def start_s(text: str) -> float | None:
    """Return the time of the first answer since 1970, s, if the lines have times (`ping -D`)."""
    match = next((found for line in text.splitlines() if (found := NUMBERED.match(line))), None)
    return None if match is None or match["at"] is None else float(match["at"])


def _numbered(text: str) -> tuple[dict[int, tuple[float | None, float]], set[int], int]:
    """Return answers by number, numbers of probes without one, and how many were sent (0: unknown)."""
    found: dict[int, tuple[float | None, float]] = {}
    unanswered: set[int] = set()
    turn, before, sent = 0, 0, 0
    for line in text.splitlines():
        if match := NUMBERED.match(line):
            number = int(match["seq"])
            turn += 65536 if number + turn < before - 32768 else 0  # the field has 16 bits
            before = number + turn
            at = float(match["at"]) if match["at"] else None
            found.setdefault(before, (at, float(match["ms"].replace(",", ".")) / 1000))
        elif match := UNANSWERED.search(line):
            unanswered.add(int(match["seq"]) + turn)
        elif match := SENT.match(line):
            sent = int(match["count"])
    return found, unanswered, sent


def _windows(text: str) -> tuple[list[tuple[float, float]], list[tuple[float, bool]]]:
    answers: list[tuple[float, float]] = []
    probes: list[tuple[float, bool]] = []
    for ms in _lines(text):
        t = len(probes) * INTERVAL_S
        if ms is not None:
            answers.append((t, ms / 1000))
        probes.append((t, ms is None))
    return answers, probes


def _lines(text: str) -> Iterator[float | None]:
    """Yield the time of each of Windows' probes, ms; None: no answer. `<1ms` is half of that."""
    inside = False
    for line in text.splitlines():
        match = WINDOWS.search(line)
        if match:
            inside = True
            yield float(match["ms"]) if "<" not in match[0] else float(match["ms"]) / 2
        elif not line.strip():
            inside = False
        elif re.search(r"\b[0-9]+ [A-Za-z]+.*:\s*$", line):
            inside = True  # the heading, e.g. "Pinging 192.0.2.1 with 32 bytes of data:"
        elif inside and not NO_PROBE.search(line):
            yield None
