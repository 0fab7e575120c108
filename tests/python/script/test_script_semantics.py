"""Tests for the script language, sentence by sentence: times, tolerance, numbers, timestamps, joining, order,
clean-up.
"""

from __future__ import annotations

import pytest

from ackclock.script import play

SERVER = """
0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0  bind(3, ..., ...) = 0
+0  listen(3, 1) = 0
+0  < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0  > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 257
+0  accept(3, ..., ...) = 4
"""
STAMPED = (
    SERVER.replace("sackOK,nop,nop", "sackOK,TS val 700 ecr 0")
    .replace("<...>", "<mss 1460,sackOK,TS val 100 ecr 700,nop,wscale 8>")
    .replace("ack 1 win 257", "ack 1 win 257 <nop,nop,TS val 800 ecr 100>")
)


@pytest.fixture
def verdict(tmp_path):
    def judge(text, **options):
        path = tmp_path / "a.pkt"
        path.write_text(text, encoding="utf-8")
        return play(path, **options).verdict

    return judge


# The retransmission of one segment is sent 302.5 ms after the write (RTO 200 ms + SRTT 100 ms, ticks of 1 ms).
RTO = "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n"


@pytest.mark.parametrize(
    ("time", "wanted"),
    [
        ("+.3075", "pass"),  # the tail loss probe: 2 SRTT + 100 ms would be later than the RTO
        ("+.28", "pass"),  # 12.5 % of 280 ms are 35 ms
        ("+.26", "fail"),
        ("+.35", "pass"),
        ("+.36", "fail"),
        ("+.1~+.4", "pass"),
        ("+.24~+.28", "pass"),  # a window is widened by the tolerance of its beginning
        ("+.1~+.28", "fail"),
        ("+.32~+.5", "pass"),
        ("*", "pass"),
        (".4", "pass"),  # absolute: the write was at 0.1 s
        (".36", "fail"),
        (".2~.5", "pass"),
        ("+0", "fail"),
        ("+2.5", "fail"),
    ],
)
def test_when_an_expected_packet_may_come(verdict, time, wanted):
    assert verdict(f"{SERVER}{RTO}{time} > P. 1:1001(1000) ack 1\n") == wanted


def test_tolerance_is_the_larger_of_both(verdict):
    text = SERVER + RTO + "+.4 > P. 1:1001(1000) ack 1\n"
    assert verdict(text) == "fail"
    assert verdict("--tolerance_usecs=100000\n" + text) == "pass"
    assert verdict(text, tolerance_us=100_000) == "pass"
    assert verdict("--tolerance_percent=30\n" + text) == "pass"
    near = SERVER + RTO + "+.3 > P. 1:1001(1000) ack 1\n"
    assert verdict("--tolerance_usecs=0\n--tolerance_percent=0\n" + near) == "fail"


def test_waiting_gives_up_two_seconds_after_the_expected_time(tmp_path):
    path = tmp_path / "a.pkt"
    path.write_text(SERVER + "+1 > . 1:1(0) ack 1\n+0 `sysctl -q net.ipv4.tcp_sack=1`\n", encoding="utf-8")
    played = play(path)
    assert (played.verdict, played.line, played.actual) == ("fail", 9, "nothing was sent")


def test_relative_time_counts_from_the_end_of_the_event_before(verdict):
    # The probe is sent 300 ms after the write, anywhere in its window; the next event is timed from there.
    text = SERVER + RTO + "+.2~+.5 > P. 1:1001(1000) ack 1\n+.1 < . 1:1(0) ack 1001 win 257\n"
    assert verdict(text + "0.1 write(4, ..., 1000) = 1000\n") == "fail"
    assert verdict(text + "0.505 write(4, ..., 1000) = 1000\n+0 > P. 1001:2001(1000) ack 1\n") == "pass"


def test_numbers_of_a_syn_are_as_written_and_all_others_count_from_it(verdict):
    far = SERVER.replace("< S 0:0(0)", "< S 70000:70000(0)")
    assert verdict(far) == "fail"  # the SYN-ACK acknowledges 70001
    far = far.replace("> S. 0:0(0) ack 1", "> S. 90000:90000(0) ack 70001")
    assert verdict(far + RTO) == "pass"
    client = """
0  socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS
+0 > S 500:500(0) <...>
+0 < S. 900:900(0) ack 501 win 65535 <mss 1000>
+0 > . 1:1(0) ack 1
"""
    assert verdict(client) == "pass"
    assert verdict(client.replace("ack 501", "ack 1")) == "fail"


