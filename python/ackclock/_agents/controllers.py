"""Your own congestion controllers in Python, and the conformance test that every controller has to pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ackclock import _engine
from ackclock._engine import Ack, Rate, Window
from ackclock.errors import ControllerError, InputError, quote

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

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
    "growth": "a window that grew grows again after a loss, time without data, a timeout in recovery, or as a window of two",
    "variables": "no variable is infinite",
    "determinism": "the same sequence gives the same windows",
}
"""Rules of the test of conformance (`crates/cc/src/conformance.rs`), for who broke one."""

CLOSED_LOOP = "in runs of half a minute and more cwnd does not grow beyond a hundred times what path and queue hold"
"""The rule of `check`'s runs."""

EXPLODED = 100.0
"""A window as a multiple of what path and queue hold: losses have long told the sender, and it does not listen."""

_QUEUE = {"kind": "drop-tail", "limit": "0.5 BDP"}
_PATHS = (
    ("30 s", {"rate": "10 Mbit/s", "delay": "20 ms", "queue": _QUEUE}),
    ("30 s", {"rate": "20 Mbit/s", "delay": "5 ms", "queue": {"kind": "drop-tail", "limit": "2 BDP"}, "loss": {"kind": "bernoulli", "p": "0.1 %"}}),
    ("60 s", {"rate": "2 Mbit/s", "delay": "100 ms", "queue": {"kind": "codel"}}),
)  # fmt: skip
"""Duration and bottleneck of each closed loop: a shallow queue, random losses, a long path with short delays in the queue."""


def check(controller: Callable[[], object], *, closed_loop: bool = True) -> None:
    """Run the conformance test on a controller: random sequences of events that a connection can meet, then runs in closed loop.

    cwnd stays at least 1 and below its bound; a target window is not above cwnd; nothing grows while the application
    limits the sender; an undo restores; marks on every ACK do not let the window grow; no variable is infinite; the same
    sequence gives the same windows. For a controller with `on_control` only the bounds, undo and the last two hold. Then the
    controller sends over three paths for 30 to 60 s, where its window must not grow without end.

    Parameters
    ----------
    controller
        The class, or a function that makes an instance; or what a file of C was compiled to.
    closed_loop
        Whether it sends over the three paths, too.

    Raises
    ------
    ControllerError
        Names class, hook, and the rule that was broken or what was raised.
    """
    if not callable(controller) and not isinstance(controller, _engine.Library):
        raise InputError(f"controller: found {quote(controller)}; allowed: a class")
    from ackclock._results.run import problem

    outcome = _engine.check_conformance(controller)
    if outcome is None:
        return _check_closed_loop(controller) if closed_loop else None
    if "failure" in outcome:
        name, hook, time_s, cause = outcome["failure"]
        if isinstance(cause, KeyboardInterrupt):
            raise cause
        raise ControllerError(controller=name, hook=hook, time_s=time_s, problem=problem(cause)) from cause
    rule, hook, found = outcome["broken"]
    name = getattr(controller, "__name__", repr(controller))
    raise ControllerError(
        controller=name, hook=hook, time_s=0.0, problem=f"breaks the rule {rule} ({RULES[rule]}): {found}"
    )


def closed_loops() -> Iterator[Scenario]:
    """The scenarios of `check`'s runs, whose flow has the controller `custom:checked`."""
    from ackclock.scenario import Scenario

    for duration, link in _PATHS:
        yield Scenario.from_dict(
            {
                "duration": duration,
                "network": {"bottleneck": link},
                "flows": [{"congestion_control": "custom:checked"}],
                "record": {"sample_interval": "50 ms"},
            }
        )


def _check_closed_loop(controller: Callable[[], object]) -> None:
    from ackclock._results.run import run

    for (_, link), scenario in zip(_PATHS, closed_loops(), strict=True):
        made = run(scenario, controllers={"checked": controller})  # type: ignore[dict-item]
        holds = float(scenario.network.bdp_packets()) + made.rows("links")[0]["max_packets"]
        rows = made.rows("samples")
        early = max((row["cwnd"] for row in rows if row["t_s"] < 3), default=0)
        for row in rows:
            # a window that is held there from the beginning on does not grow: its sender may be paced
            if row["cwnd"] > max(EXPLODED * max(holds, 10.0), 2 * early):
                raise ControllerError(
                    controller=getattr(controller, "__name__", repr(controller)),
                    hook="on_ack",
                    time_s=row["t_s"],
                    problem=f"breaks the rule closed loop ({CLOSED_LOOP}): cwnd is {row['cwnd']:,} segments, path and "
                    f"queue hold {holds:.0f} (bottleneck {link['rate']}, {link['delay']})",
                )
