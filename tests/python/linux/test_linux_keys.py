"""Tests that keys accepted by the linux backend have an effect in the kernel, and that all others are
refused (tools/kernel_keys.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import tool

from ackclock import linux
from ackclock.errors import InputError, ScenarioError
from ackclock.linux import _translate
from ackclock.linux._facts import Has
from ackclock.scenario import Scenario
from ackclock.scenario._base import schema

KEYS = tool("kernel_keys")
ROWS = {f"{n}: {row.name}": row for n, row in enumerate(KEYS.rows())}
CONTROLLERS = ["bbr", "cubic", "reno"]

LINUX_DOES_IT = {
    ("stack", "detection", "rack"), ("stack", "limited_transmit", True), ("stack", "undo", True),
    ("stack", "delayed_ack", True), ("stack", "early_retransmit", "off"), ("stack", "sack", True),
    ("stack", "timestamps", True), ("stack", "tlp", True), ("stack", "frto", True), ("stack", "idle_restart", True),
    ("stack", "sack_compression", True), ("stack", "small_queues", True), ("stack", "tso", False),
    ("stack", "mtu_probing", "off"), ("stack", "pacing", False),
    ("stack", "packet_memory", "copied"), ("stack", "packet_memory", "handed-on"),
    ("host", "name", "x"), ("host", "cuts_packets", False), ("host", "gro", False),
    # parts of keys that are refused, or that change nothing on their own
    ("host", "slice", "7 ms"), ("host", "batch_flush", "7 ms"), ("host", "burst", 3), ("host", "catch_up", "none"),
    ("host", "preset", "clean"), ("host", "shared", True), ("host", "shared", False), ("host", "receives_on", False),
    ("host", "emulates_links", False), ("host", "busy_wait", False),
}  # fmt: skip
"""Values accepted because they match the kernel's behaviour anyway."""


@pytest.mark.parametrize("name", ROWS)
def test_the_kernel_behaves_differently_with_the_key(kernel: linux.Kernel, name: str) -> None:
    assert KEYS.differs(ROWS[name])


def test_what_is_said_of_a_scenario_changes_no_table(kernel: linux.Kernel) -> None:
    assert not KEYS.differs(KEYS.Row(key="name", value="another"))


def keys_of(kind: str) -> list[dict[str, Any]]:
    return next(table["keys"] for table in schema()["tables"] if table["kind"] == kind)


def values(takes: dict[str, Any]) -> Iterator[Any]:
    """Return values that differ from every default."""
    match takes["takes"]:
        case "flag":
            yield from (True, False)
        case "choice":
            yield from takes["names"]
        case "whole":
            yield max(takes["low"], min(3, takes["high"]))
        case "size":
            yield f"{max(takes['low'], 777)} bytes"
        case "duration":
            yield "7 ms"
        case "rate":
            yield "3 Mbit/s"
        case "share" | "number" | "above":
            yield 0.5
        case "text":
            yield "x"


def accepted(place: str, key: str, value: Any) -> bool:
    """Return whether the backend accepts the scenario on either network."""
    import ackclock

    row = KEYS.Row(key="name", value="")
    told = KEYS.scenario(row, changed=False)
    try:
        if place == "host":
            told = told.set("hosts", [{"name": "x", key: value}]).set("flows.0.host", "x")
        else:
            told = told.set({"stack": "flows.0.stack.", "link": "network.bottleneck."}[place] + key, value)
        text = json.loads(told.to_engine_json())
        ackclock.Scenario.from_dict(told.to_dict())
    except InputError:
        return False  # refused in every scenario, or alone
    for network in ("qdisc", "relay"):
        try:
            _translate.job(text, 1, network, Has(release="7.3.4", controllers=tuple(CONTROLLERS)))
        except ScenarioError:
            continue
        return True
    return False


@pytest.mark.parametrize("place", ["stack", "host", "link"])
def test_a_key_without_a_row_is_refused(place: str) -> None:
    rows = {row.label or row.key for row in ROWS.values()}
    shown = {name.replace("hosts.0.", "hosts.").replace("hosts.1.", "hosts.") for name in rows}
    prefixes = {"stack": ("flows.0.stack.",), "host": ("hosts.",), "link": (KEYS.LINK, KEYS.BACK)}[place]
    silent = [
        (key["name"], value)
        for key in keys_of(place)
        if not any(prefix + key["name"] in shown for prefix in prefixes)
        for value in values(key["takes"])
        if (place, key["name"], value) not in LINUX_DOES_IT and accepted(place, key["name"], value)
    ]
    assert silent == []


