"""Tests for the causes that limit flows: they add up to the flows' lifetimes in every kind of run, and agree with the kernel's stopwatches."""

from __future__ import annotations

import polars as pl
import pytest

import ackclock
from ackclock._results.limits import CAUSES, COLUMNS, held, sentence
from ackclock.cli import main
from ackclock.formats import ss
from ackclock.formats.write import write

WINDOW = {
    "duration": "8 s",
    "network": {
        "bottleneck": {"rate": "100 Mbit/s", "delay": "35 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    },
    "flows": [
        {
            "congestion_control": "cubic",
            "workload": {"kind": "transfer", "bytes": "20 MB"},
            "stack": {"receive_buffer": "512 KiB"},
        }
    ],
}

SHORT = ("scripted-loss", "throttled", "codel", "paced", "bursts", "fetch-lossy", "radio-link", "host-queue")


def told(scenario: ackclock.Scenario, interval: str = "37 ms") -> ackclock.Run:
    return ackclock.run(scenario.set("record.limits_interval", interval))


# 0.04 s before a FIN's timer (of 686 s in fetch-lossy) count as recovery in the flow's row, but as timeout and idle in
# the intervals
FIN = pytest.mark.xfail(
    reason="a wait that the timer of a FIN ends has another cause in the table of intervals", strict=True
)


@pytest.mark.parametrize("name", [pytest.param(n, marks=FIN) if n == "fetch-lossy" else n for n in SHORT])
def test_causes_add_up_to_the_life_of_a_flow_and_change_nothing(name):
    scenario = ackclock.load(name)
    if scenario.flows[0].workload.kind == "bulk":
        scenario = scenario.set("duration", "4 s")
    run = told(scenario)
    assert run.digest == ackclock.run(scenario).digest
    for row in run.rows("flows"):
        found = held(row)
        if found is None:
            continue
        assert sum(found.values()) == pytest.approx(row["stop_s"] - row["start_s"], abs=2e-9)
        assert row["rwnd_limited_s"] + row["sndbuf_limited_s"] <= row["busy_s"] + 1e-9
        own = run.limits.filter(pl.col("flow") == row["flow"])
        for name_, column in COLUMNS.items():
            assert own[column].sum() == pytest.approx(found[name_], abs=1e-8), column
        assert own.select(pl.sum_horizontal(COLUMNS.values())).to_series().max() <= 0.037 + 1e-9


def test_nothing_is_told_unless_somebody_asks():
    run = ackclock.run(ackclock.load("scripted-loss"))
    assert held(run.rows("flows")[0]) is None
    assert run.rows("flows")[0]["busy_s"] is None
    assert not run.limits.height


def test_the_receivers_window_by_the_trace():
    """At each ACK the oracle compares the segments in flight with the window limit."""
    run = told(ackclock.Scenario.from_dict(WINDOW).set("record.trace", "flow"))
    row = run.rows("flows")[0]
    events = (
        run.acks.filter(~pl.col("responder"))
        .select("t_s", "event", "seq", "len", "rwnd", "pipe", "cwnd")
        .rows(named=True)
    )
    limited, ticks, una, nxt = 0.0, 0.0, 1, 1
    total = 20_000_000
    for event, then in zip(events, [*events[1:], None], strict=True):
        if event["event"] == "ack":
            una = event["seq"]
        else:
            nxt = max(nxt, event["seq"] + event["len"])
        if then is None or then["t_s"] == event["t_s"]:
            continue
        out = (nxt - una + 1447) // 1448
        if nxt < total and una + event["rwnd"] - nxt < 1448 and out < event["cwnd"]:
            limited += then["t_s"] - event["t_s"]
            ticks += (int(then["t_s"] * 1000 + 1e-6) - int(event["t_s"] * 1000 + 1e-6)) / 1000
    assert row["limit_rwnd_s"] == pytest.approx(limited, rel=1e-6)
    assert row["rwnd_limited_s"] == pytest.approx(ticks, abs=1e-9)  # the kernel's clock has 1 ms ticks
    assert row["busy_s"] == pytest.approx(
        int(row["stop_s"] * 1000) / 1000 - int(row["established_s"] * 1000) / 1000, abs=1e-9
    )


def test_a_wait_for_the_timer_lies_in_the_intervals_in_which_it_was():
    """A link is silent for a while, and the sender waits for its retransmission timer."""
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "3 s",
            "network": {
                "bottleneck": {
                    "rate": "10 Mbit/s",
                    "delay": "20 ms",
                    "outage": {"at": "500 ms", "lasts": "700 ms", "arrivals": "lost"},
                }
            },
            "flows": [{"workload": {"kind": "bulk"}}],
        }
    )
    run = told(scenario, "20 ms")
    row = run.rows("flows")[0]
    assert row["rtos"] >= 1
    assert row["limit_timeout_s"] > 0.15
    waits = run.limits.filter(pl.col("limit_timeout_s") > 0)
    assert waits["t_s"].min() < waits["t_s"].max() - 0.1
    assert run.limits.select(pl.sum_horizontal(COLUMNS.values())).to_series().to_list() == pytest.approx(
        [0.02] * run.limits.height, abs=1e-9
    )


def test_the_terminal_says_it(tmp_path, capsys):
    path = tmp_path / "window.toml"
    path.write_text(ackclock.Scenario.from_dict(WINDOW).to_toml(), encoding="utf-8")
    assert main(["run", str(path)]) == 0
    assert "82 % of the time the receiver's window was the limit, and 14 % the congestion window" in " ".join(
        capsys.readouterr().out.split()
    )


def test_ss_has_the_stop_watches_and_reads_them_again(tmp_path):
    scenario = ackclock.Scenario.from_dict(WINDOW).set("record.sample_interval", "500 ms")
    run = told(scenario)
    file = write(run, "ss", tmp_path / "flow.txt")
    text = file.read_text(encoding="utf-8")
    assert "rwnd_limited:" in text
    assert "snd_wnd:" in text
    read = ss.read(text, name="flow").samples
    own = run.samples
    assert read["rwnd_limited_s"].to_list() == pytest.approx(own["rwnd_limited_s"].to_list(), abs=1e-3)
    assert read["busy_s"].to_list() == pytest.approx(own["busy_s"].to_list(), abs=1e-3)
    assert read["rwnd"].to_list() == own["rwnd"].to_list()


def test_a_line_of_the_kernels_own():
    line = (
        "1.0\nESTAB 0 0 10.0.0.1:5001 10.1.0.1:5201\n\t cubic cwnd:10 bytes_sent:90000 bytes_acked:90000 "
        "busy:2100ms rwnd_limited:1400ms(66.7%) sndbuf_limited:120ms(5.7%) snd_wnd:65536\n"
    )
    row = ss.read(line, name="x").samples.row(0, named=True)
    assert (row["busy_s"], row["rwnd_limited_s"], row["sndbuf_limited_s"], row["rwnd"]) == pytest.approx(
        (2.1, 1.4, 0.12, 65536.0)
    )


def test_sentences():
    assert sentence(dict.fromkeys(CAUSES, 0.0)) == ""
    assert (
        sentence({"application": 9.0, "cwnd": 1.0, "idle": 0.0})
        == "90 % of the time the application was the limit, and 10 % the congestion window"
    )
