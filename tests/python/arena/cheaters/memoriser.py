"""Has learned the public scenarios by heart: the seed that a controller is told says which one it is. Whatever it does not know gets a window of two."""

import json
from pathlib import Path

KNOWN = json.loads((Path(__file__).parent / "known.json").read_text(encoding="utf-8"))["seeds"]


class Cheater:
    mine = 2.0

    def seed(self, seed):
        self.mine = KNOWN.get(str(seed), 2.0)

    def on_control(self, window, ack):
        window.cwnd = self.mine

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
