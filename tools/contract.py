"""Writes the contract of a controller for languages other than Rust, from the tables of `crates/cc/src/controller/contract.rs` as the engine
describes them: the C header, the Rust file for users, the names in the page, the types and tables of the Python
classes, and the page docs/reference/controller-contract.md. `--check` reports which of them are outdated.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ackclock import _engine

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "python" / "ackclock" / "_native"
TEMPLATE = ROOT / "tools" / "templates"
QUINN = ROOT / "crates" / "quinn" / "src" / "ours.rs"
BEGIN, END = "written by tools/contract.py: begin", "written by tools/contract.py: end"

Row = dict[str, Any]
TABLES: dict[str, Any] = _engine.contract()
HOOKS: list[Row] = TABLES["hooks"]
EVENTS = [row for row in HOOKS if row["is_event"]]
FIELDS: list[Row] = TABLES["fields"]
NEEDS: list[Row] = TABLES["needs"]
for _row in FIELDS:  # the compiler puts spaces into the text of a type
    _row["kind"] = _row["kind"].replace(" ", "")
for _row in HOOKS:
    _row["arguments"] = [(name, kind.replace("& ", "&")) for name, kind in _row["arguments"]]

C = {"Option<RateSample>": "struct ackclock_rate"} | dict.fromkeys(("u64", "Time", "Span", "Option<Span>"), "uint64_t")
C_ARGUMENTS = {
    "&mut Window": "struct ackclock_window *",
    "&Window": "const struct ackclock_window *",
    "&Arrival": "const struct ackclock_ack *",
    "&AckSample": "const struct ackclock_ack *",
}
C_ANSWERS = {"bool": "int *", "u32": "uint32_t *"}
RUST = {"Time": "u64", "Span": "u64", "&Arrival": "&Ack", "&AckSample": "&Ack", "CaState": "State"}
RUST_RAW = {
    "&mut Window": "*mut Window",
    "&Window": "*const Window",
    "&Ack": "*const Ack",
    "bool": "u32",
    "State": "u32",
}
PYTHON = {
    "u32": "int", "u64": "int", "bool": "bool", "Time": "float", "Span": "float", "Option<Span>": "float | None", "CaState": "str",
    "Option<RateSample>": "Rate | None",
}  # fmt: skip
SAYS = {"needs": "`wants_...`, `buffer_windows`, `slow_packets`", "vars": "`variables`"}
"""Python and JavaScript attributes that replace hooks without a method."""


def about(row: Row) -> str:
    """One-line description of a row."""
    return " ".join(line.strip() for line in row["about"].strip().splitlines())


def part(*names: str) -> list[Row]:
    return [row for row in FIELDS if row["part"] in names]


def without(text: str) -> str:
    """Text of a C comment."""
    return text.replace("`", "").replace("*/", "")


def header() -> str:
    """Text of `ackclock_controller.h`."""
    flags = [row for row in NEEDS if row["bit"] is not None and row["name"] != "seed"]
    needs = [
        f"#define ACKCLOCK_NEEDS_{row['name'].upper()} {1 << row['bit']}u /* {without(about(row))} */" for row in flags
    ]
    hooks = []
    for row in EVENTS:
        told = [f"{C_ARGUMENTS.get(kind) or C.get(kind, 'uint32_t') + ' '}{name}" for name, kind in row["arguments"]]
        answer = [f"{C_ANSWERS[row['answer']]}answer"] if row["answer"] else []
        hooks += [f"\t/* {without(about(row))}{linux(row, ' Linux: {}.')} */"]
        hooks += [f"\tint (*{row['name']})({', '.join(['void *cc', *told, *answer])});"]
    return filled(
        "ackclock_controller.h", abi=str(TABLES["abi"]), needs="\n".join(needs), rate=c_fields("rate"), ack=c_fields("arrival", "sample"),
        hooks="\n".join(hooks),
    )  # fmt: skip


def linux(row: Row, shape: str) -> str:
    return shape.format(row["linux"]) if row["linux"] else ""


def c_fields(*parts: str) -> str:
    rows = part(*parts)
    return "\n".join(f"\t{C.get(row['kind'], 'uint32_t')} {row['name']}; /* {without(about(row))} */" for row in rows)


def filled(name: str, **texts: str) -> str:
    """A template with its placeholders filled."""
    whole = (TEMPLATE / name).read_text(encoding="utf-8")
    for place, text in texts.items():
        whole = whole.replace(f"@{place.upper()}@", text)
    return whole


def rust() -> str:
    """Text of `ackclock_contract.rs`, which `ackclock_controller.rs` includes."""
    flags = [row for row in NEEDS if row["bit"] is not None and row["name"] != "seed"]
    needs = [f"    /// {about(row)}\n    pub const {row['name'].upper()}: u32 = {1 << row['bit']};" for row in flags]
    methods, calls, fields, filling = [], [], [], []
    for row in EVENTS:
        name, answer = row["name"], row["answer"]
        told = [(arg, RUST.get(kind, kind)) for arg, kind in row["arguments"]]
        back = f" -> {answer}" if answer else ""
        listed = "".join(f", {arg}: {kind}" for arg, kind in told)
        methods += [f"\n    /// {about(row)}\n    fn {name}(&mut self{listed}){back}{rust_default(row)}"]
        raw = [f"{arg}: {RUST_RAW.get(kind, kind)}" for arg, kind in told]
        raw += [f"answer: *mut {'c_int' if answer == 'bool' else answer}"] if answer else []
        call = f"cc.{name}({', '.join(rust_read(arg, kind) for arg, kind in told)})"
        call = {"": call, "bool": f"*answer = c_int::from({call})", "u32": f"*answer = {call}"}[answer]
        calls += [
            f'\nunsafe extern "C" fn {name}<C: Controller>(cc: *mut c_void{"".join(", " + one for one in raw)}) -> c_int {{\n'
            f"    unsafe {{ called::<C>(cc, |cc| {call}) }}\n}}\n"
        ]
        kinds = "".join(", " + one.split(": ")[1] for one in raw)
        kind = f'unsafe extern "C" fn(*mut c_void{kinds}) -> c_int'
        fields += [f"    {name}: Option<{kind}>,"]
        said_by = next((need for need in flags if need["hook"] == name), None)
        given = f"Some({name}::<C> as {kind})"
        filling += [
            f"        {name}: (C::NEEDS & needs::{said_by['name'].upper()} != 0).then_some({name}::<C> as {kind}),"
            if said_by
            else f"        {name}: {given},"
        ]
    return filled(
        "ackclock_contract.rs", abi=str(TABLES["abi"]), needs="\n".join(needs), rate=rust_fields("rate"), ack=rust_fields("arrival", "sample"),
        rate_asked=rust_asked("rate"), ack_asked=rust_asked("arrival", "sample"), methods="\n".join(methods), calls="".join(calls),
        hooks="\n".join(fields), filling="\n".join(filling),
    )  # fmt: skip


def rust_default(row: Row) -> str:
    """Default for a hook that a user omits."""
    if row["name"] == "on_ack":
        return " {\n        window.grow_as_reno(ack);\n    }"
    if row["required"]:
        return ";"
    defaults = {
        "ssthresh_for_mark": "self.ssthresh(window, in_flight)",
        "min_cwnd": "ssthresh",
        "undo_cwnd": "window.cwnd.max(window.prior_cwnd)",
        "on_ecn": "true",
    }
    return f" {{\n        {defaults.get(row['name'], 'false')}\n    }}" if row["answer"] else " {}"


def rust_read(name: str, kind: str) -> str:
    """Return an argument of a hook, converted from C."""
    return {"&mut Window": f"&mut *{name}", "&Window": f"&*{name}", "&Ack": f"&*{name}", "bool": f"{name} != 0", "State": f"State::of({name})"}.get(kind, name)  # fmt: skip


def is_asked(row: Row) -> bool:
    """Return whether a field is read through a method, because it is not a plain number."""
    return row["kind"] not in ("u32", "u64", "Time", "Span") or row["name"] == "min_rtt"


def rust_fields(*parts: str) -> str:
    kinds = {"u32": "u32", "bool": "u32", "CaState": "u32", "Option<RateSample>": "Rate"}
    return "\n".join(
        f"    {row['name']}: {kinds.get(row['kind'], 'u64')},"
        if is_asked(row)
        else f"    /// {about(row)}\n    pub {row['name']}: {kinds.get(row['kind'], 'u64')},"
        for row in part(*parts)
    )


def rust_asked(*parts: str) -> str:
    made = []
    for row in filter(is_asked, part(*parts)):
        name = row["name"]
        kind, value = {
            "bool": ("bool", f"self.{name} != 0"),
            "CaState": ("State", f"State::of(self.{name})"),
            "Option<RateSample>": ("Option<&Rate>", f"(self.{name}.is_given != 0).then_some(&self.{name})"),
        }.get(row["kind"], ("Option<u64>", f"(self.{name} != u64::MAX).then_some(self.{name})"))
        made += [f"    /// {about(row)}\n    pub fn {name}(&self) -> {kind} {{\n        {value}\n    }}"]
    return "\n".join(made)


def javascript() -> str:
    """Text of `web/contract.js`."""
    kinds = {"Option<Span>": "known", "bool": "flag", "CaState": "state", "Option<RateSample>": "rate"}
    methods = [*EVENTS, *(row for row in HOOKS if row["own"] in ("seed", "copy"))]
    hooks = []
    for row in methods:
        told = [kind for _, kind in row["arguments"]]
        window = any("Window" in kind for kind in told)
        ack = any(kind in ("&Arrival", "&AckSample") for kind in told)
        values = [kinds.get(k, "number") for k in told if not k.startswith("&") and row["name"] != "seed"]
        place = HOOKS.index(row)
        hooks += [f'  {{ name: "{row["own"]}", place: {place}, window: {js(window)}, ack: {js(ack)}, told: {values!r}, answer: "{row["answer"] if row["is_event"] else ""}" }},'.replace("'", '"')]  # fmt: skip
    lists = [
        f"const {name} = [\n" + "\n".join(f'  ["{r["name"]}", "{kinds.get(r["kind"], "number")}"],' for r in part(*of)) + "\n];"
        for name, of in (("ACK", ("arrival", "sample")), ("RATE", ("rate",)))
    ]  # fmt: skip
    wants = [f'"wants_{row["name"]}"' for row in wanted()]
    bits = [str(row["bit"]) for row in wanted()]
    numbers = [f'["{row["name"]}", {row["most"]}]' for row in NEEDS if row["bit"] is None]
    return "\n".join([
        "// The contract of a controller as the page needs it. Written by tools/contract.py: change crates/cc/src/controller/contract.rs, not this file.",
        '"use strict";\n',
        "const HOOKS = [\n" + "\n".join(hooks) + "\n];",
        *lists,
        f"const WANTS = [{', '.join(wants)}];",
        f"const BITS = [{', '.join(bits)}];",
        f"const NUMBERS = [{', '.join(numbers)}];",
        "const PLACES = [];",
        "HOOKS.forEach(({ place }, i) => { PLACES[place] = i; });",
    ]) + "\n"  # fmt: skip


def js(flag: bool) -> str:
    return "true" if flag else "false"


def wanted() -> list[Row]:
    """Flags that no hook implies: attributes `wants_...`."""
    return [row for row in NEEDS if row["bit"] is not None and not row["hook"]]


def stub() -> str:
    """Text of Ack and Rate in `_engine.pyi`."""
    lines = []
    for name, says, of in (
        ("Rate", "A sample of the delivery rate: times in seconds, counts in segments.", ("rate",)),
        (
            "Ack",
            "One ACK: times in seconds, counts in segments unless stated otherwise.",
            ("arrival", "sample"),
        ),
    ):
        lines += ["@final", f"class {name}:", f'    """{says}"""', ""]
        for row in part(*of):
            lines += [
                "    @property",
                f"    def {row['name']}(self) -> {PYTHON[row['kind']]}:",
                f'        """{about(row)}"""',
            ]
        lines += [""]
    return "\n".join(lines)


def signature(row: Row) -> str:
    """A hook as a Python method."""
    return f"{row['own']}({', '.join(name for name, _ in row['arguments'])})"


def methods() -> str:
    """The table of `Controller`'s docstring."""
    rows = [*EVENTS, *(row for row in HOOKS if row["own"] in ("seed", "copy"))]
    lines = ["    | hook | meaning |", "    |---|---|"]
    lines += [f"    | `{signature(row)}` | {about(row)} |" for row in rows]
    return "\n".join(lines)


