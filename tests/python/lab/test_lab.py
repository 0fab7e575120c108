"""Tests for the lab: the page's module reproduces the native engine's results, in Node and in Chromium, and the page reacts to its user."""

from __future__ import annotations

import base64
import html
import http.client
import json
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browser
from conftest import ROOT, tool
from engine.test_laws import drawn
from lab_page import FIRST, NODE, SCENARIOS, built, chromium, module_of, native, node, opened, text, write

from ackclock import _engine, _link, load, run
from ackclock._course import shipped
from ackclock.cli import main
from ackclock.cli._lab import OWN

DRAWN = 200
WHOLE = {"first", "fetch-lossy", "l4s", "transactions", "pcc-shallow", "video"}
"""Scenarios whose tables are all compared, bit by bit."""


def jobs() -> list[tuple[dict[str, Any], str]]:
    """Return the jobs in the page's form and in the native engine's form."""
    files = [
        [f"traces/{file.name}", base64.b64encode(file.read_bytes()).decode()] for file in SCENARIOS.glob("traces/*")
    ]
    found = []
    for path in sorted(SCENARIOS.glob("*.toml")):
        if not _link.runs_in_page(path.read_text(encoding="utf-8")):
            continue
        job = {"text": path.read_text(encoding="utf-8"), "seed": 1, "files": files, "whole": path.stem in WHOLE}
        found.append((job, load(path.stem).to_engine_json()))
    for number in range(DRAWN):
        scenario = drawn(number)
        job = {"text": scenario.to_toml(), "seed": number, "files": [], "whole": False}
        found.append((job, scenario.to_engine_json()))
    return found


def tables(raw: dict[str, Any]) -> dict[str, Any]:
    """Return native-engine tables in the form of `node.js`, with text instead of codes."""
    told = lambda kind, values: values if kind == "str" else base64.b64encode(values).decode()  # noqa: E731
    return {
        name: {column: [kind, told(kind, values)] for column, (kind, values) in columns.items()}
        for name, columns in raw["tables"].items()
    }


