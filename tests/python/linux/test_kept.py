"""Tests for `ackclock linux list` and `remove`: files that are removed, and files still needed by another kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ackclock import linux
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.linux import _cache


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = tmp_path / "ackclock" / "linux"
    (place / "names").mkdir(parents=True)
    for folder in ("tree-a", "tree-b", "patched-b"):
        (place / folder).mkdir()
        (place / folder / "linux").write_bytes(b"built")
    (place / "guest-0").write_bytes(b"old")
    (place / f"guest-{_cache.guest_key()}").write_bytes(b"of these sources")
    made = {
        "1": ("7.3.4", "tree-a", {}),
        "2": ("6.12.117", "tree-b", {}),
        "3": ("6.12.117", "patched-b", {"mine.patch": "0"}),
    }
    for key, (release, tree, patches) in made.items():
        folder = place / f"kernel-{key}"
        folder.mkdir()
        about = {"release": release, "source": "s", "patches": {"0001-tick-of-1-ms.patch": "0"} | patches}
        (folder / "kernel.json").write_text(json.dumps(about | {"files": {"ackclock_bbr.c": "0"}, "tree": tree}))
    (place / "current").write_text("kernel-1\n")
    for name, key in (("plain", "2"), ("mine", "3"), ("again", "3")):
        (place / "names" / name).write_text(f"kernel-{key}\n")
    return place


def test_every_kernel_is_listed_with_what_is_the_users_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    current, mine, plain = linux.kept()
    assert current.current
    assert current.names == ()
    assert current.own == ()
    assert mine.names == ("again", "mine")
    assert mine.own == ("mine.patch",)
    assert mine.tree == "patched-b"
    assert plain.names == ("plain",)
    assert plain.release == "6.12.117"
    assert main(["linux", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["tree"] for one in told["kernels"]] == ["tree-a", "patched-b", "tree-b"]
    assert told["unused"] == ["guest-0"]
    assert main(["linux", "list"]) == 0
    assert "mine.patch" in capsys.readouterr().out


def test_a_kernel_with_another_name_stays(here: Path) -> None:
    assert linux.remove(["mine"]) == []
    assert (here / "kernel-3").is_dir()
    assert linux.remove(["again"]) == ["kernel-3", "patched-b"]
    assert not (here / "kernel-3").exists()
    assert not (here / "patched-b").exists()
    assert (here / "tree-b").is_dir()


def test_what_no_kernel_needs_goes_and_the_current_one_stays(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "names" / "mine").unlink()
    (here / "names" / "plain").unlink()
    assert linux.unused() == ["kernel-2", "guest-0"], "the copy with patches is made of tree-b"
    (here / "names" / "again").unlink()
    assert main(["linux", "remove", "--unused", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["removed"]) == {
        "kernel-2",
        "kernel-3",
        "guest-0",
        "patched-b",
        "tree-b",
    }
    assert (here / "kernel-1").is_dir()
    assert (here / "tree-a").is_dir()


def test_a_tree_stays_while_it_is_not_known_what_a_kernel_was_built_in(here: Path) -> None:
    file = here / "kernel-1" / "kernel.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_bytes()).items() if key != "tree"}))
    (here / "tree-c").mkdir()
    assert "tree-c" not in linux.unused()


def test_an_unknown_name_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r'^linux remove: found "min"; allowed: again, mine, plain'):
        linux.remove(["min"])
    assert main(["linux", "remove"]) == 2
    assert "found neither a name nor --unused" in capsys.readouterr().err
