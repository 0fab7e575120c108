"""Tests for the lab's command, with a one-line page unless the lab is built."""

import http.client
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from ackclock.cli import _lab, main

SCENARIO = 'duration = "1 s"\n[network.bottleneck]\nrate = "1 Mbit/s"\n[[flows]]\n'


@pytest.mark.parametrize("kind", ["itself", "link", "hard link", "link that is read"])
def test_the_scenario_is_not_replaced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, file, other = tmp_path / "page.html", tmp_path / "x.toml", tmp_path / "other"
    page.write_text(f"<p>{_lab.OWN}</p>", encoding="utf-8")
    monkeypatch.setattr(_lab, "PAGE", page)
    file.write_text(SCENARIO, encoding="utf-8")
    if kind.startswith("link"):
        other.symlink_to(file)
    elif kind == "hard link":
        other.hardlink_to(file)
    asked, into = {"itself": (file, file), "link that is read": (other, file)}.get(kind, (file, other))
    assert main(["lab", str(asked), "--save", str(into)]) == 2
    assert "found what is read; allowed: another name" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == SCENARIO
    assert main(["lab", str(file), "--save", str(tmp_path / "new.html")]) == 0


def test_no_other_page_may_frame_it() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _lab._handler(b"page")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            asked = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
            asked.request("GET", "/")
            answer = asked.getresponse()
            assert (answer.status, answer.read()) == (200, b"page")
            assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
            assert answer.headers["X-Frame-Options"] == "DENY"
            asked.close()
        finally:
            server.shutdown()
