"""Objectives: a candidate's runs, and its score. A score is a regret, 0 to 1: the target's deficit relative to a
reference.

Every candidate is run once with the target and once with each reference, in the same environment under the same seed.
If no sender achieves anything, the target has no deficit and the score is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ackclock.attack.budget import Budget

Tables = Mapping[str, Mapping[str, Sequence[Any]]]
"""Tables of one run: table -> column -> values."""

LEAST_BYTES = 50 * 1448
"""Minimum number of bytes delivered by the best reference: with less, a single packet would make a large difference."""

FLOOR = 4
"""Maximum size, segments, of a window that counts as minimal (BBR's minimum is 4, CUBIC's 2)."""

STUCK_RTTS = 20
"""Round trips at the minimum window without a loss after which a flow counts as stuck."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """Properties of a run's path used by objectives.

    Parameters
    ----------
    base_s
        Round-trip time without a queue, s; the maximum if it changes.
    rate_bps
        Rate of the bottleneck; the maximum if it changes.
    queue
        Capacity of the bottleneck's queue, packets.
    """

    base_s: float
    rate_bps: float
    queue: int

    @property
    def holds(self) -> float:
        """Packets in flight above which the queue overflows."""
        return self.rate_bps * self.base_s / 8 / 1500 + self.queue


@dataclass(frozen=True, kw_only=True)
class Objective:
    """Goal of the adversary.

    Parameters
    ----------
    about
        Description from the target's point of view.
    value
        Function that computes a number for one run from its tables and path.
    score
        Function that computes the score from the target's number and those of the references, in order.
    flows
        "one", "two" identical ones, or one "beside" CUBIC.
    record
        Additional records.
    tables
        Table and columns that `value` reads in addition to `flows`.
    unit
        Unit of the number.
    apart
        Alternative to `score`: distance of two runs, 0 to 1. The maximum over the references counts.
    """

    about: str
    value: Callable[[Tables, Path], float] = field(repr=False)
    score: Callable[[float, Sequence[float], Sequence[float]], float] = field(repr=False)
    unit: str
    flows: str = "one"
    record: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    apart: Callable[[Tables, Tables], float] | None = field(default=None, repr=False)


def delivered(t: Tables, groups: int = 1) -> float:
    """Return the total bytes acknowledged to the first `groups` flow groups."""
    return float(sum(b for b, g in zip(t["flows"]["bytes_acked"], t["flows"]["group"], strict=True) if g < groups))


def _share_lacking(target: float, values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the target's deficit relative to the best reference's value, for values where larger is better."""
    best = max(values)
    return (best - target) / best if best > 0 and max(weights) >= LEAST_BYTES else 0.0


