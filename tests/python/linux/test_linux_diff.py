"""Compares the simulator with the real kernel, if built, ACK by ACK."""

from __future__ import annotations

from pathlib import Path

import pytest

import ackclock
from ackclock import linux
from ackclock._results.columns import plain
from ackclock.diff import PATTERNS, _compare, compare, judge, over_seeds
from ackclock.fidelity.drawn import Drawn, drawn, listed
from ackclock.fidelity.families import family
from ackclock.fidelity.mixtures import mixtures
from ackclock.fidelity.path import N1, N2, bulk
from ackclock.linux import _cache, _guest


def test_the_kernel_and_the_simulator_meet_the_same_scripted_losses(kernel: linux.Kernel) -> None:
    pattern = next(p for p in PATTERNS if p.name == "1 to 4 of the initial window")
    result = compare(pattern.scenario())
    assert result.recovered, result.divergence
    assert result.kernel.flows["retransmissions"][0] == result.simulator.flows["retransmissions"][0] == 4


def test_means_of_equal_runs_are_equal_though_one_was_sampled_for_longer(kernel: linux.Kernel) -> None:
    """The simulator samples a transfer until its FIN is acknowledged, the kernel until its socket is closed."""
    bottleneck = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    flow = {"workload": {"kind": "transfer", "bytes": "1 MB"}}
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "4 s",
            "network": {"bottleneck": bottleneck},
            "flows": [flow],
            "record": {"sample_interval": "10 ms"},
        }
    )
    result = compare(scenario)
    assert result.identical
    assert result.simulator.samples.height > result.kernel.samples.height
    means = [row for row in result.agreement if row.quantity.startswith("mean ")]
    assert len(means) == 2
    assert all(row.simulator == row.kernel is not None for row in means)
    found = over_seeds(scenario, seeds=5)
    assert all(row.first == row.second for row in found.rows)


