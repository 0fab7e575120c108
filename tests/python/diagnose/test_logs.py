"""Tests for the fit of a path to logs of iperf3 and ping: paths that are known, because we made the logs, and logs that are not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ackclock
from ackclock.cli import main
from ackclock.diagnose import FittedPath, fit_logs
from ackclock.errors import InputError
from ackclock.formats import iperf3

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"

PATHS: dict[str, dict[str, Any]] = {
    "deep": {"limit": "100 packets"},
    "shallow": {"limit": "20 packets"},
    "reno": {"limit": "300 packets", "controller": "reno"},
    "four": {"limit": "100 packets", "count": 4},
}


def ping(ms: float, count: int = 10, begins: float | None = None) -> str:
    def line(n: int) -> str:
        at = "" if begins is None else f"[{begins + n:.6f}] "
        return f"{at}64 bytes from 192.0.2.1: icmp_seq={n} ttl=63 time={ms + 0.1 * (n % 3):.3f} ms\n"

    return "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n" + "".join(line(n) for n in range(1, count + 1))


def told(
    *, rate: str = "20 Mbit/s", delay: str = "25 ms", limit: str = "100 packets", loss: float = 0.0,
    controller: str = "cubic", count: int = 1, seconds: int = 15, stack: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return what iperf3 would print of a transfer over this path."""
    link: dict[str, Any] = {"rate": rate, "delay": delay, "queue": {"kind": "drop-tail", "limit": limit}}
    if loss:
        link["loss"] = {"kind": "bernoulli", "p": loss}
    flow = {"congestion_control": controller, "count": count, "stack": stack or {}}
    record = {"sample_interval": "1 s", "goodput_interval": "1 s"}
    values = {"duration": f"{seconds} s", "network": {"bottleneck": link}, "flows": [flow], "record": record}
    return iperf3.result(ackclock.run(ackclock.Scenario.from_dict(values)), 0, mss=1448)


def fitted(folder: Path, log: dict[str, Any], *pings: str) -> FittedPath:
    files = [folder / "log.json", *(folder / f"ping-{n}.txt" for n in range(len(pings)))]
    for file, text in zip(files, (json.dumps(log), *pings), strict=True):
        file.write_text(text)
    return fit_logs(files)


@pytest.mark.parametrize("name", PATHS)
def test_a_full_path_is_found_again(name: str, tmp_path: Path) -> None:
    made = fitted(tmp_path, told(**PATHS[name]), ping(50.0))
    link = made.scenario.to_dict()["network"]["bottleneck"]
    assert float(link["rate"].split()[0]) == pytest.approx(20e6, rel=0.02)
    assert float(link["delay"].split()[0]) == pytest.approx(25e6, rel=0.01)
    true = int(PATHS[name]["limit"].split()[0])
    assert (
        0.6 * true < int(link["queue"]["limit"].split()[0]) < 1.15 * true
    )  # a bound: seen at the ends of intervals only
    assert made.fit.holds
    assert not made.fit.bound
    assert any("Mbit/s of payload, over" in line for line in made.known)


def test_losses_by_chance_are_told_from_those_of_a_queue(tmp_path: Path) -> None:
    made = fitted(tmp_path, told(loss=0.003, rate="50 Mbit/s"), ping(50.0))
    link = made.scenario.to_dict()["network"]["bottleneck"]
    assert link["loss"]["p"] == pytest.approx(0.003, rel=0.5)
    assert made.fit.bound
    assert any(line.startswith("the rate: at least") for line in made.bounded)
    assert made.fit.holds


def test_a_window_that_holds_the_transfer(tmp_path: Path) -> None:
    made = fitted(
        tmp_path, told(rate="100 Mbit/s", limit="500 packets", stack={"receive_buffer": "200 kB"}), ping(50.0)
    )
    stack = made.scenario.to_dict()["flows"][0]["stack"]
    assert float(stack["receive_buffer"].split()[0]) == pytest.approx(200e3, rel=0.5)
    assert made.fit.holds
    assert any("receiver's window" in line for line in made.guessed)


def test_without_a_ping_the_round_trip_is_a_bound(tmp_path: Path) -> None:
    made = fitted(tmp_path, told())
    assert any(line.startswith("round trip of the idle path: at most") for line in made.bounded)
    assert not any("round trip" in line for line in made.known)


def test_first_seconds_that_the_totals_leave_out_belong_to_the_transfer(tmp_path: Path) -> None:
    log = told()
    whole = fitted(tmp_path, log, ping(50.0)).fit.quantities
    for one in log["intervals"][:3]:
        for stream in one["streams"]:
            stream["omitted"] = True
    for total in ("sum_sent", "sum_received"):
        for one in log["intervals"][:3]:
            log["end"][total]["bytes"] -= one["streams"][0]["bytes"]
        log["end"][total]["seconds"] -= 3
    log["end"]["sum_sent"]["retransmits"] -= sum(one["streams"][0]["retransmits"] for one in log["intervals"][:3])
    assert fitted(tmp_path, log, ping(50.0)).fit.quantities == whole


