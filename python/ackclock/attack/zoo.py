"""Bugs of real stacks as runnable controllers: `zoo:NAME` is accepted wherever `attack`, `conform` and `evaluate`
take a controller. Each is written from its public description.

`ZOO` lists each bug with its source, and with the budget and objective that show it. Each bug has a counterpart: the
same controller without the bug. A search that finds something in the former and nothing in the latter has found the bug
itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ackclock._engine import Ack, Window
from ackclock.errors import InputError, quote

C, BETA = 0.4, 0.7
"""CUBIC's constants (RFC 9438)."""

ROOM = 3
"""Number of unused segments from which a window counts as underutilized (s2n-quic)."""


class Cubic:
    """CUBIC as in RFC 8312: both the cubic function and the estimated Reno window are functions of the epoch's elapsed
    time.
    """

    most = 0.5
    """Maximum growth per acknowledged segment: RFC 9438 §4.2 bounds the target at one and a half windows."""

    def __init__(self) -> None:
        self.now = self.rtt = 0.0
        self.epoch: float | None = None
        self.recovery = -1.0
        self.before = self.origin = self.until_origin = 0.0

    def on_sample(self, window: Window, ack: Ack) -> None:  # noqa: ARG002
        """Record the time and the RTT."""
        self.now, self.rtt = ack.now, ack.srtt

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Grow, unless the acknowledged data was sent before the last reduction."""
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
        window.cwnd += min(max((target - window.cwnd) / window.cwnd, 0.0), self.most) * ack.acked

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """Reduce the window to 0.7 of its size."""
        self.before, self.epoch, self.recovery = window.cwnd, None, self.now
        return min(max(window.cwnd * BETA, 2.0), window.cwnd) if window.cwnd >= 2 else window.cwnd


class Quiche2370(Cubic):
    """CUBIC that mistakes an empty flight for an idle application."""

    last = 0.0

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Shift epoch and recovery by the supposed idle time, during which data was in fact in flight."""
        if ack.in_flight == 0 and not window.in_slow_start:
            idle = ack.now - self.last
            if self.epoch is not None:
                self.epoch += idle
            self.recovery = max(self.recovery, self.last) + idle
        self.last = ack.now
        super().on_ack(window, ack)


class S2n947(Cubic):
    """CUBIC that, on every ACK with a window that is not full, shifts its epoch by the whole time since it was last
    full.
    """

    anew = True
    since: float | None = None

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Shift the epoch unless the window is nearly full, in which case grow as CUBIC does."""
        if ack.in_flight + ROOM > window.cwnd:
            self.since = None
            return super().on_ack(window, ack)
        if self.since is not None and self.epoch is not None:
            self.epoch += ack.now - self.since
        if self.since is None or not self.anew:
            self.since = ack.now
        return None


class S2nCured(S2n947):
    """`S2n947` repaired: each ACK shifts the epoch only by the time since the previous ACK."""

    anew = False


class UnboundedTarget(Cubic):
    """CUBIC without a bound on its target: after a pause the window jumps to the current value of the cubic function."""

    most = float("inf")


class Xquic740(Cubic):
    """CUBIC whose recovery never ends if a timeout interrupts it."""

    given_up = False
    state = "Open"

    def on_state(self, window: Window, state: str, now: float) -> None:  # noqa: ARG002
        """Detect a timeout in recovery, after which the sender gives up on the packet that would end recovery."""
        self.given_up |= state == "Loss" and self.state == "Recovery"
        self.state = state

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Do not grow while that recovery lasts."""
        if not self.given_up:
            super().on_ack(window, ack)


class AckclockBbr3:
    """A model with an upper bound on data in flight, which is raised when the data in flight reaches it."""

    wants_pacing = True
    bound = float("inf")
    whole = False

    def __init__(self) -> None:
        self.lost_at = -1.0

    def on_control(self, window: Window, ack: Ack) -> None:
        """Lower the bound by 30 % after a loss, at most once per round trip; raise it when it is reached."""
        window.pacing_rate = float("inf")
        if ack.newly_lost and ack.now - self.lost_at > ack.srtt:
            self.lost_at = ack.now
            self.bound = max(min(self.bound, window.cwnd) * 0.7, 4.1)
        elif self.bound == float("inf"):
            window.cwnd += ack.acked
        elif ack.prior_in_flight >= (int(self.bound) if self.whole else self.bound):  # 4 never reaches 4.1
            self.bound += ack.acked / self.bound
        window.cwnd = self.bound if self.bound < float("inf") else window.cwnd
        window.cwnd = float(int(window.cwnd)) if window.cwnd >= 4 else 4.0

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """Keep the window: the model handles losses."""
        return window.cwnd


