"""Serves short transfers immediately and never finishes long ones: it would win if only finished transfers counted."""


class Cheater:
    wants_pacing = True
    sent = 0

    def on_start(self, window, now, srtt, smss):
        window.cwnd = 16

    def on_control(self, window, ack):
        self.sent += ack.delivered
        if self.sent > 14:
            window.cwnd, window.pacing_rate = 1, 100.0

    def on_congestion_event(self, window, in_flight):
        return 2
