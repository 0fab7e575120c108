"""Sources of the linux backend in a wheel: packed, and unpacked into the cache unless there is a checkout."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import tool

from ackclock import linux
from ackclock.cli import main
from ackclock.errors import UnavailableError
from ackclock.linux import _cache


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation as made by a wheel, with a separate cache."""
    packed = tmp_path / "sources.tar.xz"
    tool("linux_sources").pack(packed, preset=0)
    monkeypatch.setattr(_cache, "CHECKOUT", tmp_path / "none")
    monkeypatch.setattr(_cache, "SOURCES", packed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return packed


def test_a_wheel_builds_of_the_same_sources(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the guest program is that of the checkout, and Cargo finds every member of the workspace."""
    place = _cache.repository()
    packed = _cache.guest_key()
    assert place.is_relative_to(_cache.folder())
    assert _cache.repository() == place
    assert [one.name for one in _cache.folder().iterdir()] == [place.parent.name]
    if shutil.which("cargo"):
        asked = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
        done = subprocess.run(asked, check=False, cwd=place.parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert '"ackclock-guest"' in done.stdout
    monkeypatch.undo()
    assert packed == _cache.guest_key()
    assert {file.name for file in place.glob("patches/*")} == {p.name for p in _cache.repository().glob("patches/*")}


def test_sources_of_another_version_are_not_needed(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = _cache.repository().parent.with_name("ours-0123456789abcdef")
    (old / "linux").mkdir(parents=True)
    assert linux.unused() == [old.name]
    assert main(["linux", "remove", "--unused"]) == 0
    assert f"removed: {old.name}" in capsys.readouterr().out
    assert _cache.repository().is_dir()


def test_an_installation_without_them_says_which_has_them(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel.unlink()
    with pytest.raises(UnavailableError, match="allowed: a wheel, which has them packed"):
        _cache.repository()
    assert main(["doctor"]) == 3
    assert "to build the linux backend: the linux backend needs the sources of ackclock" in capsys.readouterr().out
