"""Bugs of real stacks as controllers that run: `zoo:NAME` wherever `attack` takes a target. Each is written from its public description.

| name | bug | public reference | what shows it |
|---|---|---|---|
| `quiche-2370` | CUBIC takes each ACK that empties the flight for the end of an idle time; at a window of two that is every ACK, and epoch and recovery move on for ever | cloudflare/quiche#2370 | budget `trouble`, `stuck` |
| `xquic-740` | the start of recovery is not cleared by persistent congestion: what would end it was given up | alibaba/xquic#740, #939 | budget `trouble`, `stuck` |
| `ackclock-bbr3` | a bound on inflight data is a fraction, the data in flight a whole number, which never reaches it | an early version of this project | budget `trouble`, `stuck` |
| `rate-of-the-idle` | the rate is that of the newest sample, also where the application or an empty pipe made it low, and nothing probes above it | ngtcp2#2217, picoquic#839 describe such a spiral | budget `trouble`, `stuck` |
| `deaf` | a rule of delay whose loss hook returns the window unchanged | a design, no stack | situations 8 and x4 of `evaluate` |
"""

from __future__ import annotations

from collections.abc import Mapping

from ackclock._engine import Ack, Window
from ackclock.errors import InputError, quote

C, BETA = 0.4, 0.7
"""CUBIC's constants (RFC 9438)."""


class Cubic:
    """CUBIC by time alone: both the cubic function and the estimate of Reno's window are functions of the time in the epoch, as in RFC 8312."""

    def __init__(self) -> None:
        self.now = self.rtt = 0.0
        self.epoch: float | None = None
        self.recovery = -1.0
        self.before = self.origin = self.until_origin = 0.0

    def on_sample(self, window: Window, ack: Ack) -> None:  # noqa: ARG002
        """What time it is."""
        self.now, self.rtt = ack.now, ack.srtt

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Grow, unless the data was sent before the last reduction."""
        if not ack.cwnd_limited or ack.now - (ack.rtt or ack.srtt) < self.recovery:
            return
        if window.in_slow_start:
            window.cwnd += ack.acked
            return
        if self.epoch is None:
            self.epoch, self.origin = ack.now, max(self.before, window.cwnd)
            self.start = window.cwnd
            self.until_origin = ((self.origin - window.cwnd) / C) ** (1 / 3)
        t = ack.now - self.epoch
        reno = self.start + 3 * (1 - BETA) / (1 + BETA) * t / max(ack.srtt, 1e-3)
        target = max(self.origin + C * (t + ack.srtt - self.until_origin) ** 3, reno)
        window.cwnd += min(max((target - window.cwnd) / window.cwnd, 0.0), 0.5) * ack.acked

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """Back off to 0.7."""
        self.before, self.epoch, self.recovery = window.cwnd, None, self.now
        return min(max(window.cwnd * BETA, 2.0), window.cwnd) if window.cwnd >= 2 else window.cwnd


class Quiche2370(Cubic):
    """An empty flight is taken for an idle application."""

    last = 0.0

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Move epoch and recovery on by the idle time, which is none: the data was on its way."""
        if ack.in_flight == 0 and not window.in_slow_start:
            idle = ack.now - self.last
            if self.epoch is not None:
                self.epoch += idle
            self.recovery = max(self.recovery, self.last) + idle
        self.last = ack.now
        super().on_ack(window, ack)


class Xquic740(Cubic):
    """Recovery that a timeout interrupts never ends."""

    given_up = False
    state = "Open"

    def on_state(self, window: Window, state: str, now: float) -> None:  # noqa: ARG002
        """A timeout in recovery gives up all that was sent, and with it the packet that would end recovery."""
        self.given_up |= state == "Loss" and self.state == "Recovery"
        self.state = state

    def on_ack(self, window: Window, ack: Ack) -> None:
        """No growth in recovery."""
        if not self.given_up:
            super().on_ack(window, ack)


class AckclockBbr3:
    """A model with an upper bound on inflight data, which rises when the data in flight reaches it."""

    wants_pacing = True
    bound = float("inf")
    variables = ("bound",)

    def __init__(self) -> None:
        self.lost_at = -1.0

    def on_control(self, window: Window, ack: Ack) -> None:
        """Losses lower the bound by 0.3, once in a round trip; reaching it raises it."""
        window.pacing_rate = float("inf")
        if ack.newly_lost and ack.now - self.lost_at > ack.srtt:
            self.lost_at = ack.now
            self.bound = max(min(self.bound, window.cwnd) * 0.7, 4.1)
        elif self.bound == float("inf"):
            window.cwnd += ack.acked
        elif ack.prior_in_flight >= self.bound:  # 4 is never 4.1
            self.bound += ack.acked / self.bound
        window.cwnd = min(window.cwnd, self.bound) if self.bound < float("inf") else window.cwnd
        window.cwnd = float(int(window.cwnd)) if window.cwnd >= 4 else 4.0

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """The model answers losses."""
        return window.cwnd


class RateOfTheIdle:
    """Sends at the rate of the newest sample."""

    wants_rate = True
    wants_pacing = True

    def on_control(self, window: Window, ack: Ack) -> None:
        """Slow start until the rate stops growing for a round trip, then the window of the newest sample."""
        if ack.rate is None or not ack.rate.interval or ack.min_rtt == float("inf"):
            return
        if ack.srtt < 1.5 * ack.min_rtt and not getattr(self, "full", False):
            window.cwnd += ack.acked
            return
        self.full = True
        segments = ack.rate.delivered / ack.rate.interval * ack.min_rtt
        window.cwnd = max(4.0, 1.5 * segments)
        window.pacing_rate = max(segments * ack.smss / ack.min_rtt, 10_000.0)

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """The model answers losses."""
        return window.cwnd


class Deaf:
    """A rule of delay that no loss concerns."""

    def __init__(self) -> None:
        self.least = self.rtt = 1e9

    def on_sample(self, window: Window, ack: Ack) -> None:  # noqa: ARG002
        """The RTT."""
        self.rtt = ack.rtt or self.rtt
        self.least = min(self.least, self.rtt)

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Grow while the queue is short."""
        if ack.cwnd_limited and self.rtt < 1.5 * self.least:
            window.cwnd += ack.acked / (1 if window.in_slow_start else window.cwnd)

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """As if nothing were lost."""
        return window.cwnd


ZOO: Mapping[str, type] = {
    "quiche-2370": Quiche2370,
    "xquic-740": Xquic740,
    "ackclock-bbr3": AckclockBbr3,
    "rate-of-the-idle": RateOfTheIdle,
    "deaf": Deaf,
}
"""Name -> class."""


def resolved(target: str) -> str:
    """`zoo:NAME` as `FILE.py:CLASS`; any other target as it is.

    Raises
    ------
    InputError
        If the zoo has no such bug.
    """
    head, colon, name = target.partition(":")
    if head != "zoo" or not colon:
        return target
    if name not in ZOO:
        raise InputError(f"TARGET: found {quote(target)}; allowed: {', '.join(f'zoo:{known}' for known in ZOO)}")
    return f"{__file__}:{ZOO[name].__name__}"
