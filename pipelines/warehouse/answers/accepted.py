"""What a person has decided about findings, in a file of the project that can be kept in version control.

In: `.dlt/accepted.toml`. Out: which findings are accepted or have another severity, and since when a change is
accepted. An accepted finding is counted and not listed. A finding that compares with an earlier state (`COMPARED`) is
accepted differently: the state that was recorded before no longer counts, and the next run compares with the state that
it finds. Nothing accepts itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Annotated, Any, Final, Self

import msgspec

from orderbridge.pipelines.warehouse.sql import sql_text
from orderbridge.sources.disk import write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.ownership import check_private
from orderbridge.sources.settings.root import find_root, read_toml
from orderbridge.transforms.rules import RULES, Severity, find_rule

FILE: Final = "accepted.toml"
COMPARED: Final = frozenset(
    {"orders.form_changed", "orders.field_changed", "orders.matched_share_fell"}
    | {
        f"{rule.entity}.{rule.name}"
        for rule in RULES
        if rule.name in ("amounts_lost", "values_gone", "values_jumped")
    }
)
"""Rules that compare with the last accepted state."""
SAFE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_. \[\]-]{0,99}")
"""A path of fields that can be shown; any other could be a value, such as an e-mail address as the name of a field."""
_TABLES: Final = frozenset({"accepted", "lists", "sources", "codes"})
"""The tables of the file; all but the first are read by `accepted_changes`."""
RULE_NAMES: Final = frozenset(f"{rule.entity}.{rule.name}" for rule in RULES)


class Acceptance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the file.

    Attributes:
        rule: `entity.rule`, as in `reconciled.exceptions`.
        subject: the id of a record, or how the detail begins (`orders: currency`); empty: all findings of the rule, or
            those of `place`.
        place: the id of a record, or the subject of a finding, exactly; empty: see `subject`.
        who: accepted it.
        when: it was accepted.
        why: the reason; may be empty.
        until: the last day, in UTC; None: without an end.
        severity: that the findings have instead of that of their rule; None: they are accepted.
        up_to: so many findings are accepted, and all of them listed where there are more; None: any number.
    """

    rule: str
    who: str
    when: datetime
    why: str = ""
    subject: str = ""
    place: str = ""
    until: date | None = None
    severity: Severity | None = None
    up_to: Annotated[int, msgspec.Meta(ge=0)] | None = None

    @property
    def about(self) -> str:
        """What of the rule the entry is about; empty: all of it."""
        return self.place or self.subject

    def __post_init__(self) -> None:
        if find_rule(self.rule) is None:
            raise ValueError(f"there is no rule {self.rule!r}; the rules are in docs/rules.md")
        if not self.who.strip():
            raise ValueError("`who` must not be empty")
        if self.subject and self.place:
            raise ValueError("`subject` cannot be combined with `place`")
        if self.up_to is not None and (self.severity is not None or self.rule in COMPARED):
            raise ValueError(
                "`up_to` cannot be combined with `severity` or with a rule that compares with an earlier state"
            )
        if self.when.tzinfo is None:
            msgspec.structs.force_setattr(self, "when", self.when.replace(tzinfo=UTC))

    def holds(self, at: datetime) -> bool:
        """Whether it was made before an instant and has not ended by then."""
        return self.when <= at and (
            self.until is None or at < datetime.combine(self.until, time.max, UTC)
        )

    def covers(self, rule: str, subject: str) -> bool:
        """Whether it is about a finding, by its rule and its id or detail."""
        if self.place:
            return rule == self.rule and self.place in (subject, place_subject(subject))
        named = self.subject in ("", subject) or subject.startswith(f"{self.subject}:")
        return named and rule == self.rule

    @property
    def about_sql(self) -> str:
        """Whether a finding is one that it is about, as SQL."""
        if not self.place:
            return is_about(self.rule, [self.subject])
        return f"({is_about(self.rule, [''])} AND coalesce(entity_id, subject) = {sql_text(self.place)})"