def test_an_echo_is_translated_and_must_be_known(verdict):
    data = "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1 <nop,nop,TS val 500 ecr 800>\n"
    ack = "+.1 < . 1:1(0) ack 101 win 257 <nop,nop,TS val 900 ecr {}>\n"
    rtt = "+0 %{ assert 95000 <= tcpi_rtt <= 105000, tcpi_rtt }%\n"
    assert verdict(STAMPED + data + ack.format(500) + rtt) == "pass"
    assert verdict(STAMPED + data + ack.format(501)) == "fail"
    assert verdict(STAMPED + data + ack.format(0)) == "fail"
    assert verdict("--tcp_ts_ecr_scaled\n" + STAMPED + data + ack.format(200)) == "pass"


def test_values_of_timestamps_count_only_with_their_tick(verdict):
    text = STAMPED + "+.4 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1 <nop,nop,TS val {} ecr 1>\n"
    assert verdict(text.format(7)) == "pass"
    tick = "--tcp_ts_tick_usecs=1000\n"
    assert verdict(tick + text.format(600)) == "pass"
    assert verdict(tick + text.format(650)) == "pass"  # 12.5 % of half a second
    assert verdict(tick + text.format(700)) == "fail"


def test_options_are_exact_in_order_and_padding(verdict):
    text = STAMPED + "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1 {}\n"
    assert verdict(text.format("<nop,nop,TS val 1 ecr 800>")) == "pass"
    for wrong in ("", "<TS val 1 ecr 800,nop,nop>", "<nop,nop,TS val 1 ecr 800,nop,nop,nop,nop>"):
        assert verdict(text.format(wrong)) == "fail", wrong
    assert verdict(text.format("<...>")) == "pass"


def test_packets_join_but_never_split(verdict):
    text = SERVER + "+0 write(4, ..., 4000) = 4000\n"
    assert verdict(text + "+0 > P. 1:4001(4000) ack 1\n") == "pass"
    assert verdict(text + "+0 > P. 1:2001(2000) ack 1\n+0 > P. 2001:4001(2000) ack 1\n") == "pass"
    assert verdict(text + "+0 > . 1:1001(1000) ack 1\n") == "fail"
    assert verdict(text + "+0 > P. 1:3001(3000) ack 1\n") == "fail"
    assert verdict("--strict_segments\n" + text + "+0 > P. 1:4001(4000) ack 1\n") == "fail"
    assert verdict("--strict_segments\n" + text + "+0 > P. 1:2001(2000) ack 1\n") == "pass"
    plain = "`ethtool -K tun0 tso off gso off`\n" + text
    assert verdict(plain + "+0 > . 1:1001(1000) ack 1\n+0 > P. 1001:2001(1000) ack 1\n") == "pass"


def test_joined_packets_may_leave_at_different_times(verdict):
    text = (
        "`tc qdisc replace dev tun0 root fq`\n"
        + SERVER
        + "+0 write(4, ..., 20000) = 20000\n+0 > P. 1:10001(10000) ack 1\n"
    )
    text += "+.1 < . 1:1(0) ack 10001 win 514\n"
    assert verdict(text + "+.0025 > P. 10001:14001(4000) ack 1\n") == "pass"
    assert verdict(text + "+0 > P. 10001:16001(6000) ack 1\n") == "fail"  # the last piece is sent 7.5 ms later


def test_packets_after_the_last_expectation_count_only_if_asked(verdict):
    text = SERVER + "+0 write(4, ..., 100) = 100\n"
    assert verdict(text) == "pass"
    assert verdict(text, strict=True) == "fail"
    assert verdict(text + "+0 > P. 1:101(100) ack 1\n", strict=True) == "pass"


def test_a_window_is_the_raw_field_and_compared_where_it_stands(verdict):
    text = SERVER + "+0 < P. 1:1001(1000) ack 1 win 257\n+0 > . 1:1(0) ack 1001"
    assert verdict(text + "\n") == "pass"
    # as advertised by the kernel, in units of 256 bytes; the packet takes 2304 bytes of buffer space
    assert verdict(text + " win 1046\n") == "pass"
    assert verdict(text + " win 1045\n") == "fail"


def test_marks_are_compared_where_they_stand(verdict):
    setup = "`sysctl -q net.ipv4.tcp_ecn=1`\n" + SERVER.replace("< S 0", "< SEW 0").replace("> S. 0", "> SE. 0")
    text = setup + "+0 write(4, ..., 100) = 100\n+0 > {} P. 1:101(100) ack 1\n"
    for mark, wanted in (
        ("", "pass"),
        ("[ect0]", "pass"),
        ("[ect01]", "pass"),
        ("[noecn]", "fail"),
        ("[ect1]", "fail"),
    ):
        assert verdict(text.format(mark)) == wanted, mark


