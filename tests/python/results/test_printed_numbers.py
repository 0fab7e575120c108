"""Tests every number on a page or in a terminal table of a simulated run; `printed` defines its source. Kernel
runs: test_linux_printed.py.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from printed import DRAWN, NUMBER, SCENARIO, Page, Truth, agrees, check_table, check_words, terminal_tables

import ackclock
from ackclock import report
from ackclock.cli import main
from ackclock.report.run import page, watched


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda drawn: drawn["controller"])
def test_numbers_of_a_run(drawn, tmp_path, monkeypatch, capsys):
    file = tmp_path / "drawn.toml"
    file.write_text(SCENARIO.format(**drawn), encoding="utf-8")
    run = ackclock.run(watched(ackclock.load(file)))
    truth = Truth(run)
    assert truth.drops(after=False) > 0
    seen = Page(report.render(page(run)))
    text = "".join(seen.text)
    lengths = {f"{len(table) - 1} rows" for table in seen.tables}
    text = re.sub(r"\d+ rows", lambda found: "" if found.group(0) in lengths else found.group(0), text)
    assert check_words(text, truth) > 15
    assert sum(check_table(table, truth) for table in seen.tables) > 60
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["run", str(file)]) == 0
    words, tables = terminal_tables(capsys.readouterr().out)
    assert [table[0][0] for table in tables] == ["flow", "after the warm-up", "link"]
    assert sum(check_table(table, truth) for table in tables) > 40
    assert check_words(words, truth) > 0


def test_a_queue_that_nobody_measured_has_no_largest_length(tmp_path, monkeypatch, capsys):
    """The kernel's queueing disciplines count packets and drops, but not queue lengths: neither mean nor maximum."""
    file = tmp_path / "drawn.toml"
    file.write_text(SCENARIO.format(**DRAWN[0]), encoding="utf-8")
    run = ackclock.run(watched(ackclock.load(file)))
    assert all(
        row["max_packets"] == queue["max_packets"]
        for row, queue in zip(run.rows("links"), run.summary()["queues"], strict=True)
    )
    rows = ackclock.Run.rows

    def unmeasured(self, name):
        blank = {"mean_packets": None, "max_packets": 0} if name == "links" else {}
        return [{**row, **blank} for row in rows(self, name)]

    monkeypatch.setattr(ackclock.Run, "rows", unmeasured)
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["run", str(file)]) == 0
    _, printed = terminal_tables(capsys.readouterr().out)
    drawn = [*printed, *Page(report.render(page(run))).tables]
    links = [table for table in drawn if table[0][0] == "link"]
    assert len(links) == 2
    for head, *body in links:
        assert {line[head.index("largest queue")] for line in body} == {"–"}
    assert {queue["max_packets"] for queue in run.summary()["queues"]} == {None}


def test_a_wrong_number_is_found():
    assert agrees("9.544 Mbit/s", 9_544_400.0)
    assert not agrees("9.544 Mbit/s", 9_545_000.0)
    assert agrees("0.58 %", 8 / 1390)
    assert not agrees("1,390", 1391)
    assert not agrees("–", 0.0)


SWEEP = """
seeds = 4
[scenario]
duration = "1 s"
network = { bottleneck = { rate = "2 Mbit/s", delay = "5 ms", queue = { kind = "drop-tail", limit = "10 packets" } } }
[[scenario.flows]]
start = { kind = "uniform", low = "0 s", high = "200 ms" }
[axes]
"network.bottleneck.delay" = ["5 ms", "9 ms", "15 ms"]
"flows.0.congestion_control" = ["reno", "cubic"]
[names]
"network.bottleneck.delay" = "delay"
"flows.0.congestion_control" = "cc"
"""


def interval(values):
    """Mean, and 95 % interval by Student's t."""
    from scipy import stats  # takes most of a second, spent only in this test's worker

    mean, half = float(np.mean(values)), float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return mean, mean - half, mean + half


def digits(text: str, value: float, most: int = 4) -> bool:
    """Return whether a number is printed with this many significant digits."""
    return math.isclose(
        float(text.replace(",", "").replace("−", "-")), value, rel_tol=0.51 * 10 ** (1 - most), abs_tol=1e-9
    )


