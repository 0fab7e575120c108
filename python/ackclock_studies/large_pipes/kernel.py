"""Part of the study that can run on the real kernel: NewReno, HighSpeed and Westwood+ over both paths, compared with the simulator on the same
hosts.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ackclock.judge.estimates import Array, median
from ackclock.plot import OKABE_ITO, Figure, new
from ackclock.report import Section, Table
from ackclock.scenario import Scenario
from ackclock.study import (
    Bound,
    Claim,
    Criterion,
    Data,
    Evidence,
    Experiment,
    Plan,
    Tables,
    at_least,
    at_most,
    below,
)
from ackclock.study.cells import Cell, collect
from ackclock.study.kernel import KernelPart
from ackclock_studies.large_pipes import losses, paths, runs, sharing, transfers
from ackclock_studies.large_pipes.paths import ALABAMA, CALTECH, HSTCP, LINUX_WINDOW, NEWRENO, Bottleneck

WESTWOOD_PLUS = "Westwood+"
SENDERS = {NEWRENO: "reno", HSTCP: "highspeed", WESTWOOD_PLUS: "westwood-plus"}
"""Name -> controller; the kernel's name for the last one is westwood."""

COLOURS = {NEWRENO: OKABE_ITO["blue"], HSTCP: OKABE_ITO["vermilion"], WESTWOOD_PLUS: OKABE_ITO["green"]}

RAMP_SECONDS = {ALABAMA.name: 12.0, CALTECH.name: 1.0}
LOSS_SECONDS, SHARING_SECONDS = 20.0, 16.0
BUFFERS = (50, 100, 200, 400)


def scenario(
    path: Bottleneck,
    flows: Sequence[tuple[str, int]],
    *,
    duration_s: float,
    workload: Mapping[str, Any] | None = None,
    queue: int | None = None,
    loss: float = 0.0,
    stagger_s: float = 0.0,
    record: Mapping[str, Any] | None = None,
) -> Scenario:
    """Flows over a path, without other users, on Linux 6 hosts with the study's window (A4) and initial window (A12)."""
    groups: list[dict[str, Any]] = []
    begun = 0
    for name, count in flows:
        group: dict[str, Any] = {
            "profile": "linux-6",
            "congestion_control": SENDERS[name],
            "stack": {"initial_window": 2, "receive_buffer": LINUX_WINDOW},
            "count": count,
            "workload": dict(workload or {"kind": "bulk"}),
        }
        if stagger_s:
            group |= {"start": f"{begun * stagger_s:g} s", "stagger": f"{stagger_s:g} s"}
        begun += count
        groups.append(group)
    return Scenario.from_dict(
        {
            "name": f"{path.name}, {', '.join(f'{n} x {name}' for name, n in flows)}",
            "duration": f"{duration_s:g} s",
            "network": paths.network(path, queue=queue, loss=loss),
            "flows": groups,
            "record": dict(record or {}),
        }
    )


def run_ramps(plan: Plan) -> Data:
    """The first seconds of a transfer.

    Returns
    -------
    Data
        `ramps.times`: path, protocol, run, ramp_s.
    """
    cells = [
        Cell(
            scenario=scenario(
                path,
                [(name, 1)],
                duration_s=RAMP_SECONDS[path.name],
                record={"goodput_interval": f"{1e6 * path.rtt_s:.0f} us"},
            ),
            keys={"path": path.name, "protocol": name},
            stream="large-pipes kernel ramps",
            seeds=1,
            needs=runs.GOODPUT,
            keep={"times": runs.ramp(path)},
        )
        for path in (ALABAMA, CALTECH)
        for name in SENDERS
    ]
    return collect("ramps", cells, plan, numbered=True)


def run_transfers(plan: Plan) -> Data:
    """100 MB over path 1.

    Returns
    -------
    Data
        `transfers.times`: queue, protocol, run, completion_s, retransmissions.
    """
    cells = [
        Cell(
            scenario=scenario(
                ALABAMA,
                [(name, 1)],
                duration_s=60,
                queue=queue,
                workload={"kind": "transfer", "bytes": f"{transfers.SIZE} bytes"},
            ),
            keys={"queue": queue, "protocol": name},
            stream="large-pipes kernel transfers",
            seeds=1,
            needs={"flows": ("flow", "start_s", "established_s", "completion_s", "retransmissions")},
            keep={"times": transfers.completion},
        )
        for queue in (*BUFFERS, transfers.CONTROL)
        for name in SENDERS
    ]
    return collect("transfers", cells, plan, numbered=True)


