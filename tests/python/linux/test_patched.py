"""Tests for kernels with the user's patches: only patched files change, and the next kernel starts from the original."""

import difflib
import os

import pytest

from ackclock.errors import InputError, UnavailableError
from ackclock.linux import _cache, _patched, use

ORIGINAL = {"net/ipv4/tcp_input.c": "int a;\nint b;\nint c;\n", "net/ipv4/tcp.c": "int d;\n"}


def patch(name, old, new):
    made = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}" if old else "/dev/null", f"b/{name}"
    )
    return "".join(made).encode()


@pytest.fixture
def tree(tmp_path):
    for name, text in ORIGINAL.items():
        file = tmp_path / "tree" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (1, 1))
    return tmp_path / "tree"


def built(tree, place, patches):
    """Return the tree as seen by `make`: the text of each file, and the files newer than the copy."""
    seen = {}

    def make():
        for file in sorted(place.rglob("*.[ch]")):
            name = str(file.relative_to(place))
            seen[name] = (file.read_text(encoding="utf-8"), file.stat().st_mtime > 1)

    _patched.patched(tree, place, patches, make)
    return seen


def test_a_patch_changes_its_files_and_no_other_and_the_next_one_takes_it_back(tree, tmp_path):
    place = tmp_path / "copy"
    _patched.copied(tree, place)
    name = "net/ipv4/tcp_input.c"
    first = patch(name, ORIGINAL[name], "int a;\nint X;\nint c;\n")
    seen = built(tree, place, [("first", first)])
    assert seen[name] == ("int a;\nint X;\nint c;\n", True)
    assert seen["net/ipv4/tcp.c"] == (ORIGINAL["net/ipv4/tcp.c"], False), "not compiled again"
    second = patch("net/ipv4/tcp.c", ORIGINAL["net/ipv4/tcp.c"], "int Y;\n")
    third = patch("net/ipv4/new.c", "", "int z;\n")
    seen = built(tree, place, [("second", second), ("third", third)])
    assert [seen[n][0] for n in (name, "net/ipv4/tcp.c", "net/ipv4/new.c")] == [ORIGINAL[name], "int Y;\n", "int z;\n"]
    assert "net/ipv4/new.c" not in built(tree, place, [("first", first)])
    assert (tree / name).read_text(encoding="utf-8") == ORIGINAL[name]


def test_a_patch_that_does_not_fit_or_compile_is_refused_and_leaves_nothing(tree, tmp_path):
    place = tmp_path / "copy"
    _patched.copied(tree, place)
    name = "net/ipv4/tcp_input.c"
    wrong = patch(name, "int q;\nint r;\n", "int q;\nint s;\n")
    with pytest.raises(InputError, match=r"^--patch wrong: found one that does not fit"):
        built(tree, place, [("wrong", wrong)])
    good = patch(name, ORIGINAL[name], "int a;\nint X;\nint c;\n")

    def fails():
        raise UnavailableError("the kernel does not build: an error")

    with pytest.raises(InputError, match=r"^--patch good: found what does not compile"):
        _patched.patched(tree, place, [("good", good)], fails)
    assert built(tree, place, [("good", good)])[name][0] == "int a;\nint X;\nint c;\n"


@pytest.mark.parametrize("text", [b"", b"no patch\n", b"--- a/x/../../etc/passwd\n+++ b/x/../../etc/passwd\n"])
def test_what_is_no_patch_of_a_tree_is_refused(tmp_path, text):
    file = tmp_path / "x.patch"
    file.write_bytes(text)
    with pytest.raises(InputError, match=r"^--patch"):
        _patched.read([file])
    with pytest.raises(InputError, match=r"^--patch"):
        _patched.read([tmp_path / "absent.patch"])


def test_kernels_have_names(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(_cache.CHOSEN, raising=False)
    for name in ("kernel-a", "kernel-b"):
        place = _cache.writable() / name
        place.mkdir()
        (place / "kernel.json").write_text(f'{{"release": "7.{name[-1]}", "controllers": []}}', encoding="utf-8")
        (place / "linux").write_text("", encoding="utf-8")
        (place / "linux").chmod(0o755)
    _cache.set_current("kernel-a")
    with pytest.raises(InputError, match='found "mine"; allowed: none yet'):
        use("mine")
    _cache.set_name("mine", "kernel-b")
    assert (_cache.installed().release, _cache.installed("mine").release) == ("7.a", "7.b")
    with pytest.raises(InputError, match='found "mien"; allowed: mine'):
        use("mien")
    monkeypatch.setenv(_cache.CHOSEN, "")
    use("mine")
    assert _cache.installed().release == "7.b"
    for bad in ("", "../x", "A", "x" * 65):
        with pytest.raises(InputError, match="--name"):
            _cache.check_name(bad)
