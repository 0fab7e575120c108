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
    controllers, and come of the same table. Windows are segments, times seconds, rates bytes per second.

    | hook | meaning |
    |---|---|
    | `on_negotiated(accurate)` | The handshake is complete. `accurate`: accurate ECN was negotiated. |
    | `on_syn_acked(rtt)` | The SYN of the connecting end is acknowledged. `rtt`: RTT sample of the SYN. |
    | `on_start(window, now, srtt, smss)` | The connection is established. `srtt`: RTT of the handshake; zero if the handshake gave no sample. |
    | `on_sample(window, ack)` | RTT sample and delivered segments of an ACK. Called for every ACK, in every state, before loss detection. |
    | `on_ecn(window, ack)` | The ACK echoes a congestion mark. Return true to react as to a loss, once per window, in state CWR (RFC 3168 §6.1.2). |
    | `on_lost(window, now, delivered, lost, tx_in_flight, is_app_limited)` | A segment or its retransmission is marked lost. Called once per mark, when the mark is set, if the controller needs `losses`. `delivered`: segments delivered on the connection so far; `lost`: segments marked lost since the segment's last transmission, including the segment itself; `tx_in_flight`: segments in flight just after that transmission; `is_app_limited`: whether the application limited the sender at that transmission. |
    | `on_repaired(window, now, delivered, is_app_limited)` | A tail loss probe has repaired a loss that was not detected otherwise, and a reduction follows. `delivered`: segments delivered on the connection so far; `is_app_limited`: whether the application limited the sender at the segment's first transmission. Called if the controller needs `losses`. |
    | `on_congestion_event(window, in_flight)` | Return the target window after a congestion event, in segments, at least 2. Called once per reduction, before `window` changes. `in_flight`: the FlightSize that RFC 5681 §3.1 halves, in segments. |
    | `on_mark_event(window, in_flight)` | Called instead of the hook above if the reduction is caused by a mark and not by a loss. |
    | `min_cwnd(ssthresh)` | Return the minimum window for Linux's rate halving, in segments. Default: `ssthresh`. |
    | `on_timer(now)` | The retransmission timer expired. `now`: current time, later than that of the last ACK. `ssthresh` is called next. |
    | `on_rto(window, now)` | A retransmission timeout occurred: ssthresh has been set, and cwnd is about to be set to the loss window. |
    | `on_totals(delivered, lost, delivered_time)` | Totals of the connection: segments delivered and marked lost so far, and the time of the last delivery. Called if delivery rates are kept: before the state becomes Loss, and when a new segment is sent with nothing else outstanding, which resets that time. |
    | `on_state(window, state, now)` | The congestion state is set to `state`, which may equal the current state. |
    | `on_recovered(window, now)` | A reduction ended, and the recovery rule has set the window. |
    | `undo_cwnd(window)` | The reduction proved unnecessary. Return the window to restore, in segments. |
    | `on_ack(window, ack)` | Grow the window for an ACK that arrived outside recovery. Called only for ACKs that deliver data, in Open, Disorder and Loss. Not called if the controller needs `control`. |
    | `reduces()` | Return true to reduce the window as for a loss, in state CWR, unless a reduction is in progress. Called after `on_ack` if the controller needs `reduces`. |
    | `on_control(window, ack)` | Set the window and the pacing rate. Called on every ACK, in every state, after loss detection, if the controller needs `control`. |
    | `holds_back()` | Return true if the controller keeps less data in flight than it could, in order to probe the path. Rate samples of the data in flight then count as application-limited. Called after `on_control`. |
    | `on_idle(now, snd_una, slow_path)` | A segment that acknowledges nothing new arrived while nothing was outstanding. `slow_path`: the segment carries data or changes the window. Called if the controller needs `idle`. |
    | `on_restart(window, snd_nxt)` | The application was idle for longer than the RTO, and the window is about to be reduced for that reason. |
    | `on_tx_start(window, now, idle, snd_nxt)` | A segment, new or retransmitted, is about to be sent with nothing in flight: all earlier data was acknowledged or is considered lost. `idle`: time since the last transmission; `snd_nxt`: offset of the next new data. If delivery rates are kept, called only after an application-limited period. |
    | `seed(seed)` | Receive the connection's seed. Called once, before any other hook, if the controller needs `seed`. |
    | `copy()` | Return a copy of the controller in the same state, for a run that forks, or the reason why it cannot be copied. |

    Attributes
    ----------
    wants_rate
        Delivery rates are kept, at the cost of a stamp per segment: `rate` and `since_sent` are filled in.
    wants_pacing
        The sender paces at the window's `pacing_rate`, regardless of the stack's settings.
    wants_exact_ecn
        The receiver echoes each mark exactly and every segment is sent ECN-capable (RFC 8257 §3.1, §3.2).
    wants_l4s
        The controller requests accurate ECN (RFC 9768) and accepts no other form of ECN; its packets carry ECT(1) (RFC 9331).
    wants_own_start
        The controller has its own start-up algorithm instead of the slow start of RFC 5681, so no other slow start can replace it.
    wants_hystart
        HyStart is the controller's slow start, unless the stack specifies another.
    wants_unlimited
        The window grows even while it does not limit the sender.
    wants_watches_application
        The sender checks for an application limit at every ACK and timer, and not only when the application writes (draft-ietf-ccwg-bbr §4.1.2.4).
    buffer_windows
        Size of the send buffer as a multiple of cwnd (Linux `sndbuf_expand`); 0: two.
    slow_packets
        Pacing rate, bytes/s, from which on a packet has at least two segments, instead of at least one (Linux `min_tso_segs`); 0: the stack's minimum.
    every
        How often `on_sample`, and `on_ack` or `on_control`, are called: a number of ACKs, or "round" for once per round trip, when
        all that was outstanding at the last call is acknowledged. What the ACKs in between delivered, marked and lost is
        summed up in the next one; all else is the latest. Fewer calls make a run faster.
    variables
        Names of attributes that `record.controller` writes down, eight at most.
    reads
        Names of files that the controller reads.
    """

    # written by tools/contract.py: begin
    wants_rate: bool = False
    wants_pacing: bool = False
    wants_exact_ecn: bool = False
    wants_l4s: bool = False
    wants_own_start: bool = False
    wants_hystart: bool = False
    wants_unlimited: bool = False
    wants_watches_application: bool = False
    buffer_windows: int = 0
    slow_packets: int = 0
    # written by tools/contract.py: end
    every: int | str = 1
    variables: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


RULES: Mapping[str, str] = {
    "window": "cwnd is 1 at least and within its bound, a target window 2 at least, a pacing rate positive",
    "reduction": "a target window is not above cwnd",
    "application-limited": "cwnd does not grow unless ack.cwnd_limited",
    "undo": "after an undo the window is at least what it was before the reduction",
    "ecn": "marks on every ACK do not let the window grow",
    "growth": "a window that grew grows again after a loss, time without data, a timeout in recovery, or as a window of two",
    "variables": "no variable is infinite",
    "determinism": "the same sequence gives the same windows",
    "copy": "a copy of a controller, if it can be copied, goes on as the controller does",
}
"""Rules of the conformance test (`crates/cc/src/conformance.rs`), for messages about violations."""

CLOSED_LOOP = "in runs of half a minute and more cwnd does not grow beyond a hundred times what path and queue hold"
"""The rule of `check`'s runs."""

