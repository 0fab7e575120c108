"""`ackclock mcp`: commands as tools for an agent, over the Model Context Protocol.

Each tool is the command of that name with `--json`, run in its own process. It has the command's limits, and reports
errors in the same words. No tool writes a file or runs user code (except one, with the user's permission), and no path
may lead out of the folder in which the server was started.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from ackclock import _child
from ackclock.errors import AckclockError, InputError, UnavailableError, quote

LIMIT_S = 600
"""Maximum wall-clock time of a tool, s."""

MOST = 1_000_000
"""Maximum number of characters in a response, because an agent reads all of it."""

ABOUT = (
    "A laboratory for TCP congestion control and loss recovery: runs scenarios (TOML) in virtual time, reads captures (pcap, pcapng), says what limited a transfer. "
    "Paths are relative to the folder in which the server was started."
)


def mcp(
    own_code: Annotated[
        bool,
        typer.Option(
            "--own-code", help="Let the agent submit controllers that it has written: their text is executed."
        ),
    ] = False,
) -> None:
    """Serve commands to an agent. Read, diagnose, run, compare, list and score, over standard input and output (Model Context Protocol)."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise UnavailableError(
            "ackclock mcp needs the protocol's Python SDK; install it with: pip install 'ackclock[mcp]'"
        ) from error
    from ackclock import __version__

    def told(tool: Callable[..., str]) -> Callable[..., str]:
        @wraps(tool)
        def called(*arguments: Any, **named: Any) -> str:
            try:
                return tool(*arguments, **named)
            except AckclockError as error:
                raise ToolError(str(error)) from None

        return called

    place = Tools(Path.cwd(), code=own_code)
    server = MCPServer("ackclock", version=__version__, instructions=ABOUT, log_level="ERROR")
    for tool in (
        place.read,
        place.diagnose,
        place.run,
        place.compare,
        place.list,
        place.arena_tasks,
        place.arena_score,
    ):
        server.tool(name=tool.__name__, structured_output=False)(told(tool))
    server.run("stdio")


