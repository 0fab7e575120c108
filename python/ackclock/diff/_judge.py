"""The judge of drawn scenarios: each on both backends, several guests side by side, and a row for each family."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.diff._compare import BACKENDS, both, compare
from ackclock.errors import ScenarioError

if TYPE_CHECKING:
    import polars as pl

    from ackclock._results.result import Run
    from ackclock.fidelity.drawn import Drawn

__all__ = ["Judged", "judge", "table"]

NEAR_S = 2e-6
"""Times of transactions that are nearer than this are equal: the kernel's clients are told of an arrival by an event of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What became of one drawn scenario.

    Parameters
    ----------
    name, kind
        Of the scenario.
    identical
        Every segment and every window of flow 0 is equal to the end; with transactions every time of every one.
    events
        Events that are equal before the first that is not; with transactions those that are.
    text
        The first difference; "" if there is none; why, if it was refused.
    refused
        The kernel's backend cannot carry it out.
    retransmissions, timeouts
        Of the simulator and of the kernel.
    effect
        Of the simulator's goodput against the kernel's; of a transfer's rate, of the rate of transactions.
    kernel
        The kernel's release.
    given
        A flow is of BBR, and the kernel's draws are the simulator's (`bbr_drawn`, or `bbr3_drawn`, of linux/modules).
    """

    name: str
    kind: str
    identical: bool
    events: int
    text: str
    refused: bool = False
    retransmissions: tuple[int, int] = (0, 0)
    timeouts: tuple[int, int] = (0, 0)
    effect: float | None = None
    kernel: str = ""
    given: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "scenario": self.name,
            "family": self.kind,
            "identical": self.identical,
            "equal_events": self.events,
            "difference": self.text or None,
            "refused": self.refused,
            "retransmissions": list(self.retransmissions),
            "timeouts": list(self.timeouts),
            "goodput_difference": self.effect,
            "kernel": self.kernel,
            "draws_given": self.given,
        }


def judge(
    todo: Iterable[Drawn],
    *,
    jobs: int = 1,
    told: Callable[[str, float], None] | None = None,
    kernels: tuple[str, str] | None = None,
) -> list[Judged]:
    """Run scenarios on both backends, or in two kernels.

    Parameters
    ----------
    todo
        The scenarios; what comes of them is in their order.
    jobs
        Guests side by side, at most one on each CPU. Nothing depends on it.
    told
        Called with the name of a scenario that ended, and the share of those that did.
    kernels
        As for `compare`.
    """
    wanted = list(todo)
    cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
    available = sorted(os.sched_getaffinity(0))
    for cpu in available:
        cpus.put(cpu)

    def one(drawn: Drawn) -> Judged:
        with _taken(cpus) as cpu:
            return _judge(drawn, cpu, kernels)

    made: list[Judged] = []
    with ThreadPoolExecutor(min(jobs, len(available))) as pool:
        try:
            for result in pool.map(one, wanted):
                made.append(result)
                if told is not None:
                    told(result.name, len(made) / len(wanted))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return made


def table(judged: Sequence[Judged]) -> str:
    """The families, those with the smallest share of identical ones first, in Markdown. `Judged.given` says what is given."""
    lines = [
        "| family | drawn | identical | of these with draws given | retransmissions equal | timeouts equal | refused | worst goodput |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    families = {kind: [one for one in judged if one.kind == kind] for kind in dict.fromkeys(o.kind for o in judged)}

    def share(of: Sequence[Judged]) -> float:
        return sum(one.identical for one in of) / max(1, sum(not one.refused for one in of))

    for kind, of in [*sorted(families.items(), key=lambda item: share(item[1])), ("all", list(judged))]:
        ran = [one for one in of if not one.refused]
        effects = [one.effect for one in ran if one.effect is not None]
        worst = max(effects, key=abs, default=None)
        counts = (
            len(of),
            sum(one.identical for one in ran),
            sum(one.identical and one.given for one in ran),
            sum(one.retransmissions[0] == one.retransmissions[1] for one in ran),
            sum(one.timeouts[0] == one.timeouts[1] for one in ran),
            len(of) - len(ran),
        )
        shown = "–" if worst is None else f"{100 * worst:+.1f} %"
        lines.append(f"| {kind} | {' | '.join(map(str, counts))} | {shown} |")
    return "\n".join(lines)


@contextmanager
def _taken(cpus: queue.SimpleQueue[int]) -> Iterator[int]:
    cpu = cpus.get()
    try:
        yield cpu
    finally:
        cpus.put(cpu)


def _judge(drawn: Drawn, cpu: int, kernels: tuple[str, str] | None) -> Judged:
    try:
        if drawn.scenario.flows[0].workload.kind == "transactions":
            simulator, kernel = both(drawn.scenario, network=drawn.network, cpu=cpu, kernels=kernels)
            events, text = _transactions(simulator.transactions, kernel.transactions, (kernels or BACKENDS)[1])
            rate = [float(run.transactions["bytes"].sum()) / _busy_s(run.transactions) for run in (simulator, kernel)]
        else:
            result = compare(drawn.scenario, network=drawn.network, cpu=cpu, kernels=kernels)
            simulator, kernel = result.simulator, result.kernel
            events, text = result.events, "" if result.divergence is None else str(result.divergence)
            rate = [_rate(run) for run in (simulator, kernel)]
    except ScenarioError as error:
        return Judged(name=drawn.name, kind=drawn.kind, identical=False, events=0, text=str(error), refused=True)
    return Judged(
        name=drawn.name,
        kind=drawn.kind,
        identical=not text,
        events=events,
        text=text,
        retransmissions=_counts(simulator, kernel, "retransmissions"),
        timeouts=_counts(simulator, kernel, "rtos"),
        effect=rate[0] / rate[1] - 1 if rate[1] else None,
        kernel=str(kernel.provenance["kernel"]["release"]),
        given=_draws(drawn) and all(_follows(run) for run in (simulator, kernel)),
    )


def _draws(drawn: Drawn) -> bool:
    """BBR draws the phase in which it begins to probe."""
    return any(flow.congestion_control in ("bbr", "bbr3") for flow in drawn.scenario.flows)


def _follows(run: Run) -> bool:
    """The simulator, or a kernel whose BBR draws as the simulator's."""
    kernel = run.provenance.get("kernel")
    return kernel is None or not {"bbr_drawn", "bbr3_drawn"}.isdisjoint(kernel["controllers"])


