"""Tests for the name of the congestion control in a capture: each one is distinguished from all others, none is named if none fits, and ties are reported."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from test_diagnose import captured

import ackclock
from ackclock.cli import main
from ackclock.diagnose import diagnose, fit, fit_mirror, identify, mirrored, what_if
from ackclock.diagnose._curve import curve
from ackclock.diagnose._falls import Falls, alike, falls
from ackclock.diagnose._who import candidates
from ackclock.errors import InputError
from ackclock.formats import read_capture

PATH = {
    "duration": "12 s",
    "network": {
        "bottleneck": {"rate": "8 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "30 packets"}}
    },
    "flows": [{"congestion_control": "htcp", "workload": {"kind": "bulk"}}],
}

FOUR = {"kind": "transfer", "bytes": "4 MB"}


def test_one_of_all_is_named_and_without_it_none(tmp_path):
    _, path = captured(tmp_path, ackclock.Scenario.from_dict(PATH))
    found = diagnose(path)
    shares: list[float] = []
    told = identify(found, progress=shares.append)
    assert told.names == ("htcp",)
    assert told.others == ()
    assert told.candidates[0].distance < 1e-3
    assert {one.name for one in told.candidates} == set(candidates()) - {"dctcp", "prague"}
    assert [name for name, _ in told.left_out] == ["dctcp", "prague"]
    assert shares == sorted(shares)
    assert told.scenario is not None
    assert told.scenario.flows[0].congestion_control == "htcp"
    without = identify(found, among=["reno", "cubic", "bic", "vegas", "bbr"])
    assert without.names == ()
    assert without.nearest == "reno"
    assert without.sentence.startswith("None of the 5 congestion controls that are known here: reno comes nearest")


@pytest.mark.parametrize(("controller", "others"), [("reno", ("dctcp",)), ("dctcp", ("reno", "cubic"))])
def test_a_syn_that_can_be_marked_tells_who_needs_exact_marks(tmp_path, controller, others):
    """Without marks, both respond to losses in the same way."""
    scenario = ackclock.Scenario.from_dict(PATH)
    _, path = captured(
        tmp_path, scenario.set_all({"flows.0.congestion_control": controller, "flows.0.stack.ecn": "ask"})
    )
    told = identify(diagnose(path), among=[controller, *others])
    assert told.names == (controller,)
    assert told.others == ()
    assert tuple(name for name, _ in told.left_out) == others


def test_a_controller_that_draws_random_numbers_is_named_by_its_falls(tmp_path):
    """Regression: each run of CDG draws its own backoffs, no two have the same curve, and CDG was never named."""
    scenario = ackclock.Scenario.from_dict(PATH).set_all({"flows.0.congestion_control": "cdg", "duration": "16 s"})
    path = tmp_path / "cdg.pcapng"
    ackclock.run(scenario, seed=77, pcap=path, pcap_at="sender", snaplen=96)
    found = diagnose(path)
    told = identify(found, among=["cdg", "reno", "vegas"])
    assert told.names == ("cdg",)
    assert told.others == ()
    assert told.candidates[0].distance > 0.05
    assert told.sentence.endswith("named by how its flight falls without a loss.")
    assert identify(found, among=["reno", "vegas"]).names == ()


def test_falls_are_alike_in_depth_growth_and_number():
    def saw(depth: float, grows: float, falls_at: float = 40.0) -> Falls:
        flight, una, ends, flights = 20.0, 0.0, [], []
        for _ in range(200):
            flight = flight * depth if flight > falls_at else flight + grows
            size = round(flight)
            ends += [(una + size + i) * 1000 + 1 for i in range(1, size + 1)]
            flights += [size * 1000] * size
            una += size
        return falls(np.array(ends, dtype=float), np.array(flights, dtype=float), [], mss=1000)

    own = saw(0.7, 1)
    assert own.growth == 1
    assert own.depths[0] == pytest.approx(0.7, abs=0.02)
    assert alike(own, [saw(0.7, 1, 44)])
    assert not alike(own, [saw(0.5, 1)])
    assert not alike(own, [saw(0.7, 2)])
    assert not alike(own, [saw(0.7, 1, 150)])
    assert not alike(own, [])


def test_those_that_do_the_same_are_a_tie(tmp_path):
    """The receive window limits the flows before anything is lost; only Vegas reacts to the standing queue."""
    scenario = ackclock.Scenario.from_dict(PATH).set("flows.0.stack.receive_buffer", "70 KiB")
    _, path = captured(tmp_path, scenario)
    told = identify(diagnose(path), among=["highspeed", "htcp", "reno", "vegas"])
    assert sorted(told.names) == ["highspeed", "htcp", "reno"]
    assert told.others == ()
    assert "which do the same on this path, segment by segment" in told.sentence


def test_what_was_lost_is_what_the_network_dropped(tmp_path):
    """Lost retransmissions count; spurious retransmissions do not."""
    scenario = ackclock.Scenario.from_dict(PATH).set("network.bottleneck.loss", {"kind": "bernoulli", "p": 0.05})
    run, path = captured(tmp_path, scenario.set("record.drops", True).set("flows.0.congestion_control", "cubic"))
    drops = run.drops.filter(pl.col("forward") & (pl.col("seg_no") > 0) & (pl.col("t_s") < 11))
    real = set(drops.select("seg_no", "rexmit").iter_rows())
    found = diagnose(path)
    assert found.sent is not None
    last = max(n for n, _ in real)
    assert max(which for _, which in real) > 0
    assert {one for one in found.sent.lost if one[0] <= last} >= real
    assert len(found.sent.lost) <= run.rows("flows")[0]["retransmissions"]


def test_lost_acks_are_mirrored_as_well(tmp_path):
    """A controller's behaviour depends on its ACKs: where one ACK per two segments is usual, one for four segments indicates a lost ACK."""
    scenario = ackclock.Scenario.from_dict(PATH).set("flows.0.congestion_control", "bic")
    back = {"rate": "8 Mbit/s", "delay": "20 ms", "loss": {"kind": "listed", "packets": [700, 1500]}}
    _, path = captured(tmp_path, scenario.set("network.reverse", {"bottleneck": back}))
    found = diagnose(path)
    assert found.sent is not None
    assert found.sent.lost_acks == (700, 1500)
    told = identify(found, among=["bic", "cubic", "htcp", "copa"])
    assert told.names == ("bic",)
    assert told.candidates[0].distance < 1e-3


