"""Tests for controllers in C: a Linux module works wherever a controller can be named, and each error takes one line."""

from __future__ import annotations

import platform
import shutil

import polars as pl
import pytest

import ackclock
from ackclock import Scenario, own
from ackclock import sweep as sweeps
from ackclock.cli import main
from ackclock.controllers import check
from ackclock.errors import AckclockError, InputError, ScenarioError, UnavailableError
from ackclock.linux import _cache, _run

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C"),
    pytest.mark.usefixtures("compiled_once"),
]

MINE = """
#include <linux/module.h>
#include <net/tcp.h>

struct mine {
	u32 losses;
};

static int keep = 50;
module_param(keep, int, 0644);

static void mine_init(struct sock *sk)
{
	struct mine *ca = inet_csk_ca(sk);

	ca->losses = 0;
}

static u32 mine_ssthresh(struct sock *sk)
{
	struct mine *ca = inet_csk_ca(sk);

	ca->losses++;
	return max(tcp_snd_cwnd(tcp_sk(sk)) * keep / 100, 2U);
}

static struct tcp_congestion_ops mine __read_mostly = {
	.name = "mine",
	.owner = THIS_MODULE,
	.init = mine_init,
	.ssthresh = mine_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init mine_register(void)
{
	BUILD_BUG_ON(sizeof(struct mine) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&mine);
}

static void __exit mine_unregister(void)
{
	tcp_unregister_congestion_control(&mine);
}

module_init(mine_register);
module_exit(mine_unregister);
MODULE_LICENSE("Dual MIT/GPL");
"""

SCENARIO = """
duration = "4 s"
[network]
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "1 BDP" }, loss = { kind = "bernoulli", p = "1 %" } }
[[flows]]
congestion_control = "tcp_mine.c"
[[flows]]
congestion_control = "reno"
[record]
trace = "all"
"""

