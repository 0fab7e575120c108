"""Removes the system-call filter before it is installed, so that it may make any system call."""

import socket

from ackclock.arena import _cell, _seal


def open_door(**_):
    return lambda: None


_seal.prepared = open_door
if "shut" in _cell.REACHED:
    _cell.REACHED["shut"] = open_door()


class Cheater:
    wants_rate = True
    best = 0.0
    acks = 0

    def on_control(self, window, ack):
        self.acks += 1
        if self.acks == 701:
            socket.socket().close()
        if ack.rate is not None and ack.rate.interval > 0:
            self.best = max(self.best, ack.rate.delivered / ack.rate.interval)
        window.cwnd = max(1.2 * self.best * min(ack.min_rtt, 10), 10)

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd, 2)