def run_losses(plan: Plan) -> Data:
    """Random loss on path 1.

    Returns
    -------
    Data
        `losses.throughput`: protocol, loss, run, goodput_bps, rtos, retransmissions.
    """
    cells = [
        Cell(
            scenario=scenario(ALABAMA, [(name, 1)], duration_s=LOSS_SECONDS, loss=loss),
            keys={"protocol": name, "loss": loss},
            stream=f"large-pipes losses {loss}",
            seeds=plan.count(quick=12, paper=12),
            needs={"flows": ("goodput_bps", "rtos", "retransmissions")},
            keep={"throughput": lambda batch: batch.flows.select("seed", "goodput_bps", "rtos", "retransmissions")},
        )
        for name in SENDERS
        for loss in losses.LOSSES
    ]
    return collect("losses", cells, plan, numbered=True)


def run_sharing(plan: Plan) -> Data:
    """Two and four flows of one kind, started a second apart.

    Returns
    -------
    Data
        `sharing.same`: protocol, flows, run, flow, goodput_bps over the second half.
    """
    cells = [
        Cell(
            scenario=scenario(
                ALABAMA,
                [(name, n)],
                duration_s=SHARING_SECONDS,
                queue=sharing.QUEUE,
                stagger_s=1.0,
                record={"goodput_interval": "1 s"},
            ),
            keys={"protocol": name, "flows": n},
            stream="large-pipes kernel sharing",
            seeds=1,
            needs={"goodput": ("flow", "t_s", "goodput_bps")},
            keep={"same": sharing.shares},
        )
        for name in SENDERS
        for n in (2, 4)
    ]
    return collect("sharing", cells, plan, numbered=True)


def ramp_s(tables: Tables, path: Bottleneck, name: str) -> float:
    """Time to 90 % of the capacity, s; if never reached, the run length as a lower bound."""
    t = tables["ramps.times"].filter((pl.col("path") == path.name) & (pl.col("protocol") == name))
    return min(float(t["ramp_s"][0]), RAMP_SECONDS[path.name])


def completion_s(tables: Tables, queue: int, name: str) -> float:
    """Completion times of the 100 MB transfers, s."""
    t = tables["transfers.times"].filter((pl.col("queue") == queue) & (pl.col("protocol") == name))
    return float(t["completion_s"][0])


def throughput(tables: Tables, name: str, loss: float) -> Array:
    """Goodput under random loss, bit/s, one per run."""
    t = tables["losses.throughput"].filter((pl.col("protocol") == name) & (pl.col("loss") == loss))
    return t.sort("run")["goodput_bps"].to_numpy().astype(np.float64)


def _w2(tables: Tables) -> Sequence[Evidence]:
    t = {name: ramp_s(tables, ALABAMA, name) for name in SENDERS}
    shown = [
        Evidence(
            label=f"time to 90 %, {name} (12 s: not reached)",
            value=value,
            bound=Bound(),
            unit="s",
            seeds=1,
            weighs=False,
        )
        for name, value in t.items()
    ]
    ratio = t[NEWRENO] / t[HSTCP]
    return [Evidence(label="time to 90 %, NewReno / HSTCP", value=ratio, bound=at_least(2), seeds=1), *shown]


def _w9(tables: Tables) -> Sequence[Evidence]:
    kept, shown = 0, []
    for queue in BUFFERS:
        high, low = completion_s(tables, queue, HSTCP), completion_s(tables, queue, NEWRENO)
        kept += high < low
        shown.append(
            Evidence(
                label=f"{queue} packets: HSTCP {high:.2f} s, NewReno {low:.2f} s; NewReno / HSTCP",
                value=low / high,
                bound=Bound(),
                seeds=1,
                weighs=False,
            )
        )
    share = 100 * kept / len(BUFFERS)
    label = f"of {len(BUFFERS)} queues, those with HSTCP before NewReno"
    return [Evidence(label=label, value=share, bound=at_least(80), unit="%", seeds=1), *shown]


def _w10(tables: Tables) -> Sequence[Evidence]:
    return [
        Evidence.of(
            median(throughput(tables, WESTWOOD_PLUS, loss) / throughput(tables, other, loss)),
            f"{100 * loss:g} % loss: Westwood+ / {other}",
            at_least(5.0),
        )
        for loss in losses.LOSSES
        for other in (HSTCP, NEWRENO)
    ]


def _w11(tables: Tables) -> Sequence[Evidence]:
    return [
        Evidence.of(
            median(throughput(tables, name, high) / throughput(tables, name, low)),
            f"{name}: throughput at {100 * high:g} % over {100 * low:g} %",
            below(1.0),
        )
        for name in SENDERS
        for low, high in zip(losses.LOSSES, losses.LOSSES[1:], strict=False)
    ]


