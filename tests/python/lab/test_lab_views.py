"""Tests for the lab's views: the animation shows the run's packets, further seeds are real runs, completion follows
the schema, files are correct.
"""

from __future__ import annotations

import json
import statistics
import tomllib
from collections.abc import Iterator

import polars as pl
import pytest
from browser import Browser, browser
from lab_page import FIRST, SCENARIOS, built, chromium, opened, text, write
from scipy.special import stdtrit

import ackclock
from ackclock import Scenario, load


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.deep
@built
@chromium
@pytest.mark.parametrize("name", ["first", "dumbbell-10", "l4s"])
def test_the_animation_shows_what_the_queues_hold(tab, name):
    opened(tab, behind=f"#name={name}")
    tab.wait(f"state.result?.read.name === {name!r} && !runner.job")
    tab.run("at('film-box').open = true")
    tab.wait("filming.reel !== null")
    run = ackclock.run(load(name).set("record.queue_interval", "37 ms"), seed=1)
    links = dict(zip(run.links["name"], run.links["link"], strict=True))
    assert tab.run("filming.reel.names") == list(links)
    until = tab.run("Math.min(filming.reel.until, 20)")
    samples = run.queue_samples.filter(pl.col("t_s") < until - 0.5)
    assert samples["packets"].max() > 10
    asked = [[row["link"], row["t_s"]] for row in samples.iter_rows(named=True)][:: max(1, len(samples) // 400)]
    # `waiting` in the table excludes the packet in transmission, which the animation shows at the head of the queue
    shown = tab.run(f"{json.dumps(asked)}.map(([link, t]) => filming.reel.on(link, t + 1e-9).waiting.length)")
    known = {(row["link"], row["t_s"]): row["packets"] for row in samples.iter_rows(named=True)}
    drops = ackclock.run(load(name).set("record.drops", True), seed=1).drops
    longest = run.links["max_wait_s"].max() + 0.01
    for (link, t), have in zip(asked, shown, strict=True):
        held = known[link, t] + 1 if known[link, t] else min(have, 1)
        # a packet dropped from the head by an AQM never reaches the link, so the animation does not show its wait
        lost = drops.filter(
            (pl.col("reason") == "aqm") & (pl.col("link") == link) & pl.col("t_s").is_between(t, t + longest)
        )
        assert held - len(lost) <= have <= held, (link, t)
    # each drop is drawn
    falls = tab.run("Array.from(filming.reel.falls.t_s)")
    assert falls == pytest.approx(
        drops.filter(pl.col("t_s") <= tab.run("filming.reel.until"))["t_s"].to_list()[: len(falls)]
    )


@pytest.mark.deep
@built
@chromium
def test_the_animation_goes_with_the_cursor(tab):
    opened(tab)
    tab.run("at('film-box').open = true")
    tab.wait("filming.reel !== null")
    tab.run("figures.canvases[0].focus()")
    tab.run(
        "figures.cursor = 3; document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }))"
    )
    assert tab.run("filming.t") == pytest.approx(3.3, abs=0.01)
    assert text(tab, "#film-said").startswith("3.3 s: bottleneck.forward: ")
    before = tab.run("at('film').toDataURL()")
    tab.run(
        "at('film-speed').value = '1'; at('film-speed').dispatchEvent(new Event('change')); at('film-play').click()"
    )
    tab.wait("filming.t > 3.5")
    assert tab.run("figures.cursor") > 3.3
    tab.run("at('film-play').click()")
    assert text(tab, "#film-play") == "Play"
    assert tab.run("at('film').toDataURL()") != before
    # each run has its own animation
    write(tab, FIRST.replace("10 Mbit", "5 Mbit"))
    tab.wait("state.result?.text.includes('5 Mbit') && filming.reel !== null")
    # the rest of a run that is too long for one animation is recorded on demand
    tab.run("filming.wanted = null; filming.reel.until = 4; filming.at(10)")
    tab.wait("filming.reel.from === 10")


@pytest.mark.deep
@built
@chromium
def test_further_seeds_are_the_runs_of_those_seeds(tab):
    opened(tab, behind="#name=l4s")
    tab.wait("state.result?.read.name === 'l4s'")
    noisy = (SCENARIOS / "l4s.toml").read_text(encoding="utf-8").replace('duration = "30 s"', 'duration = "6 s"')
    write(tab, noisy)
    tab.run("at('seeds').value = '5'; at('seeds').dispatchEvent(new Event('change'))")
    tab.wait("at('beside-said').textContent === '4 of 4 further seeds' && state.beside.length === 4")
    told = tab.run("state.beside.map(({ seed, result }) => [seed, result.ran.digest])")
    scenario = Scenario.from_dict(tomllib.loads(noisy))
    runs = [ackclock.run(scenario, seed=seed) for seed in range(1, 6)]
    assert dict(told) == {seed: run.digest for seed, run in enumerate(runs[1:], 2)}
    goodputs = [run.flows["goodput_bps"][0] * 1e-6 for run in runs]
    half = statistics.stdev(goodputs) / 5**0.5 * 2.776
    sums = tab.run(
        "summed([state.result, ...state.beside.map(({ result }) => result)].map((one) => one.columns('flows').goodput_bps[0] * 1e-6))"
    )
    assert sums["mean"] == pytest.approx(statistics.mean(goodputs))
    assert sums["half"] == pytest.approx(half, rel=0.005)
    assert "Flows over 5 seeds" in text(tab, "#beside")
    for count in (3, 4, 6, 20, 100):
        quantile = tab.run(f"student({count - 1})")
        assert quantile == pytest.approx(stdtrit(count - 1, 0.975), rel=0.008)
    tab.run("at('seeds').value = '1'; at('seeds').dispatchEvent(new Event('change'))")
    tab.wait("at('beside').textContent === '' && !runner.job")


OFFERS = [
    ("d", "key", ["duration"]),
    ("[net", "header", ["network"]),
    ('[network]\nbottleneck = { rate = "1 Mbit/s", ra', "key", []),
    ('[network]\nbottleneck = { rate = "1 Mbit/s", de', "key", ["delay"]),
    ('[network]\nbottleneck = { queue = { kind = "cod', "value", ["codel"]),
    ('[network.bottleneck]\nqueue = { kind = "codel", ta', "key", ["target"]),
    ('[network]\ntopology = "wish', "value", ["wishbone"]),
    ('[[flows]]\nworkload = { kind = "fetch", cou', "key", ["count"]),
    ("[[flows]]\nstack = { initial_win", "key", ["initial_window"]),
    ('[[flows]]\ncongestion_control = "c', "value", ["cubic", "cubic-rfc9438", "cdg", "compound", "copa"]),
    ('[[flows]]\nname = "x" # conges', None, None),
    ('name = "rec', "value", []),
    ('[network]\naccess_list = [\n  { rate = "1 Mbit/s", dela', "key", ["delay"]),
]


@pytest.mark.deep
@built
@chromium
@pytest.mark.parametrize("width", [1280, 360])
def test_the_editor_completes_by_the_schema(tab, width):
    opened(tab, width=width)
    for before, mode, offers in OFFERS:
        told = tab.run(
            f"(() => {{ const at = offersAt(DATA.schema, {json.dumps(before)}, {len(before)}); return at && [at.mode, at.offers.map(({{ name }}) => name)]; }})()"
        )
        assert told == (None if mode is None else [mode, offers]), before
    at = FIRST.index("[[flows]]") + len("[[flows]]\n")
    write(tab, FIRST[:at] + "\n" + FIRST[at:])
    tab.run(f"at('text').setSelectionRange({at}, {at})")
    for letter in "rec":
        tab.ask("Input.insertText", text=letter)
    tab.wait("document.querySelectorAll('#offers li').length === 1")
    assert text(tab, "#offers b") == "recovery"
    left, right = tab.run("(({ left, right }) => [left, right])(at('offers').getBoundingClientRect())")
    assert 0 <= left < right <= width
    press(tab, "Enter")
    tab.wait("document.querySelectorAll('#offers li').length > 5")
    press(tab, "ArrowDown")
    assert (
        tab.run("document.getElementById(at('text').getAttribute('aria-activedescendant')).textContent") == "freebsd-4"
    )
    press(tab, "Enter")
    assert 'recovery = "freebsd-4"\n' in tab.run("at('text').value")
    tab.wait("state.result?.text.includes('freebsd-4')")
    assert tab.run("at('offers').hidden")


def press(tab: Browser, key: str) -> None:
    """Press a key in the editor."""
    tab.run(
        f"at('text').dispatchEvent(new KeyboardEvent('keydown', {{ key: {key!r}, bubbles: true, cancelable: true }}))"
    )


@pytest.mark.deep
@built
@chromium
def test_what_is_saved_is_what_was_run(tab, tmp_path):
    opened(tab)
    tab.run(  # the download: the blob behind the link that the page clicks
        "globalThis.kept = {}; URL.createObjectURL = (blob) => { globalThis.saved = blob; return '#'; };"
        "HTMLAnchorElement.prototype.click = async function () {"
        " const blob = saved; kept[this.download] = [blob.type, await blob.text()]; }"
    )
    for button in ("toml", "svg", "png"):
        tab.run(f"at('save-{button}').click()")
    tab.run("at('csv').value = 'acks'; at('save-csv').click()")
    tab.wait("Object.keys(kept).length === 4")
    assert tab.run("kept['first.toml'][1]") == FIRST
    assert tab.run("kept['first.svg'][1]").startswith("<svg xmlns=")
    assert tab.run("kept['first.png'][0]") == "image/png"
    (tmp_path / "acks.csv").write_text(tab.run("kept['acks.csv'][1]"), encoding="utf-8")
    run = ackclock.run(load("first").set("record.trace", "all"), seed=1)
    saved = pl.read_csv(tmp_path / "acks.csv", infer_schema_length=None)
    assert saved.columns == run.acks.columns
    assert saved["cwnd"].to_list() == run.acks["cwnd"].to_list()
    assert saved["t_s"].to_list() == run.acks["t_s"].to_list()
    assert text(tab, "#command") == "ackclock run first.toml --seed 1"
    # and the command reports the digest shown by the page
    assert tab.run("document.body.dataset.digest") == run.digest


@pytest.mark.deep
@built
@chromium
def test_a_kept_run_stands_beside_the_next_with_the_difference(tab):
    opened(tab)
    tab.run("at('keep').click()")
    write(tab, FIRST.replace("10 Mbit", "20 Mbit"))
    tab.wait("state.result?.text.includes('20 Mbit')")
    goodput = [
        ackclock.run(load("first").set("network.bottleneck.rate", rate), seed=1).flows["goodput_bps"][0] * 1e-6
        for rate in ("10 Mbit/s", "20 Mbit/s")
    ]
    shown = text(tab, "#numbers tbody td")
    assert shown == f"{goodput[1]:.4g} (+{goodput[1] - goodput[0]:.4g})"
    assert tab.run("figures.panels[0].series.filter(({ faint }) => faint).length") == 2
    tab.run("at('keep').click()")
