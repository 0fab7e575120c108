"""Tests that no figure contains raw TeX: logarithmic axes have plain numbers."""

from __future__ import annotations

from typing import Any

import polars as pl

from ackclock.plot import Figure, new


def test_a_logarithmic_axis_has_plain_numbers():
    made: list[Any] = []

    def draw() -> Any:
        figure, ax = new(3, 2)
        ax.plot([1, 1000], [0.01, 10])
        ax.set(xscale="log", yscale="log")
        made.append(figure)
        return figure

    Figure(name="log", title="", caption="", draw=draw, data={"a": pl.DataFrame({"a": [1]})}).render(["svg"])
    labels = [t.get_text() for ax in made[0].axes for t in (*ax.get_xticklabels(), *ax.get_yticklabels())]
    assert any(labels)
    assert not [text for text in labels if "$" in text or "\\" in text]
