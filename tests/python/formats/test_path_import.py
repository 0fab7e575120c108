"""Tests for path recordings as scenarios: each format as documented by its authors, and the results of a run over such a path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ackclock
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.formats._recordings import FORMS, form_of, read
from ackclock.formats.path_import import make

IRTT = {
    "round_trips": [
        {
            "seqno": n,
            "lost": lost,
            "timestamps": {"client": {"send": {"wall": 10**18 + n * 10**7, "monotonic": n * 10**7}}},
            "delay": {} if lost != "false" else {"rtt": 50_000_000, "send": send, "receive": 50_000_000 - send},
        }
        for n, (lost, send) in enumerate(
            [("false", 30_000_000), ("false", 32_000_000), ("true_up", 0), ("true_down", 0), ("false", 31_000_000)]
        )
    ]
}
SUMS = [(0, 1, 9e6), (1, 2, 0.0), (2, 2.5, 3.5e6)]
IPERF3 = {
    "start": {},
    "intervals": [{"streams": [], "sum": {"start": a, "end": b, "bits_per_second": rate}} for a, b, rate in SUMS],
    "end": {},
}

TEXTS: dict[str, str] = {
    "mahimahi": "".join(f"{n}\n" for n in range(1, 1001)),
    "delays": "24\n18\n18\n30\n",
    "cellreplay": "0 25 0 1 2 3\n100 27 0 0 1\n200 31 0 1 1\n",
    "rates": "0.0 3.2\n1.0 0\n2.5 12\n",
    "norway": "1289406399 549893 59.851754 10.781778 250000 1000\n1289406400 550893 59.851754 10.781778 50000 500\n",
    "fcc": "unit_id,dtime,target,bytes_sec\n7,2022-01-01 00:00:00,a,1000000\n8,2022-01-01 00:00:00,a,5\n7,2022-01-01 01:00:00,a,250000\n",
    "g-nettrack": "Timestamp,State,DL_bitrate,UL_bitrate\n2019.12.14_10.16.30,D,8000,500\n2019.12.14_10.16.31,D,9000,-\n2019.12.14_10.16.32,D,7000,100\n",
    "irtt": json.dumps(IRTT),
    "lens": (
        "timestamp,rtt,uplink,downlink\n1705744800000000000,0,0,-1\n1705744800010000000,120,72.5,47.5\n"
        "1705744800020000000,110,62.5,47.5\n1705744800030000000,0,-1,0\n"
    ),
    "ping": "PING 192.0.2.1\n"
    + "".join(f"64 bytes from 192.0.2.1: icmp_seq={n} ttl=63 time=60.{n} ms\n" for n in (1, 2, 4, 5)),
    "iperf3": json.dumps(IPERF3),
}

EXPECTED: dict[str, tuple[float, dict[str, Any]]] = {
    "delays": (0.04, {"egress": [("0 s", "24 ms"), ("10 ms", "18 ms"), ("30 ms", "30 ms")]}),
    "cellreplay": (0.3, {"egress": [("0 s", "25 ms"), ("100 ms", "27 ms"), ("200 ms", "31 ms")]}),
    "rates": (4.0, {"bottleneck": [("0 s", "3200 kbit/s"), ("1 s", "0 Gbit/s"), ("2500 ms", "12 Mbit/s")]}),
    "norway": (1.5, {"bottleneck": [("0 s", "2 Mbit/s"), ("1 s", "800 kbit/s")]}),
    "fcc": (10.0, {"bottleneck": [("0 s", "8 Mbit/s"), ("5 s", "2 Mbit/s")]}),
    "g-nettrack": (
        3.0,
        {
            "bottleneck": [("0 s", "8 Mbit/s"), ("1 s", "9 Mbit/s"), ("2 s", "7 Mbit/s")],
            "reverse.bottleneck": [("0 s", "500 kbit/s"), ("2 s", "100 kbit/s")],
        },
    ),
    "iperf3": (2.5, {"bottleneck": [("0 s", "9 Mbit/s"), ("1 s", "0 Gbit/s"), ("2 s", "3500 kbit/s")]}),
    "irtt": (
        0.05,
        {
            "egress": [("0 s", "20 ms"), ("10 ms", "18 ms"), ("40 ms", "19 ms")],
            "reverse.egress": [("0 s", "30 ms"), ("10 ms", "32 ms"), ("40 ms", "31 ms")],
        },
    ),
    "lens": (
        0.04,
        {
            "egress": [("0 s", "47500 us")],
            "reverse.egress": [("0 s", "72500 us"), ("20 ms", "62500 us")],
        },
    ),
    "ping": (
        5.0,
        {"egress": [("0 s", "30050 us"), ("1 s", "30100 us"), ("3 s", "30200 us"), ("4 s", "30250 us")]},
    ),
}


def steps(network: dict[str, Any], where: str) -> list[tuple[str, str]]:
    for key in where.split("."):
        network = network[key]
    made = network["capacity"]["steps"]
    return [(step["at"], step.get("rate", step.get("delay"))) for step in made if set(step) != {"at", "loss"}]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_known_by_its_first_lines(form):
    assert form_of(TEXTS[form]) == form


@pytest.mark.parametrize("form", EXPECTED)
def test_each_value_is_a_step(form):
    length, links = EXPECTED[form]
    recording = read(TEXTS[form])
    assert recording.length_s == pytest.approx(length)
    made = make([(Path("a"), recording)])
    network = made.scenario.to_dict()["network"]
    for where, expected in links.items():
        assert steps(network, where) == expected
        link = network
        for key in where.split("."):
            link = link[key]
        assert link["capacity"]["repeat"] == made.scenario.duration
    ackclock.run(made.scenario.set("duration", "500 ms"))


def test_losses_of_probes_are_shares_of_each_second():
    def share(form: str, where: str) -> float:
        link = make([(Path("a"), read(TEXTS[form]))]).scenario.to_dict()["network"]
        for key in where.split("."):
            link = link[key]
        return next(step["loss"] for step in link["capacity"]["steps"] if step.get("loss"))

    assert share("irtt", "reverse.egress") == pytest.approx(1 / 5)
    assert share("irtt", "egress") == pytest.approx(1 / 4)  # fraction of the packets that reach this link
    assert share("lens", "egress") == pytest.approx(1 / 3)
    # the third second's only probe was lost: assumed lost in each direction
    assert share("ping", "egress") == pytest.approx(1.0)


def test_upward_turns_the_path_round():
    recording = read(TEXTS["g-nettrack"])
    there, back = (make([(Path("a"), recording)], upward=up).scenario.to_dict()["network"] for up in (False, True))
    assert there["bottleneck"] == back["reverse"]["bottleneck"]
    assert there["reverse"]["bottleneck"] == back["bottleneck"]


def test_a_recorded_delay_is_what_packets_meet(tmp_path):
    """LeoReplayer's two files: 10 ms delays, and delivery opportunities at 12 Mbit/s."""
    (tmp_path / "bw.txt").write_text(TEXTS["mahimahi"])
    delays = [20 if n // 50 % 2 == 0 else 60 for n in range(100)]
    (tmp_path / "delay.txt").write_text("".join(f"{delay}\n" for delay in delays))
    out = tmp_path / "made.toml"
    command = ["import", "path", str(tmp_path / "bw.txt"), str(tmp_path / "delay.txt"), "--out", str(out)]
    assert main(command) == 0
    scenario = ackclock.load(out).set("duration", "4 s")
    scenario = scenario.set("flows.0.workload", {"kind": "constant-rate", "rate": "1 Mbit/s", "payload": "1000 bytes"})
    (row,) = ackclock.run(scenario).rows("datagrams")
    assert row["mean_delay_s"] == pytest.approx(0.04, abs=0.004)
    bulk = (
        ackclock.load(out)
        .set("duration", "10 s")
        .set("network.bottleneck.queue", {"kind": "drop-tail", "limit": "50 packets"})
    )
    (flow,) = ackclock.run(bulk).rows("flows")
    assert 6e6 < flow["goodput_bps"] < 11.6e6


def test_of_two_files_of_one_form_the_second_is_the_way_back():
    made = make([(Path("a"), read("24\n18\n", name="delay_1.txt")), (Path("b"), read("44\n48\n1\n"))])
    network = made.scenario.to_dict()["network"]
    assert steps(network, "egress") == [("0 s", "24 ms"), ("10 ms", "18 ms")]
    assert steps(network, "reverse.egress") == [("0 s", "44 ms"), ("10 ms", "48 ms")]
    with pytest.raises(InputError, match="found delays that another file has"):
        make([(Path(name), read("24\n18\n", name="delay_1.txt")) for name in "abc"])


def test_medians_of_intervals_are_fewer_steps():
    text = "".join(f"{20 + n % 3}\n" for n in range(1000))
    fine, coarse = (make([(Path("a"), read(text))], every_ns=every) for every in (0, 10**9))
    assert len(steps(fine.scenario.to_dict()["network"], "egress")) == 1000
    assert coarse.scenario.to_dict()["network"]["egress"]["delay"] == "21 ms"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "none of the forms"),
        ("hello world and more\nthan this\n", "none of the forms"),
        ("0 3\n1 -4\n", 'line 2: found "-4"; allowed: a number from 0'),
        ("0 3\n1 nan\n", 'line 2: found "nan"'),
        ("0 3\n1 x\n", 'line 2: found "x"'),
        ("3 3\n1 4\n2 4\n", "times that go back"),
        ("{", "no JSON"),
        ('{"qlog_version": "0.3", "traces": []}', "JSON of another program; allowed: that of iperf3 -J or of irtt"),
        ('{"intervals": 3}', "no recording of the form iperf3"),
        ('{"error": "unable to connect"}', "iperf3's error"),
        ('{"round_trips": [{"lost": "x"}]}', "no recording of the form irtt"),
        ("timestamp,rtt\n", "nothing measured"),
        ("PING 192.0.2.1\n", "nothing measured"),
        (
            "64 bytes from a: icmp_seq=1 time=1 ms\n64 bytes from a: icmp_seq=999999999 time=1 ms\n",
            "999,999,999 probes",
        ),
        ("64 bytes from a: icmp_seq=1 time=1.2.3 ms\n", "nothing measured"),
        (json.dumps(IPERF3).replace("9000000.0", "NaN"), "a rate of"),
        (json.dumps(IRTT).replace("30000000", "1e300"), "a recording of 1e+291 s"),
        ("timestamp,rtt,uplink,downlink\n1,1e999,0,0\n2,1,1,1\n", "a delay of inf"),
    ],
)
def test_what_is_no_recording_is_refused(text, said):
    with pytest.raises(InputError, match=r"allowed: ") as refused:
        read(text)
    assert said in str(refused.value)


