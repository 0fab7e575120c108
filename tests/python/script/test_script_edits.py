"""Tests that a single edit of a passing script makes it fail, except within a documented tolerance
(docs/how-to/play-packet-scripts.md). The tolerance is decided by an oracle that never uses the verdict: arithmetic on
the script's numbers, or the unedited run's packets.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from conftest import ROOT

from ackclock.errors import InputError
from ackclock.script import Played, find, play

SCRIPTS = ROOT / "tests" / "scripts"

EVENT = re.compile(r"^(?P<time>\+?(?:\d+(?:\.\d+)?|\.\d+)(?:~\S+)?|\*)(?P<gap>\s*)(?P<rest>\D.*)$")
PACKET = re.compile(r"^(?P<way>[<>]) (?P<mark>\[\w+\] )?(?P<flags>[A-Z.-]+) (?P<rest>\d.*)$")
DATA = re.compile(r"(\d+):(\d+)\((\d+)\)")
CALL = re.compile(r"^(?P<end>\.\.\.[\d.]+ )?(?P<name>\w+)\((?P<args>.*)\) = (?P<result>-?\w+)(?P<after>.*)$")
STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")


@dataclass(frozen=True)
class Edit:
    """An edit of a script. `forgiven`: `None` if it must fail; "same packets" if the oracle decides; otherwise the tolerance."""

    kind: str
    line: str
    forgiven: str | None = None


def number_edits(text: str, pattern: str, deltas: tuple[int, ...]) -> Iterator[str]:
    for match in re.finditer(pattern, text):
        a, b = match.span(1)
        for delta in deltas:
            value = int(match[1]) + delta
            if value >= 0:
                yield f"{text[:a]}{value}{text[b:]}"


def time_edits(time: str, deviation: float) -> Iterator[tuple[str, str | None]]:
    """Return new times of an expected packet, and whether the tolerance covers them: the larger of 4 ms and an eighth of the distance."""
    if not re.fullmatch(r"\+[\d.]+", time):
        return
    old = float(time)
    for new in (old * 1.5 + 0.01, old * 0.7, old * 1.05, old + 0.001, old + 0.0061):
        off, allowed = abs(new - old), max(0.004, new / 8)
        if off <= allowed + deviation:
            yield f"+{new:.6f}", "time within the tolerance"
        elif off > allowed + deviation:
            yield f"+{new:.6f}", None


def packet_edits(way: str, flags: str, mark: str, rest: str, comparable: bool) -> Iterator[tuple[str, str, str | None]]:
    """Return kind, edited packet and tolerance."""
    forgiven = None if way == ">" else "same packets"
    side = "expected" if way == ">" else "injected"

    def changed(kind: str, *, mark: str = mark, flags: str = flags, rest: str = rest, why: str | None = forgiven):
        return f"{side} {kind}", f"{way} {mark}{flags} {rest}", why

    for letter in "FSRPEW.":
        other = flags.replace(letter, "") if letter in flags else letter + flags
        if other and other != ".-":
            yield changed("flag", flags=other)
    for other in ("[noecn] ", "[ect0] ", "[ce] "):
        if other != mark and (mark or way == "<"):
            yield changed("mark", mark=other)
    data = DATA.search(rest)
    assert data is not None
    start, end, length = (int(n) for n in data.groups())
    for a, b in ((1, 1), (1000, 1000), (-1, -1), (0, 1), (0, -1), (0, 1000)):
        if start + a >= 0 and length + b - a >= 0 and end + b >= 0:
            edited = f"{start + a}:{end + b}({length + b - a})"
            # Both sides count from the number of the SYN, whatever its value.
            first = "first number of a SYN" if "S" in flags and a == b else forgiven
            yield changed("sequence number", rest=rest.replace(data[0], edited, 1), why=first)
    for name, pattern, deltas in (
        ("ack", r"ack (\d+)", (1, -1, 1000)),
        ("window", r"win (\d+)", (1, -1, 1000)),
        ("option", r"mss (\d+)", (1, -4)),
        ("option", r"wscale (\d+)", (1, -1)),
        ("option", r"(\d+):\d+[ ,>]", (1, -1, 1000)),
        ("option", r"\d+:(\d+)[ ,>]", (1, -1, 1000)),
    ):
        head = rest.index("<") if "<" in rest and name == "option" else 0
        for edited in number_edits(rest[head:], pattern, deltas):
            yield changed(name, rest=rest[:head] + edited)
    for pattern in (r"val (\d+)", r"ecr (\d+)"):
        for edited in number_edits(rest, pattern, (1,)):
            why = forgiven if comparable else "value of an expected timestamp"
            yield changed("timestamp", rest=edited, why=why if way == ">" else "same packets")
    if "<" in rest and "<...>" not in rest:
        yield changed("options", rest=rest[: rest.index("<")].rstrip())
        yield changed("options", rest=rest[:-1] + ",nop,nop,nop,nop>")
    elif "<...>" not in rest:
        yield changed("options", rest=rest + " <nop,nop,nop,nop>")


def call_edits(time: str, gap: str, call: re.Match[str]) -> Iterator[Edit]:
    end, args, result = call["end"] or "", call["args"], call["result"]

    def changed(kind: str, why: str | None, *, end: str = end, args: str = args, result: str = result) -> Edit:
        return Edit(f"call {kind}", f"{time}{gap}{end}{call['name']}({args}) = {result}{call['after']}", why)

    if call["name"] not in ("socket", "accept", "open", "epoll_create"):  # there the result is the descriptor
        if re.fullmatch(r"-?\d+", result):
            yield changed("result", None, result=str(int(result) + 1))
        if result == "-1":
            yield Edit("call result", f"{time}{gap}{end}{call['name']}({args}) = -1 EXDEV")
    for edited in number_edits(args, r"(?<![\w.])(\d+)(?![\w.])", (1, 1000)):
        yield changed("argument", "same packets", args=edited)
    if end:
        begin, until = float(time), float(end.strip(". "))
        for new in (until + 0.02 + (until - begin) / 4, begin + (until - begin) * 0.7):
            if abs(new - until) > max(0.0045, (until - begin) / 8, (new - begin) / 8) and new >= begin:
                yield changed("end", None, end=f"...{new:.6f} ")


def assertion_edits(line: str) -> Iterator[Edit]:
    body = re.search(r"%\{(.*)\}%", line)
    text = body[1].strip() if body else line.strip()
    offset = line.index(text) if text else 0
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for statement in tree.body:
        if not isinstance(statement, ast.Assert):
            continue
        exact = _exact(statement.test)
        for node in ast.walk(statement.test):
            if not hasattr(node, "col_offset"):
                continue
            a, b = offset + node.col_offset, offset + node.end_col_offset
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                why = None if id(node) in exact else "an inequality that still holds"
                yield Edit("assertion number", f"{line[:a]}{node.value + 1}{line[b:]}", why)
            elif isinstance(node, ast.Name) and node.id.startswith("TCP_CA_"):
                state = STATES[(STATES.index(node.id[7:]) + 1) % 5]
                why = None if id(node) in exact else "an inequality that still holds"
                yield Edit("assertion state", f"{line[:a]}TCP_CA_{state}{line[b:]}", why)


def _exact(test: ast.expr) -> set[int]:
    """Return the parts of a test in which any edit must make the test fail: equality comparisons joined by `and`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return set().union(*(_exact(v) for v in test.values))
    equation = isinstance(test, ast.Compare) and all(isinstance(op, ast.Eq) for op in test.ops)
    plain = (ast.Compare, ast.Constant, ast.Name, ast.Tuple, ast.Eq, ast.Load, ast.BinOp, ast.Add, ast.Sub)
    nodes = list(ast.walk(test))
    return {id(n) for n in nodes} if equation and all(isinstance(n, plain) for n in nodes) else set()


