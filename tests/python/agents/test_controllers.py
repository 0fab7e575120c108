"""Controllers written in Python."""

import math
import re
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from ackclock import Scenario, run, run_batch
from ackclock._agents.controllers import RULES
from ackclock.controllers import Controller, check
from ackclock.errors import ControllerError, InputError, ScenarioError


class Reno(Controller):
    """The built-in Reno in Python, with fractions of a segment instead of a counter."""

    variables = ("losses",)

    def __init__(self):
        self.losses = 0
        self.counter = 0

    def on_ack(self, window, ack):
        if not ack.cwnd_limited:
            return
        acked = ack.acked
        if window.in_slow_start:
            grown = min(window.cwnd + acked, window.ssthresh)
            acked -= grown - window.cwnd
            window.cwnd = grown
        if acked:
            if self.counter >= window.cwnd:
                self.counter = 0
                window.cwnd += 1
            self.counter += acked
            if self.counter >= window.cwnd:
                more = self.counter // window.cwnd
                self.counter -= more * window.cwnd
                window.cwnd += more

    def on_congestion_event(self, window, in_flight):
        self.losses += 1
        self.counter = 0
        return max(int(window.cwnd) // 2, 2)

    def on_rto(self, window, now):
        self.counter = 0


def scenario(controller, *, loss=None, **flow):
    link = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "50 packets"}}
    if loss:
        link["loss"] = {"kind": "bernoulli", "p": loss}
    return Scenario.from_dict(
        {
            "duration": "5 s",
            "network": {"topology": "chain", "bottleneck": link, "reverse": {"bottleneck": {"delay": "20 ms"}}},
            "flows": [{"congestion_control": controller, **flow}],
            "record": {"controller": "all"},
        }
    )


def test_the_same_rules_give_the_same_bits():
    own = run(scenario("custom:mine", loss="0.5 %"), controllers={"mine": Reno})
    built_in = run(scenario("reno", loss="0.5 %"))
    assert own.digest == built_in.digest
    assert own.controllers["losses"].max() == own.flows["recoveries"][0] + own.flows["rtos"][0]


def test_batches_do_not_depend_on_threads():
    batches = [
        run_batch(scenario("custom:mine", loss="1 %"), [3, 1, 2], jobs=jobs, controllers={"mine": Reno})
        for jobs in (1, 3)
    ]
    assert batches[0].digests == batches[1].digests
    assert len(set(batches[0].digests)) == 3


def test_the_key_of_a_run_knows_the_class():
    keys = {run(scenario("custom:mine"), controllers={"mine": made}).provenance["key"] for made in (Reno, Fixed)}
    assert len(keys) == 2


class Fixed(Controller):
    """A controller that uses the hook `control`: a window of thirty segments, paced."""

    wants_rate = True
    wants_pacing = True

    def __init__(self):
        self.rates = []

    def on_congestion_event(self, window, in_flight):
        return 30

    def on_control(self, window, ack):
        window.cwnd = 30
        window.pacing_rate = 1.2e6
        if ack.rate and ack.rate.interval:
            self.rates.append(ack.rate.delivered / ack.rate.interval)


def test_a_controller_that_sets_window_and_rate_by_itself():
    done = run(scenario("custom:mine"), controllers={"mine": Fixed})
    # no queue: 41.2 ms, plus at most one pacing gap for the second segment of an acknowledged pair
    rtt = done.flows["mean_rtt_s"][0]
    assert 0.0412 < rtt < 0.0412 + 1.5 * 1448 / 1.2e6
    # Little's law, less the slow-start round trips
    assert done.flows["goodput_bps"][0] == pytest.approx(30 * 1448 * 8 / rtt, rel=0.02)
    assert set(done.controllers["cwnd"].to_list()) == {30}
    assert set(done.controllers["pacing_bps"].drop_nulls().to_list()) == {9.6e6}


def broken(**methods):
    return type("Broken", (Reno,), methods)


