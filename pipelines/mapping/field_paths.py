"""Field paths as a mapping writes them: `price`, `documents[0].number`, `images[+].url`, `attributes.Color`.

In: a kind and a path. Out: the contract's field and the steps that lead to it, or the reason why there is no such
field, with the most similar path.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Final, NamedTuple

from orderbridge.pipelines.mapping.cells import ValueKind
from orderbridge.sources.contract import Field
from orderbridge.sources.inputs import pairs, paths, pattern
from orderbridge.sources.kinds import KINDS

EACH: Final = "+"
_STEP: Final = re.compile(r"([A-Za-z0-9]+)(?:\[(\d{1,3}|\+)\])?")
Step = str | int


class FieldPath(NamedTuple):
    """A resolved field path.

    Attributes:
        path: as the mapping writes it.
        field: the field of the contract.
        steps: member names and item positions (`EACH`: one item per line) from the body down to the value. Empty for
            a parameter of the request's path.
        pair: the attribute's name in `attributes.NAME`; None otherwise.
    """

    path: str
    field: Field
    steps: tuple[Step, ...]
    pair: str | None = None

    @property
    def value_kind(self) -> ValueKind:
        """How a cell of the field is read."""
        match self.field.type:
            case "identifier":
                return "number_id" if self.field.json in ("integer", "number") else "id"
            case ("integer" | "number" | "boolean" | "date") as kind:
                return kind
            case _:
                return "text"

    @property
    def is_plain(self) -> bool:
        """Whether the value is a text of its own, not a part of a JSON text: a parameter or a text field of a body."""
        return len(self.steps) < 2 and self.value_kind not in ("integer", "number", "boolean")

    @property
    def is_item(self) -> bool:
        """Whether the field lies in an array."""
        return len(self.steps) > 1 and any(
            isinstance(step, int) or step == EACH for step in self.steps
        )

    @property
    def is_each(self) -> bool:
        """Whether each line of a group contributes an item."""
        return EACH in self.steps


def paths_of_answer(kind: str, answer: str) -> tuple[str, ...]:
    """The fields that an answer for a column names: one, or several with commas between, `erpCode,loginCode`."""
    if isinstance(resolve(kind, answer), FieldPath):
        return (answer,)
    return tuple(part.strip() for part in answer.split(","))


def resolve(kind: str, path: str) -> FieldPath | str:
    """The field that a path names; otherwise the reason why there is none, worded to follow the path."""
    fields = paths(kind)
    for array in pairs(kind):
        if path.startswith(f"{array}."):
            return _attribute(kind, array, path)
    general = pattern(path)
    if "[]" in path or general not in fields:
        return f"is not a field of {kind}{suggestion(path, all_paths(kind))}"
    if path in {field.name for field in KINDS[kind].operation.params}:
        return FieldPath(path, fields[path], ())
    steps = _steps(path)
    if not steps:
        return f"is not a field of {kind}{suggestion(path, all_paths(kind))}"
    if len(steps) > 1 and isinstance(steps[1], int):
        limit = KINDS[kind].record.field(str(steps[0])).max_items
        if limit is not None and steps[1] >= limit:
            return f"is out of range: {steps[0]} has at most {limit} items, [0] to [{limit - 1}]"
    return FieldPath(path, fields[general], tuple(steps))


def _attribute(kind: str, array: str, path: str) -> FieldPath | str:
    """The value of the attribute that a path names, such as `attributes.Color`; see `resolve`."""
    name = path.removeprefix(f"{array}.").strip()
    if not name:
        return "has no attribute name"
    return FieldPath(path, paths(kind)[f"{array}[].value"], (array, f"={name}", "value"), name)


def _steps(path: str) -> list[Step]:
    """The member names and item positions of a path; none where it is not written as one."""
    steps: list[Step] = []
    for part in path.split("."):
        match = _STEP.fullmatch(part)
        if match is None:
            return []
        steps.append(match[1])
        if match[2] is not None:
            steps.append(EACH if match[2] == EACH else int(match[2]))
    return steps


def all_paths(kind: str) -> list[str]:
    """Every field of a kind as a mapping writes it; of each array, the first item."""
    return [path.replace("[]", "[0]") for path in paths(kind)]


def root_of(path: str) -> str:
    """The field of the record that a path leads into: `documents` of `documents[0].number`."""
    return path.partition(".")[0].partition("[")[0]


def suggestion(name: str, names: Collection[str]) -> str:
    """` (did you mean …?)` with the most similar name; empty where none is similar."""
    known = {path.casefold(): path for path in names}
    for path in reversed(list(names)):
        known.setdefault(path.rpartition(".")[2].casefold(), path)
    near = get_close_matches(name.casefold(), known, 1, 0.7)
    return f" (did you mean {known[near[0]]}?)" if near else ""
