"""Tests for populations of paths: what is drawn has the quantiles and the correlations of the file, and what is no population is refused in a line."""

from __future__ import annotations

import bisect
import json
import math
import re
from pathlib import Path

import pytest

import ackclock
from ackclock import population
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.population import QUANTITIES, DrawnPath, Population

FILE = """
name = "made-up"
[source]
what = "nothing"
url = "none"
date = "2026"
licence = "CC0-1.0"
[[paths]]
name = "one"
weight = 3
shares = [0.1, 0.5, 0.9]
rate = ["5 Mbit/s", "20 Mbit/s", "80 Mbit/s"]
rtt = ["10 ms", "40 ms", "160 ms"]
loss = ["0 %", "0.1 %", "2 %"]
queue = ["20 ms", "100 ms", "500 ms"]
ranks = { rate-rtt = -0.6, rtt-loss = 0.4, loss-queue = 0.2 }
[[paths]]
name = "two"
weight = 1
shares = [0, 1]
rate = "1 Gbit/s"
rtt = ["1 ms", "2 ms"]
loss = "0 %"
queue = "5 ms"
guessed = ["queue", "loss"]
"""


@pytest.fixture
def made(tmp_path: Path) -> Population:
    (tmp_path / "made.toml").write_text(FILE)
    return population.read(tmp_path / "made.toml")


def ranked(values: list[float]) -> list[float]:
    """Return ranks; those of equal values are their mean."""
    order = sorted(values)
    return [(bisect.bisect_left(order, value) + bisect.bisect_right(order, value) - 1) / 2 for value in values]


def spearman(one: list[float], other: list[float]) -> float:
    a, b = ranked(one), ranked(other)
    mean = (len(a) - 1) / 2
    both = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    return both / math.sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))


def test_draws_have_the_quantiles_and_ranks_of_the_file(made: Population) -> None:
    drawn = made.draw(6000, seed=4)
    first = [path for path in drawn if path.group == "one"]
    assert len(first) / len(drawn) == pytest.approx(0.75, abs=0.02)
    columns = {
        "rate": [path.rate_bps for path in first],
        "rtt": [path.rtt_s for path in first],
        "loss": [path.loss for path in first],
        "queue": [path.queue_s for path in first],
    }
    for name, share, expected in (
        ("rate", 0.5, 20e6),
        ("rate", 0.3, 10e6),
        ("rtt", 0.5, 0.04),
        ("loss", 0.7, 0.0105),
        ("queue", 0.5, 0.1),
    ):
        found = sorted(columns[name])[int(share * len(first))]
        assert found == pytest.approx(expected, rel=0.08), name
    assert min(columns["rate"]) == 5e6
    assert max(columns["rtt"]) == 0.16
    assert spearman(columns["rate"], columns["rtt"]) == pytest.approx(-0.6, abs=0.06)
    assert spearman(columns["rate"], columns["queue"]) == pytest.approx(0.0, abs=0.06)


def test_a_draw_is_decided_by_its_seed(made: Population) -> None:
    assert made.draw(5, seed=1) == made.draw(9, seed=1)[:5]
    assert made.draw(5, seed=1) != made.draw(5, seed=2)
    assert made.draw(2, seed=1)[0] == DrawnPath(**GOLDEN)


GOLDEN = {"group": "one", "rate_bps": 10_210_000, "rtt_s": 0.091864, "loss": 0.000118, "queue_s": 0.0936}


def test_a_path_becomes_a_bottleneck_and_a_client() -> None:
    path = DrawnPath(group="a", rate_bps=12_000_000, rtt_s=0.05, loss=0.01, queue_s=0.1)
    scenario = path.on(ackclock.load("first")).set("duration", "1 s")
    link = scenario.network.bottleneck
    assert link is not None
    assert (link.rate, link.delay, link.queue.limit) == ("12000000 bit/s", "25000000 ns", "100 packets")
    assert ackclock.run(scenario).flows["min_rtt_s"][0] >= 0.05
    clients = ackclock.load("population").set_all(
        {f"flows.0.workload.{key}": value for key, value in path.client().items()}
    )
    run = ackclock.run(clients.set("flows.0.workload.clients", 1))
    row = run.rows("clients")[0]
    assert (row["rtt_s"], row["rate_bps"], row["loss"]) == (0.05, 12e6, 0.01)


def test_the_population_that_comes_with_the_package_names_its_source() -> None:
    assert population.names() == ["uk-homes-2015"]
    homes = population.read("uk-homes-2015")
    assert homes.source["licence"] == "OGL-UK-3.0"
    assert "not in the source: queue" in homes.told
    assert "nternet" not in homes.told + homes.note
    for group in homes.groups:
        assert set(group.quantiles) == set(QUANTITIES)
    assert all(math.isfinite(path.rtt_s) for path in homes.draw(50))


