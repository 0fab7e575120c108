"""Tests for other tools' formats: their files are read, and files that they can read are written. Samples are from iperf3 3.12 and iproute2 6.1."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ackclock
from ackclock import Run, Scenario, formats
from ackclock.cli import main
from ackclock.errors import AckclockError, InputError
from ackclock.formats import ss
from ackclock.plot import panels
from ackclock.report import render
from ackclock.report.run import page, watched

SAMPLES = Path(__file__).parent / "samples"
SCENARIOS = Path(__file__).parents[3] / "scenarios"


@pytest.fixture(scope="module")
def run() -> Run:
    scenario = ackclock.load(SCENARIOS / "first.toml").set("duration", "6 s")
    return ackclock.run(watched(scenario))


@pytest.fixture(scope="module")
def pair() -> Run:
    """Return two groups; the second one starts later."""
    flows = [{"congestion_control": "cubic"}, {"congestion_control": "reno", "count": 2, "start": "1 s"}]
    network = {"bottleneck": {"rate": "10 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}}
    return ackclock.run(watched(ackclock.Scenario.from_dict({"duration": "4 s", "network": network, "flows": flows})))


def test_a_loopback_result_of_iperf3_is_read():
    told = json.loads((SAMPLES / "iperf3-3.12.json").read_text())
    read = formats.read(SAMPLES / "iperf3-3.12.json")
    assert (read.kind, read.flows) == ("iperf3", ("0 cubic", "1 cubic"))
    last = told["intervals"][-1]["streams"][1]
    row = read.samples.filter(pl.col("flow") == 1).tail(1).row(0, named=True)
    assert row["t_s"] == last["end"]
    assert row["srtt_s"] == pytest.approx(last["rtt"] * 1e-6)
    assert row["cwnd"] == pytest.approx(last["snd_cwnd"] / told["start"]["tcp_mss_default"])
    assert row["retransmissions"] == told["end"]["streams"][1]["sender"]["retransmits"]
    sent = (read.goodput.filter(pl.col("flow") == 0)["goodput_bps"].mean() or 0) * 2 / 8
    assert sent == pytest.approx(told["end"]["streams"][0]["sender"]["bytes"], rel=0.02)


def test_a_result_over_netem_has_windows_in_segments():
    read = formats.read(SAMPLES / "iperf3-netem.json")
    assert read.flows == ("cubic",)
    assert 10 <= read.samples["cwnd"].min() <= read.samples["cwnd"].max() < 100
    assert 0.04 <= read.samples["srtt_s"].min() <= read.samples["srtt_s"].max() < 0.1


def test_a_stream_of_events_is_the_same_result(tmp_path):
    told = json.loads((SAMPLES / "iperf3-3.12.json").read_text())
    events = [("start", told["start"]), *(("interval", i) for i in told["intervals"]), ("end", told["end"])]
    file = tmp_path / "stream.json"
    file.write_text("".join(json.dumps({"event": name, "data": data}) + "\n" for name, data in events))
    whole, stream = formats.read(SAMPLES / "iperf3-3.12.json"), formats.read(file)
    assert stream.samples.equals(whole.samples)
    assert stream.goodput.equals(whole.goodput)


def test_looks_of_ss_are_read_without_the_control_connection():
    read = formats.read(SAMPLES / "ss-6.1.txt")
    assert read.flows == ("0 cubic", "1 cubic")  # iperf3's third connection, over bbr, is its control connection
    first = read.samples.row(0, named=True)
    assert (first["t_s"], first["cwnd"], first["ssthresh"]) == (0.0, 11.0, None)
    assert first["srtt_s"] == pytest.approx(0.439e-3)
    assert read.samples.filter(pl.col("flow") == 0)["retransmissions"].max() == 7
    acked = (655398 - 131110) * 8 / (1795349731.541278403 - 1795349731.265739343)
    assert read.goodput["goodput_bps"][0] == pytest.approx(acked, rel=1e-6)


def test_looks_without_the_column_of_states_are_read():
    read = formats.read(SAMPLES / "ss-established.txt")
    assert read.flows == ("cubic",)
    assert read.samples["ssthresh"].drop_nulls().len() > 0
    assert read.samples["in_flight"].max() > 20


@pytest.mark.parametrize(
    ("kind", "name"), [("iperf3", "a.json"), ("ss", "a.txt"), ("qlog", "a.qlog"), ("qlog", "a.sqlog")]
)
def test_what_is_written_is_read_again(tmp_path, run, kind, name):
    read = formats.read(formats.write(run, kind, tmp_path / name))
    assert read.kind == kind
    assert len(read.flows) == 1
    samples = run.samples.with_columns(pl.col("t_s").round(6))
    both = read.samples.with_columns(pl.col("t_s").round(6)).join(samples, on="t_s", suffix="_ours")
    assert read.goodput["goodput_bps"].mean() == pytest.approx(run.goodput["goodput_bps"].mean(), rel=0.05)
    if kind == "qlog":
        assert read.samples["cwnd"].max() == run.acks["cwnd"].max()
        assert read.samples["retransmissions"][-1] == run.flows["retransmissions"][0]
        return
    assert both.height >= 30  # iperf3's bound when an interval ends at a sample
    assert np.allclose(both["cwnd"], both["cwnd_ours"])
    assert np.allclose(both["srtt_s"], both["srtt_s_ours"], atol=1e-6)
    assert both["retransmissions"].to_list() == both["retransmissions_ours"].to_list()


def test_streams_are_the_flows_of_one_group(tmp_path, pair):
    with pytest.raises(InputError, match=r"group: found none, of 2; allowed: one of 0 \(cubic\), 1 \(reno\)"):
        formats.write(pair, "iperf3", tmp_path / "x.json")
    told = json.loads(formats.write(pair, "iperf3", tmp_path / "x.json", group=1).read_text())
    flows = pair.flows.filter(pl.col("group") == 1)
    assert told["start"]["test_start"]["num_streams"] == 2
    assert told["end"]["sum_sent"]["bytes"] == flows["bytes_acked"].sum()
    assert told["end"]["sum_sent"]["retransmits"] == flows["retransmissions"].sum()
    assert told["intervals"][-1]["streams"][0]["end"] == pytest.approx(3.0)
    per_stream = sum(row["streams"][0]["bytes"] for row in told["intervals"])
    assert per_stream == pytest.approx(flows["bytes_acked"][0], abs=2000)


def test_qlog_tells_of_every_packet_once(tmp_path, run):
    told = json.loads(formats.write(run, "qlog", tmp_path / "x.qlog").read_text())
    assert told["qlog_version"] == "0.3"
    (trace,) = told["traces"]
    assert trace["vantage_point"]["type"] == "server"
    events = trace["events"]
    assert [e["time"] for e in events] == sorted(e["time"] for e in events)
    by_name: dict[str, list[dict]] = {}
    for event in events:
        by_name.setdefault(event["name"], []).append(event["data"])
    numbers = [data["header"]["packet_number"] for data in by_name["transport:packet_sent"]]
    assert numbers == list(range(run.flows["sent_packets"][0]))
    lost = [data["header"]["packet_number"] for data in by_name["recovery:packet_lost"]]
    assert len(lost) == run.flows["retransmissions"][0] > 0
    ranges = [
        r for data in by_name["transport:packet_received"] for frame in data["frames"] for r in frame["acked_ranges"]
    ]
    acked = [n for first, last in ranges for n in range(first, last + 1)]
    assert len(set(acked)) == len(acked), "each packet is acknowledged once"
    assert set(acked) | set(lost) | set(numbers[-200:]) == set(numbers), (
        "none is forgotten but those in flight at the end"
    )
    assert not set(acked) & set(lost)
    states = [data["new"] for data in by_name["recovery:congestion_state_updated"]]
    assert set(states) <= {"Open", "Disorder", "CWR", "Recovery", "Loss"}
    assert states.count("Recovery") == run.flows["recoveries"][0]


def test_qlog_of_a_stack_of_others_tells_what_the_stack_does(tmp_path):
    link = {"rate": "20 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "67 packets"}}
    values = {"duration": "2 s", "network": {"bottleneck": link}, "record": {"trace": "all"}}
    for workload, opens in (
        ({"kind": "transfer", "bytes": "2 MB"}, "client"),
        ({"kind": "fetch", "bytes": "1 MB"}, "server"),
    ):
        flow = {"congestion_control": "quinn:cubic", "workload": workload}
        done = ackclock.run(Scenario.from_dict({**values, "flows": [flow]}))
        file = formats.write(done, "qlog", tmp_path / "x.qlog")
        (trace,) = json.loads(file.read_text())["traces"]
        assert trace["common_fields"]["protocol_type"] == ["QUIC"]
        assert trace["vantage_point"]["type"] == opens
        names = [event["name"] for event in trace["events"]]
        row = done.flows.row(0, named=True)
        assert names.count("recovery:packet_lost") == row["lost_packets"] > 0
        assert names.count("transport:packet_sent") == done.acks.filter(pl.col("event") == "send").height
        assert 0.9 * row["sent_packets"] < names.count("transport:packet_sent") <= row["sent_packets"]
        assert max(event["data"].get("raw", {}).get("length", 0) for event in trace["events"]) == 1452
        read = formats.read(file).samples
        assert read["cwnd"].max() == done.acks["cwnd"].max()
        assert 0.04 < read["srtt_s"].max() < 0.1


def test_without_a_trace_qlog_tells_the_metrics(tmp_path, pair):
    scenario = pair.scenario.set("record.trace", "none")
    told = json.loads(formats.write(ackclock.run(scenario), "qlog", tmp_path / "x.qlog").read_text())
    assert [trace["title"] for trace in told["traces"]] == ["0 cubic", "1 reno", "2 reno"]
    names = {event["name"] for trace in told["traces"] for event in trace["events"]}
    assert "recovery:metrics_updated" in names
    assert "transport:packet_sent" not in names
    with pytest.raises(InputError, match="found 3 flows; allowed: one in JSON-SEQ"):
        formats.write(pair, "qlog", tmp_path / "x.sqlog")


def test_what_was_measured_is_drawn_in_the_same_panels(run):
    beside = [formats.read(SAMPLES / "iperf3-netem.json"), formats.of_run(run, name="again")]
    drawn = {
        panel.name: [curve.look.label for curve in panel.curves if not curve.faint]
        for panel in panels.panels(run, beside)
    }
    assert drawn["cwnd"] == ["0 cubic", "iperf3-netem: cubic", "again: 0 cubic"]
    assert drawn["in_flight"] == ["0 cubic", "again: 0 cubic"]  # not reported by iperf3
    assert "iperf3-netem: cubic" in drawn["goodput"]
    html = render(page(run, beside=beside))
    assert "Measured elsewhere" in html
    assert len(html) < 2_500_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found an empty file"),
        ("hello\n", 'found "hello" and no connection with cwnd'),
        ('{"error": "unable to connect", "start": {}}', 'iperf3\'s error "unable to connect"'),
        ('{"start": {}, "intervals": [], "end": {}}', "found no intervals"),
        ('{"start": {}, "intervals": [3], "end": {}}', "a file that cannot be read"),
        ('{"a": 1}', 'found "a"; allowed: an object with traces'),
        ('{"traces": [{"events": []}]}', "found 1 traces without recovery:metrics_updated"),
        ("ESTAB 0 0 a:1 b:2\n\t cubic rtt:1/1 cwnd:10\n", "found no time before the first connection"),
        ("\x1e{", "a file that cannot be read"),
        ("[" * 60_000, "and no connection with cwnd"),
        ("\n" + "[" * 100_000, "line 2: found 100,000 characters; allowed: at most 65,536"),
        ("{" * 100_000, "a file that cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(tmp_path, text, said):
    file = tmp_path / "x.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        formats.read(file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.promise("P6")
@pytest.mark.parametrize("filling", ["[", "a", " ", "1", ":", "a:b "])
def test_a_long_line_of_ss_takes_time_that_grows_with_its_length(filling):
    long = filling * (60_000 // len(filling))
    text = f"1\nESTAB 0 0 a:1 b:2\n\t reno cwnd:10 bytes_sent:20000 {long}\n{long}\n#{long}x\nESTAB {long} c:1 d:2\n"
    begun = time.process_time()
    read = ss.read(text, name="x")
    assert time.process_time() - begun < 1  # a few milliseconds; quadratic time would be seconds
    assert read.samples["cwnd"].to_list() == [10]


@pytest.mark.parametrize("name", ["iperf3-3.12.json", "ss-6.1.txt", "iperf3-netem.json"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, name, data):
    text = (SAMPLES / name).read_text()
    at = data.draw(st.integers(0, len(text) - 1))
    much = data.draw(st.integers(1, 400))
    file = tmp_path_factory.mktemp("damaged") / name
    file.write_text(text[:at] + data.draw(st.text(max_size=20)) + text[at + much :], errors="replace")
    try:
        formats.read(file)
    except AckclockError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_lines_of_tcp_probe_are_those_of_the_module(tmp_path):
    """Each line describes an ACK, with the values before it; the window after it is in the next line."""
    flow = {"congestion_control": "reno", "workload": {"kind": "transfer", "bytes": "200 kB"}}
    loss = {"kind": "scripted", "drops": [{"first": 20, "last": 20}]}
    network = {"bottleneck": {"rate": "10 Mbit/s", "delay": "10 ms", "loss": loss}}
    found = ackclock.run(
        ackclock.Scenario.from_dict(
            {"duration": "5 s", "network": network, "flows": [flow], "record": {"trace": "flow"}}
        )
    )
    lines = [line.split(" ") for line in formats.write(found, "tcp-probe", tmp_path / "x").read_text().splitlines()]
    acks = found.acks.filter(pl.col("event") == "ack")
    assert {len(line) for line in lines} == {10}
    assert [int(line[6]) for line in lines] == acks["cwnd_before"].to_list()
    assert [line[0] for line in lines] == [f"{t // 10**9}.{t % 10**9:09d}" for t in acks["t_ns"]]
    assert {line[1] for line in lines} == {"10.0.0.1:5001"}
    assert [int(line[5], 16) for line in lines][1:] == acks["seq"].to_list()[:-1]
    assert all(int(line[4], 16) >= int(line[5], 16) for line in lines)
    assert {int(line[3]) for line in lines} == {32, 32 + 12}  # with one SACK block
    assert int(lines[0][7]) == 2**31 - 1


def test_curl_prints_a_time_for_each_fetch(tmp_path):
    flow = {"workload": {"kind": "fetch", "bytes": "30 kB", "count": 3, "pause": "100 ms"}}
    network = {"topology": "chain", "bottleneck": {"rate": "10 Mbit/s", "delay": "10 ms"}}
    found = ackclock.run(ackclock.Scenario.from_dict({"duration": "5 s", "network": network, "flows": [flow]}))
    lines = formats.write(found, "curl", tmp_path / "x").read_text().splitlines()
    assert [float(line) for line in lines] == pytest.approx(found.fetches["total_s"].to_list(), abs=1e-6)
    assert len(lines) == 3


def test_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = str(SCENARIOS / "first.toml")
    measured = str(SAMPLES / "iperf3-netem.json")
    beside = ["--beside", measured, "--plot", "rtt.png"]
    assert main(["run", first, "--set=duration=3 s", "--out", "r", "--report", "a.html", *beside]) == 0
    assert main(["report", "r", "--report", "b.html", "--beside", "r"]) == 0
    assert "iperf3-netem: cubic" in Path("a.html").read_text()
    for kind, name in (("iperf3", "x.json"), ("ss", "x.txt"), ("qlog", "x.qlog")):
        assert main(["export", "r", "--as", kind, "--out", name]) == 0
        assert formats.read(name).kind == kind
    capsys.readouterr()
    for arguments, said in (
        (["export", first, "--as", "qlog", "--out", "y"], "the folder of a run"),
        (["export", "r", "--as", "tc", "--out", "y"], "found a folder"),
        (["export", "r", "--as", "curl", "--out", "y"], "found no fetch or transaction that was complete"),
        (["export", "r", "--as", "pcap", "--out", "y"], '--as: found "pcap"; allowed:'),
        (["export", "r", "--as", "ss", "--out", "y", "--group", "0"], "--group: found 0 with --as ss"),
        (["run", first, "--beside", measured], "nothing to draw"),
        (["run", first, "--report", "c.html", "--beside", "none.json"], "--beside none.json: cannot be read"),
        (["run", first, "--snaplen", "96"], "--snaplen: found 96 without --pcap"),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    assert not Path("y").exists()


def test_a_snap_length_makes_a_capture_small_and_changes_nothing_else(tmp_path):
    scenario = ackclock.load(SCENARIOS / "first.toml").set("duration", "2 s")
    whole, cut = tmp_path / "whole.pcapng", tmp_path / "cut.pcapng"
    assert ackclock.run(scenario, pcap=whole).digest == ackclock.run(scenario, pcap=cut, snaplen=96).digest
    assert cut.stat().st_size < whole.stat().st_size / 6
    with pytest.raises(InputError, match="snaplen: found 53; allowed: a whole number, 54 to 262144"):
        ackclock.run(scenario, pcap=cut, snaplen=53)
    with pytest.raises(InputError, match="snaplen: found 96 without pcap"):
        ackclock.run(scenario, snaplen=96)


def test_ss_names_the_controller_not_the_group():
    link = {"rate": "10 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    flows = [{"name": "rwnd", "congestion_control": "bbr"}]
    record = {"sample_interval": "100 ms"}
    scenario = ackclock.Scenario.from_dict(
        {"duration": "1 s", "network": {"bottleneck": link}, "flows": flows, "record": record}
    )
    run = ackclock.run(scenario)
    told = [line for line in ss.lines(run, mss=lambda _: 1448) if line.startswith("\t")]
    assert told
    assert all(line.split()[:3] == ["ts", "sack", "bbr"] for line in told)
    assert run.flows.select("name", "congestion_control").row(0) == ("rwnd", "bbr")
