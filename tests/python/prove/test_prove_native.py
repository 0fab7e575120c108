"""Tests for proofs with controllers in C: state in the private area is copied; state outside it is detected, and each
case is then run from the beginning.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from short_response import path

from ackclock import prove, run
from ackclock.prove.cases import pattern
from ackclock.prove.replay import scripted

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C"),
    pytest.mark.usefixtures("compiled_once"),
]

MODULE = """
#include <linux/module.h>
#include <net/tcp.h>

struct count { u32 losses; };

static u32 seen;
static const u32 table[3] = { 1, 2, 3 };
static int keep = 50;
module_param(keep, int, 0644);

static void count_init(struct sock *sk)
{
	struct count *ca = inet_csk_ca(sk);

	ca->losses = 0;
}

static u32 count_ssthresh(struct sock *sk)
{
	struct count *ca = inet_csk_ca(sk);

	ca->losses++;
	WRITES
	return max(tcp_snd_cwnd(tcp_sk(sk)) * keep / (100 + 40 * (seen % 3) + table[ca->losses % 3]), 2U);
}

static struct tcp_congestion_ops count __read_mostly = {
	.name = "count",
	.owner = THIS_MODULE,
	.init = count_init,
	.ssthresh = count_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init count_register(void)
{
	return tcp_register_congestion_control(&count);
}

module_init(count_register);
MODULE_LICENSE("GPL");
"""


@pytest.fixture
def proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., prove.Proof]:
    monkeypatch.chdir(tmp_path)

    def made(writes: str, jobs: int = 1) -> prove.Proof:
        Path("tcp_count.c").write_text(MODULE.replace("WRITES", writes))
        scenario = path(7, congestion_control="tcp_count.c")
        return prove.prove(
            [prove.Target(name="count", scenario=scenario)], prove.Adversary(name="losses", first=7), jobs=jobs
        )

    return made


def test_a_module_whose_state_lies_in_its_area_is_copied(proof: Callable[..., prove.Proof]) -> None:
    made = proof("", jobs=2)
    assert made.unshared == (None,)
    (cases,) = made.cases
    for at in range(0, 128, 9):
        alone = run(scripted(made.targets[0].scenario, made.adversary, cases.answers(at)))
        assert cases["took_ns"][at] == round(alone.flows["completion_s"][0] * 1e9), pattern(cases.answers(at), 7)


def test_a_module_with_variables_of_its_file_runs_from_the_beginning_and_says_so(
    proof: Callable[..., prove.Proof],
) -> None:
    made = proof("seen++;", jobs=2)
    assert made.unshared == ("found a module that writes to variables outside of its connections",)
    # each case starts with the variables as set by module_init, whatever ran before
    assert made.cases[0].root == proof("seen++;").cases[0].root
    (cases,) = made.cases
    for at in (1, 64, 127):
        alone = run(scripted(made.targets[0].scenario, made.adversary, cases.answers(at)))
        assert cases["took_ns"][at] == round(alone.flows["completion_s"][0] * 1e9), pattern(cases.answers(at), 7)


def test_a_variable_that_is_written_in_few_cases_is_noticed_when_it_is(proof: Callable[..., prove.Proof]) -> None:
    made = proof("if (tcp_sk(sk)->delivered <= 2) seen++;")
    assert made.unshared == ("found a module that writes to variables outside of its connections",)
    assert len(made.cases[0]) == 128
