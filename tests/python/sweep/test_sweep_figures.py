"""Tests for sweep figures with numbers computed by hand: intervals over seeds, and axes that are never pooled silently."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from dataclasses import replace

import polars as pl
import pytest

from ackclock import Scenario
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.plot import styled
from ackclock.stats import stratified_mean
from ackclock.sweep import Axis, Results, Store, Sweep, Threads, figures, page, run
from ackclock.sweep.look import choose, view

T4 = 2.7764451051977987
"""97.5 % quantile of Student's t with 4 degrees of freedom, from a printed table (2.776)."""

FIVE = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Deviations of five seeds: their sample variance is 2.5."""

NAMES = {
    "network.bottleneck.rate": "delay",
    "network.bottleneck.queue.limit": "mean",
    "network.bottleneck.delay": "share",
}


def grid(*axes: tuple[str, tuple[object, ...]], names: dict[str, str] | None = None) -> Sweep:
    link = {"rate": "10 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    scenario = Scenario.from_dict({"duration": "1 s", "network": {"bottleneck": link}, "flows": [{}]})
    made = tuple(Axis(key=key, values=values, name=(names or {}).get(key, "")) for key, values in axes)
    return Sweep(name="known", scenario=scenario, axes=made, seeds=(1, 2, 3, 4, 5))


def results(sweep: Sweep, value, *, digest=lambda cell, seed: f"{cell}.{seed}") -> Results:
    """Return runs whose goodput is `value(cell, seed)`."""
    rows = [
        {
            "cell": i,
            **cell.keys,
            "seed": seed,
            "digest": digest(i, seed),
            "goodput_bps": float(value(i, seed)),
            "jain": float(value(i, seed)),
            "mean_rtt_s": 0.04 + 0.001 * i,
        }
        for i, cell in enumerate(sweep.cells)
        for seed in sweep.seeds
    ]
    return Results(sweep=sweep, runs=pl.DataFrame(rows, schema_overrides={"cell": pl.UInt32}))


RATES = ("network.bottleneck.rate", ("10 Mbit/s", "20 Mbit/s", "90 Mbit/s"))
LOSS = ("network.bottleneck.loss.p", ("0 %", "1 %", "2 %"))


def lossy(*axes, names=None) -> Sweep:
    base = grid(names=names)
    scenario = base.scenario.set("network.bottleneck.loss", {"kind": "bernoulli", "p": "0 %"})
    made = tuple(Axis(key=key, values=values, name=(names or {}).get(key, "")) for key, values in axes)
    return Sweep(name="known", scenario=scenario, axes=made, seeds=(1, 2, 3, 4, 5))


def test_the_mean_of_cells_has_the_interval_of_the_seeds():
    """Three cells at 10, 50 and 90, five seeds each: the mean is 50, and the spread between cells adds
    no uncertainty.
    """
    seeds = [[1, 2, 3, 4, 5]] * 3
    # seeds that shift all cells equally: the mean over cells has the variance of one cell, 2.5, divided by 5 seeds
    alike = stratified_mean([[m + d for d in FIVE] for m in (10, 50, 90)], seeds)
    assert (alike.value, alike.n) == (50.0, 5)
    assert alike.high - alike.value == pytest.approx(T4 * math.sqrt(2.5 / 5))  # 1.963 different seeds in every cell:
    # the sum of the variances of three means divided by 9, each mean with 4 degrees of freedom
    own = stratified_mean([[m + d for d in FIVE] for m in (10, 50, 90)], [range(5), range(5, 10), range(10, 15)])
    assert own.n == 15
    t12 = 2.1788128296634177
    assert own.high - own.value == pytest.approx(t12 * math.sqrt(3 * (2.5 / 5) / 9))
    # seeds that shift two cells in opposite directions do not change their mean
    against = stratified_mean([list(FIVE), [-d for d in FIVE]], seeds[:2])
    assert (against.low, against.high) == (0.0, 0.0)
    assert stratified_mean([[1.0, 2.0], [5.0]], [[1, 2], [1]]).high == math.inf, "one observation has no spread"
    assert math.isnan(stratified_mean([[1.0, 2.0], []], [[1, 2], []]).value), "nothing is known of the second"


def test_points_are_means_over_the_seeds_of_one_cell():
    """Three rates, three losses, five seeds: nine points, each with an interval over its five seeds."""
    found = results(
        lossy(RATES, LOSS), lambda cell, seed: 1e6 * (10 * (cell // 3 + 1) - 2 * (cell % 3)) + 1e5 * FIVE[seed - 1]
    )
    (figure,) = figures.figures(found, normalise=False, kinds=["lines"])
    table = figure.data["lines"]
    assert table.height == 9
    assert table["mean"].to_list() == pytest.approx([10, 8, 6, 20, 18, 16, 30, 28, 26])
    half = T4 * 0.1 * math.sqrt(2.5 / 5)  # 0.196 Mbit/s
    assert (table["high"] - table["mean"]).to_list() == pytest.approx([half] * 9)
    assert (table["mean"] - table["low"]).to_list() == pytest.approx([half] * 9)
    assert set(table["n"]) == {5}
    # a single pooled band would have shown the spread over loss rates, 2 Mbit/s, as spread over seeds
    assert half < 0.2


def test_an_axis_without_a_place_is_told_never_pooled():
    buffers = ("network.bottleneck.queue.limit", ("1 BDP", "2 BDP", "3 BDP", "4 BDP", "5 BDP"))
    delays = ("network.bottleneck.delay", ("10 ms", "20 ms", "30 ms"))
    found = results(lossy(RATES, LOSS, buffers, delays), lambda cell, seed: 1e6 + cell)
    (figure,) = figures.figures(
        found, normalise=False, kinds=["lines"], x="network.bottleneck.rate", by="network.bottleneck.loss.p"
    )
    # five buffers make panels of a single curve; with three delays there would be fifteen
    table = figure.data["lines"]
    assert table["network.bottleneck.delay"].n_unique() == 3
    assert "(bottleneck queue limit 1 BDP)" not in figure.title or table.height == 27
    look = choose(view(found, "goodput_bps"), x="network.bottleneck.rate", by="network.bottleneck.loss.p")
    assert dict(look.fixed) == {"axis.2": "1 BDP"}
    assert figure.title.endswith("(queue limit 1 BDP)")
    assert "Only queue limit 1 BDP is shown; --where, --panel and --average choose otherwise." in figure.caption
    # chosen by the user: another value, one panel per value, or a mean over values
    other = figures.figures(found, normalise=False, kinds=["lines"], where=["network.bottleneck.queue.limit=3 BDP"])[0]
    assert "queue limit 3 BDP" in other.title
    with pytest.raises(InputError, match=r'--where network.bottleneck.queue.limit: found "9 BDP"; allowed: 1 BDP'):
        figures.figures(found, where=["network.bottleneck.queue.limit=9 BDP"])
    with pytest.raises(InputError, match='--where: found "nothing"; allowed: AXIS=VALUE'):
        figures.figures(found, where=["nothing"])
    with pytest.raises(
        InputError, match=r"--average network.bottleneck.delay: found goodput_bps, in bit/s, whose mean"
    ):
        figures.figures(found, normalise=False, average=["network.bottleneck.delay"])
    with pytest.raises(InputError, match=r"--panel: found axes that make 45 panels; allowed: at most 24"):
        figures.figures(
            found, panel=["network.bottleneck.rate", "network.bottleneck.delay", "network.bottleneck.queue.limit"]
        )
    with pytest.raises(InputError, match=r"--by: found .*; allowed: another axis than that of --x"):
        figures.figures(found, x="network.bottleneck.rate", by="network.bottleneck.rate")


def test_means_over_an_axis_only_by_name_and_of_shares():
    """Three rates and five seeds yield link shares of 0.9, 0.8 and 0.7, plus 0.01 times the seed's deviation."""
    capacity = [r * 1e6 * 1448 / 1500 for r in (10, 20, 90)]
    found = results(grid(RATES), lambda cell, seed: capacity[cell] * (0.9 - 0.1 * cell + 0.01 * FIVE[seed - 1]))
    (figure,) = figures.figures(found, kinds=["lines"], normalise=True)
    table = figure.data["lines"]
    assert table["mean"].to_list() == pytest.approx([0.9, 0.8, 0.7])
    assert (
        figure.title
        == "Goodput as share of the bottleneck falls from 0.9 to 0.7 as bottleneck rate goes from 10 to 90 Mbit/s"
    )
    controllers = ("flows.0.congestion_control", ("reno", "cubic"))
    two = results(
        grid(controllers, RATES),
        lambda cell, seed: capacity[cell % 3] * ((0.9 if cell < 3 else 0.8) - 0.1 * (cell % 3) + 0.01 * FIVE[seed - 1]),
    )
    (bars,) = figures.figures(two, kinds=["bars"], normalise=True, average=["network.bottleneck.rate"])
    table = bars.data["bars"]
    assert table["mean"].to_list() == pytest.approx([0.8, 0.7])
    assert (table["high"] - table["mean"]).to_list() == pytest.approx([T4 * 0.01 * math.sqrt(2.5 / 5)] * 2)
    assert bars.title == "Goodput as share of the bottleneck: reno 0.8, cubic 0.7"
    assert "means over seeds and, with equal weights, over bottleneck rate" in bars.caption
    (times,) = figures.figures(found, kinds=["lines"], metric="mean_rtt_s", normalise=True)
    assert times.data["lines"]["mean"].to_list() == pytest.approx([2.0, 2.05, 2.1])  # of a base RTT of 20 ms
    assert figures.figures(found, kinds=["lines"], metric="jain", normalise=True)[0].data["lines"].height == 3


