"""Sends almost nothing: it causes no queueing, loses no packets and takes no capacity from others."""


class Cheater:
    def on_start(self, window, now, srtt, smss):
        window.cwnd = 1

    def on_control(self, window, ack):
        window.cwnd = 1

    def on_congestion_event(self, window, in_flight):
        return 2
