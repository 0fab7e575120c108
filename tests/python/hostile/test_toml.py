"""Tests that untrusted TOML is always parsed by the engine's bounded reader: Python's own parser takes minutes for a long dotted key."""

import time
from pathlib import Path

import pytest

import ackclock
from ackclock import population
from ackclock.arena import task
from ackclock.errors import InputError
from ackclock.prove import certificate
from ackclock.scenario.scenario import raw

OWN = {"conform/packs/__init__.py", "_course/notebook.py"}
"""Modules that parse the package's own files with `tomllib`, or write it into a notebook."""

DEEP = {"dots": ".".join(["a"] * 50_000) + " = 1", "lists": "a = " + "[" * 50_000, "tables": "[" + "a." * 50_000 + "a]"}


def test_who_reads_toml() -> None:
    package = Path(ackclock.__file__).parent
    found = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if "tomllib" in file.read_text(encoding="utf-8")
    }
    assert found == OWN


@pytest.mark.parametrize("kind", DEEP)
def test_deep_toml_is_one_line_at_once(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(DEEP[kind], encoding="utf-8")
    began = time.process_time()
    assert not raw(file)
    for read in (
        population.read,
        lambda path: task.read(path.read_text("utf-8"), "x"),
        lambda path: certificate.parsed(path.read_text("utf-8")),
    ):
        with pytest.raises(InputError) as said:
            read(file)
        assert "\n" not in str(said.value)
    assert time.process_time() - began < 2