def _w12(tables: Tables) -> Sequence[Evidence]:
    t = {name: ramp_s(tables, CALTECH, name) for name in SENDERS}
    found = [Evidence(label="NewReno, cold: time to 90 %", value=t[NEWRENO], bound=below(0.2), unit="s", seeds=1)]
    for other in (HSTCP, WESTWOOD_PLUS):
        ratio = t[NEWRENO] / t[other]
        found.append(Evidence(label=f"time to 90 %, NewReno / {other}", value=ratio, bound=at_most(1.0), seeds=1))
    return found


def _w18(tables: Tables) -> Sequence[Evidence]:
    t = tables["sharing.same"]
    found = []
    for name in SENDERS:
        for n in (2, 4):
            own = t.filter((pl.col("protocol") == name) & (pl.col("flows") == n))
            (index,) = sharing.jain_per_run(own)
            found.append(
                Evidence(
                    label=f"{n} {name}: Jain's index, second half",
                    value=index,
                    bound=at_least(0.95),
                    seeds=1,
                    weighs=name != NEWRENO,
                )
            )
    return found


def _control(tables: Tables) -> Sequence[Evidence]:
    times = [completion_s(tables, transfers.CONTROL, name) for name in SENDERS]
    label = "100 MB, queue of 2000, no loss: slowest over fastest"
    return [Evidence(label=label, value=max(times) / min(times), bound=at_most(1.1), seeds=1)]


def _claim(id: str, place: str, statement: str, reading: str, measure: Any) -> Claim:
    return Claim(id=id, place=place, statement=statement, direction=Criterion(measure=measure, reading=reading))


CLAIMS = (
    _claim(
        "W2",
        "slide 10",
        "The protocols converge at different speed.",
        "Path 1, cold: NewReno takes at least twice as long to 90 % as HSTCP.",
        _w2,
    ),
    _claim(
        "W9",
        "slide 12",
        "HSTCP finishes 100 MB before NewReno.",
        "Cold, queues of 50 to 400 packets: in at least 80 % of them.",
        _w9,
    ),
    _claim(
        "W10",
        "slides 15, 16",
        "Under random loss Westwood is far above HSTCP and NewReno.",
        "Westwood+ in place of TCPW, 0.1 to 0.5 %: at least five times either.",
        _w10,
    ),
    _claim("W11", "slide 16", "Throughput falls with the loss rate for all.", "From each loss rate to the next.", _w11),
    _claim(
        "W12",
        "slide 18",
        "On path 2 NewReno starts very high.",
        "Cold, for the kernel fills its cache of ssthresh itself: 90 % in less than 0.2 s, and neither of the others is sooner.",
        _w12,
    ),
    _claim(
        "W18",
        "slide 23",
        "The advanced protocols share excellently among flows of the same kind.",
        f"Two and four flows, second half of {SHARING_SECONDS:g} s: Jain's index 0.95 or more.",
        _w18,
    ),
    _claim(
        "N1",
        "ours: negative control",
        "With a queue that never overflows all take equally long.",
        "100 MB, queue of 2000 packets: slowest over fastest at most 1.1.",
        _control,
    ),
)

_ABSE = "is about TCPW (ABSE, adaptive start), which no kernel has"
_FAST = "is about FAST, which no kernel has"
_CACHE = "needs connections that share a cache of ssthresh, which each run of the kernel begins anew"
_CARD = "is about network cards that coalesce interrupts, which User-Mode Linux has none of"

LEFT_OUT = {
    "W1": "is about the path, not about TCP",
    "W3": _CACHE,
    "W4": _CACHE,
    "W5": _ABSE,
    "W6": _FAST,
    "W7": _CACHE,
    "W8": _CACHE,
    "W13": _ABSE,
    "W14": _ABSE,
    "W15": _CARD,
    "W16": _CARD,
    "W17": _ABSE,
    "W19": _FAST,
    "W20": "has no number to hold against",
    "W21": _ABSE,
    "W22": _ABSE,
    "W23": _ABSE,
    "W24": _CARD,
    "W25": _ABSE,
    "W26": "is about TCPW, FAST and HighSpeed, of which the kernel has the last",
    "W27": "is about one loss, for which the simulator's list of packets suffices",
    "W28": _CACHE,
    "W29": _ABSE,
    "W30": _ABSE,
    "N2": _ABSE,
    "N3": _FAST,
    "N4": _ABSE,
}


