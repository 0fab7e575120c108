"""Tests for every writer against one list of poisoned names. New code that writes needs an entry in `WRITERS` or
`SITES`.

Length: a judge for each writer.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from poison import POISON
from rich.console import Console

import ackclock
from ackclock import _html, formats, text
from ackclock.cli import _export, _run, _terminal
from ackclock.errors import InputError
from ackclock.formats import shell, tc
from ackclock.plot import columns
from ackclock.report.html import render
from ackclock.report.run import page
from ackclock.scenario._toml import to_toml

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "python" / "ackclock"
STUDIES = ROOT / "python" / "ackclock_studies"
HARMLESS = "plain"


@cache
def scenario(name: str) -> ackclock.Scenario:
    """Return a scenario with a poisoned name wherever one is accepted."""
    return ackclock.Scenario.from_dict(
        {
            "name": name,
            "duration": "1 s",
            "network": {
                "topology": "graph",
                "links": [{"name": name, "rate": "2 Mbit/s", "delay": "5 ms"}],
                "paths": [{"name": name, "forward": [name]}],
            },
            "hosts": [{"name": name}],
            "flows": [{"name": name, "path": name, "host": name}],
            "record": {
                "trace": "all", "sample_interval": "100 ms", "goodput_interval": "100 ms", "queue_interval": "100 ms",
                "performance": True,
            },
        }
    )  # fmt: skip


@cache
def done(name: str) -> ackclock.Run:
    return ackclock.run(scenario(name))


def lines_are_printable(written: str) -> None:
    assert written.replace("\n", "").replace("\t", "").isprintable()


def by_tc(name: str, folder: Path) -> None:
    network = {"bottleneck": {"rate": "2 Mbit/s", "delay": "5 ms"}}
    flow = {"congestion_control": f"custom:{name}", "name": name, "host": name}
    plain = {"name": name, "duration": "1 s", "network": network, "hosts": [{"name": name}], "flows": [flow]}
    made = tc.export(ackclock.Scenario.from_dict(plain)).text
    lines_are_printable(made)
    harmless = {**plain, "name": "x", "hosts": [{"name": "x"}], "flows": [{**flow, "name": "x", "host": "x"}]}
    commands = [line for line in made.splitlines() if not line.startswith("#")]
    expected = tc.export(ackclock.Scenario.from_dict(harmless)).text.splitlines()
    assert commands == [line for line in expected if not line.startswith("#")]
    subprocess.run(["bash", "-n"], input=made, text=True, check=True)
    # quoted as a shell word, it is unchanged and nothing is executed
    if "\0" in name:
        with pytest.raises(InputError):
            shell.word(name)
    else:
        asked = ["bash", "-c", f"printf %s {shell.word(name)}"]
        assert subprocess.run(asked, capture_output=True, check=True, cwd=folder).stdout == name.encode()
    script = folder / "x.sh"
    script.write_text(made)
    subprocess.run(["/bin/bash", script], cwd=folder, env={"PATH": "/nonexistent"}, capture_output=True, check=False)
    for kernel in (name, f"x{name}"):
        with pytest.raises(InputError, match="kernel: and a name of the form"):
            ackclock.Scenario.from_dict({**plain, "flows": [{"congestion_control": f"kernel:{kernel}"}]})


def by_ss(name: str, folder: Path) -> None:
    written = formats.write(done(name), "ss", folder / "x.txt").read_text()
    lines_are_printable(written)
    assert len(written.splitlines()) == len(
        formats.write(done(HARMLESS), "ss", folder / "y.txt").read_text().splitlines()
    )
    assert formats.read(folder / "x.txt").samples.height == formats.read(folder / "y.txt").samples.height


def by_lines(name: str, folder: Path) -> None:
    """Check lines of numbers and of our own addresses, which contain no names."""
    written = formats.write(done(name), "tcp-probe", folder / "x.txt").read_text()
    assert written == formats.write(done(HARMLESS), "tcp-probe", folder / "y.txt").read_text()
    assert set(written) <= set("0123456789abcdefx.: \n")


def by_times(name: str, folder: Path) -> None:
    """Check lines that consist of one number each."""
    plain = scenario(name).to_dict()
    flow = {**plain["flows"][0], "workload": {"kind": "fetch", "bytes": "10 kB"}}
    run = ackclock.run(ackclock.Scenario.from_dict({**plain, "flows": [flow]}))
    written = formats.write(run, "curl", folder / "x.txt").read_text()
    assert written
    assert all(float(line) > 0 for line in written.splitlines())


def by_qlog(name: str, folder: Path) -> None:
    written = formats.write(done(name), "qlog", folder / "x.qlog").read_bytes()
    assert written.isascii()
    assert json.loads(written)["title"] == name
    records = formats.write(done(name), "qlog", folder / "x.sqlog").read_text().split("\x1e")[1:]
    assert json.loads(records[0])["title"] == name
    lines_are_printable("".join(records))


def by_iperf3(name: str, folder: Path) -> None:
    written = formats.write(done(name), "iperf3", folder / "x.json").read_bytes()
    assert written.isascii()
    assert name in json.loads(written)["start"]["system_info"]


def by_pcapng(name: str, folder: Path) -> None:
    captures = [folder / "x.pcapng", folder / "y.pcapng"]
    for one, place in zip((name, HARMLESS), captures, strict=True):
        ackclock.run(scenario(one), pcap=place)
    assert captures[0].read_bytes() == captures[1].read_bytes()  # a capture contains no scenario text


def by_csv(name: str, folder: Path) -> None:
    frame = pl.DataFrame({name: [name, "x"], "number": [-1.5, 2.0]})
    written = text.csv(frame)
    lines_are_printable(written)
    rows = list(csv.reader(io.StringIO(written)))
    assert [len(row) for row in rows] == [2, 2, 2]
    assert [row[1] for row in rows] == ["number", "-1.5", "2.0"]
    for cell in (rows[0][0], rows[1][0]):
        assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r")


def by_markdown(name: str, folder: Path) -> None:
    row = text.markdown([name, "2"])
    assert row.isprintable()
    bare = re.sub(r"\\.", "", row)
    assert bare.count("|") == 3
    assert not set("<>`[]*$&") & set(bare)


class Tags(HTMLParser):
    """Parses a page as a browser would: elements with their attributes, and scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(key for key, _ in attrs)))


