"""Tests for features needed by modules outside Linux's tree: both forms of operations, versions, counters, flags, texts, printed output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ackclock import Run, Scenario, run
from ackclock.errors import AckclockError

pytestmark = pytest.mark.skipif(not __import__("shutil").which("cc"), reason="no compiler of C")

HEAD = "#include <linux/module.h>\n#include <net/tcp.h>\n"
TAIL = """
static int __init begin(void) { return tcp_register_congestion_control(&ops); }
static void __exit finish(void) { tcp_unregister_congestion_control(&ops); }
module_init(begin);
module_exit(finish);
MODULE_LICENSE("Dual MIT/GPL");
"""
RENO = ".ssthresh = tcp_reno_ssthresh, .cong_avoid = tcp_reno_cong_avoid, .undo_cwnd = tcp_reno_undo_cwnd,"


def scenario(file: Path, **options: Any) -> Scenario:
    flow = {"congestion_control": str(file), "congestion_control_options": options}
    queue = {"kind": "drop-tail", "limit": "20 packets"}
    link = {"rate": "10 Mbit/s", "delay": "20 ms", "queue": queue}
    return Scenario.from_dict({"duration": "1 s", "network": {"bottleneck": link}, "flows": [flow]})


def played(folder: Path, text: str, **options: Any) -> Run:
    file = folder / "tcp_x.c"
    file.write_text(HEAD + text + TAIL)
    return run(scenario(file, **options))


def refused(folder: Path, text: str, **options: Any) -> str:
    with pytest.raises(AckclockError) as wrong:
        played(folder, text, **options)
    said = str(wrong.value)
    assert "\n" not in said
    return said


def ops(more: str = "") -> str:
    return f'static struct tcp_congestion_ops ops = {{ .name = "x", .owner = THIS_MODULE, {RENO} {more} }};'


FIXED = """
static u32 fixed_ssthresh(struct sock *sk) { return 20U; }
static u32 fixed_undo(struct sock *sk) { return tcp_snd_cwnd(tcp_sk(sk)); }
static struct tcp_congestion_ops ops = {
	.name = "x", .owner = THIS_MODULE, .cong_control = fixed, .ssthresh = fixed_ssthresh, .undo_cwnd = fixed_undo,
};
"""


def test_cong_control_has_two_forms_and_both_are_called(tmp_path: Path) -> None:
    set_it = "{ tcp_snd_cwnd_set(tcp_sk(sk), 20U); }"
    old = played(tmp_path, f"static void fixed(struct sock *sk, const struct rate_sample *rs) {set_it}{FIXED}")
    new = played(
        tmp_path, f"static void fixed(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) {set_it}{FIXED}"
    )
    assert old.flows["sent_packets"].equals(new.flows["sent_packets"])
    assert old.flows["bytes_acked"][0] > 500_000


def test_a_module_may_choose_the_form_by_version(tmp_path: Path) -> None:
    text = """
#if IS_ENABLED(CONFIG_IPV6) && LINUX_VERSION_CODE >= KERNEL_VERSION(5, 8, 0)
#error "no IPv6 here"
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void fixed(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
static void fixed(struct sock *sk, const struct rate_sample *rs)
#endif
{ tcp_snd_cwnd_set(tcp_sk(sk), 20U); }
"""
    assert played(tmp_path, text + FIXED).flows["bytes_acked"][0] > 500_000


def test_pkts_acked_of_before_4_7(tmp_path: Path) -> None:
    text = 'static void heard(struct sock *sk, u32 n, s32 rtt_us) { if (rtt_us > 0) printk("rtt %d", rtt_us); }\n'
    said = played(tmp_path, text + ops(".pkts_acked = heard,")).messages
    assert said["text"][0].startswith("rtt 4")


def test_counters_hold_the_identity_of_what_is_in_flight(tmp_path: Path) -> None:
    text = """
static void heard(struct sock *sk, const struct ack_sample *s)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	printk("%u %u %u %u\\n", tp->packets_out - tcp_left_out(tp) + tp->retrans_out, tcp_packets_in_flight(tp), tp->data_segs_out, tp->total_retrans);
}
"""
    done = played(tmp_path, text + ops(".pkts_acked = heard,"))
    rows = [[int(word) for word in line.split()] for line in done.messages["text"]]
    assert len(rows) > 300
    assert all(sum_ == in_flight for sum_, in_flight, _, _ in rows[1:])
    sent, again = done.flows["sent_packets"][0], done.flows["retransmissions"][0]
    assert again > 5
    assert abs(rows[-1][2] - sent) <= 30  # segments sent after the last ACK, and those of the handshake
    assert abs(rows[-1][3] - again) <= 2


@pytest.mark.parametrize("place", ["option", "remark"])
def test_flags_of_a_makefile(tmp_path: Path, place: str) -> None:
    text = f'#ifndef WINDOW\n#error "no WINDOW"\n#endif\nstatic int window = WINDOW;\nmodule_param(window, int, 0644);\n{ops()}'
    assert "no WINDOW" in refused(tmp_path, text)
    remark = "/* ackclock: -DWINDOW=3 */\n" if place == "remark" else ""
    played(tmp_path, remark + text, **({"-DWINDOW": 3} if place == "option" else {}))
    assert "found the flag" in refused(tmp_path, text, **{"-DWINDOW": "3 -o /etc/passwd"})


def test_a_state_of_more_than_104_bytes_needs_a_flag(tmp_path: Path) -> None:
    text = """
