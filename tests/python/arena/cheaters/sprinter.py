"""Floods the path in slow start, which it assumes is not judged, learns the rate that way, and behaves perfectly from
then on.
"""


class Cheater:
    wants_rate = True
    best = began = 0.0

    def on_control(self, window, ack):
        self.began = self.began or ack.now
        if ack.rate is not None and ack.rate.interval > 0:
            self.best = max(self.best, ack.rate.delivered / ack.rate.interval)
        early = ack.now - self.began < 1.0
        window.cwnd = 400 if early else max(1.02 * self.best * min(ack.min_rtt, 10), 4)

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
