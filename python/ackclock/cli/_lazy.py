"""Commands with options that are read only when the command is requested. typer evaluates the annotation of every
option. Doing so for all commands takes longer than many commands take to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

__all__ = ["Branch", "root"]


ONE_SENTENCE = 400
"""Length to which a command's first sentence is not cut, characters."""


class Branch(Mapping[str, Any]):
    """A command's subcommands, in help order. Each is created when first read.

    Parameters
    ----------
    places
        Function of each command, which declares its options and runs it: "module:function", relative to this package.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._how: dict[str, Callable[[], Any]] = {
            name: partial(_command, name, place) for name, place in places.items()
        }
        self._made: dict[str, Any] = {}

    def add(self, name: str, inner: Branch, *, help: str) -> None:
        """Add a command with subcommands under this name."""
        self._how[name] = lambda: _over(inner, _Group(name=name, help=help, rich_markup_mode=None))

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            made = self._made[name] = self._how[name]()
            for parameter in made.params:
                parameter.shell_complete = partial(_complete, parameter)
        return self._made[name]

    def read(self) -> Iterator[Any]:
        """Yield the commands that have been read, including subcommands."""
        for made in list(self._made.values()):
            yield made
            if isinstance(getattr(made, "commands", None), Branch):
                yield from made.commands.read()

    def __iter__(self) -> Iterator[str]:
        return iter(self._how)

    def __len__(self) -> int:
        return len(self._how)


def _command(name: str, place: str) -> Any:
    module, _, function = place.partition(":")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(getattr(import_module(f"{__package__}.{module}"), function))
    return get_command(alone)


def _complete(parameter: Any, context: Any, incomplete: str) -> list[Any]:
    from ackclock.cli import _complete

    return _complete.complete(context, parameter, incomplete)


def root(
    function: Callable[..., None], commands: Branch, *, sections: Mapping[str, Sequence[str]] | None = None, help: str
) -> Any:
    """Return the top-level command. `function` declares the options before a command's name, and is called first."""
    whole = typer.Typer(
        cls=_Group,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        help=help,
    )
    whole.callback(invoke_without_command=True)(function)
    group = _over(commands, get_command(whole))
    group.sections = sections or {}
    return group


def _over(commands: Branch, group: Any) -> Any:
    group.commands = commands
    return group


class _Group(TyperGroup):
    """Command group that lists its commands' names by section, without creating them."""

    sections: Mapping[str, Sequence[str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer passes it
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        if not self.sections:
            super().format_commands(ctx, formatter)
            return
        *groups, (last, names) = self.sections.items()
        named = {name for _, names in self.sections.items() for name in names}
        rest = [name for name in self.list_commands(ctx) if name not in named]
        wide = max(map(len, self.list_commands(ctx)))
        for title, listed in [*groups, (last, [*names, *rest])]:
            shown = [(name.ljust(wide), self.commands[name].get_short_help_str(ONE_SENTENCE)) for name in listed]
            with formatter.section(title):
                formatter.write_dl(shown)
