"""Tests for scenarios exported as ip, tc and iperf3 scripts: their content, and that a kernel accepts them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import ackclock
from ackclock import linux
from ackclock.cli import main
from ackclock.errors import ScenarioError, UnavailableError
from ackclock.formats import read, tc

SCENARIOS = Path(__file__).parents[3] / "scenarios"
TOOLS = ("bash", "ip", "tc", "ss", "iperf3")


def scenario(**network: object) -> ackclock.Scenario:
    link = {"rate": "8 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "30 packets"}}
    plain = {
        "duration": "3 s",
        "network": {"bottleneck": {**link, **network}},
        "flows": [{"congestion_control": "reno"}],
    }
    return ackclock.Scenario.from_dict(plain)


def disciplines(text: str) -> list[str]:
    return [line.partition("dev ")[2] for line in text.splitlines() if line.startswith("tc ")]


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_is_a_script_or_says_why_not(file):
    loaded = ackclock.load(file)
    if not any(group.workload.kind in tc.WORKLOADS and "pcc" not in group.congestion_control for group in loaded.flows):
        with pytest.raises(ScenarioError, match="found no workload that iperf3 can do"):
            tc.export(loaded)
        return
    if loaded.network.topology == "graph":
        with pytest.raises(ScenarioError, match='found "graph", whose links have no places'):
            tc.export(loaded)
        return
    made = tc.export(loaded)
    subprocess.run(["bash", "-n"], input=made.text, text=True, check=True)
    for line in made.missing:
        assert f"# no counterpart: {line}\n" in made.text
    wires = re.findall(r"ip link add (w\d+)l netns (\S+) type veth peer name w\d+r netns (\S+)", made.text)
    nodes = set(re.findall(r"^NODES='(.*)'", made.text, re.M)[0].split())
    assert {node.removeprefix("ack-") for _, *ends in wires for node in ends} == nodes
    assert all(len(f"ack-{node}") < 64 for node in nodes)
    clients = [line for line in made.text.splitlines() if line.startswith("flow ")]
    assert len(clients) == made.text.count("iperf3 -s -1 -p")


def test_a_link_is_a_row_of_disciplines():
    made = tc.export(scenario())
    assert made.missing == ()
    assert disciplines(made.text) == [
        "w0l root netem limit 31 rate 8000000bit -14",
        "w0r root netem limit 1000000 delay 10000us",
        "w1l root netem limit 1000000 delay 10000us",
        "w1r root netem limit 31 rate 8000000bit -14",
    ]


def test_loss_stands_before_the_queue_and_delay_behind_it():
    queue = {"kind": "fq-codel", "limit": "100 packets"}
    loss = {"kind": "gilbert-elliott", "p": "0.5 %", "r": "20 %", "loss_bad": "80 %"}
    forward = [line for line in disciplines(tc.export(scenario(queue=queue, loss=loss)).text) if "l " in line[:4]]
    assert forward[0] == "w0l root netem limit 1000000 loss gemodel 0.5% 20% 80% 0%"
    assert forward[1].startswith("w1l root handle 1: stab overhead -14 linklayer ethernet htb default 1")
    assert forward[2].startswith("w1l parent 1: classid 1:1 htb rate 8000000bit ceil 8000000bit")
    assert "fq_codel limit 100 flows 1024 quantum 1514 target 5000us interval 100000us noecn" in forward[3]
    assert forward[4] == "w2l root netem limit 1000000 delay 10000us rate 8000000bit -14"


@pytest.mark.parametrize(
    ("queue", "leaf"),
    [
        ({"kind": "codel"}, "codel limit 1000000 target 5000us interval 100000us noecn"),
        (
            {
                "kind": "fq-codel",
                "limit": "100 packets",
                "ecn": True,
                "ce_threshold": "1 ms",
                "ce_threshold_for": "l4s",
            },
            "interval 100000us ecn ce_threshold 1000us ce_threshold_selector 0x1/0x3",
        ),
        (
            {"kind": "dualpi2", "limit": "500 packets", "step_from": 2},
            "dualpi2 limit 500 coupling_factor 2 step_thresh 1000us min_qlen_step 2 drop_on_overload drop_dequeue l4s_ect "
            "classic_protection 10% target 15000us tupdate 16000us alpha 0.160156 beta 3.19922",
        ),
        ({"kind": "pie", "ecn": True}, "pie limit 1000000 target 15000us tupdate 15000us ecn"),
        ({"kind": "drop-tail", "limit": "30 kB"}, "bfifo limit 30000"),
        ({"kind": "cake"}, "cake unlimited besteffort triple-isolate rtt 100000us no-split-gso"),
        (
            {"kind": "red", "limit": "60 packets", "min": "5 packets", "max": "15 packets", "weight": 2**-9},
            "red limit 90840 min 7570 max 22710 probability 0.1 avpkt 1514 burst",
        ),
    ],
)
def test_queues_have_their_disciplines(queue, leaf):
    assert any(leaf in line for line in disciplines(tc.export(scenario(queue=queue)).text))


@pytest.mark.parametrize("wlog", [3, 7, 9])
def test_tc_comes_to_the_weight_of_red(wlog):
    """The expected weight is computed from the burst in the script, as in tc (tc_red.c)."""
    queue = {"kind": "red", "limit": "60 packets", "min": "5 packets", "max": "15 packets", "weight": 2.0**-wlog}
    text, least = tc.export(scenario(queue=queue)).text, 7570 / 1514
    burst = int(re.search(r"min 7570 .* burst (\d+) bandwidth 8000000bit", text)[1])
    found = next(w for w in range(1, 32) if burst + 1 - least <= (1 - (1 - 2.0**-w) ** burst) * 2.0**w)
    assert found == wlog


def test_what_has_no_counterpart_is_said_in_a_line_each(tmp_path, capsys):
    asked = scenario(jitter="2 ms", loss={"kind": "periodic", "every": 100}).set_all(
        {"flows.0.recovery": "rate-halving", "flows.0.profile": "linux-3.2", "flows.0.stack.hz": 250}
    )
    made = tc.export(asked)
    assert [line.split(":")[0] for line in made.missing] == [
        "flows.0.recovery",
        "flows.0.profile",
        "flows.0.stack.hz",
        "network.bottleneck.jitter",
        "network.bottleneck.loss.kind",
    ]
    file = tmp_path / "s.toml"
    file.write_text(asked.to_toml())
    assert main(["export", str(file), "--as", "tc", "--out", str(tmp_path / "s.sh")]) == 0
    assert capsys.readouterr().err.splitlines() == [f"no counterpart: {line}" for line in made.missing]
    assert (tmp_path / "s.sh").read_text() == made.text


def test_hosts_are_set_as_the_flows_ask():
    flow = {
        "congestion_control": "bbr",
        "start": "2 s",
        "stop": "3500 ms",
        "workload": {"kind": "transfer", "bytes": "5 MB"},
    }
    flow["stack"] = {"initial_window": 4, "min_rto": "300 ms", "sack": False, "smss": "1000 bytes"}
    made = tc.export(ackclock.Scenario.from_dict({**scenario().to_dict(), "duration": "5 s", "flows": [flow]}))
    assert made.missing == ()
    assert "ip netns exec ack-s0 sysctl -qw net.ipv4.tcp_sack=0" in made.text
    assert re.search(r"ip -n ack-s0 route add 10\.1\.0\.1 .* initcwnd 4 rto_min lock 300ms", made.text)
    assert "flow 2 31.5 s0 10.1.0.1 5201 0 -J -i 0.1 -C bbr -M 1012 -n 5000000" in made.text


def test_a_graph_has_no_places():
    links = [{"name": "a", "rate": "1 Mbit/s"}]
    network = {"topology": "graph", "links": links, "paths": [{"name": "p", "forward": ["a"], "backward": ["a"]}]}
    with pytest.raises(ScenarioError, match=r"network\.topology: found \"graph\""):
        tc.export(ackclock.Scenario.from_dict({"duration": "1 s", "network": network, "flows": [{}]}))


@pytest.mark.long
@pytest.mark.parametrize("queue", ["drop-tail", "fq-codel"])
def test_a_kernel_accepts_the_script_and_iperf3_gets_what_the_bottleneck_carries(tmp_path, queue):
    """The linux backend's kernel mounts this system as its root, because the system's own kernel may lack netem."""
    lacking = [name for name in TOOLS if shutil.which(name) is None]
    if lacking:
        pytest.skip(f"{lacking[0]} is not installed")
    try:
        installed = linux.installed()
    except UnavailableError as error:
        pytest.skip(str(error))
    asked = scenario(queue={"kind": queue, "limit": "30 packets"})
    (tmp_path / "net.sh").write_text(tc.export(asked).text)
    boot = tmp_path / "boot"
    boot.write_text(
        "#!/bin/bash\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
        "mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run; mount -t tmpfs tmp /var/tmp; ip link set lo up\n"
        f"bash {tmp_path}/net.sh {tmp_path}/out >{tmp_path}/log 2>&1 </dev/null; echo rc $? >>{tmp_path}/log; sync\n"
    )
    boot.chmod(0o755)
    kernel = [str(installed.path), "mem=512M", "umid=net", f"uml_dir={tmp_path}/", "root=/dev/root"]
    kernel += [
        "rootfstype=hostfs",
        "rootflags=/",
        "rw",
        f"init={boot}",
        "con=null",
        "con0=null,fd:1",
        "quiet",
        "panic=-1",
    ]
    kernel += ["ipv6.disable=1", "time-travel", "time-travel-start=1700000000000000000"]
    subprocess.run(kernel, timeout=300, capture_output=True, check=False)  # ends with a panic: its only program exits
    log = (tmp_path / "log").read_text()
    assert log.endswith(f"written: {tmp_path}/out\nrc 0\n"), log
    told = json.loads((tmp_path / "out" / "flow-0.json").read_text())
    got = told["end"]["sum_received"]["bits_per_second"]
    ours = ackclock.run(asked).flows["goodput_bps"][0]
    assert got == pytest.approx(ours, rel=0.15)
    assert 0.02 <= read(tmp_path / "out" / "flow-0.json").samples["srtt_s"].min() < 0.08
    assert read(tmp_path / "out" / "ss-s0.txt").flows == ("reno",)


@pytest.mark.parametrize("width", ["40", "80"])
def test_a_scenario_on_standard_output_is_not_wrapped(width, tmp_path, monkeypatch, capsys):
    """Regression: `import tc x.sh > x.toml` broke lines within tables, which TOML does not allow."""
    monkeypatch.setenv("COLUMNS", width)
    script = tmp_path / "x.sh"
    assert main(["export", "first", "--as", "tc", "--out", str(script)]) == 0
    capsys.readouterr()
    assert main(["import", "tc", str(script)]) == 0
    file = tmp_path / "x.toml"
    file.write_text(capsys.readouterr().out)
    assert ackclock.load(file).network.bottleneck.rate == "10 Mbit/s"
