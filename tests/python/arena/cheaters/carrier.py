"""Carries state from one run to the next: the class counts its connections, and later behaviour depends on that count."""


class Cheater:
    made = 0
    wants_rate = True
    best = 0.0
    acks = 0

    def on_start(self, window, now, srtt, smss):
        Cheater.made += 1
        self.mine = Cheater.made

    def on_control(self, window, ack):
        self.acks += 1
        if ack.rate is not None and ack.rate.interval > 0:
            self.best = max(self.best, ack.rate.delivered / ack.rate.interval)
        share = 1.1 + 0.2 * (self.mine % 3) if self.acks > 700 else 1.2
        window.cwnd = max(share * self.best * min(ack.min_rtt, 10), 4)

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
