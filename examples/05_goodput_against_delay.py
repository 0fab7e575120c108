"""
Goodput against delay
=====================

Nine controllers, each alone on the same path with a buffer of four bandwidth-delay products. The top left corner is
best: a fully used link without a queue.
"""

import matplotlib.pyplot as plt

import ackclock
from ackclock.plot import OKABE_ITO, styled

link = {"rate": "20 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "4 BDP"}}
base = ackclock.Scenario.from_dict(
    {
        "duration": "30 s",
        "network": {"bottleneck": link},
        "flows": [{"congestion_control": "reno"}],
        "record": {"performance": True, "warm_up": "5 s"},
    }
)
controllers = ["reno", "cubic", "htcp", "illinois", "yeah", "vegas", "westwood-plus", "bbr", "bbr3"]

with styled():
    figure, ax = plt.subplots(figsize=(7.2, 4), layout="constrained")
    for at, name in enumerate(controllers):
        flow = ackclock.run(base.set("flows.0.congestion_control", name)).performance.row(0, named=True)
        colours = [colour for key, colour in OKABE_ITO.items() if key != "yellow"]
        delay, goodput = 1e3 * flow["p95_delay_s"], flow["goodput_bps"] / 1e6
        ax.plot(delay, goodput, "osD^v<>Ph"[at], color=colours[at % 7], ms=8, ls="none", label=name)
    ax.set(xlabel="95th percentile of the one-way delay (ms)", ylabel="goodput (Mbit/s)")
    ax.set_title("Model-based and delay-based controllers leave the queue empty")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()