struct state { u8 room[140]; };
static void start(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct state) > ICSK_CA_PRIV_SIZE);
	memset(inet_csk_ca(sk), 0xff, sizeof(struct state));
}
""" + ops(".init = start,")
    assert "-DICSK_CA_PRIV_SIZE=144" in refused(tmp_path, text)
    assert played(tmp_path, text, **{"-DICSK_CA_PRIV_SIZE": 144}).flows["bytes_acked"][0] > 100_000


def test_a_text_as_parameter_and_what_is_printed(tmp_path: Path) -> None:
    text = """
static char *word = "nothing";
module_param(word, charp, 0644);
static void start(struct sock *sk) { printk(KERN_INFO "word %s of %lld s\\n", word, ktime_get_real_seconds()); pr_debug("silent"); }
""" + ops(".init = start,")
    done = played(tmp_path, text, word="spoken")
    assert set(done.messages["text"]) == {"word spoken of 1 s"}  # both ends have a controller
    done.write(tmp_path / "out")
    assert (tmp_path / "out" / "messages.txt").read_text().endswith("] word spoken of 1 s\n")
    assert Run.read(tmp_path / "out").messages.equals(done.messages)


def test_settings_of_the_system_are_those_of_linux(tmp_path: Path) -> None:
    text = """
static void start(struct sock *sk)
{
	printk("%d %d", READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs), READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_pacing_ca_ratio));
}
""" + ops(".init = start,")
    assert set(played(tmp_path, text).messages["text"]) == {"2 120"}


BPF_OF_5_16 = """
BTF_SET_START(ids)
BTF_ID(func, one)
BTF_SET_END(ids)
static DEFINE_KFUNC_BTF_ID_SET(&ids, all);
static int __init begin(void)
{
	int wrong = tcp_register_congestion_control(&ops);
	if (!wrong)
		register_kfunc_btf_id_set(&bpf_tcp_ca_kfunc_list, &all);
	return wrong;
}
static void __exit finish(void) { unregister_kfunc_btf_id_set(&bpf_tcp_ca_kfunc_list, &all); tcp_unregister_congestion_control(&ops); }
module_init(begin);
module_exit(finish);
"""
BPF_OF_5_18 = """
BTF_SET_START(ids)
BTF_ID(func, one)
BTF_SET_END(ids)
static const struct btf_kfunc_id_set all = { .owner = THIS_MODULE, .check_set = &ids };
static int __init begin(void)
{
	int wrong = register_btf_kfunc_id_set(BPF_PROG_TYPE_STRUCT_OPS, &all);
	return wrong < 0 ? wrong : tcp_register_congestion_control(&ops);
}
module_init(begin);
"""


@pytest.mark.parametrize("bpf", [BPF_OF_5_16, BPF_OF_5_18], ids=["5.16", "5.18"])
def test_registration_with_bpf_as_of_each_version(tmp_path: Path, bpf: str) -> None:
    """Kernels 5.16 to 5.19 use two spellings that newer ones lack."""
    file = tmp_path / "tcp_x.c"
    file.write_text(HEAD + ops() + bpf)
    assert run(scenario(file)).flows["bytes_acked"][0] > 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("static struct proto mine;\nstatic void hook(struct sock *sk) { mine = tcp_prot; }\n", "a hook of setsockopt"),
        ("static struct timer_list t;\nstatic void hook(void) { timer_setup(&t, 0, 0); }\n", "at times of its own"),
        ("static struct cdev device;\nstatic void hook(void) { cdev_init(&device, 0); }\n", "a file of its own"),
        ("static u32 theirs(struct sock *sk) { return tcp_sk(sk)->rx_opt.rcv_tsval; }\n", "the peer's timestamps"),
        ("struct theirs { struct skb_mstamp at; };\n", "of a kernel before 4.13"),
        ("static int room(struct sock *sk) { return sk->sk_sndbuf; }\n", "the socket itself"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in refused(tmp_path, text + ops())


def test_a_header_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert '"kernel_config.h" included, which is not beside it' in refused(
        tmp_path, '#include "kernel_config.h"\n' + ops()
    )


def test_a_file_beside_a_header_that_flags_leave_out_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "other.h").write_text("int other(void);\n")
    (tmp_path / "other.c").write_text('#include "other.h"\nint other(void) { return nothing_of_this; }\n')
    text = '#ifdef OTHER\n#include "other.h"\n#endif\n' + ops()
    played(tmp_path, text)
    used = '#include "other.h"\nstatic void start(struct sock *sk) { other(); }\n' + ops(".init = start,")
    assert "nothing_of_this" in refused(tmp_path, used)