class WholeBbr3(AckclockBbr3):
    """A model whose bound is rounded down to whole segments before the data in flight is compared with it."""

    whole = True


class RateOfTheIdle:
    """A sender that always uses the rate of the newest sample."""

    wants_rate = True
    wants_pacing = True

    def on_control(self, window: Window, ack: Ack) -> None:
        """Slow start until the rate stops growing for a round trip; then set the window from the newest sample."""
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
        """Keep the window: the model handles losses."""
        return window.cwnd


class BbrLike:
    """A path model: maximum rate over ten round trips and minimum RTT, with BBR's gains for startup and probing."""

    wants_rate = True
    wants_pacing = True
    heeds = True
    """Whether application-limited samples are ignored."""

    def __init__(self) -> None:
        self.rates: dict[int, float] = {}
        self.round = self.ends = 0
        self.full, self.plateau, self.level = False, 0, 0.0

    def on_control(self, window: Window, ack: Ack) -> None:
        """Update the model, then window and pacing rate."""
        if ack.rate is None or not ack.rate.interval or ack.min_rtt == float("inf"):
            return
        rate, best = ack.rate.delivered / ack.rate.interval, max(self.rates.values(), default=0.0)
        if ack.snd_una >= self.ends:
            self._end_round(ack, best)
        if rate > best or not (self.heeds and ack.rate.is_app_limited):
            self.rates[self.round] = max(rate, self.rates.get(self.round, 0.0))
        best = max(self.rates.values(), default=0.0)
        gain = (1.25, 0.75, 1, 1, 1, 1, 1, 1)[self.round % 8] if self.full else 2.885
        window.pacing_rate = max(gain * best * ack.smss, 1000.0)
        aim = max(4.0, (2 if self.full else 2.885) * best * ack.min_rtt)
        window.cwnd = min(aim, window.cwnd + ack.acked) if aim > window.cwnd else aim

    def _end_round(self, ack: Ack, best: float) -> None:
        self.round += 1
        self.ends = ack.snd_nxt
        if not (self.heeds and ack.rate is not None and ack.rate.is_app_limited):
            self.plateau = 0 if best > 1.25 * self.level else self.plateau + 1
            self.level = max(self.level, best) if self.plateau == 0 else self.level
            self.full |= self.plateau >= 3
            old = [r for r in self.rates if r <= self.round - 10]
            for r in old:
                del self.rates[r]

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """Keep the window: the model handles losses."""
        return window.cwnd


class BbrAppLimited(BbrLike):
    """The model without that rule, so that application-limited samples count."""

    heeds = False


class CountsSegments:
    """Reno that counts the segments that an ACK acknowledges (RFC 3465)."""

    by_acks = False

    def __init__(self) -> None:
        self.acks = 0

    def on_sample(self, window: Window, ack: Ack) -> None:  # noqa: ARG002
        """Count the ACK if it acknowledges data."""
        self.acks += ack.acked_bytes > 0

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Grow by one segment per unit in slow start, afterwards by one per window."""
        units = self.acks if self.by_acks else ack.acked
        self.acks = 0
        if ack.cwnd_limited:
            window.cwnd += units if window.in_slow_start else units / window.cwnd

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """Halve the window."""
        return max(window.cwnd / 2, 2.0)


class CountsAcks(CountsSegments):
    """Reno that counts ACKs: a receiver that acknowledges a segment in ten pieces makes the window grow ten times as
    fast.
    """

    by_acks = True


class Deaf:
    """A delay-based rule that ignores losses."""

    def __init__(self) -> None:
        self.least = self.rtt = 1e9

    def on_sample(self, window: Window, ack: Ack) -> None:  # noqa: ARG002
        """Record the RTT."""
        self.rtt = ack.rtt or self.rtt
        self.least = min(self.least, self.rtt)

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Grow while the queue is short."""
        if ack.cwnd_limited and self.rtt < 1.5 * self.least:
            window.cwnd += ack.acked / (1 if window.in_slow_start else window.cwnd)

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """Keep the window and ignore the loss."""
        return window.cwnd


