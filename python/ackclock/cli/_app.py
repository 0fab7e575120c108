"""The commands in help order, each with the function that declares its options and runs it."""

from __future__ import annotations

from typing import Annotated

import typer

from ackclock.cli._lazy import Branch, root


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    if version:
        from ackclock.cli import _tools

        _tools.version()
    elif context.invoked_subcommand is None:
        from ackclock.cli import _terminal

        _terminal.say(context.get_help())


commands = Branch(
    {
        "run": "_run:run",
        "live": "_live:live",
        "compare": "_sweep:compare",
        "report": "_run:report_",
        "lab": "_lab:lab",
        "check": "_check:check",
        "evaluate": "_evaluate:evaluate_",
        "attack": "_attack:attack_",
        "prove": "_prove:prove_",
        "conform": "_conform:conform_",
        "read": "_read:read",
        "diagnose": "_diagnose:diagnose",
        "export": "_export:export",
        "import": "_import:import_",
        "mcp": "_mcp:mcp",
        "diff": "_diff:diff",
        "script": "_script:play",
        "fidelity": "_tools:fidelity",
        "list": "_tools:names",
        "tables": "_tools:tables",
        "schema": "_tools:schema",
        "cite": "_tools:cite",
        "bench": "_tools:bench",
        "doctor": "_linux:doctor",
    }
)
SECTIONS = {
    "Run a scenario": ("run", "live", "compare", "report", "lab", "check", "sweep"),
    "Judge a controller, or a publication": ("evaluate", "attack", "prove", "conform", "arena", "study"),
    "Captures, and other tools": ("read", "diagnose", "export", "import", "mcp"),
    "The real Linux TCP, and stacks of others": ("diff", "linux", "script", "fidelity", "stack"),
    "Teach": ("lesson",),
    "Look something up": ("list", "tables", "schema", "cite", "bench", "doctor"),
}
"""Groups of commands in the help. Commands without a group are listed last."""
study = Branch(
    {
        "list": "_study:names",
        "show": "_study:show",
        "new": "_study:new",
        "register": "_study:register",
        "artefact": "_study:artefact",
        "run": "_study:run",
        "edges": "_study:edges",
    }
)
linux = Branch(
    {
        "build": "_linux:build",
        "list": "_linux:show_kernels",
        "remove": "_linux:remove",
    }
)
lesson = Branch(
    {
        "list": "_lesson:names",
        "check": "_lesson:check",
        "notebook": "_lesson:notebook",
        "grade": "_lesson:grade",
    }
)
stack = Branch(
    {
        "check": "_stack:check",
    }
)
arena = Branch(
    {
        "list": "_arena:tasks",
        "run": "_arena:run",
        "rerun": "_arena:rerun",
        "scenarios": "_arena:scenarios",
        "serve": "_arena:serve",
    }
)
sweep = Branch(
    {
        "run": "_sweep:run",
        "resume": "_sweep:resume",
        "status": "_sweep:status",
        "rerun": "_sweep:rerun",
        "check": "_sweep:check",
        "export": "_sweep:export",
        "plot": "_sweep:plot",
    }
)
commands.add("arena", arena, help="Controllers from any source, scored on scenarios that none of them has seen.")
commands.add("study", study, help="Published experiments, run again, with a verdict on each claim.")
commands.add("linux", linux, help="The real Linux TCP, in virtual time.")
commands.add("lesson", lesson, help="Lessons: yours and the lab's, as notebooks, and marks for answers.")
commands.add("stack", stack, help="Transport stacks that others have written, in libraries.")
commands.add("sweep", sweep, help="Grids of scenarios under many seeds, kept and resumable.")
app = root(_root, commands, sections=SECTIONS, help="A laboratory for TCP congestion control and loss recovery.")
