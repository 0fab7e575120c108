from __future__ import annotations

import importlib

import pytest

import ackclock

MODULES = [
    "ackclock",
    "ackclock.bench",
    "ackclock.cli",
    "ackclock.errors",
    "ackclock.metrics",
    "ackclock.scenario",
    "ackclock.stats",
    "ackclock.sweep",
    "ackclock.units",
    "ackclock.video",
]


@pytest.mark.parametrize("name", MODULES)
def test_every_exported_name_exists(name):
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    for exported in module.__all__:
        assert getattr(module, exported) is not None
        assert exported in dir(module)


def test_run_stays_a_function():
    from ackclock import run, run_batch

    assert callable(run)
    assert callable(run_batch)
    assert callable(ackclock.run)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nothing"):
        ackclock.nothing  # noqa: B018