def edits_of(line: str, *, deviation: float, inside: bool, comparable: bool) -> Iterator[Edit]:
    """Return every single edit of a line."""
    if "assert" in line:
        yield from assertion_edits(line)
    event = EVENT.match(line)
    if inside or event is None:
        return
    time, gap, rest = event["time"], event["gap"], event["rest"].split("//")[0].rstrip()
    packet, call = PACKET.match(rest), CALL.match(rest)
    if packet and packet["way"] == ">":
        for new, why in time_edits(time, deviation):
            yield Edit("expected time", f"{new}{gap}{rest}", why)
    elif re.fullmatch(r"\+[\d.]+", time):
        for new in (float(time) * 1.5 + 0.01, float(time) * 0.7, float(time) + 0.3):
            yield Edit("other time", f"+{new:.6f}{gap}{rest}", "same packets")
    if packet:
        fields = packet["way"], packet["flags"], packet["mark"] or "", packet["rest"]
        for kind, edited, why in packet_edits(*fields, comparable):
            yield Edit(kind, f"{time}{gap}{edited}", why)
    elif call:
        yield from call_edits(time, gap, call)


def outgoing(played: Played) -> list[tuple[int, int, str, str]]:
    """Return the compared parts of the packets sent by the stack: start, end, flags and so on; no times, windows or
    timestamp values.
    """
    packets = []
    for line in played.trace:
        _, way, text = line.split(" ", 2)
        if way == ">":
            text = re.sub(r" win \d+", "", re.sub(r"val \d+ ecr \d+", "", text))
            match = re.match(r"(.+?) (\d+):(\d+)\(\d+\)(.*)", text)
            assert match is not None
            packets.append((int(match[2]), int(match[3]), match[1], match[4]))
    return packets