def by_html(name: str, folder: Path) -> None:
    made = page(done(name), command=f"ackclock run {name}", name=name, beside=[formats.of_run(done(name), name=name)])
    written = render(made)
    lines_are_printable(written)
    assert Tags(written).found == harmless_tags()


@cache
def harmless_tags() -> list[tuple[str, tuple[str, ...]]]:
    """Return the same page's tags with harmless names."""
    harmless = page(done(HARMLESS), command="x", name="x", beside=[formats.of_run(done(HARMLESS), name="x")])
    return Tags(render(harmless)).found


def by_notebook(name: str, folder: Path) -> None:
    for shown in (done(name)._repr_html_(), scenario(name)._repr_html_(), _html.heading(name, name), _html.text(name)):
        lines_are_printable(shown)
        assert not {tag for tag, _ in Tags(shown).found} & {"script", "img", "a", "b", "pwned", "i"}
    shown, harmless = done(name)._repr_html_(), done(HARMLESS)._repr_html_()
    assert {tag for tag, _ in Tags(shown).found} == {tag for tag, _ in Tags(harmless).found}, "those of our own picture"


def by_svg(names: list[str], folder: Path) -> None:
    """Check some names in one flow figure and one link figure, because drawing is slow."""
    plain = scenario(names[0]).to_dict()
    link, flow = plain["network"]["links"][0], plain["flows"][0]
    network = {
        "topology": "graph",
        "links": [{**link, "name": name} for name in names],
        "paths": [{"name": f"path {n}", "forward": [name]} for n, name in enumerate(names)],
    }
    flows = [{**flow, "name": name, "path": f"path {n}"} for n, name in enumerate(names)]
    run = ackclock.run(ackclock.Scenario.from_dict({**plain, "network": network, "flows": flows}))
    for column, each in (("cwnd", 1), ("links.delivered", 2)):
        file = folder / f"{column}.svg"
        columns.write(run, f"{column}={file}" if "." in column else str(file))
        written = file.read_text()
        lines_are_printable(written)
        assert written.count("<!--") > each * len(names), "a comment for each text: no name is left out"
        tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(written).iter()}
        assert not tags & {"script", "pwned", "b", "img", "a", "foreignObject"}


