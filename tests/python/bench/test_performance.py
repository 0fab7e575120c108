"""Tests that table `performance` after the warm-up agrees with the other tables, for flows, groups and the run."""

from __future__ import annotations

import polars as pl
import pytest

from ackclock import Run, Scenario, run
from ackclock.metrics import goodput_bps

LINK = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}


def made(**changes) -> Run:
    values = {
        "duration": "30 s",
        "network": {"bottleneck": LINK},
        "flows": [
            {"name": "old", "congestion_control": "reno", "count": 2},
            {"congestion_control": "cubic", "start": "2 s"},
        ],
        "record": {"warm_up": "10 s", "goodput_interval": "1 s", "drops": True},
    }
    values |= changes
    values["record"] = {"performance": True} | values["record"]
    return run(Scenario.from_dict(values))


def rows(result: Run, of: str) -> pl.DataFrame:
    return result.performance.filter(pl.col("of") == of)


def test_flows_agree_with_the_other_tables():
    result = made()
    flows = rows(result, "flow")
    assert flows["name"].to_list() == ["old", "old", "cubic"]
    expected = goodput_bps(result.goodput, start_s=10.0)["goodput_bps"]
    assert flows["goodput_bps"].to_list() == pytest.approx(expected.to_list(), rel=1e-9)
    assert flows["share"].to_list() == pytest.approx((expected / expected.sum()).to_list(), rel=1e-9)
    dropped = result.drops.filter(pl.col("forward") & (pl.col("t_s") >= 10.0))
    by_flow = [dropped.filter(pl.col("flow") == f).height for f in range(3)]
    assert flows["dropped_packets"].to_list() == by_flow
    assert sum(by_flow) > 0
    assert (flows["retransmissions"] < result.flows["retransmissions"]).all()
    assert (flows["p50_rtt_s"] <= flows["p95_rtt_s"]).all()
    assert (flows["p95_rtt_s"] <= flows["p99_rtt_s"]).all()


def test_groups_and_the_run_are_their_flows_together():
    result = made()
    flows, groups, (whole,) = rows(result, "flow"), rows(result, "group"), rows(result, "run").to_dicts()
    assert groups["flows"].to_list() == [2, 1]
    assert groups["name"].to_list() == ["old", "cubic"]
    for column in ("goodput_bps", "sent_packets", "retransmissions", "dropped_packets", "share"):
        assert groups[column][0] == pytest.approx(flows[column][:2].sum())
        assert whole[column] == pytest.approx(flows[column].sum())
    assert flows["p95_delay_s"].min() <= whole["p95_delay_s"] <= flows["p95_delay_s"].max()


def test_without_a_warm_up_the_means_are_those_of_the_flows():
    result = made(record={})
    assert rows(result, "flow")["mean_rtt_s"].to_list() == pytest.approx(result.flows["mean_rtt_s"].to_list(), rel=1e-9)
    assert rows(result, "flow")["sent_packets"].to_list() == result.flows["sent_packets"].to_list()


def test_delays_of_datagrams_agree_with_what_their_receiver_notes():
    voice = {"workload": {"kind": "constant-rate", "rate": "2 Mbit/s", "payload": "1000 bytes"}}
    result = made(flows=[voice, {"congestion_control": "cubic"}], record={})
    told, measured = result.datagrams.to_dicts()[0], rows(result, "flow").to_dicts()[0]
    assert measured["mean_delay_s"] == pytest.approx(told["mean_delay_s"], rel=1e-9)
    for quantile in ("p50_delay_s", "p95_delay_s", "p99_delay_s"):  # a receiver's bins are 1/32 wide, these 1/128
        assert measured[quantile] == pytest.approx(told[quantile], rel=0.03)
    assert measured["p95_rtt_s"] is None


def test_time_to_share():
    """The second flow starts on a full path. The first one has its fair share from the first interval that both are active in."""
    result = made(flows=[{"congestion_control": "reno"}, {"congestion_control": "reno", "start": "5 s"}], record={})
    first, second = rows(result, "flow")["time_to_share_s"].to_list()
    window = 30 / 32
    assert first == pytest.approx(5 + window, abs=2 * window)  # no other flow is active earlier
    assert second > 2 * window
    goodput = made(
        flows=[{"congestion_control": "reno"}, {"congestion_control": "reno", "start": "5 s"}],
        record={"goodput_interval": "1 s"},
    ).goodput
    late = goodput.filter((pl.col("flow") == 1) & (pl.col("t_s") <= 5 + second - 2))
    assert (late["goodput_bps"] < 0.5 * 9.6e6).all()
    alone = made(flows=[{"congestion_control": "reno"}], record={})
    assert rows(alone, "flow")["time_to_share_s"].to_list() == [None]


def test_it_changes_nothing_and_can_be_left_out():
    measured, plain = made(record={}), made(record={"performance": False})
    assert measured.digest == plain.digest
    assert plain.performance.height == 0
    assert plain.scenario.measured() == plain.scenario
    many = plain.scenario.set_all({"flows.0.count": 101, "record": {}})
    assert many.measured() == many
    few = many.set("flows.0.count", 3)
    assert few.measured().record.performance is True


def test_a_threshold_that_was_never_set_is_null():
    link = {**LINK, "queue": {"kind": "drop-tail"}}
    result = made(
        network={"bottleneck": link},
        flows=[{"congestion_control": "reno", "workload": {"kind": "transfer", "bytes": "100 KB"}}],
        record={"trace": "all", "sample_interval": "10 ms", "controller": "all"},
    )
    for table in (result.acks, result.samples, result.controllers):
        assert table["ssthresh"].dtype == pl.UInt32
        assert table["ssthresh"].null_count() == table.height > 0
    assert result.acks["ca_state"].dtype == result.samples["ca_state"].dtype == pl.String
    after_loss = made(record={"sample_interval": "1 s"}).samples["ssthresh"]
    assert after_loss.drop_nulls().max() < 1000
    assert after_loss.null_count() < len(after_loss)


def test_thresholds_survive_being_written(tmp_path):
    result = made(record={"sample_interval": "100 ms"})
    again = Run.read(result.write(tmp_path / "run"))
    assert again.samples.equals(result.samples)
    assert again.performance.equals(result.performance)
    assert again.rows("samples") == result.rows("samples")


def test_each_flow_draws_its_start():
    start = {"kind": "uniform", "low": "0 s", "high": "2 s"}
    flows = [{"count": 200, "start": start, "workload": {"kind": "transfer", "bytes": "1 KB"}}]

    def starts(seed: int, **more) -> list[float]:
        scenario = {"duration": "10 s", "network": {"bottleneck": LINK}, "flows": [flows[0] | more]}
        return run(Scenario.from_dict(scenario), seed=seed).flows["start_s"].to_list()

    first = starts(1)
    assert starts(1) == first != starts(2)
    assert 0.9 < sum(first) / 200 < 1.1
    assert min(first) < 0.1
    assert max(first) > 1.9
    staggered = starts(1, stagger="10 ms")
    assert staggered == pytest.approx([t + 0.01 * k for k, t in enumerate(first)])
