"""A mapping proposed from column names: the interface's own, and those of ERPs in `column_names.toml`.

In: the column names of a file. Out: a mapping that a person can save and edit, and the columns that match no field.
Cell values are not looked at.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from pipelines.mapping.field_paths import resolve
from pipelines.mapping.model import MappedColumn, Mapping
from sources.errors import UsageError
from sources.inputs import pairs, paths

_ATTRIBUTES: Final = ("color", "colour", "talla", "size", "tamaño", "material", "sabor", "flavour", "flavor")
"""Column names that become an attribute of the same name, for kinds that have attributes."""


def propose(columns: Sequence[str], kind: str, *, conflicts: Literal["error", "leave"] = "error") -> Mapping:
    """A mapping by column names; columns that match no field are listed as `unknown`.

    If several columns match the same field, that is an error, or with `leave` all of them are unknown.

    Raises:
        UsageError: several columns match the same field.
    """
    targets = {name: path for name in columns if (path := _path(name, kind)) is not None}
    by_path: dict[str, list[str]] = {}
    for name, path in targets.items():
        by_path.setdefault(path, []).append(name)
    ambiguous = {path: names for path, names in by_path.items() if len(names) > 1}
    if ambiguous and conflicts == "error":
        raise UsageError(
            "; ".join(f"{' and '.join(map(repr, names))} both match {path}" for path, names in ambiguous.items()),
            f"Choose one in a mapping file. To create one: orderbridge template {kind} --mapping --for FILE",
        )
    mapped = {name: MappedColumn(name, path) for name, path in targets.items() if path not in ambiguous}
    return Mapping(kind, mapped, unknown=tuple(name for name in columns if name not in mapped))


def normalize(header: str) -> str:
    """A column name without case, accents, punctuation and spaces; letters of other scripts stay."""
    letters = unicodedata.normalize("NFKD", header).casefold()
    return re.sub(r"[\W_]", "", letters)


def _path(header: str, kind: str) -> str | None:
    if not isinstance(resolve(kind, header), str):
        return header
    name = normalize(header)
    known = _known(kind)
    if name in known:
        return known[name]
    if any(name == normalize(word) for word in _ATTRIBUTES):
        return next((f"{array}.{header.strip()}" for array in pairs(kind)), None)
    numbered = re.fullmatch(r"(\D+?)([1-9])", name)
    if numbered and "[0]" in known.get(numbered[1], ""):
        path = known[numbered[1]].replace("[0]", f"[{int(numbered[2]) - 1}]")
        # `Address 2` is the second line of an address, not the address of a second document
        is_line = numbered[2] != "1" and path.startswith("documents") and not path.endswith(".number")
        return None if is_line or isinstance(resolve(kind, path), str) else path
    return None


@cache
def _known(kind: str) -> dict[str, str]:
    """Field paths by normalized column name; of each array, the first item.

    A field inside another is also known by its own name if that is compound: `Name`, `Value`, `URL` or `Number` alone
    are mostly of something else.
    """
    common = tomllib.loads(files("pipelines.mapping").joinpath("column_names.toml").read_text("utf-8"))[kind]
    known = {normalize(word): path for path, words in common.items() for word in words.split(",")}
    for path in reversed(paths(kind)):
        first = path.replace("[]", "[0]")
        known[normalize(first.replace("[0]", ""))] = first
        own = first.removesuffix("[0]").rpartition(".")[2]
        if own != own.lower():
            known.setdefault(normalize(own), first)
    return known
