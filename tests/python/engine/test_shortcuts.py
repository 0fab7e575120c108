"""Tests that the engine's shortcuts, which exist only for speed, change nothing: digests, tables and captures of all
kinds of scenarios are the same without shortcuts and with each one alone.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from conftest import MINIMAL, ROOT
from shortcut_replay import Replayed, page_module, replay, undrawn

from ackclock import Scenario, _engine, load, run, studies
from ackclock.cli._lab import PAGE
from ackclock.fidelity.drawn import drawn
from ackclock.study import cells
from ackclock.study.plan import Plan

SHORTCUTS = _engine.shortcuts()
SEED = os.environ.get("REPLAY_SEED") or date.today().isoformat()
"""Seed of the day. The test prints it, so that REPLAY_SEED can repeat it."""
DRAWN_SEEDS = range(1, 6)
"""Number of seeds, each covering 142 scenarios."""
STUDY_NS = 5_000_000_000
"""Simulated time replayed per study scenario: there are thousands of them, some with thousands of flows."""


def shown(text: str, shortcuts: str, seed: int = 1) -> Any:
    """Return the digest and the tables of a run."""
    raw = _engine.run(text, seed, shortcuts=shortcuts)
    return raw["digest"], raw["tables"]


def differing(
    scenarios: Sequence[tuple[str, str]], without: Sequence[str] = ("none", *SHORTCUTS)
) -> list[tuple[str, str]]:
    """Return the differences between a run with only these shortcuts and a run without any."""
    found = []
    for name, text in scenarios:
        expected = shown(text, "all")
        found += [(name, cut) for cut in without if shown(text, cut) != expected]
    return found


@pytest.fixture(scope="module")
def shipped() -> list[tuple[str, Scenario]]:
    found = [(path.name, load(path)) for path in sorted((ROOT / "scenarios").glob("*.toml"))]
    assert len(found) >= 41
    return found


def test_another_name_is_refused_with_those_that_are_allowed():
    with pytest.raises(ValueError, match="all, none, or some of events, ahead"):
        _engine.run(Scenario.from_dict(MINIMAL).to_engine_json(), 1, shortcuts="train")


MERGING = {"rate": "18.1 Mbit/s", "wifi": {"mean": "9.62 ms"}, "merging": {}}
"""A NIC that merges packets before they cross a link with jitter: the order of simultaneous events decides which ones
it merges.
"""


@pytest.mark.parametrize("beside", ["access", "egress"])
def test_a_card_that_merges_in_front_of_a_jitter(beside):
    """Regression: 29 of 30 seeds differed while such a link passed packets on early."""
    network = {beside: {}, "bottleneck": MERGING}
    text = Scenario.from_dict({"duration": "1.2 s", "network": network, "flows": [{}, {}]}).to_engine_json()
    for seed in range(6):
        expected = _engine.run(text, seed)["digest"]
        assert [_engine.run(text, seed, shortcuts=cut)["digest"] for cut in ("none", "ahead")] == [expected] * 2


def test_two_answers_in_one_interrupt_of_a_host_whose_senders_rest():
    """Regression: an idle sender was not notified of its writer's turn, so data was sent before the other connection's ACK. 5 of 5 seeds differed."""
    network = {
        "access": {"rate": "424168 bit/s", "delay": "1 ms", "aggregate": "34 ms"},
        "bottleneck": {"rate": "1.2 Mbit/s"},
    }
    hosts = [{"name": "h", "receive_interval": "5 ms"}]
    raw = {"duration": "300 ms", "network": network, "flows": [{"count": 2, "host": "h"}], "hosts": hosts}
    text = Scenario.from_dict(raw).to_engine_json()
    for seed in range(3):
        assert shown(text, "none", seed) == shown(text, "all", seed)


TIMELESS = {
    "links": [{"name": "timeless"}, {"name": "radio", "wifi": {"mean": "1.1 ms"}}],
    "paths": [{"name": "p", "forward": ["radio", "timeless"], "backward": ["radio"]}],
    "topology": "graph",
}
"""Packets leave the radio link at the instant at which hosts send on it; the intermediate link has no delay."""

COSTLY = [{"name": "h", "send_cost": "41 us", "transmit_interval": "278 us"}]
"""Hosts where ACKs arrive between segments written one by one."""


@pytest.mark.parametrize(
    "given",
    [
        {"network": TIMELESS, "flows": [{}]},
        {"network": {"bottleneck": {"rate": "110 Mbit/s"}}, "flows": [{"host": "h"}], "hosts": COSTLY},
    ],
    ids=["a link that takes no time", "a host whose packets cost time"],
)
def test_what_comes_between_at_one_instant(given):
    """Regression: all 30 seeds differed."""
    text = Scenario.from_dict({"duration": "700 ms", **given}).to_engine_json()
    for seed in range(3):
        assert shown(text, "none", seed) == shown(text, "all", seed)


def test_a_segment_leaves_room_for_the_blocks_that_it_carries(tmp_path):
    """Regression: a round of writes exceeded the path's segment size when all its segments were written at once."""
    both = [
        {"server": "20 kB"},
        {"client": "60 kB", "gap": "1 ms", "separate": True},
    ]
    workload = {"kind": "conversation", "streams": 35, "steps": both}
    lossy = {"rate": "50 Mbit/s", "delay": "5 ms", "loss": {"kind": "bernoulli", "p": 0.01}}
    raw = {"duration": "1 s", "network": {"bottleneck": lossy}, "flows": [{"workload": workload}]}
    scenario, path = Scenario.from_dict(raw), tmp_path / "c.pcapng"
    text = scenario.to_engine_json()
    assert shown(text, "none") == shown(text, "all")
    _engine.run(scenario.to_engine_json(capture="sender"), 1, str(path))
    first: dict[bytes, int] = {}
    for packet in path.read_bytes().split(b"\x08\x00\x45\x00")[1:]:
        if packet[10:14] == bytes([10, 0, 0, 1]):  # source, number and length
            first.setdefault(packet[22:26], int.from_bytes(packet[:2], "big"))
    assert len(first) > 100
    assert max(first.values()) == 1500


