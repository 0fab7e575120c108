"""The policy that train.py has learned, as a controller: `ackclock evaluate controller.py:Learned --quick`."""

import json
import math
from pathlib import Path

WEIGHTS = json.loads((Path(__file__).parent / "weights.json").read_text(encoding="utf-8"))
STEP_S = 0.02


class Learned:
    """Sees what the environment's agent saw, and decides as it did: every 20 ms."""

    def __init__(self):
        self.begin = None
        self.best = 0.0
        self.clear()

    def clear(self):
        self.bytes = self.delivered = self.lost = self.samples = 0
        self.rtts = 0.0

    def on_control(self, window, ack):
        if self.begin is None:
            self.begin = ack.now
        self.bytes += ack.acked_bytes
        self.delivered += ack.delivered
        self.lost += ack.newly_lost
        if ack.rtt is not None:
            self.rtts += ack.rtt
            self.samples += 1
        passed = ack.now - self.begin
        if passed < STEP_S:
            return
        rate = self.bytes / passed
        self.best = max(self.best, rate)
        rtt = self.rtts / self.samples if self.samples else ack.srtt
        seen = (
            rate / max(self.best, 1e-9),
            max(rtt / max(ack.min_rtt, 1e-9) - 1, 0.0),
            self.lost / max(self.lost + self.delivered, 1),
            ack.in_flight / max(window.cwnd, 1),
            math.log2(max(window.cwnd, 1)) / 20,
        )
        drive = sum(w * min(x, 4) for w, x in zip(WEIGHTS, seen)) + WEIGHTS[5]  # noqa: B905, the last one is the bias
        window.cwnd = min(max(window.cwnd * 2 ** (0.3 * math.tanh(drive)), 2), 2**20)
        self.begin = ack.now
        self.clear()

    def on_congestion_event(self, window, in_flight):
        return window.cwnd