def test_differences_are_taken_seed_by_seed():
    """CUBIC's value exceeds Reno's by one with every seed, although the seeds themselves differ widely."""
    controllers = ("flows.0.congestion_control", ("reno", "cubic"))
    found = results(grid(controllers, RATES), lambda cell, seed: 1e6 * (100 * seed + (cell >= 3) * (1 + cell % 3)))
    (figure,) = figures.figures(found, normalise=False, kinds=["lines"], against="flows.0.congestion_control=reno")
    table = figure.data["lines"]
    assert table["mean"].to_list() == table["low"].to_list() == table["high"].to_list() == [1.0, 2.0, 3.0]
    assert "minus that of congestion control reno" in figure.title
    assert figure.title.endswith("(congestion control cubic)")


def test_axes_of_any_name_are_drawn(tmp_path):
    for names in (
        NAMES,
        dict(zip(NAMES, ("low", "high", "n"), strict=True)),
        dict(zip(NAMES, ("x", "flow", "goodput_bps"), strict=True)),
    ):
        axes = [
            (key, values)
            for key, values in zip(
                NAMES, (("10 Mbit/s", "20 Mbit/s"), ("1 BDP", "2 BDP"), ("5 ms", "9 ms")), strict=True
            )
        ]
        sweep = grid(*axes, names=names)
        found = results(sweep, lambda cell, seed: 1e6 * (cell + 1) + 1e5 * FIVE[seed - 1])
        assert found.cells("goodput_bps")["mean"].to_list() == pytest.approx([1e6 * (i + 1) for i in range(8)])
        drawn = figures.figures(
            found,
            kinds=["lines", "bars", "heat-map", "cdf", "pareto"],
            x=names["network.bottleneck.rate"],
            normalise=False,
        )
        assert [f.name for f in drawn] == ["lines-goodput-bps", "heat-map-goodput-bps", "cdf-goodput-bps", "pareto"]
        for figure in drawn:
            for table in figure.data.values():
                assert table.height
            assert names["network.bottleneck.queue.limit"] in figure.caption + figure.title + str(
                [t.columns for t in figure.data.values()]
            )
        drawn[0].render()
        with Store(tmp_path / "-".join(names.values()), write=True) as store:
            page.page(found, store, [], metric="goodput_bps")