class Tools:
    """The tools offered by a server.

    Parameters
    ----------
    folder
        Folder out of which no path may lead.
    code
        Whether controllers in the arena may be text, which is executed.
    """

    def __init__(self, folder: Path, *, code: bool = False) -> None:
        self.folder, self.code = folder.resolve(), code

    def read(self, capture: str, connection: int | None = None) -> str:
        """Read a capture of TCP (pcap, pcapng, also packed with gzip): its connections, their losses and needless retransmissions.

        capture: path of the file. connection: only this one, by its number.
        """
        return self._carried("read", str(self.inside(capture)), *_option("--connection", connection))

    def diagnose(self, capture: str, connection: int | None = None, which: bool = False, what_if: bool = False) -> str:
        """Say why a transfer in a capture was slow: the limit, the time for which each cause held, the properties of the path.

        capture: path of the file. connection: its number (default: the one with most data). which: also identify the congestion control (slower). what_if: also the effect
        of changes at either end (slower).
        """
        words = [*_option("--connection", connection), *["--which"] * which, *["--what-if"] * what_if]
        return self._carried("diagnose", str(self.inside(capture)), *words)

    def run(self, scenario: str, seed: int = 1, changes: dict[str, str] | None = None) -> str:
        """Run a scenario in the simulator: the results of each flow and link.

        scenario: path of a TOML file, or the name of one that comes with ackclock, such as "first" (the tool `list` names them). changes: dotted key -> value, such as
        {"network.bottleneck.rate": "20 Mbit/s"}.
        """
        words = [word for key, value in (changes or {}).items() for word in ("--set", _change(key, value))]
        return self._carried("run", self.scenario(scenario), "--seed", str(seed), *words)

    def compare(self, first: str, second: str, seeds: int = 20, metric: str | None = None) -> str:
        """Compare two scenarios over pairs of runs with the same seeds: which differences are more than chance.

        first, second: paths of TOML files, or names of scenarios that come with ackclock. metric: only this one.
        """
        words = ["--seeds", str(seeds), *_option("--metric", metric)]
        return self._carried("compare", self.scenario(first), self.scenario(second), *words)

    def list(self, kind: str | None = None) -> str:
        """List what scenarios may name: controllers, recovery rules, queues, loss models, workloads, topologies, metrics, scenarios.

        kind: only these.
        """
        return self._carried("list", *([kind] if kind else []))

    def arena_tasks(self) -> str:
        """List the tasks of the arena: families of scenarios on which controllers are scored, the terms of each, and the weights."""
        return self._carried("arena", "list")

    def arena_score(
        self, task: str, entry: dict[str, Any], tier: str = "quick", beat: str = "reno", salt: str | None = None
    ) -> str:
        """Score a controller on drawn scenarios of a task, 0 to 100: terms by family, its effect on others, the probability that it is ahead of another.

        task: a name that arena_tasks lists, or the path of a TOML file. entry: {"controller": "cubic", "options": {...}}; or, if the server was started with --own-code,
        {"language": "c", "text": "..."} (a module of Linux) or {"language": "python", "class": "Mine", "text": "..."}. tier: quick, medium or full; each goes through those
        before it, and stops when the entry is certainly behind `beat`. salt: text from which the draws follow; scores with the same salt can be compared. Default: a new one.
        """
        named = task if not any(mark in task for mark in "/.\\") else str(self.inside(task))
        line = json.dumps({"task": named, "entry": entry, "tier": tier, "beat": beat})
        words = [*_option("--salt", salt), *["--names-only"] * (not self.code)]
        answer = self._carried("arena", "serve", *words, given=line + "\n", as_json=False)
        said = json.loads(answer)
        if "error" in said:
            raise InputError(said["error"])
        return answer

    def inside(self, path: str, beside: Path | None = None) -> Path:
        """Return a path inside the folder.

        Raises
        ------
        InputError
            If it leads outside, directly or through a link.
        """
        found = ((beside or self.folder) / path).resolve()
        if not found.is_relative_to(self.folder):
            raise InputError(
                f"found {quote(path)}; allowed: a path in the folder in which `ackclock mcp` was started ({self.folder})"
            )
        return found

    def scenario(self, name: str) -> str:
        """Return the path of a scenario, if its traces are in the folder as well, or the name of a built-in one."""
        file = self.inside(name)
        if not file.exists() and not any(mark in name for mark in "/.\\"):
            return name
        from ackclock.scenario.scenario import raw

        for trace in _traces(raw(file) if file.is_file() else {}):  # the command reports errors of the file
            self.inside(trace, file.parent)
        return str(file)

    def _carried(self, *words: str, given: str | None = None, as_json: bool = True) -> str:
        begin = words[1:] and words[1].startswith("-")
        if begin:  # a name must not be parsed as an option
            raise InputError(f"found {quote(words[1])}; allowed: a name or a path, which does not begin with -")
        command = _child.python("ackclock.cli._mcp:carry", *words, *["--json"] * as_json)
        try:
            done = _child.run(command, timeout=LIMIT_S, input=given)
        except _child.TimeoutExpired:
            raise UnavailableError(f"{words[0]}: did not end within {LIMIT_S} s; allowed: a shorter one") from None
        if done.returncode not in (0, 1):
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise InputError(said[-1] if said else f"{words[0]}: ended with {done.returncode}")
        if len(done.stdout) > MOST:
            raise InputError(
                f"{words[0]}: found an answer of {len(done.stdout):,} characters; allowed: at most {MOST:,} (ask for one connection, or fewer flows)"
            )
        return str(done.stdout)


def carry(*words: str) -> None:
    """Run a command in the tool's own process."""
    from ackclock.cli import main

    sys.exit(main(list(words)))


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [f"{name}={value}"]


def _change(key: str, value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if "mahimahi" in text.lower():
        raise InputError(f"{key}: found a trace in a change; allowed: one that the scenario's file names")
    return f"{key}={text}"


def _traces(held: Any) -> Iterator[str]:
    if isinstance(held, Mapping):
        if held.get("kind") == "mahimahi":
            yield from (value for key, value in held.items() if key != "kind" and isinstance(value, str))
        for value in held.values():
            yield from _traces(value)
    elif isinstance(held, Sequence) and not isinstance(held, str):
        for value in held:
            yield from _traces(value)
