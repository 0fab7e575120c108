"""Tests that Python and the engine use the same names for kinds."""

from __future__ import annotations

from typing import Any

import pytest

from ackclock import _engine
from ackclock.scenario import Network, Scenario

REGISTRY_OF = {"queue": "queues", "loss": "losses", "capacity": "capacities", "workload": "workloads"}
"""Scenario key -> the registry's list of accepted kinds."""


def choices(schema: Any, key: str) -> list[set[str]]:
    """Return the kinds allowed by a scenario's JSON Schema, for every `key` with a kind."""
    found: list[set[str]] = []
    if isinstance(schema, dict):
        value = schema.get("properties", {}).get(key)
        if value is not None:
            for option in [value, *value.get("anyOf", ())]:
                if "discriminator" in option:
                    found.append(set(option["discriminator"]["mapping"]))
        for part in schema.values():
            found += choices(part, key)
    elif isinstance(schema, list):
        for part in schema:
            found += choices(part, key)
    return found


def differences(schema: Any, registry: dict[str, list[tuple[str, str]]]) -> list[str]:
    """Return one line for each kind that exists on one side only."""
    lines: set[str] = set()
    for key, name in REGISTRY_OF.items():
        engine = {kind for kind, _ in registry[name]}
        meant = [kinds for kinds in choices(schema, key) if kinds & engine]  # `loss` of a population is a distribution
        assert meant, f"the schema has no kinds at {key!r}"
        for kinds in meant:
            lines |= {f"{key}: only Python has {kind}" for kind in kinds - engine}
            lines |= {f"{key}: only the engine has {kind}" for kind in engine - kinds}
    return sorted(lines)


def test_python_and_the_engine_have_the_same_kinds():
    assert differences(Scenario.json_schema(), _engine.registry()) == []


@pytest.mark.parametrize("name", sorted(set(REGISTRY_OF.values())))
def test_a_false_kind_is_caught_on_either_side(name):
    schema, registry = Scenario.json_schema(), _engine.registry()
    planted = {**registry, name: [*registry[name], ("planted", "")]}
    assert [line for line in differences(schema, planted) if "only the engine has planted" in line]
    missing = {**registry, name: registry[name][1:]}
    gone = registry[name][0][0]
    assert [line for line in differences(schema, missing) if f"only Python has {gone}" in line]


def test_topologies_are_the_engines():
    topologies = {name for name, _ in _engine.registry()["topologies"]}
    assert set(Network.keys["topology"]["takes"]["names"]) == topologies


@pytest.mark.parametrize(
    "kind", ["controllers", "recovery", "queues", "losses", "capacities", "profiles", "workloads", "metrics"]
)
def test_every_entry_of_the_registry_has_one_line_about_it(kind):
    entries = _engine.registry()[kind]
    names = [name for name, _ in entries]
    assert len(set(names)) == len(names)
    assert [name for name, about in entries if not about.strip() or "\n" in about] == []
