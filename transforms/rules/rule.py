"""What a rule is, and the rules that several entities share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["error", "warning", "info"]

SEVERITIES: Final[dict[Severity, str]] = {
    "error": "rows are lost to a table, cannot be told apart, or cannot be read as a whole",
    "warning": "values contradict each other or are unproven, or will fail when they are used",
    "info": "something is missing or worth a look",
}
"""What each severity means, the most severe first."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding. All texts are whole sentences.

    Attributes:
        entity: the reconciled table that it is about.
        name: unique within its entity.
        severity: see `SEVERITIES`.
        meaning: what was found, in one sentence.
        impact: what goes wrong if nobody acts.
        action: the next step, and where to take it.
    """

    entity: str
    name: str
    severity: Severity
    meaning: str
    impact: str
    action: str


def common_rules(entity: str, record: str) -> tuple[Rule, ...]:
    """The rules that every list has.

    Args:
        entity: the reconciled table.
        record: one of its rows in words, such as `a customer`.
    """
    return (
        Rule(
            entity,
            "id_missing",
            "error",
            "The row has no id, so it is not in the reconciled table.",
            f"Nothing can refer to {record} without an id, and no later run can detect whether it changed.",
            "Report it to the platform: every record should have an id. The row stays in the raw table.",
        ),
        Rule(
            entity,
            "id_duplicate",
            "error",
            "A different row has the same id; the one read last is in the table.",
            "The platform gave the same id to two records, or sent two versions of one; only one of them counts.",
            "Compare the row in the table with the other one: `ops.quarantine` has its place, the quarantine file the "
            "row. If they are different records, report it to the platform.",
        ),
        Rule(
            entity,
            "unproven",
            "warning",
            "The list is not proven complete: the platform may have records that the table lacks.",
            "Counts cover only what was read. A record that was not seen again keeps its earlier version and is not "
            "marked as missing; its `_last_seen_at` is older than that of the others.",
            "See `ops.quarantine` for rejected rows and `ops.coverage` for the walk. Pull again when the platform is "
            "less busy.",
        ),
    )


def date_rules(entity: str, name: str, field: str, effect: str) -> tuple[Rule, ...]:
    """The rules about a column of dates.

    Args:
        entity: the reconciled table.
        name: of the rules, without their suffix.
        field: the platform's name of the field or fields.
        effect: what a row without its date lacks, such as `the customer has no creation date`.
    """
    return (
        Rule(
            entity,
            f"{name}_form",
            "error",
            f"The format of {field} is not proven, so none of its values is read.",
            f"Day and month cannot be told apart, or values have different formats: {effect}.",
            "Look at the values in the raw table; the detail names the possible formats. If only the order of day and "
            "month is unclear, ask the platform and set `reconcile.date_order`.",
        ),
        Rule(
            entity,
            f"{name}_unreadable",
            "warning",
            f"A value of {field} is not in the format of its column, or is not a real date.",
            f"The date is null in the reconciled table: {effect}.",
            "Correct the date on the platform. The original text is in the table as well.",
        ),
        Rule(
            entity,
            f"{name}_zone",
            "warning",
            f"Values of {field} have no UTC offset and `reconcile.timezone` is not set.",
            "They are read as UTC, so each may be wrong by up to 14 hours.",
            "Find out which time zone the platform writes, and set `reconcile.timezone`, for example `America/Lima`.",
        ),
    )
