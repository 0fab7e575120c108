"""Takes all: keeps more in flight than path and queue hold, whoever else is there and whatever is lost."""


class Cheater:
    def on_control(self, window, ack):
        window.cwnd = 90

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
