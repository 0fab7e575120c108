"""
Windows of Reno and CUBIC
=========================

One flow at a time on a 20 Mbit/s path with a 60 ms RTT and a buffer of one bandwidth-delay product. Reno adds a segment
per round trip; CUBIC returns quickly to the window at the last loss, stays there for a while, and then probes beyond
it.
"""

import matplotlib.pyplot as plt

import ackclock
from ackclock.plot import OKABE_ITO, styled

link = {"rate": "20 Mbit/s", "delay": "30 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
base = ackclock.Scenario.from_dict(
    {
        "duration": "60 s",
        "network": {"bottleneck": link},
        "flows": [{"congestion_control": "reno"}],
        "record": {"sample_interval": "100 ms"},
    }
)

with styled():
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for name, colour in (("reno", OKABE_ITO["vermilion"]), ("cubic", OKABE_ITO["blue"])):
        run = ackclock.run(base.set("flows.0.congestion_control", name))
        ax.step(run.samples["t_s"], run.samples["cwnd"], where="post", color=colour, label=name)
    ax.set(xlabel="time (s)", ylabel="cwnd (segments)", title="CUBIC is back at its old window much sooner", ylim=0)
    ax.legend(loc="lower right")
    plt.show()
