from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import ackclock
import ackclock_studies

MODULES = sorted(
    module.name
    for package in (ackclock, ackclock_studies)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not any(part.startswith("_") for part in module.name.split("."))
)
"""Public modules, whose names have no underscore."""

EXPORTING = ["ackclock", *(name for name in MODULES if name.count(".") == 1 and name.startswith("ackclock."))]
"""Modules of the top level, which users import; each declares its exports."""


def test_there_are_modules_to_look_at():
    assert {"ackclock.scenario", "ackclock.study", "ackclock_studies.iw10", "ackclock.linux"} <= set(MODULES)


@pytest.mark.parametrize("name", EXPORTING)
def test_a_public_module_says_what_it_exports(name):
    assert importlib.import_module(name).__all__


@pytest.mark.parametrize("name", ["ackclock", *MODULES])
def test_every_exported_name_exists(name):
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", ())
    assert len(set(exported)) == len(exported)
    for each in exported:
        assert getattr(module, each) is not None
        assert each in dir(module)


@pytest.mark.parametrize("name", ["ackclock", *MODULES])
def test_every_public_name_is_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__, name
    for each in getattr(module, "__all__", ()):
        value = getattr(module, each)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}.{each}"


def test_run_stays_a_function():
    from ackclock import run, run_batch, run_many

    assert callable(run)
    assert callable(run_batch)
    assert callable(run_many)
    assert callable(ackclock.run)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nothing"):
        ackclock.nothing  # noqa: B018
