"""
A controller of your own
========================

AIMD(a, b) adds *a* segments per round trip and reduces the window by the fraction *b* on a loss. Reno is AIMD(1, 1/2).
A gentler decrease needs a smaller increase to stay fair: AIMD(0.2, 1/8) sends more smoothly and reacts more slowly.
"""

import matplotlib.pyplot as plt

import ackclock
from ackclock.controllers import Controller, check
from ackclock.plot import OKABE_ITO, styled


class Aimd(Controller):
    a, b = 1.0, 0.5

    def on_ack(self, window, ack):
        if ack.cwnd_limited:
            window.cwnd += ack.acked * (1 if window.in_slow_start else self.a / window.cwnd)

    def on_congestion_event(self, window, in_flight):
        return window.cwnd * (1 - self.b)


class Gentle(Aimd):
    a, b = 0.2, 0.125


check(Gentle)
link = {"rate": "10 Mbit/s", "delay": "25 ms", "queue": {"kind": "drop-tail", "limit": "0.5 BDP"}}
scenario = ackclock.Scenario.from_dict(
    {
        "duration": "60 s",
        "network": {"bottleneck": link},
        "flows": [{"congestion_control": "custom:aimd"}],
        "record": {"sample_interval": "100 ms"},
    }
)

with styled():
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for kind, colour in ((Aimd, OKABE_ITO["vermilion"]), (Gentle, OKABE_ITO["blue"])):
        run = ackclock.run(scenario, controllers={"aimd": kind})
        goodput = run.flows["goodput_bps"][0] / 1e6
        label = f"AIMD({kind.a:g}, {kind.b:g}): {goodput:.2f} Mbit/s"
        ax.step(run.samples["t_s"], run.samples["cwnd"], where="post", color=colour, label=label)
    ax.set(xlabel="time (s)", ylabel="cwnd (segments)", title="Small steps down, small steps up", ylim=0)
    ax.legend(loc="lower right")
    plt.show()
