"""The interpreter of code blocks: runs a syntax tree of the allowed language, on values of bounded size."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence

from ackclock.script._syntax import (
    BINARY,
    BITWISE,
    COMPARE,
    FUNCTIONS,
    MAX_BITS,
    MAX_PRINTED,
    MAX_WIDTH,
    UNARY,
    Scalar,
    Stop,
    Value,
    bounded,
    refuse,
)

CONSTANTS: Mapping[str, int] = {
    **{
        f"TCP_{name}": number
        for number, name in enumerate(
            (
                "ESTABLISHED",
                "SYN_SENT",
                "SYN_RECV",
                "FIN_WAIT1",
                "FIN_WAIT2",
                "TIME_WAIT",
                "CLOSE",
                "CLOSE_WAIT",
                "LAST_ACK",
                "LISTEN",
                "CLOSING",
            ),
            start=1,
        )
    },
    **{f"TCP_CA_{name}": number for number, name in enumerate(("Open", "Disorder", "CWR", "Recovery", "Loss"))},
    **{
        f"TCPI_OPT_{name}": 1 << bit
        for bit, name in enumerate(("TIMESTAMPS", "SACK", "WSCALE", "ECN", "ECN_SEEN", "SYN_DATA"))
    },
}
"""Names visible to every block (Linux `tcp_states.h`, `uapi/linux/tcp.h`)."""

LANGUAGE_PREFIXES = ("tcpi_", "tcpv_", "bbr_", "dctcp_", "skmem_", "SK_MEMINFO_", "TCP_", "TCPI_")
"""Pattern of names that come from the stack: a missing one is an error in ackclock, not in the script."""


class Machine:
    """Runs statements of a tree that `allow` has accepted.

    Parameters
    ----------
    scope
        Variables, read and written.
    """

    def __init__(self, scope: dict[str, Value]) -> None:
        self.scope = scope
        self.printed: list[str] = []
        self._characters = 0

    def run(self, node: ast.stmt) -> None:
        """Run one statement; raises `Stop` if it decides the verdict."""
        try:
            self._statement(node)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise Stop("fail", f"{_shown(node)}: {error}", node) from None

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assert(test=test, msg=message):
                if not self._value(test):
                    said = "" if message is None else f": {_text(self._value(message))}"
                    raise Stop("fail", f"{_shown(node)}{said}{self._values_in(test)}", node)
            case ast.Assign(targets=targets, value=expression):
                value = self._value(expression)
                for target in targets:
                    self._assign(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=expression):
                self.scope[name] = _binary(op, self._name(name, node), self._value(expression), node)
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=args)):
                self._print(args, node)
            case ast.Expr(value=expression):
                self._value(expression)
            case ast.Pass():
                pass
            case _:
                raise refuse("this statement", node)

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.scope[target.id] = value
            return
        if not isinstance(target, ast.Tuple) or not all(isinstance(t, ast.Name) for t in target.elts):
            raise refuse("an assignment to anything but names", target)
        if not isinstance(value, tuple) or len(value) != len(target.elts):
            raise ValueError(f"{len(target.elts)} values wanted")
        for name, item in zip(target.elts, value, strict=True):
            self._assign(name, item)

    def _print(self, args: Sequence[ast.expr], node: ast.AST) -> None:
        line = " ".join(_text(self._value(a)) for a in args)
        self._characters += len(line) + 1
        if self._characters > MAX_PRINTED:
            raise Stop("unsupported", f"more than {MAX_PRINTED} characters printed", node)
        self.printed.append(line)

    def _name(self, name: str, node: ast.AST) -> Value:
        try:
            return self.scope[name]
        except KeyError:
            if name.startswith(LANGUAGE_PREFIXES):
                raise Stop("unsupported", f"the stack does not tell {name}", node) from None
            raise Stop("fail", f"name '{name}' is not defined", node) from None

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.BinOp(left=left, op=op, right=right):
                return _binary(op, self._value(left), self._value(right), node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._value(operand)
            case ast.UnaryOp(op=unary, operand=operand):
                value = UNARY[type(unary)](self._value(operand))  # type: ignore[arg-type]
                return bounded(value, node)
            case ast.BoolOp(op=op, values=values):
                wanted = isinstance(op, ast.Or)
                for item in values[:-1]:
                    so_far = self._value(item)
                    if bool(so_far) is wanted:
                        return so_far
                return self._value(values[-1])
            case ast.Compare(left=left, ops=comparisons, comparators=comparators):
                before = self._value(left)
                for comparison, right in zip(comparisons, comparators, strict=True):
                    after = self._value(right)
                    if not COMPARE[type(comparison)](before, after):
                        return False
                    before = after
                return True
            case ast.Tuple(elts=items):
                return tuple(self._scalar(i) for i in items)
            case ast.Call(func=ast.Name(id=name), args=args) if name in FUNCTIONS:
                return _call(name, [self._value(a) for a in args])
            case _:
                raise refuse("this expression", node)

    def _scalar(self, node: ast.expr) -> Scalar:
        value = self._value(node)
        if isinstance(value, tuple):
            # Nested tuples could share parts, and double in size with each line.
            raise refuse("a tuple in a tuple", node)
        return value

    def _values_in(self, test: ast.expr) -> str:
        names = dict.fromkeys(n.id for n in ast.walk(test) if isinstance(n, ast.Name) and n.id in self.scope)
        values = ", ".join(f"{n} is {self.scope[n]!r}" for n in names if n not in CONSTANTS)
        return f" ({values})" if values else ""


def _binary(op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
    if isinstance(left, str):
        if isinstance(op, ast.Mod):
            return bounded(_format(left, right, node), node)
        if isinstance(op, ast.Add) and isinstance(right, str):
            return bounded(left + right, node)
        raise TypeError("strings take only + and %")
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError("arithmetic is for numbers")
    if isinstance(op, ast.Pow):
        return bounded(_power(left, right, node), node)
    if (plain := BINARY.get(type(op))) is not None:
        return bounded(plain(left, right), node)
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError("bits are for whole numbers")
    if isinstance(op, ast.LShift | ast.RShift) and right > MAX_BITS:
        raise Stop("unsupported", f"a shift by more than {MAX_BITS} bits", node)
    return bounded(BITWISE[type(op)](left, right), node)


def _power(base: int | float, exponent: int | float, node: ast.AST) -> int | float:
    whole = isinstance(base, int) and isinstance(exponent, int) and exponent > 0
    if whole and abs(base) > 1 and int(base).bit_length() * exponent > 2 * MAX_BITS:
        raise Stop("unsupported", f"a number of more than {MAX_BITS} bits", node)
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("not a real number")
    assert isinstance(result, int | float)
    return result


_CONVERSION = re.compile(r"%(?P<flags>[#0 +-]*)(?P<width>\d*)(?:\.(?P<precision>\d*))?(?P<kind>[diouxXeEfFgGcrsa%])")


def _format(template: str, values: Value, node: ast.AST) -> str:
    rest = _CONVERSION.sub("", template)
    if "%" in rest:
        raise refuse(f"the format {template!r}", node)
    for match in _CONVERSION.finditer(template):
        if any(len(n or "") > 3 or int(n or 0) > MAX_WIDTH for n in match.group("width", "precision")):
            raise Stop("unsupported", f"a format wider than {MAX_WIDTH}", node)
    return template % values


def _call(name: str, args: list[Value]) -> Value:
    match name, args:
        case "len", [str() | tuple() as sized]:
            return len(sized)
        case "abs", [int() | float() as number]:
            return abs(number)
        case "min" | "max", [tuple() as items]:
            pass
        case "min" | "max", [_, _, *_]:
            if any(isinstance(a, tuple) for a in args):
                raise TypeError(f"{name} of tuples")
            items = tuple(a for a in args if not isinstance(a, tuple))
        case _:
            raise TypeError(f"{name} of these arguments")
    if not items:
        raise ValueError(f"{name} of nothing")
    if any(isinstance(i, float) and math.isnan(i) for i in items):
        return math.nan
    best: Scalar = (min if name == "min" else max)(items)  # unequal types raise TypeError, which is caught
    return best


def _text(value: Value) -> str:
    return str(value)


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node.test) if isinstance(node, ast.Assert) else ast.unparse(node)
    text = text if len(text) <= 200 else text[:197] + "..."
    return f"assert {text}" if isinstance(node, ast.Assert) else text