def parts() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Return the parts of a link that have their own keys: name, kind, other required keys, key."""
    for place, kinds in (("queue", "queues"), ("loss", "losses"), ("capacity", "capacities")):
        for one in schema()[kinds]:
            for key in one["keys"]:
                yield place, one["kind"], {"kind": one["kind"]}, key
    usual: dict[str, tuple[str, dict[str, Any]]] = {
        "outage": ("outage", {"at": "500 ms", "lasts": "100 ms"}), "ecn-fault": ("ecn_fault", {"what": "strip-ce"}),
        "reorder": ("reorder", {"probability": "2 %", "extra_delay": "5 ms"}), "wifi-jitter": ("wifi", {}),
        "netem-jitter": ("netem_jitter", {"deviation": "2 ms", "distribution": "normal"}),
        "merging": ("merging", {"gro_flush_timeout": "200 us", "napi_defer_hard_irqs": 5}),
    }  # fmt: skip
    for kind, (place, given) in usual.items():
        for key in keys_of(kind):
            yield place, "", given, key


def test_a_key_of_a_part_of_a_link_without_a_row_is_refused() -> None:
    shown = set()
    for row in ROWS.values():
        place, _, key = row.key.removeprefix(KEYS.LINK).partition(".")
        given = row.given.get(KEYS.LINK + place) or {}
        if key:
            shown.add((place, given.get("kind", ""), key))
        elif isinstance(row.value, dict):
            shown |= {(place, row.value.get("kind", ""), key) for key in row.value}
    silent = [
        (place, kind, key["name"], value)
        for place, kind, given, key in parts()
        if (place, kind, key["name"]) not in shown
        for value in values(key["takes"])
        if accepted("link", place, {**given, key["name"]: value})
    ]
    assert silent == []


def test_a_table_that_the_backend_does_not_know_is_refused_by_name() -> None:
    told = KEYS.scenario(
        KEYS.Row(key=KEYS.STACK + "metrics_cache", value={"destination": "x", "cwnd": 20}), changed=True
    )
    with pytest.raises(ScenarioError, match=r"^flows\.0\.stack\.metrics_cache: .*no metrics_cache"):
        _translate.job(
            json.loads(told.to_engine_json()), 1, "relay", Has(release="7.3.4", controllers=tuple(CONTROLLERS))
        )


def test_every_switch_and_every_key_of_a_workload_has_a_row() -> None:
    rows = {(row.key, row.value) for row in ROWS.values() if not isinstance(row.value, dict | list)}
    for key, known in _translate.SWITCHES.items():
        for value, settings in known.items():
            assert not settings or (KEYS.STACK + key, value) in rows, (key, value)
    named = set()
    for row in ROWS.values():
        if row.key.startswith(KEYS.WORK):
            flow = {**row.given.get("flows.0", {})}
            kind = (row.given.get(KEYS.FLOW + "workload") or flow["workload"])["kind"]
            named.add((kind, row.key.removeprefix(KEYS.WORK)))
    for work in schema()["workloads"]:
        if work["kind"] in (*_translate.WORKLOADS, *schema()["datagrams"]):
            for key in work["keys"]:
                assert (work["kind"], key["name"]) in named, (work["kind"], key["name"])


def test_the_table_in_the_documentation_is_that_of_the_rows() -> None:
    text = KEYS.PAGE.read_text(encoding="utf-8")
    assert KEYS.BEGIN + KEYS.page() + KEYS.END in text


def test_a_window_that_no_buffer_of_the_kernel_has_is_refused_with_the_least() -> None:
    told = KEYS.scenario(KEYS.Row(key="name", value=""), changed=False)
    for size, taken in (("2000 bytes", False), ("1500 bytes", False), ("2600 bytes", True)):
        text = told.set("flows.0.stack.receive_buffer", size).to_engine_json()
        if taken:
            _translate.job(json.loads(text), 1, "relay", Has(release="7.3.4", controllers=tuple(CONTROLLERS)))
            continue
        with pytest.raises(ScenarioError, match=r'stack\.receive_buffer: found "[^"]*"; allowed: at least 2,600 bytes'):
            _translate.job(json.loads(text), 1, "relay", Has(release="7.3.4", controllers=tuple(CONTROLLERS)))


def test_a_profile_is_refused_by_a_kernel_that_is_not_its_own() -> None:
    told = KEYS.scenario(KEYS.Row(key="name", value=""), changed=False)
    old, new = (Has(release=release, controllers=tuple(CONTROLLERS)) for release in ("6.12.117", "7.3.4"))
    for profile, kernel, taken in (
        ("linux-6", old, True),
        ("linux-6", new, True),
        ("linux-7.3", new, True),
        ("linux-7.3", old, False),
    ):
        text = told.set("flows.0.profile", profile).to_engine_json()
        if taken:
            _translate.job(json.loads(text), 1, "relay", kernel)
            continue
        with pytest.raises(
            ScenarioError, match=r'profile: found "linux-7.3", and Linux 6\.12\.117; allowed: a kernel of Linux 7\.3'
        ):
            _translate.job(json.loads(text), 1, "relay", kernel)


@pytest.mark.parametrize(
    ("stack", "buffers"),
    [
        ({"initial_receive_window": 46}, (4096, 133_216, 67_108_864)),
        ({"receive_buffer": "76700 bytes"}, (4096, 122_720, 122_720)),
        ({"initial_receive_window": 46, "receive_buffer": "76700 bytes"}, (4096, 122_720, 122_720)),
        ({"initial_receive_window": 46, "receive_buffer": "200000 bytes"}, (4096, 133_216, 320_000)),
    ],
)
def test_a_first_window_enlarges_the_first_buffer_up_to_the_largest(
    stack: dict[str, int | str], buffers: tuple[int, int, int]
) -> None:
    scenario = Scenario.from_dict(
        {
            "duration": "1 s",
            "network": {"topology": "chain", "bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}},
            "flows": [{"congestion_control": "cubic", "workload": {"kind": "bulk"}, "stack": stack}],
        }
    )
    text = json.loads(scenario.to_engine_json())
    job = _translate.job(text, 1, "relay", Has(release="7.3.4", controllers=tuple(CONTROLLERS)))
    given = dict(job["hosts"][0]["sysctl"])["net/ipv4/tcp_rmem"]
    assert tuple(map(int, given.split())) == buffers