def spelt(table: dict[str, Any]) -> dict[str, Any]:
    """Return a `node.js` table with text instead of codes."""
    found = {}
    for name, (kind, data, names) in table.items():
        codes = memoryview(base64.b64decode(data)).cast("I") if kind == "str" else ()
        found[name] = [kind, [names[code] for code in codes] if kind == "str" else data]
    return found


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.deep
@built
@node
def test_node_gives_the_digests_and_tables_of_the_native_engine(tmp_path):
    module = module_of(tmp_path)
    asked = jobs()
    (tmp_path / "jobs").write_text(json.dumps([job for job, _ in asked]))
    here = Path(__file__).parent
    scripts = [ROOT / "web" / name for name in ("contract.js", "hooks.js", "engine.js")]
    command = [NODE, here / "node.js", module, *scripts, tmp_path / "jobs"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert len(told) == len(asked) >= 41 + DRAWN
    for (job, scenario), answer in zip(asked, told, strict=True):
        native = _engine.run(scenario, job["seed"])
        assert answer["ok"], (job["text"], answer)
        # recording for the page's figures changes nothing
        assert answer["digest"] == answer["watched"] == native["digest"], job["text"]
        if job["whole"]:
            assert {name: spelt(table) for name, table in answer["tables"].items()} == tables(native), job["text"]


@pytest.mark.deep
@built
@chromium
def test_chromium_gives_the_digests_of_the_native_engine(tab):
    opened(tab)
    tab.run("""(() => {
      const worker = new Worker(runner.address);
      const next = () => new Promise((done) => { worker.onmessage = ({ data }) => { if (data.progress === undefined && !data.begun) done(data); }; });
      globalThis.one = (job) => { const answer = next(); worker.postMessage(job); return answer; };
    })(); one({ module: runner.module, files: DATA.files.map(([name, data]) => [name, bytes(data)]) })""")
    for job, asked in jobs():
        ask = json.dumps({"text": job["text"], "seed": job["seed"], "number": 1, "budget_ms": 600_000, "memory": 2**30})
        digest = tab.run(
            f"one({ask}).then(({{ ran, broken, read }}) => ran ? ran.digest : JSON.stringify([broken, read]))"
        )
        assert digest == _engine.run(asked, job["seed"])["digest"], job["text"]


def slide(tab: Browser, value: float) -> None:
    """Move the newest slider to 10**value times its earlier value."""
    tab.run(
        "(() => { const s = [...document.querySelectorAll('.slider input')].at(-1);"
        f" s.value = {value}; s.dispatchEvent(new Event('input')); }})()"
    )


@pytest.mark.deep
@built
@chromium
def test_a_mistake_is_told_at_its_line_and_the_slider_moves_the_curve(tab, tmp_path):
    opened(tab)
    before = tab.run("document.body.dataset.digest")
    write(tab, FIRST.replace('"10 Mbit/s"', '"10 Mbits"'))
    tab.wait("document.querySelectorAll('#refusals button').length === 1")
    line = 1 + FIRST[: FIRST.index('"10 Mbit/s"')].count("\n")
    told = text(tab, "#refusals button")
    assert told.startswith(f'line {line}: network.bottleneck.rate: found "10 Mbits"; did you mean "10 Mbit/s"?'), told
    assert text(tab, "#marks mark") == '"10 Mbits"'
    assert text(tab, "#gutter .bad") == f"! {line}\n"
    assert tab.run("at('right').classList.contains('stale')")

    write(tab, FIRST)
    tab.wait(f"document.body.dataset.digest === {before!r} && !at('right').classList.contains('stale')")
    drawn_before = tab.run("figures.canvases[0].toDataURL()")
    caret = FIRST.index('"10 Mbit/s"') + 3
    tab.run(f"at('text').setSelectionRange({caret}, {caret}); at('slide').click()")
    assert text(tab, ".slider span") == "network.bottleneck.rate = 10 Mbit/s"
    for value in (0.3, -0.5, 0.7):
        slide(tab, value)
    tab.wait("at('text').value.includes('50 Mbit/s') && state.result.read.ok && !runner.job && !runner.next")
    changed = FIRST.replace('"10 Mbit/s"', '"50 Mbit/s"')
    assert tab.run("at('text').value") == changed
    expected = native(changed, tmp_path)
    tab.wait(f"document.body.dataset.digest === {expected!r}")
    assert tab.run("figures.canvases[0].toDataURL()") != drawn_before
    slide(tab, -0.5)
    assert '"3.16 Mbit/s"' in tab.run("at('text').value")

    write(tab, FIRST.replace("1 BDP", "60 packets"))
    tab.wait("state.result.text.includes('60 packets')")
    caret = tab.run("at('text').value").index("60 packets") + 1
    tab.run(f"at('text').setSelectionRange({caret}, {caret}); at('slide').click()")
    slide(tab, -0.98)  # 6.28 packets
    tab.wait("state.result.text.includes('6 packets')")


@pytest.mark.deep
@built
@chromium
def test_a_link_and_a_saved_page_carry_the_scenario(tab, tmp_path):
    opened(tab)
    changed = FIRST.replace("cubic", "reno").replace('name = "first"', 'name = "größer </script> 1"')
    expected = native(changed, tmp_path, 7)
    write(tab, changed)
    tab.run("at('seed').value = 7; at('seed').dispatchEvent(new Event('input'))")
    tab.wait(f"document.body.dataset.digest === {expected!r}")
    tab.wait("location.hash.endsWith('&seed=7')")
    link = tab.run("location.hash")
    saved = tmp_path / "saved.html"
    saved.write_text(tab.run("whole()"), encoding="utf-8")

    opened(tab, behind=link)
    tab.wait(f"document.body.dataset.digest === {expected!r}")
    assert tab.run("at('text').value") == changed
    opened(tab)
    tab.wait("location.hash.startsWith('#s=')")
    # a run that ends at this moment writes its address
    tab.run(f"const own = location.hash; location.hash = {json.dumps(link)}; history.replaceState(null, '', own)")
    tab.wait(f"document.body.dataset.digest === {expected!r}")
    opened(tab, saved)
    tab.wait(f"document.body.dataset.digest === {expected!r}")
    assert tab.run("[at('text').value, at('seed').value]") == [changed, "7"]
    assert main(["lab", str(tmp_path / "native.toml"), "--seed", "7", "--save", str(saved)]) == 0
    opened(tab, saved)
    tab.wait(f"document.body.dataset.digest === {expected!r}")


@pytest.mark.deep
@built
@chromium
def test_a_link_out_of_a_lesson_keeps_the_lesson_and_what_was_changed(tab):
    opened(tab, behind="#lesson=slow-start")
    tab.wait("!at('lesson').hidden")
    title, scenario, sliders = tab.run("[at('lesson-title').textContent, at('text').value, state.sliders.length]")
    changed = scenario.replace("duration", "# mine\nduration", 1)
    write(tab, changed)
    tab.wait("location.hash.endsWith('&lesson=slow-start') && location.hash.startsWith('#s=')")
    link = tab.run("location.hash")
    opened(tab, behind=link)
    tab.wait("!at('lesson').hidden")
    assert tab.run("[at('lesson-title').textContent, at('text').value, state.sliders.length]") == [
        title,
        changed,
        sliders,
    ]
    opened(tab, behind=link.removesuffix("&lesson=slow-start"))
    tab.wait(f"at('text').value === {json.dumps(changed)}")
    assert tab.run("at('lesson').hidden")


@pytest.mark.deep
@built
@chromium
def test_what_is_said_of_an_older_text_is_not_looked_for_in_the_newer_one(tab):
    opened(tab, behind="#lesson=slow-start")
    tab.wait("document.querySelectorAll('#sliders label').length > 0 && !runner.job")
    number = tab.run("document.querySelectorAll('#sliders label').length")
    assert (
        tab.run(
            "at('text').value = '# above\\n' + at('text').value; runner.job = { text: 'older' }; heard({ begun: { places: state.places, time_s: 0 } }); runner.job = null; document.querySelectorAll('#sliders label').length"
        )
        == number
    )
    tab.run(
        "heard({ read: { ok: false, refusals: [{ line: 1, column: 1, length: 1, message: 'of the older' }] }, job: { text: 'older' } })"
    )
    assert tab.run("document.querySelectorAll('#refusals button').length") == 0


@pytest.mark.promise("P26")
@pytest.mark.deep
@built
@chromium
def test_hostile_text_neither_becomes_markup_nor_freezes_the_tab(tab):
    opened(tab)
    elements = tab.run("document.querySelectorAll('*').length")
    evil = "<img src=x onerror='document.title=1'>"
    write(tab, FIRST.replace('name = "first"', f'name = "{evil}"').replace("[[flows]]", f'[[flows]]\nname = "{evil}"'))
    tab.wait("state.result?.read.name.includes('img')")
    write(tab, FIRST.replace('"cubic"', f'"{evil}"'))
    tab.wait("document.querySelectorAll('#refusals button').length === 1")
    assert "onerror" in text(tab, "#refusals button")
    assert tab.run("document.images.length") == 0
    assert tab.run("document.title") == "ackclock lab"
    assert tab.run("document.querySelectorAll('*').length") < elements + 30

    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = base64.urlsafe_b64encode(bomb.compress(b"a" * 2**26) + bomb.flush()).decode().rstrip("=")
    for behind in (f"#s={packed}", "#s=%00", "#s=AAAA", "#name=nothing", "#s=&seed=1e9"):
        tab.run(f"location.hash = {json.dumps(behind)}")
        tab.wait("at('state').textContent.startsWith('the link: found no')")
        tab.run("say('')")

    write(tab, FIRST.replace("30 s", "1000 h").replace("10 Mbit", "1000 Mbit"))
    tab.run("at('budget').value = '5'")
    tab.run("changed(0)")
    began = time.monotonic()
    tab.wait("at('state').textContent.startsWith('stopped after') || at('state').classList.contains('bad')")
    assert time.monotonic() - began > 1
    assert text(tab, "#state").startswith("stopped after 5 s"), text(tab, "#state")
    write(tab, FIRST)
    tab.wait("!at('right').classList.contains('stale')")


@pytest.mark.deep
@built
@chromium
def test_the_page_may_not_ask_anybody(tab):
    opened(tab)
    asks = "fetch('https://example.org/').then(() => 'asked', () => 'refused')"
    assert tab.run(asks) == "refused"
    in_worker = f"onmessage = () => {asks}.then(postMessage)"
    worker = f"new Promise((done) => {{ const w = new Worker(URL.createObjectURL(new Blob([{json.dumps(in_worker)}]))); w.onmessage = ({{ data }}) => done(data); w.postMessage(1); }})"
    assert tab.run(worker) == "refused"
    image = "new Promise((done) => { const i = new Image(); i.onload = () => done('asked'); i.onerror = () => done('refused'); i.src = 'https://example.org/x.png'; })"
    assert tab.run(image) == "refused"


@pytest.mark.deep
@built
@chromium
@pytest.mark.parametrize(("width", "scenario"), [(1280, "dumbbell-10"), (360, "first"), (360, "pcc-shallow")])
def test_no_view_is_wider_than_its_screen_and_keys_do_what_a_mouse_does(tab, width, scenario):
    opened(tab, behind=f"#name={scenario}", width=width)
    tab.wait(f"state.result?.read.name === {scenario!r}")
    assert tab.run("document.documentElement.scrollWidth") <= width
    unnamed = "[...document.querySelectorAll('button,select,input,textarea,canvas')].filter((e) => !(e.textContent.trim() || e.labels?.length || e.getAttribute('aria-label'))).length"
    assert tab.run(unnamed) == 0
    tab.run("figures.canvases[0].focus()")
    for key in ("ArrowRight", "+", "+"):
        tab.run(
            f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: {key!r}, bubbles: true }}))"
        )
    whole = tab.run("figures.whole[1]")
    shown = tab.run("figures.shown")
    assert shown[1] - shown[0] == pytest.approx(whole / 4, rel=0.1)
    assert " s: " in text(tab, "#cursor")
    svg = tab.run("figures.svg()")
    assert svg.count("<g transform") == tab.run("figures.panels.length") >= 2


