"""What people answered about the meaning of values: `.dlt/answers.toml`, the last place where a setting is looked up.

In: the file, and whose data the project reads. Out: the answers by the key of their setting. Each has a value, who gave
it, when, perhaps why, and the evidence that it was given on. The file begins with whose data it is about: under another
source its answers are unconfirmed. Only `orderbridge answer`, `init` and the desk write it; a run never does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import msgspec

from orderbridge.sources.disk import disk_errors, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.data_source import DataSource
from orderbridge.sources.settings.ownership import check_private
from orderbridge.sources.settings.root import UNWRITABLE_HINT, find_root, read_toml
from orderbridge.sources.settings.setting import SETTINGS

FILE: Final = "answers.toml"
_ABOUT: Final = "about"
"""The table that says whose data the answers are about."""
_HEADER: Final = """\
Answers to questions of orderbridge, written by `orderbridge answer`. Keep this file in version control.
An answer is looked up after the environment, secrets.toml and config.toml."""


class StoredAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the file.

    Attributes:
        value: of the setting.
        by: who gave it.
        at: when.
        why: the reason; may be empty.
        evidence: the counts that it was given on.
        fits, rows: how many rows fitted it then, of how many; None where nothing is counted.
        is_confirmed: False: it was given about another source, and nobody has confirmed it for this one.
    """

    value: Any
    by: str
    at: datetime
    why: str = ""
    evidence: str = ""
    fits: int | None = None
    rows: int | None = None
    is_confirmed: bool = True

    def __post_init__(self) -> None:
        if not self.by.strip():
            raise ValueError("`by` must not be empty")
        if self.at.tzinfo is None:
            msgspec.structs.force_setattr(self, "at", self.at.replace(tzinfo=UTC))


class AnswersFile(msgspec.Struct, frozen=True):
    """The whole file: whose data it is about, and the answers by key."""

    about: DataSource
    answers: Mapping[str, StoredAnswer]

    def seen_from(self, source: DataSource) -> dict[str, StoredAnswer]:
        """The answers for a source: those of another one are unconfirmed."""
        if not self.about.differences(source):
            return dict(self.answers)
        return {
            key: msgspec.structs.replace(answer, is_confirmed=False)
            for key, answer in self.answers.items()
        }


def answers_path() -> Path:
    """The file of the project."""
    return find_root() / ".dlt" / FILE


def read_answers(ignored: Collection[str] = (), path: Path | None = None) -> AnswersFile:
    """The answers of the project, or of another file; none if there is no file.

    Args:
        ignored: keys of answers that are not read.
        path: of the file; None: that of the project.

    Raises:
        UsageError: the file is not valid, or others can write to it; the message names the entry.
    """
    path = path or answers_path()
    check_private(path)
    document = dict(read_toml(path))
    try:
        about = msgspec.convert(document.pop(_ABOUT, {}), DataSource)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{path}, [{_ABOUT}]: {error}",
            "It has legacy_host, public_v1_host, environment and organization, each a text.",
        ) from None
    answers: dict[str, StoredAnswer] = {}
    for key, entry in _entries(path, document):
        if key in ignored:
            continue
        try:
            answers[key] = msgspec.convert(entry, StoredAnswer)
        except msgspec.ValidationError as error:
            hint = f"Withdraw it with: orderbridge answer {key} --withdraw"
            raise UsageError(f"{path}, [{key}]: {error}", hint) from None
    return AnswersFile(about, answers)


def answered_keys() -> set[str]:
    """The keys that have an answer in the file, valid or not. Raises UsageError for a key that is no question."""
    document = dict(read_toml(answers_path()))
    document.pop(_ABOUT, None)
    return {key for key, _ in _entries(answers_path(), document)}


def _entries(
    path: Path, table: Mapping[str, object], prefix: str = ""
) -> Iterator[tuple[str, object]]:
    """The tables with an answer, by the key of their setting. Raises UsageError."""
    asked = [key for key, setting in SETTINGS.items() if setting.asks]
    for name, entry in table.items():
        key = f"{prefix}{name}"
        is_section = any(known.startswith(f"{key}.") for known in asked)
        if key in asked:
            yield key, entry
        elif is_section and isinstance(entry, dict):
            yield from _entries(path, entry, f"{key}.")
        else:
            near = get_close_matches(key, asked, n=1)
            guess = f"Did you mean `{near[0]}`? " if near else ""
            raise UsageError(
                f"{path}: `{key}` is not a question",
                f"{guess}Known: {', '.join(asked)}. Other settings belong in config.toml.",
            )


def write_answers(changes: Mapping[str, StoredAnswer | None], source: DataSource) -> Path:
    """Adds, replaces or removes answers (None); comments and the other answers stay.

    Where the file was about another source, it is about this one from now on, and the answers that stay are marked as
    unconfirmed.

    Raises:
        UsageError: see `read_answers`; or the file cannot be written.
    """
    import tomlkit

    path = answers_path()
    before = read_answers(ignored=changes.keys())
    kept = before.seen_from(source)
    after: dict[str, StoredAnswer | None] = {**kept, **changes}
    with disk_errors(path, UNWRITABLE_HINT):
        if path.exists():
            document = tomlkit.parse(path.read_text("utf-8"))
        else:
            document = tomlkit.document()
            for line in _HEADER.splitlines():
                document.add(tomlkit.comment(line))
        about = asdict(source if before.about.differences(source) else before.about.updated(source))
        document[_ABOUT] = {name: value for name, value in about.items() if value is not None}
        for key, answer in after.items():
            if answer is None or answer != before.answers.get(key):
                _set(document, key, answer)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_private(path, tomlkit.dumps(document).encode())
    return path


def _set(document: Any, key: str, answer: StoredAnswer | None) -> None:  # noqa: ANN401 # of tomlkit
    """Sets or removes the table of an answer in a document."""
    import tomlkit

    *sections, name = key.split(".")
    table = document
    for section in sections:
        if section not in table:
            table[section] = tomlkit.table(is_super_table=True)
        table = table[section]
    if answer is None:
        table.pop(name, None)
        return
    defaults = {"why": "", "evidence": "", "fits": None, "rows": None, "is_confirmed": True}
    entry = tomlkit.table()
    for field in StoredAnswer.__struct_fields__:
        value = getattr(answer, field)
        if field not in defaults or value != defaults[field]:
            entry[field] = value
    table[name] = entry
