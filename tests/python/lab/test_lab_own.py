"""Tests for controllers in JavaScript: they match their Python counterparts, obey the same rules, and have no access
to the page.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser
from conftest import ROOT
from lab_page import FIRST, NODE, built, chromium, module_of, node, opened, text, write

import ackclock
from ackclock import controllers, load
from ackclock.controllers import Controller

# both controllers fold every received value into the window, so that any difference changes the digest
FOLDS = """
class Folds {
  wants_rate = true;
  variables = ["sum"];
  sum = 0;
  fold(value) { this.sum = (this.sum * 31 + Math.floor(value * 1000)) % 1000003; }
  told(ack) {
    for (const name of ACK) {
      const value = ack[name];
      if (name === "rate") { if (value) for (const own of RATE) this.fold(Number(value[own])); }
      else if (name.endsWith("_state")) this.fold(value.length);
      else if (value !== null && Number.isFinite(Number(value))) this.fold(Number(value));
    }
  }
  on_start(window, now, srtt, smss) { this.fold(now); this.fold(srtt); this.fold(smss); }
  on_sample(window, ack) { this.told(ack); }
  on_ack(window, ack) {
    this.told(ack);
    if (ack.cwnd_limited) window.cwnd += (window.in_slow_start ? ack.acked : ack.acked / window.cwnd) * (1 + this.sum % 7 / 100);
  }
  on_congestion_event(window, in_flight) { this.fold(in_flight); this.fold(window.prior_cwnd); return window.cwnd * (0.5 + this.sum % 11 / 100); }
  on_rto(window, now) { this.fold(now); }
  on_state(window, state, now) { this.fold(state.length); this.fold(now); }
  on_recovered(window, now) { this.fold(now); }
  on_tx_start(window, now, idle) { this.fold(now); this.fold(idle); }
  on_ecn(window, ack) { this.told(ack); return this.sum % 3 > 0; }
  undo_cwnd(window) { return Math.max(window.cwnd, window.prior_cwnd); }
}
"""


def names(constant: str) -> list[str]:
    """Return the names in a list of contract.js: its elements, or the first item of each."""
    source = (ROOT / "web" / "contract.js").read_text(encoding="utf-8")
    found = re.search(rf"^const {constant} = \[(.*?)\];$", source, re.MULTILINE | re.DOTALL)
    assert found is not None
    if constant == "WANTS":
        return re.findall(r'"(\w+)"', found[1])
    return re.findall(r'^  (?:\[|\{ name: )"(\w+)"', found[1], re.MULTILINE)


ACK, RATE = names("ACK"), names("RATE")


class Folds(Controller):
    wants_rate = True
    variables = ("sum",)
    sum = 0

    def fold(self, value):
        self.sum = (self.sum * 31 + int(value * 1000 // 1)) % 1000003

    def told(self, ack):
        for name in ACK:
            value = getattr(ack, name)
            if name == "rate":
                for own in RATE if value else ():
                    self.fold(float(getattr(value, own)))
            elif name.endswith("_state"):
                self.fold(len(value))
            elif value is not None and float(value) not in (float("inf"),):
                self.fold(float(value))

    def on_start(self, window, now, srtt, smss):
        for value in (now, srtt, smss):
            self.fold(value)

    def on_sample(self, window, ack):
        self.told(ack)

    def on_ack(self, window, ack):
        self.told(ack)
        if ack.cwnd_limited:
            grows = ack.acked if window.in_slow_start else ack.acked / window.cwnd
            window.cwnd += grows * (1 + self.sum % 7 / 100)

    def on_congestion_event(self, window, in_flight):
        self.fold(in_flight)
        self.fold(window.prior_cwnd)
        return window.cwnd * (0.5 + self.sum % 11 / 100)

    def on_rto(self, window, now):
        self.fold(now)

    def on_state(self, window, state, now):
        self.fold(len(state))
        self.fold(now)

    def on_recovered(self, window, now):
        self.fold(now)

    def on_tx_start(self, window, now, idle):
        self.fold(now)
        self.fold(idle)

    def on_ecn(self, window, ack):
        self.told(ack)
        return self.sum % 3 > 0

    def undo_cwnd(self, window):
        return max(window.cwnd, window.prior_cwnd)


class FoldsByRound(Folds):
    every = "round"


class FoldsByFour(Folds):
    every = 4


class Sets(Folds):
    wants_pacing = True

    def on_control(self, window, ack):
        self.told(ack)
        window.cwnd = 10 + self.sum % 50
        window.pacing_rate = 1e5 + self.sum


CLASSES = {one.__name__: one for one in (Folds, FoldsByRound, FoldsByFour, Sets)}
SCRIPT = (
    f"const ACK = {json.dumps(ACK)};\nconst RATE = {json.dumps(RATE)};\n{FOLDS}"
    'class FoldsByRound extends Folds { every = "round"; }\n'
    "class FoldsByFour extends Folds { every = 4; }\n"
    "class Sets extends Folds {\n  wants_pacing = true;\n"
    "  on_control(window, ack) { this.told(ack); window.cwnd = 10 + this.sum % 50; window.pacing_rate = 1e5 + this.sum; }\n}\n"
)

MARKING = """duration = "8 s"
[network]
bottleneck = { rate = "10 Mbit/s", delay = "15 ms", queue = { kind = "codel", ecn = true }, loss = { kind = "bernoulli", p = "0.5 %" } }
[[flows]]
congestion_control = "custom:Folds"
stack = { ecn = "ask" }
workload = { kind = "bursts", bytes = "300 kB", pause = "500 ms" }
[[flows]]
congestion_control = "custom:Folds"
[record]
controller = "all"
"""

PLAY = """
const fs = require("node:fs");
const vm = require("node:vm");
(async ([module, own, jobs, ...scripts]) => {
  for (const script of scripts) vm.runInThisContext(fs.readFileSync(script, "utf8"));
  const { text, names } = JSON.parse(fs.readFileSync(own, "utf8"));
  const classes = vm.runInThisContext(`(() => {${text}\\nreturn { ${names.join(", ")} }; })()`);
  const engine = await Engine.open(await WebAssembly.compile(fs.readFileSync(module)), () => false, classes);
  const told = JSON.parse(fs.readFileSync(jobs, "utf8")).map((job) => {
    if (job.conform) return engine.conform(job.conform);
    const read = engine.read(job.text);
    return read.ok ? engine.run(job.seed, { watch: job.watch ?? false }) : read;
  });
  process.stdout.write(JSON.stringify(told));
})(process.argv.slice(2));
"""


def play(folder: Path, script: str, classes: list[str], jobs: list[dict]) -> list[dict]:
    """Return Node's results for the jobs with these controllers."""
    (folder / "play.js").write_text(PLAY)
    (folder / "own").write_text(json.dumps({"text": script, "names": classes}))
    (folder / "jobs").write_text(json.dumps(jobs))
    scripts = [ROOT / "web" / name for name in ("contract.js", "hooks.js", "engine.js")]
    command = [NODE, folder / "play.js", module_of(folder), folder / "own", folder / "jobs", *scripts]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_hooks_and_fields_have_the_names_that_python_has():
    fields = lambda kind: {name for name in vars(kind) if not name.startswith("_")}  # noqa: E731
    assert set(ACK) == fields(controllers.Ack)
    assert set(RATE) == fields(controllers.Rate)
    assert fields(controllers.Window) == {
        "cwnd",
        "ssthresh",
        "pacing_rate",
        "cwnd_cnt",
        "cwnd_clamp",
        "prior_cwnd",
        "in_slow_start",
    }
    documented = re.findall(r"^    \| `(\w+)\(", Controller.__doc__ or "", flags=re.MULTILINE)
    assert set(names("HOOKS")) == set(documented)
    assert set(names("WANTS")) == {name for name in fields(Controller) if name.startswith("wants_")}


