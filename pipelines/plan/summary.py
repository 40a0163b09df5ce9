"""`summary.md`: what a plan will do, for the person who has to agree to it.

In: the manifest and the counts. Out: Markdown, the same for the same plan; the terminal shows the same text. It
contains line numbers and column names, but no value of a cell except prices that jump.
"""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from orderbridge.pipelines.ledger.model import FINAL_STATES, STATES, State
from orderbridge.pipelines.plan import model
from orderbridge.pipelines.plan.model import Manifest, PasswordSource
from orderbridge.pipelines.plan.outcomes import NEEDS_NOTHING, Reason
from orderbridge.pipelines.plan.wording import problem_in, reason_in
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.texts import Texts, english
from orderbridge.sources.words import VERDICTS, format_time, render_text

MAX_JUMPS: Final = 20


@dataclass(slots=True)
class PlanStatistics:
    """What the summary shows and the manifest does not contain.

    Attributes:
        inputs: number of those that are sent.
        reasons, skipped: why lines were rejected, and why lines are no input.
        first_lines: of each outcome.
        jumps, jump_count: the first prices that jump (`line`, and the columns of `price_jumps` in
            `transforms.upserts.confirmed`), and the number of all.
        not_repeatable: number of operations that cannot be repeated.
        suspicious: valid values that are rarely meant.
        accepted: differences that are not listed, because a person has accepted them.
    """

    inputs: int = 0
    reasons: Sequence[Reason] = ()
    skipped: Sequence[Reason] = ()
    first_lines: Mapping[str, Sequence[int]] = field(default_factory=dict)
    jumps: list[dict[Hashable, Any]] = field(default_factory=list)
    jump_count: int = 0
    not_repeatable: int = 0
    notes: Sequence[str] = ()
    passwords: PasswordSource | None = None
    suspicious: Sequence[Reason] = ()
    notify: bool = False
    accepted: int = 0


def summary(
    manifest: Manifest,
    statistics: PlanStatistics,
    folder: Path | None,
    sent: Mapping[State, int] = {},
    *,
    is_file: bool = True,
    is_sent_at_once: bool = False,
    texts: Texts | None = None,
) -> str:
    """The text of the summary; for a terminal local times and no ids of runs, and in the language of `texts`.

    With `is_sent_at_once`, what the result of the push will show is left out.
    `folder` is that of the plan in the commands to run next: `Path()` if they are run in it, None for no commands.
    `sent`: number of its operations in each state, if it was pushed before.
    """
    texts = texts or english()
    return render_text(
        "orderbridge.pipelines.plan",
        "summary.md.j2",
        manifest=manifest,
        statistics=statistics,
        kind=KINDS[manifest.kind],
        has_unchanged=any(map(manifest.outcomes.get, NEEDS_NOTHING)),
        folder=folder,
        pushed=sent,
        is_done=bool(sent) and sent.keys() <= set(FINAL_STATES),
        files=model,
        is_file=is_file,
        is_sent_at_once=is_sent_at_once,
        states=STATES,
        verdicts=VERDICTS,
        minute=_utc_minute if is_file else _local_time,
        quote=lambda path: shlex.quote(str(path)),
        t=texts,
        lookups=", ".join(Path(file.path).name for file in manifest.lookups),
        rejected=lambda reason: problem_in(texts, reason.code, reason.words),
        skipped=lambda reason: reason_in(texts, reason.words),
        suspicious=lambda reason: texts(f"suspicious.{reason.code}", field=reason.field),
    )


def _utc_minute(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _local_time(at: str) -> str:
    return format_time(datetime.fromisoformat(at).timestamp())