def by_json(name: str, folder: Path) -> None:
    place = done(name).write(folder / "run")
    written = (place / "run.json").read_bytes()
    assert written.isascii()
    assert json.loads(written)["scenario"]["name"] == name
    out, _ = printed(lambda: _terminal.show_json(done(name).summary()), tty=False)
    assert out.isascii()
    assert json.loads(out) == done(name).summary()
    assert ackclock.Run.read(place).scenario == scenario(name)


def by_parquet(name: str, folder: Path) -> None:
    place = done(name).write(folder / "run")
    assert name in pl.read_parquet(place / "links.parquet")["name"].to_list()[0]  # data, unchanged


def by_toml(name: str, folder: Path) -> None:
    written = scenario(name).to_toml()
    lines_are_printable(written)
    place = folder / "x.toml"
    place.write_text(written, encoding="utf-8")
    assert ackclock.load(place) == scenario(name)
    assert tomllib.loads(to_toml({name: {name: name}})) == {name: {name: name}}


def by_junit(name: str, folder: Path) -> None:
    assert len(ET.fromstring(f"<a b={text.xml(name)}/>").attrib) == 1


def by_terminal(name: str, folder: Path, tty: bool = False) -> None:
    (folder / "x.toml").write_text(scenario(name).to_toml(), encoding="utf-8")
    out, err = printed(lambda: _command("run", folder / "x.toml"), tty=tty)
    assert out
    for said in (out, err):
        lines_are_printable(re.sub(r"\x1b\[[0-9;]*m", "", said) if tty else said)
    # a hostile option, and an unknown key
    for change in (name, f"x={name}", f"flows.0.congestion_control={name}"):
        _, err = printed(lambda change=change: _command("run", folder / "x.toml", "--set", change), tty=tty)
        assert err.count("\n") == 1
        lines_are_printable(err)
    out, err = printed(lambda: _terminal.show(name), tty=tty)
    lines_are_printable(re.sub(r"\x1b\[[0-9;]*m", "", out))


def by_a_real_terminal(name: str, folder: Path) -> None:
    by_terminal(name, folder, tty=True)


def by_message(name: str, folder: Path) -> None:
    for error in (
        InputError(f"x: found {name}"),
        ackclock.ControllerError(controller=name, hook=name, time_s=0, problem=name),
    ):
        assert str(error).isprintable()
    with pytest.raises(InputError) as caught:
        ackclock.run_batch(scenario(HARMLESS), name)  # type: ignore[arg-type]
    assert str(caught.value).isprintable()


def _command(*argv: object) -> int:
    from ackclock.cli import main

    return main([str(part) for part in argv])


def printed(work: Callable[[], Any], *, tty: bool) -> tuple[str, str]:
    """Return the output on both streams; with `tty`, rich assumes a terminal."""
    import contextlib

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        if tty:
            # rich's own console, on a file that claims to be a terminal
            patch.setattr(
                _terminal,
                "_console",
                lambda *, stderr=False, width=None: Console(
                    file=err if stderr else out, force_terminal=True, width=width or 120, markup=False, emoji=False
                ),
            )
        work()
    return out.getvalue(), err.getvalue()