def test_axes_that_step_together_are_one():
    sweep = grid(RATES, ("network.bottleneck.delay", ("5 ms", "6 ms", "7 ms")))
    sweep = Sweep(
        name="a", scenario=sweep.scenario, axes=sweep.axes, zip=(tuple(a.key for a in sweep.axes),), seeds=sweep.seeds
    )
    found = results(sweep, lambda cell, seed: 1e6 * (cell + 1) + seed)
    (figure,) = figures.figures(found, normalise=False, kinds=["lines"])
    assert figure.data["lines"].height == 3
    assert not choose(view(found, "goodput_bps")).panels


def test_figures_for_a_paper_are_as_wide_as_asked_and_hold_their_fonts(tmp_path):
    found = results(grid(RATES), lambda cell, seed: 1e6 * (cell + 1) + 1e5 * FIVE[seed - 1])
    style = tmp_path / "own.mplstyle"
    style.write_text(
        "axes.prop_cycle: cycler('color', ['123456'])\nlines.linewidth: 4\nbackend: qtagg\n", encoding="utf-8"
    )
    (figure,) = figures.figures(found, kinds=["lines"], width="single", style=style)
    files = figure.write(tmp_path)
    assert b"#123456" in files["svg"]
    assert b"stroke-width: 4" in files["svg"]
    assert b"/MediaBox [ 0 0 237.6 " in files["pdf"], "3.3 inches"
    if shutil.which("pdffonts"):
        told = subprocess.run(
            ["pdffonts", tmp_path / f"{figure.name}.pdf"], capture_output=True, text=True, check=True
        ).stdout
        rows = told.splitlines()[2:]
        assert rows
        assert all(row.split()[-5:-2] == ["yes", "yes", "yes"] for row in rows), (
            told
        )  # embedded, a subset, with Unicode
    style.write_text("lines.linewidht: 4\n", encoding="utf-8")
    with pytest.raises(
        InputError,
        match=r'--style .*own\.mplstyle: found "lines\.linewidht"; did you mean "lines\.linewidth"\?; allowed: ',
    ):
        figures.figures(found, style=style)
    with pytest.raises(InputError, match=r"--style .*: found an unreadable file \(no such file or directory\)"):
        figures.figures(found, style=tmp_path / "none")
    with pytest.raises(InputError, match='--width: found "wide"; allowed: single, double'):
        figures.figures(found, width="wide")