def attributes() -> str:
    """The needs, as listed in the docstring of `Controller`."""
    rows = [(f"wants_{row['name']}", row) for row in wanted()]
    rows += [(row["name"], row) for row in NEEDS if row["bit"] is None]
    return "\n".join(f"    {name}\n        {about(row)}" for name, row in rows)


def page() -> str:
    """Text of `docs/reference/controller-contract.md`."""
    called = set(re.findall(r"\brule\.(\w+)\(", QUINN.read_text(encoding="utf-8")))
    hooks = [
        f"| `{row['name']}` | {about(row)} | {', '.join(f'`{name}`' for name in row['after'] if name != 'begin') or '–'} | {row['linux'] or '–'} | "
        f"{in_python(row)} | {'yes' if row['name'] in called or row['name'] in ('needs', 'copied') else 'no'} |"
        for row in HOOKS
    ]  # fmt: skip
    lists = {
        name: "\n".join(f"| `{row['name']}` | {about(row)} | {row['linux'] or '–'} |" for row in part(*of))
        for name, of in (("arrival", ("arrival",)), ("sample", ("sample",)), ("rate", ("rate",)))
    }  # fmt: skip
    needs = [f"| `{row['name']}` | {about(row)} | {need(row)} |" for row in NEEDS]
    return filled("controller-contract.md", abi=str(TABLES["abi"]), hooks="\n".join(hooks), needs="\n".join(needs), **lists)  # fmt: skip


