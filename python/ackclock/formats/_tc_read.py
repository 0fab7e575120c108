"""Interprets the words of a `tc` discipline as packet operations and queues."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ackclock.errors import InputError, quote
from ackclock.formats._tc_words import bits, duration, share, size

__all__ = [
    "NETEM_LIMIT",
    "Discipline",
    "Link",
    "Op",
    "Words",
    "netem",
    "option",
    "policed",
    "queue_of",
    "rate_of",
    "tbf",
    "time_of",
    "told_once",
]

FRAME = 1514
"""Size of a full frame, bytes, used to convert between scenarios that count packets and disciplines that count bytes."""
NETEM_LIMIT = 1000
"""Default netem limit, packets."""
UNLIMITED = 100_000
"""Smallest limit that counts as unlimited, packets."""
Link = dict[str, Any]
Words = Sequence[str]


@dataclass(slots=True)
class Discipline:
    """Discipline or class, with its children."""

    kind: str
    words: Words
    line: int
    parent: str
    handle: str


@dataclass(frozen=True, slots=True)
class Op:
    """Operation on packets."""

    kind: str
    """Kind of operation: loss, duplicate, corrupt, delay, jitter, reorder, rate, queue or limit."""
    value: Any


def option(words: Words, name: str) -> str | None:
    for at, word in enumerate(words[:-1]):
        if word == name:
            return words[at + 1]
    return None


def netem(node: Discipline, missing: list[str]) -> tuple[list[Op], list[Op]]:
    """Return netem's operations in netem's order (loss before delay), and its rate with its limit."""
    # Length: a branch for each word.
    words = list(node.words)
    loss: list[Op] = []
    limit, delay, jitter, rate = NETEM_LIMIT, 0, 0, None
    form: Link = {}
    reorder: Link | None = None
    numeric = re.compile(r"[0-9.].*")

    def told(what: str, instead: str) -> None:
        missing.append(f"line {node.line}: netem {what}: {instead}")

    def numbers(most: int) -> list[str]:
        taken: list[str] = []
        while words and len(taken) < most and numeric.fullmatch(words[0]):
            taken.append(words.pop(0))
        return taken

    def need(found: list[str], word: str) -> list[str]:
        if not found:
            raise InputError(
                f"line {node.line}: netem {word}: found {quote(words[0]) if words else 'nothing'}; allowed: a number behind it"
            )
        return found

    while words:
        word = words.pop(0)
        if word == "limit":
            limit = int(need(numbers(1), word)[0])
        elif word in ("delay", "latency"):
            given = need(numbers(3), word)
            delay = duration(given[0])
            jitter = duration(given[1]) if len(given) > 1 else 0
            if len(given) > 2:
                form["correlation"] = share(given[2])
        elif word == "distribution":
            name = words.pop(0) if words else ""
            if name in ("uniform", "normal", "pareto", "paretonormal"):
                form["distribution"] = name
            else:
                told(f"distribution {name}", "a table of one's own, normal instead")
                form["distribution"] = "normal"
        elif word in ("loss", "drop"):
            loss += _loss(node, words, numbers, told)
        elif word in ("duplicate", "corrupt"):
            given = need(numbers(2), word)
            if len(given) > 1:
                told(f"{word} {' '.join(given)}", "its correlation is left out")
            loss.append(Op(word, share(given[0])))
        elif word == "reorder":
            given = need(numbers(2), word)
            gap = int(words.pop(1)) if words[:1] == ["gap"] and len(words) > 1 else 1
            if words[:1] == ["gap"]:
                words.pop(0)
            if len(given) > 1:
                told(f"reorder {' '.join(given)}", "its correlation is left out")
            if gap > 1:
                told(f"reorder gap {gap}", f"one in {gap} of that share instead")
            reorder = {"share": share(given[0]) / gap}
        elif word == "gap":
            gap = int(need(numbers(1), word)[0])
            told(f"gap {gap}", f"one in {gap} at random instead")
            reorder = {"share": (reorder or {"share": 1.0})["share"] / gap}
        elif word == "rate":
            rate = bits(need(numbers(1), word)[0])
            while words and re.fullmatch(r"-?\d+", words[0]):
                if words.pop(0) not in ("0", "-14"):
                    told("rate with an overhead", "left out")
        elif word == "slot":
            told("slot", "left out")
            while words and words[0] not in ("delay", "loss", "limit", "rate", "reorder", "duplicate", "corrupt"):
                words.pop(0)
        elif word == "ecn":
            told("ecn", "lost packets are lost, not marked")
        elif word == "seed":
            numbers(1)
        else:
            raise InputError(
                f"line {node.line}: netem: found {quote(word)}; allowed: limit, delay, distribution, loss, duplicate, corrupt, reorder, rate, slot, ecn, seed"
            )
    ops = list(loss)
    if reorder is not None and delay:
        if jitter:
            told("reorder beside jitter", "packets overtake by the jitter alone")
        else:
            # delay all packets except this fraction, which then overtakes the others
            ops.append(Op("reorder", {"probability": round(1 - reorder["share"], 9), "extra_delay": time_of(delay)}))
            delay = 0
    if jitter and rate is None:
        ops.append(Op("jitter", {"delay": delay, "netem_jitter": {"deviation": time_of(jitter), **form}}))
    elif delay and not jitter:
        ops.append(Op("delay", delay))
    held = [] if limit >= UNLIMITED else [Op("limit", limit)]
    if rate is None:
        return ops, held
    made: Link = {"rate": rate_of(rate)}
    if jitter:  # netem delays packets, then transmits them
        made["delay"] = time_of(delay)
        made["netem_jitter"] = {"deviation": time_of(jitter), **form, "before_rate": True}
    if held and delay + jitter:
        made["queue"] = {"kind": "netem-limit", "limit": f"{limit} packets"}
    elif held:
        made["queue"] = {
            "kind": "drop-tail",
            "limit": f"{max(limit - 1, 1)} packets",
        }  # netem's limit includes the packet in transmission
    return ops, [Op("rate", made)]


def _loss(
    node: Discipline, words: list[str], numbers: Callable[[int], list[str]], told: Callable[[str, str], None]
) -> list[Op]:
    model = words.pop(0) if words and words[0] in ("random", "state", "gemodel") else "random"
    given = numbers({"random": 2, "state": 5, "gemodel": 4}[model])
    if not given:
        raise InputError(f"line {node.line}: netem loss: found nothing; allowed: a percentage, state or gemodel")
    p = share(given[0])
    if model == "random":
        if len(given) > 1:
            told(f"loss {' '.join(given)}", "its correlation is left out")
        return [Op("loss", {"kind": "bernoulli", "p": p})] if p else []
    made: Link = {"kind": "gilbert-elliott", "p": p}
    if model == "state":
        made["r"] = share(given[1]) if len(given) > 1 else 1 - p
        if len(given) > 2:
            told(f"loss state {' '.join(given)}", "p13 and p31 alone: single losses and bursts with gaps are left out")
        return [Op("loss", made)]
    made["r"] = share(given[1]) if len(given) > 1 else 1 - p
    if len(given) > 2:
        made["loss_bad"] = share(given[2])
    if len(given) > 3:
        made["loss_good"] = share(given[3])
    return [Op("loss", made)]


def tbf(node: Discipline, missing: list[str]) -> Link:
    rate, burst = option(node.words, "rate"), None
    for name in ("burst", "buffer", "maxburst"):
        burst = burst or option(node.words, name)
    if rate is None or burst is None:
        raise InputError(
            f"line {node.line}: tbf: found no {'rate' if rate is None else 'burst'}; allowed: rate, burst, and limit or latency"
        )
    made: Link = {"rate": rate_of(bits(rate)), "capacity": {"kind": "token-bucket", "burst": f"{size(burst)} bytes"}}
    limit, latency = option(node.words, "limit"), option(node.words, "latency")
    if latency is not None:  # computed as in tc
        wait = duration(latency)
        made["queue"] = {"kind": "drop-tail", "limit": f"{bits(rate) * wait // (8 * 10**9) + size(burst)} bytes"}
    elif limit is not None:
        made["queue"] = {"kind": "drop-tail", "limit": f"{size(limit)} bytes"}
    for name in ("peakrate", "mpu", "overhead"):
        if (given := option(node.words, name)) not in (None, "0"):
            missing.append(f"line {node.line}: tbf {name} {given}: left out")
    return made


TIMED = {"target", "interval", "rtt", "tupdate", "ce_threshold", "step_thresh"}
QUEUES: dict[str, tuple[str, dict[str, str]]] = {
    "codel": ("codel", {"limit": "limit", "target": "target", "interval": "interval", "ce_threshold": "ce_threshold"}),
    "fq_codel": (
        "fq-codel",
        {
            "limit": "limit",
            "target": "target",
            "interval": "interval",
            "ce_threshold": "ce_threshold",
            "flows": "queues",
            "quantum": "quantum",
        },
    ),
    "pie": ("pie", {"limit": "limit", "target": "target", "tupdate": "update"}),
    "fq_pie": (
        "fq-pie",
        {
            "limit": "limit",
            "flows": "queues",
            "target": "target",
            "tupdate": "update",
            "alpha": "alpha",
            "beta": "beta",
            "quantum": "quantum",
            "ecn_prob": "ecn_prob",
        },
    ),
    "dualpi2": (
        "dualpi2",
        {
            "limit": "limit",
            "target": "target",
            "tupdate": "update",
            "step_thresh": "step",
            "coupling_factor": "coupling",
        },
    ),
    "cake": (
        "cake",
        {"rtt": "rtt", "bandwidth": "bandwidth", "overhead": "overhead", "mpu": "mpu", "memlimit": "limit"},
    ),
}
"""Discipline -> our queue, and our key for each of its parameters."""
IGNORED = {
    "noecn", "ecn", "besteffort", "noatm", "no-split-gso", "split-gso", "nonat", "nat", "nowash", "wash", "no-ack-filter", "drop_dequeue",
    "drop_on_overload", "l4s_ect", "unlimited", "triple-isolate", "flows", "dual-srchost", "dual-dsthost", "atm", "ptm", "raw", "no_split_gso",
    "nobytemode", "bytemode", "dq_rate_estimator", "no_dq_rate_estimator",
}  # fmt: skip
"""Parameters without a value that are handled elsewhere or have no effect here."""


def queue_of(node: Discipline, missing: list[str]) -> Link | None:
    """Return a discipline without a rate as a queue; None if it is not a queue."""
    kind, words = node.kind, node.words
    limit = option(words, "limit")
    match kind:
        case "pfifo" | "pfifo_fast" | "pfifo_head_drop":
            return {"kind": "drop-tail", "limit": f"{limit or 1000} packets"}
        case "bfifo":
            return {"kind": "drop-tail", "limit": f"{size(limit) if limit else 1000 * FRAME} bytes"}
        case "noqueue":
            return None
        case "red":
            return _red(node)
        case "sfq":
            missing.append(
                f"line {node.line}: sfq: its fair queue without CoDel; fq-codel with a target of 10 s instead"
            )
            return {"kind": "fq-codel", "limit": f"{limit or 127} packets", "target": "10 s", "interval": "10 s"}
        case "fq":
            missing.append(f"line {node.line}: fq: it paces a host's own packets (`hosts`); left out")
            return None
    if kind not in QUEUES:
        missing.append(f"line {node.line}: {kind}: no such queue, a plain one of 1000 packets instead")
        return {"kind": "drop-tail", "limit": "1000 packets"}
    ours, keys = QUEUES[kind]
    made: Link = {"kind": ours}
    if kind == "fq_codel":
        made |= {"limit": "10240 packets", "ecn": True}
    elif kind == "fq_pie":
        made["limit"] = "10240 packets"
    elif kind == "codel" or kind == "pie":
        made["limit"] = "1000 packets"
    at = 0
    while at < len(words):
        word, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        if word in ("ecn", "noecn") and ours in ("codel", "fq-codel", "fq-pie", "pie"):
            made["ecn"] = word == "ecn"
            at += 1
        elif ours == "cake" and word in ("atm", "ptm", "noatm"):
            made["framing"] = word
            at += 1
        elif ours == "cake" and word in ("flows", "dual-srchost", "dual-dsthost", "triple-isolate"):
            made["isolation"] = word
            at += 1
        elif word in keys and re.match(r"-?[0-9]", value):
            key = keys[word]
            made[key] = (
                time_of(duration(value)) if word in TIMED
                else rate_of(bits(value)) if key == "bandwidth"
                else f"{size(value)} bytes" if key == "quantum" or (kind, key) == ("cake", "limit")
                else int(value) if key in ("queues", "overhead", "mpu", "coupling", "alpha", "beta", "ecn_prob")
                else f"{int(value)} packets"
            )  # fmt: skip
            at += 2
        elif word in IGNORED:
            at += 1
        else:
            missing.append(f"line {node.line}: {kind} {word} {value}".rstrip() + ": left out")
            at += 2 if re.match(r"-?[0-9.]", value) else 1
    return made


def _red(node: Discipline) -> Link:
    words = node.words
    made: Link = {"kind": "linux-red"}
    for key in ("limit", "min", "max", "avpkt"):
        if (given := option(words, key)) is not None:
            made[key] = f"{size(given)} bytes"
    if "limit" not in made:
        raise InputError(
            f"line {node.line}: red: found no limit; allowed: limit, min, max, avpkt, burst, probability, bandwidth, ecn, harddrop, adaptive"
        )
    if (burst := option(words, "burst")) is not None:
        made["burst"] = int(burst)
    if (probability := option(words, "probability")) is not None:
        made["probability"] = float(probability)
    if (bandwidth := option(words, "bandwidth")) is not None:
        made["bandwidth"] = rate_of(bits(bandwidth))
    made |= {key: True for key in ("ecn", "harddrop", "nodrop", "adaptive") if key in words}
    return made


def policed(line: int, words: Words) -> Op:
    rate, burst = option(words, "rate"), option(words, "burst") or option(words, "buffer")
    if rate is None or burst is None:
        raise InputError(
            f"line {line}: police: found no {'rate' if rate is None else 'burst'}; allowed: rate and burst"
        )
    return Op("loss", {"kind": "policer", "rate": rate_of(bits(rate)), "bucket": f"{size(burst)} bytes"})


def told_once(ops: list[Op]) -> list[Op]:
    """Merge the rate of a line behind a shaper: HTB and CAKE release a packet when its transmission begins, so
    `ackclock export` writes the time of the transmission as a netem behind them.
    """
    made: list[Op] = []
    for op in ops:
        last = next((of for of in reversed(made) if of.kind != "delay"), None)
        if last is not None and op.kind == "rate" and set(op.value) == {"rate"}:
            if last.kind == "shaper" and last.value["rate"] == op.value["rate"] and "capacity" not in last.value:
                continue
            if last.kind == "queue" and "bandwidth" in last.value:
                made[made.index(last)] = Op("shaper", {**op.value, "queue": last.value})
                continue
        made.append(op)
    return made


def time_of(ns: int) -> str:
    for unit, length in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns % length == 0:
            return f"{ns // length} {unit}"
    return f"{ns} ns"


def rate_of(bps: int) -> str:
    for unit, length in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if bps % length == 0:
            return f"{bps // length} {unit}"
    return f"{bps} bit/s"