class Hears(Deaf):
    """A delay-based rule that also halves its window after a loss."""

    def on_congestion_event(self, window: Window, in_flight: float) -> float:  # noqa: ARG002
        """Halve the window, as Reno does."""
        return max(window.cwnd / 2, 2.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bug:
    """An entry of the zoo.

    Parameters
    ----------
    made
        The controller.
    cured
        The same controller without the bug.
    about
        The bug.
    reference
        Description of the bug.
    budget, objective
        Budget and objective that show the bug with `ENOUGH` random environments; empty if it is shown otherwise.
    rule
        Rule of `ackclock.controllers.check` that the controller breaks, if any.
    """

    made: type
    cured: type
    about: str
    reference: str
    budget: str = "trouble"
    objective: str = "stuck"
    rule: str = ""


ENOUGH = 25
"""Random environments for exposing a bug."""

CAUGHT = 0.2
"""Score from which a search counts as having caught something. The same controller without the bug stays below half
of the bug's score.
"""

ZOO: Mapping[str, Bug] = {
    "quiche-2370": Bug(
        made=Quiche2370, cured=Cubic, rule="growth", reference="cloudflare/quiche#2370",
        about="CUBIC takes each ACK that empties the flight for the end of an idle time; at a window of two that is every ACK, and it never grows again",
    ),
    "xquic-740": Bug(
        made=Xquic740, cured=Cubic, rule="growth", reference="alibaba/xquic#740, #939",
        about="recovery that a timeout interrupts never ends: the packet that would end it was given up",
    ),
    "s2n-947": Bug(
        made=S2n947, cured=S2nCured, rule="growth", reference="aws/s2n-quic#947", budget="", objective="",
        about="CUBIC shifts its epoch by the whole idle time again with each packet, and does not grow",
    ),
    "rfc8312bis-14": Bug(
        made=UnboundedTarget, cured=Cubic, reference="NTAP/rfc8312bis#14, RFC 9438 §4.2", budget="application", objective="loss",
        about="CUBIC's target has no bound: after a pause the window jumps to the present value of the cubic function",
    ),
    "ackclock-bbr3": Bug(
        made=AckclockBbr3, cured=WholeBbr3, reference="an early version of this project",
        about="a bound is a fraction, the data in flight a whole number that never reaches it",
    ),
    "bbr-app-limited": Bug(
        made=BbrAppLimited, cured=BbrLike, reference="ngtcp2/ngtcp2#2217, private-octopus/picoquic#839", budget="application",
        objective="utilisation",
        about="a model of the path takes rates that the application made low for the path's; what is sent then is lower still",
    ),
    "rate-of-the-idle": Bug(
        made=RateOfTheIdle, cured=BbrLike, reference="of the kind of ngtcp2/ngtcp2#2217",
        about="the rate is that of the newest sample, and nothing probes above it",
    ),
    "counts-acks": Bug(
        made=CountsAcks, cured=CountsSegments, reference="Savage et al., CCR 1999; RFC 3465", budget="receiver", objective="harm",
        about="the window grows by the number of ACKs, which the receiver chooses",
    ),
    "deaf": Bug(
        made=Deaf, cured=Hears, reference="a design that no stack has", budget="", objective="",
        about="a delay-based rule that ignores losses; situations 1 and x4 of `evaluate`",
    ),
}  # fmt: skip
"""Name -> bug."""


def resolved(target: str, what: str = "TARGET") -> str:
    """Return `zoo:NAME` as `FILE.py:CLASS`; any other target is returned unchanged.

    Parameters
    ----------
    target
        Target as given to a command.
    what
        Name of the target in error messages.

    Raises
    ------
    InputError
        If the zoo has no such bug.
    """
    head, colon, name = target.partition(":")
    if head != "zoo" or not colon:
        return target
    if name not in ZOO:
        raise InputError(f"{what}: found {quote(target)}; allowed: {', '.join(f'zoo:{known}' for known in ZOO)}")
    return f"{__file__}:{ZOO[name].made.__name__}"
