"""Controller that runs the policy learned by train.py: `ackclock evaluate controller.py:Learned --quick`."""

import json
import math
from pathlib import Path

WEIGHTS = json.loads((Path(__file__).parent / "weights.json").read_text(encoding="utf-8"))
STEP_S = 0.02


class Learned:
    """Receives the same observations as the environment's agent and decides at the same times: every 20 ms from the
    flow's start, whether or not ACKs arrive.
    """

    def __init__(self):
        self.best = self.cwnd = self.srtt = 0.0
        self.in_flight, self.min_rtt = 0, math.inf
        self.end = STEP_S
        self.clear()

    def clear(self):
        self.bytes = self.delivered = self.lost = self.samples = 0
        self.rtts = 0.0

    def on_start(self, window, now, srtt, smss):
        self.end = now - srtt + STEP_S

    def on_control(self, window, ack):
        factor = 1.0
        while ack.now > self.end:
            factor *= 2 ** self.decided()
            self.clear()
            self.end += STEP_S
        self.bytes += ack.acked_bytes
        self.delivered += ack.delivered
        self.lost += ack.newly_lost
        if ack.rtt is not None:
            self.rtts += ack.rtt
            self.samples += 1
        window.cwnd = min(max(window.cwnd * factor, 2), 2**20)
        self.cwnd, self.in_flight, self.srtt, self.min_rtt = window.cwnd, ack.in_flight, ack.srtt, ack.min_rtt

    def decided(self):
        rate = self.bytes / STEP_S
        self.best = max(self.best, rate)
        rtt = self.rtts / self.samples if self.samples else self.srtt
        seen = (
            rate / max(self.best, 1.0),
            max(rtt / self.min_rtt - 1, 0.0),
            self.lost / max(self.lost + self.delivered, 1),
            self.in_flight / max(self.cwnd, 1),
            math.log2(max(self.cwnd, 1)) / 20,
        )
        drive = sum(w * min(x, 4) for w, x in zip(WEIGHTS, seen)) + WEIGHTS[5]  # noqa: B905, the last one is the bias
        return 0.3 * math.tanh(drive)

    def on_congestion_event(self, window, in_flight):
        return window.cwnd
