"""Tests for the scenarios drawn by `ackclock diff --drawn --family mixture`."""

from __future__ import annotations

from collections import Counter

import pytest

from ackclock.fidelity import mixtures as drawing
from ackclock.fidelity.mixtures import FEATURES, keys_of, mixtures, taken_keys, taken_kinds

LEAST = 0.03
"""Minimum fraction of the mixtures in which a key is drawn."""


def test_a_mixture_depends_on_seed_and_number_alone():
    first, again = list(mixtures(3, 4)), list(mixtures(3, 2, first=2))
    assert [one.scenario.to_dict() for one in first[2:]] == [one.scenario.to_dict() for one in again]
    assert [one.scenario.to_dict() for one in mixtures(4, 4)] != [one.scenario.to_dict() for one in first]
    assert all(drawing._accepted(one.scenario.to_dict(), one.network) is not None for one in first)


def test_keys_come_from_the_schema_and_the_backends_word():
    assert {"smss", "initial_window", "tlp", "min_rto", "ecn"} <= set(taken_keys("stack"))
    assert not {"count_acks", "ack_splits", "undo"} & set(taken_keys("stack"))  # refused, or with only one value
    assert {"jitter", "reorder", "outage", "aggregate"} <= set(taken_keys("link"))
    assert {"codel", "dualpi2", "cake", "red"} <= set(taken_kinds("queues"))
    assert set(taken_kinds("workloads")) >= {"transfer", "fetch", "throttled", "transactions", "population"}


def test_a_new_key_that_the_backend_takes_is_drawn_without_being_named(monkeypatch: pytest.MonkeyPatch):
    table = drawing.schema_table("stack")
    kept = [key for key in table["keys"] if key["name"] != "tlp"]
    without = {**table, "keys": kept}
    known = drawing.schema_table
    drawing.taken_keys.cache_clear()
    monkeypatch.setattr(drawing, "schema_table", lambda name: without if name == "stack" else known(name))
    assert "tlp" not in taken_keys("stack")
    monkeypatch.undo()
    drawing.taken_keys.cache_clear()
    assert "tlp" in taken_keys("stack")


@pytest.mark.deep
def test_every_key_is_drawn_in_a_thousand_mixtures():
    count, keys, paths, features = 1000, Counter[str](), [], Counter[str]()
    for one in mixtures(1, count):
        told = one.scenario.to_dict()
        keys.update(keys_of(told))
        link = told["network"]["bottleneck"]
        paths.append((float(link["rate"].split()[0]), len(told["flows"])))
        features[one.kind.split()[0]] += 1
    wanted = {f"stack.{key}" for key in taken_keys("stack")} | {f"link.{key}" for key in taken_keys("link")}
    wanted |= {f"host.{key}" for key in taken_keys("host")} | {"flows.start", "flows.stop"}
    for family in ("queues", "losses", "capacities", "workloads"):
        wanted |= {f"{family}.{kind}" for kind in taken_kinds(family)}
    seldom = {key: keys[key] for key in wanted if keys[key] < LEAST * count}
    assert not seldom
    assert sum(flows > 1 for _, flows in paths) >= count / 4
    assert max(flows for _, flows in paths) == 5
    assert all(features[str(n)] > 0.1 * count for n in range(1, 6))
    # rates are log-uniform from 0.1 to 2,000 Mbit/s
    for low in (0.1, 1, 10, 100):
        assert sum(low <= rate < 10 * low for rate, _ in paths) == pytest.approx(count / 4.3, rel=0.25)
    # keys of a kind, counted only where that kind is drawn
    for family in ("queues", "losses"):
        for kind in taken_kinds(family):
            table = next(t for t in drawing.schema()[family] if t["kind"] == kind)
            for key in table["keys"]:
                name = f"{family}.{kind}.{key['name']}"
                assert keys[name] >= 0.4 * keys[f"{family}.{kind}"] or name in NOT_DRAWN, name
    assert set(FEATURES) == {
        "flows",
        "stack",
        "queue",
        "loss",
        "link",
        "capacity",
        "way back",
        "workload",
        "times",
        "links",
        "hosts",
        "offload",
    }


NOT_DRAWN = {"queues.cake.limit"}
"""Keys never drawn."""
