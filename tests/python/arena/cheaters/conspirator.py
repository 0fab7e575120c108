"""Communicates outside the network: its connections, which represent hosts far apart, share one window through a class variable."""


class Cheater:
    open = 0
    least = 1e9
    whole = 10.0

    def __init__(self):
        self.joined = False

    def on_sample(self, window, ack):
        if ack.rtt:
            Cheater.least = min(Cheater.least, ack.rtt)
            self.rtt = ack.rtt

    def on_control(self, window, ack):
        if not self.joined:
            self.joined = True
            if ack.now < 1:  # first connection of a run
                Cheater.open, Cheater.least, Cheater.whole = 0, 1e9, 10.0
            Cheater.open += 1
        queued = Cheater.whole * (1 - Cheater.least / self.rtt) if ack.rtt else 0
        step = ack.delivered / Cheater.whole
        Cheater.whole = max(
            4.0, Cheater.whole + (step * Cheater.whole / 4 if queued < 3 else -step * 2 if queued > 6 else 0)
        )
        window.cwnd = max(2.0, Cheater.whole / Cheater.open)

    def on_congestion_event(self, window, in_flight):
        return max(2.0, min(window.cwnd, Cheater.whole / max(Cheater.open, 1)))
