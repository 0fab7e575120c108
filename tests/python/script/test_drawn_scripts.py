"""Tests for scripts drawn from a seed, whose packets are compared one by one."""

from __future__ import annotations

from typing import Any

import pytest

from ackclock.cli import main
from ackclock.script import KINDS, Compared, DrawnScript, Played, different_packet, drawn_scripts, shrink

SENT = (
    "0.000000 < S 0:0(0) win 65535",
    "0.010000 > . 1:1001(1000) ack 1 win 1050",
    "0.300000 > P. 1001:2001(1000) ack 1",
)


def test_equal_packets_are_equal_and_injected_ones_do_not_count() -> None:
    assert different_packet(SENT, SENT) is None
    assert different_packet(SENT, ("0.000000 < . 1:1(0) ack 1 win 7", *SENT[1:])) is None
    later = (SENT[0], SENT[1], SENT[2].replace("0.300000", "0.302400"))
    assert different_packet(SENT, later) is None


@pytest.mark.parametrize(
    ("kernel", "found"),
    [
        (
            (SENT[0], SENT[1].replace(". 1:", "P. 1:"), SENT[2]),
            r"packet 1: . 1:1001(1000) ack 1 win 1050 at 0.0100 s, kernel P. 1:",
        ),
        ((SENT[0], SENT[1].replace("win 1050", "win 1053"), SENT[2]), "win 1053"),
        ((SENT[0], SENT[1], SENT[2].replace("0.300000", "0.303000")), "packet 2: "),
        (SENT[:2], "packet 2: only the simulator sends P. 1001:2001(1000) ack 1 at 0.3000 s"),
        ((*SENT, "0.400000 > . 1:2(1) ack 1"), "packet 3: only the kernel sends . 1:2(1) ack 1 at 0.4000 s"),
    ],
)
def test_the_first_packet_that_differs_is_told(kernel: tuple[str, ...], found: str) -> None:
    assert found in str(different_packet(SENT, kernel))


def test_timestamps_count_from_the_hosts_first_one() -> None:
    def trace(first: int, second: int) -> tuple[str, ...]:
        return tuple(f"{t} > . 1:2(1) ack 1 <nop,nop,TS val {v} ecr 7>" for t, v in (("0.1", first), ("0.2", second)))

    assert different_packet(trace(100, 200), trace(4_294_967_290, 94)) is None
    assert different_packet(trace(100, 200), trace(5, 155)) is not None


def test_scripts_that_pass_on_both_differ_by_their_packets_and_what_they_print() -> None:
    def compared(trace: tuple[str, ...], printed: tuple[str, ...], **linux: Any) -> Compared:
        sim = Played(path="x.pkt", verdict="pass", trace=SENT, printed=("10",))
        return Compared(
            sim=sim, linux=Played(path="x.pkt", **{"verdict": "pass", "trace": trace, "printed": printed, **linux})
        )

    assert compared(SENT, ("10",)).agreement == "same"
    assert compared(SENT[:2], ("10",)).agreement == "differs"
    assert compared(SENT, ("9",)).difference == "prints 10, kernel 9"
    assert compared(SENT, ("10",), verdict="fail", line=3).difference == "pass, kernel fail at line 3"


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_scripts_depend_on_seed_and_number_alone_and_can_be_played(kind: str, tmp_path: Any) -> None:
    from ackclock.script import play

    few, many = drawn_scripts(kind, 3, 2), drawn_scripts(kind, 3, 6)
    assert few == many[:2]
    assert drawn_scripts(kind, 4, 1)[0].text() != few[0].text()
    for one in many:
        path = tmp_path / f"{one.name}.pkt"
        path.write_text(one.text())
        played = play(path)
        assert played.verdict == "pass", (one.text(), played)
        assert len(played.printed) == 1
        assert len({at for at, _ in one.events}) == len(one.events)


def test_shrinking_keeps_what_the_difference_needs() -> None:
    events = tuple((n, f"< . 1:1(0) ack {n}") for n in range(1, 40))
    script = DrawnScript(name="x", head=(), events=((0, "write(4, ..., 9) = 9"), *events))

    def differs(some: DrawnScript) -> bool:
        return {7, 31} <= {at for at, _ in some.events}

    assert [at for at, _ in shrink(script, differs).events] == [0, 7, 31]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--drawn", "fre"], '--drawn: found "fre"; allowed: receiver, free'),
        (["--drawn", "free", "x.pkt"], "--drawn: found it beside a file; allowed: one of them"),
        ([], "script: found no script; allowed: FILE_OR_FOLDER..., or --drawn"),
    ],
)
def test_scripts_that_cannot_be_drawn(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["script", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
