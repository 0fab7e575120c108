"""Tests for the report and the figures of a user's own run."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ackclock
from ackclock import Run, report
from ackclock.cli import main
from ackclock.errors import InputError
from ackclock.plot import columns, panels
from ackclock.plot.style import new, styled
from ackclock.report import packed
from ackclock.report.run import page, watched

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def made(name: str, **changes: object) -> Run:
    return changed(name, **changes) if changes else shipped(name)


@cache
def shipped(name: str) -> Run:
    return changed(name)


def changed(name: str, **changes: object) -> Run:
    scenario = ackclock.load(SCENARIOS / f"{name}.toml").set("duration", "6 s")
    for key, value in changes.items():
        scenario = scenario.set(key.replace("__", "."), value)
    return ackclock.run(watched(scenario))


@pytest.mark.parametrize(
    "name",
    ["first", "dumbbell-10", "wishbone-4", "transactions", "fetch-lossy", "video", "voice-beside-bulk", "pcc-shallow"],
)
def test_every_kind_of_traffic_has_its_page(name):
    run = made(name)
    html = report.render(page(run, name=f"{name}.toml"))
    assert run.digest in html
    assert len(html) < 2_000_000
    figures = set(re.findall(r'id="figure-([\w-]+)"', html))
    assert {"goodput", "queue"} <= figures
    if name in ("first", "wishbone-4"):
        assert {"cwnd", "rtt", "in_flight", "sequence-0"} <= figures


def test_a_report_changes_nothing_in_the_run():
    scenario = ackclock.load(SCENARIOS / "dumbbell-10.toml").set("duration", "6 s")
    assert ackclock.run(watched(scenario)).digest == ackclock.run(scenario).digest


def test_a_minute_of_one_flow_is_below_two_megabytes():
    run = ackclock.run(watched(ackclock.load(SCENARIOS / "reno-10m.toml")))
    assert len(report.render(page(run)).encode()) < 2_000_000


def test_a_hundred_flows_are_drawn_as_groups():
    scenario = ackclock.load(SCENARIOS / "dumbbell-10.toml").set("duration", "4 s")
    for group in (0, 1):
        scenario = scenario.set(f"flows.{group}.stagger", "10 ms").set(f"flows.{group}.count", 50)
    scenario = scenario.set("flows.0.name", "fifty of ours")
    run = ackclock.run(watched(scenario))
    goodput = next(panel for panel in panels.panels(run) if panel.name == "goodput")
    assert [curve.look.label for curve in goodput.curves] == ["50 x fifty of ours", "50 x reno"]
    assert all(curve.low is not None and (curve.low <= curve.y).all() for curve in goodput.curves)


def test_names_of_groups_cannot_carry_markup_into_the_page():
    run = made("first", flows__0__name="<script>alert(1)</script>")
    html = report.render(page(run))
    assert "<script>alert" not in html
    assert "<script>alert" not in packed.unpack(re.search(r'id="data-cwnd">([^<]+)<', html).group(1))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000), st.integers(8, 200))
def test_a_thinned_curve_keeps_its_extremes_and_its_ends(values, most):
    t, y = np.arange(len(values), dtype=float), np.array(values)
    thin_t, thin_y = panels.extremes(t, y, most)
    assert len(thin_t) <= max(most, 4) + 4
    assert (thin_y.min(), thin_y.max()) == (y.min(), y.max())
    assert (thin_t[0], thin_t[-1]) == (t[0], t[-1])
    assert (y[thin_t.astype(int)] == thin_y).all()


@given(st.text(max_size=400))
def test_what_is_packed_comes_back(text):
    letters = packed.pack(text)
    assert packed.unpack(letters) == text
    assert not set(letters) & set("<&")


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    run = made("fetch-lossy")
    again = Run.read(run.write(tmp_path / "run"))
    assert (again.digest, again.seed, again.scenario) == (run.digest, run.seed, run.scenario)
    for name in run.tables:
        assert getattr(again, name).equals(getattr(run, name)) or not getattr(run, name).height


def test_reading_what_is_no_run_says_so(tmp_path):
    with pytest.raises(InputError, match="found no run"):
        Run.read(tmp_path)
    folder = made("first").write(tmp_path / "run")
    (folder / "flows.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(InputError, match=r"flows\.parquet: found no table that can be read"):
        Run.read(folder)


@pytest.mark.parametrize(
    ("wanted", "width"),
    [
        ("cwnd.png", "single"),
        ("rtt.pdf", "double"),
        ("goodput.svg", "single"),
        ("queue.png", "double"),
        ("flows.goodput_bps=a.png", "single"),
        ("samples.in_flight=b.svg", "double"),
        ("acks.pipe=c.png", "single"),
    ],
)
def test_any_column_becomes_a_figure(tmp_path, monkeypatch, wanted, width):
    monkeypatch.chdir(tmp_path)
    file = columns.write(made("wishbone-4"), wanted, width=width)
    assert file.stat().st_size > 4000


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("cwnd", r'did you mean "cwnd\.png"\?; allowed: NAME\.png'),
        ("nothing.png", "allowed: NAME.png or TABLE.COLUMN=FILE"),
        ("flows.colour=a.png", 'found "colour"; allowed: flow, group'),
        ("chunks.stall_s=a.png", "found no rows of chunks in this run; it has flows"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_one_line(tmp_path, monkeypatch, wanted, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        columns.write(made("first"), wanted)


def test_the_command_writes_report_and_figures_and_draws_them_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = str(SCENARIOS / "first.toml")
    assert main(["run", first, "--set=duration=5 s", "--out", "run", "--report", "a.html", "--plot", "cwnd.png"]) == 0
    assert main(["report", "run", "--report", "b.html", "--plot", "cwnd.pdf", "--plot-width", "single"]) == 0
    assert {"a.html", "b.html", "cwnd.png", "cwnd.pdf"} <= {path.name for path in tmp_path.iterdir()}
    assert "0 cubic" in capsys.readouterr().out
    assert main(["report", "run"]) == 2
    assert main(["report", "nowhere", "--report", "c.html"]) == 2
    assert main(["run", first, "--plot", "cwnd.png", "--plot-width", "wide"]) == 2
    assert main(["run", first, "--report", "no/such/folder.html"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_rows_that_are_events_are_drawn_as_distributions(tmp_path):
    """The figure shows the completion times of a flow's transactions, one line per initial window."""
    run = ackclock.run(ackclock.load(SCENARIOS / "transactions.toml").set("duration", "10 s"))
    with styled():
        _, ax = new(7.2, 3.2)
        columns._draw_column(ax, run, "transactions", "total_s")
    assert ax.get_ylabel() == "share of transactions"
    done = run.transactions.drop_nulls("total_s")
    medians = dict(done.group_by("initial_window").agg(pl.col("total_s").median()).iter_rows())
    drawn = {line.get_label(): line.get_xydata() for line in ax.lines}
    assert set(drawn) == {"cubic, IW 3", "cubic, IW 10"}
    for segments, median in medians.items():
        steps = drawn[f"cubic, IW {segments}"]
        assert abs(steps[steps[:, 1] >= 0.5][0][0] - median) < 0.01
    assert columns.write(run, f"transactions.total_s={tmp_path / 'x.pdf'}").stat().st_size > 1000