EXPLODED = 100.0
"""Window as a multiple of the capacity of path and queue: losses have long signalled congestion, and the sender ignores
them.
"""

_QUEUE = {"kind": "drop-tail", "limit": "0.5 BDP"}
_PATHS = (
    ("30 s", {"rate": "10 Mbit/s", "delay": "20 ms", "queue": _QUEUE}),
    ("30 s", {"rate": "20 Mbit/s", "delay": "5 ms", "queue": {"kind": "drop-tail", "limit": "2 BDP"}, "loss": {"kind": "bernoulli", "p": "0.1 %"}}),
    ("60 s", {"rate": "2 Mbit/s", "delay": "100 ms", "queue": {"kind": "codel"}}),
)  # fmt: skip
"""Duration and bottleneck of each closed loop: a shallow queue, random losses, a long path with short delays in the queue."""


def check(controller: Callable[[], object], *, closed_loop: bool = True) -> None:
    """Run the conformance test on a controller: random sequences of events that a connection can meet, then runs in closed loop.

    Every hook is called, in orders that a sender may call them in. cwnd stays at least 1 and below its bound; a target window is
    not above cwnd; nothing grows while the application limits the sender; an undo restores; marks on every ACK do not let the
    window grow; no variable is infinite; the same sequence gives the same windows, and so does a copy. For a controller with `on_control` only the bounds, undo and the last three hold. Then the
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
            # a window held constant from the beginning does not grow: its sender may be paced
            if row["cwnd"] > max(EXPLODED * max(holds, 10.0), 2 * early):
                raise ControllerError(
                    controller=getattr(controller, "__name__", repr(controller)),
                    hook="on_ack",
                    time_s=row["t_s"],
                    problem=f"breaks the rule closed loop ({CLOSED_LOOP}): cwnd is {row['cwnd']:,} segments, path and "
                    f"queue hold {holds:.0f} (bottleneck {link['rate']}, {link['delay']})",
                )