def test_figures_say_of_which_time_their_numbers_are(tmp_path):
    """Goodput covers the whole run, losses only the time after the warm-up; throughput against delay uses the time
    after the warm-up for both.
    """
    base = grid().scenario.set_all({"record.warm_up": "500 ms", "record.performance": True})
    cc = Axis(key="flows.0.congestion_control", values=("reno", "cubic"))
    sweep = Sweep(name="warm", scenario=base, axes=(cc,), seeds=(1,))
    found, _ = run(sweep, tmp_path / "s", Threads(1))
    drawn = {figure.name: figure for figure in figures.figures(found)}
    assert drawn["bars-goodput-bps"].caption.startswith(
        "Goodput, over the whole run, the warm-up included, by congestion control"
    )
    assert (
        "loss share, after the warm-up, by"
        in figures.figures(found, metric="loss_share", kinds=["bars"])[0].caption.lower()
    )
    assert "goodput of all flows, after the warm-up, by" in (
        figures.figures(found, metric="run.goodput_bps", kinds=["bars"])[0].caption.lower()
    )
    assert ", both after the warm-up, means" in drawn["pareto"].caption
    after = found.performance.filter(pl.col("of") == "run")["goodput_bps"] / 1e6
    assert drawn["pareto"].data["pareto"]["goodput, Mbit/s"].to_list() == pytest.approx(after.to_list())
    assert after.to_list() != pytest.approx((found.runs["goodput_bps"] / 1e6).to_list(), rel=0.01)
    with Store(tmp_path / "s", write=False) as store:
        text = str(page.page(found, store, [], metric="goodput_bps").sections)
    assert "Mean of goodput, Mbit/s over the whole run, the warm-up included, with its" in text
    assert "warm-up" not in figures.figures(results(grid(RATES), lambda cell, seed: seed))[0].caption