@pytest.mark.deep
@built
@node
def test_a_controller_in_javascript_gives_the_digest_that_python_gives(tmp_path):
    jobs, expected = [], []
    for name, own in CLASSES.items():
        for seed, written in ((1, FIRST.replace('"cubic"', f'"custom:{name}"')), (3, MARKING.replace("Folds", name))):
            jobs += [{"text": written, "seed": seed}, {"text": written, "seed": seed, "watch": True}]
            (tmp_path / "own.toml").write_text(written)
            digest = ackclock.run(load(tmp_path / "own.toml"), seed=seed, controllers={name: own}).digest
            expected += [digest, digest]
    told = play(tmp_path, SCRIPT, list(CLASSES), jobs)
    assert [one.get("digest", one) for one in told] == expected
    assert len(set(expected)) == len(expected) / 2


@pytest.mark.deep
@built
@node
def test_the_rules_of_controllers_hold_or_are_named_as_in_python(tmp_path):
    bodies = {
        "Good": "on_ack(w, a) { if (a.cwnd_limited) w.cwnd += a.acked / w.cwnd; } on_congestion_event(w) { return w.cwnd / 2; }",
        "Grows": "on_ack(w, a) { w.cwnd += 1; } on_congestion_event(w) { return w.cwnd / 2; }",
        "Raises": "on_ack(w, a) {} on_congestion_event(w) { return w.cwnd * 2; }",
        "Forgets": "on_ack(w, a) {} on_congestion_event(w) { return w.cwnd / 2; } undo_cwnd(w) { return 2; }",
        "Promises": "async on_ack(w, a) {} on_congestion_event(w) { return w.cwnd / 2; }",
        "Says": "on_ack(w, a) {} on_congestion_event(w) { return 'half'; }",
        "Sets": "on_ack(w, a) { w.cwnd = NaN; } on_congestion_event(w) { return 2; }",
        "Throws": "on_ack(w, a) { throw new RangeError('no'); } on_congestion_event(w) { return 2; }",
        "Lacks": "on_ack(w, a) {}",
        "Often": "every = 0.5; on_ack(w, a) {} on_congestion_event(w) { return 2; }",
    }
    script = "".join(f"class {name} {{ {body} }}\n" for name, body in bodies.items())
    told = dict(zip(bodies, play(tmp_path, script, list(bodies), [{"conform": name} for name in bodies]), strict=True))
    assert told["Good"] == {"ok": True}
    assert told["Grows"]["rule"] == "application-limited"
    assert told["Raises"]["rule"] == "reduction"
    assert told["Forgets"]["rule"] == "undo"
    assert "returned a promise" in told["Promises"]["message"]
    assert "TypeError: returned half; allowed: the target window in segments" in told["Says"]["message"]
    assert told["Sets"]["message"].endswith("RangeError: cwnd is NaN; allowed: 1 to 1073741824")
    assert told["Throws"]["message"].startswith("controller Throws, on_ack at ")
    assert told["Throws"]["message"].endswith(" s: RangeError: no")
    assert "there is no method on_congestion_event" in told["Lacks"]["message"]
    assert "every is 0.5; allowed: a number of ACKs" in told["Often"]["message"]


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def put(tab: Browser, script: str) -> None:
    """Paste a controller into the editor."""
    tab.run("say(''); at('mine').open = true; at('mine-text').focus(); at('mine-text').select()")
    tab.ask("Input.insertText", text=script)


