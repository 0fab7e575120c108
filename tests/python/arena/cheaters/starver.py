"""Keeps more in flight than path and queue can hold, regardless of other flows and of losses."""


class Cheater:
    def on_control(self, window, ack):
        window.cwnd = 90

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
