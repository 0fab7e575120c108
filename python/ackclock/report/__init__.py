"""Reports: a page as a value, written as one HTML file that works offline."""

from ackclock.report.html import render, write
from ackclock.report.page import (
    Block,
    Cell,
    ClaimRow,
    EvidenceRow,
    HalfRow,
    Page,
    Prose,
    Section,
    Table,
    items,
    paragraph,
)

__all__ = [
    "Block",
    "Cell",
    "ClaimRow",
    "EvidenceRow",
    "HalfRow",
    "Page",
    "Prose",
    "Section",
    "Table",
    "items",
    "paragraph",
    "render",
    "write",
]