def same(a: list[tuple[int, int, str, str]], b: list[tuple[int, int, str, str]]) -> bool:
    """Return whether the packets are identical apart from burst boundaries: an expectation joins pieces, and itself checks their times."""
    a, b = list(a[::-1]), list(b[::-1])
    while a and b:
        (start, end, flags, rest), (start2, end2, flags2, rest2) = a.pop(), b.pop()
        if (start, rest) != (start2, rest2) or (end == end2 and flags != flags2):
            return False
        if end < end2:
            b.append((end, end2, flags2, rest2))
        elif end2 < end:
            a.append((end2, end, flags, rest))
    return not a and not b


def every_edit() -> Iterator[tuple[Edit, list[str], int, Played]]:
    for file in find([SCRIPTS]):
        played = play(file, strict=True)
        assert played.verdict == "pass", (file, played)
        lines = file.read_text(encoding="utf-8").splitlines()
        comparable = any(line.startswith("--tcp_ts_tick_usecs") for line in lines)
        inside = False
        for n, line in enumerate(lines):
            if line.startswith(("//", "--", "`")):
                continue
            opened, closed = "%{" in line, "}%" in line
            for edit in edits_of(
                line, deviation=played.deviation_s, inside=inside and not opened, comparable=comparable
            ):
                yield edit, lines, n, played
            inside = (inside or opened) and not closed


@pytest.fixture(scope="module")
def edits() -> list[tuple[Edit, list[str], int, Played]]:
    return list(every_edit())


@pytest.fixture
def played_with(tmp_path):
    path = tmp_path / "edited.pkt"

    def play_with(edit, lines, n):
        path.write_text("\n".join([*lines[:n], edit.line, *lines[n + 1 :]]) + "\n", encoding="utf-8")
        try:
            return play(path, strict=True)
        except InputError:
            return None  # no longer a script

    return play_with


def test_five_hundred_edits_fail(edits, played_with):
    # a few edits leave an invalid script: "invalid" is not a pass, and does not count among the five hundred
    chosen = some_of_each_kind(edits, 525, lambda edit: edit.forgiven is None)
    counts = Counter()
    for edit, lines, n, original in chosen:
        played = played_with(edit, lines, n)
        verdict = "invalid" if played is None else played.verdict
        counts[verdict] += 1
        assert verdict != "pass", (original.path, n + 1, lines[n], edit)
    assert counts["fail"] >= 500, counts


def test_what_is_forgiven_changes_nothing_that_is_compared(edits, played_with):
    chosen = some_of_each_kind(edits, 500, lambda edit: edit.forgiven is not None)
    counts = Counter()
    for edit, lines, n, original in chosen:
        played = played_with(edit, lines, n)
        if played is None or played.verdict != "pass":
            counts["no pass"] += 1
        elif edit.forgiven == "same packets":
            assert same(outgoing(played), outgoing(original)), (original.path, n + 1, lines[n], edit)
            counts[edit.forgiven] += 1
        else:
            counts[edit.forgiven] += 1
    assert counts["no pass"] >= 100, counts


def test_the_documentation_names_what_is_forgiven(edits):
    text = (ROOT / "docs" / "how-to" / "play-packet-scripts.md").read_text(encoding="utf-8")
    assert {edit.forgiven for edit, *_ in edits if edit.forgiven and edit.forgiven not in text} == set()


def some_of_each_kind(edits, total, wanted):
    """Return equally many edits of each kind, `total` or slightly more altogether, drawn with a fixed seed."""
    kinds: dict[str, list] = {}
    for item in edits:
        if wanted(item[0]):
            kinds.setdefault(item[0].kind, []).append(item)
    draw, chosen = random.Random(20261121), []
    for left, kind in zip(range(len(kinds), 0, -1), sorted(kinds, key=lambda k: len(kinds[k])), strict=True):
        share = -(-(total - len(chosen)) // left)
        chosen += draw.sample(kinds[kind], min(len(kinds[kind]), share))
    assert len(chosen) >= total
    return chosen
