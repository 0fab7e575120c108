"""Budgets: the limits of the adversary. A candidate is a tuple of integers, translated to scenario keys.

A candidate begins with the numbers of the head, such as rate and queue, followed by up to `count` groups, such as an
interval, a jitter value, a loss. Numbers are multiples of a quantum (1 ms, 10 kbit/s), so that files contain exactly
the values that were run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from ackclock import _files
from ackclock.errors import InputError, ScenarioError, one_of, quote
from ackclock.units import DURATION, PACKETS, RATE, SIZE, Dimension, parse_share, whole

Candidate = tuple[int, ...]

LARGEST = 2**16
"""Maximum size of a budget file, bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gene:
    """One number of a candidate.

    Parameters
    ----------
    name
        Name of the number.
    low, high
        Bounds, in quanta.
    unit, quantum
        Unit in which the number is written, and size of a quantum in that unit.
    log
        Whether it is drawn log-uniformly.
    """

    name: str
    low: int
    high: int
    unit: str
    quantum: float
    log: bool = False

    def at(self, share: float) -> int:
        """Return the value at a fraction of the range, 0 to 1."""
        if self.log:
            value = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        return self.clip(round(value))

    def clip(self, value: int) -> int:
        """Return the nearest allowed value."""
        return min(max(value, self.low), self.high)

    def written(self, value: int) -> str:
        """Return the value as written in a scenario."""
        return f"{self.amount(value)} {self.unit}".strip()

    def amount(self, value: int) -> str:
        """Return the number in its unit, without the unit's name."""
        return f"{round(value * self.quantum, 6):.10g}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """Keys of a budget table: ranges of the head and of each group, and fixed values."""

    about: str
    head: tuple[str, ...]
    group: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()


KINDS: Mapping[str, Kind] = {
    "steps": Kind(about="rate and delay change at chosen times", head=("queue",), group=("rate", "delay", "lasts")),
    "jitter": Kind(
        about="the link holds packets for a while, in order",
        head=("rate", "delay", "queue"), group=("hold", "lasts"), fixed=("duration",),
    ),
    "box": Kind(
        about="a link that is slow in the first second and then constant holds packets for a while, in order",
        head=("slow", "rate", "delay", "queue"), group=("hold", "lasts"), fixed=("duration",),
    ),
    "loss": Kind(
        about="chosen packets are lost", head=("rate", "delay", "queue"), group=("position",), fixed=("duration",)
    ),
    "trouble": Kind(
        about="a share of packets is lost for a while, then none",
        head=("rate", "delay", "queue", "loss", "lasts"), fixed=("duration",),
    ),
    "cross": Kind(
        about="other traffic comes in bursts", head=("rate", "delay", "queue", "burst", "on", "off"), fixed=("duration",)
    ),
    "application": Kind(
        about="the application sends bursts, with pauses between them",
        head=("rate", "delay", "queue", "size", "pause"), fixed=("duration",),
    ),
    "receiver": Kind(
        about="the receiver cheats: it acknowledges each segment in pieces, and data ahead of its arrival",
        head=("rate", "delay", "queue", "splits", "ahead"), fixed=("duration",),
    ),
}  # fmt: skip

FORMS: Mapping[str, tuple[Dimension | None, str, float, int, bool]] = {
    # name: dimension, unit, quantum in that unit, quantum in base units, whether drawn log-uniformly
    "rate": (RATE, "Mbit/s", 0.01, 10_000, True),
    "slow": (RATE, "Mbit/s", 0.01, 10_000, True),
    "burst": (RATE, "Mbit/s", 0.01, 10_000, True),
    "delay": (DURATION, "ms", 0.1, 100_000, False),
    "hold": (DURATION, "ms", 0.1, 100_000, False),
    "lasts": (DURATION, "ms", 1, 1_000_000, False),
    "on": (DURATION, "ms", 1, 1_000_000, False),
    "off": (DURATION, "ms", 1, 1_000_000, False),
    "queue": (PACKETS, "packets", 1, 1, True),
    "loss": (None, "%", 1, 1, False),
    "position": (None, "", 1, 1, True),
    "size": (SIZE, "kB", 1, 1000, True),
    "pause": (DURATION, "ms", 1, 1_000_000, True),
    "splits": (None, "", 1, 1, False),
    "ahead": (None, "%", 1, 1, False),
}

BOXES = ("jitter", "box")
"""Kinds of budget that delay packets."""

SLOW_FOR = "1 s"
"""Time for which a box's link is slow at the start. CCAC begins with an arbitrary sender state, which the path has
to produce here.
"""

SHARES = ("loss", "ahead")
"""Numbers that are fractions, given as percentages."""

FROM_NOTHING = ("hold", "ahead")
"""Numbers with a minimum of zero even if only the maximum is given."""

WINDOW = "200000 bytes"
"""Receive window of a receiver that acknowledges data before it arrives: with losses hidden, nothing else limits the sender."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of the adversary.

    Parameters
    ----------
    name
        Name for readers.
    kind
        One of `KINDS`.
    table
        Table as declared.
    head, group
        Numbers of a candidate.
    count
        Maximum number of groups.
    duration_ms
        Duration of the run; None if the intervals determine it.
    holds
        Flows whose packets jitter delays: "all", or only the "first".
    timeouts
        "allow", or "forbid": candidates that make the target time out score 0. A timeout after an RTT variance
        of zero is an attack that always succeeds (CCAC, SIGCOMM 2021).
    """

    name: str
    kind: str
    table: Mapping[str, Any] = field(repr=False)
    head: tuple[Gene, ...]
    group: tuple[Gene, ...]
    count: int
    duration_ms: int | None
    holds: str = "all"
    timeouts: str = "allow"

    @property
    def genes(self) -> tuple[Gene, ...]:
        """Genes of the longest candidate."""
        return self.head + self.group * self.count

    def genes_of(self, candidate: Candidate) -> tuple[Gene, ...]:
        """Return the genes of a candidate, which may be shorter."""
        return self.genes[: len(candidate)]

    def groups(self, candidate: Candidate) -> list[tuple[int, ...]]:
        """Return the groups of a candidate."""
        head, size = len(self.head), max(len(self.group), 1)
        return [candidate[i : i + size] for i in range(head, len(candidate), size)]

    def drawn(self, rng: random.Random) -> Candidate:
        """Draw a candidate, each number uniformly from its range."""
        return tuple(gene.at(rng.random()) for gene in self.genes)

    def words(self, candidate: Candidate) -> str:
        """Describe a candidate in words."""
        named = zip(self.genes_of(candidate), candidate, strict=True)
        return ", ".join(f"{gene.name} {gene.written(value)}" for gene, value in named)

    def scenario(self, candidate: Candidate) -> dict[str, Any]:
        """Return a candidate's duration and network, and the cross-traffic flows."""
        head = {gene.name: gene.written(value) for gene, value in zip(self.head, candidate, strict=False)}
        queue = {"kind": "drop-tail", "limit": head["queue"]}
        if self.kind == "steps":
            return self._steps(self.groups(candidate), queue)
        if self.kind in BOXES:
            return self._jitter(self.groups(candidate), head, queue)
        if self.kind == "loss":
            lost = sorted({group[0] for group in self.groups(candidate)})
            return self._constant(head, queue, loss={"kind": "listed", "packets": lost, "applies_to": "data"})
        if self.kind == "trouble":
            steps = [{"at": "1 ms", "loss": head["loss"]}, {"at": head["lasts"], "loss": "0 %"}]
            return self._constant(head, queue, capacity={"kind": "schedule", "steps": steps})
        if self.kind == "cross":
            return self._cross(head, queue)
        return self._constant(head, queue)

    def target(self, candidate: Candidate) -> dict[str, Any]:
        """Return the keys of the target's flow other than its controller: application and receiver."""
        if self.kind not in ("application", "receiver"):
            return {}
        head = {gene.name: gene.written(value) for gene, value in zip(self.head, candidate, strict=False)}
        if self.kind == "application":
            return {"workload": {"kind": "bursts", "bytes": head["size"], "pause": head["pause"]}}
        stack: dict[str, Any] = {"ack_splits": int(head["splits"])}
        if head["ahead"] != "0 %":
            stack |= {"optimistic_acks": head["ahead"], "receive_buffer": WINDOW}
        return {"stack": stack}

    def _steps(self, groups: Sequence[tuple[int, ...]], queue: Mapping[str, str]) -> dict[str, Any]:
        rate, delay, lasts = self.group
        (r0, d0, _), at = groups[0], 0
        forth, back = [], []
        for (_, _, before), (r, d, _) in pairwise(groups):
            at += before
            forth.append({"at": f"{at} ms", "rate": rate.written(r), "delay": delay.written(d)})
            back.append({"at": f"{at} ms", "delay": delay.written(d)})
        link: dict[str, Any] = {"rate": rate.written(r0), "delay": delay.written(d0), "queue": queue}
        way_back = dict[str, Any](delay=delay.written(d0))
        if forth:
            link["capacity"] = {"kind": "schedule", "steps": forth}
            way_back["capacity"] = {"kind": "schedule", "steps": back}
        whole_ms = at + groups[-1][2]
        return {
            "duration": lasts.written(whole_ms),
            "network": {"bottleneck": link, "reverse": {"bottleneck": way_back}},
            "flows": [],
        }

    def _constant(self, head: Mapping[str, str], queue: Mapping[str, str], **more: Any) -> dict[str, Any]:
        link = {"rate": head["rate"], "delay": head["delay"], "queue": queue, **more}
        return {
            "duration": f"{self.duration_ms} ms",
            "network": {"bottleneck": link, "reverse": {"bottleneck": {"delay": head["delay"]}}},
            "flows": [],
        }

    def _jitter(
        self, groups: Sequence[tuple[int, ...]], head: Mapping[str, str], queue: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return a box behind the bottleneck: an infinite-rate link with a delay that follows the cycle."""
        hold, _ = self.group
        at = 0
        steps = []
        for (_, lasts), (held, _) in pairwise(groups):
            at += lasts
            steps.append({"at": f"{at} ms", "delay": hold.written(held)})
        box: dict[str, Any] = {"delay": hold.written(groups[0][0])}
        if steps:
            box["capacity"] = {"kind": "schedule", "steps": steps, "repeat": f"{at + groups[-1][1]} ms"}
        made = self._constant(head, queue)
        if "slow" in head:
            later = {"kind": "schedule", "steps": [{"at": SLOW_FOR, "rate": head["rate"]}]}
            made["network"]["bottleneck"] |= {"rate": head["slow"], "capacity": later}
        if self.holds == "first":
            made["network"] |= {"topology": "wishbone", "access_list": [box, {"delay": "0 s"}]}
        else:
            made["network"]["egress"] = box
            made["network"]["reverse"]["egress"] = {"delay": "0 s"}
        return made

    def _cross(self, head: Mapping[str, str], queue: Mapping[str, str]) -> dict[str, Any]:
        other = {"kind": "on-off", "rate": head["burst"], "on": head["on"], "off": head["off"], "periods": "fixed"}
        made = self._constant(head, queue)
        made["flows"] = [{"name": "bursts", "workload": other, "start": head["off"]}]
        return made


def built_in() -> dict[str, str]:
    """Return each shipped budget's name and text."""
    place = files("ackclock.attack").joinpath("budgets")
    found = (entry for entry in place.iterdir() if entry.name.endswith(".toml"))
    return {entry.name.removesuffix(".toml"): entry.read_text("utf-8") for entry in sorted(found, key=lambda e: e.name)}


def load(name: str) -> Budget:
    """Load a shipped budget by name, or one from a file.

    Raises
    ------
    InputError
        One line: what was found, what is allowed.
    """
    from ackclock.scenario._toml import read_toml

    known = built_in()
    if name in known and not Path(name).exists():
        text = known[name]
    elif name.endswith(".toml"):
        try:
            text = _files.regular(Path(name), LARGEST).decode()
        except UnicodeDecodeError:
            raise InputError(f"--budget {name}: found no text; allowed: a TOML file") from None
        except InputError as error:
            raise InputError(f"--budget {error}") from None
    else:
        raise InputError(f"--budget: found {quote(name)}; allowed: {one_of(name, known)}, or FILE.toml")
    try:
        table, _ = read_toml(text)
    except ScenarioError as error:
        raise InputError(f"--budget {name}: found no valid TOML ({error.found}); allowed: a budget's table") from None
    return read(table, name=Path(name).name.removesuffix(".toml"))


def read(table: Mapping[str, Any], *, name: str = "budget") -> Budget:
    """Read a budget from its table.

    Raises
    ------
    InputError
        One line: the key, what was found, what is allowed.
    """

    def refuse(key: str, found: object, allowed: str) -> InputError:
        return InputError(f"budget {name}: {key}: found {quote(found)}; allowed: {allowed}")

    kind = KINDS.get(table.get("kind", ""))
    if kind is None:
        raise refuse("kind", table.get("kind"), ", ".join(KINDS))
    ranges = kind.head + kind.group
    allowed = ("kind", *(("count",) if kind.group else ()), *ranges, *kind.fixed, "timeouts")
    allowed += ("holds",) if table["kind"] in BOXES else ()
    for key in table:
        if key not in allowed:
            raise refuse(key, "an unknown key", ", ".join(allowed))
    for key in (*ranges, *kind.fixed, *(("count",) if kind.group else ())):
        if key not in table:
            raise InputError(f"budget {name}: {key}: found nothing; allowed: a value")
    count = table.get("count", 0)
    if kind.group and (isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_GROUPS):
        raise refuse("count", count, f"a whole number, 1 to {MOST_GROUPS}")
    for key, words in (("timeouts", ("allow", "forbid")), ("holds", ("all", "first"))):
        if key in table and table[key] not in words:
            raise refuse(key, table[key], ", ".join(words))
    genes = {key: _gene(key, table[key], refuse) for key in ranges}
    duration = _base("duration", table["duration"], DURATION, refuse) // 1_000_000 if kind.fixed else None
    return Budget(
        name=name,
        kind=table["kind"],
        table=dict(table),
        head=tuple(genes[key] for key in kind.head),
        group=tuple(genes[key] for key in kind.group),
        count=count,
        duration_ms=duration,
        holds=table.get("holds", "all"),
        timeouts=table.get("timeouts", "allow"),
    )


MOST_GROUPS = 64
"""Maximum number of intervals, values or losses in a candidate."""


def _gene(key: str, given: Any, refuse: Any) -> Gene:
    dimension, unit, quantum, base, log = FORMS[key]
    # a range may start at zero; a single value is fixed for the adversary
    ends = (
        given
        if isinstance(given, Sequence) and not isinstance(given, str)
        else [0 if key in FROM_NOTHING else given, given]
    )
    if len(ends) != 2:
        raise refuse(key, given, "one value, or two: the least and the greatest")
    low, high = (0 if value == 0 and key in FROM_NOTHING else _base(key, value, dimension, refuse) for value in ends)
    low, high = -(-low // base), high // base
    least = 0 if key in (*FROM_NOTHING, "delay") else 1
    if not least <= low <= high:
        raise refuse(key, given, f"two values in order, in steps of {quantum:g} {unit}".rstrip())
    return Gene(name=key, low=low, high=high, unit=unit, quantum=quantum, log=log)


def _base(key: str, value: Any, dimension: Dimension | None, refuse: Any) -> int:
    if key in SHARES:
        try:
            return round(parse_share(value) * 100)
        except ScenarioError as error:
            raise refuse(key, value, error.allowed) from None
    if dimension is None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise refuse(key, value, "a whole number, 1 or more")
        return value
    try:
        return whole(value, dimension)
    except ScenarioError as error:
        raise refuse(key, value, error.allowed) from None