def test_acks_lost_while_segments_are_missing_are_found_by_their_blocks(tmp_path):
    """Each segment beyond a hole triggers an ACK; an ACK that reports two segments indicates a lost ACK."""
    lost = [72, 90, 91]
    scenario = ackclock.Scenario.from_dict(PATH).set_all(
        {
            "duration": "3 s",
            "network.bottleneck.queue.limit": "300 packets",
            "network.bottleneck.loss": {"kind": "scripted", "drops": [{"first": 80}]},
            "network.reverse": {
                "bottleneck": {"rate": "8 Mbit/s", "delay": "20 ms", "loss": {"kind": "listed", "packets": lost}}
            },
        }
    )
    run, path = captured(tmp_path, scenario)
    assert run.rows("flows")[0]["recoveries"] == 1
    found = diagnose(path)
    assert found.sent is not None
    assert found.sent.lost_acks == tuple(lost)


def test_acks_of_several_segments_behind_a_hole_are_no_lost_ones(tmp_path):
    """From 12 Mbit/s on, two segments arrive within the receiver's one-millisecond wait (Linux `tcp_comp_sack`)."""
    scenario = ackclock.Scenario.from_dict(PATH).set_all(
        {
            "network.bottleneck": {
                "rate": "15 Mbit/s",
                "delay": "35 ms",
                "queue": {"kind": "drop-tail", "limit": "128 packets"},
            },
            "flows.0.congestion_control": "bic",
        }
    )
    _, path = captured(tmp_path, scenario)
    found = diagnose(path)
    assert found.sent is not None
    assert len(found.sent.lost) > 50
    assert found.sent.lost_acks == ()


def test_a_sender_whose_pace_changes_has_not_waited_for_its_application(tmp_path):
    """FAST paces its first rounds at a quarter of its later pace, and one of the writes ends in them."""
    path_of = {"rate": "5.52 Mbit/s", "delay": "26.4 ms", "queue": {"kind": "drop-tail", "limit": "43 packets"}}
    flow = {"congestion_control": "fast", "workload": {"kind": "bulk"}}
    scenario = {"duration": "20 s", "network": {"bottleneck": path_of}, "flows": [flow]}
    _, path = captured(tmp_path, ackclock.Scenario.from_dict(scenario))
    assert mirrored(diagnose(path)).flows[0].workload.kind == "transfer"


def test_the_receivers_capture_names_it_too(tmp_path):
    _, path = captured(tmp_path, ackclock.Scenario.from_dict(PATH), at="receiver")
    found = diagnose(path)
    assert found.at == "receiver"
    assert identify(found, among=["bic", "cubic", "htcp", "reno", "bbr"]).names == ("htcp",)


def test_a_mirrored_run_is_the_capture(tmp_path):
    """The same segments are lost, and the run takes equally long although its queue is longer."""
    work = {"kind": "transfer", "bytes": "6 MB"}
    run, path = captured(tmp_path, ackclock.Scenario.from_dict(PATH).set("flows.0.workload", work))
    again = ackclock.run(mirrored(diagnose(path), controller="htcp"))
    (own,), (other,) = run.rows("flows"), again.rows("flows")
    assert other["retransmissions"] == own["retransmissions"] > 0
    assert other["completion_s"] == pytest.approx(own["completion_s"], rel=1e-4)