WARM = """
duration = "12 s"
record = { warm_up = "4 s" }
network = { bottleneck = { rate = "10 Mbit/s", delay = "20 ms", queue = { kind = "drop-tail", limit = "1 BDP" } } }
flows = [{ count = 2 }]
"""


def text_of(html: str) -> str:
    """Return a page's visible text."""
    import html as markup

    plain = re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", markup.unescape(re.sub(r"<[^>]+>", " ", plain)))


def test_numbers_of_a_run_with_a_warm_up_add_up_on_page_and_terminal(tmp_path, capsys):
    """Drops over the whole run equal the flows' retransmissions; numbers that exclude the warm-up are labelled so."""
    (tmp_path / "warm.toml").write_text(WARM, encoding="utf-8")
    scenario = ackclock.load(tmp_path / "warm.toml")
    run = ackclock.run(watched(scenario))
    dropped, again = run.drops.height, int(run.flows["retransmissions"].sum())
    after = run.drops.filter(pl.col("t_s") >= 4).height
    assert dropped == again > after > 0
    told = text_of(report.render(page(run)))
    assert f"The network dropped {dropped:,} packets, {after:,} of them after the warm-up of 4 s." in told
    assert f"begin at the end of the warm-up, 4 s; {dropped - after:,} packets were dropped before." in told
    assert "Of the whole run, the warm-up included." in told
    links = run.links.filter(pl.col("name") == "bottleneck.forward").row(0, named=True)
    assert (links["dropped_queue"], links["dropped_before"]) == (after, dropped - after)
    row = re.search(r"bottleneck\.forward ([\d,]+) ([\d,]+) ([\d,]+) ([\d,]+)", told)
    assert row
    assert [int(n.replace(",", "")) for n in row.groups()] == [
        links["arrivals"], links["delivered"], links["dropped_loss"], links["dropped_queue"]
    ]  # fmt: skip
    for flow in run.rows("flows"):
        assert f"it sent {flow['retransmissions']:,} of {flow['sent_packets']:,} packets again" in told
    assert main(["run", str(tmp_path / "warm.toml")]) == 0
    said = capsys.readouterr().out
    assert "the whole run, the warm-up of 4 s included" in said
    assert f"after the warm-up of 4 s; before, {dropped - after:,} packets were dropped" in said
    cold = ackclock.run(watched(scenario.set("record.warm_up", "0 s")))
    assert (cold.digest, cold.links["dropped_before"].sum()) == (run.digest, 0)
    assert f"The network dropped {dropped:,} packets. " in text_of(report.render(page(cold)))


