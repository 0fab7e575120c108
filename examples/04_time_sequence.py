"""
One recovery under four rules
=============================

A sender writes 20 kB at once and loses segments 1 to 4 and 11 to 16. The pictures show what it sent, what was dropped, what the
receiver reported in SACK blocks, and when the retransmissions were sent. Rate halving ends the recovery with a small
window, which delays the next 10 kB that the application writes. The dotted line marks the time at which all 30 kB are
acknowledged.
"""

import matplotlib.pyplot as plt

import ackclock
from ackclock.plot import styled
from ackclock.plot.traces import draw_sequence

link = {"rate": "1.2 Mbit/s", "delay": "50 ms", "queue": {"kind": "drop-tail", "limit": "100 packets"}}
link["loss"] = {"kind": "scripted", "drops": [{"first": 1, "last": 4}, {"first": 11, "last": 16}]}
writer = {"kind": "throttled", "rate": "160 kbit/s", "initial": "20 kB", "chunk": "10 kB", "bytes": "30 kB"}
base = ackclock.Scenario.from_dict(
    {
        "duration": "10 s",
        "network": {"bottleneck": link, "reverse": {"bottleneck": {"rate": "1.2 Mbit/s", "delay": "50 ms"}}},
        "flows": [{"profile": "linux-3.2", "stack": {"smss": "1000 bytes", "initial_window": 20}, "workload": writer}],
        "record": {"trace": "flow", "drops": True},
    }
)
rules = {
    "rate-halving": "rate halving",
    "rfc6675": "RFC 6675",
    "prr-linux-3.2": "PRR, Linux 3.2",
    "prr-rfc9937": "PRR, RFC 9937",
}

with styled():
    figure, axes = plt.subplots(2, 2, figsize=(7.6, 5.4), sharex=True, sharey=True, layout="constrained")
    for ax, (rule, title) in zip(axes.flat, rules.items(), strict=True):
        run = ackclock.run(base.set("flows.0.recovery", rule))
        sender = run.acks.filter(responder=False)
        draw_sequence(ax, sender, drops=run.drops.filter(forward=True))
        done = run.flows["start_s"][0] + run.flows["completion_s"][0]
        ax.axvline(done, color="#555555", lw=0.8, ls=(0, (2, 2)))
        ax.text(done, 1, f"{done:.2f} s ", ha="right", va="bottom", fontsize=8)
        ax.set(title=title, xlim=(0, 0.9), ylim=(-1, 32))
        print(f"{title}: {done:.2f} s")
    for ax in axes[-1]:
        ax.set_xlabel("time (s)")
    for ax in axes[:, 0]:
        ax.set_ylabel("sequence (kB)")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, columnspacing=1.2)
    plt.show()
