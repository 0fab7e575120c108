"""Evaluates the code blocks of packet scripts (the `%{ ... }%` parts) on their syntax tree; nothing is executed.

Scripts may come from untrusted sources, so blocks are limited to a subset of Python: `assert`, `print`, assignments,
arithmetic, comparisons, `and`/`or`/`not`, tuples of plain values, `%` on strings. Without loops, and with bounded
numbers, strings and depth, the cost of a block is proportional to its length.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ackclock.script._machine import CONSTANTS, LANGUAGE_PREFIXES, Machine
from ackclock.script._syntax import MAX_TEXTS, Stop, Value, allow, parse

__all__ = ["CONSTANTS", "Block", "Outcome", "check", "evaluate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One code block, with the state at its evaluation.

    Parameters
    ----------
    line
        Line of the script in which its text begins.
    text
        Text between `%{` and `}%`.
    names
        The socket's state at that time: `tcpi_snd_cwnd` and so on.
    """

    line: int
    text: str
    names: Mapping[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Outcome of a script's blocks.

    Parameters
    ----------
    verdict
        "unsupported" if a block uses anything outside the language, or a value that the stack does not report.
    line
        Line of the script that decided; 0 if all passed.
    message
        Reason in one line; empty if all passed.
    printed
        Arguments of `print`, one entry per call.
    """

    verdict: Literal["pass", "fail", "unsupported"]
    line: int = 0
    message: str = ""
    printed: tuple[str, ...] = ()


def check(blocks: Sequence[Block], *, provided: Collection[str] | None = None) -> Outcome:
    """Check, without evaluating them, that all blocks use only the permitted language.

    Parameters
    ----------
    blocks
        Blocks in the order of the script; their `names` are not used.
    provided
        Names that the stack will set; None: not checked.

    Examples
    --------
    >>> check([Block(line=7, text="x = __import__('os')")])
    ... # doctest: +NORMALIZE_WHITESPACE
    Outcome(verdict='unsupported', line=7, message="a call of '__import__' is not allowed in a code block; allowed:
    assert, print, assignments, arithmetic, comparisons, and/or/not, tuples, % on strings, len, min, max, abs",
    printed=())
    """
    known = set(CONSTANTS) | set(provided or ())
    for block, tree in _trees(blocks):
        if isinstance(tree, Outcome):
            return tree
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name):
                continue
            if isinstance(node.ctx, ast.Store):
                known.add(node.id)
            elif provided is not None and node.id not in known and node.id.startswith(LANGUAGE_PREFIXES):
                return _outcome(block, Stop("unsupported", f"the stack does not tell {node.id}", node), [])
    return Outcome(verdict="pass")


def evaluate(blocks: Sequence[Block]) -> Outcome:
    """Evaluate the blocks of one script in order; variables persist between blocks.

    Parameters
    ----------
    blocks
        Blocks in the order of the script, each with the state at its time.

    Returns
    -------
    Outcome
        "fail" at the first assertion that does not hold, and at any other error that Python would raise.

    Examples
    --------
    >>> evaluate([Block(line=3, text="assert tcpi_snd_cwnd == 10", names={"tcpi_snd_cwnd": 12})])
    Outcome(verdict='fail', line=3, message='assert tcpi_snd_cwnd == 10 (tcpi_snd_cwnd is 12)', printed=())
    """
    scope: dict[str, Value] = dict(CONSTANTS)
    machine = Machine(scope)
    for block, tree in _trees(blocks):
        if isinstance(tree, Outcome):
            return Outcome(verdict=tree.verdict, line=tree.line, message=tree.message, printed=tuple(machine.printed))
        scope.update(block.names)
        try:
            for statement in tree.body:
                machine.run(statement)
        except Stop as stop:
            return _outcome(block, stop, machine.printed)
    return Outcome(verdict="pass", printed=tuple(machine.printed))


def _trees(blocks: Sequence[Block]) -> Iterator[tuple[Block, ast.Module | Outcome]]:
    size = 0
    for block in blocks:
        size += len(block.text)
        try:
            if size > MAX_TEXTS:
                raise Stop("unsupported", f"code blocks of more than {MAX_TEXTS} characters together")
            tree = parse(block.text)
            allow(tree)
        except Stop as stop:
            yield block, _outcome(block, stop, [])
            return
        yield block, tree


def _outcome(block: Block, stop: Stop, printed: Sequence[str]) -> Outcome:
    text = block.text
    skipped = text[: len(text) - len(text.lstrip())].count("\n")
    return Outcome(
        verdict=stop.verdict,
        line=block.line + skipped + stop.line - 1,
        message=stop.message,
        printed=tuple(printed),
    )