@pytest.mark.deep
@built
@chromium
def test_the_tasks_of_all_lessons_are_open_at_first_and_can_be_done(tab):
    opened(tab)
    lessons = tab.run(
        "LESSONS.map(({ id, scenario, sliders, tasks }) => [id, scenario, sliders.length, tasks.map(({ solved }) => solved)])"
    )
    assert len(lessons) == len(shipped())
    for lesson, scenario, sliders, tasks in lessons:
        shown = "state.result?.text === at('text').value && !runner.job && !runner.next"
        tab.run(f"teach(LESSONS.find(({{ id }}) => id === {lesson!r}))")
        tab.wait(f"at('text').value === {json.dumps(scenario)} && {shown}")
        assert tab.run("document.querySelectorAll('.slider').length") == sliders
        assert tab.run("document.querySelectorAll('#tasks .done').length") == 0, lesson
        for number, solved in enumerate(tasks):
            changed = scenario
            for before, after in solved:
                assert before in changed
                changed = changed.replace(before, after)
            write(tab, changed)
            tab.wait(f"at('text').value === {json.dumps(changed)} && {shown}")
            assert tab.run(f"at('tasks').children[{number}].classList.contains('done')"), (lesson, number)


def test_the_page_holds_no_more_than_its_sizes_and_its_policy_lets_nothing_in():
    made = tool("lab")
    page = made.page(b"module")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    script = page[page.rindex("<script>") + len("<script>") : page.rindex("</script>")]
    assert made.digest(script) in policy[1]
    style = page[page.index("<style>") + len("<style>") : page.index("</style>")]
    assert made.digest(style) in policy[1]
    assert "unsafe-inline" not in policy[1]
    assert OWN in page
    assert not re.search(r'(src|href)="', page)