class Accepted:
    """The acceptances that hold at an instant, `at`."""

    def __init__(self, acceptances: Sequence[Acceptance], at: datetime) -> None:
        self.at = at
        self._all = [one for one in acceptances if one.holds(at)]

    @classmethod
    def read(cls, at: datetime) -> Self:
        """Reads the acceptances of the project. Raises UsageError, see `read_acceptances`."""
        return cls(read_acceptances(accepted_file()), at)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is accepted."""
        return not self._all

    def severity_sql(self) -> str:
        """The severity of a finding (columns of `FINDINGS`), as SQL: of several entries, one with a subject counts."""
        entries = sorted(
            (one for one in self._all if one.severity is not None),
            key=lambda one: not one.about,
        )
        cases = [f"WHEN {one.about_sql} THEN '{one.severity}'" for one in entries]
        return f"CASE {' '.join(cases)} ELSE severity END" if cases else "severity"

    def accepted_sql(self, findings: str) -> str:
        """Whether a finding of a table (SQL) is accepted, as SQL; one of `COMPARED` never is."""
        wanted: dict[str, list[str]] = {}
        limited = ["false"]
        for one in self._all:
            if one.up_to is not None:
                about = one.about_sql
                limited.append(
                    f"{about} AND (SELECT count(*) FROM {findings} WHERE {about}) <= {one.up_to}"
                )
            elif one.severity is None and one.rule not in COMPARED and one.place:
                limited.append(one.about_sql)
            elif one.severity is None and one.rule not in COMPARED:
                wanted.setdefault(one.rule, []).append(one.subject)
        return " OR ".join(
            [*limited, *(is_about(rule, subjects) for rule, subjects in wanted.items())]
        )

    def is_changed(self, rule: str, subject: str, recorded_at: datetime | None) -> bool:
        """Whether a state that was recorded at an instant no longer counts, since a person accepted its change."""
        return any(
            one.severity is None
            and one.covers(rule, subject)
            and (recorded_at is None or one.when > recorded_at)
            for one in self._all
        )


def place_subject(place: str) -> str:
    """A place as the subject of a finding: a name that could be personal data is a hash of it."""
    table, separator, name = place.partition(": ")
    if not separator or SAFE_NAME.fullmatch(name):
        return place
    return f"{table}: #{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def is_about(rule: str, subjects: Sequence[str]) -> str:
    """Whether a finding is one of a rule, and of one of the subjects, as SQL."""
    entity, _, name = rule.partition(".")
    is_rule = f"entity = '{entity}' AND rule = '{name}'"
    if "" in subjects:
        return f"({is_rule})"
    pattern = sql_text(f"(?s)({'|'.join(map(re.escape, subjects))})(:.*)?")
    texts = (
        f"coalesce(regexp_full_match({text}, {pattern}), false)" for text in ("entity_id", "detail")
    )
    return f"({is_rule} AND ({' OR '.join(texts)}))"


def accepted_file() -> Path:
    """The file of the project."""
    return find_root() / ".dlt" / FILE


def read_acceptances(path: Path) -> list[Acceptance]:
    """The entries of a file, in their order; none if there is no such file.

    Raises:
        UsageError: the file is not valid, or others can write to it; the message names the entry.
    """
    check_private(path)
    document = read_toml(path)
    if unknown := document.keys() - _TABLES:
        raise UsageError(
            f"{path}: {min(unknown)!r} is not known", "Its entries are tables [[accepted]]."
        )
    entries: Any = document.get("accepted", [])
    if not isinstance(entries, list):
        raise UsageError(
            f"{path}: `accepted` is not a list of tables",
            "Write each entry as a table [[accepted]].",
        )
    made: list[Acceptance] = []
    for number, entry in enumerate(entries, 1):
        try:
            made.append(msgspec.convert(entry, Acceptance, strict=True))
        except msgspec.ValidationError as error:
            hint = "Each entry has rule, who and when, and may have why, place, subject and until."
            raise UsageError(f"{path}, entry {number} of [[accepted]]: {error}", hint) from None
    return made


def write_acceptances(path: Path, entries: Sequence[Acceptance]) -> None:
    """Writes the file; comments and the form of entries that stay are kept.

    Raises:
        UsageError: see `read_acceptances`.
        OSError: it cannot be written.
    """
    import tomlkit

    kept = read_acceptances(path)
    document = tomlkit.parse(path.read_text("utf-8")) if path.exists() else tomlkit.document()
    if not kept:  # an empty list could not take tables
        document.pop("accepted", None)
    tables: Any = document.setdefault("accepted", tomlkit.aot())
    for n in reversed(range(len(kept))):
        if kept[n] not in entries:
            del tables[n]
    for entry in entries:
        if entry not in kept:
            values = {name: getattr(entry, name) for name in Acceptance.__struct_fields__}
            tables.append(
                tomlkit.item(
                    {name: value for name, value in values.items() if value not in ("", None)}
                )
            )
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(path, tomlkit.dumps(document).encode())