@pytest.mark.deep
@built
@chromium
def test_a_reader_writes_a_controller_checks_it_and_hands_it_on(tab, tmp_path):
    opened(tab)
    tab.run(
        "at('mine').open = true; at('mine-example').value = 'Wary'; at('mine-example').dispatchEvent(new Event('change'))"
    )
    wary = tab.run("mine.value")
    tab.run("at('mine-give').click()")
    tab.wait("state.result?.text.includes('custom:Wary')")
    shown = tab.run("document.body.dataset.digest")

    class Wary(Controller):  # from docs/how-to/write-a-controller.md
        least = rtt = float("inf")

        def on_sample(self, window, ack):
            self.rtt = ack.rtt or self.rtt
            self.least = min(self.least, self.rtt)

        def on_ack(self, window, ack):
            if ack.cwnd_limited:
                window.cwnd += ack.acked if window.in_slow_start else ack.acked / window.cwnd

        def on_congestion_event(self, window, in_flight):
            queued = window.cwnd * (1 - self.least / self.rtt)
            return window.cwnd * (0.5 if queued > 3 else 0.95)

    (tmp_path / "own.toml").write_text(FIRST.replace('"cubic"', '"custom:Wary"'))
    assert shown == ackclock.run(load(tmp_path / "own.toml"), controllers={"Wary": Wary}).digest
    tab.run("at('mine-check').click()")
    tab.wait("at('mine-state').textContent === 'Wary keeps the rules of all controllers.'")
    put(tab, "class Wary { on_ack(w) { w.cwnd += 1; } on_congestion_event(w) { return w.cwnd / 2; } }")
    tab.wait("document.body.dataset.digest !== " + json.dumps(shown))
    tab.run("at('mine-check').click()")
    tab.wait("at('mine-state').classList.contains('bad')")
    assert text(tab, "#mine-state").startswith("Wary, on_ack: breaks the rule application-limited (cwnd does not grow ")

    put(tab, wary)
    tab.wait(f"document.body.dataset.digest === {shown!r} && location.hash.includes('&c=')")
    saved = tmp_path / "saved.html"
    saved.write_text(tab.run("whole()"), encoding="utf-8")
    link = tab.run("location.hash")
    tab.ask("Page.navigate", url="about:blank")
    tab.open(ROOT / "python" / "ackclock" / "_lab" / "lab.html", width=1280)
    tab.run(f"location.hash = {json.dumps(link)}")
    # a controller from a link waits for the user's consent
    tab.wait("!at('mine-trust').hidden && at('state').textContent.startsWith('the link brings a controller')")
    assert tab.run("runner.own") == ""
    # a refusal cancels the earlier request, whose late response would otherwise replace it
    assert tab.run(
        "runner.ask({ text: at('text').value, seed: 1, budget_ms: 9e3, memory: MEMORY, asked: 0 }); ask(); [runner.job, runner.next]"
    ) == [
        None,
        None,
    ]
    tab.run("at('mine-trust').click()")
    tab.wait(f"document.body.dataset.digest === {shown!r}")
    opened(tab, saved)
    tab.wait(f"document.body.dataset.digest === {shown!r}")


