"""
Four queue disciplines under one download
=========================================

A CUBIC flow on a home link with a queue of at most 250 packets. With drop-tail the queue fills; CoDel, PIE and RED
keep it short.
"""

import matplotlib.pyplot as plt
import polars as pl

import ackclock
from ackclock.plot import OKABE_ITO, styled

room = {"limit": "250 packets"}
queues = {
    "drop-tail": {"kind": "drop-tail", **room},
    "CoDel": {"kind": "codel", **room},
    "PIE": {"kind": "pie", **room},
    "RED": {"kind": "red", **room, "min": "20 packets", "max": "60 packets"},
}
link = {"rate": "10 Mbit/s", "delay": "15 ms", "queue": queues["drop-tail"]}
base = ackclock.Scenario.from_dict(
    {
        "duration": "30 s",
        "network": {"bottleneck": link},
        "flows": [{"congestion_control": "cubic"}],
        "record": {"queue_interval": "50 ms"},
    }
)

with styled():
    figure, axes = plt.subplots(2, 2, figsize=(7.2, 4.4), sharex=True, sharey=True, layout="constrained")
    for ax, (name, queue) in zip(axes.flat, queues.items(), strict=True):
        run = ackclock.run(base.set("network.bottleneck.queue", queue))
        waiting = run.queue_samples.filter(pl.col("link") == 0)
        ax.fill_between(waiting["t_s"], waiting["packets"], step="post", color=OKABE_ITO["sky"], lw=0)
        goodput = run.flows["goodput_bps"][0] / 1e6
        ax.set_title(f"{name}: {goodput:.2f} Mbit/s, RTT {1e3 * run.flows['mean_rtt_s'][0]:.0f} ms")
    figure.supxlabel("time (s)")
    figure.supylabel("packets that wait")
    plt.show()
