from __future__ import annotations

import pytest

from ackclock import Scenario, run
from ackclock.errors import ScenarioError


def repeated(minimal, **cache):
    """Return five transfers of 5 MB, one after another, over a 20 Mbit/s, 40 ms path with a deep queue."""
    minimal["duration"] = "40 s"
    minimal["network"]["bottleneck"] |= {"rate": "20 Mbit/s", "queue": {"kind": "drop-tail", "limit": "60 packets"}}
    minimal["flows"] = [
        {
            "count": 5,
            "stagger": "8 s",
            "profile": "linux-2.6",
            "congestion_control": "reno",
            "stack": {"metrics_cache": cache},
            "workload": {"kind": "transfer", "bytes": "5 MB"},
        }
    ]
    return Scenario.from_dict(minimal)


def test_the_first_run_is_cold_and_the_later_ones_warm(minimal):
    scenario = repeated(minimal)
    result = run(scenario)
    lost = result.flows["retransmissions"].to_list()
    assert lost[0] > 20, "slow start overshoots"
    assert all(warm < lost[0] / 3 for warm in lost[1:]), lost
    cold = Scenario.from_dict(minimal | {"flows": [minimal["flows"][0] | {"stack": {}}]})
    alone = run(cold)
    assert alone.flows["retransmissions"][0] == lost[0], "the first one differs in nothing"
    assert alone.destinations.height == 0
    left = result.destinations.row(0, named=True)
    assert left["destination"] == "peer"
    assert 20 < left["ssthresh_segments"] < 130


def test_a_run_takes_up_what_the_one_before_has_left(minimal):
    first = run(repeated(minimal))
    warm = first.remembered()
    cache = warm.flows[0].stack.metrics_cache
    assert cache.ssthresh == first.destinations["ssthresh_segments"][0]
    assert run(warm).flows["retransmissions"][0] < first.flows["retransmissions"][0] / 3
    assert first.remembered(repeated(minimal, destination="elsewhere")).flows[0].stack.metrics_cache.ssthresh is None


def test_a_stale_low_value_is_ruinous(minimal):
    slow = run(repeated(minimal, ssthresh=2)).flows["completion_s"][0]
    good = run(repeated(minimal, ssthresh=60)).flows["completion_s"][0]
    assert slow > 1.15 * good


@pytest.mark.parametrize(
    ("profile", "segments"),
    [("linux-2.6", 2 * 2**20 * 3 // 4 // 1448), ("freebsd-4", 2 * 2**20 // 1448), ("linux-6", 2 * 2**20 // 1448)],
)
def test_socket_buffers_of_2_mib_give_the_windows_of_their_system(minimal, profile, segments):
    """Receive windows: 1.5 MiB on 2004 Linux, 2 MiB on FreeBSD (large-pipes sheet, 6.2). 155 Mbit/s x 200 ms requires more than either."""
    minimal["duration"] = "20 s"
    minimal["network"]["bottleneck"] = {"rate": "1 Gbit/s", "delay": "100 ms"}
    minimal["record"] = {"sample_interval": "100 ms"}
    stack = {"socket_buffer": "2 MiB", "slow_start": {"kind": "classic"}}
    minimal["flows"] = [{"profile": profile, "congestion_control": "reno", "stack": stack}]
    most = run(Scenario.from_dict(minimal)).samples["in_flight"].max()
    assert segments - 3 <= most <= segments + 1  # the last one may be shorter


def test_freebsd_opens_the_whole_window_at_once(minimal):
    minimal["flows"] = [
        {"profile": "freebsd-4", "congestion_control": "reno", "stack": {"socket_buffer": "2 MiB"}},
    ]
    minimal["record"] = {"trace": "flow"}
    acks = run(Scenario.from_dict(minimal)).acks
    assert acks["rwnd"].max() >= 2 * 2**20 - 65536
    assert acks.filter(acks["event"] == "ack")["rwnd"][0] >= 2 * 2**20 - 65536


@pytest.mark.parametrize(
    ("stack", "key"),
    [
        ({"socket_buffer": "1 MB", "receive_buffer": "1 MB"}, "socket_buffer"),
        ({"metrics_cache": {"ssthresh": 1}}, "metrics_cache.ssthresh"),
        ({"metrics_cache": {"destinaton": "x"}}, "metrics_cache.destinaton"),
    ],
)
def test_what_makes_no_sense(minimal, stack, key):
    minimal["flows"][0]["stack"] = stack
    with pytest.raises(ScenarioError, match=key):
        Scenario.from_dict(minimal)
    minimal["flows"] = [{"stack": {"metrics_cache": {"ssthresh": s}}} for s in (10, 20)]
    with pytest.raises(ScenarioError, match=r"flows.1.stack.metrics_cache: found another ssthresh"):
        Scenario.from_dict(minimal)


def test_slow_start_ends_at_the_initial_ssthresh():
    def cwnd_after(seconds, **stack):
        link = {"rate": "100 Mbit/s", "delay": "50 ms"}  # 100 ms round trip
        stack = {"initial_window": 2, "delayed_ack": False, **stack}
        flows = [{"congestion_control": "reno", "stack": stack}]
        scenario = {"duration": "2 s", "network": {"bottleneck": link}, "flows": flows, "record": {"trace": "all"}}
        acks = run(Scenario.from_dict(scenario)).acks
        return acks.filter(acks["t_s"] < seconds)["cwnd"].to_list()[-1]

    # handshake 0.1 s, then 2, 4, 8, 16 in slow start; from 4 on, one segment per round trip
    assert [cwnd_after(t) for t in (0.25, 0.35, 0.45)] == [4, 8, 16]
    assert [cwnd_after(t, initial_ssthresh=4) for t in (0.25, 0.35, 0.45, 0.55)] == [4, 5, 6, 7]
