"""Meaning of a run's tables: every column with its type, its unit and the meaning of null.

Examples
--------
>>> from ackclock.tables import tables
>>> column = tables()["samples"].columns["ssthresh"]
>>> column.type, column.unit, column.null
('UInt32', 'segments', 'not set yet')
"""

from ackclock._results.tables import Column, Table, tables

__all__ = ["Column", "Table", "tables"]
