"""The table of `ackclock read` on narrow terminals: addresses stay whole."""

import subprocess
import sys
from pathlib import Path

import pytest

import ackclock


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the capture of a short run."""
    path = tmp_path_factory.mktemp("narrow") / "short.pcapng"
    ackclock.run(ackclock.load("reno-10m").set("duration", "500 ms"), pcap=path)
    return path


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_addresses_are_not_broken(capture: Path, columns: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ackclock", "read", str(capture)],
        env={"COLUMNS": str(columns), "PATH": "", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert any("10.0.0.1:5001 " in line for line in lines)
    assert any("10.1.0.1:40000" in line for line in lines)
    assert max(len(line) for line in lines) <= columns