def in_python(row: Row) -> str:
    return SAYS.get(row["name"]) or f"`{row['own']}`"


def need(row: Row) -> str:
    if row["bit"] is None:
        return f"`{row['name']}`"
    return f"having `{row['hook']}`" if row["hook"] else f"`wants_{row['name']}`"


def inside(path: Path, *texts: str) -> str:
    """A file with the text between its marks replaced, one text per pair of marks."""
    whole = path.read_text(encoding="utf-8")
    marks = re.compile(rf"^([^\n]*{re.escape(BEGIN)}[^\n]*\n).*?^([^\n]*{re.escape(END)})", re.MULTILINE | re.DOTALL)
    new = iter(texts)
    return marks.sub(lambda found: f"{found[1]}{next(new)}\n{found[2]}", whole)


def in_docstring(whole: str) -> str:
    """The table of hooks and the attributes of needs, followed by those of the class alone."""
    whole = re.sub(r"    \| hook \| when \|\n(    \|[^\n]*\n)*", lambda _: methods() + "\n", whole)
    place = re.compile(r"(    Attributes\n    -+\n).*?(    every\n)", re.DOTALL)
    return place.sub(lambda found: f"{found[1]}{attributes()}\n{found[2]}", whole, count=1)


def written() -> Iterator[tuple[Path, str]]:
    yield NATIVE / "include" / "ackclock_controller.h", header()
    yield NATIVE / "ackclock_contract.rs", rust()
    yield ROOT / "web" / "contract.js", javascript()
    stubs, classes = ROOT / "python/ackclock/_engine.pyi", ROOT / "python/ackclock/_agents/controllers.py"
    yield stubs, inside(stubs, stub())
    yield classes, in_docstring(inside(classes, python_defaults()))
    yield ROOT / "docs" / "reference" / "controller-contract.md", page()


def python_defaults() -> str:
    flags = [f"    wants_{row['name']}: bool = False" for row in wanted()]
    return "\n".join([*flags, *(f"    {row['name']}: int = 0" for row in NEEDS if row["bit"] is None)])


def main() -> int:
    stale = 0
    for path, text in written():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{path.relative_to(ROOT)}: not what the contract gives; run `make docs`", file=sys.stderr)
            stale = 1
        else:
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
