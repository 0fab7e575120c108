"""The how-to's example of a QUIC stack beside the kernel's TCP, run if that stack (aioquic, from PyPI) is installed for this Python."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ackclock import linux
from ackclock.cli import main

PAGE = Path(__file__).parents[3] / "docs/how-to/run-your-own-programs.md"
KEY = "openssl req -x509 -newkey ed25519 -nodes -keyout key.pem -out cert.pem -days 36500 -subj /CN=server"


@pytest.mark.deep
@pytest.mark.skipif(importlib.util.find_spec("aioquic") is None, reason="aioquic is not installed")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_example_says_what_it_gives(
    kernel: linux.Kernel, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("quic.py", "beside.toml"):
        found = re.search(rf"```\w+ {re.escape(name)}\n(.*?)```", text, re.DOTALL)
        assert found is not None
        Path(name).write_text(found[1])
    assert KEY in text
    subprocess.run(KEY.split(), check=True, capture_output=True)
    words = ["--server", f"{sys.executable} quic.py serve", "--client-start", "1 s"]
    words += ["--client", f"{sys.executable} quic.py get 5000000", "--out", "out", "--wall-limit", "600", "--json"]
    assert main(["live", "beside.toml", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    printed = Path("out/client/client.stdout").read_text()
    assert re.fullmatch(r"5000000 bytes in \d+\.\d{3} s\n", printed)
    assert abs(float(printed.split()[3]) - 8.110) < 0.5, "of another version of aioquic or Python, too"
    assert 4e6 < told["flows"][0]["goodput_bps"] < 7e6
