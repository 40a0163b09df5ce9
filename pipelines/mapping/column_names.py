"""What the name of a column says: the interface's own names, and those of `column_names.toml`.

In: a column name and a kind. Out: the field paths that it may name, apart by how sure the name is.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from orderbridge.pipelines.mapping.field_paths import all_paths, resolve
from orderbridge.sources.inputs import pairs

Strength = Literal["clear", "unclear", "more", "weak"]
"""How sure a name is, the surest first; see `column_names.toml`."""
_ATTRIBUTES: Final = (
    "color",
    "colour",
    "talla",
    "size",
    "tamaño",
    "material",
    "sabor",
    "flavour",
    "flavor",
)
"""Column names that become an attribute of the same name, for kinds that have attributes."""
_NUMBER: Final = re.compile(
    r"\b(?:n\s?\.?\s?[º°]|n[úu]m(?:ero)?|no|nr|number|nummer|nº)\.?(?![^\W_])", re.I
)
"""The ways to write number, such as `N.º`, `No.` and `Núm.`."""
_ARTICLES: Final = frozenset(
    [
        *("de", "del", "la", "las", "el", "los"),
        *("do", "da", "dos", "das"),
        *("di", "du", "des", "le", "les"),
        *("of", "the", "der", "die"),
    ]
)
_MARKS: Final = re.compile(
    r"\(\s*(?:cm|kg|\*|ivato|iva incl\.?|obligatorio|obligatoria|obrigatório|required|opcional|optional)\s*\)",
    re.I,
)
"""What a name has after it that is no part of it."""
_TABLE: Final = re.compile(r"^[A-Z]{1,2}[0-9]_(?=[A-Z])")
"""The prefix of a table of TOTVS: `A1_EMAIL`."""
_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])")
"""Where a word begins in a name such as `PriceListNum`."""
_FIRST_OF_SEVERAL: Final = ("phone", "email", "price", "documents[0].fiscalAddress")
"""Fields of which an export numbers several columns, the first of which is the main one."""
_GUESSED: Final = (
    *("price", "stock", "weight", "length", "width", "height"),
    *("phone", "documents[0].fiscalAddress", "priceListId"),
)
"""Fields that a part of a name suggests: a part such as `Código` or `Producto` may be of anything."""
_NAMES: Final = ("firstName", "lastName")
"""Fields that an affix makes unclear: `Nombre del cliente` is a person or a company."""


def normalize(header: str) -> str:
    """A column name without case, accents, punctuation and spaces; letters of other scripts stay."""
    letters = unicodedata.normalize("NFKD", header).casefold()
    return re.sub(r"[\W_]", "", letters)


def paths_of(header: str, kind: str, strength: Strength) -> Sequence[str]:
    """The field paths that a column name may mean at a strength; only an unclear one has several.

    A name that asks, such as `In stock?`, means a field of yes and no.
    """
    paths = _paths_of(header, kind, strength)
    return [path for path in paths if _is_boolean(kind, path)] if _asks(header) else paths


def _asks(header: str) -> bool:
    return header.rstrip().endswith("?")


def _is_boolean(kind: str, path: str) -> bool:
    target = resolve(kind, path)
    return not isinstance(target, str) and target.field.type == "boolean"


def _paths_of(header: str, kind: str, strength: Strength) -> Sequence[str]:
    if strength == "clear":
        path = _clear_path(header, kind)
        return [path] if path else []
    if strength == "more":
        path = _more_path(header, kind)
        return [path] if path else []
    known = _words(kind, strength)
    bare = _bare(header)
    if paths := known.get(normalize(header)) or known.get(normalize(bare)):
        return paths
    return [path for path in known.get(normalize(_first(bare)), ()) if path in _FIRST_OF_SEVERAL]


def guesses_of(header: str, kind: str) -> list[str]:
    """The fields that a part of a name suggests, at its begin or end, the longest part first: `Peso de venta`.

    None for a name that asks, such as `In stock?`, and for one of a cost, a limit or an average.
    """
    words = [word for word in _split(_HUMP.sub(" ", header)) if word not in _ARTICLES]
    if _asks(header) or not _besides().isdisjoint(map(normalize, words)):
        return []
    found: list[str] = []
    for size in range(len(words) - 1, 0, -1):
        for part in (words[:size], words[-size:]):
            path = _more(kind).get("".join(map(normalize, part)))
            found += [path] if path in _GUESSED else []
    return list(dict.fromkeys(found))


def is_of_others(header: str) -> bool:
    """Whether a name says that the column is about somebody else than the customer, or about a trade name."""
    words = {normalize(word) for word in re.split(r"[\W_]+", header)}
    return not words.isdisjoint(_others())


def is_name(header: str) -> bool:
    """Whether a column name says that the column has names of customers or companies."""
    name = normalize(header)
    return any(word in name for word in _name_words())


def _clear_path(header: str, kind: str) -> str | None:
    known, name = _clear(kind), normalize(header)
    if not isinstance(resolve(kind, header), str):
        return header
    if name in known:
        return known[name]
    if any(name == normalize(word) for word in _ATTRIBUTES):
        return next((f"{array}.{header.strip()}" for array in pairs(kind)), None)
    numbered = re.fullmatch(r"(\D+?)([1-9])", name)
    if numbered and "[0]" in known.get(numbered[1], ""):
        path = known[numbered[1]].replace("[0]", f"[{int(numbered[2]) - 1}]")
        # `Address 2` is the second line of an address, not the address of a second document
        is_line = (
            numbered[2] != "1" and path.startswith("documents") and not path.endswith(".number")
        )
        return None if is_line or isinstance(resolve(kind, path), str) else path
    return None


def _more_path(header: str, kind: str) -> str | None:
    """The path of a name of [more], or of a first name with an affix, a number 1, or a slash between two of them."""
    known = _more(kind)
    bare = _bare(header)
    for name in (_key(header), _key(bare), _key(_HUMP.sub(" ", bare))):
        if name in known:
            return known[name]
    parts = bare.split("/")
    if len(parts) > 1:
        paths = {_path_of_part(part, kind) for part in parts}
        return paths.pop() if len(paths) == 1 else None
    path = known.get(_key(_first(bare)))
    if path in _FIRST_OF_SEVERAL:
        return path
    path = known.get(_without_affix(bare, kind))
    return None if path in _NAMES else path


def _bare(header: str) -> str:
    """A name without a prefix of its table, and without marks after it."""
    return _TABLE.sub("", _MARKS.sub("", header)).strip()


def _first(name: str) -> str:
    """The name of the first of several columns without its number 1; empty if it has another end."""
    first = re.fullmatch(r"(.*\D)[\s_]*1", name)
    return first[1] if first else ""


def affixed_name(header: str, kind: str) -> str | None:
    """The part of a person's name that a column has by a name with an affix, such as `Apellidos del cliente`."""
    path = _more(kind).get(_without_affix(_bare(header), kind))
    return path if path in _NAMES else None


