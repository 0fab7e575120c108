"""Tests for captures made with other tools: initial file checks, and conclusions that must not be drawn.

Length: each test makes its own capture.
"""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

import ackclock
from ackclock.cli import main
from ackclock.diagnose import Diagnosis, diagnose
from ackclock.errors import InputError
from ackclock.formats import measured, read_capture

Frame = tuple[int, bytes, int]

SYN, PSH, ACK = 2, 8, 16
US = 1_000_000


def frames(path: Path) -> list[Frame]:
    raw, made, at = path.read_bytes(), [], 24
    while at < len(raw):
        seconds, part, kept, whole = struct.unpack("<IIII", raw[at : at + 16])
        made.append((seconds * US + part, raw[at + 16 : at + 16 + kept], whole))
        at += 16 + kept
    return made


def written(path: Path, rows: list[Frame], link: int = 1) -> Path:
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link))
        for t, frame, whole in rows:
            file.write(struct.pack("<IIII", t // US, t % US, len(frame), whole) + frame)
    return path


class Hand:
    """A handmade capture at a connection's sender (way 0)."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, bytes, int]] = []
        self.ids = [1, 1]

    def add(
        self,
        t: float,
        way: int,
        seq: int,
        ack: int,
        size: int,
        window: int,
        flags: int,
        options: bytes = b"",
        ttl: int = 64,
    ) -> None:
        source, sink = (b"\x0a\0\0\1", b"\x0a\0\0\2")[:: 1 - 2 * way]
        ports = (5001, 40000)[:: 1 - 2 * way]
        header = (20 + len(options)) // 4 << 4
        tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, header, flags, window, 0, 0) + options
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp) + size, self.ids[way], 0x4000, ttl, 6, 0) + source + sink
        self.ids[way] += 1
        self.rows.append((t, bytes(12) + b"\x08\0" + ip + tcp, size))

    def write(self, path: Path) -> Path:
        rows = sorted(self.rows, key=lambda row: row[0])
        return written(path, [(round(t * US), frame, len(frame) + size) for t, frame, size in rows])


def mss(size: int) -> bytes:
    return struct.pack(">BBH", 2, 4, size)


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Path:
    """Return a window-limited transfer whose path is full for three quarters of the time, as classic pcap."""
    folder = tmp_path_factory.mktemp("strange")
    scenario = ackclock.load("first").set("flows.0.workload", {"kind": "transfer", "bytes": "400 kB"})
    ackclock.run(scenario, pcap=folder / "a.pcapng", snaplen=96)
    raw, rows, at = (folder / "a.pcapng").read_bytes(), [], 0
    resolution = 1000 if b"\x09\0\1\0\x09" in raw[:200] else 1
    while at < len(raw):
        kind, size = struct.unpack("<II", raw[at : at + 8])
        if kind == 6:
            _, high, low, kept, whole = struct.unpack("<IIIII", raw[at + 8 : at + 28])
            rows.append((((high << 32) | low) // resolution, raw[at + 28 : at + 28 + kept], whole))
        at += size
    link = struct.unpack("<H", raw[raw.index(b"\1\0\0\0", 28) + 8 :][:2])[0]
    return written(folder / "first.pcap", rows, link)


def test_headers_that_were_cut_are_named(tmp_path, first):
    """Regression: a capture of 40 bytes of each packet was said to hold no TCP data."""
    cut = written(tmp_path / "cut.pcap", [(t, frame[:36], whole) for t, frame, whole in frames(first)], link_of(first))
    with pytest.raises(InputError, match=r"packets without their whole TCP header; allowed: .*tcpdump -s 128"):
        diagnose(cut)
    with pytest.raises(InputError, match="without their whole TCP header"):
        measured.read(cut)


def link_of(path: Path) -> int:
    return int(struct.unpack("<I", path.read_bytes()[20:24])[0])


def shares(found: Diagnosis) -> dict[str, float]:
    return {cause.name: cause.share for cause in found.causes}


def test_a_capture_of_single_segments_with_marks_of_packets_does_not_blame_the_application(first, tmp_path):
    """Linux marks the last segment of each packet of several segments; here a NIC has split these packets."""
    ip_at = 14 if link_of(first) == 1 else 0
    made, marked = [], 0
    for t, frame, whole in frames(first):
        cut = bytearray(frame)
        tcp = ip_at + (cut[ip_at] & 15) * 4
        if whole > 1000:
            marked += 1
            cut[tcp + 13] = cut[tcp + 13] | PSH if marked % 2 else cut[tcp + 13] & ~PSH
        made.append((t, bytes(cut), whole))
    plain, found = diagnose(first), diagnose(written(tmp_path / "marks.pcap", made, link_of(first)))
    assert shares(found).get("application", 0) == pytest.approx(shares(plain).get("application", 0), abs=0.02)
    assert found.causes[0].name == plain.causes[0].name


@pytest.mark.parametrize("cut", ["without the handshake", 54, 60, 68])
def test_without_the_scale_of_windows_the_receivers_window_is_not_blamed(first, tmp_path, cut):
    rows = frames(first)
    plain = diagnose(first)
    rows = rows[3:] if isinstance(cut, str) else [(t, frame[:cut], whole) for t, frame, whole in rows]
    found = diagnose(written(tmp_path / "cut.pcap", rows, link_of(first)))
    assert shares(found).get("rwnd", 0) < 0.05
    assert found.causes[0].name == plain.causes[0].name
    assert found.connection["most_window"] is None
    assert "scale of the receiver's window is not known" in " ".join(found.notes)


def lowered(frame: bytes, at: int) -> bytes:
    made = bytearray(frame)
    made[at + 8] -= 1
    return bytes(made)


@pytest.mark.parametrize(("apart", "lower"), [(2, False), (6, False), (40, True)])
def test_copies_are_no_retransmissions(first, tmp_path, apart, lower):
    ip_at = 14 if link_of(first) == 1 else 0
    rows = [
        one
        for t, frame, whole in frames(first)
        for one in ((t, frame, whole), (t + apart, lowered(frame, ip_at) if lower else frame, whole))
    ]
    rows.sort(key=lambda row: row[0])
    path = written(tmp_path / "twice.pcap", rows, link_of(first))
    assert read_capture(path).with_data()["lost"][0] == read_capture(first).with_data()["lost"][0]
    plain, found = diagnose(first), diagnose(path)
    assert shares(found) == pytest.approx(shares(plain), abs=0.02)
    assert "in the file twice" in found.notes[0]


def test_a_clock_that_was_set_back_is_said(first, tmp_path):
    rows = [(t + US, frame, whole) for t, frame, whole in frames(first)]
    rows = [*rows[:200], *((t - 300_000, frame, whole) for t, frame, whole in rows[200:])]
    found = diagnose(written(tmp_path / "back.pcap", rows, link_of(first)))
    assert found.path is None
    assert "the clock of the capture runs back" in found.refused


def test_probes_of_a_closed_window_are_no_losses(tmp_path):
    """Windows, BSD and Solaris probe with one byte of data, which the receiver rejects."""
    made = Hand()
    made.add(0, 0, 0, 0, 0, 65535, SYN, mss(1460))
    made.add(0.001, 1, 0, 1, 0, 65535, SYN | ACK, mss(1460))
    made.add(0.00102, 0, 1, 1, 0, 65535, ACK)
    t, seq = 0.002, 1
    for _ in range(20):
        for i in range(10):
            made.add(t + i * 1e-5, 0, seq + 1460 * i, 1, 1460, 65535, ACK)
        seq += 14_600
        made.add(t + 0.001, 1, 1, seq, 0, 0, ACK)
        made.add(t + 0.02, 0, seq, 1, 1, 65535, ACK)
        made.add(t + 0.021, 1, 1, seq, 0, 0, ACK)
        made.add(t + 0.04, 1, 1, seq, 0, 14_600, ACK)
        t += 0.0401
    found = diagnose(made.write(tmp_path / "probes.pcap"))
    assert found.connection["lost"] == 0
    assert shares(found)["rwnd"] > 0.9
    assert found.answer is not None
    assert found.answer.where in ("client", "server")
    assert "reads too slowly" in found.answer.what


def test_a_slow_reader_on_a_lan_is_no_idle_application(tmp_path):
    """Regression: data that left 20 us after the window opened counted as the application's, so the transfer was 'idle for 92 % of
    its life'; and the reader's rate counted the bytes that first filled its buffer.
    """
    made = Hand()
    made.add(0, 0, 0, 0, 0, 65535, SYN, mss(1460))
    made.add(0.0002, 1, 0, 1, 0, 65535, SYN | ACK, mss(1460))
    made.add(0.00022, 0, 1, 1, 0, 65535, ACK)
    t, seq = 0.001, 1
    for turn in range(26):
        count = 6 if turn else 44
        for i in range(count):
            left = t + i * 1.2e-5
            made.add(left, 0, seq + 1460 * i, 1, 1460, 65535, ACK)
            whole = i == count - 1
            made.add(left + 0.0002, 1, 1, seq + 1460 * (i + 1), 0, 0 if whole else 1295 + 1460 * (count - 1 - i), ACK)
        seq += 1460 * count
        made.add(t + 0.00348, 1, 1, seq, 0, 8760 + 1295, ACK)
        t += 0.0035
    found = diagnose(made.write(tmp_path / "reader.pcap"))
    assert shares(found)["rwnd"] > 0.9
    assert found.answer is not None
    assert "reads too slowly" in found.answer.what
    took = float(found.sentence.split("its application took ")[1].split()[0])
    assert took == pytest.approx(8 * 8760 / 0.0035 / 1e6, rel=0.05)


def test_the_rate_of_a_path_is_a_bound_where_requests_keep_it_empty(tmp_path):
    """Twelve 14-segment responses. One segment arrives every 0.75 ms, and nothing is in flight between responses."""
    made = Hand()
    made.add(0, 1, 0, 0, 0, 65535, SYN, mss(1348))
    made.add(3e-5, 0, 0, 1, 0, 65535, SYN | ACK, mss(1348))
    made.add(0.02, 1, 1, 1, 0, 65535, ACK)
    t, seq, asked = 0.05, 1, 1
    for i in range(12):
        made.add(t, 1, asked, seq, 400, 65535, ACK | PSH)
        asked += 400
        for j in range(14):
            made.add(t + 2e-4 + 2e-6 * j, 0, seq + 1348 * j, asked, 1348, 65535, ACK | (PSH if j == 13 else 0))
        for j in range(14):
            least = 0.0193 if i == 0 and j == 0 else 0.024
            made.add(t + 2e-4 + least + 0.00075 * (j + 1), 1, asked, seq + 1348 * (j + 1), 0, 65535, ACK)
        seq += 14 * 1348
        t += 0.0002 + 0.022 + 0.00075 * 15 + 0.070
    path = diagnose(made.write(tmp_path / "http.pcap")).path
    assert path is not None
    assert path.rate_bps is not None
    assert path.rate_bps < 16e6
    assert path.rate_bps > 8e6 or not path.identified


def ethernet(kind: int) -> bytes:
    return bytes(12) + struct.pack(">H", kind)


def four(protocol: int, size: int) -> bytes:
    return struct.pack(">BBHHHBBH", 0x45, 0, size + 20, 1, 0, 64, protocol, 0) + bytes([192, 0, 2, 1, 192, 0, 2, 2])


def wrapped(how: str, ip: bytes, size: int) -> tuple[int, bytes]:
    inner = ethernet(0x0800) + ip
    udp = lambda port, more: struct.pack(">HHHH", 50000, port, size + more + 8, 0)  # noqa: E731
    match how:
        case "PPPoE":
            return 1, ethernet(0x8864) + b"\x11\0\0\1" + struct.pack(">H", size + 2) + b"\0\x21" + ip
        case "MPLS":
            return 1, ethernet(0x8847) + struct.pack(">II", 17 << 12 | 64, 16 << 12 | 0x100 | 64) + ip
        case "GRE":
            return 1, ethernet(0x0800) + four(47, size + 8) + b"\x20\0\x08\0\0\0\0\7" + ip
        case "IPIP":
            return 1, ethernet(0x0800) + four(4, size) + ip
        case "VXLAN":
            return 1, ethernet(0x0800) + four(17, size + 30) + udp(4789, 22) + b"\x08\0\0\0\0\0\x2a\0" + inner
        case "Geneve":
            return 1, ethernet(0x0800) + four(17, size + 34) + udp(6081, 26) + b"\1\0\x65\x58\0\0\x2a\0\0\0\0\0" + inner
        case "GTP-U":
            return 1, ethernet(0x0800) + four(17, size + 16) + udp(2152, 8) + b"\x30\xff" + struct.pack(
                ">HI", size, 7
            ) + ip
        case "PPP":
            return 9, b"\xff\3\0\x21" + ip
        case "Cisco HDLC":
            return 104, b"\x0f\0\x08\0" + ip
        case "SLL with a tag":
            return 113, b"\0\0\0\1\0\6" + bytes(8) + b"\x81\0\0\x0a\x08\0" + ip
        case "SLL2 with a tag":
            return 276, b"\x81\0\0\0\0\0\0\2\0\1\0\6" + bytes(8) + b"\0\x0a\x08\0" + ip
        case "NFLOG":
            return 239, b"\2\0\0\0" + struct.pack("<HH", 4 + len(ip), 9) + ip
        case "802.11":
            return 105, b"\x08\1\0\0" + bytes(20) + b"\xaa\xaa\3\0\0\0\x08\0" + ip
        case "radiotap":
            return 127, b"\0\0\x08\0\0\0\0\0" + b"\x88\1\0\0" + bytes(22) + b"\xaa\xaa\3\0\0\0\x08\0" + ip
        case _:
            return 1, bytes(12) + struct.pack(">H", 1000) + b"\xaa\xaa\3\0\0\0\x08\0" + ip


@pytest.mark.parametrize(
    "how",
    [
        *("PPPoE", "MPLS", "GRE", "IPIP", "VXLAN", "Geneve", "GTP-U", "PPP", "Cisco HDLC"),
        *("SLL with a tag", "SLL2 with a tag", "NFLOG", "802.11", "radiotap", "SNAP"),
    ],
)
def test_what_is_wrapped_is_unwrapped(first, tmp_path, how):
    ip_at = 14 if link_of(first) == 1 else 0
    rows, link = [], 1
    for t, frame, whole in frames(first)[:200]:
        link, made = wrapped(how, frame[ip_at:], whole - ip_at)
        rows.append((t, made, whole + len(made) - len(frame)))
    plain = (
        read_capture(written(tmp_path / "plain.pcap", frames(first)[:200], link_of(first)))
        .with_data()
        .row(0, named=True)
    )
    found = read_capture(written(tmp_path / "wrapped.pcap", rows, link)).with_data().row(0, named=True)
    for key in ("bytes", "segments", "lost", "from_address", "rtt_min_s", "mss", "wscale"):
        assert found[key] == plain[key], key


def test_a_capture_without_tcp_is_refused_with_the_link_layers_number(first, tmp_path, capsys):
    path = written(tmp_path / "arcnet.pcap", frames(first)[:5], 129)
    assert main(["read", str(path)]) == 2
    assert "link layer 129" in capsys.readouterr().err


def test_a_capture_packed_with_gzip_is_opened(first, tmp_path):
    path = tmp_path / "first.pcap.gz"
    path.write_bytes(gzip.compress(first.read_bytes()))
    assert read_capture(path).with_data()["bytes"][0] == 400_000
    path.write_bytes(gzip.compress(first.read_bytes())[:-4000])
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_capture(path)
    path.write_bytes(bytes.fromhex("28b52ffd") + bytes(20))
    with pytest.raises(InputError, match="zstd"):
        read_capture(path)


DRAFT_00 = {
    "qlog_version": "draft-00",
    "traces": [
        {
            "vantage_point": {"type": "server"},
            "event_fields": ["relative_time", "category", "event", "data"],
            "configuration": {"time_units": "us"},
            "common_fields": {"reference_time": "0"},
            "events": [
                [
                    0,
                    "transport",
                    "packet_sent",
                    {"packet_type": "1RTT", "header": {"packet_number": 1, "packet_size": 1252}},
                ],
                [40000, "recovery", "metrics_updated", {"cwnd": 15360, "bytes_in_flight": 1252, "smoothed_rtt": 40000}],
                [
                    80000,
                    "recovery",
                    "metrics_updated",
                    {"cwnd": 30720, "bytes_in_flight": 15360, "smoothed_rtt": 40500},
                ],
            ],
        }
    ],
}


def test_qlog_of_early_drafts_is_read(tmp_path):
    path = tmp_path / "old.qlog"
    path.write_text(json.dumps(DRAFT_00))
    samples = measured.read(path).samples
    assert samples["t_s"].to_list() == pytest.approx([0.04, 0.08])
    assert samples["srtt_s"].to_list() == pytest.approx([0.04, 0.0405])
    assert samples["cwnd"].to_list() == pytest.approx([12.8, 25.6])


def test_qlog_of_an_object_each_line_is_read(tmp_path):
    path = tmp_path / "lines.sqlog"
    head = {"qlog_version": "0.3", "qlog_format": "NDJSON", "trace": {"title": "t"}}
    event = {"time": 5, "name": "recovery:metrics_updated", "data": {"congestion_window": 12_000, "smoothed_rtt": 30}}
    path.write_text(json.dumps(head) + "\n" + json.dumps(event) + "\n")
    assert measured.read(path).samples["cwnd"].to_list() == [10.0]


def test_ss_on_one_line_names_the_controller(tmp_path):
    path = tmp_path / "one.txt"
    info = "cubic wscale:9,9 rto:208 rtt:4.065/0.03 mss:1448 cwnd:21 bytes_sent:3602128 bytes_acked:3369000"
    path.write_text(f"1700000000.1\nESTAB 0 346072 10.0.0.1:4444 10.0.0.3:40624 {info}\n")
    assert measured.read(path).flows == ("cubic",)


@pytest.mark.parametrize(
    "stamp", ["time:{}000000", "{}", "# {}000"], ids=["nanoseconds", "milliseconds", "microseconds"]
)
def test_ss_with_finer_clocks_than_seconds_is_read(tmp_path, stamp):
    """Loggers write `date +%s%N`, one with "time:" before it."""
    path = tmp_path / "fine.txt"
    looks = [
        f"{stamp.format(1754776664023 + 100 * i)}\n0 398200 [::ffff:10.0.0.1]:5202 [::ffff:10.0.0.2]:56512 "
        f"ts sack bbr rtt:36.7/3.9 mss:1448 cwnd:{44 + i} bytes_sent:{200_000 * (i + 1)} bytes_acked:{100_000 * (i + 1)}\n"
        for i in range(3)
    ]
    path.write_text("".join(looks))
    found = measured.read(path)
    assert found.flows == ("bbr",)
    assert found.samples["t_s"].to_list() == pytest.approx([0.0, 0.1, 0.2], abs=1e-5)
    assert found.goodput["goodput_bps"].to_list() == pytest.approx([8e6, 8e6], rel=1e-4)


def test_an_end_of_ipv6_stands_in_brackets():
    from ackclock.formats.capture import end

    assert end("2001:db8::1", 5001) == "[2001:db8::1]:5001"
    assert end("10.0.0.1", 80) == "10.0.0.1:80"


def test_a_capture_at_a_receiver_without_timestamps_tells_what_it_can(tmp_path):
    """Like a Windows client's capture, it shows the window, the rate, pauses and the first flight, but not why the sender waits."""
    scenario = ackclock.load("first").set_all(
        {"flows.0.workload": {"kind": "transfer", "bytes": "400 kB"}, "flows.0.stack.timestamps": False}
    )
    ackclock.run(scenario, pcap=tmp_path / "a.pcapng", pcap_at="receiver", snaplen=96)
    found = diagnose(tmp_path / "a.pcapng")
    assert found.refused
    assert found.answer is not None
    assert found.answer.where == "not told"
    told = " ".join(found.notes)
    assert "400,000 bytes" in told
    assert "The receiver's window" in told
    assert "first flight" in told


def of_receiver(made: Hand, trip: float) -> None:
    """Return a handshake without timestamps, captured at the client, which receives the data."""
    made.add(0, 1, 0, 0, 0, 65535, SYN, mss(1460))
    made.add(trip, 0, 0, 1, 0, 65535, SYN | ACK, mss(1460), ttl=50)
    made.add(trip + 1e-5, 1, 1, 1, 0, 65535, ACK)


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_time_in_which_all_is_acknowledged_is_the_applications_wherever_it_is_captured(tmp_path, who):
    """Four 14,600-byte responses, 0.5 s apart, before the client's request or after it."""
    made, trip, at, seq = Hand(), 0.02, 0.1, 1
    of_receiver(made, trip)
    for i in range(4):
        made.add(at, 1, 1 + 100 * i, seq, 100, 65535, ACK | PSH)
        at += trip + (0.5 if who == "server" else 0)
        for n in range(10):
            made.add(at + 1e-3 * n, 0, seq + 1460 * n, 101 + 100 * i, 1460, 65535, ACK | PSH * (n == 9), ttl=50)
            made.add(at + 1e-3 * n + 1e-5, 1, 101 + 100 * i, seq + 1460 * (n + 1), 0, 65535, ACK)
        seq += 14_600
        at += 0.01 + (0.5 if who == "client" else 0)
    found = diagnose(made.write(tmp_path / "quiet.pcap"))
    assert found.refused
    assert not found.causes
    assert found.answer is not None
    assert (found.answer.where, found.answer.sure) == ("application", "sure")
    assert ("it waited for the client to ask" in found.answer.what) == (who == "client")
    assert any("in 3 pauses" in note for note in found.notes)


@pytest.mark.parametrize(
    ("every", "apart", "where"), [(1e-3, 0, "network"), (0, 0.02, "server"), (0, 0.035, "not told")]
)
def test_data_that_comes_steadily_has_passed_a_bottleneck(tmp_path, every, apart, where):
    """500 segments, one every millisecond or in bursts of 20, one burst per round trip or at longer intervals."""
    made, trip = Hand(), 0.02
    of_receiver(made, trip)
    made.add(0.03, 1, 1, 1, 100, 65535, ACK | PSH)
    for n in range(500):
        at = 0.05 + (n * every or n // 20 * apart + n % 20 * 1e-5)
        made.add(at, 0, 1 + 1460 * n, 101, 1460, 65535, ACK, ttl=50)
        made.add(at + 5e-6, 1, 101, 1 + 1460 * (n + 1), 0, 65535, ACK)
    found = diagnose(made.write(tmp_path / "steady.pcap"))
    assert found.answer is not None
    assert found.answer.where == where
    assert ("11.680 Mbit/s" in found.answer.what) == (where == "network")


@pytest.mark.parametrize("lost", [False, True])
def test_what_came_within_a_few_round_trips_was_slow_start_unless_something_was_lost(tmp_path, lost):
    made, trip = Hand(), 0.02
    of_receiver(made, trip)
    made.add(0.03, 1, 1, 1, 100, 65535, ACK | PSH)
    sent = [(0.05 + 1e-5 * n, n) for n in range(10)] + [(0.07 + 1e-5 * n, 10 + n) for n in range(20)]
    sent = [(t, n) for t, n in sent if not (lost and n == 4)] + [(0.09, 4)] * lost
    for t, n in sent:
        made.add(t, 0, 1 + 1460 * n, 101, 1460, 65535, ACK, ttl=50)
        behind = 4 if lost and n >= 4 and t < 0.09 else 30 if t >= 0.09 else n + 1
        made.add(t + 2e-6, 1, 101, 1 + 1460 * behind, 0, 65535, ACK)
    found = diagnose(made.write(tmp_path / "short.pcap"))
    assert found.answer is not None
    assert found.answer.where == ("not told" if lost else "server")


def test_what_came_in_one_flight_would_not_come_sooner_with_a_larger_window(tmp_path):
    made = Hand()
    of_receiver(made, 0.1)
    made.add(0.11, 1, 1, 1, 100, 65535, ACK | PSH)
    for n in range(12):
        made.add(0.21 + 1e-5 * n, 0, 1 + 1460 * n, 101, 1460, 65535, ACK, ttl=50)
        made.add(0.21 + 1e-5 * n + 2e-6, 1, 101, 1 + 1460 * (n + 1), 0, 65535, ACK)
    found = diagnose(made.write(tmp_path / "flight.pcap"))
    assert found.answer is not None
    assert (found.answer.where, found.answer.helps) == ("network", "a shorter way")


def test_a_capture_of_one_direction_says_so(first, tmp_path):
    rows = [row for row in frames(first) if len(row[1]) < row[2]]
    found = diagnose(written(tmp_path / "half.pcap", rows, link_of(first)))
    assert "packets of one direction only" in found.sentence


def test_data_without_acks_at_the_receiver_is_of_one_direction(tmp_path):
    """Regression: a route that differed on the way back left one packet of the other end: "(no median for empty data)"."""
    stamps = b"\1\1\x08\x0a"
    made = Hand()
    made.add(0, 0, 0, 0, 0, 65535, SYN, mss(1460) + stamps + struct.pack(">II", 1000, 0), ttl=60)
    made.add(0.003, 1, 1, 101, 40, 65535, ACK, stamps + struct.pack(">II", 2000, 1000))
    for i in range(40):
        left = stamps + struct.pack(">II", 1000 + 20 * i, 2000 + 20 * i)
        made.add(0.002 + 0.02 * i, 0, 1 + 100 * i, 41, 100, 65535, ACK | PSH, left, ttl=60)
    found = diagnose(made.write(tmp_path / "asymmetric.pcap"))
    assert "packets of one direction only" in found.sentence


@pytest.mark.parametrize("ttl", [(64, 57), (57, 64)])
def test_hops_tell_the_place_where_a_host_answers_late(tmp_path, ttl):
    """With an RTT of 0.1 ms, handshake times do not reveal the capture point."""
    made = Hand()
    made.add(0, 0, 0, 0, 0, 65535, SYN, mss(1460), ttl=ttl[0])
    made.add(6e-5, 1, 0, 1, 0, 65535, SYN | ACK, mss(1460), ttl=ttl[1])
    made.add(1e-4, 0, 1, 1, 0, 65535, ACK, ttl=ttl[0])
    for i in range(20):
        made.add(2e-3 * (i + 1), 0, 1 + 1460 * i, 1, 1460, 65535, ACK, ttl=ttl[0])
        made.add(2e-3 * (i + 1) + 8e-5, 1, 1, 1 + 1460 * (i + 1), 0, 65535, ACK, ttl=ttl[1])
    row = read_capture(made.write(tmp_path / "near.pcap")).with_data().row(0, named=True)
    assert row["captured_at"] == ("client" if ttl[0] == 64 else "server")
