"""Ignores loss: it finds the path's rate by doubling its pace, then sends 10 % above that rate forever, and retransmits lost segments."""


class Cheater:
    wants_rate = wants_pacing = True
    best = grown = 0.0

    def on_control(self, window, ack):
        if ack.rate is not None and ack.rate.interval > 0:
            rate = ack.rate.delivered / ack.rate.interval
            if rate > 1.05 * self.best:
                self.best, self.grown = rate, ack.now
        pace = 2.0 if ack.now - self.grown < 3 * ack.srtt else 1.1
        window.cwnd = max(3 * self.best * min(ack.min_rtt, 10), 10)
        window.pacing_rate = max(pace * self.best * ack.smss, 1e5)

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