@pytest.fixture
def named(kernel: linux.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Return the same kernel under two names, in a separate cache."""
    real = _cache.folder()
    mine = tmp_path / "ackclock" / "linux"
    mine.mkdir(parents=True)
    for thing in (kernel.path.parent, *real.glob("guest-*")):
        (mine / thing.name).symlink_to(thing)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(_cache.CHOSEN, raising=False)
    for name in ("first", "second"):
        _cache.set_name(name, kernel.path.parent.name)
    return "first", "second"


def test_a_kernel_under_two_names_is_the_same_to_the_end(named: tuple[str, str]) -> None:
    pattern = next(p for p in PATTERNS if p.name == "1 to 4 of the initial window")
    result = compare(pattern.scenario(), kernels=named)
    assert result.divergence is None, str(result.divergence)
    assert result.names == named
    assert result.to_json()["first"] == "first"
    assert result.kernel.digest == result.simulator.digest
    one = next(iter(family("kept", 1, 1)))
    (row,) = judge([one], kernels=named)
    assert row.identical, row.text


def test_flows_that_share_a_queue_have_the_same_distribution_in_one_kernel(named: tuple[str, str]) -> None:
    told = bulk(N1, "cubic", seconds=2).to_dict()
    flow = {**told["flows"][0], "count": 2}
    scenario = ackclock.Scenario.from_dict({**told, "flows": [flow]})
    found = over_seeds(scenario, seeds=5, kernels=named)
    assert found.names == named
    assert len(found.rows) == 9
    assert all(row.distance == 0 for row in found.rows)


def test_drawn_transfers_are_equal_in_every_segment_and_every_window(kernel: linux.Kernel) -> None:
    results = [compare(one.scenario) for one in drawn(2, transfers=10, bulks=0, lossy=0)]
    equal = sum(result.divergence is None for result in results)
    assert equal >= 9, [str(result.divergence) for result in results]


def test_behind_a_veth_the_window_opens_as_the_kernels(kernel: linux.Kernel) -> None:
    # with a TUN device's memory accounting, the 23rd ACK and every second one after it differ
    result = compare(bulk(N1, "yeah", seconds=5), network="qdisc")
    by = {row.quantity: row for row in result.agreement}
    assert result.events > 1000, str(result.divergence)
    assert by["retransmissions"].simulator == by["retransmissions"].kernel


@pytest.mark.parametrize(("rate", "rtt_ms"), [(10, 10), (10, 40)])
def test_dctcp_is_the_kernels_also_where_two_acks_arrive_in_one_nanosecond(
    kernel: linux.Kernel, rate: int, rtt_ms: int
) -> None:
    # A change of the mark triggers two simultaneous ACKs. Without a rate on the return path, both sides receive them
    # at the same instant, and the writer woken up by the first one continues after the second.
    def scenario(**back: str) -> ackclock.Scenario:
        delay = f"{rtt_ms / 2} ms"
        queue = {"kind": "dualpi2", "classifier": "any-ect"}
        network = {
            "topology": "chain",
            "framing": "14 bytes",
            "bottleneck": {"rate": f"{rate} Mbit/s", "delay": delay, "queue": queue},
            "reverse": {"bottleneck": {"delay": delay, **back}},
        }
        flow = {"congestion_control": "dctcp", "stack": {"ecn": "ask"}}
        return ackclock.Scenario.from_dict({"duration": "10 s", "network": network, "flows": [flow]})

    for back in ({}, {"rate": "1 Gbit/s"}):
        compared = compare(scenario(**back), network="relay")
        assert compared.divergence is None, (back, str(compared.divergence))
        assert compared.events > 1000
        assert compared.simulator.links["marked"][0] == compared.kernel.links["marked"][0] > 100


def test_held_back_acks_leave_before_a_segment_of_the_same_nanosecond(kernel: linux.Kernel) -> None:
    # ACKs 1.01 ms apart release segments 1.01 ms apart; the first coincidence is at 2.98 s
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "3.2 s",
            "network": N2.network(loss={"kind": "bernoulli", "p": 0.01}),
            "flows": [{"profile": "linux-6", "congestion_control": "illinois", "workload": {"kind": "bulk"}}],
        }
    )
    result = compare(scenario, seed=2)
    assert result.divergence is None, str(result.divergence)


def test_flows_under_random_loss_are_equal_in_every_segment_and_every_window(kernel: linux.Kernel) -> None:
    short = [one.scenario.set("duration", "4 s") for one in drawn(2, transfers=0, bulks=0, lossy=12)]
    results = [compare(scenario) for scenario in short]
    equal = sum(result.divergence is None for result in results)
    assert equal >= 11, [str(result.divergence) for result in results]


@pytest.mark.parametrize("part", range(4))
def test_flows_that_lose_what_the_measured_kernel_lost_are_equal(kernel: linux.Kernel, part: int) -> None:
    results = [compare(one.scenario) for one in list(listed(seconds=3))[part::4]]
    equal = sum(result.divergence is None for result in results)
    assert equal == len(results) == 5, [str(result.divergence) for result in results]


@pytest.mark.parametrize(("seed", "seconds"), [(2, 4), (3, 6)])
def test_arrivals_are_not_late_by_a_microsecond(kernel: linux.Kernel, seed: int, seconds: int) -> None:
    # if failing system calls take 1 us, seed 3 diverges after 4.86 s
    loss = {"kind": "bernoulli", "p": "1 %"}
    result = compare(bulk(N2, "illinois", seconds=seconds, loss=loss), seed=seed)
    assert result.divergence is None, str(result.divergence)
    ours, theirs = (
        run.acks.filter(run.acks["event"] == "ack")["t_s"].round(9) for run in (result.simulator, result.kernel)
    )
    assert (ours == theirs).all()


@pytest.mark.parametrize(("controller", "classifier"), [("dctcp", "any-ect"), ("cubic", "l4s"), ("reno", "l4s")])
def test_flows_behind_dualpi2_are_equal_in_every_segment(
    kernel: linux.Kernel, controller: str, classifier: str
) -> None:
    queue = {"kind": "dualpi2", "classifier": classifier}
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "8 s",
            "network": {
                "topology": "chain",
                "framing": "14 bytes",
                "bottleneck": {"rate": "40 Mbit/s", "delay": "5 ms", "queue": queue},
                "reverse": {"bottleneck": {"delay": "5 ms"}},
            },
            "flows": [{"profile": "linux-6", "congestion_control": controller, "stack": {"ecn": "ask"}}],
        }
    )
    result = compare(scenario)
    assert result.divergence is None, str(result.divergence)
    assert result.kernel.links["marked"][0] == result.simulator.links["marked"][0] > 0


def test_drawn_families_are_judged_the_same_with_any_number_of_guests(kernel: linux.Kernel) -> None:
    todo = [one for name in ("way-back", "kept") for one in family(name, 1, 2)]
    for one in todo:
        assert one.network == "relay"
    alone, beside = judge(todo), judge(todo, jobs=2)
    assert alone == beside
    assert [one.kind for one in alone] == ["way-back", "way-back", "kept", "kept"]
    assert all(one.events > 0 for one in alone)


@pytest.mark.parametrize("seed", [1, 2])
def test_bbr_draws_the_phases_that_the_kernels_does(kernel: linux.Kernel, seed: int) -> None:
    """BBR draws a phase at the end of Drain and of each ProbeRTT, ten seconds apart."""
    result = compare(bulk(N1, "bbr", seconds=25), seed=seed)
    assert result.divergence is None, result.divergence


def test_each_flow_of_bbr_has_draws_of_its_own(kernel: linux.Kernel) -> None:
    told = bulk(N1, "bbr", seconds=8).to_dict()
    flows = [told["flows"][0], {**told["flows"][0], "start": "300 ms"}]
    scenario = ackclock.Scenario.from_dict({**told, "flows": flows})
    row = judge([Drawn(name="two", kind="two", scenario=scenario)])[0]
    assert row.identical, row.text
    assert row.given
    (row,) = judge([Drawn(name="none", kind="none", scenario=bulk(N1, "reno", seconds=1))])
    assert not row.given


def test_nv_is_the_kernels_until_its_first_draw(kernel: linux.Kernel) -> None:
    """NV draws when its minimum RTT expires for the second time, after 5.75 s at the earliest."""
    result = compare(bulk(N1, "nv", seconds=5))
    assert result.divergence is None, result.divergence


@pytest.mark.parametrize("factor", [0, 33333331])
def test_cdg_is_the_kernels_where_no_draw_matters(
    factor: int, kernel: linux.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = _guest.command_line
    monkeypatch.setattr(_guest, "command_line", lambda *a, **k: [*line(*a, **k), f"tcp_cdg.backoff_factor={factor}"])
    ours = {"backoff_factor": factor}
    monkeypatch.setattr(
        _compare, "run", lambda s, seed: ackclock.run(s.set("flows.0.congestion_control_options", ours), seed=seed)
    )
    result = compare(bulk(N1, "cdg", seconds=5))
    assert result.divergence is None, result.divergence
    lost = {"kind": "bernoulli", "p": 0.005}
    result = compare(bulk(N2, "cdg", seconds=3).set("network.bottleneck.loss", lost))
    assert result.divergence is None, result.divergence
    assert result.kernel.flows["retransmissions"][0] > 0


def test_a_receive_buffer_grows_by_what_is_read_in_a_round_trip(kernel: linux.Kernel) -> None:
    scenario = bulk(N1, "reno", seconds=2).set("record.trace", "flow")
    rows = linux.run(scenario, seed=1, network="qdisc").tables["receive_buffers"]
    found = {name: plain(*column) for name, column in rows.items()}
    assert len(found["t_s"]) > 2
    for copied, queued, space in zip(found["copied"], found["queued"], found["space"], strict=True):
        assert copied - queued > space  # Linux `tcp_rcv_space_adjust`
    after = [copied - queued for copied, queued in zip(found["copied"], found["queued"], strict=True)]
    assert all(later >= earlier for earlier, later in zip(after, found["space"][1:], strict=False))
    for memory, share, bound in zip(found["memory"][1:], found["share"][1:], found["bound"][1:], strict=True):
        assert abs((memory * share >> 8) - bound) <= 1  # Linux `tcp_win_from_space`


@pytest.mark.deep
@pytest.mark.parametrize(("name", "number"), [("reordering", 11), ("offload", 5), ("offload", 15)])
def test_drawn_scenarios_that_once_differed(kernel: linux.Kernel, name: str, number: int) -> None:
    found = judge([list(family(name, 20261201, 20))[number]])[0]
    assert found.identical, found.text


@pytest.mark.deep
@pytest.mark.parametrize(("name", "number"), [("outages", 15), ("bursts", 3), ("steps", 10), ("reordering", 0)])
def test_sacked_segments_take_the_memory_of_the_kernels(kernel: linux.Kernel, name: str, number: int) -> None:
    one = list(family(name, 20261201, 20))[number]
    result = compare(one.scenario, network=one.network)
    assert result.divergence is None, str(result.divergence)


@pytest.mark.deep
@pytest.mark.parametrize("number", [9, 22, 44, 47, 79, 131, 144, 160])
def test_drawn_mixtures_that_once_differed(kernel: linux.Kernel, number: int) -> None:
    found = judge(list(mixtures(417705230, 1, first=number)))[0]
    assert found.identical, found.text
