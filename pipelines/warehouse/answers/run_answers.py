"""What people have answered, as a run reads it once, at its start: answers, acceptances, reviews, declared fields.

In: the settings and the files of the project. Out: the answers in force, and a hash by which two runs can be told apart
that had other answers. A run writes none of these files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from orderbridge.pipelines.warehouse.answers.accepted import FILE as ACCEPTED
from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.answers.reviews import FILE as REVIEWS
from orderbridge.pipelines.warehouse.answers.reviews import Review, read_reviews
from orderbridge.sources.contract import UNDOCUMENTED
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import (
    ANSWERS,
    DataSource,
    configured_source,
    find_root,
    given_values,
    read_answers,
)
from orderbridge.sources.settings.answers import AnswersFile
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.transforms.chance import Share
from orderbridge.transforms.questions import ANY_RIVAL, ASSUMPTION, Answer

_SECTIONS: Final = tuple(dict.fromkeys(one.section for one in SETTINGS.values() if one.asks))
_NEEDED: Final = "reconcile"
"""The section whose errors end a run that reconciles."""
_FILES: Final = ("answers.toml", ACCEPTED, REVIEWS, *(f"{name}.toml" for name in UNDOCUMENTED))


@dataclass(frozen=True, slots=True)
class RunAnswers:
    """What people have answered.

    Attributes:
        accepted: findings and changes.
        reviews: pairs of the match with the ERP.
        stored: the file of answers.
        configured: the source that the settings name.
        given: by key, the values that are set, and where.
        hash: see `answers_hash`.
    """

    accepted: Accepted
    reviews: Mapping[str, Review]
    stored: AnswersFile
    configured: DataSource
    given: Mapping[str, tuple[object, str]]
    hash: str

    @classmethod
    def read(cls) -> Self:
        """Reads all of it. Raises UsageError for a file or a setting that is not valid.

        A section that reconciling does not need may have errors: then nothing of it is known.
        """
        given = _given(_NEEDED)
        for section in _SECTIONS:
            with suppress(UsageError):
                given |= _given(section)
        return cls(
            Accepted.read(datetime.now(UTC)),
            read_reviews(),
            read_answers(),
            configured_source(),
            given,
            answers_hash(),
        )

    def in_force(self, held: DataSource) -> dict[str, Answer]:
        """The answers about a source, by the id of the question; `held` is what else is known of it.

        Answers that were given about another source, and that nobody has confirmed, are assumptions.
        """
        answers: dict[str, Answer] = {}
        for key, entry in self.stored.seen_from(self.configured.updated(held)).items():
            answers[key] = Answer(
                str(SETTINGS[key].checked(entry.value)),
                ANSWERS if entry.is_confirmed else ASSUMPTION,
                entry.at,
                entry.by,
                entry.why,
                None if entry.fits is None else Share(entry.fits, entry.rows or entry.fits),
                rival=ANY_RIVAL,  # a person has chosen it
            )
        for key, (value, origin) in self.given.items():
            if origin != ANSWERS:
                answers[key] = Answer(str(SETTINGS[key].checked(value)), origin)
        return answers


def _given(section: str) -> dict[str, tuple[object, str]]:
    """What is set of the subjects of a section, by key. Raises UsageError."""
    values = given_values(section)
    keys = {f"{section}.{name}": value for name, value in values.items()}
    return {key: value for key, value in keys.items() if SETTINGS[key].asks}


def answers_hash() -> str:
    """A hash of all files of answers and of the settings that answer a question."""
    digest = hashlib.sha256()
    folder = find_root() / ".dlt"
    for name in _FILES:
        digest.update(f"\0{name}\0".encode())
        with suppress(OSError):
            digest.update((folder / name).read_bytes())
    for section in _SECTIONS:
        with suppress(UsageError):
            digest.update(repr(sorted(_given(section).items())).encode())
    return digest.hexdigest()[:16]
