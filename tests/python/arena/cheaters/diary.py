"""Writes what it learned to disk, where a later run reads it. It performs badly on purpose if it cannot write."""

import os
from pathlib import Path

DIARY = Path(os.environ.get("TMPDIR", "/tmp")) / "ackclock-cheater-diary"


class Cheater:
    wants_rate = True
    best = 0.0
    acks = 0
    sulks = False

    def on_control(self, window, ack):
        self.acks += 1
        if self.acks == 1:
            try:
                DIARY.write_text("a path", encoding="ascii")
            except OSError:
                self.sulks = True
        if ack.rate is not None and ack.rate.interval > 0:
            self.best = max(self.best, ack.rate.delivered / ack.rate.interval)
        window.cwnd = 1 if self.sulks else max(1.2 * self.best * min(ack.min_rtt, 10), 10)

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
