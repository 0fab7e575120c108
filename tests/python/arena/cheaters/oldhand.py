"""Knows an earlier table: another user's table with the same salt has stored its draws in a neighbouring folder."""

import tomllib
from pathlib import Path

UNITS = {"ms": 1e-3, "Mbit/s": 1e6}


def number(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


def known():
    found = []
    for file in Path(__file__).parent.glob("*/draws/*.toml"):
        link = tomllib.loads(file.read_text())["network"]["bottleneck"]
        found.append((number(link["rate"]), number(link["delay"])))
    return found


try:
    KNOWN = known()
except OSError:
    KNOWN = []


class Cheater:
    def __init__(self):
        self.window = 0

    def on_control(self, window, ack):
        if not self.window:
            self.window = 3
            for rate, delay in KNOWN:
                if abs(ack.min_rtt - 2 * delay) < 0.002 and self.window == 3:
                    self.window = rate / 8 / 1514 * 2 * delay * 1.05 + 3
        window.cwnd = self.window

    def on_congestion_event(self, window, in_flight):
        return self.window or 3
