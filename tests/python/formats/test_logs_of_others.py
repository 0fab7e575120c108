"""Tests for logs of other tools in `--beside`: flent, tcp_probe, NDT7; the output of tcptrace is refused by name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ackclock.errors import InputError
from ackclock.formats import measured, tcp_probe

FLENT = {
    "version": 4,
    "x_values": [0.0, 0.2],
    "results": {"Ping (ms) ICMP": [20.1, 20.2], "TCP upload BE": [0.7, 0.8], "TCP upload BE::tcp_cwnd": [10, 11], "TCP upload avg": [0.7, 0.8]},
    "raw_values": {
        "Ping (ms) ICMP": [{"t": 1588855601.6, "val": 20.1, "seq": 0.0}],
        "TCP upload BE": [
            {"t": 1588855606.6, "tcp_cwnd": 10.0, "tcp_rtt": 20.698, "tcp_rtt_var": 10.3},
            {"t": 1588855606.7, "val": 9.5, "dur": 0.05},
            {"t": 1588855606.8, "tcp_cwnd": 14.0, "tcp_rtt": 25.0},
        ],
        "TCP upload avg": [],
    },
    "metadata": {"SERIES_META": {"TCP upload BE": {"UNITS": "Mbits/s"}}},
}  # fmt: skip


def test_flent_packed_and_plain(tmp_path: Path) -> None:
    packed, plain = tmp_path / "rrul.flent.gz", tmp_path / "rrul.flent"
    packed.write_bytes(gzip.compress(json.dumps(FLENT).encode()))
    plain.write_text(json.dumps(FLENT))
    for file in (packed, plain):
        found = measured.read(file)
        assert (found.name, found.kind, found.flows) == ("rrul", "flent", ("TCP upload BE",))
        assert found.samples["cwnd"].to_list() == [10.0, 14.0]
        assert found.samples["srtt_s"].to_list() == pytest.approx([0.020698, 0.025])
        assert found.samples["t_s"].to_list() == pytest.approx([5.0, 5.2], abs=1e-6)
        assert found.goodput["goodput_bps"].to_list() == [9.5e6]


def test_a_refusal_names_the_packed_file(tmp_path: Path) -> None:
    """Regression: it named a file without `.gz`, which did not exist."""
    file = tmp_path / "web.flent.gz"
    file.write_bytes(gzip.compress(json.dumps({**FLENT, "results": {}, "raw_values": {}}).encode()))
    with pytest.raises(InputError, match=r"web\.flent\.gz: found"):
        measured.read(file)


def test_flent_of_version_2_has_steps_alone(tmp_path: Path) -> None:
    file = tmp_path / "old.flent"
    file.write_text(json.dumps({"version": 2, "x_values": [0, 0.2, 0.4], "results": {"TCP upload": [1, None, 3]}}))
    found = measured.read(file)
    assert found.goodput["goodput_bps"].to_list() == [1e6, 3e6]
    file.write_text(json.dumps({"version": 2, "x_values": [0, 0.2], "results": {"HTTP latency": [1, 2]}}))
    with pytest.raises(InputError, match="without a flow of TCP"):
        measured.read(file)


@pytest.mark.promise("P10")
def test_a_packed_file_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bomb.flent.gz"
    file.write_bytes(gzip.compress(bytes(2_000_000)))
    monkeypatch.setattr(measured, "LARGEST", 1_000_000)
    with pytest.raises(InputError, match="more than 1,000,000 bytes"):
        measured.read(file)
    file.write_bytes(gzip.compress(b"{}")[:-9])
    with pytest.raises(InputError, match="cannot be unpacked"):
        measured.read(file)


def probe(srtt_of_ms: float, tail: str = "") -> str:
    """Return a 100-segment transfer with a 40 ms RTT and five segments in flight."""
    begin = 0xFFFFF000  # the sequence number wraps
    lines = []
    for i in range(100):
        una, nxt = (begin + 1448 * i) % 2**32, (begin + 1448 * (i + 5)) % 2**32
        t = f"{5 + i * 0.008:.9f}"
        lines.append(
            f"{t} 10.0.0.1:5001 10.1.0.1:5201 32 {nxt:#x} {una:#x} {10 + i} 2147483647 65535 {40 * srtt_of_ms:.0f}{tail}"
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("unit", "tail"), [(1, ""), (1000, " 29200")])
def test_tcp_probe_of_both_ages(unit: int, tail: str, tmp_path: Path) -> None:
    """The unit of srtt changed from ms to us: the file's own ACKs reveal which one applies."""
    file = tmp_path / "probe.txt"
    file.write_text(probe(unit, tail))
    found = measured.read(file)
    assert (found.kind, found.flows) == ("tcp_probe", ("10.0.0.1:5001 10.1.0.1:5201",))
    assert found.samples["srtt_s"].to_list() == pytest.approx([0.04] * 100)
    assert found.samples["cwnd"][99] == 109
    assert found.samples["ssthresh"][0] is None
    assert found.goodput["goodput_bps"].to_list() == pytest.approx([1448 * 8 / 0.008] * found.goodput.height)


