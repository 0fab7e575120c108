"""
Video players behind one link
=============================

Three FESTIVE players and three that follow the measured rate share a 12 Mbit/s link. Each line shows the bitrate of one
player's chunks.
"""

import matplotlib.pyplot as plt
import polars as pl

import ackclock
from ackclock.plot import OKABE_ITO, styled

ladder = ["350 kbit/s", "600 kbit/s", "1 Mbit/s", "1.5 Mbit/s", "2 Mbit/s", "3 Mbit/s"]


def players(name, start):
    video = {"kind": "video", "ladder": ladder, "chunk": "4 s", "size_variation": 0.1, "adaptation": {"kind": name}}
    return {"count": 3, "name": name, "start": start, "stagger": "1 s", "workload": video}


link = {"rate": "12 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "50 packets"}}
run = ackclock.run(
    ackclock.Scenario.from_dict(
        {
            "duration": "180 s",
            "network": {"topology": "dumbbell", "access": {"rate": "1 Gbit/s", "delay": "1 ms"}, "bottleneck": link},
            "flows": [players("festive", "0 s"), players("rate-based", "500 ms")],
        }
    )
)

with styled():
    figure, axes = plt.subplots(2, 1, figsize=(7.2, 4.4), sharex=True, sharey=True, layout="constrained")
    colours = [OKABE_ITO[name] for name in ("blue", "orange", "green")]
    for ax, name, first in zip(axes, ("festive", "rate-based"), (0, 3), strict=True):
        for i in range(3):
            chunks = run.chunks.filter(pl.col("flow") == first + i).drop_nulls("finish_s")
            ax.step(chunks["finish_s"], chunks["bitrate_bps"] / 1e6, where="post", color=colours[i], lw=1.2)
        ax.set_title(name)
    figure.supxlabel("time (s)")
    figure.supylabel("bitrate (Mbit/s)")
    plt.show()