@pytest.mark.parametrize(
    ("calls", "wanted"),
    [
        ("+0...0.2 read(4, ..., 100) = 100\n+.2 < P. 1:101(100) ack 1 win 257\n", "pass"),
        ("+0...0.1 read(4, ..., 100) = 100\n+.2 < P. 1:101(100) ack 1 win 257\n", "fail"),
        ("+0...0.3 read(4, ..., 100) = 100\n+.2 < P. 1:101(100) ack 1 win 257\n", "fail"),
        ("+0...0.22 read(4, ..., 100) = 100\n+.2 < P. 1:101(100) ack 1 win 257\n", "pass"),  # 12.5 %
        ("+.1...0.3 read(4, ..., 100) = 100\n+.2 < P. 1:101(100) ack 1 win 257\n", "pass"),  # both from one instant
        ("+0...0.2 read(4, ..., 100) = 50\n+.2 < P. 1:101(100) ack 1 win 257\n", "fail"),
        ("+0...0.2 read(4, ..., 100) = 100\n", "fail"),  # never
        ("+0 read(4, ..., 100) = 100\n+.2 < P. 1:101(100) ack 1 win 257\n", "fail"),  # blocks, although it may not
        ("+0...0 read(4, ..., 100) = 0\n", "fail"),
        ("+0 recv(4, ..., 100, MSG_DONTWAIT) = -1 EAGAIN (Resource temporarily unavailable)\n", "pass"),
        ("+0 recv(4, ..., 100, MSG_DONTWAIT) = -1 EINTR\n", "fail"),
        ("+0 recv(9, ..., 100, MSG_DONTWAIT) = -1 EBADF\n", "pass"),
    ],
)
def test_calls_return_what_and_when(verdict, calls, wanted):
    assert verdict(SERVER + calls) == wanted


def test_a_definition_in_the_script_wins(verdict):
    text = SERVER + "+0 write(4, ..., SIZE) = SIZE\n+0 > P. 1:101(100) ack 1\n"
    assert verdict(text, defines=[("SIZE", "100")]) == "pass"
    assert verdict(text, defines=[("SIZE", "200")]) == "fail"
    assert verdict("--define=SIZE=100\n" + text, defines=[("SIZE", "200")]) == "pass"
    assert verdict("-D SIZE=100\n" + text) == "pass"


@pytest.mark.parametrize(
    "setup", ["`./defaults.sh`", "`../common/defaults.sh\n./set_sysctls.py /proc/sys/net/ipv4/tcp_sack=1`"]
)
def test_setup_and_cleanup_commands(verdict, setup):
    assert verdict(setup + SERVER + "`/tmp/sysctl_restore_${PPID}.sh`\n") == "pass"


def test_code_sees_the_socket_at_its_time_and_one_scope(verdict):
    text = SERVER + "+0 %{ before = tcpi_unacked }%\n" + RTO + "+0 %{ assert (before, tcpi_unacked) == (0, 1) }%\n"
    assert verdict(text) == "pass"
    assert verdict(text + "+0 %{ assert before == 1 }%\n") == "fail"
    assert verdict(text + "+0 %{\nassert before == 0;\\\n   assert tcpi_unacked == 1;\\\n}%\n") == "pass"
    assert verdict(text + "+0 %{ assert tcpi_no_such_thing == 1 }%\n") == "unsupported"


def test_print_may_be_of_python_2(tmp_path):
    path = tmp_path / "a.pkt"
    path.write_text(SERVER + "+0 %{\nprint tcpi_snd_cwnd, 'segments'\nprint(1)\n}%\n", encoding="utf-8")
    played = play(path)
    assert (played.verdict, played.printed) == ("pass", ("10 segments", "1"))


def test_parameters_may_change_between_connections_only(verdict):
    change = "+0 `sysctl -q net.ipv4.tcp_sack=0`\n"
    assert verdict(SERVER + change) == "unsupported"
    assert verdict(SERVER + "+0 `ethtool -K tun0 tso off gso off`\n") == "pass"
    again = SERVER.replace("0   socket", "+0  socket").replace("<...>", "<mss 1460,nop,wscale 8>")
    assert verdict(SERVER + "+0 close(4) = 0\n+0 close(3) = 0\n" + change + again) == "pass"