def test_figures_say_over_which_time_flows_that_come_and_go_are_counted():
    late = [{}, {"start": "1 s"}]
    sweep = grid(RATES)
    sweep = replace(sweep, scenario=sweep.scenario.set_all({"duration": "2 s", "flows": late}))
    told = figures.figures(results(sweep, lambda cell, seed: seed))[0].caption
    assert told.startswith("Goodput as share of the bottleneck, from the first start to the last end, against")
    assert "last end" not in figures.figures(results(grid(RATES), lambda cell, seed: seed))[0].caption


def test_goodput_of_runs_that_come_and_go_is_at_most_what_the_link_carries(tmp_path):
    """Three flows, two of which end early. All flows, the run after the warm-up, and a group are read back from the sweep."""
    network = {"bottleneck": {"rate": "2 Mbit/s", "delay": "5 ms", "queue": {"kind": "drop-tail", "limit": "2 BDP"}}}
    start = {"kind": "uniform", "low": "200 ms", "high": "1 s"}
    data = {"kind": "transfer", "bytes": "100 KB"}
    flows = [{"name": "ours", "count": 2, "start": start, "workload": data}, {"name": "theirs", "start": start}]
    base = Scenario.from_dict({"duration": "4 s", "network": network, "flows": flows})
    rates = Axis(key="network.bottleneck.rate", values=("2 Mbit/s", "8 Mbit/s"))
    found, _ = run(Sweep(name="late", scenario=base, axes=(rates,), seeds=(1, 2, 3)), tmp_path / "s", Threads(1))
    carries = (found.runs["cell"] * 3 + 1) * (2e6 * 1448 / 1500)
    summed = found.flows.group_by("cell", "seed", maintain_order=True).agg(pl.col("goodput_bps").sum())["goodput_bps"]
    assert (summed / carries).max() > 1.1  # rates measured over different time intervals
    assert (found.runs["goodput_bps"] / carries).max() <= 1.0005
    for metric in ("goodput_bps", "run.goodput_bps", "group.ours.goodput_bps"):
        shares = view(found, metric).normalised([metric]).runs[metric]
        assert shares.max() <= 1, metric
        assert shares.min() > (0.8 if "group" not in metric else 0.05), metric


def test_names_of_points_hit_nothing():
    from ackclock.plot import new
    from ackclock.plot.grid import name_points

    figure, ax = new(4, 3)
    points = [
        (1.0, 1.0, "first"),
        (1.0, 1.001, "second"),
        (1.001, 1.0, "third"),
        (2.0, 2.0, "alone"),
        (1.5, 1.5, "x" * 200),
    ]
    ax.plot([x for x, _, _ in points], [y for _, y, _ in points], "o")
    name_points(figure, {ax: points})
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert "alone" in [text.get_text() for text in ax.texts]
    assert "x" * 200 not in [text.get_text() for text in ax.texts], "a name longer than the panel"
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    dots = ax.transData.transform([(x, y) for x, y, _ in points])
    assert not any(box.contains(*dot) for box in boxes for dot in dots)


