"""Tests for the linux backend: its host side with scripts in place of kernels, and the real kernel, if built.
Length: one script that acts as a kernel serves all tests.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ackclock
from ackclock import linux
from ackclock.cli import main
from ackclock.errors import InputError, ScenarioError, UnavailableError
from ackclock.linux import _build, _cache, _guest, _source, _translate
from ackclock.linux._facts import Has

CONTROLLERS = ["bbr", "cubic", "cubic_prr_crb", "cubic_rh", "reno"]
KERNEL = Has(release="7.3.4", controllers=tuple(CONTROLLERS))
ROOT = Path(__file__).resolve().parents[3]

TABLES = r"""
import json, struct
raw = struct.pack("<2I", 0, 1) + struct.pack("<2Q", 7, 8)
names = ["x", "y"]
index = json.dumps({"samples": [["flow", "u4", 0, 8, None], ["bytes_acked", "i8", 8, 16, None]],
                    "links": [["name", "str", 0, 8, names]]}).encode()
open("out/tables.bin", "wb").write(struct.pack("<Q", len(index)) + index + raw)
open("out/report.json", "w").write('{"error": null}')
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ackclock" / "linux"


@pytest.fixture
def fake(cache: Path) -> Any:
    """Install a Python program as the kernel."""

    def install(program: str) -> None:
        place = cache / "kernel-fake"
        place.mkdir(parents=True)
        (place / "linux").write_text(f"#!{sys.executable}\n{program}")
        (place / "linux").chmod(0o755)
        (place / "kernel.json").write_text(json.dumps({"release": "0.0", "controllers": CONTROLLERS, "seccomp": True}))
        (cache / "current").write_text("kernel-fake\n")
        (cache / f"guest-{_cache.guest_key()}").write_bytes(b"")

    return install


@pytest.fixture
def scenario(minimal: dict[str, Any]) -> ackclock.Scenario:
    return ackclock.Scenario.from_dict(minimal)


def test_without_a_kernel_the_command_says_so_and_the_rest_works(cache: Path, scenario_file: Path) -> None:
    call = [sys.executable, "-m", "ackclock", "run", str(scenario_file)]
    plain = subprocess.run(call, capture_output=True, text=True, check=False)
    assert plain.returncode == 0
    asked = subprocess.run([*call, "--backend", "linux"], capture_output=True, text=True, check=False)
    assert asked.returncode == 3
    assert asked.stderr.splitlines() == [
        "ackclock: no Linux kernel for the linux backend; run `ackclock linux build`, which needs what `ackclock doctor` lists"
    ]
    assert any("no Linux kernel" in finding.what for finding in linux.missing())


def test_tables_of_the_guest_become_the_simulators(fake: Any, scenario: ackclock.Scenario) -> None:
    fake(TABLES)
    result = linux.run(scenario, seed=3)
    assert result.samples["bytes_acked"].to_list() == [7, 8]
    assert result.samples["cwnd"].to_list() == [None, None]
    assert result.links["name"].to_list() == ["x", "y"]
    assert list(result.flows.columns) == list(ackclock.run(scenario).flows.columns)
    assert result.provenance["seeds"] == [3]
    batch = linux.run_batch(scenario, [5, 4], jobs=2)
    assert batch.samples["seed"].to_list() == [5, 5, 4, 4]
    assert batch.digests[0] == batch.digests[1] == result.digest