def test_iperf3s_stream_of_lines_is_the_same_recording():
    """Regression: `--json-stream` was refused, although `--beside` reads it."""
    lines = [{"event": "start", "data": IPERF3.get("start", {})}]
    lines += [{"event": "interval", "data": one} for one in IPERF3["intervals"]]
    stream = "".join(json.dumps(line) + "\n" for line in lines)
    assert read(stream).both == read(json.dumps(IPERF3)).both
    with pytest.raises(InputError, match="iperf3's error"):
        read('{"event": "error", "data": "unable to connect"}\n')


def test_the_command_says_what_it_read_and_what_it_refuses(tmp_path, capsys):
    file = tmp_path / "rates"
    file.write_text(TEXTS["rates"])
    assert main(["import", "path", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "not recorded: losses: there are none" in out
    assert "rates, rates: 4 s; rates 0 / 3.2 / 12 (5 / 50 / 95 %) Mbit/s" in " ".join(err.split())
    for wrong in (
        ["tc", str(file), "--every", "1s"],
        ["path", str(file), "--forward", "eth0"],
        ["tc", str(file), str(file)],
        ["path", str(file), "--form", "nonsense"],
        ["path", str(file), "--every", "0"],
        ["path", str(file), "--form", "ping"],
    ):
        assert main(["import", *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1


PINGS = {
    "linux": (
        "PING a (192.0.2.1) 56(84) bytes of data.\n64 bytes from a (192.0.2.1): icmp_seq=1 ttl=63 time=20.5 ms\n"
        "64 bytes from a (192.0.2.1): icmp_seq=3 ttl=63 time=21 ms\n\n--- a ping statistics ---\n5 packets transmitted, 2 received, 60% packet loss, time 4005ms\n",
        [20.5, 21.0], [False, True, False, True, True],
    ),
    "linux -O": (
        "PING a (192.0.2.1) 56(84) bytes of data.\n[1700000000.5] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=63 time=20,5 ms\n"
        "[1700000002.5] no answer yet for icmp_seq=2\n",
        [20.5], [False, True],
    ),
    "macos": (
        "PING 192.0.2.1 (192.0.2.1): 56 data bytes\n64 bytes from 192.0.2.1: icmp_seq=0 ttl=117 time=14.123 ms\nRequest timeout for icmp_seq 1\n"
        "Request timeout for icmp_seq 2\n\n--- 192.0.2.1 ping statistics ---\n4 packets transmitted, 1 packets received, 75.0% packet loss\n",
        [14.123], [False, True, True, True],
    ),
    "busybox": (
        "PING 192.0.2.1 (192.0.2.1): 56 data bytes\n64 bytes from 192.0.2.1: seq=0 ttl=64 time=0.543 ms\n64 bytes from 192.0.2.1: seq=2 ttl=64 time=0.6 ms\n",
        [0.543, 0.6], [False, True, False],
    ),
    "windows": (
        "\r\nPinging a.example [192.0.2.1] with 32 bytes of data:\r\nReply from 192.0.2.1: bytes=32 time=14ms TTL=117\r\nRequest timed out.\r\n"
        "Reply from 192.0.2.9: Destination host unreachable.\r\nReply from 192.0.2.1: bytes=32 time<1ms TTL=117\r\n\r\n"
        "Ping statistics for 192.0.2.1:\r\n    Packets: Sent = 4, Received = 2, Lost = 2 (50% loss),\r\n",
        [14.0, 0.5], [False, True, True, False],
    ),
    "windows in German": (
        "\r\nPing wird ausgeführt für 192.0.2.1 mit 1400 Bytes Daten:\r\nZeitüberschreitung der Anforderung.\r\n"
        "Antwort von 192.0.2.1: Bytes=1400 Zeit=15ms TTL=57\r\n\r\nPing-Statistik für 192.0.2.1:\r\n    Pakete: Gesendet = 2, Empfangen = 1, Verloren = 1\r\n",
        [15.0], [True, False],
    ),
    "windows in French, broken off": (
        "Envoi d'une requête 'Ping'  192.0.2.1 avec 32 octets de données :\nRéponse de 192.0.2.1 : octets=32 temps=8 ms TTL=255\n"
        "Délai d'attente de la demande dépassé.\nControl-C\nPaquets : envoyés = 2, reçus = 1, perdus = 1 (perte 50%)\n",
        [8.0], [False, True],
    ),
}  # fmt: skip


@pytest.mark.parametrize("system", PINGS)
def test_ping_of_each_system(system):
    text, rtts, lost = PINGS[system]
    assert form_of(text) == "ping"
    both = read(text).both
    assert [2000 * delay for _, delay in both.delays] == pytest.approx(rtts)
    assert [gone for _, gone in both.probes] == lost
    ackclock.run(make([(Path("a"), read(text))]).scenario.set("duration", "200 ms"))


def test_the_model_of_a_recording_names_its_source():
    file = Path(__file__).parents[3] / "examples" / "paths" / "starlink-2025.toml"
    head = [line for line in file.read_text().splitlines() if line.startswith("#")]
    for word in ("source", "licence", "known", "bounded", "guessed", "fit"):
        assert any(line.startswith(f"# {word}: ") for line in head)
    scenario = ackclock.load(file).set_all({"duration": "26 s", "record": {"performance": True}})
    run = ackclock.run(scenario)
    assert 30e6 < run.flows["goodput_bps"][0] < 60e6
    assert run.flows["min_rtt_s"][0] >= 0.021
