"""Converts the engine's columns, each given as a kind and a buffer, to polars series or plain values."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Columns", "Missing", "columns", "of_senders", "plain", "series"]

Columns = Mapping[str, tuple[str, Any]]
"""Column name -> (type, buffer), in the engine's form."""

_KINDS = {"Float64": "f8", "Int64": "i8", "UInt32": "u4", "UInt8": "u1", "Boolean": "bool"}
"""polars type -> the engine's type."""

_NUMPY = {"f8": "<f8", "i8": "<i8", "u4": "<u4", "n4": "<u4", "u1": "u1", "bool": "?"}

_NOTHING = 2**32 - 1
"""Null in columns of kind "n4"."""


class Missing:
    """Replaces the buffer of a column without values; the column keeps its type.

    Parameters
    ----------
    rows
        Number of rows.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows


_FILLED: Mapping[str, tuple[str, float]] = {"f8": ("f8", float("nan")), "u4": ("n4", _NOTHING)}
"""Kind that allows missing values -> the resulting kind, and the value that marks a missing one."""


def series(name: str, kind: str, buffer: Any) -> pl.Series:
    """Return a column of the engine as a series; NaN becomes null."""
    import numpy as np
    import polars as pl

    if isinstance(buffer, Missing):
        dtype = next(name for name, known in _KINDS.items() if known == kind.replace("n4", "u4"))
        return pl.Series(name, [None] * len(buffer), dtype=getattr(pl, dtype))
    if kind == "str":
        return pl.Series(name, buffer, dtype=pl.String)
    made = pl.Series(name, np.frombuffer(buffer, dtype=_NUMPY[kind]), nan_to_null=True)
    return made.set(made == _NOTHING, None) if kind == "n4" else made


def plain(kind: str, buffer: Any) -> list[Any]:
    """Return a column as plain values; NaN becomes None."""
    if isinstance(buffer, Missing):
        return [None] * len(buffer)
    if kind == "str":
        return list(buffer)
    values = array({"f8": "d", "i8": "q", "u4": "I", "n4": "I"}.get(kind, "B"))
    values.frombytes(bytes(buffer))
    if sys.byteorder == "big":  # the engine writes little-endian values
        values.byteswap()
    if kind == "bool":
        return [bool(value) for value in values]
    if kind == "n4":
        return [None if value == _NOTHING else value for value in values]
    return [None if value != value else value for value in values]


def columns(frame: pl.DataFrame) -> Columns:
    """Return a frame in the engine's form: the inverse of `series`, column by column."""
    import numpy as np
    import polars as pl

    found: dict[str, tuple[str, Any]] = {}
    for column in frame.get_columns():
        if column.dtype == pl.String:
            found[column.name] = ("str", column.to_list())
            continue
        kind = _KINDS[str(column.dtype)]
        if kind not in _FILLED and column.null_count() == len(column) > 0:
            found[column.name] = (kind, Missing(len(column)))
            continue
        values = column.to_numpy()
        if column.null_count():
            if kind not in _FILLED:
                raise ValueError(f"nulls in column {column.name}")
            kind, filler = _FILLED[kind]
            values = np.nan_to_num(values, nan=filler, posinf=np.inf, neginf=-np.inf)  # nulls are NaN at this point
        found[column.name] = (kind, values.astype(_NUMPY[kind]).tobytes())
    return found


def of_senders(acks: pl.DataFrame) -> pl.DataFrame:
    """Return the data senders' rows. A kernel traces only senders, and does not mark the rows."""
    import polars as pl

    return acks.filter(~pl.col("responder").fill_null(False))
