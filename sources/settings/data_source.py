"""Whose data it is: hosts, environment and organization of the platform.

In: what is known of a source. Out: what differs between two of them, where both are known.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where data comes from; None for what is not known.

    Attributes:
        legacy_host, public_v1_host: with the port, without the scheme.
        environment: `sandbox` or `production`.
        organization: as GET /whoami reports it.
    """

    legacy_host: str | None = None
    public_v1_host: str | None = None
    environment: str | None = None
    organization: str | None = None

    def differences(self, other: DataSource) -> list[str]:
        """What both know and is not equal, in words."""
        words: list[str] = []
        for field in fields(self):
            mine = getattr(self, field.name)
            its = getattr(other, field.name)
            if mine and its and mine != its:
                words.append(f"{field.name.replace('_', ' ')} {mine}, not {its}")
        return words

    def updated(self, newer: DataSource) -> DataSource:
        """With all that `newer` knows."""
        pairs = zip(astuple(self), astuple(newer), strict=True)
        return DataSource(*(new or old for old, new in pairs))
