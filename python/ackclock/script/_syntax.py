"""The language of code blocks: the permitted subset of Python's syntax, and size limits."""

from __future__ import annotations

import ast
import inspect
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

Scalar: TypeAlias = bool | int | float | str | None
Value: TypeAlias = Scalar | tuple[Scalar, ...]

MAX_TEXT = 16 * 1024
MAX_TEXTS = 256 * 1024
MAX_PRINTED = 100_000
MAX_STRING = 1_000
MAX_WIDTH = 100
MAX_BITS = 128
MAX_DEPTH = 40
ALLOWED = "assert, print, assignments, arithmetic, comparisons, and/or/not, tuples, % on strings, len, min, max, abs"


class Stop(Exception):
    """Raised when the verdict is known.

    Parameters
    ----------
    verdict
        Verdict of the script.
    message
        Reason in one line.
    node
        Position in the block: a node, or a 1-based line.
    """

    def __init__(self, verdict: Literal["fail", "unsupported"], message: str, node: ast.AST | int = 1) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in message[:2_000])
        self.line = node if isinstance(node, int) else getattr(node, "lineno", 1)


def parse(text: str) -> ast.Module:
    """Return the syntax tree of a block, whose first line may be indented differently."""
    if len(text) > MAX_TEXT:
        raise Stop("unsupported", f"a code block of more than {MAX_TEXT} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in strings are harmless
            return _tree(inspect.cleandoc(text) + "\n\n")  # the last line may continue
    except SyntaxError as error:
        raise Stop("fail", f"not Python: {error.msg}", error.lineno or 1) from None
    except (RecursionError, MemoryError):
        raise Stop("unsupported", f"expressions nested deeper than {MAX_DEPTH}") from None
    except ValueError as error:
        raise Stop("fail", f"not Python: {error}") from None


_PRINT = re.compile(r"^([ \t]*)print[ \t]+(?![=(])(.*\S)[ \t]*$", re.MULTILINE)


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        if _PRINT.search(text) is None:
            raise
        return ast.parse(_PRINT.sub(r"\1print(\2)", text))  # Python 2's print, as in older scripts


BINARY: Mapping[type[ast.operator], Callable[[int | float, int | float], int | float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
BITWISE: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARE: Mapping[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,  # type: ignore[dict-item]  # of unlike values: TypeError, caught
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
    ast.In: lambda a, b: operator.contains(b, a),  # type: ignore[arg-type]
    ast.NotIn: lambda a, b: not operator.contains(b, a),  # type: ignore[arg-type]
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
UNARY: Mapping[type[ast.unaryop], Callable[[int], int]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
FUNCTIONS = ("abs", "len", "max", "min")

_NODES = (
    *(ast.Module, ast.Assert, ast.Assign, ast.AugAssign, ast.Expr, ast.Pass),
    *(ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Name, ast.Tuple, ast.UnaryOp),
    *(ast.Load, ast.Store, ast.And, ast.Or, ast.Not, ast.Pow),
    *(*BINARY, *BITWISE, *COMPARE, *UNARY),
)
_WORDS: Mapping[type[ast.AST], str] = {
    ast.Attribute: "attribute access",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.Subscript: "an index",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "a function",
    ast.FunctionDef: "a function",
    ast.ListComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.For: "a loop",
    ast.While: "a loop",
}


def allow(node: ast.AST, depth: int = 0) -> None:
    """Refuse a tree with anything outside the language."""
    if depth > MAX_DEPTH:
        raise Stop("unsupported", f"expressions nested deeper than {MAX_DEPTH}", node)
    if not isinstance(node, _NODES):
        raise refuse(_WORDS.get(type(node), f"'{type(node).__name__.lower()}'"), node)
    if isinstance(node, ast.Call):
        function = node.func
        if not isinstance(function, ast.Name):
            raise refuse("a call of anything but a name", node)
        if function.id not in ("print", *FUNCTIONS):
            raise refuse(f"a call of '{function.id}'", node)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise refuse("a keyword or starred argument", node)
    if isinstance(node, ast.Constant):
        _allow_constant(node)
    for child in ast.iter_child_nodes(node):
        allow(child, depth + 1)


def _allow_constant(node: ast.Constant) -> None:
    if node.value is not None and not isinstance(node.value, bool | int | float | str):
        raise refuse(f"a {type(node.value).__name__}", node)
    bounded(node.value, node)


def refuse(what: str, node: ast.AST) -> Stop:
    """Return the exception for a node outside the language."""
    return Stop("unsupported", f"{what} is not allowed in a code block; allowed: {ALLOWED}", node)


def bounded(value: Value, node: ast.AST) -> Value:
    """Return the value, or refuse it if it is too large."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise Stop("unsupported", f"a number of more than {MAX_BITS} bits", node)
    if isinstance(value, str) and len(value) > MAX_STRING:
        raise Stop("unsupported", f"a string of more than {MAX_STRING} characters", node)
    return value
