"""Tests that captures written by `run --pcap` can be read back, and that the reader's results agree with the run."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT

import ackclock
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.formats import read
from ackclock.formats.capture import Capture, read_capture


def captured(folder: Path, name: str, at: str = "sender", seed: int = 1) -> tuple[ackclock.Run, Capture, Path]:
    path = folder / f"{name}.pcapng"
    run = ackclock.run(ackclock.load(name), seed=seed, pcap=path, pcap_at=at, snaplen=96)  # type: ignore[arg-type]
    return run, read_capture(path), path


def data(found: Capture) -> pl.DataFrame:
    """Return the directions sent by the measured hosts, those with a sender's address."""
    return found.with_data().filter(pl.col("from_address").str.starts_with("10.0."))


def agrees(run: ackclock.Run, found: Capture) -> None:
    sums = data(found).select(pl.col("retransmitted", "spurious", "lost").sum()).row(0, named=True)
    assert sums["retransmitted"] == run.flows["retransmissions"].sum()
    assert sums["lost"] + sums["spurious"] == sums["retransmitted"]
    assert found.connections["unseen_bytes"].sum() == 0


def test_losses_of_a_list(tmp_path):
    run, found, path = captured(tmp_path, "scripted-loss")
    agrees(run, found)
    row = found.with_data().row(0, named=True)
    assert (row["lost"], row["spurious"], row["segments"]) == (10, 0, 31)
    assert (row["way"], row["captured_at"]) == ("client", "client")
    assert min(row["handshake_rtt_s"], row["rtt_min_s"]) == pytest.approx(run.flows["min_rtt_s"][0], abs=1e-9)
    packets = read_capture(path, connection=0).packets
    assert packets is not None
    assert packets.filter(pl.col("kind") == "retransmission").height == 10


def test_what_was_sent_for_nothing(tmp_path):
    """A link delays packets, and the run's own DSACK counts are the reference."""
    run, found, _ = captured(tmp_path, "radio-link")
    agrees(run, found)
    assert data(found)["spurious"].sum() == run.flows["dsacks"].sum() > 10


def test_at_the_other_end(tmp_path):
    """Losses before the capture point are detected by the timestamps of the retransmissions."""
    _, found, _ = captured(tmp_path, "scripted-loss", at="receiver")
    row = found.with_data().row(0, named=True)
    assert (row["retransmitted"], row["reordered"], row["unseen_bytes"], row["captured_at"]) == (10, 0, 0, "server")


SHIPPED = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))


@pytest.mark.deep
@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_scenario(tmp_path, name):
    run, found, _ = captured(tmp_path, name)
    udp = "quinn" in (ROOT / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")
    if found.facts["segments"] and not udp:  # PCC and QUIC use UDP
        agrees(run, found)


def test_anonymised(tmp_path):
    _, _, path = captured(tmp_path, "scripted-loss")
    row = read_capture(path, anonymise=True).with_data().row(0, named=True)
    assert (row["from_address"], row["to_address"], row["from_port"]) == ("10.0.0.1", "10.0.0.2", 1)


def test_beside_a_run(tmp_path):
    run, _, path = captured(tmp_path, "first")
    beside = read(path)
    assert (beside.kind, beside.flows) == ("capture", ("client 0",))
    assert beside.samples["retransmissions"].max() == run.flows["retransmissions"][0]
    assert beside.goodput["goodput_bps"].mean() == pytest.approx(run.flows["goodput_bps"][0], rel=0.01)
    assert (
        beside.samples["in_flight"].max() == pytest.approx(run.acks["in_flight"].max(), abs=2)
        if run.acks.height
        else True
    )


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["read", *arguments])
    return (code, *capsys.readouterr())


def test_the_command(tmp_path, capsys):
    _, _, path = captured(tmp_path, "scripted-loss")
    graph, table = tmp_path / "graph.svg", tmp_path / "packets.csv"
    code, said, err = call(capsys, str(path), "--plot", str(graph))
    assert code == 0, err
    assert ", 1 connection\n" in said
    assert "captured: at the client, the sender" in said
    assert "Mbit/s: from the first data to the last" in " ".join(said.split())
    assert "sent again" in graph.read_text()
    code, said, err = call(capsys, str(path), "--connection", "0", "--csv", str(table))
    assert code == 0, err
    assert table.read_text().splitlines()[0] == "t_s,from_server,kind,seq,length,ack,window,flags,timestamp,echo,ip_id"
    code, said, err = call(capsys, str(path), "--json")
    assert json.loads(said)["connections"][0]["lost"] == 10


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "found an empty file"),
        (b'{\n "qlog_version": "0.3"', "found JSON, as iperf3, qlog and flent write it; allowed: a capture"),
        (b"\x1e{}\n", "found JSON"),
        (b"PK\x03\x04....", "begins with 0x504b0304; allowed: a capture, pcap or pcapng"),
        (
            struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack("<4I", 0, 0, 2**31, 2**31),
            "frame 1: found 2147483648 captured bytes",
        ),
    ],
    ids=["empty", "log", "log of records", "zip", "length"],
)
def test_what_is_no_capture(tmp_path, capsys, content, says):
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_capture(path)
    code, said, err = call(capsys, str(path))
    assert (code, said) == (2, "")
    assert err.startswith(f"ackclock: {path}: ")
    assert err.count("\n") == 1


@pytest.mark.promise("P11")
def test_a_pipe_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "x.pcap")
    with pytest.raises(InputError, match="found no plain file"):
        read_capture(tmp_path / "x.pcap")


def test_no_such_connection(tmp_path):
    _, _, path = captured(tmp_path, "scripted-loss")
    with pytest.raises(InputError, match="found connection 1; allowed: 0"):
        read_capture(path, connection=1)
