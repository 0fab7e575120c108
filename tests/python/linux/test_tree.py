"""Tests for a copy that follows a tree: changed files are written, unchanged ones keep their dates, and the tree is only
read.
"""

import os
import shutil
import subprocess

import pytest

from ackclock.errors import InputError
from ackclock.linux import _build, _tree
from ackclock.linux._source import NEEDED_FILES

TEXTS = {
    "Makefile": "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n",
    "net/ipv4/tcp_input.c": "int a;\nint b;\nint c;\n",
    "net/ipv4/Makefile": "obj-y := tcp_input.o\n",
    "net/ipv4/Kconfig": "config TCP\n",
}
OLD = (1, 1)
PATCH = b"--- a/net/ipv4/tcp_input.c\n+++ b/net/ipv4/tcp_input.c\n@@ -1,3 +1,3 @@\n int a;\n-int b;\n+int X;\n int c;\n"


@pytest.fixture
def place(tmp_path):
    tree = tmp_path / "linux"
    for name in (*NEEDED_FILES, *TEXTS, "net/core/dev.c", "net/core/dev.o", "include/generated/a.h"):
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TEXTS.get(name, f"/* {name} */\n"), encoding="utf-8")
    (tree / "link").symlink_to("net/core")
    return tree


def follow(place, tmp_path, patches=(), base=None):
    """Return the hash and the names of the written files."""
    copy = tmp_path / "copy"
    for file in copy.rglob("*"):
        if not file.is_symlink():
            os.utime(file, OLD)
    digest = _tree.followed(_tree.find(place), copy, base, list(patches), lambda _: None)
    files = [f for f in copy.rglob("*") if f.is_file() and not f.name.startswith(".") and not f.is_symlink()]
    return digest, {str(f.relative_to(copy)) for f in files if f.stat().st_mtime > 1}


def test_a_changed_file_is_written_and_no_other(place, tmp_path):
    first, written = follow(place, tmp_path)
    assert {"net/core/dev.c", "Makefile"} <= written
    assert not {"net/core/dev.o", "include/generated/a.h"} & written, "what a build made"
    assert os.readlink(tmp_path / "copy/link") == "net/core"
    assert follow(place, tmp_path) == (first, set())
    (place / "net/core/dev.c").write_text("int d;\n", encoding="utf-8")
    second, written = follow(place, tmp_path)
    assert second != first
    assert written == {"net/core/dev.c"}
    (place / "net/core/dev.c").unlink()
    follow(place, tmp_path)
    assert not (tmp_path / "copy/net/core/dev.c").exists()


def test_patches_come_on_top_and_go_again_and_the_tree_is_only_read(place, tmp_path):
    name = "net/ipv4/tcp_input.c"
    before = {f: f.read_bytes() for f in place.rglob("*") if f.is_file()}
    plain, _ = follow(place, tmp_path)
    assert b"ackclock/" in (tmp_path / "copy/net/ipv4/Makefile").read_bytes()
    same, written = follow(place, tmp_path, [("mine", PATCH)])
    assert written == {name}
    assert same == plain, "the hash is the tree's"
    assert (tmp_path / "copy" / name).read_text(encoding="utf-8") == "int a;\nint X;\nint c;\n"
    assert follow(place, tmp_path, [("mine", PATCH)])[1] == set(), "a patch that was there before costs nothing"
    (place / name).write_text("int a;\nint b;\nint c;\nint d;\n", encoding="utf-8")
    follow(place, tmp_path, [("mine", PATCH)])
    assert (tmp_path / "copy" / name).read_text(encoding="utf-8") == "int a;\nint X;\nint c;\nint d;\n"
    assert follow(place, tmp_path)[1] == {name}
    assert "int b" in (tmp_path / "copy" / name).read_text(encoding="utf-8")
    (place / name).write_bytes(before[place / name])
    assert {f: f.read_bytes() for f in place.rglob("*") if f.is_file()} == before
    with pytest.raises(InputError, match=r"^--patch wrong: found one that does not fit"):
        follow(place, tmp_path, [("wrong", PATCH.replace(b"int b", b"int q"))])


def test_a_copy_of_a_built_tree_is_a_beginning_in_which_equal_files_are_not_compiled_again(place, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(place, base, symlinks=True)
    (base / "net/core/dev.c").write_text("int older;\n", encoding="utf-8")
    for file in base.rglob("*"):
        if not file.is_symlink():
            os.utime(file, OLD)
    _, written = follow(place, tmp_path, base=base)
    assert written == {"net/core/dev.c", "net/ipv4/Makefile"}
    assert (tmp_path / "copy/net/core/dev.o").is_file()
    assert _tree.version(place) == "7.3"


def test_what_stopped_half_way_is_compared_anew(place, tmp_path, monkeypatch):
    follow(place, tmp_path)
    (place / "net/core/dev.c").write_text("int d;\n", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(_tree, "_copied", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            follow(place, tmp_path)
    assert follow(place, tmp_path)[1] == {"net/core/dev.c"}


def test_a_checkout_is_what_git_says(place, tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (place / ".gitignore").write_text("*.o\nignored.c\ninclude/generated\n", encoding="utf-8")
    (place / "ignored.c").write_text("", encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    found = _tree.find(place)
    assert "net/core/dev.c" in found.files
    assert not {"ignored.c", "net/core/dev.o", "include/generated/a.h"} & set(found.files)
    assert found.name.startswith("linux")


def test_a_copy_is_configured_again_when_the_choices_changed(place, tmp_path):
    copy, made = tmp_path / "copy", []

    def configure():
        made.append(1)
        (copy / ".config").write_text("", encoding="utf-8")

    for expected in (1, 1):
        follow(place, tmp_path)
        _tree.configured(copy, "a", configure)
        assert len(made) == expected
    (place / "net/ipv4/Kconfig").write_text("config TCP2\n", encoding="utf-8")
    follow(place, tmp_path)
    _tree.configured(copy, "a", configure)
    assert len(made) == 2
    _tree.configured(copy, "b", configure)
    assert len(made) == 3


@pytest.mark.promise("P22")
def test_what_is_no_tree_is_refused(tmp_path, place):
    for folder, said in ((tmp_path / "absent", "found nothing"), (tmp_path, "found no Makefile")):
        with pytest.raises(InputError, match=rf"^--tree .*{said}.*; allowed: a folder"):
            _tree.find(folder)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="found no folder"):
        _tree.find(tmp_path / "file")
    with pytest.raises(InputError, match="--tree: found it beside --source"):
        _build.build(tree=place, source="x.tar")
    said = (
        "--patch 0001-tick.patch: found one that does not fit (1 out of 1 hunk FAILED); allowed: a patch of this tree"
    )
    assert str(_build._does_not_fit("--tree x", said)) == (
        "--tree x: found a tree that 0001-tick.patch does not fit (1 out of 1 hunk FAILED); allowed: Linux 6.1 or later"
    )