def test_the_trace_event_tcp_probe() -> None:
    line = (
        "  iperf3-123   [001] ..s2. {t:.6f}: tcp_probe: family=AF_INET src=10.0.0.1:5001 dest=10.1.0.1:5201 mark=0x0 data_len=1448 snd_nxt={nxt:#x} "
        "snd_una={una:#x} snd_cwnd=10 ssthresh=2147483647 snd_wnd=64256 srtt=40000 rcv_wnd=65536 sock_cookie=1\n"
    )
    text = "# tracer: nop\n#\n" + "".join(
        line.format(t=9 + i / 100, nxt=1448 * (i + 9), una=1448 * i) for i in range(30)
    )
    assert tcp_probe.is_probe(text)
    found = tcp_probe.read(text, name="event")
    assert found.samples["srtt_s"].to_list() == pytest.approx([0.04] * 30)


def ndt7() -> dict[str, object]:
    looks = [
        {"TCPInfo": {"ElapsedTime": 250_000 * i, "SndCwnd": 10 * i, "SndSsThresh": 2147483647, "RTT": 30_000, "BytesAcked": 1_000_000 * i,
                     "BusyTime": 200_000 * i, "RWndLimited": 50_000 * i, "SndBufLimited": 0, "Unacked": 12, "Sacked": 2, "Lost": 1, "Retrans": 1, "TotalRetrans": i}}
        for i in (1, 2, 3)
    ]  # fmt: skip
    return {"Download": {"UUID": "x", "ServerMeasurements": looks, "ClientMeasurements": []}}


def test_ndt7_rows_and_measurements(tmp_path: Path) -> None:
    row = ndt7()
    download = row["Download"]
    assert isinstance(download, dict)
    loose = "\n".join(json.dumps(look) for look in download["ServerMeasurements"])
    for text, flow in (
        (json.dumps(row), "download"),
        (json.dumps({"id": "x", "raw": row}), "download"),
        (loose, "test"),
    ):
        file = tmp_path / "row.json"
        file.write_text(text)
        found = measured.read(file)
        assert (found.kind, found.flows) == ("ndt7", (flow,))
        assert found.goodput["goodput_bps"].to_list() == pytest.approx([32e6, 32e6])
        last = found.samples.row(2, named=True)
        assert last["rwnd_limited_s"] == pytest.approx(0.15)
        assert last["busy_s"] == pytest.approx(0.6)
        assert (last["cwnd"], last["ssthresh"], last["in_flight"], last["srtt_s"]) == (30.0, None, 10.0, 0.03)


def test_what_tcptrace_prints_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    file.write_text(
        "1 arg remaining, starting with 'a.pcap'\nOstermann's tcptrace -- version 6.6.7 -- Thu Nov  4, 2004\n\n9 packets seen, 9 TCP packets traced\n"
    )
    with pytest.raises(InputError, match="nothing over time; allowed: the capture that tcptrace has read"):
        measured.read(file)