def test_too_little_or_marks_or_no_queue_are_refused(tmp_path):
    scenario = ackclock.Scenario.from_dict(PATH)
    short = scenario.set("flows.0.workload", {"kind": "transfer", "bytes": "300 KB"})
    marked = scenario.set_all(
        {
            "flows.0.congestion_control": "dctcp",
            "network.bottleneck.queue": {"kind": "threshold", "mark": "10 packets", "limit": "50 packets"},
        }
    )
    held = scenario.set("flows.0.stack.receive_buffer", "20 KiB")
    for wrong, why in ((short, "segments; allowed"), (marked, "that tell of marks"), (held, "never full")):
        _, path = captured(tmp_path, wrong)
        told = identify(diagnose(path))
        assert why in told.refused
        assert told.sentence.startswith("The congestion control cannot be named: found")
        assert told.names == told.candidates == ()


def test_a_curve_is_the_mean_of_logarithms(tmp_path):
    ends = np.array([101.0, 201.0, 301.0, 401.0])
    made = curve(ends, np.array([100.0, 100.0, 400.0, 100.0]), whole=400.0, cells=2, mss=100)
    assert np.exp(made.logs) == pytest.approx([1.0, 2.0])
    assert made.reached == 1.0
    assert curve(ends[:2], np.array([100.0, 100.0]), whole=400.0, cells=2, mss=100).reached == 0.5


