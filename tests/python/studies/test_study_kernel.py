"""Tests for the kernel part in a study's report: made in the same run, or recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_study_claims import study

from ackclock import report
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.study import kernel_record
from ackclock.study.kernel import KernelPart
from ackclock.study.kernel_record import KernelRecord

TABLE = report.Table(
    caption="both beside each other",
    header=("claim", "kernel"),
    rows=((report.TableCell(text="X1", kind="head", span=2), "✓ holds: 3 %"), ("? undecided",)),
)


def found(**taken: str) -> KernelRecord:
    return KernelRecord(kernel="7.0", runs=1234, command="ackclock x", tables=(TABLE,), taken=taken)


def test_a_record_of_the_kernel_comes_back_as_it_was(tmp_path):
    path = tmp_path / "kernel.json"
    assert kernel_record.read(path) is None
    assert kernel_record.read(None) is None
    kernel_record.write(path, found(), version="1.2.3", date="2026-01-02")
    back = kernel_record.read(path)
    assert back == found(version="1.2.3", date="2026-01-02")
    with pytest.raises(InputError, match="cannot be written"):
        kernel_record.write(tmp_path / "no" / "kernel.json", found(), version="1", date="2")


def test_the_report_of_a_study_shows_what_the_kernel_did(tmp_path):
    path = tmp_path / "kernel.json"
    part = KernelPart(
        summary="", experiments=(), claims=(), left_out={}, sections=lambda tables: (), scenarios=dict, record=path
    )
    result = replace(study(tmp_path), kernel=lambda: part).run()
    assert "On the real kernel" not in report.render(result.page())

    kernel_record.write(path, found(), version="1.2.3", date="2026-01-02")
    html = report.render(result.page())
    assert "Recorded 2026-01-02 with ackclock 1.2.3, not by this run: 1,234 runs on Linux 7.0" in html
    assert "✓ holds: 3 %" in html

    html = report.render(replace(result, kernel=found()).page())
    assert "Found by this run: 1,234 runs" in html
    assert "Recorded 2026" not in html


def test_what_cannot_be_recorded_is_refused(capsys, monkeypatch):
    from ackclock import linux

    monkeypatch.setattr(linux, "installed", lambda: None)
    assert main(["study", "run", "prr", "--backend", "linux", "--record", "--seeds", "3"]) == 2
    assert "--record: found --seeds 3" in capsys.readouterr().err
    assert main(["study", "run", "prr", "--backend", "kernel"]) == 2
    assert "allowed: sim, linux, both" in capsys.readouterr().err
