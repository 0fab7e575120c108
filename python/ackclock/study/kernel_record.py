"""Record of a study's kernel part as report tables, from this run or from the file stored beside the study by an
earlier run.

`ackclock study run NAME --backend linux --record` writes the file, and the study's report shows its contents with
version and date. With `--backend both` the report shows the kernel's results of the same run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ackclock import report
from ackclock._files import regular
from ackclock.errors import InputError
from ackclock.study.record import LARGEST, as_written


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelRecord:
    """Recorded results of the kernel part.

    Parameters
    ----------
    kernel
        Release of the kernel.
    runs
        Number of runs on both backends.
    command
        Command that reproduces them.
    tables
        Claims on both backends side by side, then those of the part's own sections.
    taken
        "version" and "date" of the record; empty if the results are from this run.
    """

    kernel: str
    runs: int
    command: str
    tables: tuple[report.Table, ...]
    taken: Mapping[str, str]

    def section(self) -> report.Section:
        """Return the section for the report of the whole study."""
        when = (
            f"Recorded {self.taken['date']} with ackclock {self.taken['version']}, not by this run"
            if self.taken
            else "Found by this run"
        )
        about = report.paragraph(
            f"{when}: {self.runs:,} runs on Linux {self.kernel} and in the simulator, with hosts of Linux 6. A run of the "
            f"study with --backend both makes these tables anew; {self.command} makes them alone."
        )
        return report.Section(title="On the real kernel", blocks=(about, *self.tables))


def read(path: Path | None) -> KernelRecord | None:
    """Return the record in the file; None if there is none."""
    if path is None or not path.exists():
        return None
    with as_written(path):
        return _of(json.loads(regular(path, LARGEST)))


def _of(found: Any) -> KernelRecord:
    tables = tuple(
        report.Table(
            caption=t["caption"],
            header=tuple(t["header"]),
            rows=tuple(tuple(_cell(c) for c in row) for row in t["rows"]),
        )
        for t in found["tables"]
    )
    return KernelRecord(
        kernel=found["kernel"], runs=found["runs"], command=found["command"], tables=tables, taken=found["taken"]
    )


def write(path: Path, record: KernelRecord, *, version: str, date: str) -> None:
    """Write the record, replacing the previous one.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    record = replace(record, taken={"version": version, "date": date})
    head = {"taken": record.taken, "kernel": record.kernel, "runs": record.runs, "command": record.command}
    tables = [{"caption": t.caption, "header": t.header, "rows": _rows(t)} for t in record.tables]
    try:
        path.write_text(json.dumps(head | {"tables": tables}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({(error.strerror or str(error)).lower()})") from None


def _rows(table: report.Table) -> list[list[Any]]:
    plain = report.TableCell(text="")
    return [
        [c.text if (c.kind, c.span) == (plain.kind, plain.span) else [c.text, c.kind, c.span] for c in row]
        for row in table.cells
    ]


def _cell(kept: str | list[Any]) -> report.TableCell | str:
    return kept if isinstance(kept, str) else report.TableCell(text=kept[0], kind=kept[1], span=kept[2])
