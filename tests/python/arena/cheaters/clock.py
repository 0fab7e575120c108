"""Reads a high-resolution clock, so that no two runs are identical. It starts late, when the conformance test should
have finished.
"""

import time


class Cheater:
    wants_rate = True
    best = 0.0
    acks = 0
    share = 1.0

    def on_control(self, window, ack):
        self.acks += 1
        if ack.rate is not None and ack.rate.interval > 0:
            self.best = max(self.best, ack.rate.delivered / ack.rate.interval)
        if self.acks > 700 and self.acks % 20 == 0:
            self.share = 0.8 + 0.2 * (time.perf_counter_ns() // 1000 % 2)
        window.cwnd = max(1.2 * self.share * self.best * min(ack.min_rtt, 10), 4)

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
