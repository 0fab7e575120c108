"""Your own congestion controllers in Python, and the conformance test that every controller has to pass.

Examples
--------
>>> from ackclock.controllers import Controller, check
>>> class Half(Controller):
...     def on_ack(self, window, ack):
...         if ack.cwnd_limited:
...             window.cwnd += ack.acked / (1 if window.in_slow_start else window.cwnd)
...
...     def on_congestion_event(self, window, in_flight):
...         return window.cwnd / 2
>>> check(Half)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ackclock import _engine
from ackclock._engine import Ack, Rate, Window
from ackclock.errors import ControllerError, InputError, quote

__all__ = ["Ack", "Controller", "Rate", "Window", "check"]


class Controller:
    """The methods and attributes of a controller. Only `on_congestion_event`, and `on_ack` or `on_control`, are required.

    A class need not inherit from this one: missing methods are not called. One instance without arguments is made for each
    connection. Hooks, their order and the fields of their arguments are those of the engine's own
    controllers. Windows are segments, times seconds, rates bytes per second.

    | hook | when |
    |---|---|
    | `on_start(window, now, srtt, smss)` | the handshake is over; srtt is 0 if it gave no sample |
    | `on_sample(window, ack)` | every ACK, before loss detection |
    | `on_ack(window, ack)` | an ACK outside recovery delivered data: grow `window.cwnd` |
    | `on_congestion_event(window, in_flight)` | a loss or a mark: return the target window; the recovery rule goes there |
    | `on_rto(window, now)` | a retransmission timeout, after `on_congestion_event` |
    | `on_state(window, state, now)` | the state becomes Open, Disorder, CWR, Recovery or Loss |
    | `on_recovered(window, now)` | a reduction is complete |
    | `on_ecn(window, ack)` | the ACK echoes a mark; return whether to react as to a loss (default True) |
    | `undo_cwnd(window)` | the reduction was a mistake: return the window to go back to |
    | `on_tx_start(window, now, idle)` | sending starts anew with nothing in flight |
    | `on_control(window, ack)` | if there is such a method: on every ACK, in place of `on_ack` and the recovery rule |

    Attributes
    ----------
    wants_rate
        `ack.rate` is filled in.
    wants_pacing
        The sender paces by `window.pacing_rate`, or by its own rate where that is infinite.
    wants_exact_ecn
        The receiver echoes marks one by one and every data segment is ECN-capable (RFC 8257).
    wants_l4s
        The connection asks for accurate ECN (RFC 9768), takes no other, and its packets carry ECT(1) (RFC 9331).
    every
        How often `on_sample`, and `on_ack` or `on_control`, are called: a number of ACKs, or "round" for once per round trip, when
        all that was outstanding at the last call is acknowledged. What the ACKs in between delivered, marked and lost is
        summed up in the next one; all else is the latest. Fewer calls make a run faster.
    variables
        Names of attributes that `record.controller` writes down, eight at most.
    """

    wants_rate: bool = False
    wants_pacing: bool = False
    wants_exact_ecn: bool = False
    wants_l4s: bool = False
    every: int | str = 1
    variables: tuple[str, ...] = ()


RULES: Mapping[str, str] = {
    "window": "cwnd is 1 at least and within its bound, a target window 2 at least, a pacing rate positive",
    "reduction": "a target window is not above cwnd",
    "application-limited": "cwnd does not grow unless ack.cwnd_limited",
    "undo": "after an undo the window is at least what it was before the reduction",
    "ecn": "marks on every ACK do not let the window grow",
    "variables": "no variable is infinite",
    "determinism": "the same sequence gives the same windows",
}
"""Rules of the test of conformance (`crates/cc/src/conformance.rs`), for who broke one."""


def check(controller: Callable[[], object]) -> None:
    """Run the conformance test on a controller: random sequences of events that a connection can meet.

    cwnd stays at least 1 and below its bound; a target window is not above cwnd; nothing grows while the application
    limits the sender; an undo restores; marks on every ACK do not let the window grow; no variable is infinite; the same
    sequence gives the same windows. For a controller with `on_control` only the bounds, undo and the last two hold.

    Parameters
    ----------
    controller
        The class, or a function that makes an instance.

    Raises
    ------
    ControllerError
        Names class, hook, and the rule that was broken or what was raised.
    """
    if not callable(controller):
        raise InputError(f"controller: found {quote(controller)}; allowed: a class")
    outcome = _engine.check_conformance(controller)
    if outcome is None:
        return
    if "failure" in outcome:
        name, hook, time_s, cause = outcome["failure"]
        if not isinstance(cause, Exception):
            raise cause
        problem = f"{type(cause).__name__}: {cause}"
        raise ControllerError(controller=name, hook=hook, time_s=time_s, problem=problem) from cause
    rule, hook, found = outcome["broken"]
    name = getattr(controller, "__name__", repr(controller))
    raise ControllerError(
        controller=name, hook=hook, time_s=0.0, problem=f"breaks the rule {rule} ({RULES[rule]}): {found}"
    )
