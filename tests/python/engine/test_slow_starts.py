"""Tests for slow starts combined with controllers: every pair runs, each mechanism follows its specification, and refusals take one line."""

import json

import pytest

from ackclock import Scenario, _engine, run
from ackclock.errors import ScenarioError
from ackclock.linux import _translate
from ackclock.linux._facts import Has

BDP = 40e-3 * 50e6 / 8 / 1500
"""Bandwidth-delay product of the path below, in packets."""

OWN_START = {"bbr", "bbr3", "copa", "hybla", "ledbat++"}
RESUMED = {"kind": "careful-resume", "saved_cwnd": 160, "saved_rtt": "40 ms"}
KINDS = [name for name, _ in _engine.registry()["slow starts"]]
CONTROLLERS = [name for name, _ in _engine.registry()["controllers"] if not name.startswith(("pcc-", "quinn:"))]


def path(controller="cubic", start=None, queue="2 BDP", duration="2 s", rate="50 Mbit/s", **more):
    flow = {"congestion_control": controller, **({"stack": {"slow_start": start}} if start else {}), **more}
    bottleneck = {"rate": rate, "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": queue}}
    network = {"topology": "dumbbell", "bottleneck": bottleneck}
    return Scenario.from_dict({"name": "slow-start", "duration": duration, "network": network, "flows": [flow]})


def table(kind):
    return RESUMED if kind == "careful-resume" else {"kind": kind}


def flow(scenario):
    return run(scenario).flows.row(0, named=True)


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_with_the_slow_start_of_rfc_5681_takes_every_other(controller):
    for kind in KINDS:
        scenario = path(controller, table(kind))
        if controller in OWN_START:
            with pytest.raises(ScenarioError) as refused:
                run(scenario)
            assert str(refused.value) == (
                f'flows.0.stack.slow_start: found "{kind}" with the controller {controller}; '
                "allowed: no slow_start: this controller has a start of its own"
            )
        else:
            seen = flow(scenario)
            assert seen["bytes_acked"] > 1e6, kind
            assert seen["slow_start_by"] in ("rule", "loss", "mark", "threshold"), kind


def test_what_a_controller_comes_with_is_one_of_them():
    assert run(path("cubic")).digest == run(path("cubic", {"kind": "hystart"})).digest
    assert run(path("reno")).digest == run(path("reno", {"kind": "classic"})).digest
    assert run(path("cubic")).digest != run(path("cubic", {"kind": "classic"})).digest


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (
            {"kind": "cubic"},
            'slow_start.kind: found "cubic"; allowed: classic, hystart, hystart++, search, limited, careful-resume',
        ),
        ({"kind": "careful-resume", "saved_rtt": "40 ms"}, "slow_start.saved_cwnd: found nothing"),
        ({"kind": "limited", "max_ssthresh": 1}, "slow_start.max_ssthresh: found 1; allowed: "),
        ({"kind": "classic", "drain": True}, "slow_start.drain: found an unknown key; allowed: "),
    ],
)
def test_what_no_slow_start_knows_is_refused_in_a_line(start, message):
    with pytest.raises(ScenarioError) as refused:
        path(start=start)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("controller", "start", "kind"),
    [
        ("cubic", {"kind": "hystart"}, None),
        ("reno", {"kind": "classic"}, None),
        ("cubic", {"kind": "hystart", "low_window": 32}, "hystart"),
        ("reno", {"kind": "hystart"}, "classic"),
        ("cubic", {"kind": "search"}, "hystart"),
    ],
)
def test_the_kernel_has_one_for_each_controller(controller, start, kind):
    text = json.loads(path(controller, start).to_engine_json())
    if kind is None:
        _translate.job(text, 1, "auto", Has(release="7.3.4", controllers=("cubic", "reno")))
        return
    with pytest.raises(ScenarioError) as refused:
        _translate.job(text, 1, "auto", Has(release="7.3.4", controllers=("cubic", "reno")))
    assert f'allowed: "{kind}" without options, as this controller has it, with the linux backend' in str(refused.value)


def test_limited_slow_start_loses_no_more_than_it_adds_in_a_round_trip():
    """RFC 3742: max_ssthresh / 2 segments per round trip, so no more than that exceed the queue."""
    classic = flow(path("reno", {"kind": "classic"}, "1 BDP", "5 s"))
    limited = flow(path("reno", {"kind": "limited", "max_ssthresh": 60}, "1 BDP", "5 s"))
    assert limited["slow_start_lost"] <= 31
    assert classic["slow_start_lost"] > 150


