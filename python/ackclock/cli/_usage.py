"""Converts typer's usage errors to our form: what was asked, what was found, what is allowed."""

from __future__ import annotations

import re
from typing import Any

from ackclock.errors import foremost, one_of, quote


def explain(error: BaseException) -> str:
    """Return a one-line message for an argument error raised by typer."""
    return foremost(_explained(error))


def _explained(error: BaseException) -> str:
    text = " ".join(str(error.format_message()).split()).rstrip(".")  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    if "allowed:" in text:
        return re.sub("^Invalid value for '([^']*)'", r"\1", text)
    kind = type(error).__name__
    if kind == "BadOptionUsage":
        wants = "requires" in text
        option = getattr(error, "option_name", "option")
        return f"{option}: found {'nothing' if wants else 'a value'}; allowed: {_wanted(context, option) if wants else 'no value'}"
    if context is None:
        return text
    command = context.command
    if kind == "NoSuchOption":
        found = str(getattr(error, "option_name", ""))
        if found.lstrip("-") in _of_scenarios() and any("--set" in p.opts for p in command.params):
            return f'option: found {quote(found)}; allowed: --set {found.lstrip("-")}="..." for a key of the scenario'
        if (meant := MEANT.get(found.lstrip("-"))) and any("--set" in p.opts for p in command.params):
            return f"option: found {quote(found)}; did you mean {meant}?; allowed: --set for keys of the scenario"
        if found in ("--set", "--controller") and context.command_path.endswith("compare"):
            return f"option: found {quote(found)}; allowed: a file for each of the two scenarios; `run` takes {found}"
        options = [name for p in command.params if not _is_argument(p) for name in (*p.opts, *p.secondary_opts)]
        return f"option: found {quote(found)}; allowed: {one_of(found, [*options, '--help'])}"
    if kind == "MissingParameter":
        param = getattr(error, "param", None)
        if param is not None and not _is_argument(param):
            wanted = ", ".join((param.metavar or "a value").split("|"))
            return f"{param.opts[0]}: found nothing; allowed: {wanted}; this option is required"
        name = getattr(param, "metavar", None) or getattr(param, "name", None) or "argument"
        return f"{name}: found nothing; allowed: {_usage(context)}"
    if hasattr(command, "list_commands"):
        names = command.list_commands(context)
        if text.startswith("No such command"):
            found = text.removeprefix("No such command '").partition("'. Did you mean")[0].removesuffix("'")
            if "run" in names and (found.endswith(".toml") or _is_shipped(found)):
                meant = f"{context.command_path} run {found}".removeprefix("ackclock ")
                return f'command: found {quote(found)}; did you mean "{meant}"?; allowed: {", ".join(names)}'
            if found in COMMANDS and "import" in names:
                return f'command: found {quote(found)}; did you mean "{COMMANDS[found]}"?; allowed: {", ".join(names)}'
            return f"command: found {quote(found)}; allowed: {one_of(found, names)}"
        if text.startswith("Missing command"):
            return f"command: found nothing; allowed: {', '.join(names)}"
    if "extra argument" in text:
        found = text.partition("(s) (")[2].removesuffix(")")
        if found.endswith(".json") and any("--json" in p.opts for p in command.params):
            return f"argument: found {quote(found)}; allowed: {_usage(context)}; --json prints: --json > {found}"
        return f"argument: found {quote(found)}; allowed: {_usage(context)}"
    return f"{text}; allowed: {_usage(context)}"


MEANT = {
    **dict.fromkeys(("rate", "bandwidth", "bw"), '--set network.bottleneck.rate="10 Mbit/s"'),
    **dict.fromkeys(("delay", "latency"), '--set network.bottleneck.delay="20 ms"'),
    **dict.fromkeys(("loss", "plr"), '--set network.bottleneck.loss=\'{ kind = "bernoulli", p = "1 %" }\''),
    **dict.fromkeys(("buffer", "queue", "limit"), '--set network.bottleneck.queue.limit="100 packets"'),
    **dict.fromkeys(("cc", "congestion-control", "algorithm"), "--controller"),
}
"""Option of another tool -> its equivalent here."""

COMMANDS = {"path": "import path [--fit]", "fit": "import path --fit"}
"""Words mistaken for commands -> the actual command."""


def _is_shipped(name: str) -> bool:
    """Return whether a scenario with this name is shipped with the package."""
    from ackclock.scenario._shipped import shipped

    return name in dict(shipped())


def _of_scenarios() -> set[str]:
    """Return a scenario's top-level keys."""
    from ackclock.scenario._base import table_keys

    return set(table_keys("scenario"))


def _wanted(context: Any, option: str) -> str:
    """Return an option's values as text; without a context, those of the command being parsed."""
    from ackclock.cli._app import commands

    read = [context.command] if context is not None else list(commands.read())
    params = [param for command in read for param in command.params]
    found = next((p for p in params if not _is_argument(p) and option in p.opts), None)
    if found is None or not found.metavar:
        return "a value"
    said = (found.help or "").partition(". ")[0].rstrip(".")
    return f"a text. {said}" if found.metavar == "TEXT" and said else ", ".join(found.metavar.split("|"))


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _usage(context: Any) -> str:
    pieces = context.command.collect_usage_pieces(context)
    return " ".join([context.command_path, *(piece.strip("{}") for piece in pieces)])
