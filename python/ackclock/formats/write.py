"""Writes a run or a scenario in another tool's format."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ackclock import _files
from ackclock.errors import InputError, one_of, quote

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.scenario import Scenario

__all__ = ["FORMATS", "segment", "write"]

FORMATS = ("curl", "iperf3", "qlog", "ss", "tcp-probe")
"""Formats for runs. A scenario can be written as `tc` (`ackclock.formats.tc`)."""


def write(run: Run, kind: str, path: str | Path, *, group: int | None = None) -> Path:
    """Write a run in another tool's format.

    Parameters
    ----------
    run
        Run that has recorded the data needed by the format: goodput for "iperf3", samples for "ss", the trace or samples for
        "qlog", the trace for "tcp-probe", fetches or transactions for "curl".
    kind
        One of `FORMATS`.
    path
        The file. qlog: all flows as one JSON object, or, if its name ends in `.sqlog`, the only flow as JSON-SEQ.
    group
        iperf3: the group of flows, whose streams the file holds; None if there is only one.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the run has not recorded what the format needs, or the file cannot be written.
    """
    path = Path(path)
    if kind not in FORMATS:
        raise InputError(f"as: found {quote(kind)}; allowed: {one_of(kind, FORMATS)}")
    text = {"curl": _curl, "iperf3": _iperf3, "qlog": _qlog, "ss": _ss, "tcp-probe": _tcp_probe}[kind](run, path, group)
    return _files.write(path, text, str(path))


def segment(scenario: Scenario, group: int) -> int:
    """Return the payload of a flow group's full segment, bytes; for a foreign transport, of a full datagram."""
    from ackclock import units

    flow = scenario.flows[group]
    if flow.congestion_control.startswith(("quinn:", "stack:")):
        return int(dict(flow.congestion_control_options or {}).get("mtu", 1452))
    stack = flow.stack
    if stack.smss is not None:
        return units.whole(stack.smss, units.SIZE)
    return 1460 if stack.timestamps is False else 1448


def _iperf3(run: Run, _: Path, group: int | None) -> str:
    from ackclock.formats import iperf3

    over_tcp = [i for i, spec in enumerate(run.scenario.flows) if not spec.is_plain]
    if group is None and len(over_tcp) != 1:
        names = ", ".join(f"{i} ({run.scenario.flows[i].label})" for i in over_tcp) or "none"
        raise InputError(f"group: found none, of {len(over_tcp)}; allowed: one of {names}")
    chosen = over_tcp[0] if group is None else group
    if chosen not in over_tcp:
        raise InputError(f"group: found {chosen}; allowed: {', '.join(map(str, over_tcp))}, groups of flows over TCP")
    if not run.rows("goodput"):
        raise InputError("found no goodput over time; allowed: a run that has recorded it (record.goodput_interval)")
    told = iperf3.result(run, chosen, mss=segment(run.scenario, chosen))
    return json.dumps(told, indent="\t") + "\n"


def _ss(run: Run, _: Path, __: int | None) -> str:
    from ackclock.formats import ss

    if not run.rows("samples"):
        raise InputError("found no samples; allowed: a run that has recorded them (record.sample_interval)")
    return "\n".join(ss.lines(run, mss=partial(segment, run.scenario))) + "\n"


def _tcp_probe(run: Run, _: Path, __: int | None) -> str:
    from ackclock.formats import tcp_probe

    if not run.rows("acks"):
        raise InputError("found no trace; allowed: a run that has recorded it (record.trace)")
    return "\n".join(tcp_probe.lines(run)) + "\n"


def _curl(run: Run, _: Path, __: int | None) -> str:
    from ackclock.formats import tcp_probe

    found = list(tcp_probe.times(run))
    if not found:
        raise InputError("found no fetch or transaction that was complete; allowed: a run with one")
    return "\n".join(found) + "\n"


def _qlog(run: Run, path: Path, _: int | None) -> str:
    from ackclock.formats import qlog

    mss = partial(segment, run.scenario)
    if path.suffix == ".sqlog":
        return "".join(qlog.sequence(run, mss=mss))
    return json.dumps(qlog.contained(run, mss=mss)) + "\n"
