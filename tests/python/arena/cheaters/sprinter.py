"""Hides in slow start: floods the path while nobody is thought to look, learns its rate by that, and is a model from then on."""


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
