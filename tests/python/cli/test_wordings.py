"""Tests for the words of refusals and notices: what was found, what is allowed, and where it is instead."""

from __future__ import annotations

import pytest

from ackclock.cli import main


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["lesson", "check", "nope"], 'LESSON: found "nope"; allowed: bbr, '),
        (["run", "first", "--controller", "none.py:A"], "none.py, which cannot be read (no such file or directory)"),
        (["evaluate", "cubic", "--rows", "99"], '--rows: found "99"; allowed: 1, 2, 3, 4, '),
        (["run", "first", "--plot", "cwnd"], 'found "cwnd"; did you mean "cwnd.png"?; allowed: NAME.png or TABLE.COLUMN=FILE.png'),
        (["run", "first", "--plot", "queu.svg"], 'found "queu.svg"; did you mean "queue.svg"?; allowed: NAME.png'),
        (["run", "first", "--pcap", "--out", "x"], '--pcap: found "--out", an option; allowed: a name'),
        (["run", "first", "--pcap", "--json"], '--pcap: found "--json", an option; allowed: a name'),
        (["import", "tc", "nofile"], "nofile: cannot be read (no such file or directory); allowed: a script with commands of `tc`"),
        (["list", "cubic"], 'found "cubic", which is in the list of controllers; did you mean "list controllers"?'),
        (["compare", "first", "first", "--controller", "reno"], "allowed: a file for each of the two scenarios; `run` takes --controller"),
        (["study", "run", "prr", "iw10", "prr"], 'NAME: found "prr" twice; allowed: each study once'),
        (["list", "nothing"], 'list: found "nothing"; allowed: queues, '),
    ],
)  # fmt: skip
def test_a_refusal_is_one_line_that_leads_on(
    command: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1
    assert "--controller: congestion_control" not in told
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_begins_with_a_hyphen_is_told_how(
    capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "first", "--set", "duration=100 ms", "--pcap", "./--out"]) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["--out"]
    capsys.readouterr()


def test_a_citation_names_what_a_run_has_changed(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    """Regression: a run of reno for 2 s was cited as the shipped scenario, which runs cubic for 30 s."""
    folder = str(tmp_path / "run")
    assert main(["run", "first", "--controller", "reno", "--set", "duration=2 s", "--out", folder]) == 0
    capsys.readouterr()
    assert main(["cite", folder]) == 0
    told = capsys.readouterr().out
    assert "run first, duration = 2 s, flows.0.congestion\\_control = reno, seed 1, digest " in told
    other = str(tmp_path / "other")
    assert main(["run", "first", "--set", "duration=2 s", "--out", other]) == 0
    capsys.readouterr()
    assert main(["cite", other]) == 0
    told = capsys.readouterr().out
    assert "run first, duration = 2 s, flows.0.congestion\\_control = cubic, seed 1" in told


def test_a_citation_holds_no_path_of_a_machine(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def on_ack(self, window, ack):\n        pass\n\n    def on_congestion_event(self, window, in_flight):\n        return window.cwnd / 2\n"
    )
    folder = str(tmp_path / "run")
    assert (
        main(["run", "first", "--controller", f"{tmp_path}/mine.py:Mine", "--set", "duration=1 s", "--out", folder])
        == 0
    )
    capsys.readouterr()
    assert main(["cite", folder]) == 0
    told = capsys.readouterr().out
    assert "congestion\\_control = mine.py:Mine, seed 1" in told
    assert str(tmp_path) not in told


def test_fidelity_says_what_it_is_about_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ackclock import fidelity

    def compare(**options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fidelity, "compare", compare)
    assert main(["fidelity"]) == 130
    assert "about a minute with 40" in capsys.readouterr().err