def test_the_command_says_what_it_lacks(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ackclock.cli._lab.PAGE", tmp_path / "none.html")
    assert main(["lab", "--no-browser"]) == 2
    assert "rustup target add wasm32-unknown-unknown" in capsys.readouterr().err
    (tmp_path / "none.html").write_text(f"<p>{OWN}</p>")
    assert main(["lab", "frist", "--save", str(tmp_path / "out.html")]) == 2
    assert 'did you mean "first"' in capsys.readouterr().err
    assert main(["lab", "first", "--save", str(tmp_path / "out.html")]) == 0
    own = re.search(r'id="own">(.*)</script>', (tmp_path / "out.html").read_text(encoding="utf-8"))
    assert own is not None
    assert json.loads(own[1]) == {"text": FIRST, "seed": "1"}
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    assert main(["lab", str(tmp_path / "bytes.toml")]) == 2
    assert "other bytes than UTF-8" in capsys.readouterr().err


@built
def test_the_command_serves_the_page_to_this_machine_only():
    command = [sys.executable, "-m", "ackclock", "lab", "first", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        host = address.removeprefix("http://").rstrip("/")
        assert host.startswith("127.0.0.1:")
        for path, sent, status in (("/", host, 200), ("/x", host, 404), ("/", "example.org", 421)):
            asked = http.client.HTTPConnection(host, timeout=60)
            asked.putrequest("GET", path, skip_host=True)
            asked.putheader("Host", sent)
            asked.endheaders()
            assert asked.getresponse().status == status
    finally:
        process.terminate()
        process.wait(timeout=60)


def test_a_link_opens_the_scenario_that_it_carries_and_a_report_has_one(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.html"
    page.write_text(OWN, encoding="utf-8")
    monkeypatch.setattr("ackclock.cli._lab.PAGE", page)
    out = tmp_path / "out.html"
    own = lambda: json.loads(re.search(r'id="own">(.*)</script>', out.read_text(encoding="utf-8"))[1])  # noqa: E731
    (tmp_path / "short.toml").write_text(FIRST.replace("30 s", "1 s"), encoding="utf-8")
    report = tmp_path / "report.html"
    assert main(["run", str(tmp_path / "short.toml"), "--seed", "7", "--report", str(report)]) == 0
    found = re.search(
        r"<pre class=\"link\"[^>]*>ackclock lab (?:&#39;|')(.*?)(?:&#39;|')</pre>", report.read_text(encoding="utf-8")
    )
    assert found is not None
    link = html.unescape(found[1])
    assert main(["lab", link, "--save", str(out)]) == 0
    assert own()["seed"] == "7"
    (tmp_path / "from-link.toml").write_text(own()["text"], encoding="utf-8")
    digests = [run(load(tmp_path / name), seed=7).digest for name in ("from-link.toml", "short.toml")]
    assert digests[0] == digests[1]
    assert main(["lab", f"http://127.0.0.1:8000/{_link.made(FIRST, 3)}&lesson=slow-start", "--save", str(out)]) == 0
    assert own() == {"text": FIRST, "seed": "3"}

    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = base64.urlsafe_b64encode(bomb.compress(b"a" * 2**26) + bomb.flush()).decode().rstrip("=")
    capsys.readouterr()
    for wrong, said in (
        (f"#s={packed}", "more than 1048576 bytes"),
        ("#s=AAAA", "no scenario in it"),
        (link[:60], "no scenario in it"),
        ("#s=%00", 'found "#s=%00"'),
        ("#s=AAAA&c=AAAA", "a controller in JavaScript"),
    ):
        assert main(["lab", wrong, "--save", str(out)]) == 2
        told = capsys.readouterr().err
        assert said in told, (wrong, told)
        assert told.count("\n") == 1
