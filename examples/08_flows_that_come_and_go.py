"""
Flows that come and go
======================

Four CUBIC flows start 20 s apart and stop in the same order. How quickly do they converge to equal shares, and how
quickly do they use capacity that becomes free?
"""

import matplotlib.pyplot as plt
import polars as pl

import ackclock
from ackclock.plot import OKABE_ITO, styled

link = {"rate": "50 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
flows = [
    {"congestion_control": "cubic", "name": f"flow {i}", "start": f"{20 * i} s", "stop": f"{80 + 20 * i} s"}
    for i in range(4)
]
run = ackclock.run(
    ackclock.Scenario.from_dict(
        {
            "duration": "140 s",
            "network": {"bottleneck": link},
            "flows": flows,
            "record": {"goodput_interval": "1 s"},
        }
    )
)

with styled():
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    colours = [OKABE_ITO[name] for name in ("blue", "orange", "green", "purple")]
    for i in range(4):
        rows = run.goodput.filter(pl.col("flow") == i)
        ax.plot(rows["t_s"], rows["goodput_bps"] / 1e6, color=colours[i], label=f"flow {i}", lw=1.2)
    ax.set(xlabel="time (s)", ylabel="goodput (Mbit/s)", title="Four CUBIC flows, 20 s apart", ylim=0)
    ax.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.18))
    plt.show()
