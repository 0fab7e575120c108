"""Figures in one style: matplotlib for paper, plotly for interactive reports."""

from ackclock.plot.figure import Figure
from ackclock.plot.style import GREY, OKABE_ITO, PALE, Series, new, not_reached, styled

__all__ = ["GREY", "OKABE_ITO", "PALE", "Figure", "Series", "new", "not_reached", "styled"]
