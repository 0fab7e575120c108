"""Tests for the single controller contract: every hook reaches every language, errors in any language are reported,
and an outdated library is refused.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import ackclock
from ackclock import Scenario, _engine, _native, run
from ackclock.controllers import Controller, check
from ackclock.errors import ControllerError

HERE = Path(ackclock.__file__).parent / "_native"
ROOT = Path(__file__).resolve().parents[3]
CONTRACT = _engine.contract()
EVENTS = [row for row in CONTRACT["hooks"] if row["is_event"]]

LIBRARY = """
#include <stdlib.h>
#include <ackclock_controller.h>

static void *open_(const struct ackclock_host *host) { return malloc(1); }
static void close_(void *cc) { free(cc); }
static const char *said_(void *cc) { return "it broke"; }
static int on_ack(void *cc, struct ackclock_window *w, const struct ackclock_ack *ack)
{
	if (ack->cwnd_limited && ack->acked && w->cwnd < w->cwnd_clamp)
		w->cwnd++;
	return 0;
}
static int ssthresh(void *cc, const struct ackclock_window *w, uint32_t in_flight, uint32_t *target)
{
	*target = w->cwnd / 2 > 2 ? w->cwnd / 2 : 2;
	return 0;
}
BROKEN
static const struct ackclock_controller controller = {
	.abi = ABI, .needs = NEEDS, .name = "mine", .reads = "a.csv,b.csv",
	.open = open_, .close = close_, .said = said_, .on_ack = on_ack, .ssthresh = ssthresh, SET
};
const struct ackclock_controller *ackclock_controller(const char *options, char *why, size_t room) { return &controller; }
"""


def library(folder: Path, *, abi: str = "ACKCLOCK_CONTROLLER_ABI", needs: str = "0", broken: str = "", sets: str = ""):
    """Compile a library with the given hook against the header."""
    text = (
        LIBRARY.replace("BROKEN", broken)
        .replace("= NEEDS,", f"= {needs},")
        .replace("= ABI,", f"= {abi},")
        .replace("SET\n", f"{sets}\n")
    )
    (folder / "mine.c").write_text(text)
    command = ["cc", "-shared", "-fPIC", "-w", "-I", HERE / "include", "-o", folder / "mine.so", folder / "mine.c"]
    subprocess.run(command, check=True)
    return _engine.Library(str(folder / "mine.so"), "", "mine.so")


def test_a_library_of_the_header_keeps_the_rules_and_names_what_it_reads(tmp_path):
    mine = library(tmp_path)
    check(mine, closed_loop=False)
    assert mine.reads == ["a.csv", "b.csv"]


def test_a_library_of_another_version_is_refused_in_a_sentence(tmp_path):
    said = r"found a library of version 2 of ackclock_controller\.h; allowed: version 3, with whose header it is to be compiled"
    with pytest.raises(ValueError, match=said):
        library(tmp_path, abi="2")


C_TYPES = {
    "&mut Window": "struct ackclock_window *", "&Window": "const struct ackclock_window *", "&Arrival": "const struct ackclock_ack *",
    "&AckSample": "const struct ackclock_ack *", "Time": "uint64_t ", "Span": "uint64_t ", "u64": "uint64_t ",
}  # fmt: skip
NEEDED = {
    "on_totals": "ACKCLOCK_NEEDS_RATE",
    "on_lost": "ACKCLOCK_NEEDS_LOSSES",
    "on_repaired": "ACKCLOCK_NEEDS_LOSSES",
    "reduces": "ACKCLOCK_NEEDS_REDUCES",
    "on_idle": "ACKCLOCK_NEEDS_IDLE",
    "on_control": "ACKCLOCK_NEEDS_CONTROL",
    "holds_back": "ACKCLOCK_NEEDS_CONTROL",
}


@pytest.mark.parametrize("row", EVENTS, ids=lambda row: row["name"])
def test_a_library_that_breaks_in_a_hook_fails_the_check(tmp_path, row):
    name = row["name"]
    told = [C_TYPES.get(kind.replace("& ", "&"), "uint32_t ") + arg for arg, kind in row["arguments"]]
    told += [{"bool": "int *", "u32": "uint32_t *"}[row["answer"]] + "answer"] if row["answer"] else []
    broken = f"static int broken({', '.join(['void *cc', *told])}) {{ return 1; }}"
    mine = library(tmp_path, needs=NEEDED.get(name, "0"), broken=broken, sets=f".{name} = broken,")
    with pytest.raises(ControllerError, match=rf"{name}.*it broke"):
        check(mine, closed_loop=False)


MODULE = """
#include <linux/module.h>
#include <net/tcp.h>