def _path_of_part(part: str, kind: str) -> str | None:
    """The path of one of several names: in `NIF / CIF / VAT` the others make an unclear one clear."""
    unclear = _words(kind, "unclear").get(normalize(part), [None])
    return _more(kind).get(_key(part)) or unclear[0]


def _key(header: str) -> str:
    """A normalized name without articles, with `no` for each way to write number."""
    words = _NUMBER.sub(" no ", header)
    return normalize("".join(word for word in _split(words) if word not in _ARTICLES))


def _split(header: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", header.casefold()) if word]


def _without_affix(header: str, kind: str) -> str:
    """The key of a name without the kind's own word at its begin or end; empty if it has none."""
    words = [word for word in _split(_NUMBER.sub(" no ", header)) if word not in _ARTICLES]
    affixes = _tables()["affixes"][kind]
    own = {normalize(word) for word in affixes.split(",")}
    if len(words) > 1 and normalize(words[-1]) in own:
        return normalize("".join(words[:-1]))
    if len(words) > 1 and normalize(words[0]) in own:
        return normalize("".join(words[1:]))
    return ""


@cache
def _tables() -> dict[str, Any]:
    resource = files("orderbridge.pipelines.mapping").joinpath("column_names.toml")
    return tomllib.loads(resource.read_text("utf-8"))


@cache
def _name_words() -> frozenset[str]:
    words: str = _tables()["names"]["parts"]
    return frozenset(map(normalize, words.split(",")))


@cache
def _others() -> frozenset[str]:
    words: str = _tables()["others"]["words"]
    return frozenset(map(normalize, words.split(",")))


@cache
def _besides() -> frozenset[str]:
    words: str = _tables()["besides"]["words"]
    return frozenset(map(normalize, words.split(",")))


@cache
def _words(kind: str, strength: Literal["unclear", "weak"]) -> dict[str, list[str]]:
    """Field paths by normalized column name, of a table with words that other columns or values decide."""
    known: dict[str, list[str]] = {}
    for path, words in _tables()[strength].get(kind, {}).items():
        for word in dict.fromkeys(map(normalize, words.split(","))):
            known.setdefault(word, []).append(path)
    return known


@cache
def _clear(kind: str) -> dict[str, str]:
    """Field paths by normalized column name; of each array, the first item.

    A field inside another is also known by its own name if that is compound: `Name`, `Value`, `URL` or `Number` alone
    are mostly of something else.
    """
    common = _tables().get(kind, {})
    first = {path.removesuffix("[0]"): path for path in all_paths(kind)}
    known = {
        normalize(word): first.get(path, path)
        for path, words in common.items()
        for word in words.split(",")
    }
    for name, path in reversed(first.items()):
        known[normalize(name.replace("[0]", ""))] = path
        own = name.rpartition(".")[2]
        if own != own.lower():
            known.setdefault(normalize(own), path)
    for word in _words(kind, "unclear"):
        known.pop(word, None)
    return known


@cache
def _more(kind: str) -> dict[str, str]:
    """Field paths by key, of the first names and those of [more]."""
    known = dict(_clear(kind))
    for words_of in (_tables().get(kind, {}), _tables()["more"].get(kind, {})):
        for path, words in words_of.items():
            for word in words.split(","):
                known.setdefault(_key(word), path)
    return known
