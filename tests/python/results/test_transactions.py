"""Tests for request/response traffic: the scenario's keys, and the tables of a run."""

from __future__ import annotations

from typing import Any

import pytest

from ackclock import Scenario, run
from ackclock.errors import InputError, ScenarioError
from ackclock.transactions import busy_share, completion, loss_rate, offered_load, pages, queued_share


def scenario(**workload: Any) -> Scenario:
    """Return a scenario with transactions over 20 Mbit/s and 300 ms."""
    return Scenario.from_dict(
        {
            "duration": "30 s",
            "network": {
                "bottleneck": {"rate": "20 Mbit/s", "delay": "150 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
            },
            "flows": [
                {
                    "count": 2,
                    "workload": {
                        "kind": "transactions",
                        "bytes": "14480 bytes",
                        "arrivals": {"kind": "poisson", "load": 0.3},
                        **workload,
                    },
                }
            ],
        }
    )


def test_rows_and_summary() -> None:
    mix = [{"segments": 3, "share": 0.5}, {"segments": 10, "share": "50 %"}]
    result = run(scenario(initial_window_mix=mix))
    rows, summary = result.transactions, result.transaction_summary
    assert summary["initial_window"].to_list() == [3, 10]
    assert rows.height == summary["started"].sum() > 100
    assert result.transaction_times["count"].sum() == summary["completed"].sum()
    median = {iw: rows.filter(rows["initial_window"] == iw)["total_s"].median() for iw in (3, 10)}
    assert median[3] == pytest.approx(1.2, abs=0.03)
    assert median[10] == pytest.approx(0.61, abs=0.03)
    assert rows.filter(~rows["done"])["total_s"].null_count() == summary["incomplete"].sum()


def test_what_is_written_is_read_again() -> None:
    asked = scenario(
        bytes={"kind": "lognormal", "median": "10 KB", "sigma": 1.0},
        think={"kind": "exponential", "mean": "2 s"},
        requests=3,
        batch=2,
        mix_by="batch",
        close="client",
        max_open=50,
        count=100,
        arrivals={"kind": "at", "times": ["0 s", "1 s"]},
    )
    assert Scenario.from_dict(asked.to_dict()).to_engine_json() == asked.to_engine_json()
    assert run(asked).transactions.height == 2 * 2 * 2 * 3


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({"bytes": "0 bytes"}, "flows.0.workload.bytes"),
        ({"batch": 0}, "flows.0.workload.batch"),
        ({"initial_window_mix": [{"segments": 3, "share": 0.5}]}, "shares that sum to 0.5"),
        ({"initial_window_mix": [{"segments": 0, "share": 1.0}]}, "segments"),
        ({"arrivals": {"kind": "poisson"}}, "neither rate nor load"),
        ({"arrivals": {"kind": "poisson", "rate": 1.0, "load": 0.5}}, "both rate and load"),
        ({"arrivals": {"kind": "at", "times": ["2 s", "1 s"]}}, "times.1"),
        ({"requests": 2, "objects": 3}, "objects or requests"),
        ({"arrivals": {"kind": "periodic", "interval": "0 s"}}, "interval"),
    ],
)
def test_refused(workload: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(**workload)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_load_that_diverges_asks_for_a_limit() -> None:
    with pytest.raises(ScenarioError, match=r"flows\.0\.workload\.max_open: .*load of 1\.2.*diverges"):
        run(scenario(arrivals={"kind": "poisson", "load": 1.2}))
    summary = run(scenario(arrivals={"kind": "poisson", "load": 1.2}, max_open=40)).transaction_summary
    assert summary["max_open"].max() == 40
    assert summary["refused"].sum() > 0


def test_figures_of_links_tell_handshakes_from_data() -> None:
    result = run(scenario(count=100))
    forward, backward = result.links.to_dicts()
    assert forward["arrivals_data"] == 1000
    assert forward["arrivals_syn_fin"] == 200  # SYN-ACK and FIN of each
    assert backward["arrivals_data"] == 100
    assert 0 < forward["mean_wait_s"] < forward["max_wait_s"] < 0.3
    late = run(scenario(count=100).set("record.warm_up", "5 s"))
    assert late.digest == result.digest
    assert late.links["arrivals"][0] < forward["arrivals"]
    late_rows = late.transactions.filter(late.transactions["arrival_s"] >= 5)
    assert late.transaction_summary["started"].sum() == late_rows.height < late.transactions.height == 100


def test_numbers_from_tables() -> None:
    asked = scenario(batch=3, objects=6, count=150).set("record.warm_up", "5 s")
    result = run(asked)
    exact = completion(result.transactions, start_s=5.0).row(0, named=True)
    summary = result.transaction_summary.row(0, named=True)
    assert exact["started"] == summary["started"]
    assert exact["completed"] == summary["completed"]
    assert exact["mean_s"] == pytest.approx(summary["mean_s"])
    for ours, histogram in (("p50_s", "p50_s"), ("p99.9_s", "p999_s")):
        assert exact[ours] == pytest.approx(summary[histogram], rel=0.004)
    per_page = pages(result.transactions)
    assert per_page["objects"].to_list() == [6] * 50
    assert (per_page["total_s"] > 0.6).all()
    whole = scenario(batch=3, objects=6, count=150)
    all_of_it = run(whole)
    offered = offered_load(all_of_it.transaction_summary, whole)
    assert offered == pytest.approx(busy_share(all_of_it.links, whole), rel=0.05)  # plus handshakes and ACKs
    assert loss_rate(result.links) == 0.0
    with pytest.raises(InputError, match=r"bottleneck\.forward"):
        loss_rate(result.links, link="bottleneck.forwards")


def test_loss_rates_with_and_without_handshakes() -> None:
    asked = (
        scenario(arrivals={"kind": "poisson", "load": 0.95}, batch=5, initial_window_mix=[{"segments": 10, "share": 1}])
        .set("network.bottleneck.rate", "64 kbit/s")
        .set("network.bottleneck.queue.limit", "40 packets")
        .set("duration", "600 s")
    )
    result = run(asked)
    row = result.links.row(0, named=True)
    drops = run(asked.set("record.drops", True)).drops
    forward = drops.filter((drops["link"] == 0) & (drops["reason"] == "queue"))
    assert row["dropped_queue"] == forward.height > 50
    assert row["dropped_queue_data"] == (forward["seg_no"] > 0).sum()
    every, data, rest = (loss_rate(result.links, counting=c) for c in ("all", "data", "no-syn-fin"))
    assert 0.05 < every < 0.5
    assert data != every != rest
    assert 0.5 < queued_share(result.links, asked) <= 1
    assert completion(result.transactions)["incomplete"][0] == result.transaction_summary["incomplete"][0]


def test_a_load_is_a_share_of_a_traces_mean_rate(tmp_path):
    trace = tmp_path / "link.trace"
    trace.write_text("".join(f"{ms}\n" for ms in range(2, 2001, 2)), encoding="utf-8")  # 1500 bytes in 2 ms: 6 Mbit/s
    workload = {
        "kind": "transactions",
        "bytes": "14480 bytes",
        "arrivals": {"kind": "poisson", "load": 0.5},
        "max_open": 1000,
    }
    links = [
        {"capacity": {"kind": "mahimahi", "file": str(trace)}, "delay": "5 ms"},
        {"rate": "6 Mbit/s", "delay": "5 ms"},
    ]
    counts = [
        len(
            run(
                Scenario.from_dict(
                    {"duration": "30 s", "network": {"bottleneck": link}, "flows": [{"workload": workload}]}
                )
            ).transactions
        )
        for link in links
    ]
    assert counts[0] == counts[1] > 500