def test_pings_beside_the_transfer_are_told(tmp_path: Path) -> None:
    log = told()
    log["start"]["timestamp"]["timesecs"] = 1_700_000_000
    lost = ping(90.0, 12, begins=1_700_000_000.0).replace("icmp_seq=7 ", "icmp_seq=13 ")
    made = fitted(tmp_path, log, ping(50.0), lost)
    assert any(line.startswith("pings during the transfer: median 90") for line in made.known)
    assert any(line.startswith("1 of 23 pings lost") for line in made.known)


def test_a_controller_that_is_not_here_is_said(tmp_path: Path) -> None:
    log = told()
    log["end"]["sender_tcp_congestion"] = "tcp_of_mine"
    made = fitted(tmp_path, log, ping(50.0))
    assert made.scenario.to_dict()["flows"][0]["congestion_control"] == "cubic"
    assert any('cubic in place of "tcp_of_mine"' in line for line in made.guessed)


def test_the_file_says_at_its_head_where_values_come_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "up.json").write_text(json.dumps(told(seconds=8)))
    (tmp_path / "ping.txt").write_text(ping(50.0))
    out = tmp_path / "mine.toml"
    assert (
        main(["import", "path", str(tmp_path / "up.json"), str(tmp_path / "ping.txt"), "--fit", "--out", str(out)]) == 0
    )
    text = out.read_text()
    heads = [line.split(":")[0] for line in text.splitlines() if line.startswith("#")]
    assert {"# known", "# guessed", "# fit"} <= set(heads)
    assert "fit: transfer: measured 8.000 s" in text
    assert ackclock.load(out).flows[0].congestion_control == "cubic"
    assert "fit: transfer: measured" in capsys.readouterr().err


def broken(change: Any) -> str:
    log = told(seconds=3)
    change(log)
    return json.dumps(log)


REFUSED: dict[str, tuple[Any, str]] = {
    "udp": (lambda log: log["start"]["test_start"].update(protocol="UDP"), "one over TCP"),
    "rate": (lambda log: log["start"]["test_start"].update(target_bitrate=10**6), "-b"),
    "both ways": (lambda log: log["start"]["test_start"].update(bidir=1), "one way"),
    "nothing": (lambda log: log.update(intervals=[]), "carried nothing"),
    "no end": (lambda log: log.pop("end"), "no result of iperf3"),
    "streams": (lambda log: log["start"]["test_start"].update(num_streams=10**9), "num_streams"),
    "round trip": (lambda log: log["intervals"][0]["streams"][0].update(rtt=-5), "rtt"),
    "bytes": (lambda log: log["intervals"][0]["streams"][0].update(bytes="many"), "bytes"),
    "segment": (lambda log: log["start"].update(tcp_mss_default=10**7), "tcp_mss_default"),
    "error": (lambda log: log.update(error="unable to connect"), "unable to connect"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_transfer_is_refused_in_a_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, said = REFUSED[name]
    file = tmp_path / "log.json"
    file.write_text(broken(change))
    assert main(["import", "path", str(file), "--fit"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
    assert "found" in err
    assert "allowed" in err


def test_files_that_cannot_be_fitted_together(tmp_path: Path) -> None:
    text = json.dumps(told(seconds=3))
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(text)
    (tmp_path / "ping.txt").write_text(ping(50.0))
    (tmp_path / "bw.txt").write_text("0\n1\n2\n")
    with pytest.raises(InputError, match="second result of iperf3"):
        fit_logs([tmp_path / "a.json", tmp_path / "b.json"])
    with pytest.raises(InputError, match="no result of iperf3"):
        fit_logs([tmp_path / "ping.txt"])
    with pytest.raises(InputError, match="form mahimahi"):
        fit_logs([tmp_path / "a.json", tmp_path / "bw.txt"])
    log = json.loads(text)
    for one in log["intervals"]:
        for stream in one["streams"]:
            stream.pop("rtt", None)
    for stream in log["end"]["streams"]:
        stream["sender"].pop("min_rtt", None)
    (tmp_path / "a.json").write_text(json.dumps(log))
    with pytest.raises(InputError, match="found no round trip"):
        fit_logs([tmp_path / "a.json"])


@pytest.mark.parametrize("options", [["--upward"], ["--every", "1s"]])
def test_options_of_a_replay_do_not_go_with_a_fit(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "path", "none.json", "--fit", *options]) == 2
    assert f"{options[0]}: found it with --fit" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["path", "fit"])
def test_the_words_of_a_fit_lead_to_the_command(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "x"]) == 2
    assert "--fit" in capsys.readouterr().err


def test_the_log_of_a_real_transfer() -> None:
    made = fit_logs([SAMPLES / "iperf3-netem.json"])
    assert made.fit.quantities[0].name == "transfer"
    assert made.fit.holds