BY_NAME: dict[str, Callable[[str, Path], None]] = {
    "tc": by_tc,
    "ss": by_ss,
    "qlog": by_qlog,
    "tcp-probe": by_lines,
    "curl": by_times,
    "iperf3": by_iperf3,
    "pcapng": by_pcapng,
    "CSV": by_csv,
    "Markdown": by_markdown,
    "HTML": by_html,
    "HTML of a notebook": by_notebook,
    "JSON": by_json,
    "Parquet": by_parquet,
    "TOML": by_toml,
    "JUnit XML": by_junit,
    "terminal, piped": by_terminal,
    "terminal": by_a_real_terminal,
    "messages": by_message,
}
WRITERS = {*BY_NAME, "SVG"}


PARTS = 3
"""Parts of the list of names, small enough to keep each test short."""


@pytest.mark.promise("P13", "P14", "P15", "P43")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("writer", BY_NAME)
def test_poisoned_names(writer: str, part: int, tmp_path: Path) -> None:
    for what, name in list(POISON.items())[part::PARTS]:
        folder = tmp_path / re.sub(r"\W+", "-", what)
        folder.mkdir()
        try:
            BY_NAME[writer](name, folder)
        except BaseException as error:
            raise AssertionError(f"{writer}, {what}: {error}") from error
        assert not list(tmp_path.rglob("pwned*")), f"{writer}, {what}: something was run"


@pytest.mark.filterwarnings("ignore:constrained_layout")  # so many names leave little room for the axes
@pytest.mark.parametrize("first", range(0, len(POISON), 7))
def test_poisoned_names_in_figures(first: int, tmp_path: Path) -> None:
    by_svg(list(POISON.values())[first : first + 7], tmp_path)


GATE = "the gate; its callers are listed"
FIGURES = "SVG, with PDF and PNG, which are drawn glyphs; CSV or Parquet beside them"
BUILD = "files of the kernel's build and of its guest, with no text of a scenario but JSON"
OURS = "files in words of our own: packet scripts, the template of a study, headers"
COPIES = "a copy of the user's own code"
RECORD = "JSON of a study's own names, into the source tree"

SITES: dict[str, str] = {
    "ackclock_studies/iw10/writes.py": OURS,
    "_files.py": GATE,
    "_native/__init__.py": OURS,
    "_results/result.py": "JSON, Parquet",
    "arena/_cell.py": "JSON, into a pipe of our own",
    "arena/_sealed.py": "JSON, into a pipe of our own",
    "arena/files.py": "HTML, JSON, CSV, TOML, and a copy of the user's own code",
    "arena/serve.py": COPIES,
    "attack/files.py": "HTML, JSON, JUnit XML, CSV, TOML, and a copy of the user's own code",
    "attack/journal.py": "JSON",
    "attack/runs.py": "JSON",
    "_wall.py": "messages",
    "cli/_main.py": "messages",
    "cli/_arena.py": "HTML, by arena/files.py; TOML",
    "cli/_attack.py": "HTML, by attack/files.py",
    "cli/_conform.py": "JUnit XML",
    "cli/_diagnose.py": "CSV, SVG, TOML, JSON: of a capture numbers and addresses",
    "cli/_evaluate.py": "HTML, by evaluate/page.py",
    "cli/_export.py": "tc, iperf3, ss, qlog, tcp-probe, curl",
    "cli/_lab.py": "HTML, with the scenario in it as JSON",
    "cli/_lesson.py": "CSV, JSON",
    "cli/_read.py": "CSV, SVG, JSON: of a capture numbers and addresses",
    "cli/_run.py": "HTML, SVG, pcapng, JSON, Parquet",
    "cli/_study.py": "HTML",
    "cli/_sweep.py": "CSV, HTML",
    "cli/_terminal.py": "terminal, terminal, piped, messages",
    "cli/_script.py": OURS,
    "diff/_figure.py": "SVG",
    "evaluate/false_alarms.py": RECORD,
    "evaluate/files.py": "TOML, and a copy of the user's own code",
    "evaluate/page.py": "HTML, JSON, JUnit XML, CSV, Parquet, SVG",
    "formats/capture.py": OURS,
    "formats/write.py": "iperf3, qlog, ss, tcp-probe, curl",
    "linux/_build.py": BUILD,
    "linux/_cache.py": BUILD,
    "linux/_guest.py": BUILD,
    "linux/_patched.py": BUILD,
    "linux/_source.py": BUILD,
    "linux/_tree.py": BUILD,
    "own.py": COPIES,
    "cli/_import.py": "TOML",
    "cli/_live.py": "JSON, Parquet",
    "cli/_live_arms.py": "Parquet",
    "cli/_prove.py": OURS,
    "prove/certificate.py": RECORD,
    "prove/figure.py": FIGURES,
    "prove/proof.py": OURS,
    "script/_drawn.py": OURS,
    "plot/columns.py": "SVG",
    "plot/figure.py": FIGURES,
    "plot/style.py": "SVG",
    "report/html.py": "HTML",
    "stacks.py": "JSON, from one process of ours to another",
    "study/artefact.py": RECORD,
    "study/edges.py": RECORD,
    "study/kernel_record.py": RECORD,
    "study/overview.py": "HTML",
    "study/plugin.py": OURS,
    "study/record.py": RECORD,
    "study/register.py": RECORD,
    "study/result.py": "HTML, JSON, Parquet",
    "sweep/apart.py": OURS,
    "sweep/page.py": "HTML, Parquet",
    "sweep/parts.py": "Parquet",
    "sweep/programs.py": "JSON",
    "sweep/results.py": "TOML, Parquet",
    "text.py": "CSV",
}
"""Module that writes files -> the writers above that it uses, or why it needs none."""

