"""What is known about one setting: its key, check, default and a line of help; and the values that are masked.

In: the subclasses of `Section` in `sections`, whose fields declare the settings. Out: `SETTINGS`, the table of all,
from which the loaders, the table of the docs, `.dlt/config.toml` and what `orderbridge check` prints are made.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, Final, NoReturn, dataclass_transform

from orderbridge.sources.errors import UsageError

Check = Callable[[str, object], object]


@dataclass(frozen=True, slots=True)
class OneOf:
    """The check that a value is one of some words."""

    words: tuple[str, ...]

    def __call__(self, name: str, value: object) -> str:
        """The word. Raises UsageError."""
        if isinstance(value, str) and value in self.words:
            return value
        raise UsageError(
            f"{name} is not one of {', '.join(self.words)}", "Set it to one of them, in lower case."
        )


@dataclass(frozen=True, slots=True)
class TableOf:
    """The check of a table: rows with one of some words each, `PAID=sale,PENDING=open`.

    A row with a comma in it is in double quotes.
    """

    words: tuple[str, ...]

    def __call__(self, name: str, value: object) -> str:
        """The table as it is written. Raises UsageError."""
        rows = []
        if isinstance(value, str):
            rows = [row for line in csv.reader([value], skipinitialspace=True) for row in line]
        decided = [row.rpartition("=") for row in rows]
        if not decided or not all(
            row.strip() and word.strip() in self.words for row, _, word in decided
        ):
            hint = f"Write VALUE=WORD, separated by commas; the words are {', '.join(self.words)}."
            raise UsageError(f"{name} is not a table of values and words", hint)
        return str(value).strip()


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        key: section and name, `sources.legacy.base_url`.
        default: None: it has none, or it depends on other settings.
        check: the typed value of a raw or typed one; raises UsageError.
        help: one line: what it is.
        example: as the settings files show it.
        required: its section cannot be loaded without it.
        is_secret: belongs into secrets.toml.
        asks: the question that a person is asked where it is not set and nothing proves it; empty: it is not asked.
        holds_up: what rests on it: columns of `bi`, such as `bi.orders.total`, or words for what is written.
        means: what each of its words has as a consequence, in words, where that is asked.
    """

    key: str
    default: Any
    check: Check
    help: str
    example: str
    required: bool
    is_secret: bool
    asks: str = ""
    holds_up: tuple[str, ...] = ()
    means: Mapping[str, str] = field(default_factory=dict)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be; none where other values are valid."""
        return self.check.words if isinstance(self.check, OneOf) else ()

    @property
    def classes(self) -> tuple[str, ...]:
        """The words that a row of it may be, where it is a table; none otherwise."""
        return self.check.words if isinstance(self.check, TableOf) else ()

    @property
    def section(self) -> str:
        """The table of the TOML file that it belongs to."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The name within its section."""
        return self.key.rpartition(".")[2]

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return variable(self.key)

    def checked(self, value: object) -> Any:  # noqa: ANN401 # each setting has its own type
        """The typed value. Raises UsageError."""
        return self.check(named(self.key), value)


def setting(
    check: Check,
    help: str,  # noqa: A002 # as the attribute
    example: str = "",
    *,
    default: Any = MISSING,  # noqa: ANN401 # of the field's type
    is_secret: bool = False,
    asks: str = "",
    holds_up: tuple[str, ...] = (),
    means: Mapping[str, str] = MappingProxyType({}),
) -> Any:  # noqa: ANN401 # a dataclass field has the type of its value
    """Declares a setting as the field of a dataclass; without a default it is required. See `Setting`."""
    about = {
        "check": check,
        "help": help,
        "example": example,
        "required": default is MISSING,
        "is_secret": is_secret,
        "asks": asks,
        "holds_up": holds_up,
        "means": means,
    }
    return field(default=default, metadata=about)


SETTINGS: Final[dict[str, Setting]] = {}
"""Every setting by its key, in the order in which the sections declare them."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting, field))
@dataclass(frozen=True, kw_only=True)
class Section:
    """A section: each subclass is a frozen dataclass that checks its fields. None is not set and has no default."""

    prefix: ClassVar[str]
    """What precedes the names of the fields in their keys."""

    def __init_subclass__(cls, *, prefix: str) -> None:
        cls.prefix = prefix
        dataclass(frozen=True, kw_only=True)(cls)
        for item in fields(cls):
            if item.metadata:
                default = None if item.default is MISSING else item.default
                SETTINGS[prefix + item.name] = Setting(prefix + item.name, default, **item.metadata)

    def __post_init__(self) -> None:
        for item in fields(self):
            declared = SETTINGS.get(self.prefix + item.name)
            value = getattr(self, item.name)
            if declared is not None and (declared.required or value is not None):
                object.__setattr__(self, item.name, declared.checked(value))


def variable(key: str) -> str:
    """The environment variable of a key: `sources.legacy.api_key` is `SOURCES__LEGACY__API_KEY`."""
    return key.replace(".", "__").upper()


def named(key: str) -> str:
    """A key as messages name it, with its environment variable."""
    return f"{key} ({variable(key)})"


def shown(value: object) -> str:
    """A value as documents and messages show it: whole numbers without a fraction."""
    return f"{value:g}" if isinstance(value, float) else str(value)


class Secret:
    """A text that only `reveal` returns: masked when printed, not pickled."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the header that carries it."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")
