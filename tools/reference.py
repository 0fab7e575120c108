"""Writes docs/reference/scenario.md from the JSON Schema of a scenario and docs/reference/tables.md from the engine's description of its
tables, or checks that they are up to date (--check).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ackclock.scenario import Scenario
from ackclock.tables import Table, tables

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
HEAD = """# Scenario keys

A scenario is a TOML file, or a Python value `ackclock.Scenario` with the same keys. Quantities carry their unit: `"1.2 Mbit/s"`,
`"25 ms"`, `"100 packets"`, `"64 KiB"`, `"1.5 BDP"`, `"1 %"`. One BDP (bandwidth-delay product) is the rate of the bottleneck times
the round-trip propagation delay of flow 0, counted in packets of 1500 bytes plus framing and rounded. Bytes and packets are whole
numbers. A probability is a percentage, or a number from 0 to 1 without quotes. The column "default" gives the value of a key that you
leave out; where it is empty, the meaning says what then applies. `ackclock schema` prints these tables as JSON Schema, and `ackclock list`
explains each name. `make docs` writes this page.

Editors can complete keys and mark mistakes with the schema: write it with `ackclock schema > scenario.schema.json`, and begin a scenario with the
line `#:schema ./scenario.schema.json`. This works in editors that use Taplo, such as VS Code with Even Better TOML.

`ackclock check FILE` tells everything that is wrong with a scenario at once, each with its line and column, and runs nothing; `--json` is for editors
and continuous integration.
"""


TABLES = """# Tables and columns

The results of a run: in Python polars data frames (`run.flows`, `run.acks`, ...), and with `ackclock run X --out DIR` Parquet files of
the same names. Times are in seconds from the start of the run, windows in segments, sizes in bytes; a share is a number from 0 to 1.
Goodput of several flows (groups, runs, the metric `goodput_bps`, `compare`, sweeps, pages) is their payload acknowledged until each one's `stop_s`, divided by
the time from the first `start_s` to the last `stop_s`; after a warm-up, both from its end. So it never adds up rates of different times.
The column "null" says when a value is null. A table without rows has no file. The tables of `run_batch` have a first column `seed`.
`ackclock tables NAME` prints one of these tables. `make docs` writes this page from the descriptions in the engine.

| table | content |
| --- | --- |
"""


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = 0
    for name, text in (("scenario.md", page(Scenario.json_schema())), ("tables.md", tables_page())):
        path = FOLDER / name
        if check and not (path.exists() and path.read_text(encoding="utf-8") == text):
            print(f"{name}: not up to date; run `make docs`", file=sys.stderr)
            stale = 1
        elif not check:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return stale


def tables_page() -> str:
    known = tables().values()
    index = "".join(f"| [{table.name}](#{table.name}) | {cell(table.about)} |\n" for table in known)
    return TABLES + index + "".join(table_section(table) for table in known)


def table_section(table: Table) -> str:
    lines = ["", f"## {table.name}", "", table.about, "", "| column | type | unit | meaning | null |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for column in table.columns.values():
        cells = (f"`{column.name}`", column.type, column.unit, cell(column.meaning), cell(column.null))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(schema: dict[str, Any]) -> str:
    tables = schema["$defs"]
    order = ["Scenario"]
    entries = {**tables, "Scenario": schema}
    for name in order:  # grows as more tables are found
        order += [n for n in dict.fromkeys(met(entries[name])) if n not in order]
    return HEAD + "".join(section(name, entries[name]) for name in order)


def met(table: dict[str, Any]) -> list[str]:
    names: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                names.append(node["$ref"].rsplit("/", 1)[-1])
            for key, value in node.items():
                if key != "discriminator":
                    visit(value)
        elif isinstance(node, list):
            for value in node:
                visit(value)

    visit(table.get("properties", {}))
    return names


def section(name: str, table: dict[str, Any]) -> str:
    about = table.get("description", "").strip()
    lines = ["", f"## {name}", "", about, "", "| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    required = table.get("required", [])
    for key, value in table.get("properties", {}).items():
        lines.append(
            f"| `{key}` | {kind(value)} | {default_of(key, value, required)} | {cell(value.get('description', ''))} |"
        )
    return "\n".join(lines) + "\n"


def default_of(key: str, value: dict[str, Any], required: list[str]) -> str:
    if key in required:
        return "**required**"
    default = value.get("default")
    if default in (None, [], {}, ""):
        return ""
    if default is True or default is False:
        return f"`{str(default).lower()}`"
    if isinstance(default, dict):
        return f'`{{ kind = "{default["kind"]}" }}`' if "kind" in default else ""
    return f'`"{default}"`' if isinstance(default, str) else f"`{default}`"


def kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return f'`"{value["const"]}"`'
    if "enum" in value:
        return ", ".join(f'`"{name}"`' for name in value["enum"])
    if "examples" in value:
        return "such as " + ", ".join(f'`"{x}"`' if isinstance(x, str) else f"`{x}`" for x in value["examples"])
    for union in ("oneOf", "anyOf"):
        if union in value:
            return " or ".join(
                dict.fromkeys(k for k in (kind(v) for v in value[union] if v.get("type") != "null") if k)
            )
    match value.get("type"):
        case "array":
            return f"list of {kind(value['items'])}"
        case "integer":
            return "whole number" + bounds(value)
        case "number":
            return "number" + bounds(value)
        case "boolean":
            return "`true` or `false`"
        case "string":
            return "text"
    return ""


def bounds(value: dict[str, Any]) -> str:
    low, high = value.get("minimum"), value.get("maximum")
    above, below = value.get("exclusiveMinimum"), value.get("exclusiveMaximum")
    said = [f"above {above}"] if above is not None else []
    if low is not None:
        said += [f"{low} or more" if high is None else f"{low} to {high}"]
    elif high is not None:
        said += [f"at most {high}"]
    said += [f"below {below}"] if below is not None else []
    return f" ({', '.join(said)})" if said else ""


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