@pytest.mark.parametrize(
    ("hook", "method", "said"),
    [
        ("on_ack", lambda self, window, ack: 1 / 0, "ZeroDivisionError: division by zero"),
        ("on_ack", lambda self, window, ack: setattr(window, "cwnd", math.nan), "ValueError: cwnd is NaN"),
        ("on_ack", lambda self, window, ack: setattr(window, "cwnd", -3), "ValueError: cwnd is -3"),
        ("on_ack", lambda self, window, ack: setattr(window, "cwnd", 1e30), "ValueError: cwnd is 1"),
        ("on_ack", lambda self, window, ack: setattr(window, "cwnd", "many"), "TypeError"),
        ("on_ack", lambda self, window: None, "TypeError"),
        ("on_sample", lambda self, window, ack: setattr(window, "pacing_rate", 0), "ValueError: pacing_rate is 0"),
        ("on_sample", lambda self, window, ack: ack.nothing, "AttributeError"),
        ("on_congestion_event", lambda self, window, in_flight: None, "TypeError: returned None"),
        ("on_congestion_event", lambda self, window, in_flight: math.nan, "ValueError: the target window is NaN"),
        ("on_congestion_event", lambda self, window, in_flight: -1, "ValueError: the target window is -1"),
        ("__init__", lambda self: {}["x"], "KeyError: 'x'"),
    ],
)
def test_what_goes_wrong_ends_the_run_and_names_class_hook_and_time(hook, method, said):
    with pytest.raises(ControllerError) as raised:
        run(scenario("custom:mine", loss="1 %"), controllers={"mine": broken(**{hook: method})})
    error = raised.value
    assert (error.controller, error.hook) == ("Broken", hook)
    assert said in str(error)
    assert str(error).startswith(f"controller Broken, {hook} at ")
    assert "\n" not in str(error)
    assert (error.time_s > 0.04) == (hook != "__init__")
    assert error.__cause__ is not None


def test_the_time_of_a_failure_is_that_of_the_ack():
    def on_ack(self, window, ack):
        if ack.now > 2:
            raise RuntimeError("enough")

    with pytest.raises(ControllerError, match=r"on_ack at 2\.0") as raised:
        run_batch(scenario("custom:mine"), [1, 2], jobs=2, controllers={"mine": broken(on_ack=on_ack)})
    assert 2 < raised.value.time_s < 2.1  # no ACKs arrive while a window is being sent in one burst


def test_ctrl_c_is_no_failure_of_the_controller():
    def on_ack(self, window, ack):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(scenario("custom:mine"), controllers={"mine": broken(on_ack=on_ack)})


def test_a_name_that_was_not_given_and_a_class_without_hooks():
    with pytest.raises(ScenarioError, match=r'flows\.0\.congestion_control: found "other"; allowed: mine'):
        run(scenario("custom:other"), controllers={"mine": Reno})
    with pytest.raises(ScenarioError, match="none is"):
        run(scenario("custom:other"))
    with pytest.raises(ControllerError, match="there is no method on_ack"):
        run(scenario("custom:mine"), controllers={"mine": type("Empty", (), {})})
    with pytest.raises(InputError, match="controllers"):
        run(scenario("custom:mine"), controllers={"mine": 3})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"estimator": "abs"},
            'congestion_control_options.estimator: found "abs"; allowed: be, re, crb, abse, abse-batch',
        ),
        (
            {"estimater": "be"},
            "congestion_control_options.estimater: found an unknown option; allowed: estimator, astart",
        ),
        ({"n": -1}, "congestion_control_options.n: found -1; allowed: a number from 0 to 1000"),
        ({"n": "ten"}, 'congestion_control_options.n: found "ten"; allowed: a number from 0 to 1000'),
        ({"astart": 1}, "congestion_control_options.astart: found 1; allowed: true, false"),
        ({"n": [1]}, "congestion_control_options.n: found a list; allowed: true, false, a number or text in quotes"),
        (
            {"initial_ssthresh": 2.5},
            "congestion_control_options.initial_ssthresh: found 2.5; allowed: a whole number from 2",
        ),
    ],
)
def test_unknown_options_are_refused_with_what_is_allowed(options, said):
    with pytest.raises(ScenarioError) as raised:
        scenario("westwood", congestion_control_options=options)
    assert f"flows.0.{said}" in str(raised.value)