@pytest.mark.parametrize("workload", [{"kind": "transfer", "bytes": "162 bytes"}, {"kind": "bulk"}])
def test_a_flow_that_stops_before_it_is_connected_closes(workload):
    """Regression: the writer waits, and so does the close. After its handshake, an idle connection had lost both."""
    network = {"bottleneck": {"rate": "2 Mbit/s", "delay": "10 ms"}}
    raw = {"duration": "2 s", "network": network, "flows": [{"workload": workload, "stop": "1 ms"}]}
    text = Scenario.from_dict(raw).to_engine_json()
    assert shown(text, "none") == shown(text, "all")
    flow = dict(run(Scenario.from_dict(raw)).rows("flows")[0])
    assert flow["completion_s"] is not None


def replayed(first: int, count: int) -> Replayed:
    """Replay scenarios of the seed of the day, in WebAssembly too if the lab was built."""
    with tempfile.TemporaryDirectory() as folder:
        found = replay(SEED, range(first, first + count), page_module(Path(folder)))
    print(f"seed {SEED}: {found}")
    assert not found.differing, "\n".join([f"REPLAY_SEED={SEED}", *found.differing])
    return found


@pytest.mark.promise("P48")
def test_scenarios_drawn_from_the_schema():
    found = replayed(0, 16)
    assert found.runs == 80


@pytest.mark.deep
def test_500_scenarios_drawn_from_the_schema():
    found = replayed(0, 500)
    assert found.traced == 125
    assert min(found.alone[name] for name in SHORTCUTS) >= 30 <= min(found.left_out[name] for name in SHORTCUTS)


@pytest.mark.promise("P48")
@pytest.mark.long
def test_5000_scenarios_drawn_from_the_schema():
    found = replayed(0, 5000)
    assert min(found.alone[name] for name in SHORTCUTS) >= 300 <= min(found.left_out[name] for name in SHORTCUTS)
    assert not undrawn(found), "keys of links or hosts that no scenario had"
    assert found.in_page >= 250 or not PAGE.is_file() or shutil.which("node") is None


@pytest.mark.deep
def test_shipped_scenarios(shipped):
    assert not differing([(name, scenario.to_engine_json()) for name, scenario in shipped])


@pytest.mark.deep
def test_captures_of_shipped_scenarios(shipped, tmp_path):
    """While packets are captured, no trains are formed; the other shortcuts still apply."""
    for name, scenario in shipped:
        files = {}
        for cut in ("all", "none"):
            path = tmp_path / cut
            _engine.run(scenario.to_engine_json(capture="sender"), 1, str(path), shortcuts=cut)
            files[cut] = path.read_bytes()
        assert files["all"] == files["none"], name


@pytest.mark.deep
@pytest.mark.parametrize("seed", DRAWN_SEEDS)
def test_drawn_scenarios(seed):
    found = [(one.name, one.scenario.to_engine_json()) for one in drawn(seed)]
    assert len(found) == 142
    assert not differing(found)


@pytest.mark.deep
def test_scenarios_of_the_studies(monkeypatch):
    """Replays the start of each scenario first requested by a quick study run; every tenth with each shortcut alone."""
    found = [(f"scenario {number}", text) for number, text in enumerate(asked(monkeypatch))]
    assert len(found) > 1000
    assert not differing(found, ["none"])
    assert not differing(found[::10], SHORTCUTS)


class Asked(Exception):
    """Raised when an experiment has named its scenarios."""


def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the scenarios that experiments request before their first result."""
    texts: dict[str, None] = {}

    def note(scenarios: Sequence[Scenario]) -> None:
        texts.update(dict.fromkeys(beginning(scenario) for scenario in scenarios))
        raise Asked

    monkeypatch.setattr(cells.stored, "batches", lambda plan, asked: note([one.scenario for one in asked]))
    monkeypatch.setattr(Plan, "batch", lambda self, scenario, seeds, **kept: note([scenario]))
    for name in studies.names():
        for experiment in studies.get(name).experiments:
            with suppress(Asked):
                experiment.run(Plan())
    return iter(texts)


def beginning(scenario: Scenario) -> str:
    """Return the scenario, shortened to end `STUDY_NS` after the start of its second group; later flows are left out."""
    raw = json.loads(scenario.to_engine_json())
    starts = [flows.get("start_ns", 0) for flows in raw["flows"]]  # the drawn ones start early
    end = raw["duration_ns"] = min(raw["duration_ns"], sorted(starts)[:2][-1] + STUDY_NS)
    raw["flows"] = [flows for flows, start in zip(raw["flows"], starts, strict=True) if start < end]
    for flows in raw["flows"]:
        if stagger := flows.get("stagger_ns", 0):
            flows["count"] = min(flows.get("count", 1), 1 + (end - 1 - flows.get("start_ns", 0)) // stagger)
    return json.dumps(raw)
