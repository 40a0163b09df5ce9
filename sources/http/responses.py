"""What a request came to: the answer of a read, the outcome of a write. Bodies are kept out of every repr."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sources.errors import HttpError
from sources.http.retries import Failure


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """What came back of a read, 2xx. `body` is decoded and whole; `elapsed_s` is that of the last request alone."""

    status: int
    body: bytes = field(repr=False)
    elapsed_s: float
    attempts: int
    throttled: bool


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What became of a write (design §8, Ledger).

    Attributes:
        state: `not_sent`: no byte of it left. `answered`: 2xx; 401, 403 or 429; or another 4xx with the family's own
            error body. `in_doubt`: all else once bytes may have left, answers such as 5xx, 3xx or a 404 of a stranger
            among it.
        status: of the answer, where one came.
        body: of a 2xx that came whole, else empty.
        error: what a person is told; None for 2xx.
        retry_after_s: what the platform asked to wait.
    """

    state: Literal["not_sent", "answered", "in_doubt"]
    status: int | None = None
    body: bytes = field(default=b"", repr=False)
    error: HttpError | None = None
    retry_after_s: float | None = None
    elapsed_s: float = 0.0


@dataclass(slots=True)
class RawResponse:
    """Any answer as it came: `body` is what came whole, and `broken` says what was wrong with it otherwise."""

    status: int
    body: bytes = field(repr=False)
    location: str = field(repr=False)
    retry_after: str | None
    broken: Failure | None = None

    @property
    def fine(self) -> bool:
        """Any 2xx."""
        return 200 <= self.status <= 299
