"""CUBIC of our Linux profile and that of quinn, a QUIC stack, share one bottleneck."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ackclock import Scenario
from ackclock.plot import Figure, new
from ackclock.stats import Estimate, mean_interval, paired_difference
from ackclock.study import Data, Experiment, Plan, Quantity, Tables
from ackclock.study.cells import Cell, collect

WIDE = {"receive_window": 20_000_000, "send_window": 20_000_000}
SECONDS = 60
JITTER = "1 ms"  # one and a half packet times: enough to keep either flow from synchronising with the other's queue


def linux(**stack: Any) -> dict[str, Any]:
    return {"name": "linux", "congestion_control": "cubic", **({"stack": stack} if stack else {})}


def quinn(controller: str = "cubic", **options: Any) -> dict[str, Any]:
    return {
        "name": "quinn",
        "congestion_control": f"quinn:{controller}",
        "congestion_control_options": {**WIDE, **options},
    }


def scenario(*flows: dict[str, Any], jitter: bool = True, workload: dict[str, Any] | None = None) -> Scenario:
    start = {"kind": "uniform", "low": "0 s", "high": "0.5 s"}
    return Scenario.from_dict(
        {
            "duration": f"{SECONDS} s",
            "network": {
                "access": {"delay": "0.01 ms", **({"jitter": JITTER} if jitter else {})},
                "bottleneck": {
                    "rate": "20 Mbit/s",
                    "delay": "20 ms",
                    "queue": {"kind": "drop-tail", "limit": "1 BDP"},
                },
                "reverse": {"bottleneck": {"delay": "20 ms"}},
            },
            "flows": [{"start": start, "workload": workload or {"kind": "bulk"}, **flow} for flow in flows],
        }
    )


PAIRS: dict[str, Scenario] = {
    "linux": scenario(linux(), linux()),
    "quinn": scenario(linux(), quinn()),
    "quinn in step": scenario(linux(), quinn(), jitter=False),
    "our rule in quinn": scenario(linux(), quinn("ours-cubic")),
    "our rule in quinn, without HyStart": scenario(linux(), quinn("ours-cubic", slow_start="classic")),
    "linux without HyStart": scenario(linux(slow_start={"kind": "classic"}), quinn()),
    "linux paced": scenario(linux(pacing=True), quinn()),
    "an ACK for ten packets": scenario(linux(), quinn(ack_every=10)),
    "lost after ten newer packets": scenario(linux(), quinn(packet_threshold=10)),
}
ALONE: dict[str, Scenario] = {
    "linux": scenario(linux()),
    "linux without HyStart": scenario(linux(slow_start={"kind": "classic"})),
    "quinn": scenario(quinn()),
    "our rule in quinn": scenario(quinn("ours-cubic")),
    "our rule in quinn, without HyStart": scenario(quinn("ours-cubic", slow_start="classic")),
}
TRANSFER = {"kind": "transfer", "bytes": "3 MB"}
TRANSFERS: dict[str, Scenario] = {
    "linux": scenario(linux(), workload=TRANSFER),
    "quinn": scenario(quinn(), workload=TRANSFER),
    "quinn with full packets from the start": scenario(
        quinn(mtu_discovery=False, initial_window=14_480), workload=TRANSFER
    ),
    "our rule in quinn": scenario(quinn("ours-cubic"), workload=TRANSFER),
    "our rule in quinn, without HyStart": scenario(quinn("ours-cubic", slow_start="classic"), workload=TRANSFER),
}


def experiment(name: str, title: str, cells: dict[str, Scenario]) -> Experiment:
    def run(plan: Plan) -> Data:
        made = [
            Cell(
                scenario=cell,
                keys={"arm": arm},
                stream="all",  # identical start times in every arm
                seeds=plan.count(quick=12, paper=40),
                needs={"flows": ("flow", "goodput_bps", "retransmissions", "mean_rtt_s", "completion_s")},
                keep={"flows": lambda batch: batch.flows},
            )
            for arm, cell in cells.items()
        ]
        return collect(name, made, plan)

    return Experiment(name=name, title=title, run=run)


EXPERIMENTS = (
    experiment("pairs", "two flows", PAIRS),
    experiment("alone", "one flow", ALONE),
    experiment("transfers", "one transfer of 3 MB", TRANSFERS),
)


def column(tables: Tables, experiment: str, arm: str, name: str, flow: int = 0) -> NDArray[np.float64]:
    rows = tables[f"{experiment}.flows"].filter(arm=arm, flow=flow).sort("seed")
    return rows[name].cast(pl.Float64).to_numpy()


def share(tables: Tables, arm: str) -> NDArray[np.float64]:
    """Return the second flow's share of the goodput, percent, by seed."""
    first, second = (column(tables, "pairs", arm, "goodput_bps", flow) for flow in (0, 1))
    return 100 * second / (first + second)


def less(first: NDArray[np.float64], second: NDArray[np.float64]) -> Estimate:
    return paired_difference(first, second)


def share_of_quinn(tables: Tables) -> Quantity:
    return Quantity(label="jitter of 1 ms", estimate=mean_interval(share(tables, "quinn")), unit="%", key="share")