def test_titles_of_panels_break_between_axes():
    sweep = lossy(RATES, ("network.bottleneck.loss", ({"kind": "none"}, {"kind": "bernoulli", "p": "0.1 %"})))
    seen = view(results(sweep, lambda cell, seed: cell + seed), "goodput_bps")
    look = choose(seen, panel=["network.bottleneck.rate", "network.bottleneck.loss"])
    title = figures._panel_title(seen, look, ("10 Mbit/s", "bernoulli, p 0.1 %"), 3.2)
    assert title.splitlines() == ["bottleneck rate 10 Mbit/s,", "bottleneck loss bernoulli, p 0.1 %"]


def test_seeds_that_do_not_matter_give_no_interval():
    found = results(grid(RATES), lambda cell, seed: 1e6 * (cell + 1), digest=lambda cell, seed: str(cell))
    table = figures.figures(found, normalise=False, kinds=["lines"])[0].data["lines"]
    assert table["n"].to_list() == [1, 1, 1]
    assert table["high"].to_list() == [math.inf] * 3


def test_options_of_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.toml").write_text(
        'seeds = 2\n[scenario]\nduration = "1 s"\n'
        'network = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms", queue = { kind = "drop-tail", limit = "1 BDP" } } }\n'
        '[[scenario.flows]]\nstart = { kind = "uniform", low = "0 s", high = "100 ms" }\n'
        '[axes]\n"network.bottleneck.delay" = ["5 ms", "9 ms"]\n"flows.0.congestion_control" = ["reno", "cubic"]\n'
        '[names]\n"network.bottleneck.delay" = "delay"\n"flows.0.congestion_control" = "cc"\n',
        encoding="utf-8",
    )
    assert main(["sweep", "run", "g.toml"]) == 0
    plot = ["sweep", "plot", "g.toml", "--kind", "lines"]
    assert main([*plot, "--normalise", "--average", "cc", "--width", "double"]) == 0
    place = tmp_path / "g.sweep" / "sweeps" / "g" / "figures" / "lines-goodput-bps.csv"
    normalised = place.with_name("lines-goodput-bps-normalised.csv").read_text(encoding="utf-8")
    assert normalised.startswith('"delay, ms",n,mean,low,high\n') or "delay" in normalised
    assert not place.exists(), "other numbers have another name"
    assert not list(place.parent.glob("*.pdf"))
    assert main([*plot, "--format", "pdf"]) == 0
    assert place.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert main([*plot, "--where", "cc=cubic"]) == 0
    assert not place.with_suffix(".pdf").exists(), "it would show another selection than the SVG beside it"
    assert place.with_name("lines-goodput-bps-normalised.svg").exists()
    capsys.readouterr()
    assert main([*plot, "--format", "gif"]) == 2
    assert '--format: found "gif"; allowed: pdf, png, svg' in capsys.readouterr().err
    assert main([*plot, "--against", "cc=reno", "--panel", "delay", "--where", "cc=cubic"]) == 2
    assert "found axes that do not make lines" in capsys.readouterr().err


def test_a_failed_run_is_named_by_its_cell_and_can_be_repeated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "class Late:\n"
        "    def on_ack(self, window, ack):\n"
        "        if ack.now > 1: raise ValueError('too late')\n"
        "    def on_congestion_event(self, window, in_flight):\n"
        "        return window.cwnd / 2\n",
        encoding="utf-8",
    )
    (tmp_path / "g.toml").write_text(
        '[scenario]\nduration = "2 s"\nnetwork = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms" } }\n'
        'flows = [{ congestion_control = "mine.py:Late" }]\n'
        '[axes]\nduration = ["500 ms", "2 s"]\n"network.bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s"]\n'
        '[names]\n"network.bottleneck.rate" = "rate"\n',
        encoding="utf-8",
    )
    assert main(["sweep", "run", "g.toml", "--own-code", "--jobs", "1"]) == 1
    capsys.readouterr()
    assert main(["sweep", "status", "g.toml"]) == 0
    said = capsys.readouterr().out
    assert "failed: cell 3 (duration 2 s, rate 2 Mbit/s), seed 1: " in said
    (command,) = re.findall(r"`(.*)` repeats the first that failed:", said)
    assert main(command.split()[1:]) == 2, "it fails again"
    assert "ValueError: too late" in capsys.readouterr().err
    assert main(["sweep", "rerun", "g.toml", "--cell", "0", "--seed", "1", "--own-code"]) == 0
    assert "cell 0: duration 500 ms, rate 1 Mbit/s" in capsys.readouterr().out
    assert main(["sweep", "rerun", "g.toml", "--cell", "9", "--own-code"]) == 2