static void event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART)
		*(volatile int *)0 = 1;
}

static struct tcp_congestion_ops mine = {
	.name = "mine", .owner = THIS_MODULE, .ssthresh = tcp_reno_ssthresh, .cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd, .cwnd_event = event,
};

static int __init begin(void) { return tcp_register_congestion_control(&mine); }
module_init(begin);
"""


def test_a_module_of_linux_that_breaks_in_the_restart_of_the_window_fails_the_check(tmp_path):
    file = tmp_path / "mine.c"
    file.write_text(MODULE)
    made = _native.load(str(file), "{}", _native.digest(str(file)))
    with pytest.raises(ControllerError, match=r"on_restart.*cwnd_event"):
        check(made, closed_loop=False)


RUST = """
use ackclock_controller::{needs, Ack, Controller, Options, Random, Window};
struct Mine { random: Random, left: u64 }
impl Controller for Mine {
    const NEEDS: u32 = needs::RATE;
    const VARIABLES: &'static [&'static str] = &["left"];
    fn new(_: &Options, random: Random) -> Mine { Mine { random, left: 0 } }
    fn on_start(&mut self, _: &mut Window, _: u64, _: u64, _: u32) { self.left = self.random.next() % 9; }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) { self.left = self.random.next() % 9; window.grow_as_reno(ack); }
    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 { (window.cwnd / 2).max(2) }
    fn variables(&self, values: &mut [f64]) { values[0] = self.left as f64; }
    HOOK
}
ackclock_controller::export!(Mine);
"""


@pytest.mark.parametrize("broken", ["", 'fn on_totals(&mut self, _: u64, _: u64, _: u64) { panic!("no totals"); }'])
def test_a_file_of_rust_that_breaks_in_the_hook_of_totals_fails_the_check(tmp_path, broken):
    file = tmp_path / "mine.rs"
    file.write_text(RUST.replace("HOOK", broken))
    made = _native.load(str(file), "{}", _native.digest(str(file)))
    if not broken:
        return check(made, closed_loop=False)
    with pytest.raises(ControllerError, match=r"on_totals.*no totals"):
        check(made, closed_loop=False)
    return None


class Reno(Controller):
    def on_ack(self, window, ack):
        if ack.cwnd_limited:
            window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd

    def on_congestion_event(self, window, in_flight):
        return max(window.cwnd // 2, 2)


@pytest.mark.parametrize("row", EVENTS, ids=lambda row: row["name"])
def test_a_class_that_breaks_in_a_hook_fails_the_check(row):
    def breaks(self, *told):
        assert len(told) == len(row["arguments"])
        raise RuntimeError("broken")

    needs = {"wants_rate": row["name"] == "on_totals"}
    more = {"on_control": lambda self, window, ack: None} if row["name"] == "holds_back" else {}
    more |= {"on_lost": lambda self, *told: None} if row["name"] == "on_repaired" else {}
    more |= {"on_ack": Reno.on_ack}
    broken = type("Broken", (Reno,), {**more, **needs, row["own"]: breaks})
    with pytest.raises(ControllerError, match=rf"{row['own']}.*broken"):
        check(broken, closed_loop=False)


def test_a_copy_that_is_none_fails_the_check_and_what_cannot_be_copied_does_not():
    class Forgets(Reno):
        def __init__(self):
            self.n = 0

        def on_ack(self, window, ack):
            self.n += 1
            if ack.cwnd_limited and self.n % 7 == 0:
                window.cwnd += 1

        def copy(self):
            return Forgets()

    with pytest.raises(ControllerError, match="breaks the rule copy"):
        check(Forgets, closed_loop=False)

    class Refuses(Reno):
        def copy(self):
            raise RuntimeError("its state is elsewhere")

    check(Refuses, closed_loop=False)


def test_a_hook_from_before_an_argument_came_is_called_without_it():
    class Old(Reno):
        heard = 0

        def on_tx_start(self, window, now, idle):
            Old.heard += 1

    class New(Reno):
        heard: tuple[float, ...] = ()

        def on_tx_start(self, window, now, idle, snd_nxt):
            New.heard = (now, idle, snd_nxt)

    for own in (Old, New):
        flow = {"congestion_control": "custom:own", "workload": {"kind": "bursts", "bytes": "30 kB", "pause": "500 ms"}}
        link = {"rate": "10 Mbit/s", "delay": "20 ms"}
        text = {"duration": "3 s", "network": {"bottleneck": link}, "flows": [flow]}
        run(Scenario.from_dict(text), controllers={"own": own})
    assert Old.heard > 2
    assert New.heard[2] > 30_000


def test_every_hook_and_field_stands_in_every_language():
    texts = {
        "C": (HERE / "include" / "ackclock_controller.h").read_text(),
        "Rust": (HERE / "ackclock_contract.rs").read_text(),
        "JavaScript": (ROOT / "web" / "contract.js").read_text(),
        "Python": Controller.__doc__ or "",
        "page": (ROOT / "docs" / "reference" / "controller-contract.md").read_text(),
    }
    for row in EVENTS:
        assert f"(*{row['name']})(void *cc" in texts["C"]
        assert f"    fn {row['name']}(&mut self" in texts["Rust"]
        assert f'name: "{row["own"]}"' in texts["JavaScript"]
        assert f"| `{row['own']}(" in texts["Python"]
        assert f"| `{row['name']}` |" in texts["page"]
    for row in CONTRACT["fields"]:
        assert f" {row['name']}; /*" in texts["C"]
        assert f"{row['name']}: " in texts["Rust"]
        assert f'["{row["name"]}", ' in texts["JavaScript"]
        assert hasattr(_engine.Rate if row["part"] == "rate" else _engine.Ack, row["name"])
    own = [row["name"] for row in CONTRACT["fields"] if row["part"] != "rate"]
    assert len(own) == len(set(own)), "no field of an ACK hides another"


def witness(*, control: bool) -> tuple[type, dict[tuple[str, str], int]]:
    """Return a class with every hook, and a count of consecutive pairs of hooks."""
    heard: dict[tuple[str, str], int] = {}

    class Witness(Reno):
        wants_rate = True
        before = ""

        def note(self, name):
            pair = (self.before, name)
            heard[pair] = heard.get(pair, 0) + 1
            self.before = name

    def hook(row):
        def method(self, *told):
            self.note(row["name"])
            if row["own"] in ("on_ack", "on_congestion_event"):
                return getattr(Reno, row["own"])(self, *told)
            if row["own"] == "on_mark_event":
                return Reno.on_congestion_event(self, *told)
            if row["own"] == "undo_cwnd":
                return max(told[0].cwnd, told[0].prior_cwnd)
            if row["own"] == "min_cwnd":
                return told[0]
            if row["own"] == "on_control":
                told[0].cwnd = 20
            return {"bool": row["own"] == "on_ecn"}.get(row["answer"])

        return method

    left_out = set() if control else {"on_control", "holds_back"}
    for row in EVENTS:
        if row["own"] not in left_out:
            setattr(Witness, row["own"], hook(row))
    return Witness, heard


@pytest.mark.parametrize("control", [False, True])
def test_a_sender_calls_hooks_in_orders_that_the_table_has(control):
    own, heard = witness(control=control)
    lossy = {"kind": "bernoulli", "p": "4 %"}
    marking = {"kind": "codel", "ecn": True}
    bursts = {"workload": {"kind": "bursts", "bytes": "60 kB", "pause": "1500 ms"}}
    for link, flow in (
        ({"loss": lossy}, {}),
        ({"loss": lossy}, {"stack": {"sack": False}}),
        ({"loss": lossy}, bursts),
        ({"loss": lossy}, {"profile": "linux-2.6"}),
        ({"queue": marking}, {"stack": {"ecn": "ask"}}),
        ({}, bursts),
    ):
        text = {
            "duration": "8 s",
            "network": {"bottleneck": {"rate": "5 Mbit/s", "delay": "20 ms", **link}},
            "flows": [{"congestion_control": "custom:own", **flow}],
        }
        run(Scenario.from_dict(text), controllers={"own": own})
    after = {row["name"]: row["after"] for row in EVENTS}
    broken = [pair for pair in heard if pair[0] not in after[pair[1]] and "begin" not in after[pair[1]]]
    assert not broken
    called = {name for _, name in heard}
    assert {
        "on_negotiated",
        "on_syn_acked",
        "on_start",
        "ssthresh",
        "min_cwnd",
        "on_timer",
        "on_totals",
        "on_tx_start",
    } < called
    assert ("on_control" in called, "on_ack" in called, "on_restart" in called) == (control, not control, not control)
