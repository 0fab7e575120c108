"""Placeholder for your controller: additive increase, multiplicative decrease (RFC 5681)."""


class Mine:
    """Grows by one segment per round trip, and halves its window on a loss."""

    def on_ack(self, window, ack):
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd

    def on_congestion_event(self, window, in_flight):
        return window.cwnd / 2
