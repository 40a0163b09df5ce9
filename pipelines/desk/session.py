"""Who may see the pages: one browser, which was given an address that works once.

In: nothing. Out: the secrets of this desk. The address has a token that ends with its first use, or after ten
minutes. It is exchanged for a cookie. Cookies are sent to every port of a host, so a server of another user on this
machine could get
it: its path has a random part, which only the pages of this desk have in their addresses.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

TOKEN_LIFETIME_S: Final = 600.0

Entry = Literal["entered", "used", "expired", "wrong"]
"""What became of an attempt to enter: a token that was used before ends the desk."""


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass(slots=True)
class Session:
    """The secrets of one desk, and who has used them.

    Attributes:
        port: that the desk listens on.
        clock: of seconds that never go back.
        area: the random part of each page's path, and of the cookie's name.
        cookie: the value of the cookie.
        form_token: is in each form, and without it no form is accepted.
        has_ended: set once the desk has to end, because its address was used twice.
        touched_at: when the browser asked for a page last.
    """

    port: int
    clock: Callable[[], float] = time.monotonic
    area: str = field(default_factory=_secret)
    cookie: str = field(default_factory=_secret, repr=False)
    form_token: str = field(default_factory=_secret, repr=False)
    has_ended: threading.Event = field(default_factory=threading.Event)
    touched_at: float = 0.0
    _token: str = field(default_factory=_secret, repr=False)
    _is_used: bool = False
    _begun_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._begun_at = self.touched_at = self.clock()

    @property
    def base(self) -> str:
        """The path that all pages are below."""
        return f"/{self.area}"

    @property
    def cookie_name(self) -> str:
        """The name of the cookie: other desks, on other ports, have others."""
        return f"orderbridge-{self.port}-{self.area[:8]}"

    @property
    def address(self) -> str:
        """The address that works once."""
        return f"http://127.0.0.1:{self.port}/enter/{self._token}"

    def enter(self, token: str) -> Entry:
        """Uses the token. A second use ends the desk: the address was seen by somebody else."""
        if not _is_same(token, self._token):
            return "wrong"
        with self._lock:
            if self._is_used:
                self.has_ended.set()
                return "used"
            if self.clock() - self._begun_at > TOKEN_LIFETIME_S:
                return "expired"
            self._is_used = True
        self.touch()
        return "entered"

    def touch(self) -> None:
        """The browser asked for a page."""
        self.touched_at = self.clock()

    def is_cookie(self, value: str) -> bool:
        """Whether the value of the cookie is that of this desk. Nobody has it before the token was used."""
        return self._is_used and _is_same(value, self.cookie)

    def is_form_token(self, value: str) -> bool:
        """Whether a form is one of this desk's pages."""
        return _is_same(value, self.form_token)


def _is_same(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode())