def test_numbers_of_a_sweep(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(SWEEP, encoding="utf-8")
    assert main(["sweep", "run", "grid.toml", "--jobs", "1"]) == 0
    assert main(["sweep", "plot", "grid.toml", "--kind", "lines"]) == 0
    capsys.readouterr()
    base = ackclock.Scenario.from_dict(
        {"duration": "1 s", "network": {"bottleneck": {"rate": "2 Mbit/s", "delay": "5 ms", "queue": {"kind": "drop-tail", "limit": "10 packets"}}},
         "flows": [{"start": {"kind": "uniform", "low": "0 s", "high": "200 ms"}}]}
    )  # fmt: skip
    places = [(delay, cc) for delay in ("5 ms", "9 ms", "15 ms") for cc in ("reno", "cubic")]
    cells = [base.set_all({"network.bottleneck.delay": d, "flows.0.congestion_control": c}) for d, c in places]
    runs = ackclock.run_many([cell for cell in cells for _ in range(4)], seeds=[1, 2, 3, 4] * 6)
    got = [[8 * row["bytes_acked"] / (row["stop_s"] - row["start_s"]) / 1e6 for run in runs[4 * i : 4 * i + 4] for row in run.rows("flows")]
           for i in range(6)]  # fmt: skip
    seen = Page(Path("grid.sweep/sweeps/grid/plot.html").read_text(encoding="utf-8"))
    table = next(table for table in seen.tables if table[0][-1] == "95 % interval")
    assert table[0][:2] == ["delay", "cc"]
    for place, values, row in zip(places, got, table[1:], strict=True):
        mean, low, high = interval(values)
        ends = row[4].split(" to ")
        assert tuple(row[:2]) == place
        assert row[2] == "4"
        assert digits(row[3], mean)
        assert digits(ends[0], low)
        assert digits(ends[1], high)
    text = "".join(seen.text)
    assert "6 cells, 24 runs: 24 done." in text
    means = {place: float(np.mean(values)) for place, values in zip(places, got, strict=True)}
    said = re.search(r"Goodput(?:, Mbit/s)?: (.*)", text)
    assert said is not None
    for word in re.findall(
        rf"({NUMBER})(?! of)", re.sub(r"at \d+ ms|of \d+ places|at \d+(?=,| of)", "", said.group(1))
    ):
        assert any(digits(word, mean, 3) for mean in means.values()), (said.group(1), means)


def test_numbers_of_a_comparison(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    network = {"bottleneck": {"rate": "2 Mbit/s", "delay": "5 ms", "loss": {"kind": "bernoulli", "p": "1 %"}}}
    arms = {
        cc: ackclock.Scenario.from_dict({"duration": "2 s", "network": network, "flows": [{"congestion_control": cc}]})
        for cc in ("reno", "bbr")
    }
    for name, scenario in arms.items():
        Path(f"{name}.toml").write_text(scenario.to_toml(), encoding="utf-8")
    assert main(["compare", "reno.toml", "bbr.toml", "--seeds", "5", "--jobs", "1"]) == 0
    (table,) = terminal_tables(capsys.readouterr().out)[1]
    runs = {
        cc: [ackclock.run(scenario, seed=seed).rows("flows")[0] for seed in range(1, 6)]
        for cc, scenario in arms.items()
    }
    known = {
        "goodput_bps": lambda row: 8 * row["bytes_acked"] / (row["stop_s"] - row["start_s"]),
        "rtos": lambda row: row["rtos"],
        "retransmission_share": lambda row: row["retransmissions"] / row["sent_packets"],
        "mean_rtt_s": lambda row: row["mean_rtt_s"],
    }
    assert set(known) < {row[0] for row in table}
    for metric, first, second, difference, ends, _ in table[1:]:
        if metric in known:
            a, b = ([known[metric](row) for row in runs[cc]] for cc in ("reno", "bbr"))
            mean, low, high = interval([x - y for x, y in zip(a, b, strict=True)])
            assert digits(first, float(np.mean(a))), metric
            assert digits(second, float(np.mean(b))), metric
            assert digits(difference, mean), metric
            if np.ptp([x - y for x, y in zip(a, b, strict=True)]):
                assert all(digits(*pair) for pair in zip(ends.split(" to "), (low, high), strict=True)), metric