def test_the_guest_gets_the_job_the_seed_and_a_constant_command_line(
    fake: Any, scenario: ackclock.Scenario, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    fake(
        f"import os, sys, json\nopen({str(note)!r}, 'w').write(json.dumps([sys.argv[1:], os.environ['UML_RNG_SEED'],"
        f" json.load(open('job.json'))['seed'], sorted(os.listdir('.')), len(os.sched_getaffinity(0))]))\n{TABLES}"
    )
    linux.run(scenario, seed=9)
    arguments, seed, job_seed, files, cpus = json.loads(note.read_text())
    assert (seed, job_seed, cpus) == ("9", 9, 1)
    assert {"dev", "init", "job.json", "out", "proc", "sys"} <= set(files)
    assert not any(str(tmp_path) in argument for argument in arguments)


def _lives(pid: str) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_guest_that_never_ends_is_ended_and_leaves_nothing(
    fake: Any, scenario: ackclock.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("ackclock.linux._guest.GRACE_S", 0.1)
    note = tmp_path / "pids"
    fake(
        "import os, signal, subprocess, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"child = subprocess.Popen(['sleep', '1000'])\nopen({str(note)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(1000)"
    )
    with pytest.raises(UnavailableError, match=r"did not end within 1 s of wall-clock time .* --wall-limit$"):
        linux.run(scenario, wall_limit_s=1)
    deadline = time.monotonic() + 10  # a killed process dies when it is scheduled
    while any(_lives(pid) for pid in note.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not list(tmp_path.glob("ackclock-guest-*"))


def test_a_guest_ends_with_the_process_that_started_it(fake: Any, scenario_file: Path, tmp_path: Path) -> None:
    """After SIGKILL the process has no time to end its guest."""
    note = tmp_path / "pids"
    fake(
        "import os, subprocess, time\nchild = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(note)!r} + '~', 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(note)!r} + '~', {str(note)!r})\ntime.sleep(1000)"
    )
    call = [sys.executable, "-m", "ackclock", "run", str(scenario_file), "--backend", "linux"]
    with subprocess.Popen(call, env={**os.environ, "TMPDIR": str(tmp_path)}) as killed:
        deadline = time.monotonic() + 60
        while not note.exists():
            assert killed.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert all(_lives(pid) for pid in note.read_text().split())
        killed.kill()
    deadline = time.monotonic() + 10
    while any(_lives(pid) for pid in note.read_text().split()) or list(tmp_path.glob("ackclock-guest-*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('Kernel panic - not syncing: no init')", "the guest ended without a report; it said: Kernel panic"),
        ("raise SystemExit(1)", "the guest ended without a report; it said: nothing"),
        (
            "open('out/report.json', 'w').write('{\"error\": \"veth: no such device\"}')",
            "the guest reports: veth: no such",
        ),
    ],
)
def test_a_guest_that_fails_is_told_in_a_line(
    fake: Any, scenario: ackclock.Scenario, program: str, message: str
) -> None:
    fake(program)
    with pytest.raises(UnavailableError, match=message) as told:
        linux.run(scenario)
    assert "\n" not in str(told.value)


def test_an_evaluation_whose_guest_program_is_gone_is_exit_code_3(
    fake: Any, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sources may be edited during the run. A failing guest causes exit code 4."""
    argv = ["evaluate", "cubic", "--backend", "linux", "--quick", "--rows", "12", "--jobs", "1"]
    fake("raise SystemExit(1)")
    assert main([*argv, "--out", str(tmp_path / "fails")]) == 4
    assert "the guest ended without a report" in capsys.readouterr().err
    guest = next(cache.glob("guest-*"))
    (cache / "kernel-fake" / "linux").write_text(
        f"#!{sys.executable}\nimport os\nif os.path.exists({str(guest)!r}): os.remove({str(guest)!r})\nraise SystemExit(1)"
    )
    assert main([*argv, "--out", str(tmp_path / "gone")]) == 3
    assert "the guest program of the linux backend is not built of these sources" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("flows.0.profile", "linux-3.2"), r'flows\.0\.profile: found "linux-3\.2"; allowed: "linux-6"'),
        (
            ("flows.0.congestion_control", "kernel:vegas"),
            r'flows\.0\.congestion_control: found "kernel:vegas"; allowed: bbr',
        ),
        (
            ("flows.0.workload", {"kind": "video", "ladder": ["1 Mbit/s"]}),
            r'flows\.0\.workload\.kind: found "video"; allowed: bulk, .* with the linux backend',
        ),
        (("flows.0.recovery", "prr-ub"), r'flows\.0\.recovery: found "prr-ub"; allowed: prr-linux-6, with'),
        (("flows.0.stack.delayed_ack", False), r"flows\.0\.stack\.delayed_ack: found false; allowed: true, with"),
        (("flows.0.stack.hz", 250), r"flows\.0\.stack\.hz: found 250; allowed: 1000, with"),
        (
            ("flows.0.stack.initial_rto", "3 s"),
            r"flows\.0\.stack\.initial_rto: found .*; allowed: no initial_rto, with",
        ),
    ],
)
def test_what_the_kernel_cannot_do_is_refused_by_name(
    scenario: ackclock.Scenario, change: tuple[str, Any], message: str
) -> None:
    text = json.loads(scenario.set(*change).to_engine_json())
    with pytest.raises(ScenarioError, match=message):
        _translate.job(text, 1, "auto", KERNEL)


def test_a_kernels_own_controller_is_refused_by_the_simulator(scenario: ackclock.Scenario) -> None:
    named = scenario.set("flows.0.congestion_control", "kernel:my_cc")
    assert (
        _translate.job(json.loads(named.to_engine_json()), 1, "auto", replace(KERNEL, controllers=("my_cc",)))["hosts"][
            0
        ]["congestion_control"]
        == "my_cc"
    )
    with pytest.raises(InputError, match="my_cc"):
        ackclock.run(named)


def test_recovery_rules_are_controllers_of_ours() -> None:
    assert _translate.kernel_controller("cubic", "prr-crb") == "cubic_prr_crb"
    assert _translate.kernel_controller("cubic", "rate-halving") == "cubic_rh"
    assert _translate.kernel_controller("reno", None) == "reno"
    assert _translate.kernel_controller("reno", "prr-rfc9937") == "reno_prr_9937"
    assert _translate.kernel_controller("cubic", "prr-linux-3.2") == "cubic_prr_3_2"
    assert _translate.kernel_controller("reno", "freebsd-4") == ""


def test_a_controller_that_draws_as_the_simulators_stands_in_for_the_kernels_own() -> None:
    def controller(name: str) -> str:
        told = json.loads(ackclock.load(ROOT / "scenarios" / "cubic-100m.toml").to_engine_json())
        told["flows"][0]["congestion_control"] = name
        return str(
            _translate.job(told, 1, "relay", replace(KERNEL, controllers=(*CONTROLLERS, "bbr_drawn")))["hosts"][0][
                "congestion_control"
            ]
        )

    assert [controller(name) for name in ("bbr", "kernel:bbr", "cubic")] == ["bbr_drawn", "bbr", "cubic"]


def test_what_holds_an_ack_back_has_no_slack_where_the_rtt_does_not_bound_it() -> None:
    def slack(delay: str) -> list[str]:
        scenario = ackclock.load(ROOT / "scenarios" / "cubic-100m.toml").set("network.bottleneck.delay", delay)
        job = _translate.job(json.loads(scenario.to_engine_json()), 1, "relay", KERNEL)
        return [value for name, value in job["hosts"][0]["sysctl"] if "comp_sack" in name]

    assert slack("18 ms") == ["1010000", "0"]
    assert slack("1 ms") == []  # with 2 ms of access and egress


def stages(scenario: ackclock.Scenario, way: str = "forward") -> list[str]:
    """Return the consecutive disciplines, as `tc` names them."""
    network = _translate.job(json.loads(scenario.to_engine_json()), 1, "qdisc", KERNEL)["network"]
    return [stage["qdisc"]["leaf"]["words"] for stage in network[way]]


def test_a_full_frame_takes_netem_the_time_that_the_link_says() -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "cubic-100m.toml").set("network.framing", "14 bytes")
    # 1514 bytes take 508,907.56 ns, which netem would truncate, and 508,908.07 at 2,974,997 bytes/s
    assert f" rate {8 * 2_974_997}bit" in stages(scenario.set("network.bottleneck.rate", "23.8 Mbit/s"))[1]


def test_a_dumbbell_becomes_three_hops() -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "cubic-100m.toml")
    assert (
        stages(scenario)
        == [
            "netem limit 1000000 delay 1000us rate 1000000000bit -14",
            "netem limit 334 rate 100000000bit -14",  # netem counts the packet in transmission
            "netem limit 1000000 delay 19000us rate 1000000000bit -14",  # the bottleneck's delay goes into the next unlimited link
        ]
    )


def test_disciplines_that_decide_at_departure_hang_below_a_shaper() -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "codel.toml")
    job = _translate.job(json.loads(scenario.to_engine_json()), 1, "auto", KERNEL)
    first, second = job["network"]["forward"]
    assert first["qdisc"]["shaper"] == {"rate": 2_500_000, "burst": 0, "overhead": -14, "bucket": False}
    leaf = first["qdisc"]["leaf"]
    assert leaf["words"] == "codel limit 1000 target 5000us interval 100000us noecn"
    # TCA_CODEL_LIMIT, TARGET, INTERVAL, ECN
    assert {n: int.from_bytes(v, sys.byteorder) for n, v in leaf["attributes"]} == {2: 1000, 1: 5000, 3: 100_000, 4: 0}
    assert second["qdisc"]["leaf"]["words"] == "netem limit 1000000 delay 25000us rate 20000000bit -14"


def test_losses_by_list_need_the_relay() -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "scripted-loss.toml").set("flows.0.recovery", "prr-linux-6")
    text = json.loads(scenario.to_engine_json())
    assert _translate.job(text, 1, "auto", KERNEL)["network"]["kind"] == "relay"
    with pytest.raises(ScenarioError, match=r"record\.drops: found true; .*--network relay can do it"):
        _translate.job(text, 1, "qdisc", KERNEL)


def test_packets_take_the_memory_that_their_device_takes() -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "cubic-100m.toml")
    for network, real, other in (("qdisc", "handed-on", "copied"), ("relay", "copied", "handed-on")):
        told = scenario.set("flows.0.stack.packet_memory", real)
        _translate.job(json.loads(told.to_engine_json()), 1, network, KERNEL)
        told = scenario.set("flows.0.stack.packet_memory", other)
        with pytest.raises(
            ScenarioError, match=rf'packet_memory: found "{other}".*allowed: "{real}", where .*{network}'
        ):
            _translate.job(json.loads(told.to_engine_json()), 1, network, KERNEL)


def test_packets_of_several_segments_are_handed_on_over_the_relay_too() -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "cubic-100m.toml").set("flows.0.stack.tso", True)
    plan = _translate.job(json.loads(scenario.to_engine_json()), 1, "relay", KERNEL)["network"]
    assert plan["whole"] is True
    assert _translate.packet_memory(plan) == "handed-on"
    told = scenario.set("flows.0.stack.packet_memory", "copied")
    with pytest.raises(ScenarioError, match=r'packet_memory: found "copied"'):
        _translate.job(json.loads(told.to_engine_json()), 1, "relay", KERNEL)


def test_seeds_of_the_disciplines_differ_by_seed_and_place() -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "cubic-100m.toml")
    text = json.loads(scenario.to_engine_json())
    seeds = set()
    for seed in (1, 2):
        network = _translate.job(text, seed, "qdisc", KERNEL)["network"]
        for stage in [*network["forward"], *network["backward"]]:
            seeds.add(bytes(dict(stage["qdisc"]["leaf"]["attributes"])[14]))  # TCA_NETEM_PRNG_SEED
    assert len(seeds) == 12


def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the machine has all tools and that the guest program is built."""
    monkeypatch.setattr(_build, "_need_tools", lambda: None)
    monkeypatch.setattr(_build, "_build_guest", lambda linux, jobs: None)


def kernels(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.glob("*") if p.name not in ("lock", "sources"))


def test_an_archive_that_is_no_kernel_installs_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools(monkeypatch)
    (tmp_path / "hello").mkdir()
    (tmp_path / "hello" / "Makefile").write_text("all:\n")
    archive = tmp_path / "hello.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "hello", arcname="hello")
    with pytest.raises(InputError, match=r"hello\.tar\.gz: found no Kbuild in it; allowed: .* a Linux source tree$"):
        linux.build(source=str(archive))
    plain = tmp_path / "plain.tar.xz"
    plain.write_bytes(b"not at all")
    with pytest.raises(InputError, match=r"plain\.tar\.xz: found no tar archive; allowed"):
        linux.build(source=str(plain))
    with pytest.raises(InputError, match=r"nowhere\.tar: found no such file or directory; allowed"):
        linux.build(source=str(tmp_path / "nowhere.tar"))
    assert kernels(cache) == []


def test_a_full_disk_installs_nothing(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools(monkeypatch)
    archive = tmp_path / "k.tar"
    archive.write_bytes(b"")

    def full(source: Any, place: Path) -> None:
        place.mkdir()
        (place / "half").write_bytes(b"x")
        raise OSError(errno.ENOSPC, "No space left on device", str(place))

    monkeypatch.setattr(_source, "looked_at", lambda source, place, parts: place.mkdir())
    monkeypatch.setattr(_build._Asked, "check", lambda asked, tree, where, name: None)
    monkeypatch.setattr(_source, "unpack", full)
    with pytest.raises(UnavailableError, match=r"no room left on the disk \(.* GiB free\); .*Nothing was installed$"):
        linux.build(source=str(archive))
    assert kernels(cache) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("my cc.c", "", "found another kind of name"),
        ("my_cc.c", "int main;", "found no tcp_congestion_ops"),
        ("ackclock_recovery.c", "tcp_congestion_ops", "found the name a second time"),
    ],
)
def test_a_controller_that_cannot_be_built_in(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    tools(monkeypatch)
    archive, file = tmp_path / "k.tar", tmp_path / name
    archive.write_bytes(b"")
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        linux.build(source=str(archive), controllers=[file])
    assert kernels(cache) == []


def test_patches_say_why_and_under_which_licence() -> None:
    for patch in sorted((ROOT / "linux" / "patches").glob("*.patch")):
        head = patch.read_text().partition("\n--- ")[0]
        assert head.startswith("Why: ")
        assert "SPDX-License-Identifier: GPL-2.0 OR MIT" in head
    for file in (ROOT / "linux" / "modules").glob("*.c"):
        assert file.read_text().startswith("// SPDX-License-Identifier: GPL-2.0 OR MIT\n")


@pytest.mark.parametrize("network", ["qdisc", "relay"])
def test_the_kernel_repeats_bit_by_bit(kernel: linux.Kernel, network: Any, tmp_path: Path) -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "reno-10m.toml").set("duration", "3 s").set("record.trace", "flow")
    scenario = scenario.set("network.bottleneck.loss", {"kind": "bernoulli", "p": "1 %"})
    files = [tmp_path / "a.pcapng", tmp_path / "b.pcapng"]
    first, second = (linux.run(scenario, seed=7, network=network, pcap=file) for file in files)
    assert first.digest == second.digest
    assert files[0].read_bytes() == files[1].read_bytes()
    assert first.links["dropped_loss"].sum() > 0
    assert first.flows["bytes_acked"][0] > 100_000
    assert linux.run(scenario, seed=8, network=network).digest != first.digest


def test_the_guest_is_pinned_and_its_threads_are_reaped(kernel: linux.Kernel, scenario: ackclock.Scenario) -> None:
    before = os.sched_getaffinity(0)
    _guest.play(
        _translate.job(json.loads(scenario.to_engine_json()), 1, "auto", Has.of(kernel.about)),
        1, kernel=kernel, cpu=min(before), wall_limit_s=60,
    )  # fmt: skip
    assert os.sched_getaffinity(0) == before


QUEUES: dict[str, dict[str, Any]] = {
    "fifo": {"kind": "drop-tail", "limit": "50 packets"},
    "bytes": {"kind": "drop-tail", "limit": "75700 bytes"},
    "netem": {"kind": "netem-limit", "limit": "60 packets"},
    "codel": {"kind": "codel", "limit": "1000 packets", "ecn": True},
    "fq-codel": {"kind": "fq-codel", "ecn": True},
    "ce-threshold": {"kind": "codel", "limit": "1000 packets", "ce_threshold": "8 ms"},
    "ce-threshold-fq": {"kind": "fq-codel", "ce_threshold": "8 ms", "ce_threshold_for": "l4s"},
    "red": {
        "kind": "red",
        "limit": "200 packets",
        "min": "10 packets",
        "max": "40 packets",
        "weight": 1 / 512,
        "ecn": True,
    },
    "dualpi2": {"kind": "dualpi2"},
    "linux-red": {
        "kind": "linux-red",
        "limit": "300 kB",
        "min": "15 kB",
        "max": "60 kB",
        "avpkt": "1514 bytes",
        "ecn": True,
        "adaptive": True,
    },
}


@pytest.mark.parametrize("name", QUEUES)
def test_every_discipline_runs_and_decides_about_as_the_simulators(kernel: linux.Kernel, name: str) -> None:
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "5 s",
            "network": {
                "topology": "chain",
                "framing": "14 bytes",
                "bottleneck": {"rate": "20 Mbit/s", "delay": "10 ms", "queue": QUEUES[name]},
                "reverse": {"bottleneck": {"delay": "10 ms"}},
            },
            "flows": [{"profile": "linux-6", "stack": {"ecn": "ask"}}],
        }
    )
    seeds = range(1, 9) if "red" in name else range(1, 2)  # draws random numbers: 9 to 18 decisions in five seconds
    theirs = linux.run_batch(scenario, seeds, jobs=2, network="qdisc")
    link = theirs.links.row(0, named=True)
    assert theirs.flows["goodput_bps"][0] > 15e6
    assert link["marked"] + link["dropped_queue"] > 0
    ours = ackclock.run_batch(scenario, seeds, jobs=2)
    near = 0.06 if "red" in name else 0.03
    assert theirs.flows["goodput_bps"].mean() == pytest.approx(ours.flows["goodput_bps"].mean(), rel=near)
    decided = [
        run.links.group_by("seed").first().select(pl.col("marked") + pl.col("dropped_queue")).to_series().mean()
        for run in (theirs, ours)
    ]
    assert decided[0] == pytest.approx(decided[1], rel=0.35, abs=6), decided
    assert (link["marked"] > 0) == (ours.links["marked"][0] > 0)


@pytest.mark.long
@pytest.mark.parametrize("controller", ["reno", "cubic", "westwood-plus", "highspeed", "bbr"])
def test_a_loaded_machine_changes_no_bit(kernel: linux.Kernel, controller: str, tmp_path: Path) -> None:
    scenario = ackclock.load(ROOT / "scenarios" / "cubic-100m.toml").set("duration", "10 s")
    scenario = scenario.set("network.bottleneck.loss", {"kind": "bernoulli", "p": "0.1 %"})
    scenario = scenario.set("flows.0.congestion_control", controller).set("record.sample_interval", "10 ms")
    files = [tmp_path / "quiet.pcapng", tmp_path / "loaded.pcapng"]
    quiet = linux.run(scenario, seed=3, network="qdisc", pcap=files[0])
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        loaded = linux.run(scenario, seed=3, network="qdisc", pcap=files[1], wall_limit_s=600)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert quiet.digest == loaded.digest
    assert quiet.samples.equals(loaded.samples)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert quiet.links["dropped_loss"].sum() > 10