REFUSED = {
    "no TOML": ("name =", "no TOML"),
    "unknown key": (FILE.replace("url =", "link ="), "source.link: found an unknown key; allowed"),
    "no licence": (FILE.replace('licence = "CC0-1.0"\n', ""), "source.licence: found nothing"),
    "empty licence": (FILE.replace("CC0-1.0", " "), "source.licence: found"),
    "no quantity": (FILE.replace('loss = "0 %"\n', ""), "paths.1.loss: found nothing"),
    "shares that fall": (FILE.replace("[0.1, 0.5, 0.9]", "[0.5, 0.1, 0.9]"), "paths.0.shares: found"),
    "share above 1": (FILE.replace("[0, 1]", "[0, 2]"), "paths.1.shares: found"),
    "shares of text": (FILE.replace("[0, 1]", '["0", "1"]'), "paths.1.shares: found"),
    "too few values": (FILE.replace('["1 ms", "2 ms"]', '["1 ms"]'), "paths.1.rtt: found 1 values"),
    "values that fall": (FILE.replace('"40 ms"', '"4 ms"'), "paths.0.rtt: found values that fall"),
    "no unit": (FILE.replace('"1 Gbit/s"', '"1"'), "paths.1.rate: "),
    "no rate": (FILE.replace('"1 Gbit/s"', '"0 Gbit/s"'), "paths.1.rate: found"),
    "too much loss": (FILE.replace('"2 %"', '"95 %"'), "paths.0.loss: found"),
    "loss that is no number": (FILE.replace('"2 %"', '"nan %"'), "paths.0.loss: found"),
    "weight": (FILE.replace("weight = 3", "weight = 0"), "paths.0.weight: found 0"),
    "weight nan": (FILE.replace("weight = 3", "weight = nan"), "paths.0.weight: found"),
    "pair": (FILE.replace("rate-rtt", "rtt-rate"), "paths.0.ranks: found"),
    "rank": (FILE.replace("-0.6", "-1.5"), "paths.0.ranks.rate-rtt: found -1.5"),
    "ranks that contradict": (
        FILE.replace("rate-rtt = -0.6, rtt-loss = 0.4", "rate-rtt = 0.95, rate-loss = -0.95, rtt-loss = 0.95"),
        "paths.one.ranks: found correlations that contradict",
    ),
    "guessed": (FILE.replace('["queue", "loss"]', '["delay"]'), "paths.1.guessed: found"),
    "name": (FILE.replace("made-up", "../x"), "name: found"),
    "no paths": (FILE.split("[[paths]]")[0] + "paths = []\n", "paths: found"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_population_is_refused_in_a_line(name: str, tmp_path: Path) -> None:
    text, said = REFUSED[name]
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=re.escape(said)) as refused:
        population.read(file)
    assert str(refused.value).startswith(str(file))
    assert "allowed" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(InputError, match="uk-homes-2015"):
        population.read("uk-homes")


def test_evaluate_has_a_row_for_a_population_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ackclock.evaluate import Arm, Plan

    arm = Arm(role="candidate", name="reno", controller="reno")
    assert "x6" not in {row.id for row in Plan(candidate=arm).rows}
    homes = population.read("uk-homes-2015")
    (row,) = Plan(candidate=arm, only=("x6",), population=homes).rows
    assert len(row.at("quick")) == 9
    assert [cell.id for cell in row.at("standard")][:9] == [cell.id for cell in row.at("quick")]
    assert "Ofcom" in row.note
    with pytest.raises(InputError, match="without --population"):
        _ = Plan(candidate=arm, only=("x6",)).rows
    assert main(["evaluate", "reno", "--population", "none.toml", "--out", str(tmp_path / "e")]) == 2
    assert capsys.readouterr().err.startswith("ackclock: none.toml")
    assert main(["evaluate", "--false-alarms", "--population", "uk-homes-2015"]) == 2
    assert "--population: found it beside --false-alarms" in capsys.readouterr().err


ONE = """
duration = "2 s"
[network]
bottleneck = { rate = "10 Mbit/s", delay = "20 ms" }
[[flows]]
congestion_control = "cubic"
"""


def test_compare_puts_each_pair_on_a_path_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(ONE)
    Path("b.toml").write_text(ONE.replace("cubic", "reno"))
    Path("made.toml").write_text(FILE)
    command = ["compare", "a.toml", "b.toml", "--population", "made.toml", "--metric", "goodput_bps", "--jobs", "1"]
    assert main([*command, "--seeds", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["population"]["licence"] == "CC0-1.0"
    assert not told["all_seeds_gave_one_run"]
    means = []
    for name in ("a.toml", "b.toml"):
        runs = [
            ackclock.run(path.on(ackclock.load(name)), seed=seed).flows["goodput_bps"][0]
            for seed, path in enumerate(population.read("made.toml").draw(4, seed=1), 1)
        ]
        means.append(sum(runs) / len(runs))
    found = told["metrics"]["goodput_bps"]
    assert [found[arm]["value"] for arm in ("first", "second")] == pytest.approx(means)
    assert found["difference"]["n"] == 4
    assert main([*command, "--until-width", "5%"]) == 2
    assert "--until-width: found it with --population" in capsys.readouterr().err
    assert main(["compare", "population", "population", "--population", "made.toml"]) == 2
    assert "paths of their own" in capsys.readouterr().err


def test_a_queue_that_is_the_question_stays() -> None:
    path = DrawnPath(group="a", rate_bps=12_000_000, rtt_s=0.05, loss=0.0, queue_s=0.1)
    codel = ackclock.load("first").set("network.bottleneck.queue", {"kind": "codel"})
    link = path.on(codel).network.bottleneck
    assert link is not None
    assert (link.queue.kind, link.rate) == ("codel", "12000000 bit/s")


def test_list_says_where_recordings_and_populations_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    from ackclock.formats._recordings import FORMS
    from ackclock.formats._sources import SOURCES

    assert main(["list", "recordings"]) == 0
    out = capsys.readouterr().out
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "paths-of-your-own.md").read_text()
    for name, _, where, forms, licence in SOURCES:
        assert name in out
        assert where in out
        assert licence in out
        assert set(re.findall("[a-z0-9-]+", forms)) - {"and"} <= set(FORMS)
        assert where.removeprefix("https://") in page
    assert main(["list", "populations"]) == 0
    assert "OGL-UK-3.0" in capsys.readouterr().out