REACHES = {
    "fetch('http://127.0.0.1:PORT/')": "ReferenceError: fetch is not defined",
    "new XMLHttpRequest()": "ReferenceError: XMLHttpRequest is not defined",
    "new WebSocket('ws://127.0.0.1:PORT/')": "ReferenceError: WebSocket is not defined",
    "importScripts('http://127.0.0.1:PORT/x.js')": "ReferenceError: importScripts is not defined",
    "new Worker('blob:x')": "ReferenceError: Worker is not defined",
    "postMessage({ ran: { ok: true } })": "ReferenceError: postMessage is not defined",
    "globalThis.postMessage(1)": "TypeError: globalThis.postMessage is not a function",
    "Object.getPrototypeOf(globalThis).postMessage(1)": "TypeError: Object.getPrototypeOf(...).postMessage is not a function",
    "document.title": "ReferenceError: document is not defined",
    "self.name": "ReferenceError: self is not defined",
    "Date.now()": "ReferenceError: Date is not defined",
    "performance.now()": "ReferenceError: performance is not defined",
    "setTimeout(() => 1)": "ReferenceError: setTimeout is not defined",
    "indexedDB.open('x')": "ReferenceError: indexedDB is not defined",
    "eval('1')": "ReferenceError: eval is not defined",
    "(() => 1).constructor('return 1')()": "Error: found code made of text",
    "(async () => 1).constructor('return 1')()": "Error: found code made of text",
    "Math.random()": "Error: Math.random: found in a controller",
    "Engine.open()": "ReferenceError: Engine is not defined",
    "post({ ran: { ok: true } })": "ReferenceError: post is not defined",
    "Array.prototype.map = null": "TypeError: Cannot assign to read only property 'map'",
    "JSON.parse = null": "TypeError: Cannot assign to read only property 'parse'",
    "Object.prototype.x = 1": "TypeError: Cannot add property x, object is not extensible",
}


@pytest.mark.promise("P27")
@pytest.mark.deep
@built
@chromium
def test_a_controller_reaches_nothing_but_its_arguments(tab):
    opened(tab)
    write(tab, FIRST.replace('"cubic"', '"custom:Evil"'))
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=lambda: heard.append(server.accept()), daemon=True).start()
        for asked, said in REACHES.items():
            reach = asked.replace("PORT", str(port))
            put(tab, f"class Evil {{ on_ack(w) {{ {reach}; }} on_congestion_event(w) {{ return w.cwnd / 2; }} }}")
            tab.wait("at('state').textContent.startsWith('controller Evil, on_ack at ')")
            assert said in text(tab, "#state"), (reach, text(tab, "#state"))
        # the page's policy blocks requests that the language itself can make
        put(
            tab,
            f"class Evil {{ on_ack(w) {{ import('http://127.0.0.1:{port}/x.js').catch(() => 0); }} on_congestion_event(w) {{ return w.cwnd / 2; }} }}",
        )
        tab.wait("state.result?.text.includes('custom:Evil')")
        assert not heard


@pytest.mark.deep
@built
@chromium
def test_a_controller_that_does_not_end_or_is_no_text_of_one_is_told_of(tab):
    opened(tab)
    write(tab, FIRST.replace('"cubic"', '"custom:Loops"'))
    tab.run("at('budget').value = '5'")
    put(tab, "class Loops { on_ack(w) { for (;;); } on_congestion_event(w) { return 2; } }")
    tab.wait("at('state').textContent.includes('does a hook of the controller never end?')")
    put(tab, "// one\nclass Loops { on_ack(w) { x = ; } }")
    tab.wait("at('mine-state').textContent.startsWith('line 2: SyntaxError')")
    assert text(tab, "#mine-gutter .bad") == "! 2\n"
    put(tab, "for (;;);\nclass Loops {}")
    tab.wait("at('mine-state').textContent === 'it did not end'")
    put(tab, "}})(); ackclock_classes({}); postMessage({ ran: { ok: true } });\nclass Loops {}")
    tab.wait("at('mine-state').textContent.includes('SyntaxError')")
    put(tab, "ackclock_classes({}); nothing();\nclass Loops {}")
    tab.wait("at('mine-state').textContent.startsWith('line 1: ReferenceError: nothing is not defined')")
    write(tab, FIRST)
    tab.wait("!at('right').classList.contains('stale') && state.result?.text.includes('\"cubic\"')")
