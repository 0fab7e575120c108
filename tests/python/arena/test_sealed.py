"""Tests for user code in the arena: the calls allowed by the system-call filter, and two cheaters that each trigger a trap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ackclock import _files
from ackclock.arena import Entry, Plan, Standing, _seal, play, read

TASK = (Path(__file__).parent / "small.toml").read_text("utf-8").partition('[[families]]\nid = "beside"')[0]

RENO = """
#include <linux/module.h>
#include <net/tcp.h>
%s
static u32 ours_ssthresh(struct sock *sk)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	%s
	return max(cwnd / 2, 2U);
}
static struct tcp_congestion_ops ours = {
	.name = "ours", .owner = THIS_MODULE, .ssthresh = ours_ssthresh, .cong_avoid = tcp_reno_cong_avoid, .undo_cwnd = tcp_reno_undo_cwnd,
};
static int __init ours_register(void) { return tcp_register_congestion_control(&ours); }
module_init(ours_register);
MODULE_LICENSE("GPL");
"""
HONEST = RENO % ("", "")
CARRIER = RENO % ("static u32 seen;", "seen++; if (seen > 3) return max(cwnd * (6 + seen % 3) / 10, 2U);")
"""Module whose behaviour in a run depends on earlier runs."""
CALLER = RENO % ("extern int socket(int, int, int);", "socket(2, 1, 0);")


def standing(text: str, place: Path, **off: frozenset[str]) -> Standing:
    file = place / "tcp_ours.c"
    file.write_text(text, encoding="utf-8")
    _files.give_leave()
    plan = Plan(task=read(TASK, "alone"), entries=[Entry(controller=str(file))], salt="s", draws=3, **off)
    table = play(plan, place / "out", 1)
    return next(s for s in table.standings if s.entry.is_own)


@pytest.mark.skipif(not _seal.can(), reason="no filter of system calls")
def test_an_honest_module_is_not_accused(tmp_path: Path) -> None:
    found = standing(HONEST, tmp_path)
    assert found.why == ""
    assert found.rank is not None


@pytest.mark.skipif(not _seal.can(), reason="no filter of system calls")
def test_a_module_carries_no_memory_from_run_to_run(tmp_path: Path) -> None:
    """At the start of a run, variables have the values that module_init set: two series of runs in opposite orders
    have the same digests.
    """
    found = standing(CARRIER, tmp_path)
    assert found.why == ""
    assert found.rank is not None


@pytest.mark.deep
@pytest.mark.skipif(not _seal.can(), reason="no filter of system calls")
def test_what_asks_the_system_ends_its_run(tmp_path: Path) -> None:
    found = standing(CALLER, tmp_path)
    assert "found a call of the system" in found.why
    (tmp_path / "off").mkdir()
    off = standing(CALLER, tmp_path / "off", off=frozenset({"seal"}))
    assert off.rank is not None


BEGINS = """
import _thread, os, time
from ackclock.arena import _seal
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
reads, writes = os.pipe()
shut = _seal.prepared(reads=reads, writes=writes)
for _ in range(50):
    _thread.start_new_thread(time.sleep, (0.01,))
shut()
time.sleep(0.05)
os._exit(0)
"""


@pytest.mark.skipif(not _seal.can(), reason="no filter of system calls")
def test_a_thread_that_begins_while_the_filter_is_put_up_lives() -> None:
    """The library of each C module starts such a thread, whose first system calls happen under the filter on a busy machine."""
    done = subprocess.run([sys.executable, "-c", BEGINS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
