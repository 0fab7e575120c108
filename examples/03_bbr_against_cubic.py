"""
BBR against CUBIC, by the size of the buffer
============================================

Two flows, one of each, share a 20 Mbit/s link. With a shallow buffer BBR takes nearly everything, because it ignores
the losses that its bursts cause. With a deep buffer CUBIC fills the queue, and BBR is limited to the window that its
model of the path allows.
"""

import matplotlib.pyplot as plt
import polars as pl

import ackclock
from ackclock.plot import OKABE_ITO, styled

link = {"rate": "20 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
start = {"kind": "uniform", "low": "0 s", "high": "1 s"}
flows = [{"congestion_control": name, "start": start} for name in ("bbr", "cubic")]
base = ackclock.Scenario.from_dict(
    {
        "duration": "40 s",
        "network": {"bottleneck": link},
        "flows": flows,
        "record": {"performance": True, "warm_up": "10 s"},
    }
)
buffers = [0.25, 0.5, 1, 2, 4, 8]

shares = []
for bdp in buffers:
    batch = ackclock.run_batch(base.set("network.bottleneck.queue.limit", f"{bdp} BDP"), range(4))
    flow = batch.performance.filter(batch.performance["of"] == "flow")
    shares.append(flow.group_by("name").agg(pl.col("share").mean()).sort("name")["share"].to_list())

with styled():
    figure, ax = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    bbr, cubic = zip(*shares, strict=True)
    places = range(len(buffers))
    ax.bar(places, bbr, color=OKABE_ITO["orange"], label="BBR")
    ax.bar(places, cubic, bottom=bbr, color=OKABE_ITO["blue"], hatch="//", edgecolor="white", label="CUBIC")
    ax.axhline(0.5, color="black", lw=0.8)
    ax.set_xticks(places, [f"{bdp:g}" for bdp in buffers])
    ax.set(xlabel="buffer (BDP)", ylabel="share of the goodput", title="A deep buffer turns the tables")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    plt.show()