def test_command(tmp_path, capsys):
    work = {"kind": "transfer", "bytes": "4 MB"}
    scenario = ackclock.Scenario.from_dict(PATH).set("flows.0.workload", work)
    _, path = captured(tmp_path, scenario)
    page, model = tmp_path / "x.html", tmp_path / "x.toml"
    assert main(["diagnose", str(path), "--which", "--report", str(page), "--scenario", str(model)]) == 0
    shown = capsys.readouterr().out
    assert "The congestion control was htcp." in shown
    assert 'congestion_control = "htcp"' in model.read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert "Which congestion control" in text
    assert "--which" in text
    assert main(["diagnose", str(path), "--which", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["which"]
    assert told["names"] == ["htcp"]
    assert told["candidates"][0]["name"] == "htcp"


@pytest.mark.deep
@pytest.mark.parametrize("controller", candidates())
def test_every_controller_is_named(tmp_path, controller):
    """Controllers that draw random numbers are included; two that behave alike may be named together."""
    _, path = captured(tmp_path, ackclock.Scenario.from_dict(PATH).set("flows.0.congestion_control", controller))
    told = identify(diagnose(path))
    assert controller in (*told.names, *told.others), told.sentence


def test_a_mirror_writes_when_the_application_did(tmp_path, capsys):
    """Three blocks with pauses between them and some lost segments: the mirror takes equally long and loses as many segments."""
    blocks = [{"bytes": "1 MB"}, {"at": "2 s", "bytes": "300001 B"}, {"at": "3 s", "bytes": "1 MB"}]
    scenario = ackclock.Scenario.from_dict(PATH).set_all(
        {
            "flows.0.workload": {"kind": "writes", "writes": blocks},
            "network.bottleneck.loss": {"kind": "scripted", "drops": [{"first": 800}, {"first": 950, "last": 952}]},
        }
    )
    run, path = captured(tmp_path, scenario)
    file = tmp_path / "mirror.toml"
    assert main(["diagnose", str(path), "--mirror", str(file), "--controller", "htcp"]) == 0
    assert "the same losses and writes, run" in capsys.readouterr().out
    made = ackclock.load(file)
    writes = made.flows[0].workload.writes
    assert [write.bytes for write in writes] == ["1000000 B", "300001 B", "1000000 B"]
    (own,), (other,) = run.rows("flows"), ackclock.run(made).rows("flows")
    assert other["retransmissions"] == own["retransmissions"] > 4
    assert other["completion_s"] == pytest.approx(own["completion_s"], rel=0.01)


def test_what_if_of_the_sender_runs_in_the_mirror_where_that_fits_better(tmp_path, capsys):
    """A self-paced application permits no path model, and a few losses are not enough to estimate a loss rate."""
    blocks = [{"bytes": "300000 B"}, {"at": "2 s", "bytes": "300000 B"}, {"at": "4 s", "bytes": "300000 B"}]
    scenario = ackclock.Scenario.from_dict(PATH).set_all(
        {
            "network.bottleneck.queue.limit": "600 packets",
            "flows.0.workload": {"kind": "writes", "writes": blocks},
            "network.bottleneck.loss": {"kind": "scripted", "drops": [{"first": 60}]},
        }
    )
    run, path = captured(tmp_path, scenario)
    found = diagnose(path)
    with pytest.raises(InputError, match="whose application"):
        fit(found)
    mirror = fit_mirror(found, controller="htcp")
    assert mirror is not None
    assert mirror.error < 0.01
    outcomes = {one.name: one for one in what_if(None, mirror=mirror, seeds=2)}
    assert {one.model for one in outcomes.values()} == {"mirror"}
    assert {one.error for one in outcomes.values()} == {mirror.error}
    now = outcomes["as it is"].seconds
    assert now == pytest.approx(run.rows("flows")[0]["completion_s"], rel=0.01)
    assert "queue fq-codel" not in outcomes  # another controller would lose other segments
    assert "twice the rate" not in outcomes
    wider = outcomes["initial window of 32"]
    truth = ackclock.run(scenario.set("flows.0.stack.initial_window", 32)).rows("flows")[0]["completion_s"]
    assert wider.seconds == pytest.approx(truth, rel=0.01)
    assert main(["diagnose", str(path), "--what-if", "--controller", "htcp"]) == 0
    assert "mirror, " in capsys.readouterr().out


def test_a_worse_mirror_is_no_basis_and_where_a_full_queue_lost_there_is_none(tmp_path):
    _, path = captured(tmp_path, ackclock.Scenario.from_dict(PATH).set("flows.0.workload", FOUR))
    found = diagnose(path)
    assert fit_mirror(found, controller="htcp") is None
    made = fit(found, controller="htcp", seeds=1)
    worse = replace(made, error=made.error + 0.01, mirror=True)
    assert {one.model for one in what_if(made, mirror=worse, seeds=1)} == {"path"}
    with pytest.raises(InputError, match="found a model"):
        what_if(replace(made, error=0.2), mirror=replace(worse, error=0.3))
    better = replace(made, error=0.0, mirror=True)
    told = {one.name: one.model for one in what_if(replace(made, error=0.01), mirror=better, seeds=1)}
    assert told["congestion control reno"] == "mirror"
    assert told["twice the rate"] == "path"


@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_what_a_card_has_cut_is_mirrored(tmp_path, at):
    """Regression: the capture shows single segments. Mirror hosts with NICs that did not split packets matched another controller."""
    scenario = ackclock.Scenario.from_dict(PATH).set_all(
        {
            "flows.0.congestion_control": "hybla",
            "flows.0.stack.tso": True,
            "flows.0.host": "sender",
            "hosts": [{"name": "sender", "cuts_packets": True}],
        }
    )
    path = tmp_path / "a.pcapng"
    ackclock.run(scenario, pcap=path, pcap_at=at, snaplen=96)
    found = diagnose(path)
    told = identify(found, among=["hybla", "reno", "highspeed", "westwood-plus"])
    assert told.names == ("hybla",)
    assert told.scenario is not None
    assert told.scenario.flows[0].stack.tso is True


def test_acks_of_many_segments_with_numbers_in_a_row_are_all(tmp_path):
    """Regression: a host merges segments before TCP sees them, and an ACK for four segments was counted as a lost ACK."""
    scenario = ackclock.Scenario.from_dict(PATH).set_all(
        {
            "flows.0.stack.tso": True,
            "flows.0.host": "sender",
            "flows.0.peer_host": "reader",
            "hosts": [
                {"name": "sender", "cuts_packets": True},
                {"name": "reader", "gro": True, "gro_flush_timeout": "10 ms", "napi_defer_hard_irqs": 10},
            ],
        }
    )
    _, path = captured(tmp_path, scenario)
    found = diagnose(path)
    assert found.sent is not None
    packets = read_capture(path, connection=0).packets
    assert packets is not None
    server = found.connection["way"] == "server"
    acks = packets.filter((pl.col("from_server") != server) & (pl.col("kind") == "ack"))["ack"]
    assert (acks.diff().drop_nulls() >= 4 * 1448).sum() > 10
    assert found.sent.lost_acks == ()


def test_a_slow_start_that_no_hystart_ended_is_cubics_too(tmp_path):
    """Regression: ACKs reached the host late, so HyStart did not end slow start there, but did in the mirror, and illinois was named."""
    scenario = ackclock.Scenario.from_dict(PATH).set_all(
        {
            "flows.0.congestion_control": "cubic",
            "flows.0.stack.slow_start": {"kind": "classic"},
            "network.bottleneck.queue.limit": "80 packets",
        }
    )
    _, path = captured(tmp_path, scenario)
    told = identify(diagnose(path), among=["cubic", "illinois", "reno", "htcp"])
    assert told.names == ("cubic",)
    assert told.scenario is not None
    assert told.scenario.flows[0].stack.slow_start.kind == "classic"
