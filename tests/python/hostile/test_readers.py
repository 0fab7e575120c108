"""Tests for readers of foreign files: cost proportional to file length; pipes, non-numbers and wrong kinds of tables are refused."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from pathlib import Path

import polars as pl
import pytest

from ackclock import formats
from ackclock.cli import main
from ackclock.errors import InputError

SS = "1.0\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic bytes_sent:99999 {}\n2.0\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic bytes_sent:99999 cwnd:5\n"
SCENARIO = 'duration = "1 s"\nnetwork = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms" } }\n[[flows]]\n[record]\nsample_interval = "100 ms"\n'


def iperf3(**changed: object) -> str:
    stream = {"socket": 5, "start": 0, "end": 1, "bits_per_second": 1e6, "snd_cwnd": 14480, "rtt": 1000, **changed}
    return json.dumps({"start": {}, "intervals": [{"streams": [stream]}], "end": {}})


def qlog(events: list[dict[str, object]]) -> str:
    return json.dumps({"traces": [{"events": events}]})


def metrics(**data: object) -> str:
    return qlog([{"time": 0, "name": "recovery:metrics_updated", "data": {"congestion_window": 12000, **data}}])


NONSENSE = {
    "ss, nan": (SS.format("cwnd:nan"), "found nan as cwnd"),
    "ss, 1e999": (SS.format("cwnd:1e999"), "found inf as cwnd"),
    "ss, below zero": (SS.format("cwnd:-1"), "found -1.0 as cwnd"),
    "ss, absurd": (SS.format("cwnd:1" + "0" * 23), "as cwnd; allowed: a number from 0 to"),
    "ss, digits": (SS.format("cwnd:1" + "0" * 4000), "as cwnd"),
    "ss, rtt": (SS.format("cwnd:1 rtt:inf/2"), "found inf as srtt_s"),
    "ss, time": (SS.replace("1.0", "9" * 400).format("cwnd:1"), "as t_s"),
    "ss, a long line": ("x" * 70_000, "found 70,000 characters; allowed: at most 65,536"),
    "iperf3, NaN": (iperf3(bits_per_second=float("nan")), "found NaN, which is no number"),
    "iperf3, Infinity": (iperf3(rtt=float("inf")), "found Infinity, which is no number"),
    "iperf3, 1e999": (iperf3().replace("1000000.0", "1e999"), "found inf as goodput_bps"),
    "iperf3, digits": (iperf3().replace("14480", "1" * 4000), "cannot be read"),
    "iperf3, many digits": (iperf3().replace("14480", "1" * 5000), "cannot be read"),
    "iperf3, below zero": (iperf3(bits_per_second=-1), "found -1.0 as goodput_bps"),
    "iperf3, ends before it began": (iperf3(start=2), "found an interval from 2 to 1"),
    "iperf3, no number": (iperf3(end="nan"), "an interval from 0 to"),
    "qlog, NaN": (metrics(smoothed_rtt=float("nan")), "found NaN, which is no number"),
    "qlog, 1e999": (metrics().replace("12000", "1e999"), "found inf as cwnd"),
    "qlog, below zero": (metrics(bytes_in_flight=-1200), "found -1.0 as in_flight"),
    "qlog, no size": (
        qlog([{"time": 0, "name": "parameters_set", "data": {"max_datagram_size": -1}}, *json.loads(metrics())["traces"][0]["events"]]),
        "as cwnd",
    ),
    "flows without end": (
        "1.0\n" + "".join(f"ESTAB 0 0 10.0.0.1:{i} 10.0.0.2:2\n\t cubic bytes_sent:99999 cwnd:1\n" for i in range(1001)),
        "found more than 1,000 flows",
    ),
}  # fmt: skip


@pytest.mark.promise("P10")
@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused(name: str, tmp_path: Path) -> None:
    text, said = NONSENSE[name]
    (tmp_path / "x").write_text(text)
    with pytest.raises(InputError) as caught:
        formats.read(tmp_path / "x")
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_names_are_short_and_printable(tmp_path: Path) -> None:
    text = json.loads(metrics())
    text["traces"][0]["title"] = "\x1b[31m" + "x" * 10_000
    (tmp_path / "x").write_text(json.dumps(text))
    (flow,) = formats.read(tmp_path / "x").flows
    assert flow.isprintable()
    assert len(flow) == 60


def acks(count: int) -> str:
    """Return packets that are never acknowledged, and ACKs with the widest possible ranges."""
    events: list[dict[str, object]] = [
        {"time": 0, "name": "recovery:metrics_updated", "data": {"congestion_window": 1}}
    ]
    for i in range(count):
        events.append({"time": i, "name": "packet_sent", "data": {"header": {"packet_number": 10**12 + i}}})
        frame = {"frame_type": "ack", "acked_ranges": [[0, 10**11]]}
        events.append({"time": i, "name": "packet_received", "data": {"frames": [frame]}})
    return qlog(events)


LONG = {
    "ss, one word": lambda n: ("x" * 60_000 + "\n") * (n // 60_000),
    "ss, colons": lambda n: ("x:" * 30_000 + "\n") * (n // 60_000),
    "ss, keys without values": lambda n: SS.format(("a" * 60_000) + " cwnd:1") * (n // 60_000),
    "ss, blanks": lambda n: ("#" + " " * 60_000 + "x\n") * (n // 60_000),
    "ss, digits": lambda n: ("1" * 60_000 + "x\n") * (n // 60_000),
    "brackets": lambda n: "{" + "[" * n,
    "JSON-SEQ, nothing": lambda n: "\x1e" * n,
    "qlog, wide ranges": lambda n: acks(n // 200),
}


@pytest.mark.promise("P10")
@pytest.mark.parametrize("name", LONG)
def test_time_grows_with_the_length(name: str, tmp_path: Path) -> None:
    """Ten times the text takes about ten times as long, not a hundred times, measured in CPU time because the machine may be busy."""

    def cpu_s(length: int) -> float:
        text = LONG[name](length)
        started = time.process_time()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ackclock.formats.measured.LARGEST", 2**40)
            with contextlib.suppress(InputError):
                formats.measured.parse(text, tmp_path / "x")
        return time.process_time() - started

    cpu_s(120_000)  # imports
    small = max(cpu_s(240_000), 0.002)
    most = 40 * small + 0.1
    assert cpu_s(2_400_000) < most or cpu_s(2_400_000) < most, "twice: once memory may have been cleaned up meanwhile"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "x.toml").write_text(SCENARIO)
    assert main(["run", str(folder / "x.toml"), "--out", str(folder / "run")]) == 0
    return folder


@pytest.fixture
def here(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


PIPES = {
    "run x.toml --beside pipe --report y.html": None,
    "report run --report y.html": "run/flows.parquet",
    "report run --report y.html ": "run/run.json",
    "run x.toml --beside run --report y.html": "run/samples.parquet",
    "run pipe": None,
    "script pipe": None,
    "import tc pipe": None,
    "import path pipe": None,
    "import path pipe --fit": None,
    "sweep run pipe": None,
    "run x.toml --controller pipe.py:X": "pipe.py",
    "evaluate reno --quick --statement pipe": None,
    "evaluate reno --quick --population pipe.toml": "pipe.toml",
}


@pytest.mark.promise("P12", "P42", "P51")
@pytest.mark.parametrize("command", PIPES)
def test_pipes_are_refused(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = here / (PIPES[command] or "pipe")
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    capsys.readouterr()
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.promise("P9")
def test_a_run_that_is_damaged(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any damage is reported in one line that names the file, never as an "internal error"."""
    about = json.loads((here / "run/run.json").read_text())
    flows, other = (pl.read_parquet(here / f"run/{name}.parquet") for name in ("flows", "links"))
    damages = {
        "no flows": (here / "run/flows.parquet").unlink,
        "no links": (here / "run/links.parquet").unlink,
        "another table": lambda: other.write_parquet(here / "run/samples.parquet"),
        "another type": lambda: pl.read_parquet(here / "run/samples.parquet").with_columns(pl.col("cwnd").cast(pl.String)).write_parquet(here / "run/samples.parquet"),
        "a group that is not there": lambda: flows.with_columns(group=pl.lit(7, pl.UInt32)).write_parquet(here / "run/flows.parquet"),
        "flows of no group": lambda: flows.with_columns(group=pl.lit(None, pl.UInt32)).write_parquet(here / "run/flows.parquet"),
        "a list": lambda: pl.DataFrame({"a": [[1]]}).write_parquet(here / "run/samples.parquet"),
        "no parquet": lambda: (here / "run/samples.parquet").write_bytes(b"PAR1nothingPAR1"),
        "empty": lambda: (here / "run/samples.parquet").write_bytes(b""),
        "a folder": lambda: ((here / "run/samples.parquet").unlink(), (here / "run/samples.parquet").mkdir()),
        "a dangling link": lambda: ((here / "run/samples.parquet").unlink(), (here / "run/samples.parquet").symlink_to("gone")),
        "no scenario": lambda: (here / "run/run.json").write_text(json.dumps(about | {"scenario": 5})),
        "another scenario": lambda: (here / "run/run.json").write_text(json.dumps(about | {"scenario": {"duration": "x"}})),
        "a seed": lambda: (here / "run/run.json").write_text(json.dumps(about | {"seed": "x"})),
        "provenance": lambda: (here / "run/run.json").write_text(json.dumps(about | {"provenance": 7})),
    }  # fmt: skip
    shutil.copytree(here / "run", here / "kept")
    for name, damage in damages.items():
        shutil.rmtree(here / "run")
        shutil.copytree(here / "kept", here / "run")
        damage()
        for command in (
            "report run --report y.html",
            "run x.toml --beside run --report y.html",
            "export run --as ss --out y",
        ):
            capsys.readouterr()
            assert main(command.split()) == 2, f"{name}: {capsys.readouterr().err}"
            err = capsys.readouterr().err
            assert err.count("\n") == 1
            assert "run/" in err or "run: " in err, f"{name}: {err}"
            assert "--run" not in err
