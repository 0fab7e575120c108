from __future__ import annotations

import polars as pl

from ackclock.plot import Figure, interactive, new, traces


def trace() -> pl.DataFrame:
    """Return a trace where segment 1 is sent, lost and retransmitted, and then everything is acknowledged."""
    rows = [
        (0.0, "send", "Open", 0, 1000, 1, 0),
        (0.0, "send", "Open", 1000, 1000, 2, 0),
        (0.1, "ack", "Disorder", 0, 0, 1, 0),
        (0.2, "ack", "Recovery", 0, 0, 1, 0),
        (0.2, "rtx", "Recovery", 0, 1000, 1, 1),
        (0.3, "ack", "Open", 2000, 2000, 3, 0),
        (0.4, "send", "Open", 2000, 1, 3, 0),
    ]
    frame = pl.DataFrame(rows, schema=["t_s", "event", "ca_state", "seq", "len", "seg_no", "rexmit"], orient="row")
    return frame.with_columns(
        cwnd=pl.lit(10),
        pipe=pl.lit(2),
        ssthresh=pl.Series([None] * 3 + [5] * 4, dtype=pl.UInt32),
        sack_blocks=pl.Series([0, 0, 1, 0, 0, 0, 0], dtype=pl.UInt8),
        sack0_start=pl.lit(1000),
        sack0_end=pl.lit(2000),
        dsack=pl.Series([0] * 7, dtype=pl.UInt8),
    )


def test_states():
    assert traces.state_spans(trace()) == [(0.1, 0.2, "Disorder"), (0.2, 0.3, "Recovery")]


def test_ssthresh_is_null_until_it_is_set():
    assert traces.windows(trace())["ssthresh"].to_list() == [None, 5, 5]


def test_sequence_leaves_out_a_bare_fin():
    parts = traces.sequence(trace())
    assert parts["new"]["seg_no"].to_list() == [1, 2]
    assert parts["rtx"]["seg_no"].to_list() == [1]
    assert parts["ack"]["seq"].to_list() == [0, 0, 2000]


def test_drops_are_matched_by_segment_and_transmission():
    drops = pl.DataFrame({"t_s": [0.0], "seg_no": [1], "rexmit": [0]})
    assert traces.dropped_sends(trace(), drops)["event"].to_list() == ["send"]


def test_thin_keeps_the_last_row():
    frame = pl.DataFrame({"x": range(101)})
    thinned = traces.thin(frame, 10)
    assert thinned.height <= 12
    assert thinned["x"][-1] == 100
    assert traces.thin(frame, 200).height == 101


def test_figure_writes_every_format_and_its_numbers(tmp_path):
    def draw():
        figure, ax = new(3, 2)
        traces.draw_sequence(ax, trace())
        return figure

    figure = Figure(name="one", title="t", caption="c", draw=draw, data={"a": trace(), "b": trace().head(1)})
    figure.write(tmp_path)
    written = {p.name for p in tmp_path.iterdir()}
    assert written == {"one.pdf", "one.png", "one.svg", "one-a.csv", "one-b.csv"}
    assert pl.read_csv(tmp_path / "one-a.csv").height == 7


def test_figures_repeat_themselves():
    def draw():
        figure, ax = new(3, 2)
        traces.draw_windows(ax, trace())
        return figure

    figure = Figure(name="one", title="t", caption="c", draw=draw, data={})
    assert figure.render() == figure.render()


def test_switch_shows_the_first_choice():
    lines = [interactive.window_lines(trace()), interactive.sequence_lines(trace())]
    made = interactive.switch({"a": (lines[0], interactive.bands(trace())), "b": (lines[1], [])}, x="time (s)", y="kB")
    assert [line["visible"] for line in made["data"]] == [True] * 3 + [False] * 4
    assert len(made["layout"]["shapes"]) == 2
