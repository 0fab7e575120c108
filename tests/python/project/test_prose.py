"""Tests that `tools/check_prose.py` finds overlong pages, odd comments and commits without a body, all planted."""

from __future__ import annotations

import subprocess

import pytest
from conftest import tool


@pytest.fixture(scope="module")
def prose():
    return tool("check_prose")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("crates/net/src/link.rs", "/// Time of the pending event.\nfn a() {}\n/// It has no room.\nfn b() {}\n", 3),
        ("crates/net/src/link/crowd.rs", "    /// The same where no more\n    /// than ever wait.\n", 1),
        ("crates/cc/src/lib.rs", "let a = 1; // What of these few links have\n", 1),
        ("crates/cc/src/lib.rs", "/// Load, until\n/// somebody looks.\n", 1),
        ("crates/cc/src/lib.rs", 'return Err("nobody asked for it");\n', 1),
        ("web/lab.js", "/** Of a run. */\n", 1),
        ("linux/guest/a.c", "/* Those in it. */\n", 1),
        ("python/ackclock/diagnose/a.py", 'def f():\n    """So many bytes."""\n', 2),
        ("python/ackclock/diagnose/a.py", "x = 1\n# Its unit.\n", 2),
        ("python/ackclock/diagnose/a.py", 'x = "taken by somebody"\n', 1),
        ("python/ackclock/diagnose/a.py", 'x = 1\n"""Likewise for y."""\n', 2),
        ("tools/a.py", "# That which is left.\n", 1),
    ],
)
def test_a_planted_comment_without_a_noun_is_found(prose, tmp_path, name, text, line):
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    found = prose.by_room(tmp_path, [name])
    [room] = found
    [place] = found[room]
    assert place.startswith(f"{name}:{line}: ")
    [said] = prose.check_rooms(found)
    assert said.startswith(f"{room}: 1 comments without a noun for a subject; allowed: 0")


@pytest.mark.parametrize(
    "text",
    [
        "/// Items that wait; it is a count.\nfn a() {}\n",
        'let a = "The same, as a text of a program";\n',
        'let a = "https://example.org/somebodyelse";\n',
        "/// Item\nfn a() {}\n/// Whether the queue has room.\n",
        "// Offsets are bytes. The same holds for lengths.\n",
    ],
)
def test_an_ordinary_comment_is_left_alone(prose, text):
    assert prose.odd_remarks("crates/net/src/link.rs", text) == []


def test_a_docstring_that_says_one_thing_twice_is_found(prose):
    twice = """Return the rate. A late ACK would make it seem higher.\n\n    A late ACK would make it seem higher than it is.\n    """
    other = """Return the rate. A late ACK would make it seem higher.\n\n    Bytes count once, however often a segment was sent.\n    """
    assert [*prose.repetitions("a.py", f'def f():\n    """{twice}"""\n')] == [
        "a.py:2: its second paragraph repeats the first"
    ]
    assert [*prose.repetitions("a.py", f'def f():\n    """{other}"""\n')] == []
    assert [*prose.repetitions("a.py", 'def f():\n    """Return the rate."""\n')] == []


def test_rooms_are_named_after_what_they_hold(prose):
    assert [
        prose.room_of(name)
        for name in (
            "crates/net/src/link/crowd.rs",
            "crates/net/src/loss.rs",
            "python/ackclock/diagnose/_replay.py",
            "python/ackclock/text.py",
            "python/ackclock_studies/prr/pages.py",
            "crates/net/tests/conservation.rs",
            "crates/tcp/src/sender/tests.rs",
        )
    ] == ["net/link", "crates/net", "ackclock/diagnose", "ackclock", "ackclock_studies", None, None]


def test_a_number_that_is_not_needed_any_more_goes(prose, tmp_path):
    assert prose.check_rooms({"tools": []}) == []
    page = tmp_path / "docs/how-to/planted.md"
    page.parent.mkdir(parents=True)
    page.write_text("word " * 1500, encoding="utf-8")
    name = "docs/how-to/planted.md"
    assert prose.check_pages(tmp_path, [name], {name: 2000}) == [f"{name}: in LONGER, and has 1500 words; take it out"]


def test_a_planted_long_page_is_found(prose, tmp_path):
    for name, words in {"README.md": 901, "docs/studies/planted.md": 6000, "docs/how-to/planted.md": 1501}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("word " * words, encoding="utf-8")
    names = ["README.md", "docs/numbers.md", "docs/studies/planted.md", "docs/how-to/planted.md"]
    assert prose.check_pages(tmp_path, names, {}) == [
        "README.md: 901 words; allowed: 900",
        "docs/how-to/planted.md: 1501 words; allowed: 1500",
    ]
    assert prose.check_pages(tmp_path, names, {"README.md": 950, "docs/how-to/planted.md": 1501}) == []


def test_words_of_programs_are_not_counted_as_written_by_hand(prose, tmp_path):
    pages = {
        "docs/how-to/planted.md": "five words are by hand\n",
        "docs/studies/planted.md": "two words\n\n<!-- verdicts prr -->\n\n| a | b |\n\n<!-- . -->\n",
        "docs/planted.md": "# Made\n\n<!-- written by tools/a.py -->\n\nA sentence.\n\n| a | b |\n",
        "docs/reference/scenario.md": "of the schema\n",
        "docs/decisions/0001-planted.md": "a record\n",
        "examples/planted.md": "no page\n",
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = prose.words_by_page(tmp_path, pages)
    assert {name: hand for name, (hand, _) in found.items()} == {
        "docs/how-to/planted.md": 5,
        "docs/studies/planted.md": 2,
        "docs/planted.md": 9,
    }
    assert prose.check_book(found, 16) == []
    [said] = prose.check_book(found, 15)
    assert said.startswith("documents: 16 words written by hand; allowed: 15")


def test_a_planted_area_of_a_release_is_found(prose):
    text = "# Changelog\n\n## 0.9.0 (2026-01-01)\n\n### New\n\n" + "- One.\n" * 16 + "\n### Fixed\n\n" + "- One.\n" * 15
    assert prose.check_changelog(text, {}) == ["CHANGELOG.md: 0.9.0 New has 16 lines; allowed: 15"]
    assert prose.check_changelog(text, {"0.9.0 New": 16}) == []


def test_commits_without_a_body_are_named_and_do_not_fail(prose, tmp_path):
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    git("commit", "--allow-empty", "-m", "Old")
    git("switch", "-c", "work")
    git("commit", "--allow-empty", "-m", "Log: three links")
    git("commit", "--allow-empty", "-m", "A window\n\nThe kernel rounds it.")
    [bare] = prose.bare_commits(tmp_path)
    assert bare.endswith(" Log: three links")
    assert prose.bare_commits(tmp_path, "nowhere") == []
