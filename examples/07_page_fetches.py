"""
Short fetches beside a download
===============================

Time to fetch 30 KB while a download fills the same link, with a deep drop-tail buffer and with FQ-CoDel, which gives
each flow a separate queue.
"""

import matplotlib.pyplot as plt
import numpy as np

import ackclock
from ackclock.plot import OKABE_ITO, styled

room = {"limit": "250 packets"}
link = {"rate": "10 Mbit/s", "delay": "15 ms", "queue": {"kind": "drop-tail", **room}}
fetches = {"kind": "fetch", "bytes": "30 KB", "count": 200, "pause": "200 ms"}
base = ackclock.Scenario.from_dict(
    {
        "duration": "120 s",
        "network": {"bottleneck": link},
        "flows": [{"congestion_control": "cubic"}, {"start": "5 s", "workload": fetches}],
    }
)

with styled():
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for kind, colour, dash in (("drop-tail", OKABE_ITO["vermilion"], "-"), ("fq-codel", OKABE_ITO["green"], "--")):
        run = ackclock.run(base.set("network.bottleneck.queue", {"kind": kind, **room}))
        times = np.sort(run.fetches.filter(run.fetches["done"])["total_s"].to_numpy())
        ax.step(times, np.arange(1, len(times) + 1) / len(times), where="post", color=colour, ls=dash, label=kind)
    ax.set(xlabel="time of a fetch (s)", ylabel="share of the fetches", xscale="log", ylim=(0, 1))
    ticks = [0.1, 0.2, 0.5, 1, 2]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_title("A queue of its own spares a fetch the download's queue")
    ax.legend(loc="lower right")
    plt.show()
