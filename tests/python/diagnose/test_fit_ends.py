"""Tests for models whose transfer is not complete when their run ends, and for round trips with one meaning."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ackclock
from ackclock.cli import main
from ackclock.diagnose import Fit, diagnose, what_if
from ackclock.diagnose._change import NOW
from ackclock.diagnose._fit import _measured, _measures, compared
from ackclock.diagnose._page import outcome_cells, page, quantity_rows
from ackclock.errors import InputError
from ackclock.formats import iperf3

STUCK = ackclock.Scenario.from_dict(
    {
        "duration": "20 s",
        "network": {
            "bottleneck": {
                "rate": "10 Mbit/s",
                "delay": "20 ms",
                "loss": {
                    "kind": "scripted",
                    "drops": [{"first": 400, "last": 400, "transmission": n} for n in range(40)],
                },
            }
        },
        "flows": [{"congestion_control": "reno", "workload": {"kind": "transfer", "bytes": "1 MB"}}],
    }
)
"""One segment is lost again and again: the last packet before the end leaves long before it."""

OVERTAKEN: dict[str, Any] = {
    "duration": "20 s",
    "network": {
        "bottleneck": {
            "rate": "10 Mbit/s",
            "delay": "50 ms",
            "queue": {"kind": "drop-tail", "limit": "200 packets"},
            "reorder": {"probability": 0.1, "extra_delay": "60 ms"},
        }
    },
    "flows": [{"congestion_control": "cubic", "workload": {"kind": "transfer", "bytes": "5 MB"}}],
}


def captured(folder: Path, scenario: ackclock.Scenario, at: str = "sender") -> Path:
    path = folder / "transfer.pcapng"
    ackclock.run(scenario, pcap=path, pcap_at=at, snaplen=96)  # type: ignore[arg-type]
    return path


def whole(folder: Path) -> Path:
    return captured(folder, STUCK.set("network.bottleneck.loss", {"kind": "none"}))


def made(path: Path, scenarios: list[ackclock.Scenario]) -> Fit:
    return compared(scenarios[0], _measures(diagnose(path)), [_measured(one, 1) for one in scenarios], bound=False)


def test_a_models_run_is_no_transfer_time_if_it_ends_first(tmp_path: Path) -> None:
    """Regression: the time of the model's last packet was printed as its transfer time, and counted as faster or slower."""
    path = whole(tmp_path)
    fit = made(path, [STUCK] * 3)
    transfer = fit.quantities[0]
    flow = ackclock.run(STUCK).rows("flows")[0]
    assert flow["completion_s"] is None
    assert transfer.model == transfer.least == flow["stop_s"] - flow["start_s"] == 20.0
    assert (transfer.not_complete, transfer.runs, transfer.error) == (3, 3, None)
    assert quantity_rows(fit)[0][2:] == ("≥ 20.000 s", "≥ 20.000 s", "≥ 20.000 s", "–")
    assert fit.quantities[1].model == pytest.approx(8 * flow["bytes_acked"] / 20)
    assert fit.wrong == "not complete after 20.000 s in 3 of 3 runs; allowed: in none"
    assert fit.summary()["error"] is None
    json.dumps(fit.summary(), allow_nan=False)
    with pytest.raises(InputError, match=r"not complete after 20\.000 s"):
        what_if(fit)
    assert "not complete after 20.000 s, in 3 of 3 runs" in str(page(diagnose(path), fit=fit))


def test_one_run_of_several_that_does_not_complete_is_a_bound_of_the_most(tmp_path: Path) -> None:
    path = whole(tmp_path)
    other = STUCK.set("network.bottleneck.loss", {"kind": "none"})
    fit = made(path, [other, STUCK, other])
    assert fit.quantities[0].bounds == (False, False, True)
    model, least, most, error = quantity_rows(fit)[0][2:]
    assert not model.startswith("≥")
    assert not least.startswith("≥")
    assert most == "≥ 20.000 s"
    assert error != "–"
    assert fit.error < 0.01
    assert not fit.holds
    assert made(path, [other] * 2).holds


def test_a_change_whose_transfer_is_not_complete_says_after_how_long(tmp_path: Path) -> None:
    """A transfer that hardly ends within the model's run does not with a longer round trip, and no change is drawn from it."""
    path = whole(tmp_path)
    other = STUCK.set_all({"network.bottleneck.loss": {"kind": "none"}, "duration": "1040 ms"})
    fit = made(path, [other])
    assert fit.holds
    outcomes = {one.name: one for one in what_if(fit, seeds=1)}
    late = outcomes["round trip 20 ms longer"]
    assert (late.seconds, late.change, late.ran_s) == (None, None, 1.04)
    assert not late.tells
    assert outcome_cells(late)[0] == "not complete after 1.040 s"
    assert outcomes[NOW].ran_s is None


@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_round_trips_mean_the_same_all_over_a_document(
    at: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: with packets that overtake others the table of the model had another mean and maximum than the
    connection's row in the same document.
    """
    path = captured(tmp_path, ackclock.Scenario.from_dict(OVERTAKEN), at)
    assert main(["diagnose", str(path), "--scenario", str(tmp_path / "model.toml"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    row = told["connection"]
    fit = {one["name"]: one["capture"] for one in told["fit"]["quantities"]}
    assert fit["mean RTT"] == row["rtt_mean_s"]
    assert fit["greatest RTT"] == row["rtt_max_s"]
    assert told["path"]["queued_rtt_s"] <= row["rtt_max_s"]
    truth = ackclock.run(ackclock.Scenario.from_dict(OVERTAKEN)).rows("flows")[0]["mean_rtt_s"]
    assert row["rtt_mean_s"] == pytest.approx(truth, rel=0.05)
    assert main(["diagnose", str(path)]) == 0
    shown = capsys.readouterr().out
    assert f"{1e3 * row['rtt_mean_s']:.2f} ms" in shown
    assert f"{1e3 * row['rtt_max_s']:.2f} ms" in shown


def test_the_mean_of_an_iperf3_result_lies_between_its_least_and_its_most() -> None:
    """Regression: the mean was of all samples, the extremes of the smoothed round trips at the ends of intervals."""
    values = {**OVERTAKEN, "record": {"sample_interval": "100 ms", "goodput_interval": "100 ms"}}
    told = iperf3.result(ackclock.run(ackclock.Scenario.from_dict(values)), 0, mss=1448)
    sender = told["end"]["streams"][0]["sender"]
    rtts = [one["streams"][0]["rtt"] for one in told["intervals"] if "rtt" in one["streams"][0]]
    assert sender["mean_rtt"] == sum(rtts) // len(rtts)
    assert sender["min_rtt"] == min(rtts) <= sender["mean_rtt"] <= sender["max_rtt"] == max(rtts)


def test_sent_again_has_one_set_of_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The row of the table counts what the columns of that name count: also what was sent again for nothing."""
    path = captured(tmp_path, ackclock.Scenario.from_dict(OVERTAKEN))
    found = diagnose(path)
    assert found.path is not None
    assert found.connection["retransmitted"] == found.connection["spurious"] > 0
    counts = found.path.sent_again_full, found.path.sent_again_part_full, found.path.sent_again_empty
    assert sum(counts) == found.connection["retransmitted"]
    assert main(["diagnose", str(path)]) == 0
    shown = " ".join(re.sub("[│|]", " ", capsys.readouterr().out).split())
    assert ", ".join(f"{count:,}" for count in counts) in shown
    held = sum(cause.seconds for cause in found.causes)
    assert f"of the {held:.3f} s of the transfer, without {1e3 * found.idle_s:.2f} ms in which it was idle" in shown
