"""Where a path of a mapping points: which field of the contract, and the way to it through objects and arrays.

In: a path as a person writes it: `price`, `documents[0].number`, `images[+].url`, `attributes.Color`. Out: its place,
or why there is none, with the nearest path that there is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Final, NamedTuple

from sources.contract import Field
from sources.inputs import pairs, paths, pattern
from sources.kinds import KINDS

EACH: Final = "+"
_STEP: Final = re.compile(r"([A-Za-z0-9]+)(?:\[(\d{1,3}|\+)\])?")
Step = str | int


class Place(NamedTuple):
    """A field that a value goes to.

    Attributes:
        path: as the mapping writes it.
        field: of the contract.
        steps: names of members, positions of items (`EACH`: one a line), down to the value. Empty for a parameter of
            the request's path.
        pair: the name of an attribute, where the path tells it.
    """

    path: str
    field: Field
    steps: tuple[Step, ...]
    pair: str | None = None

    @property
    def is_item(self) -> bool:
        """Whether it lies in an array."""
        return len(self.steps) > 1 and any(isinstance(step, int) or step == EACH for step in self.steps)

    @property
    def is_each(self) -> bool:
        """Whether each line of a group gives an item."""
        return EACH in self.steps


def place(kind: str, path: str) -> Place | str:
    """The place of a path; where there is none, why not, in words that follow the path."""
    known = paths(kind)
    for array in pairs(kind):
        if path.startswith(f"{array}."):
            name = path[len(array) + 1 :].strip()
            leaf = known[f"{array}[].value"]
            return Place(path, leaf, (array, f"={name}", "value"), name) if name else "names no attribute"
    general = pattern(path)
    if "[]" in path or general not in known:
        return f"is no field of {kind}{nearest(path, examples(kind))}"
    if path in {field.name for field in KINDS[kind].operation.params}:
        return Place(path, known[path], ())
    steps: list[Step] = []
    for part in path.split("."):
        match = _STEP.fullmatch(part)
        if match is None:
            return f"is no field of {kind}{nearest(path, examples(kind))}"
        steps.append(match[1])
        if match[2] is not None:
            steps.append(EACH if match[2] == EACH else int(match[2]))
    if len(steps) > 1 and isinstance(steps[1], int):
        most = KINDS[kind].record.field(str(steps[0])).max_items
        if most is not None and steps[1] >= most:
            return f"is beyond the last: {steps[0]} has at most {most} items, from [0] to [{most - 1}]"
    return Place(path, known[general], tuple(steps))


def examples(kind: str) -> list[str]:
    """Every field of a kind as a mapping writes it, the first item for any."""
    return [path.replace("[]", "[0]") for path in paths(kind)]


def nearest(name: str, names: Collection[str]) -> str:
    """` (is it …?)` with the name that is most like it; empty where none is."""
    known = {path.casefold(): path for path in names}
    for path in reversed(list(names)):
        known.setdefault(path.rpartition(".")[2].casefold(), path)
    near = get_close_matches(name.casefold(), known, 1, 0.7)
    return f" (is it {known[near[0]]}?)" if near else ""
