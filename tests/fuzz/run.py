"""The folder of a run: `run.json` and tables, altered anywhere, are either read as a run that can be summarised, or refused in one line.

Tables are altered in memory, column by column, without reading files or decoding Parquet. Parquet is decoded by polars, which ends the
process for some kinds of damage (docs/safety.md). One input in 256 is a folder on disk.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from draw import Draw, one_line

import ackclock
from ackclock import AckclockError, Run

_SCENARIO = {
    "duration": "200 ms",
    "network": {"bottleneck": {"rate": "1 Mbit/s", "delay": "5 ms"}},
    "flows": [{"congestion_control": "reno"}],
    "record": {"sample_interval": "50 ms", "goodput_interval": "50 ms"},
}
_FOLDER = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
_WHOLE = ackclock.run(ackclock.Scenario.from_dict(_SCENARIO)).write(Path(_FOLDER.name, "whole"))
_PLACE = Path(_FOLDER.name, "run")
_TABLES = {path.stem: pl.read_parquet(path) for path in sorted(_WHOLE.glob("*.parquet"))}
_NAMES = list(_TABLES)
_ABOUT = (_WHOLE / "run.json").read_text()
_VALUES: list[Any] = [
    None, True, 0, -1, 2**31, 2**63, 10**40, 0.5, float("nan"), float("inf"), "", "x", "1 s", "\x1b[31m", [], {}, [1], {"x": 1},
    "reno", "custom:x", "../x",
]  # fmt: skip
_NUMBERS = [0, 1, 2, -1, 255, 2**31, 2**32 - 1, 2**62, -(2**62), 0.5, 1e308, float("nan"), float("inf")]
_TYPES: list[Any] = [
    pl.String,
    pl.Float64,
    pl.Int64,
    pl.UInt32,
    pl.UInt8,
    pl.Boolean,
    pl.Int8,
    pl.Date,
    pl.List(pl.Int64),
]

EXAMPLES = [bytes([0, kind, 1, 2, 3]) for kind in range(8)]


def play(data: bytes) -> bool:
    """Play one input; return whether the reader accepted it."""
    draw = Draw(data)
    on_disk = draw.byte() == 255
    tables = dict(_TABLES)
    about = json.loads(_ABOUT)
    while not draw.empty:
        kind = draw.byte() % 8
        if kind < 4:
            _alter(about, draw)
        elif kind < 7:
            _damage(tables, draw)
        else:
            tables.pop(draw.one(_NAMES), None)
    try:
        run = _from_disk(about, tables) if on_disk else Run._of(_PLACE, about, tables.items())
    except AckclockError as error:
        one_line(str(error))
        return False
    assert run.flows.height >= 0
    run.summary()
    run._repr_html_()
    return True


def _from_disk(about: Any, tables: dict[str, pl.DataFrame]) -> Run:
    shutil.rmtree(_PLACE, ignore_errors=True)
    _PLACE.mkdir()
    (_PLACE / "run.json").write_text(json.dumps(about))
    for name, frame in tables.items():
        frame.write_parquet(_PLACE / f"{name}.parquet")
    return Run.read(_PLACE)


def _alter(about: Any, draw: Draw) -> None:
    node = about
    for _ in range(draw.byte() % 6 + 1):
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = draw.one(keys)
        if isinstance(node[key], dict | list) and node[key] and draw.byte() % 4:
            node = node[key]
        elif draw.byte() % 6 == 0:
            del node[key]
            return
        else:
            node[key] = copy.deepcopy(draw.one(_VALUES))  # a copy, because a later step may change it
            return


def _damage(tables: dict[str, pl.DataFrame], draw: Draw) -> None:
    name = draw.one(_NAMES)
    frame = tables.get(name)
    if frame is None or not frame.width:
        return
    column = draw.one(frame.columns)
    what = draw.byte() % 7
    if what == 0:
        frame = frame.drop(column)
    elif what == 1:
        frame = frame.with_columns(pl.lit(None, dtype=draw.one(_TYPES)).alias(column))
    elif what == 2:
        frame = frame.with_columns(frame[column].cast(draw.one(_TYPES[:5]), strict=False))
    elif what == 3:
        frame = frame.clear()
    elif what == 4:
        frame = pl.concat([frame, frame])
    elif what == 5 and not frame[column].dtype.is_nested():
        value = pl.lit(draw.one(_NUMBERS)).cast(frame[column].dtype, strict=False)
        frame = frame.with_columns(value.alias(column))
    else:
        other = draw.one(["x", "\x1b[31m", "flow2"])
        frame = frame if other in frame.columns else frame.rename({column: other})
    tables[name] = frame