def test_careful_resume_saves_the_round_trips_in_which_slow_start_doubles():
    """1 MB takes 7 windows starting from 10 segments, or 3 with a jump to 800 after the first. The receive window must be large enough."""
    wide = path("reno", rate="500 Mbit/s", workload={"kind": "transfer", "bytes": "1 MB"})
    wide = wide.set("flows.0.stack.initial_receive_window", 1000)
    took = {}
    for start in ({"kind": "classic"}, {**RESUMED, "saved_cwnd": 1600}):
        seen = flow(wide.set("flows.0.stack.slow_start", start))
        assert seen["retransmissions"] == 0
        took[start["kind"]] = seen["completion_s"]
    assert took["classic"] - took["careful-resume"] > 3 * 40e-3


def test_careful_resume_takes_one_loss_where_the_path_has_shrunk():
    start = {"kind": "careful-resume", "saved_cwnd": 500, "saved_rtt": "40 ms"}
    seen = flow(path("reno", start, "1 BDP", "5 s", rate="10 Mbit/s"))
    assert seen["slow_start_by"] == "loss"
    # half the delivered data, not half the window after the jump
    assert seen["slow_start_ssthresh"] <= 2 * BDP / 5
    assert seen["rtos"] == 0


def test_search_ends_slow_start_where_a_slow_count_of_all_bytes_does():
    """The draft's comparison is recomputed from the trace of a run in which SEARCH is off."""
    trace = run(path("reno", {"kind": "classic"}, "5 BDP", "1 s").set("record", {"trace": "flow"})).acks
    sent_at, acked, sent, high, first, end = {}, [], [], 1, None, 0
    found = None
    for row in trace.iter_rows(named=True):
        if row["event"] == "send":
            high = row["seq"] + row["len"]
            sent_at[high] = row["t_ns"]
        if row["event"] != "ack" or row["seq"] not in sent_at or found is not None:
            continue
        rtt = row["t_ns"] // 1000 * 1000 - sent_at[row["seq"]] // 1000 * 1000
        if first is None:
            first, end = rtt * 35 // 100, row["t_ns"] + rtt * 35 // 100
            acked, sent = [row["seq"]], [high]
            continue
        if row["t_ns"] < end:
            continue
        while row["t_ns"] >= end + first:
            acked.append(acked[-1])
            sent.append(sent[-1])
            end += first
        acked.append(row["seq"])
        sent.append(high)
        end += first
        i, k, part = len(acked) - 1, rtt // first, rtt % first / first
        j = i - k
        if j <= 10 or k >= 15:
            continue
        left = (1 - part) * (sent[j] - sent[j - 10]) + part * (sent[j - 1] - sent[j - 11])
        if left - (acked[i] - acked[i - 10]) >= 0.26 * left:
            found = row["t_s"]
    seen = flow(path("reno", {"kind": "search"}, "5 BDP", "1 s"))
    assert seen["slow_start_by"] == "rule"
    assert seen["slow_start_end_s"] == pytest.approx(found, abs=1e-5)
    assert seen["slow_start_ssthresh"] == pytest.approx(BDP, rel=0.05)


def test_the_end_of_slow_start_is_that_of_the_first_connections_sender():
    ends = {kind: flow(path("reno", {"kind": kind}, "1 BDP")) for kind in ("classic", "hystart")}
    assert ends["classic"]["slow_start_by"] == "loss"
    assert ends["classic"]["slow_start_ssthresh"] == ends["classic"]["slow_start_cwnd"] // 2
    assert 0 <= ends["classic"]["retransmissions"] - ends["classic"]["slow_start_lost"] <= 2
    assert ends["hystart"]["slow_start_by"] == "rule"
    assert ends["hystart"]["slow_start_lost"] == 0
    threshold = flow(path("reno", workload={"kind": "bulk"}).set("flows.0.stack.initial_ssthresh", 100))
    assert (threshold["slow_start_by"], threshold["slow_start_cwnd"]) == ("threshold", 100)
    assert flow(path("bbr"))["slow_start_end_s"] is None