def test_rates_over_different_times_say_over_which():
    """Rates of 27 Mbit/s for 3 s and 3 Mbit/s for 12 s do not add up to 30."""
    link = {"rate": "100 Mbit/s", "delay": "35 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
    flows = [
        {"name": "rwnd", "stack": {"receive_buffer": "256 KiB"}, "workload": {"kind": "transfer", "bytes": "10 MB"}},
        {"name": "app", "workload": {"kind": "throttled", "rate": "3 Mbit/s", "chunk": "10 kB"}},
    ]
    run = ackclock.run(
        ackclock.Scenario.from_dict({"duration": "12 s", "network": {"bottleneck": link}, "flows": flows})
    )
    rows = run.rows("flows")
    told = page(run).conclusion
    open_s = [row["stop_s"] - row["start_s"] for row in rows]
    assert open_s[0] < 4 < open_s[1]
    total = 8 * sum(row["bytes_acked"] for row in rows) / max(open_s)
    for row, length in zip(rows, open_s, strict=True):
        assert f"{row['goodput_bps'] / 1e6:.3f} Mbit/s in the {length:.3f} s that it was open" in told
    assert (
        f"{total / 1e6:.3f} Mbit/s together over the {max(open_s):.3f} s from the first start to the last end" in told
    )
    shares = [int(n) for n in re.findall(r"\((\d+) % of the bytes\)", told)]
    assert sum(shares) in (99, 100, 101)


def test_goodput_does_not_fall_at_the_end_of_the_run():
    """20 s is not a multiple of the interval: the remaining 0.8 ns are not drawn as an interval."""
    run = ackclock.run(watched(ackclock.load(SCENARIOS / "first.toml").set("duration", "20 s")))
    (goodput,) = (panel for panel in panels.panels(run) if panel.name == "goodput")
    curve = goodput.curves[0]
    assert curve.y[-1] > 0.9 * np.median(curve.y)
    assert "in order" in goodput.caption
    odd = ackclock.run(
        ackclock.load(SCENARIOS / "first.toml").set_all({"duration": "2 s", "record.goodput_interval": "0.3 s"})
    )
    (goodput,) = (panel for panel in panels.panels(odd) if panel.name == "goodput")
    assert odd.goodput.height == 7
    assert len(goodput.curves[0].t) == 6


def test_what_arrived_stays_below_what_the_link_carries():
    """A goodput of 15 Mbit/s appears on a 10 Mbit/s link: when a gap is filled, the data buffered behind it counts at once."""
    scenario = ackclock.load(SCENARIOS / "first.toml").set_all(
        {
            "duration": "4 s",
            "network.bottleneck.loss": {"kind": "bernoulli", "p": "0.5 %"},
            "record.goodput_interval": "40 ms",
            "flows.0.workload": {"kind": "transfer", "bytes": "2 MB"},
        }
    )
    run = ackclock.run(scenario)
    got = run.goodput
    payload = 10e6 * 1448 / 1500
    assert got["goodput_bps"].max() > 1.2 * payload
    assert got["delivered_bps"].max() <= payload + 8 * 1448 / 0.04, "one packet more may end in an interval"
    assert run.flows["completion_s"][0] < 4
    for column in ("goodput_bps", "delivered_bps"):
        assert got[column].sum() * 0.04 / 8 == pytest.approx(2_000_000)
    (goodput,) = (panel for panel in panels.panels(run) if panel.name == "goodput")
    assert [curve.look.label for curve in goodput.curves] == ["0 cubic", "0 cubic arrived"]
    assert "thin" in goodput.y
    pair = scenario.set("flows.0.count", 3)
    (cwnd,) = (panel for panel in panels.panels(ackclock.run(pair)) if panel.name == "cwnd")
    lines = panels.live(cwnd)["data"]
    own, second = (
        [line["line"]["dash"] for line in lines if ("ssthresh" in line["name"]) is told] for told in (False, True)
    )
    assert own == ["solid", "dash", "dot"]
    assert second == ["dot", "dot", "solid"], "never as the flow's own"
    calm = scenario.set("network.bottleneck.loss", {"kind": "none"}).set(
        "network.bottleneck.queue.limit", "900 packets"
    )
    (goodput,) = (panel for panel in panels.panels(ackclock.run(calm)) if panel.name == "goodput")
    assert [curve.look.label for curve in goodput.curves] == ["0 cubic"]


def test_a_queue_without_a_limit_is_told(tmp_path, capsys):
    scenario = ackclock.load(SCENARIOS / "first.toml").set("duration", "6 s")
    plain = scenario.to_dict()
    del plain["network"]["bottleneck"]["queue"]
    run = ackclock.run(watched(ackclock.Scenario.from_dict(plain)))
    wait = run.links["max_wait_s"].max()
    assert wait > 0.2
    said = f"The bottleneck's queue has no limit, as the scenario names none: packets waited up to {wait:.3f} s in it."
    assert said in (page(run).summary or "") or said.replace(f"{wait:.3f} s", f"{wait * 1e3:.2f} ms") in (
        page(run).summary or ""
    )
    assert "no limit" not in (page(made("first")).summary or "")
    (tmp_path / "endless.toml").write_text(ackclock.Scenario.from_dict(plain).to_toml(), encoding="utf-8")
    assert main(["run", str(tmp_path / "endless.toml")]) == 0
    assert "the bottleneck's queue has no limit" in capsys.readouterr().out


def test_a_time_sequence_opens_at_the_first_recovery():
    run = made("first", record__trace="all")
    first = run.recoveries.sort("t_enter_s").row(0, named=True)
    (live,) = (
        block
        for section in page(run).sections
        for block in section.blocks
        if getattr(block, "name", "") == "sequence-0"
    )
    begin, end = live.figure()["layout"]["xaxis"]["range"]
    assert begin < first["t_enter_s"] < first["t_exit_s"] < end < 6
    assert "ended by" in report.render(page(run))


def test_another_run_beside_shows_its_queue_and_its_numbers():
    from ackclock.formats import measured

    codel = made("first", network__bottleneck__queue={"kind": "codel"})
    run, other = made("first"), measured.of_run(codel, name="codel")
    (queue,) = (panel for panel in panels.panels(run, [other]) if panel.name == "queue")
    assert [curve.look.label for curve in queue.curves] == ["bottleneck.forward", "codel: bottleneck.forward"]
    told = text_of(report.render(page(run, beside=[other])))
    row = codel.rows("flows")[0]
    assert f"codel: 0 cubic run {row['goodput_bps'] / 1e6:.3f} Mbit/s" in told
    drops = codel.links["dropped_queue"].sum() + codel.links["dropped_loss"].sum()
    assert f"The network dropped {drops:,} packets." in told
    assert "Links of codel." in told


def test_figures_end_where_nothing_more_happens(tmp_path):
    """A one-second transfer in a one-minute run: all figures span the same time, and no line runs along zero."""
    scenario = ackclock.Scenario.from_dict(
        {
            "duration": "60 s",
            "network": {
                "bottleneck": {"rate": "10 Mbit/s", "delay": "5 ms", "queue": {"kind": "drop-tail", "limit": "1 BDP"}}
            },
            "flows": [{"workload": {"kind": "transfer", "bytes": "1 MB"}}],
        }
    )
    run = ackclock.run(watched(scenario))
    figures = [
        block.figure() for section in page(run).sections if section.title == "Over time" for block in section.blocks
    ]
    ends = {figure["layout"]["xaxis"]["range"][1] for figure in figures}
    assert len(ends) == 1
    done = run.flows["completion_s"][0]
    assert done < ends.pop() < done + 2
    bulk = ackclock.run(watched(scenario.set_all({"duration": "2 s", "flows.0.workload": {"kind": "bulk"}})))
    assert panels.busy_until(panels.panels(bulk)) is None


def test_files_of_one_stem_beside_a_run_are_told_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recorded = [
        "--set",
        "record.goodput_interval=1 s",
        "--set",
        "record.sample_interval=100 ms",
        "--set",
        "duration=3 s",
    ]
    assert main(["run", "first", *recorded, "--out", "run"]) == 0
    for kind, file in (("iperf3", "run.json"), ("ss", "run.txt")):
        assert main(["export", "run", "--as", kind, "--out", file]) == 0
    assert main(["report", "run", "--beside", "run.json", "--beside", "run.txt", "--plot", "goodput.svg"]) == 0
    drawn = (tmp_path / "goodput.svg").read_text()
    assert "run.json: cubic" in drawn
    assert "run.txt: cubic" in drawn
