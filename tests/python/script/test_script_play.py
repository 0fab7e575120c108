"""Tests for packet scripts against the stack: the project's own scripts pass; verdicts; the command."""

from __future__ import annotations

import json
import time

import pytest
from conftest import ROOT

from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.script import find, play

SCRIPTS = ROOT / "tests" / "scripts"
SERVER = """
0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0  bind(3, ..., ...) = 0
+0  listen(3, 1) = 0
+0  < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0  > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 257
+0  accept(3, ..., ...) = 4
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="a.pkt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_all_own_scripts_pass():
    files = find([SCRIPTS])
    assert len(files) >= 60
    began = time.process_time()
    results = [play(f) for f in files]
    assert time.process_time() - began < 20
    assert [(r.path, r.line, r.expected, r.actual, r.unsupported) for r in results if r.verdict != "pass"] == []


def test_every_script_names_its_source():
    assert [str(f) for f in find([SCRIPTS]) if "// Source: " not in f.read_text(encoding="utf-8")] == []


# -- verdicts --


def test_failure_tells_what_was_expected_beside_what_was(written):
    played = play(written(SERVER + "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:2001(2000) ack 1\n"))
    assert (played.verdict, played.line) == ("fail", 10)
    assert "1:2001(2000)" in played.expected
    assert "1:1001(1000)" in played.actual
    assert "payload length" in played.actual
    assert played.trace[-1].endswith("> P. 1:1001(1000) ack 1 win 1050")


def test_an_unexpected_packet_is_seen_at_the_next_expectation(written):
    text = "+0 write(4, ..., 400) = 400\n+0 > P. 1:401(400) ack 1\n+0 < P. 1:1001(1000) ack 1 win 257\n"
    played = play(written(SERVER + text + "+.1 < . 1001:1001(0) ack 401 win 257\n+0 > P. 401:801(400) ack 1\n"))
    assert (played.verdict, played.line) == ("fail", 13)
    assert played.actual.startswith(". 401:401(0) ack 1001 ")


def test_nothing_sent_is_a_failure(written):
    played = play(written(SERVER + "+0 > P. 1:2001(2000) ack 1\n"))
    assert (played.verdict, played.actual) == ("fail", "nothing was sent")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("+0 mmap(4, ...) = 0", "mmap"),
        ("+0 send(4, ..., 1, MSG_OOB) = 1", "MSG_OOB"),
        ("+0 poll([{fd=9, events=POLLIN, revents=0}], 1, 0) = 0", "descriptor"),
        ("+0 ioctl(4, SIOCATMARK, [0]) = 0", "SIOCATMARK"),
        ('+0 open("/etc/passwd", O_RDONLY) = 5', "/etc/passwd"),
        ("+0 setsockopt(4, SOL_TCP, TCP_LINGER2, [3], 4) = 0", "TCP_LINGER2"),
        ("+0 < icmp echo_request id 5", "echo_request"),
        ("+0 < S 0:0(0) win 1000 <mss 1000,FO 0102030405060708,nop,nop>", "Fast Open"),
        ("+0 `rm -rf /`", "rm"),
        ("+0 %{ assert tcpi_snd_cwnd_clamp > 0 }%", "tcpi_snd_cwnd_clamp"),
        ("+0 %{ __import__('os').system('true') }%", "not allowed"),
    ],
)
def test_what_is_not_played_is_never_a_pass(written, line, what):
    played = play(written(SERVER + line + "\n"))
    assert played.verdict == "unsupported"
    assert what in played.unsupported
    assert played.line == 9


def test_parameters_come_from_the_command_line_too(written):
    text = SERVER.replace("<...>", "<mss 1460,nop,wscale 8>")
    assert play(written(text)).verdict == "fail"
    assert play(written(text), sysctls=[("tcp_sack", "0")]).verdict == "pass"
    assert play(written(text), sysctls=[("tcp_abort_on_overflow", "1")]).verdict == "unsupported"


# -- the command --


def call(capsys, *argv):
    code = main([str(a) for a in argv])
    out, err = capsys.readouterr()
    return code, out, err


def test_command(capsys, written):
    good = written(SERVER, "good.pkt")
    bad = written(SERVER + "+0 > P. 1:2001(2000) ack 1\n", "bad.pkt")
    odd = written(SERVER + "+0 mmap(4, ...) = 5\n", "odd.pkt")
    code, out, err = call(capsys, "script", good)
    assert (code, err) == (0, "")
    assert out.startswith("pass ")
    assert call(capsys, "script", good, odd)[0] == 4
    code, out, _ = call(capsys, "script", good.parent)
    assert code == 1
    assert "1 pass, 1 fail, 1 unsupported" in out
    code, out, _ = call(capsys, "script", good, bad, odd, "--json")
    assert code == 1
    scripts = json.loads(out)["scripts"]
    assert [s["verdict"] for s in scripts] == ["pass", "fail", "unsupported"]
    assert all(list(s) == ["path", "verdict", "line", "expected", "actual", "unsupported"] for s in scripts)
    assert scripts[1]["line"] == 9
    code, out, _ = call(capsys, "script", good, "-v")
    assert "> S. 0:0(0) ack 1 win 65535" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["/nonexistent/a.pkt"], "found nothing"),
        (["FILE", "--profile", "linux-9"], "linux-6"),
        (["FILE", "--hz", "-1"], "--hz"),
        (["FILE", "--set", "tcp_sack"], "tcp_sack=0"),
        (["FILE", "--set", "tcp_sack=7"], "tcp_sack"),
    ],
)
def test_bad_input(capsys, written, argv, said):
    argv = [str(written(SERVER)) if a == "FILE" else a for a in argv]
    code, out, err = call(capsys, "script", *argv)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        SERVER + "+0 write(4, " + "[" * 100_000 + "] = 0\n",
        SERVER + "+0 %{ assert " + "(" * 10_000 + "1" + ")" * 10_000 + " }%\n",
        SERVER + "+0~+99999999999 > . 1:1(0) ack 1\n",
        SERVER + "+999999 > . 1:1(0) ack 1\n",
        SERVER + "+0 write(4, ..., 999999999999) = 999999999999\n",
        SERVER + "+0 write(4, ..., 60000000) = 60000000\n" + "+999999 < . 1:1(0) ack 1 win 65535\n" * 1000,
        SERVER + "+0 < . 1:1(0) ack 1 win 257\n" * 30_000,
        SERVER + "+0 %{ x = 10 ** 10 ** 10 }%\n",
        "0 close(3) = 0\n" * 100_000,
    ],
    ids=["nesting", "parentheses", "range", "far", "write", "timers", "many", "power", "large"],
)
def test_hostile_scripts_end(written, text):
    began = time.process_time()
    try:
        verdict = play(written(text)).verdict
    except InputError:
        verdict = "invalid"
    assert verdict in ("fail", "unsupported", "invalid") or "ack 1 win 257" in text
    assert time.process_time() - began < 5


def test_a_huge_file_is_not_read(tmp_path):
    path = tmp_path / "huge.pkt"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    began = time.process_time()
    with pytest.raises(InputError, match="limit"):
        play(path)
    assert time.process_time() - began < 1
