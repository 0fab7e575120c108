"""Judges drawn scenarios: runs each on both backends, several guests in parallel, and writes one row per family."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ackclock.diff._compare import compare
from ackclock.diff._flows import Flow
from ackclock.errors import ScenarioError
from ackclock.linux._guest import LimitError
from ackclock.text import change

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.fidelity.drawn import Drawn

__all__ = ["Judged", "errors", "judge", "table"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """Comparison of one drawn scenario.

    Parameters
    ----------
    name, kind
        Name and kind of the scenario.
    identical
        Whether every segment and every window of every flow is identical up to the end (for clients, every time of
        every request), as well as completion, goodput, retransmissions and timeouts of each flow.
    events
        Number of identical events before the first difference, summed over flows; for clients, the number of identical
        ones.
    text
        First difference; "" if there is none; the reason, if the scenario was refused.
    first
        Whether the events of flow 0 are identical, regardless of the others.
    flows
        All flows.
    refused
        Whether the linux backend refused the scenario.
    retransmissions, timeouts
        Counts in the simulator and in the kernel.
    effect
        Largest difference of a flow's goodput: the simulator's relative to the kernel's, or the second kernel's
        relative to the first's.
    kernel
        The kernel's release.
    given
        Whether a flow uses BBR and the kernel draws as the simulator does (`bbr_drawn`, or `bbr3_drawn`, of
        linux/modules).
    """

    name: str
    kind: str
    identical: bool
    events: int
    text: str
    first: bool = False
    flows: tuple[Flow, ...] = ()
    refused: bool = False
    retransmissions: tuple[int, int] = (0, 0)
    timeouts: tuple[int, int] = (0, 0)
    effect: float | None = None
    kernel: str = ""
    given: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "scenario": self.name,
            "family": self.kind,
            "identical": self.identical,
            "first_flow_identical": self.first,
            "flows": [flow.to_json() for flow in self.flows],
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
        Scenarios; the results have their order.
    jobs
        Number of parallel guests, at most one per CPU, which does not affect the results.
    told
        Called with the name of each finished scenario, and the fraction of finished ones.
    kernels
        See `compare`.
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


def table(judged: Sequence[Judged], kernels: tuple[str, str] | None = None) -> str:
    """Return the families in Markdown, those with the smallest fraction of identical scenarios first."""
    goodput = "worst goodput" if kernels is None else goodput_head(kernels)
    lines = [
        f"| family | drawn | identical | events of flow 0 | of the identical with draws given | retransmissions equal | timeouts equal | refused | {goodput} |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    families = {kind: [one for one in judged if one.kind == kind] for kind in dict.fromkeys(o.kind for o in judged)}

    def share(of: Sequence[Judged]) -> float:
        return sum(one.identical for one in of) / max(1, sum(not one.refused for one in of))

    for kind, of in [*sorted(families.items(), key=lambda item: share(item[1])), ("all", list(judged))]:
        ran = [one for one in of if not one.refused]
        worst = _largest(one.effect for one in ran)
        counts = (
            len(of),
            sum(one.identical for one in ran),
            sum(one.first for one in ran),
            sum(one.identical and one.given for one in ran),
            sum(one.retransmissions[0] == one.retransmissions[1] for one in ran),
            sum(one.timeouts[0] == one.timeouts[1] for one in ran),
            len(of) - len(ran),
        )
        shown = change(worst, 1)
        lines.append(f"| {kind} | {' | '.join(map(str, counts))} | {shown} |")
    return "\n".join(lines)


def goodput_head(kernels: tuple[str, str]) -> str:
    """Return the goodput column's header, with its sign."""
    return f"goodput, {kernels[1]} minus {kernels[0]}: larger is better"


SHARES = (0.001, 0.01, 0.02, 0.05, 0.1)
LEAST_BYTES = 50_000
"""Minimum number of bytes for a flow to be included in the goodput comparison."""


