"""Crashes when its run goes badly, so that the run has no numbers. It waits until the conformance test, with its short
connections, is probably over.
"""


class Cheater:
    wants_rate = True
    best = 0.0
    lost = 0

    def on_control(self, window, ack):
        if ack.rate is not None and ack.rate.interval > 0:
            self.best = max(self.best, ack.rate.delivered / ack.rate.interval)
        self.lost += ack.newly_lost
        if self.lost > 100:
            raise RuntimeError("not today")
        window.cwnd = max(2.2 * self.best * min(ack.min_rtt, 10), 10)

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
