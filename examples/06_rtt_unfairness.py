"""
Unfair by round-trip time
=========================

Two flows of the same controller share a link; one has an RTT of 20 ms, the other an RTT of 20 to 200 ms. Start times
are random, and each point is the mean over eight seeds.
"""

import matplotlib.pyplot as plt

import ackclock
from ackclock.plot import OKABE_ITO, styled

far = [10, 30, 50, 70, 100]  # one-way delay of the second flow's path, ms


def network(delay_ms):
    access = [{"rate": "1 Gbit/s", "delay": f"{ms - 5} ms"} for ms in (10, delay_ms)]
    link = {"rate": "30 Mbit/s", "delay": "5 ms", "queue": {"kind": "codel", "limit": "1000 packets"}}
    return {"topology": "wishbone", "access_list": access, "bottleneck": link}


with styled():
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for name, colour, marker in (("reno", OKABE_ITO["vermilion"], "o"), ("cubic", OKABE_ITO["blue"], "s")):
        ratios = []
        for delay_ms in far:
            start = {"kind": "uniform", "low": "0 s", "high": "1 s"}
            scenario = ackclock.Scenario.from_dict(
                {
                    "duration": "60 s",
                    "network": network(delay_ms),
                    "flows": [{"count": 2, "congestion_control": name, "start": start}],
                    "record": {"performance": True, "warm_up": "10 s"},
                }
            )
            flows = ackclock.run_batch(scenario, range(8)).performance
            near, distant = (flows.filter(of="flow", number=i)["goodput_bps"] for i in (0, 1))
            ratios.append((near / distant).mean())
        ax.plot([ms / 10 for ms in far], ratios, marker=marker, color=colour, label=name)
    ax.axhline(1, color="black", lw=0.8)
    ax.set(xlabel="ratio of the RTTs", ylabel="ratio of the goodputs", title="The shorter path gets more")
    ax.legend()
    plt.show()
