"""What a seed of a campaign came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Outcome:
    """Counts, such as of verdicts, to be added up over the seeds; and what the judge found wrong."""

    counts: Mapping[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