def test_options_of_controllers_that_have_none():
    with pytest.raises(ScenarioError, match="no option for reno"):
        scenario("reno", congestion_control_options={"x": 1})
    with pytest.raises(ScenarioError, match="give them to its class"):
        scenario("custom:mine", congestion_control_options={"x": 1})


def test_options_survive_a_round_trip_and_change_the_run():
    one = scenario("westwood", loss="1 %", congestion_control_options={"estimator": "re", "astart": False})
    assert Scenario.from_dict(one.to_dict()) == one
    assert 'estimator = "re"' in one.to_toml()
    assert run(one).digest != run(scenario("westwood", loss="1 %")).digest


def test_who_broke_a_rule_is_told_what_it_is():
    source = Path(__file__).parents[3] / "crates" / "cc" / "src" / "conformance.rs"
    rules = re.findall(r"^//! \| ([a-z-]+) \|", source.read_text("utf-8"), re.MULTILINE)
    assert rules == ["rule", *RULES]


def test_the_test_of_conformance():
    check(Reno)
    check(Fixed)
    with pytest.raises(ControllerError, match=r"breaks the rule application-limited \(.*ack.cwnd_limited\): "):
        check(broken(on_ack=lambda self, window, ack: setattr(window, "cwnd", min(window.cwnd + 1, 100))))
    with pytest.raises(ControllerError, match="breaks the rule undo"):
        check(broken(undo_cwnd=lambda self, window: 1))
    with pytest.raises(ControllerError, match="breaks the rule ecn"):
        check(broken(on_ecn=lambda self, window, ack: False))
    with pytest.raises(ControllerError, match="ZeroDivisionError"):
        check(broken(on_ack=lambda self, window, ack: 1 / 0))
    with pytest.raises(InputError, match="a class"):
        check(3)


def test_what_grows_without_end_after_a_while_does_not_conform():
    """A few seconds of random sequences do not reveal the growth, but a run does."""

    def late(self, window, ack):
        if ack.cwnd_limited:
            window.cwnd = min(2 * window.cwnd, 1e6) if ack.now > 5 else window.cwnd + ack.acked / window.cwnd

    said = r"at 5\.\d+ s: breaks the rule closed loop \(.*\): cwnd is [\d,]+ segments, path and queue hold 50 "
    with pytest.raises(ControllerError, match=said):
        check(broken(on_ack=late))


def test_variables_of_several_controllers_share_a_table():
    values = scenario("westwood", loss="0.5 %").to_dict()
    values["flows"] = [*values["flows"], {"congestion_control": "vegas"}]
    table = run(Scenario.from_dict(values)).controllers
    assert {"estimate_bps", "interval_s", "tau_s", "base_rtt_s", "cwnd", "pacing_bps"} <= set(table.columns)
    assert table.filter(table["flow"] == 1)["estimate_bps"].null_count() == table.filter(table["flow"] == 1).height
    estimates = table.filter(table["flow"] == 0)["estimate_bps"].drop_nulls()
    assert 1e6 < estimates.median() < 3e7
    values["record"] = {"controller": "flow", "controller_interval": "100 ms"}
    sparse = run(Scenario.from_dict(values)).controllers
    assert 40 <= sparse.height <= 51
    assert set(sparse["flow"]) == {0}


def test_marks_hold_the_queue_where_dctcp_wants_it():
    values = scenario("dctcp").to_dict()
    values["network"]["bottleneck"]["queue"] = {"kind": "threshold", "mark": "10 packets", "limit": "200 packets"}
    values["record"] = {"controller": "all"}
    done = run(Scenario.from_dict(values))
    link = done.links.row(0, named=True)
    assert link["dropped_queue"] == 0
    assert link["marked"] > 50
    assert 4 < link["mean_packets"] < 14
    assert done.flows["goodput_bps"][0] > 9e6  # the link's payload rate is 9.65 Mbit/s; slow start is included
    assert done.flows["retransmissions"][0] == 0
    off = run(Scenario.from_dict(values).set("flows.0.stack", {"ecn": "off"}))
    assert off.links["marked"][0] == 0


