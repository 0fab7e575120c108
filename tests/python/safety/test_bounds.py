"""Tests for limits on tables from foreign runs, and on the inflated size of a lab address."""

import json
import math
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ackclock import Scenario, run
from ackclock._results import result
from ackclock.cli import _terminal, main
from ackclock.errors import InputError

NODE = shutil.which("node")
PACKING = Path(__file__).parents[3] / "web/packing.js"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scenario = Scenario.from_dict(
        {
            "duration": "300 ms",
            "network": {"bottleneck": {"rate": "1 Mbit/s", "delay": "5 ms"}},
            "record": {"trace": "all", "goodput_interval": "50 ms", "sample_interval": "50 ms"},
            "flows": [{}],
        }
    )
    return run(scenario).write(tmp_path / "run")


@pytest.mark.promise("P9")
@pytest.mark.parametrize("table", ["acks", "goodput", "samples", "flows", "links"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], table: str, value: float
) -> None:
    place = folder / f"{table}.parquet"
    frame = pl.read_parquet(place)
    floats = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    assert floats
    frame.with_columns(pl.lit(value).alias(name) for name in floats).write_parquet(place)
    done = main(["report", str(folder), "--report", str(folder.parent / "r.html")])
    if table == "links" and math.isnan(value):  # all its numbers may be missing
        assert done == 0
        return
    assert done == 2
    assert f"{table}.parquet: found " in capsys.readouterr().err


@pytest.mark.promise("P9")
def test_rows_are_counted_before_they_are_decoded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.read_parquet(folder / "samples.parquet")
    frame.head(1).select(pl.all().repeat_by(3_000_000).explode()).write_parquet(folder / "samples.parquet")
    assert (folder / "samples.parquet").stat().st_size < 2**20
    monkeypatch.setattr(result, "MOST_VALUES", 2**20)
    read = pl.read_parquet

    def small(data: object) -> pl.DataFrame:
        frame = read(data)
        assert frame.height < 10_000
        return frame

    monkeypatch.setattr(pl, "read_parquet", small)
    with pytest.raises(InputError, match="found 3,000,000 rows"):
        result.Run.read(folder)


def test_links_that_lead_to_each_other_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for more in (["--pcap", str(loop)], ["--out", str(loop)], ["--report", str(loop)], ["--pcap", str(loop / "x")]):
        assert main(["run", "first", *more]) in (2, 3), more
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_an_address_that_inflates_is_stopped_at_the_limit() -> None:
    """Only a few slices of the 64 MiB of zeros in 64 KiB are inflated."""
    script = f"""
{PACKING.read_text(encoding="utf-8")}
let eaten = 0;
const Real = DecompressionStream;
globalThis.DecompressionStream = class {{
  constructor(how) {{
    const inner = new Real(how), to = inner.writable.getWriter();
    this.readable = inner.readable;
    this.writable = new WritableStream({{ write(part) {{ eaten += part.length; return to.write(part); }}, close: () => to.close() }});
    to.closed.catch(() => 0);
  }}
}};
(async () => {{
  const {{ squeezed, unsqueezed }} = packing();
  const bomb = await squeezed(new Uint8Array(2 ** 26));
  const text = await unsqueezed(await squeezed(new Uint8Array(5000).fill(7)), 2 ** 20);
  eaten = 0;
  const said = await unsqueezed(bomb, 2 ** 20).then(() => "taken", (error) => error.message);
  console.log(said, text.length, bomb.length > 60000, eaten < bomb.length / 2, eaten);
  process.exit(0);
}})();
"""
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("more than 1048576 bytes 5000 true true"), done.stdout


ROWS = pl.DataFrame(
    {"way": ["client", 'x\n"', None], "bytes": [1, 2, None], "rtt_s": [0.5, None, 1e-9], "gaps": [[1, 2], [], None]}
)


@pytest.mark.parametrize("table", [ROWS, ROWS.clear(), ROWS.head(1)])
def test_rows_are_printed_as_the_whole_would_be(table: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    head: dict[str, Any] = {"file": {"frames": 3, "none": {}}}
    _terminal.show_json_rows(head, "connections", table)
    assert capsys.readouterr().out == json.dumps({**head, "connections": table.to_dicts()}, indent=1) + "\n"


def test_rows_are_printed_as_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """262,144 connections produce twice as many rows of about 40 columns each: as Python values they would take 5 GB."""
    wide = pl.DataFrame({f"column_{n}": pl.int_range(5_000, eager=True) for n in range(20)})
    with (Path(os.devnull)).open("w") as nowhere:
        monkeypatch.setattr(sys, "stdout", nowhere)
        tracemalloc.start()
        _terminal.show_json_rows({}, "connections", wide)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 8e6, f"{most:,.0f} bytes for {wide.height} rows"