def errors(judged: Sequence[Judged]) -> str:
    """Return the flows' deviations in Markdown: for all flows with more than `LEAST_BYTES`, then for those
    in scenarios that differ; "" if there are none.
    """
    ran = [one for one in judged if not one.refused]
    every = [flow for one in ran for flow in one.flows if max(flow.bytes) > LEAST_BYTES]
    wrong = [flow for one in ran if not one.identical for flow in one.flows if max(flow.bytes) > LEAST_BYTES]
    rows = (
        ("goodput, all flows", [_apart(*flow.goodput_bps) for flow in every]),
        ("goodput, where a scenario differs", [_apart(*flow.goodput_bps) for flow in wrong]),
        ("completion, where a scenario differs", [_apart(*flow.completion_s) for flow in wrong]),
        ("retransmissions, where a scenario differs", [_apart(*flow.retransmissions) for flow in wrong]),
    )
    lines = [
        "| quantity | flows | " + " | ".join(f"within {100 * share:g} %" for share in SHARES) + " | largest |",
        "| --- | ---: |" + " ---: |" * (len(SHARES) + 1),
    ]
    for name, found in rows:
        values = [value for value in found if value is not None]
        if values:
            counts = " | ".join(str(sum(value <= share for value in values)) for share in SHARES)
            lines.append(f"| {name} | {len(values)} | {counts} | {100 * max(values):.1f} % |")
    return "\n".join(lines) if len(lines) > 2 else ""


def _apart(a: float | None, b: float | None) -> float | None:
    """Return the difference between two values relative to the second."""
    if a is None or b is None:
        return None
    return abs(a - b) / abs(b) if b else float(a != b)


@contextmanager
def _taken(cpus: queue.SimpleQueue[int]) -> Iterator[int]:
    cpu = cpus.get()
    try:
        yield cpu
    finally:
        cpus.put(cpu)


def _judge(drawn: Drawn, cpu: int, kernels: tuple[str, str] | None) -> Judged:
    try:
        result = compare(drawn.scenario, network=drawn.network, cpu=cpu, kernels=kernels)
    except (ScenarioError, LimitError) as error:  # so that a slow guest does not delay other scenarios
        return Judged(name=drawn.name, kind=drawn.kind, identical=False, events=0, text=str(error), refused=True)
    wrong = next((flow for flow in result.flows if not flow.identical), None)
    return Judged(
        name=drawn.name,
        kind=drawn.kind,
        identical=result.identical,
        first=not result.flows[0].difference,
        flows=result.flows,
        events=sum(flow.events for flow in result.flows),
        text="" if wrong is None else f"flow {wrong.number}: {wrong.text}" if len(result.flows) > 1 else wrong.text,
        retransmissions=_counts(result.simulator, result.kernel, "retransmissions"),
        timeouts=_counts(result.simulator, result.kernel, "rtos"),
        effect=_largest(flow.change if kernels else flow.effect for flow in result.flows),
        kernel=str(result.kernel.provenance["kernel"]["release"]),
        given=_draws(drawn) and all(_follows(run) for run in (result.simulator, result.kernel)),
    )


def _largest(effects: Iterable[float | None]) -> float | None:
    return max((effect for effect in effects if effect is not None), key=abs, default=None)


def _draws(drawn: Drawn) -> bool:
    """Whether a flow in the scenario picks its first probing phase at random, as BBR does."""
    return any(flow.congestion_control in ("bbr", "bbr3") for flow in drawn.scenario.flows)


def _follows(run: Run) -> bool:
    """Whether the run is the simulator's, or that of a kernel with a BBR that draws as the simulator's does."""
    kernel = run.provenance.get("kernel")
    return kernel is None or not {"bbr_drawn", "bbr3_drawn"}.isdisjoint(kernel["controllers"])


def _counts(simulator: Run, kernel: Run, column: str) -> tuple[int, int]:
    ours, theirs = (int(run.flows[column].fill_null(0).sum()) for run in (simulator, kernel))
    return ours, theirs
