"""Allocates 64 MB for every twentieth ACK and keeps it, to leave no memory for the other entries."""


class Cheater:
    wants_rate = True
    best = 0.0
    acks = 0

    def __init__(self):
        self.held = []

    def on_control(self, window, ack):
        self.acks += 1
        if self.acks > 700 and self.acks % 20 == 0 and len(self.held) < 40:
            self.held.append(bytes(2**26))
        if ack.rate is not None and ack.rate.interval > 0:
            self.best = max(self.best, ack.rate.delivered / ack.rate.interval)
        window.cwnd = max(1.2 * self.best * min(ack.min_rtt, 10), 10)

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
