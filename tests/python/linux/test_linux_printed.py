"""Tests that every number on a page or in a terminal table of a kernel run is in that run's tables, as for the simulator."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from printed import DRAWN, SCENARIO, Page, Truth, check_table, check_words, joint, terminal_tables

import ackclock
from ackclock import Run, linux, metrics
from ackclock.cli import main
from ackclock.diff._compare import both


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda drawn: drawn["controller"])
def test_shares_and_windows_of_time_are_those_of_the_tables(
    kernel: linux.Kernel,
    drawn: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Numbers on the terminal and on the page, checked against the written folder."""
    file, folder, made = (tmp_path / name for name in ("drawn.toml", "run", "run.html"))
    file.write_text(SCENARIO.format(**drawn), encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "160")
    command = [
        "run",
        str(file),
        "--backend",
        "linux",
        "--network",
        "relay",
        "--out",
        str(folder),
        "--report",
        str(made),
    ]
    assert main(command) == 0
    words, tables = terminal_tables(capsys.readouterr().out)
    run = Run.read(folder)
    truth = Truth(run, partial(linux.run, network=run.provenance["network"]))
    assert truth.drops(after=False) > 0
    assert [table[0][0] for table in tables] == ["flow", "after the warm-up", "link"]
    assert sum(check_table(table, truth) for table in tables) > 40
    assert check_words(re.sub(r"written: .*", "", words), truth) > 0
    seen = Page(made.read_text(encoding="utf-8"))
    lengths = {f"{len(table) - 1} rows" for table in seen.tables}
    text = re.sub(r"\d+ rows", lambda f: "" if f.group(0) in lengths else f.group(0), "".join(seen.text))
    assert check_words(text, truth) > 10
    assert sum(check_table(table, truth) for table in seen.tables) > 60


@pytest.mark.parametrize(("seed", "sign"), [(3, "-"), (5, "+")])
def test_signs_of_a_difference_are_those_of_simulator_minus_kernel(
    kernel: linux.Kernel,
    seed: int,
    sign: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both sides draw their own losses, so with one of the seeds each side exceeds the other in everything."""
    monkeypatch.setenv("COLUMNS", "160")
    file = tmp_path / "drawn.toml"
    file.write_text(SCENARIO.format(**{**DRAWN[2], "duration": "2 s", "controller": "cubic"}), encoding="utf-8")
    assert main(["diff", str(file), "--network", "qdisc", "--seed", str(seed)]) == 0
    (table,) = terminal_tables(capsys.readouterr().out)[1]
    assert table[0] == ["quantity", "simulator", "kernel", "simulator minus kernel"]
    mine, base = (run.rows("flows")[0] for run in both(ackclock.load(file), seed=seed, network="qdisc"))
    known = {
        "goodput, Mbit/s": lambda row: 8e-6 * row["bytes_acked"] / (row["stop_s"] - row["start_s"]),
        "segments sent": lambda row: row["sent_packets"],
        "retransmissions": lambda row: row["retransmissions"],
    }
    found = 0
    for quantity, first, second, difference in table[1:]:
        if quantity not in known:
            continue
        a, b = known[quantity](mine), known[quantity](base)
        assert tuple(float(text.replace(",", "")) for text in (first, second)) == pytest.approx((a, b), rel=1e-3), (
            quantity
        )
        assert float(difference.removesuffix(" %")) == pytest.approx(100 * (a - b) / b, abs=0.011), quantity
        assert difference[0] == sign, quantity
        found += 1
    assert found == len(known)


@pytest.mark.parametrize("warm_up", ["0 s", "1500 ms"])
def test_goodput_of_flows_that_come_and_go_is_of_one_window(kernel: linux.Kernel, warm_up: str) -> None:
    """Their rates add up to more than the link carries."""
    bottleneck = {"rate": "10 Mbit/s", "delay": "10 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    flows = [
        {"name": "early", "workload": {"kind": "transfer", "bytes": "1 MB"}},
        {"name": "late", "start": "1 s", "count": 2, "stop": "3 s"},
    ]
    record = {"performance": True, "warm_up": warm_up}
    made = {"duration": "4 s", "network": {"bottleneck": bottleneck}, "flows": flows, "record": record}
    scenario = ackclock.Scenario.from_dict(made)
    run = linux.run(scenario, network="relay")
    warm_s = scenario.record.engine()["warm_up_ns"] / 1e9
    joined = [row for row in run.rows("performance") if row["of"] != "flow"]
    assert [row["of"] for row in joined] == ["group", "group", "run"]
    for row in joined:
        bits, span = joint(run, row["group"], since_s=warm_s)
        assert row["goodput_bps"] == (pytest.approx(bits / span, rel=1e-9) if span else None)
    carries = metrics.capacity_bps(scenario)
    assert joined[-1]["goodput_bps"] < 1.03 * carries
    if warm_s == 0:
        assert sum(row["goodput_bps"] for row in run.rows("flows")) > 1.2 * carries


@pytest.mark.parametrize("asked", ["--report", "--plot"])
def test_a_page_or_figure_leaves_the_network_and_the_numbers_as_they_are(
    kernel: linux.Kernel, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a page records drops, which the kernel's disciplines cannot report, so the run used the simulator's links."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "lossy.toml"
    text = 'duration = "2 s"\nnetwork.bottleneck = { rate = "10 Mbit/s", delay = "10 ms", loss = { kind = "bernoulli", p = "1 %" } }\n[[flows]]\n'
    file.write_text(text, encoding="utf-8")
    made = {"--report": "made.html", "--plot": "cwnd.png"}[asked]
    for folder, more in (("bare", []), ("with", [asked, made])):
        assert main(["run", str(file), "--backend", "linux", "--out", folder, *more]) == 0
    bare, watched = Run.read("bare"), Run.read("with")
    assert bare.provenance["network"] == watched.provenance["network"] == "qdisc"
    assert bare.rows("flows")[0]["retransmissions"] > 0
    for key in ("goodput_bps", "retransmissions", "packets_sent", "bytes_acked"):
        assert [row.get(key) for row in bare.rows("flows")] == [row.get(key) for row in watched.rows("flows")]
