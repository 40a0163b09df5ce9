"""The result of a request: the response to a read, the outcome of a write. Bodies are in no repr."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sources.errors import HttpError
from sources.http.failures import Failure


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """A 2xx response to a read. `body` is decoded and whole; `elapsed_s` covers the last request alone."""

    status: int
    body: bytes = field(repr=False)
    elapsed_s: float
    attempts: int
    throttled: bool


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What happened to a write (docs/in-doubt.md).

    Attributes:
        state: `not_sent`: no byte of it left. `answered`: 201, 204, or another 2xx whose body arrived whole; 401, 403
            or 429; or another 4xx with the family's own error body. `in_doubt`: everything else once bytes may have
            left, such as 5xx, 3xx, a 404 of some other server, or a 200 whose body is broken.
        status: of the response, if there was one.
        body: of a 2xx, decoded; empty if it is broken.
        content_type: of a 2xx, lower case and without parameters; empty if there was none.
        is_broken: the body of a 2xx was cut off, not decodable, or empty although a content was announced.
        error: for a person; None for `answered` with 2xx.
        message: the platform's own words about what went wrong, without keys and passwords; for private files alone.
        retry_after_s: what the platform asked to wait.
    """

    state: Literal["not_sent", "answered", "in_doubt"]
    status: int | None = None
    body: bytes = field(default=b"", repr=False)
    content_type: str = ""
    is_broken: bool = False
    error: HttpError | None = None
    message: str = field(default="", repr=False)
    retry_after_s: float | None = None
    elapsed_s: float = 0.0


@dataclass(slots=True)
class RawResponse:
    """A response as received: `body` is what arrived whole, otherwise `broken` holds what was wrong with it.

    `settles_at_once`: the platform says that no write takes effect after its response, as the built-in stand-in does.
    """

    status: int
    body: bytes = field(repr=False)
    content_type: str
    location: str = field(default="", repr=False)
    retry_after: str | None = None
    broken: Failure | None = None
    settles_at_once: bool = False

    @property
    def is_success(self) -> bool:
        """Any 2xx."""
        return 200 <= self.status <= 299
