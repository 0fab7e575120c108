"""Tests for obtaining kernel sources when the documented kernel's archive is missing, changed or unreachable."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ackclock import linux
from ackclock.errors import UnavailableError
from ackclock.linux import _build, _source

PACKAGE, VERSION = _source.PINNED
Apt = Callable[..., None]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_build, "_need_tools", lambda: None)
    return tmp_path / "cache" / "ackclock" / "linux"


@pytest.fixture
def apt(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    """Put a fake apt on the path that offers these packages and versions, or cannot reach its mirror."""
    place, lists = tmp_path / "bin", tmp_path / "lists"
    place.mkdir()
    lists.mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")

    def program(name: str, text: str) -> None:
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)

    def install(packages: dict[str, list[str]], *, reached: bool = True) -> None:
        for name, versions in packages.items():
            shown = [f"Package: {name}\nVersion: {version}\n" for version in versions]
            (lists / name).write_text("\n".join(shown))
        (lists / "search").write_text("".join(f"{name} - source\n" for name in packages))
        program("apt-get", "" if reached else "echo 'E: Could not resolve deb.debian.org' >&2; exit 100")
        program("apt-cache", f'if [ "$1" = show ]; then cat "{lists}/$2"; else cat "{lists}/search"; fi')
        program("dpkg-deb", "exit 1")

    return install


def test_a_version_that_debian_has_no_more_names_the_one_it_has(apt: Apt, cache: Path) -> None:
    apt({PACKAGE: ["7.3.9-1"]})
    with pytest.raises(UnavailableError) as refused:
        linux.build()
    said = str(refused.value)
    assert (
        f"{PACKAGE}_{VERSION}, the kernel whose numbers the documentation prints, is not in Debian's archive any more"
        in said
    )
    assert f"--source {PACKAGE} (7.3.9-1)" in said
    assert _source.PINNED_SHA256 in said
    assert not list(cache.glob("kernel-*"))


def test_a_package_that_debian_has_no_more_asks_for_the_archive(apt: Apt) -> None:
    apt({"linux-source-9.9": ["9.9.1-1"]})
    with pytest.raises(UnavailableError, match=r"any more; allowed: --source with its archive, SHA-256 [0-9a-f]{64}"):
        linux.build()


def test_an_archive_with_another_hash_is_not_built(apt: Apt, cache: Path) -> None:
    apt({PACKAGE: [VERSION]})
    kept = cache / "sources" / f"{PACKAGE}_{VERSION}.tar.xz".replace("~", "-")
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"not the kernel")
    found = "found SHA-256 [0-9a-f]{64}; allowed: " + _source.PINNED_SHA256
    with pytest.raises(UnavailableError, match=found):
        linux.build()
    assert not list(cache.glob("kernel-*"))


def test_a_mirror_out_of_reach_is_said(apt: Apt) -> None:
    apt({}, reached=False)
    with pytest.raises(
        UnavailableError, match=r"apt-get -qq update: E: Could not resolve .*; allowed: a machine that reaches"
    ):
        linux.build()


def test_a_machine_without_apt_is_told_of_archives(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"apt-get and dpkg-deb were not found; allowed: .* --source ARCHIVE"):
        linux.build()