def _excess(target: float, values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the target's relative excess over the reference that delivers the most, for values where smaller is better."""
    other = _of_the_best(values, weights)
    return (target - other) / target if target > 0 and max(weights) >= LEAST_BYTES else 0.0


def _more(target: float, values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the excess over the reference that delivers the most, for fractions where smaller is better."""
    return target - _of_the_best(values, weights) if max(weights) >= LEAST_BYTES else 0.0


def _of_the_best(values: Sequence[float], weights: Sequence[float]) -> float:
    return values[max(range(len(values)), key=lambda i: (weights[i], -i))]


def _p95_wait(t: Tables, path: Path) -> float:
    rows = t["performance"]
    delays = [p for p, of in zip(rows["p95_delay_s"], rows["of"], strict=True) if of == "flow"]
    return max(delays[0] - path.base_s / 2, 0.0) if delays and delays[0] == delays[0] else 0.0


def _lost(t: Tables, _: Path) -> float:
    rows = t["performance"]
    shares = [p for p, of in zip(rows["loss_share"], rows["of"], strict=True) if of == "flow"]
    return shares[0] if shares and shares[0] == shares[0] else 0.0


def _least_share(t: Tables, _: Path) -> float:
    """Return the smaller of two flows' shares relative to an equal share, in the second half of the run."""
    rows = t["goodput"]
    end = max(rows["t_s"], default=0.0)
    sums = [0.0, 0.0]
    for at, flow, value in zip(rows["t_s"], rows["flow"], rows["goodput_bps"], strict=True):
        if at > end / 2 and flow < 2 and value == value:
            sums[int(flow)] += value
    return 2 * min(sums) / sum(sums) if sum(sums) else 1.0


def _victim(t: Tables, _: Path) -> float:
    """Return the competing flow's bytes."""
    return float(sum(b for b, g in zip(t["flows"]["bytes_acked"], t["flows"]["group"], strict=True) if g == 1))


def _longest_silence(t: Tables, _: Path) -> float:
    """Return the longest time without an ACK, from the first ACK on, as a fraction of the run."""
    rows = t["goodput"]
    longest = since = 0
    begun, count = False, 0
    for flow, value in zip(rows["flow"], rows["goodput_bps"], strict=True):
        if flow != 0:
            continue
        count += 1
        begun = begun or value > 0
        since = 0 if value > 0 or not begun else since + 1
        longest = max(longest, since)
    return longest / count if count else 0.0


def _stuck(t: Tables, path: Path) -> float:
    """Return the fraction of the run, up to its end, spent at a minimal window without a loss; 0 if shorter than
    `STUCK_RTTS` round trips.
    """
    rows = t["samples"]
    mine = [
        (at, cwnd, sent)
        for at, flow, cwnd, sent in zip(rows["t_s"], rows["flow"], rows["cwnd"], rows["retransmissions"], strict=True)
        if flow == 0
    ]
    if not mine:
        return 0.0
    end, _, lost = mine[-1]
    since = end
    for at, cwnd, sent in reversed(mine):
        if cwnd > FLOOR or sent != lost:
            break
        since = at
    return (end - since) / end if end - since >= STUCK_RTTS * path.base_s else 0.0


def _early(t: Tables, path: Path) -> float:
    """Return the fraction of path and queue left empty by the window at a loss; the maximum over all losses."""
    rows = t["samples"]
    found, last, before = 0.0, 0, 0.0
    columns = (rows["flow"], rows["cwnd"], rows["retransmissions"], rows["ca_state"])
    for flow, cwnd, sent, state in zip(*columns, strict=True):
        if flow != 0:
            continue
        if sent > last and before:
            found = max(found, 1 - before / path.holds)
        last, before = sent, (cwnd if state == "Open" else 0.0)
    return found


def _windows_apart(mine: Tables, theirs: Tables) -> float:
    """Return the mean distance between two windows over time, as a fraction of the larger one."""
    one, other = (
        [c for f, c in zip(t["samples"]["flow"], t["samples"]["cwnd"], strict=True) if f == 0] for t in (mine, theirs)
    )
    both = list(zip(one, other, strict=False))
    return sum(abs(a - b) / max(a, b) for a, b in both) / len(both) if both else 0.0


def _mine(t: Tables, _: Path) -> float:
    return delivered(t)


OBJECTIVES: Mapping[str, Objective] = {
    "utilisation": Objective(
        about="delivers less than the best reference", value=_mine, score=_share_lacking, unit="bytes"
    ),
    "delay": Objective(
        about="makes a longer queue (95th percentile) than the reference that delivers most",
        value=_p95_wait, score=_excess, unit="s", record={"performance": True},
        tables={"performance": ("of", "p95_delay_s")},
    ),
    "loss": Objective(
        about="loses a larger share of its packets than the reference that delivers most",
        value=_lost, score=_more, unit="share", record={"performance": True},
        tables={"performance": ("of", "loss_share")},
    ),
    "starvation": Objective(
        about="one of two equal flows gets less of an equal share than with the best reference, in the last half",
        value=_least_share, score=_share_lacking, unit="of an equal share", flows="two",
        record={"goodput_interval": "100 ms"}, tables={"goodput": ("t_s", "flow", "goodput_bps")},
    ),
    "harm": Objective(
        about="leaves less to the flow beside it (CUBIC, unless another is named) than a second flow of that kind would",
        value=_victim, score=_share_lacking, unit="bytes", flows="beside",
    ),
    "stall": Objective(
        about="delivers nothing for longer than the best reference",
        value=_longest_silence, score=lambda mine, values, weights: mine - min(values) if max(weights) >= LEAST_BYTES else 0.0,
        unit="of the run", record={"goodput_interval": "20 ms"}, tables={"goodput": ("t_s", "flow", "goodput_bps")},
    ),
    "stuck": Objective(
        about="keeps its window at the floor for twenty round trips and more after the last loss, and no reference does",
        value=_stuck, score=lambda mine, values, weights: mine - min(values) if max(weights) >= LEAST_BYTES else 0.0,
        unit="of the run", record={"sample_interval": "10 ms"},
        tables={"samples": ("t_s", "flow", "cwnd", "retransmissions")},
    ),
    "early": Objective(
        about="loses a packet at a window that path and queue should hold, and no reference does",
        value=_early, score=lambda mine, values, weights: mine - min(values) if max(weights) >= LEAST_BYTES else 0.0,
        unit="of what path and queue hold", record={"sample_interval": "10 ms"},
        tables={"samples": ("flow", "cwnd", "retransmissions", "ca_state")},
    ),
    "divergence": Objective(
        about="has another window than a reference, on the mean over time and as a share of the larger one",
        value=_mine, score=_share_lacking, unit="bytes", record={"sample_interval": "10 ms"},
        tables={"samples": ("flow", "cwnd")}, apart=_windows_apart,
    ),
}  # fmt: skip


def keys(
    objective: Objective, budget: Budget, candidate: tuple[int, ...], flow: Mapping[str, Any], victim: str = "cubic"
) -> dict[str, Any]:
    """Return the keys of a candidate's scenario with this controller.

    Parameters
    ----------
    objective
        Objective, which determines senders and records.
    budget, candidate
        Budget and candidate that describe the environment.
    flow
        Controller and options in the form of a flow group.
    victim
        Controller beside the target, if the objective has one.
    """
    made = budget.scenario(candidate)
    mine = {"name": "target", **flow, **budget.target(candidate)}
    groups = {
        "one": [mine],
        "two": [mine, {**flow, "name": "equal"}],
        "beside": [mine, {"name": "victim", "congestion_control": victim}],
    }[objective.flows]
    record = {"record": dict(objective.record)} if objective.record else {}
    return {**made, "flows": [*groups, *made["flows"]], **record}