def share_of_our_rule(tables: Tables) -> Quantity:
    difference = less(share(tables, "our rule in quinn"), share(tables, "quinn"))
    return Quantity(label="our rule less quinn's", estimate=difference, unit="points", key="rule")


def share_in_step(tables: Tables) -> Quantity:
    return Quantity(label="no jitter", estimate=mean_interval(share(tables, "quinn in step")), unit="%", key="step")


def share_out_of_step(tables: Tables) -> Quantity:
    difference = less(share(tables, "quinn"), share(tables, "quinn in step"))
    return Quantity(label="jitter less none", estimate=difference, unit="points", key="jitter")


def share_with_fewer_acks(tables: Tables) -> Quantity:
    difference = less(share(tables, "quinn"), share(tables, "an ACK for ten packets"))
    return Quantity(label="every second less every tenth", estimate=difference, unit="points", key="acks")


def share_beside_paced(tables: Tables) -> Quantity:
    difference = less(share(tables, "linux paced"), share(tables, "quinn"))
    return Quantity(label="Linux paced less not", estimate=difference, unit="points", key="paced")


def share_without_hystart(tables: Tables) -> Quantity:
    difference = less(share(tables, "our rule in quinn, without HyStart"), share(tables, "our rule in quinn"))
    return Quantity(label="without HyStart less with", estimate=difference, unit="points", key="hystart")


def share_with_late_losses(tables: Tables) -> Quantity:
    difference = less(share(tables, "lost after ten newer packets"), share(tables, "quinn"))
    return Quantity(label="threshold of 10 less 3", estimate=difference, unit="points", key="threshold")


def more_lost(tables: Tables) -> Quantity:
    lost = [column(tables, "alone", arm, "retransmissions") for arm in ("quinn", "linux")]
    return Quantity(label="alone, 60 s", estimate=less(*lost), unit="packets", key="lost")


def more_lost_without_hystart(tables: Tables) -> list[Quantity]:
    found = []
    for rule, key in (("our rule in quinn", "inquinn"), ("linux", "intcp")):
        arms = (f"{rule}, without HyStart" if key == "inquinn" else f"{rule} without HyStart", rule)
        lost = [column(tables, "alone", arm, "retransmissions") for arm in arms]
        found.append(
            Quantity(label="in quinn" if key == "inquinn" else "in TCP", estimate=less(*lost), unit="packets", key=key)
        )
    return found


def more_delay(tables: Tables) -> Quantity:
    rtts = [1000 * column(tables, "alone", arm, "mean_rtt_s") for arm in ("quinn", "linux")]
    return Quantity(label="mean RTT alone", estimate=less(*rtts), unit="ms", key="rtt")


def later(tables: Tables) -> Quantity:
    times = [1000 * column(tables, "transfers", arm, "completion_s") for arm in ("quinn", "linux")]
    return Quantity(label="3 MB", estimate=less(*times), unit="ms", key="later")


def later_without_hystart(tables: Tables) -> Quantity:
    arms = ("our rule in quinn, without HyStart", "our rule in quinn")
    times = [1000 * column(tables, "transfers", arm, "completion_s") for arm in arms]
    return Quantity(label="3 MB, our rule in quinn", estimate=less(*times), unit="ms", key="laterwithout")


def later_with_small_packets(tables: Tables) -> Quantity:
    times = [
        1000 * column(tables, "transfers", arm, "completion_s")
        for arm in ("quinn", "quinn with full packets from the start")
    ]
    return Quantity(label="3 MB, 1,200 bytes at first less 1,452", estimate=less(*times), unit="ms", key="laterfull")


MEASURES = {
    f.__name__: f
    for f in (
        share_of_quinn,
        share_of_our_rule,
        share_in_step,
        share_out_of_step,
        share_with_fewer_acks,
        share_beside_paced,
        share_without_hystart,
        share_with_late_losses,
        more_lost,
        more_lost_without_hystart,
        more_delay,
        later,
        later_without_hystart,
        later_with_small_packets,
    )
}


def scenarios() -> dict[str, Scenario]:
    return {"CUBIC of quinn beside CUBIC of Linux": PAIRS["quinn"]}


def blocks(tables: Tables) -> list[Figure]:
    def draw():
        made, axis = new(7.2, 3.4)
        found = {arm: mean_interval(share(tables, arm)) for arm in PAIRS}
        for at, (_, estimate) in enumerate(reversed(found.items())):
            axis.plot([estimate.low, estimate.high], [at, at], color="#4c78a8", lw=3, solid_capstyle="butt")
            axis.plot([estimate.value], [at], "o", color="#1f3b5c")
        axis.axvline(50, color="#8a8a8a", lw=1)
        axis.set_yticks(range(len(found)), list(reversed(found)))
        axis.set_xlabel("share of the second flow, %")
        return made

    return [
        Figure(
            name="shares",
            title="What the flow beside Linux gets",
            caption="Mean and 95 % interval over seeds. All but one arm have a jitter of 1 ms.",
            draw=draw,
            data={"pairs": tables["pairs.flows"]},
        )
    ]
