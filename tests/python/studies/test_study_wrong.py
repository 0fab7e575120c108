"""Tests for messages about errors in a user's study."""

from ackclock.cli import main
from ackclock.study import plugin


def test_an_error_is_told_by_its_line(tmp_path, capsys):
    """The error is not reported as an internal one."""
    program = plugin.new("mine", tmp_path) / "study.py"
    before, head, after = program.read_text().partition("def run(plan: Plan) -> Data:\n")
    program.write_text(f"{before}{head}    1 / 0\n{after}")
    assert main(["study", "run", f"{tmp_path / 'mine'}/"]) == 2
    err = capsys.readouterr().err
    assert f"study.py, line {len((before + head).splitlines()) + 1}: ZeroDivisionError: division by zero" in err
    assert "please report" not in err