def _counts(simulator: Run, kernel: Run, column: str) -> tuple[int, int]:
    ours, theirs = (int(run.flows[column].fill_null(0).sum()) for run in (simulator, kernel))
    return ours, theirs


def _rate(run: Run) -> float:
    """Of a transfer that ended, its bytes over its time; else goodput."""
    flow = run.flows.row(0, named=True)
    if flow["completion_s"]:
        return float(1 / flow["completion_s"])
    return float(flow["goodput_bps"])


def _busy_s(transactions: pl.DataFrame) -> float:
    """Time that clients spent waiting."""
    return float(transactions["total_s"].fill_null(0).sum()) or 1.0


def _transactions(ours: pl.DataFrame, theirs: pl.DataFrame, other: str) -> tuple[int, str]:
    """Transactions that are equal, and the first that is not, in order of arrival and request."""
    key = ["flow", "batch", "idx"]
    a, b = (rows.sort(key).to_dicts() for rows in (ours, theirs))
    equal, text = 0, ""
    for mine, its in zip(a, b, strict=False):
        wrong = [
            name for name in ("arrival_s", "connect_s", "first_byte_s", "total_s") if _differ(mine[name], its[name])
        ]
        if not wrong:
            equal += 1
        elif not text:
            name = wrong[0]
            text = (
                f"transaction {mine['idx']}, request {mine['request']}, {name.removesuffix('_s')}: "
                f"{_said(mine[name])}, {other} {_said(its[name])}"
            )
    if not text and len(a) != len(b):
        text = f"{len(a)} transactions, {other} {len(b)}"
    return equal, text and f"{equal} of {len(b)} equal; {text}"


def _differ(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is not b
    return abs(a - b) > NEAR_S


def _said(value: float | None) -> str:
    return "none" if value is None else f"{value:.7f} s"