WRITES = {
    "write_text", "write_bytes", "writelines", "savefig", "write_csv", "write_parquet", "sink_parquet", "parquet", "sink_csv",
    "write_json", "write_ndjson", "write_html", "write_excel", "to_csv", "copyfile", "echo", "print", "secho",
}  # fmt: skip


def sites() -> set[str]:
    """Return the modules with a call that writes files."""
    found = set()
    words = re.compile(rf"\b(?:open|write|{'|'.join(WRITES)})\b")
    for file in (*PACKAGE.rglob("*.py"), *STUDIES.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if words.search(source) else ():
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            given = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            opens = name == "open" and any(re.fullmatch(r"[rwaxbt+]*[wax+][rwaxbt+]*", mode) for mode in given)
            if opens or name in WRITES or (name == "write" and isinstance(called, ast.Attribute)):
                found.add(file.relative_to(PACKAGE if file.is_relative_to(PACKAGE) else STUDIES.parent).as_posix())
    return found


def test_every_writer_has_an_entry(capsys: pytest.CaptureFixture[str]) -> None:
    """Fails for any new file-writing module, format or `--as` value that has no entry."""
    assert sites() == set(SITES), "SITES says for each module that writes which writers it uses"
    known = sorted(WRITERS, key=len, reverse=True)
    for site, said in SITES.items():
        own = said in (GATE, FIGURES, BUILD, OURS, COPIES, RECORD)
        assert own or any(said.startswith(writer) for writer in known), f"{site}: {said}"
    assert {"tc", *formats.FORMATS} <= set(WRITERS)
    assert set(columns.FORMATS) == {"pdf", "png", "svg"}  # the only text format is SVG
    native = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "crates").rglob("src/**/*.rs")
        if re.search(r"File::create|fs::write|OpenOptions", file.read_text(encoding="utf-8"))
        and "/fuzz/" not in file.as_posix()
    }
    assert native == {"crates/python/src/lib.rs"}, "the capture is all that the engine writes"
    for module in (_export, _run):
        assert "typer.echo" not in Path(module.__file__ or "").read_text(encoding="utf-8")
    modules = [*PACKAGE.rglob("*.py"), *STUDIES.rglob("*.py")]
    echoes = {f.name for f in modules if re.search(r"\btyper\.echo\(|^\s*print\(", f.read_text(), re.M)}
    assert echoes == {"_terminal.py"}, "what is printed goes through cli/_terminal.py"
    with capsys.disabled():
        print(f"\npoisoned names: {len(POISON)}, through {len(WRITERS)} writers: {', '.join(WRITERS)}")