def test_exported_tables_have_numbers_beside_the_axes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.toml").write_text(
        '[scenario]\nduration = "1 s"\nnetwork = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms", '
        'loss = { kind = "bernoulli", p = "1 %" } } }\nflows = [{ count = 2 }]\n'
        '[axes]\n"network.bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s"]\n"network.bottleneck.loss.p" = ["0 %", "2 %"]\n'
        '[names]\n"network.bottleneck.rate" = "rate"\n"network.bottleneck.loss.p" = "loss"\n',
        encoding="utf-8",
    )
    assert main(["sweep", "run", "g.toml", "--jobs", "1"]) == 0
    assert main(["sweep", "export", "g.toml", "--csv", "runs.csv", "--parquet", "runs.parquet"]) == 0
    table = pl.read_csv("runs.csv")
    assert table.columns[:5] == ["cell", "rate", "rate_bps", "loss", "loss_value"]
    assert table.select("rate_bps", "loss_value").rows() == [(1e6, 0), (1e6, 0.02), (2e6, 0), (2e6, 0.02)]
    assert pl.read_parquet("runs.parquet").columns == table.columns
    assert main(["sweep", "export", "g.toml", "--parquet", "flows.parquet", "--of", "flows"]) == 0
    assert "written: flows.parquet (8 rows)" in capsys.readouterr().out
    assert pl.read_parquet("flows.parquet").select("flow", "rate_bps").height == 8
    assert main(["sweep", "export", "g.toml", "--csv", "x.csv", "--of", "packets"]) == 2
    assert '--of: found "packets"; allowed: runs, flows, groups' in capsys.readouterr().err


def test_a_notebook_shows_the_figure_and_the_cells():
    found = results(grid(RATES), lambda cell, seed: 1e6 * (cell + 1) + 1e5 * FIVE[seed - 1])
    html = found._repr_html_()
    assert html.count("<svg") == 1
    assert "Goodput as share of the bottleneck falls from" in html
    assert "<td" in html
    assert "<svg" not in results(grid(), lambda cell, seed: 1.0)._repr_html_(), (
        "without an axis there is nothing to draw"
    )


def test_panels_of_two_axes_stand_in_rows_and_columns():
    """One row per value of one axis, one column per value of the other, even if a neighbour is missing."""
    found = results(
        grid(
            RATES,
            ("network.bottleneck.delay", ("5 ms", "6 ms")),
            ("network.bottleneck.queue.limit", ("1 BDP", "2 BDP", "3 BDP")),
        ),
        lambda cell, seed: 1e6 * (cell + 1) + seed,
    )
    asked = {"x": "network.bottleneck.rate", "kinds": ["lines"]}
    rows, columns = "network.bottleneck.delay", "network.bottleneck.queue.limit"
    (figure,) = figures.figures(found, row=rows, column=columns, **asked)
    with styled():
        axes = figure.draw().axes
    titles = [ax.get_title(loc="left").replace("\n", " ") for ax in axes if ax.get_visible()]
    assert [("5 ms" in title, "6 ms" in title) for title in titles] == [(True, False)] * 3 + [(False, True)] * 3
    assert [title.split()[-2] for title in titles] == ["1", "2", "3"] * 2
    shape = axes[0].get_gridspec()
    assert (shape.nrows, shape.ncols) == (2, 3)
    with pytest.raises(InputError, match=r"--column: found .*; allowed: another axis than that of --row"):
        figures.figures(found, row=rows, column=rows, **asked)
