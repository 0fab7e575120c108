"""Tests for packet scripts in the guest kernel, if built: verdicts, and the same scripts in the simulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT

from ackclock import linux
from ackclock.cli import main
from ackclock.errors import InputError, UnavailableError
from ackclock.script import Compared, find, linux_differs, play, play_each

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


@pytest.fixture(autouse=True)
def _kernel(request: pytest.FixtureRequest) -> None:
    """Return the real kernel; skip if it is not built."""
    lacking = [finding.what for finding in linux.missing(build=False)]
    if lacking and "without_a_kernel" not in request.node.name:
        pytest.skip(lacking[0])


def write(folder: Path, text: str) -> Path:
    path = folder / "a.pkt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("folder", sorted(path.name for path in SCRIPTS.iterdir()))
def test_own_scripts_are_the_same_on_both_backends(folder: str) -> None:
    """Only scripts that state a reason are exempt; an outdated reason also fails."""
    told = list(play_each(find([SCRIPTS / folder]), backend="both"))
    assert told
    assert all(isinstance(result, Compared) for result in told)
    wrong = [
        (result.sim.path, result.agreement, result.sim, result.linux)
        for result in told
        if isinstance(result, Compared)
        and not (result.agreement == "known" or (result.agreement == "same" and result.sim.verdict == "pass"))
    ]
    assert wrong == []


def test_few_scripts_say_that_the_kernel_differs() -> None:
    reasons = [reason for path in find([SCRIPTS]) if (reason := linux_differs(path))]
    assert sum("no kernel is the profile" in reason for reason in reasons) == 16
    # By verdicts alone, four more would agree, but three that pass on both send different packets.
    assert len(reasons) - 16 <= 4 + 3
    assert len(reasons) <= 21


def test_a_failure_names_the_line_and_what_was(tmp_path: Path) -> None:
    path = write(tmp_path, SERVER + "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:2001(2000) ack 1\n")
    told = play(path, backend="linux")
    assert (told.verdict, told.line) == ("fail", 10)
    assert "1:2001(2000)" in (told.expected or "")
    assert "payload length" in (told.actual or "")
    assert told.trace[-1].endswith("> P. 1:1001(1000) ack 1 win 1050")


@pytest.mark.parametrize(
    ("line", "verdict", "what"),
    [
        ("+0 read(4, ..., 100) = 100", "fail", "the call blocks"),
        ("+0...1 read(4, ..., 100) = 100", "fail", "still blocked"),
        ("+0 > . 1:1(0) ack 1", "fail", "nothing was sent"),
        ("+0 mmap(4, ...) = 0", "unsupported", "mmap"),
        ("+0 < udp (100)", "unsupported", "TCP"),
        ("+0 `sysctl -q net.ipv4.tcp_no_such_thing=1`", "unsupported", "tcp_no_such_thing"),
        ("+0 %{ assert tcpi_no_such_thing == 1 }%", "unsupported", "tcpi_no_such_thing"),
        ("+0 getsockopt(4, SOL_TCP, TCP_NODELAY, [1], [4]) = 0", "fail", "TCP_NODELAY is 0"),
        ("+0 write(9, ..., 100) = 100", "fail", "EBADF"),
    ],
)
def test_what_the_kernel_does_not_do_is_no_pass(tmp_path: Path, line: str, verdict: str, what: str) -> None:
    told = play(write(tmp_path, SERVER + line + "\n"), backend="linux")
    assert (told.verdict, told.line) == (verdict, 9)
    assert what in f"{told.actual} {told.unsupported}"


def test_a_script_repeats_bit_by_bit(tmp_path: Path) -> None:
    path = write(tmp_path, SERVER + "+0 write(4, ..., 20000) = 20000\n+5 %{ print(tcpi_rtt, tcpi_total_rto) }%\n")
    first, second = (play(path, backend="linux") for _ in range(2))
    assert first == second
    assert first.printed != ()


def test_parameters_reach_the_kernel(tmp_path: Path) -> None:
    path = write(tmp_path, SERVER.replace("<...>", "<mss 1460,nop,wscale 8>"))
    assert play(path, backend="linux").verdict == "fail"
    assert play(path, backend="linux", sysctls=[("tcp_sack", "0")]).verdict == "pass"


def test_the_command_shows_the_first_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stretched = "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n+0 %{ assert tcpi_rcv_wnd > 0 }%\n"
    path = write(tmp_path, SERVER + stretched)  # not reported by the simulated stack
    assert main(["script", str(path), "--backend", "both"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"differs      {path}:11")
    assert "tcpi_rcv_wnd" in out
    write(tmp_path, SERVER.replace("\n0 ", "\n// linux-differs: it tells more.\n0 ", 1) + stretched)
    assert main(["script", str(path), "--backend", "both", "--json"]) == 4
    [told] = json.loads(capsys.readouterr().out)["scripts"]
    assert (told["agreement"], told["linux_differs"]) == ("known", "it tells more.")
    assert (told["sim"]["verdict"], told["linux"]["verdict"]) == ("unsupported", "pass")
    write(tmp_path, "// linux-differs: not at all.\n" + SERVER)
    assert main(["script", str(path), "--backend", "both"]) == 1
    assert capsys.readouterr().out.startswith("stale ")


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, SERVER)
    for options, what in [({"profile": "rfc"}, "--profile"), ({"hz": 250}, "--hz"), ({"backend": "bsd"}, "--backend")]:
        with pytest.raises(InputError, match=what):
            play(path, **{"backend": "linux", **options})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a\.pkt:2:1"):
        play(write(tmp_path, "\nnonsense\n"), backend="linux")


def test_without_a_kernel_the_script_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UnavailableError, match="ackclock linux build"):
        play(write(tmp_path, SERVER), backend="linux")
