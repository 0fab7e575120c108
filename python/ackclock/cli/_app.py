"""The commands, in the order in which help lists them: where each declares its options, and carries them out."""

from __future__ import annotations

from typing import Annotated

import typer

from ackclock.cli._lazy import Branch, root


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
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
        "report": "_run:report_",
        "export": "_export:export",
        "read": "_read:read",
        "diagnose": "_diagnose:diagnose",
        "lab": "_lab:lab",
        "list": "_tools:names",
        "tables": "_tools:tables",
        "check": "_check:check",
        "schema": "_tools:schema",
        "bench": "_tools:bench",
        "script": "_script:play",
        "fidelity": "_tools:fidelity",
        "doctor": "_linux:doctor",
        "compare": "_sweep:compare",
        "attack": "_attack:attack_",
        "evaluate": "_evaluate:evaluate_",
        "conform": "_conform:conform_",
        "diff": "_diff:diff",
    }
)
study = Branch(
    {
        "list": "_study:names",
        "show": "_study:show",
        "new": "_study:new",
        "register": "_study:register",
        "artefact": "_study:artefact",
        "run": "_study:run",
    }
)
linux = Branch(
    {
        "build": "_linux:build",
        "list": "_linux:show_kernels",
        "remove": "_linux:remove",
    }
)
stack = Branch(
    {
        "check": "_stack:check",
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
commands.add("study", study, help="Published experiments, run again, with a verdict on each claim.")
commands.add("linux", linux, help="The real Linux TCP, in virtual time.")
commands.add("stack", stack, help="Transport stacks that others have written, in libraries.")
commands.add("sweep", sweep, help="Grids of scenarios under many seeds, kept in a folder and resumable.")
app = root(_root, commands, help="A laboratory for TCP congestion control and loss recovery.")
