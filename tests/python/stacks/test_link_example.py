"""Tests for the example that uses our link in quinn-proto's own tests. Those tests are run manually, because they need a C compiler and several minutes."""

import importlib.util

from conftest import ROOT


def test_the_patch_fits_the_version_that_the_lock_file_names(tmp_path):
    spec = importlib.util.spec_from_file_location("link_example", ROOT / "examples/link/run.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.WORK = tmp_path
    before, after = example.prepare(example.fetched())
    files = {path.relative_to(before) for path in before.rglob("*") if path.is_file()}
    changed = {str(path) for path in files if (before / path).read_bytes() != (after / path).read_bytes()}
    assert changed == {"Cargo.toml", "src/tests/mod.rs", "src/tests/util.rs"}
    assert "inbound: VecDeque" not in (after / "src/tests/util.rs").read_text(encoding="utf-8")