def _sections(tables: Mapping[str, Tables]) -> tuple[Section, ...]:
    linux, sim = tables["linux"], tables["sim"]
    starts = Table(
        caption="Time to 90 % of the capacity (4 round trips of mean, kept for 10), s; 12 s and 1 s are the ends of the runs: not reached.",
        header=("path", "protocol", "kernel", "simulator"),
        rows=tuple(
            (path.name, name, f"{ramp_s(linux, path, name):.3f}", f"{ramp_s(sim, path, name):.3f}")
            for path in (ALABAMA, CALTECH)
            for name in SENDERS
        ),
    )
    table_of_transfers = Table(
        caption="100 MB over path 1, s; in brackets the segments retransmitted.",
        header=("queue, packets", "protocol", "kernel", "simulator"),
        rows=tuple(
            (str(queue), name, *(_transfer(t, queue, name) for t in (linux, sim)))
            for queue in (*BUFFERS, transfers.CONTROL)
            for name in SENDERS
        ),
    )
    table_of_losses = Table(
        caption="Goodput under random loss on path 1, Mb/s: median over runs. Both backends lose the same packets of the link.",
        header=("loss", "protocol", "kernel", "simulator"),
        rows=tuple(
            (
                f"{100 * loss:g} %",
                name,
                *(f"{1e-6 * float(np.median(throughput(t, name, loss))):.2f}" for t in (linux, sim)),
            )
            for loss in losses.LOSSES
            for name in SENDERS
        ),
    )
    return (
        Section(title="Starts and transfers", blocks=(starts, table_of_transfers)),
        Section(title="Random loss", blocks=(figure(tables), table_of_losses)),
    )


def _transfer(tables: Tables, queue: int, name: str) -> str:
    t = tables["transfers.times"].filter((pl.col("queue") == queue) & (pl.col("protocol") == name))
    return f"{t['completion_s'][0]:.3f} ({t['retransmissions'][0]:,})"


def figure(tables: Mapping[str, Tables]) -> Figure:
    """Goodput under loss on both backends."""
    rows = [
        {"backend": backend, "protocol": name, "loss": loss, "mbps": 1e-6 * float(np.median(throughput(t, name, loss)))}
        for backend, t in tables.items()
        for name in SENDERS
        for loss in losses.LOSSES
    ]
    points = pl.DataFrame(rows)

    def draw() -> Any:
        made, ax = new(5.2, 3.2)
        for name, colour in COLOURS.items():
            for backend, style, word in (("linux", "o-", "kernel"), ("sim", "x:", "simulator")):
                own = points.filter((pl.col("protocol") == name) & (pl.col("backend") == backend))
                ax.plot(100 * own["loss"], own["mbps"], style, color=colour, mfc="none", label=f"{name}, {word}")
        ax.set(xlabel="loss rate (%)", ylabel="goodput (Mb/s)", yscale="log")
        ax.legend(fontsize=7)
        return made

    wide = points.pivot("backend", index=["protocol", "loss"], values="mbps")
    ratio = (wide["linux"] / wide["sim"]).to_numpy()
    return Figure(
        name="losses",
        title=f"Goodput under random loss, kernel over simulator: {ratio.min():.2f} to {ratio.max():.2f}",
        caption="Path 1, medians over runs. Circles: the kernel; crosses: the simulator.",
        draw=draw,
        data={"losses": points},
    )


PART = KernelPart(
    summary=(
        "The study's controllers that Linux itself has: NewReno (reno), HighSpeed TCP (highspeed) and Westwood+ (westwood) in the real kernel, beside the "
        "simulator with the settings of the same kernel: Linux 6 with SACK, RACK-TLP and PRR, the window of the study, cold caches, no other "
        "flow on the path. TCPW of the slides is another Westwood, and FAST is in no kernel."
    ),
    experiments=(
        Experiment(name="ramps", title="the first seconds, both paths", run=run_ramps, weight=4),
        Experiment(name="transfers", title="100 MB over path 1", run=run_transfers, weight=10),
        Experiment(name="losses", title="random loss on path 1", run=run_losses, weight=10),
        Experiment(name="sharing", title="two and four flows of one kind", run=run_sharing, weight=8),
    ),
    claims=CLAIMS,
    left_out=LEFT_OUT,
    sections=_sections,
    scenarios=lambda: {
        "100 MB, HSTCP": scenario(
            ALABAMA, [(HSTCP, 1)], duration_s=60, workload={"kind": "transfer", "bytes": f"{transfers.SIZE} bytes"}
        ),
        "Westwood+ at 0.3 % loss": scenario(ALABAMA, [(WESTWOOD_PLUS, 1)], duration_s=LOSS_SECONDS, loss=0.003),
    },
    record=pathlib.Path(__file__).with_name("kernel.json"),
)
