"""Reports: the content of a page, written as one HTML file that works offline."""

from ackclock.report.html import render, write
from ackclock.report.page import (
    Block,
    ClaimRow,
    EvidenceRow,
    HalfRow,
    Page,
    Prose,
    Section,
    Table,
    TableCell,
    items,
    paragraph,
)

__all__ = [
    "Block",
    "ClaimRow",
    "EvidenceRow",
    "HalfRow",
    "Page",
    "Prose",
    "Section",
    "Table",
    "TableCell",
    "items",
    "paragraph",
    "render",
    "write",
]