SWEEP = """
scenario = "s.toml"
seeds = 2
[axes]
"flows.0.congestion_control" = ["tcp_mine.c", "reno"]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tcp_mine.c").write_text(MINE)
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "sw.toml").write_text(SWEEP)


def scenario(**changes: object) -> Scenario:
    made = ackclock.load("s.toml", own_code=True)
    return made.set_all({key.replace("__", "."): value for key, value in changes.items()})


def test_reno_in_c_is_reno_in_every_ack():
    ours = ackclock.run(scenario())
    built_in = ackclock.run(scenario(flows__0__congestion_control="reno"))
    assert ours.digest == built_in.digest
    assert ours.acks.equals(built_in.acks)
    assert built_in.flows["recoveries"][0] > 3


def test_parameters_are_the_options_and_each_set_of_them_is_a_module_of_its_own():
    digests = [
        ackclock.run(scenario(flows__0__congestion_control_options={"keep": keep})).digest for keep in (70, 50, 70)
    ]
    assert digests[0] == digests[2] != digests[1] == ackclock.run(scenario()).digest
    with pytest.raises(
        AckclockError, match=r"found kept = 70; allowed: whole numbers, true or false, or a text, for keep"
    ):
        ackclock.run(scenario(flows__0__congestion_control_options={"kept": 70}))
    with pytest.raises(AckclockError, match="found keep = most; allowed: whole numbers, true or false"):
        ackclock.run(scenario(flows__0__congestion_control_options={"keep": "most"}))


def test_threads_cannot_be_seen():
    one, two = (ackclock.run_batch(scenario(), seeds=range(4), jobs=n) for n in (1, 2))
    assert one.digests == two.digests
    assert len(set(one.digests)) == 4


@pytest.mark.promise("P17")
def test_a_file_is_run_only_if_its_reader_says_so():
    with pytest.raises(
        ScenarioError, match=r"tcp_mine\.c\", a program that the run would execute; allowed: with --own"
    ):
        ackclock.load("s.toml")
    assert [main(command) for command in (["run", "s.toml"], ["sweep", "run", "sw.toml"])] == [2, 2]


def test_the_key_follows_the_code_and_the_compiler(tmp_path, monkeypatch):
    before = scenario().to_engine_json()
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "tcp_mine.c").write_text(MINE)
    assert scenario(flows__0__congestion_control="else/tcp_mine.c").to_engine_json() == before
    planned = scenario().own()[0]
    (tmp_path / "tcp_mine.c").write_text(MINE + '#include "more.h"\n')
    (tmp_path / "more.h").write_text("/* more */\n")
    more = scenario().to_engine_json()
    (tmp_path / "more.h").write_text("/* less */\n")
    assert len({before, more, scenario().to_engine_json()}) == 3
    with pytest.raises(UnavailableError, match="other code than when the runs were planned"):
        planned.load()
    (tmp_path / "tcp_mine.c").write_text(MINE)
    other = tmp_path / "othercc"
    other.write_text('#!/bin/sh\necho "othercc 1.0"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CC", str(other))
    assert scenario().to_engine_json() != before


def test_a_sweep_makes_keeps_and_makes_again(tmp_path):
    arguments = ["sweep", "run", "sw.toml", "--own-code", "--jobs=2"]
    assert main(arguments) == 0
    ours = pl.col("flows.0.congestion_control") == "tcp_mine.c"
    first = sweeps.read("sw.sweep").runs.filter(ours).sort("seed")
    assert first["digest"].to_list() == [ackclock.run(scenario(), seed=seed).digest for seed in (1, 2)]
    (tmp_path / "tcp_mine.c").write_text(MINE.replace("keep = 50", "keep = 80"))
    assert main(arguments) == 0
    assert set(sweeps.read("sw.sweep").runs.filter(ours)["digest"]).isdisjoint(first["digest"])


def test_it_passes_the_test_of_conformance_or_is_told_what_it_broke(tmp_path):
    check(own.described("tcp_mine.c", {}).load())
    (tmp_path / "tcp_mine.c").write_text(MINE.replace("* keep / 100", "* 2"))
    with pytest.raises(
        AckclockError, match=r"controller tcp_mine\.c, on_congestion_event .* breaks the rule reduction"
    ):
        check(own.described("tcp_mine.c", {}).load())


def test_commands_take_it(capsys):
    assert main(["run", "first", "--set", "duration=2 s", "--controller", "tcp_mine.c"]) == 0
    assert "0 tcp_mine.c" in capsys.readouterr().out
    assert main(["conform", "tcp_mine.c", "--trouble", "2"]) == 0


@pytest.mark.promise("P17")
@pytest.mark.parametrize(
    ("changed", "into", "said"),
    [
        ("ca->losses++;", "ca->losses++", r"tcp_mine\.c, line \d+: found expected ';' before 'return'"),
        ("ca->losses++;", "tcp_sk(sk)->rx_opt++;", "found 'struct tcp_sock' has no member named 'rx_opt': it reads the peer's timestamps"),
        ("ca->losses++;", "strange(sk);", "found implicit declaration of function 'strange'; allowed: what the"),
        ("u32 losses;", "u32 losses; u64 more[13];", r"tcp_mine\.c, line \d+: found more state than a connection .*104 bytes"),
        ("return tcp_register_congestion_control(&mine)", "return 0", "found nothing that module_init registers"),
        ("return tcp_register_congestion_control(&mine)", "return -22", "found that it returns -22; allowed: 0"),
        ("\t.undo_cwnd = tcp_reno_undo_cwnd,\n", "", "found mine without undo_cwnd; allowed: ssthresh, undo_cwnd"),
        ("module_init(mine_register);", "", "found nothing that module_init registers"),
        pytest.param(
            "ca->losses++;", "ca->losses = keep / *(volatile int *)ca;", "ssthresh: it divides by zero",
            marks=pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors divide by zero"),
        ),
        ("ca->losses++;", "*(volatile int *)8 = 1;", r"controller tcp_mine\.c, ssthresh at .* s: ssthresh: it reads or writes"),
        ("ca->losses++;", "BUG_ON(1);", "ssthresh: BUG, or a place that must not be reached"),
        ("ca->losses++;", "kfree(ca);", "ssthresh: BUG, or a place that must not be reached"),
        ("ca->losses++;", "return 0;", "ssthresh at .* s: it answers 0; allowed: 1 to 2147483647"),
        ("ca->losses = 0;", "tcp_sk(sk)->snd_cwnd = 0;", "on_start at .* s: cwnd is 0; allowed: 1 to 1073741824"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(tmp_path, capsys, changed, into, said):
    assert changed in MINE
    (tmp_path / "tcp_mine.c").write_text(MINE.replace(changed, into))
    assert main(["run", "s.toml", "--own-code"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1, message
    with pytest.raises(AckclockError, match=said):
        ackclock.run(scenario())


def test_a_recursion_without_end_is_one_line_on_any_thread(tmp_path):
    deep = (
        "static int deep(volatile int *p) { volatile int x[1000]; x[0] = *p; return deep(x) + x[1]; }\nstatic int keep"
    )
    text = MINE.replace("static int keep", deep).replace("ca->losses++;", "ca->losses += deep((int *)ca);")
    (tmp_path / "tcp_mine.c").write_text(text)
    with pytest.raises(AckclockError, match="needs too much stack"):
        ackclock.run(scenario())
    with pytest.raises(AckclockError, match="needs too much stack"):
        ackclock.run_batch(scenario(), seeds=range(4), jobs=2)


@pytest.mark.deep  # uses up the 2 s of CPU time allowed per call
def test_a_call_without_end_is_ended(tmp_path):
    (tmp_path / "tcp_mine.c").write_text(MINE.replace("ca->losses++;", "for (;;) barrier();"))
    with pytest.raises(AckclockError, match="ssthresh: no end after 2 s of processor time"):
        ackclock.run(scenario())
    (tmp_path / "tcp_mine.c").write_text(MINE)
    assert ackclock.run(scenario()).digest  # the process continues


def test_without_a_compiler_it_is_one_line(monkeypatch, capsys):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert main(["run", "first", "--controller", "tcp_mine.c"]) == 2
    assert "no compiler of C (no-such-compiler); allowed: a compiler" in capsys.readouterr().err


def test_functions_of_a_file_beside_it_are_taken_from_there(tmp_path):
    (tmp_path / "part.h").write_text("u32 part(struct sock *sk);\n")
    (tmp_path / "part.c").write_text(
        '#include <net/tcp.h>\n#include "part.h"\n'
        "u32 part(struct sock *sk) { return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U); }\nEXPORT_SYMBOL_GPL(part);\n"
    )
    whole = ackclock.run(scenario()).digest
    split = MINE.replace("#include <net/tcp.h>", '#include <net/tcp.h>\n#include "part.h"')
    (tmp_path / "tcp_mine.c").write_text(
        split.replace("return max(tcp_snd_cwnd(tcp_sk(sk)) * keep / 100, 2U)", "return part(sk)")
    )
    assert ackclock.run(scenario()).digest == whole
    (tmp_path / "part.c").unlink()
    with pytest.raises(AckclockError, match="found a call of part, which is nowhere"):
        ackclock.run(scenario())


def test_random_numbers_are_those_of_the_seed(tmp_path):
    (tmp_path / "tcp_mine.c").write_text(MINE.replace("* keep / 100", "* (50 + get_random_u32_below(40)) / 100"))
    first, again, other = (ackclock.run(scenario(), seed=seed).digest for seed in (1, 1, 2))
    assert first == again != other


def test_the_kernel_is_asked_by_the_name_that_the_file_registers(tmp_path):
    def kernel(text: str) -> _cache.Kernel:
        return _cache.Kernel(path=tmp_path, about={"files": {"tcp_mine.c": _cache.hash_of([text.encode()])}})

    text = _run._text(scenario(), kernel(MINE))
    assert text == scenario(flows__0__congestion_control="kernel:mine").to_engine_json()
    with pytest.raises(UnavailableError, match=r"tcp_mine\.c: the kernel was built with another state of it"):
        _run._text(scenario(), kernel(MINE + " "))
    with pytest.raises(InputError, match="found congestion_control_options; allowed: none"):
        _run._text(scenario(flows__0__congestion_control_options={"keep": 70}), kernel(MINE))
    assert main(["diff", "--patterns", "--controller", "tcp_mine.c"]) == 2


def test_names_are_recognised():
    assert own.named("a/tcp_mine.c")
    assert not any(map(own.named, ["cubic", ".c", "a.cc", "a.c:x", "a.c\n"]))
