"""Tests for the features of kernel sources and kernels: missing ones are reported before anything is unpacked, and refused by name."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from ackclock import Scenario
from ackclock.errors import InputError, ScenarioError
from ackclock.linux import _facts, _source, _translate
from ackclock.linux._facts import Has
from ackclock.linux._source import NEEDED_FILES, Source

TEXTS = {
    "Makefile": "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\n",
    "net/sched/Kconfig": "config NET_SCH_FQ\n\tbool\n",
    "include/net/tcp.h": "void (*cong_control)(struct sock *sk, const struct rate_sample *rs);\n",
    "include/trace/events/tcp.h": "TRACE_EVENT(tcp_probe,\n",
}
NEWER = {
    "Makefile": "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n",
    "net/sched/Kconfig": "config NET_SCH_DUALPI2\n\tbool\nconfig NET_SCH_FQ\n",
    "net/ipv4/sysctl_net_ipv4.c": '.procname = "tcp_ecn_option",\n',
    "include/net/tcp.h": "void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);\nvoid tcp_update_pacing_rate(struct sock *sk);\n",
    "include/trace/events/tcp.h": "TRACE_EVENT(tcp_rcvbuf_grow,\n",
}


def tree(place: Path, texts: dict[str, str]) -> Path:
    for name in (*NEEDED_FILES, *texts):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(texts.get(name, "x\n"))
    return place


def config(tmp_path: Path, text: str) -> Path:
    (tmp_path / "uml.config").write_text(text)
    return tmp_path / "uml.config"


def test_what_a_source_lacks_is_asked_of_it(tmp_path: Path) -> None:
    wanted = config(tmp_path, "CONFIG_NET_SCH_FQ=y\nCONFIG_NET_SCH_DUALPI2=y # optional\n")
    said = _facts.lacks(tree(tmp_path / "old", TEXTS), wanted)
    assert len(said) == 3
    assert "dualpi2" in said[0]
    assert "accecn" in said[1]
    assert _facts.lacks(tree(tmp_path / "new", NEWER), wanted) == []
    wanted = config(tmp_path, "CONFIG_NET_SCH_NEWEST=y\n")
    assert "the option CONFIG_NET_SCH_NEWEST" in _facts.lacks(tmp_path / "new", wanted)


def test_our_modules_are_told_what_the_tree_has(tmp_path: Path) -> None:
    old, new = (_facts.header(tree(tmp_path / name, texts)) for name, texts in (("old", TEXTS), ("new", NEWER)))
    assert b"CONTROL_HAS_FLAG" not in old
    assert b"#define CONTROL_HAS_FLAG 1" in new
    assert b"#define HAS_UPDATE_PACING_RATE 1" in new


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("VERSION = 5\nPATCHLEVEL = 10\nSUBLEVEL = 9\n", r"found Linux 5\.10\.9; allowed: Linux 6\.1 or later"),
        ("all:\n", "found a Makefile without a version of Linux"),
    ],
)
def test_what_is_too_old_or_no_linux_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        _facts.oldest("--tree x", tree(tmp_path / "t", {"Makefile": text}))


def test_a_patch_of_ours_may_be_for_some_trees_only(tmp_path: Path) -> None:
    place = tree(tmp_path / "t", {"arch/um/a.c": "int size = 2696;\n"})
    assert _facts.concerns(place, b"Why: x\n\n--- a/b\n")
    assert _facts.concerns(place, b"Where: arch/um/a.c has size = 2696\n\n--- a/b\n")
    assert not _facts.concerns(place, b"Where: arch/um/a.c has size = 4096\n\n--- a/b\n")
    assert not _facts.concerns(place, b"Where: arch/um/b.c has size\n\n--- a/b\n")


def test_a_few_files_of_an_archive_are_looked_at(tmp_path: Path) -> None:
    tree(tmp_path / "linux-source-6.1", {**TEXTS, "drivers/large.c": "x" * 1000})
    with tarfile.open(tmp_path / "k.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "linux-source-6.1", "linux-source-6.1")
    source = Source(archive=tmp_path / "k.tar.xz", name="k", digest="")
    _source.looked_at(source, tmp_path / "part", _facts.PARTS)
    assert _facts.release(tmp_path / "part") == "6.1.192"
    assert not (tmp_path / "part" / "drivers").exists()


def translated(flow: dict[str, object], queue: str, kernel: Has, network: str = "auto") -> dict[str, object]:
    link = {"rate": "10 Mbit/s", "delay": "10 ms", "queue": {"kind": queue}}
    told = {
        "duration": "1 s",
        "network": {"bottleneck": link},
        "flows": [{"congestion_control": "cubic", "stack": flow}],
    }
    return _translate.job(json.loads(Scenario.from_dict(told).to_engine_json()), 1, network, kernel)  # type: ignore[arg-type]


def test_a_scenario_that_needs_what_the_kernel_lacks_is_refused_by_name() -> None:
    old = Has(
        release="6.1.192",
        controllers=("cubic",),
        queues=frozenset({"codel"}),
        sysctls=frozenset({"tcp_ecn", "tcp_sack"}),
        accecn=False,
    )
    with pytest.raises(ScenarioError, match=r'queue\.kind: found "dualpi2", which Linux 6\.1\.192 does not have'):
        translated({}, "dualpi2", old)
    assert translated({}, "dualpi2", old, "relay")
    assert translated({}, "codel", old)
    with pytest.raises(ScenarioError, match=r'stack\.ecn: found "accecn", which Linux 6\.1\.192 does not have.*"ask"'):
        translated({"ecn": "accecn"}, "codel", old)
    with pytest.raises(ScenarioError, match=r"stack\.accecn_option: found 2, which Linux"):
        translated({"accecn_option": 2}, "codel", old)
    assert translated({"ecn": "ask"}, "codel", old)
    assert translated({"ecn": "accecn"}, "dualpi2", Has(release="7.3.4", controllers=("cubic",)))


@pytest.mark.parametrize(("text", "wanted"), [("\tenter_turnstile(mm_id);\n", True), ("\tint status = 0;\n", False)])
def test_the_clock_without_a_call_is_for_kernels_with_a_turnstile(tmp_path: Path, text: str, wanted: bool) -> None:
    """Linux 6.1 and 6.12 have none."""
    patch = Path(__file__).parents[3] / "linux/patches/0008-clock-without-a-call.patch"
    place = tree(tmp_path / "t", {"arch/um/os-Linux/skas/process.c": f"void userspace(void)\n{{\n{text}}}\n"})
    assert _facts.concerns(place, patch.read_bytes()) is wanted