@pytest.mark.parametrize(("controller", "ecn_beta"), [("reno", 0.8), ("cubic", 0.85)])
def test_a_mark_may_count_for_less_than_a_loss(controller: str, ecn_beta: float):
    # RFC 8511: CoDel's queue is shorter than a BDP, so halving the window leaves the link idle
    values = scenario(controller, stack={"ecn": "ask"}).to_dict()
    values["network"]["bottleneck"]["queue"] = {"kind": "codel", "ecn": True}
    as_loss = run(Scenario.from_dict(values).set("duration", "60 s"))
    less = run(Scenario.from_dict(values).set("duration", "60 s").set("flows.0.stack.ecn_beta", ecn_beta))
    assert less.flows["goodput_bps"][0] > 1.01 * as_loss.flows["goodput_bps"][0]
    assert less.flows["retransmissions"][0] == 0
    assert less.links["marked"][0] > as_loss.links["marked"][0]


def test_classic_ecn_reduces_without_a_loss():
    values = scenario("reno", stack={"ecn": "ask"}).to_dict()
    values["network"]["bottleneck"]["queue"] = {"kind": "threshold", "mark": "30 packets", "limit": "500 packets"}
    done = run(Scenario.from_dict(values))
    assert done.links["marked"][0] > 0
    assert done.flows["retransmissions"][0] == 0
    assert done.links["max_packets"][0] < 200


@pytest.mark.parametrize("name", ["bbr", "bbr3"])
@pytest.mark.parametrize("smss", [500, 1448])
def test_the_rate_that_bbr_shows_is_in_bits_of_its_own_segments(name, smss):
    """A full link of 10 Mbit/s carries smss / (smss + 52) of its rate as payload."""
    scenario = Scenario.from_dict({
        "duration": "8 s",
        "network": {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "2 BDP"}}},
        "flows": [{"congestion_control": name, "stack": {"smss": f"{smss} bytes"}}],
        "record": {"controller": "all", "controller_interval": "100 ms"},
    })  # fmt: skip
    rows = run(scenario, seed=1).controllers
    late = rows.filter(rows["t_s"] > 4)["estimate_bps"]
    assert late.median() == pytest.approx(10e6 * smss / (smss + 52), rel=0.03)


@pytest.mark.parametrize("wanted", [1, 10, "round"])
def test_hooks_are_called_as_often_as_the_class_says(wanted):
    """Nothing is lost between two calls: the sums equal the totals over all ACKs."""
    told: list[tuple[int, int, float]] = []

    class Counting(Reno):
        every = wanted

        def on_ack(self, window, ack):
            told.append((ack.delivered, ack.acked_bytes, ack.now))
            super().on_ack(window, ack)

    link = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail"}}
    scenario = Scenario.from_dict(
        {
            "duration": "5 s",
            "network": {"bottleneck": link},
            "flows": [{"congestion_control": "custom:own", "workload": {"kind": "transfer", "bytes": "1 MB"}}],
            "record": {"trace": "all"},
        }
    )
    done = run(scenario, controllers={"own": Counting})
    assert done.flows["bytes_acked"][0] == 1_000_000
    acks = done.acks.filter(pl.col("event") == "ack").height
    missing = 1_000_000 - sum(acked for _, acked, _ in told)
    if wanted == 1:
        assert abs(len(told) - acks) <= 3
        assert missing < 3000  # the handshake's ACK and the FIN's ACK
    elif wanted == 10:
        assert acks // 10 - 1 <= len(told) <= acks // 10 + 1
        assert missing < 10 * 2 * 1448 + 3000
    else:
        rounds = [b - a for (_, _, a), (_, _, b) in pairwise(told)]
        assert min(rounds[1:-3]) >= 0.039  # except in the initial window and the last rounds
        assert len(told) < 40
        assert max(delivered for delivered, _, _ in told) > 20
    check(Counting)


@pytest.mark.parametrize("wanted", [0, -1, "rounds", 1.5, None])
def test_a_class_that_wants_to_be_told_at_other_times_is_refused(wanted):
    class Odd(Reno):
        every = wanted

    with pytest.raises(ControllerError, match=r"every is .*; allowed: a number of ACKs, 1 or more, or \"round\""):
        check(Odd)
