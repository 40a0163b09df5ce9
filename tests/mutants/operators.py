"""Small changes that are likely bugs: a condition dropped, `<` for `<=`, min for max, the first for the last.

In: the text of a file, and the numbers of its lines that may change. Out: an `Edit` for each place and change.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

_COMPARED: Final = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}
_NAMES: Final = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "first": "last",
    "last": "first",
    "head": "tail",
    "tail": "head",
    "idxmin": "idxmax",
    "idxmax": "idxmin",
    "nsmallest": "nlargest",
    "nlargest": "nsmallest",
}
_ENDS: Final = {"0": "-1", "-1": "0"}
_IN_SQL: Final = (
    (re.compile(r"\bDISTINCT "), ""),
    (re.compile(r"\bAND (?:(?!\b(?:AND|OR|ORDER|GROUP)\b)[^()\n\"])+"), ""),
    (re.compile(r"\bmin\("), "max("),
    (re.compile(r"\bmax\("), "min("),
    (re.compile(r"<="), "<"),
    (re.compile(r">="), ">"),
    (re.compile(r" < "), " <= "),
    (re.compile(r" > "), " >= "),
    (re.compile(r" DESC\b"), ""),
)
_SQL: Final = re.compile(r"\b(SELECT|WHERE|INSERT|UPDATE|DELETE)\b")


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a file.

    Attributes:
        line: where it is, from 1.
        statement: the first line of the statement that it is in.
        words: before and after.
        text: the file with it.
    """

    line: int
    statement: int
    words: str
    text: str


def edits(text: str, lines: Set[int], *, is_python: bool) -> Iterator[Edit]:
    """All edits of these lines that leave a file that compiles."""
    made = _of_python(text, lines) if is_python else _of_sql(text, {line: line for line in lines})
    seen = {text}
    for edit in made:
        if edit.text in seen or (is_python and not _compiles(edit.text)):
            continue
        seen.add(edit.text)
        yield edit


def _compiles(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _of_python(text: str, lines: Set[int]) -> Iterator[Edit]:
    tree = ast.parse(text)
    source = _Source(text)
    in_sql: dict[int, int] = {}
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or _has_no_effect(statement):
            continue
        if statement.lineno in lines and _can_be_dropped(statement):
            yield source.edit(statement, statement.lineno, "pass")
        for node in _own_nodes(statement):
            if node.lineno not in lines:
                continue
            for after in _variants(node, source):
                yield source.edit(node, statement.lineno, after)
            if isinstance(node, ast.Constant) and _SQL.search(str(node.value)):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    in_sql[line] = statement.lineno
    yield from _of_sql(text, {line: first for line, first in in_sql.items() if line in lines})


def _of_sql(text: str, lines: dict[int, int]) -> Iterator[Edit]:
    """Edits of lines with SQL; the values of `lines` are the first lines of their statements."""
    all_lines = text.splitlines(keepends=True)
    for line, statement in lines.items():
        before = all_lines[line - 1]
        for pattern, after in _IN_SQL:
            for found in pattern.finditer(before):
                changed = before[: found.start()] + after + before[found.end() :]
                patched = "".join([*all_lines[: line - 1], changed, *all_lines[line:]])
                yield Edit(line, statement, f"{found.group().strip()} -> {after.strip()}", patched)


def _has_no_effect(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or the condition of imports for types alone."""
    if isinstance(statement, ast.If):
        return isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _can_be_dropped(statement: ast.stmt) -> bool:
    """Whether a statement is there for its effect."""
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets
        )
    return isinstance(statement, ast.Expr | ast.AugAssign | ast.Raise | ast.Continue | ast.Break)


def _own_nodes(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of the statements within it and without types."""
    annotations = {
        getattr(statement, name, None) for name in ("annotation", "returns", "args", "type_params")
    }
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) or (node is statement and child in annotations):
                continue
            if isinstance(child, ast.expr):
                yield child
            waiting.append(child)
    if isinstance(statement, ast.If | ast.While):
        yield ast.copy_location(_Condition(statement.test), statement.test)


class _Condition(ast.expr):
    """The condition of a statement."""

    _fields = ("test",)

    def __init__(self, test: ast.expr) -> None:
        super().__init__()
        self.test = test


class _Source:
    """The text of a file, by the places of its nodes, which count bytes."""

    def __init__(self, text: str) -> None:
        self._data = text.encode()
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends."""
        begin = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return begin, end

    def of(self, node: ast.expr) -> str:
        """The text of a node."""
        begin, end = self.span(node)
        return self._data[begin:end].decode()

    def between(self, one: ast.expr, other: ast.expr) -> str:
        """The text between two nodes."""
        begin, end = self.span(one)[1], self.span(other)[0]
        return self._data[begin:end].decode()

    def replaced(self, begin: int, end: int, after: str) -> str:
        """The file with another text in a place."""
        return (self._data[:begin] + after.encode() + self._data[end:]).decode()

    def edit(self, node: ast.expr | ast.stmt, statement: int, after: str) -> Edit:
        """The edit that puts a text in the place of a node."""
        begin, end = self.span(node)
        before = self._data[begin:end].decode()
        words = f"{_shortened(before)} -> {_shortened(after)}"
        return Edit(node.lineno, statement, words, self.replaced(begin, end, after))


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:57]}..."


def _variants(node: ast.expr, source: _Source) -> Iterator[str]:
    """What may stand in the place of an expression."""
    match node:
        case _Condition():
            yield "True"
            yield "False"
        case ast.BoolOp(op=operator, values=values):
            word = " and " if isinstance(operator, ast.And) else " or "
            for dropped in values:
                rest = word.join(source.of(value) for value in values if value is not dropped)
                yield f"({rest})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield source.of(operand)
        case ast.IfExp(body=body, orelse=other):
            yield source.of(body)
            yield source.of(other)
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            yield from _other_comparison(source, left, right)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            if not any(isinstance(one, ast.JoinedStr) for one in (left, right)):
                yield source.of(left)
                yield source.of(right)
        case ast.Name(id=name) if name in _NAMES:
            yield _NAMES[name]
        case ast.Attribute(value=value, attr=name) if name in _NAMES:
            yield f"{source.of(value)}.{_NAMES[name]}"
        case ast.Subscript(value=value, slice=index) if source.of(index) in _ENDS:
            yield f"{source.of(value)}[{_ENDS[source.of(index)]}]"
        case ast.Constant(value=int() as value) if not isinstance(value, bool) and value > 1:
            yield str(value + 1)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _without_conditions(source, node)


def _other_comparison(source: _Source, left: ast.expr, right: ast.expr) -> Iterator[str]:
    operator = source.between(left, right)
    word = operator.strip("() \n")
    if word in _COMPARED and operator.strip() == word:
        yield f"{source.of(left)} {_COMPARED[word]} {source.of(right)}"


def _without_conditions(
    source: _Source, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> Iterator[str]:
    begin, _ = source.span(node)
    for generator in node.generators:
        for condition in generator.ifs:
            first, last = source.span(condition)
            text = source.of(node).encode()
            yield (text[: first - begin] + b"True" + text[last - begin :]).decode()
