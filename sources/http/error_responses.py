"""Answers outside 2xx: three shapes of error body, one error.

In: status and body of an answer. Out: an `AccessError` or `HttpRejected` that carries family, verb, path, status, code
and requestId, with a hint. The body's message is never carried: it may echo a key, a password or a customer's data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import msgspec

from sources.contract import PUBLIC_V1_AUTH_CODES, Family, Verb
from sources.errors import AccessError, ContractBroken, HttpError, HttpRejected, Unreachable
from sources.http.retries import Failure, should_retry

_CODE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_TELLING: Final = 6
"""Characters of a key that say something of it."""
_HOST: Final = re.compile(r"[A-Za-z0-9.:-]{1,253}")

ACCESS_HINTS: Final = dict(
    zip(
        PUBLIC_V1_AUTH_CODES,
        (
            "The header did not arrive: something between here and the platform removes it. Look for a proxy.",
            "The platform does not know this key: paste it again, whole, and look whether it is of this environment.",
            "The key has expired: have a new one made, and put it into sources.public_v1.api_key.",
        ),
        strict=True,
    )
)


@dataclass(frozen=True, slots=True)
class FamilyError:
    """What an error body said. `shaped` is True where it has the family's form, whatever its code."""

    code: str = ""
    request_id: str = ""
    shaped: bool = False


def read_error(family: Family, body: bytes, secrets: tuple[str, ...] = (), sent: bytes = b"") -> FamilyError:
    """Reads code and requestId out of an error body (interface, Error body shapes).

    Args:
        family: whose shapes to look for.
        body: of the answer.
        secrets: texts that no code may hold.
        sent: body of the request: a code that is one of its texts is an echo, perhaps of a password.
    """
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return FamilyError()
    found: object = None
    if isinstance(told, dict):
        errors = told.get("errors")
        found = (
            told.get("error") if family == "public_v1" else errors[0] if isinstance(errors, list) and errors else None
        )
    if not isinstance(found, dict):
        return FamilyError()

    def code(name: str) -> str:
        value = found.get(name)
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        echo = any(_in_one_another(text, secret) for secret in secrets) or f'"{text}"'.encode() in sent
        return text if _CODE.fullmatch(text) and not echo else ""

    shaped = isinstance(found.get("message"), str) or bool(code("code"))
    return FamilyError(code("code"), code("requestId"), shaped)


def _in_one_another(text: str, secret: str) -> bool:
    """Whether a code holds a secret, or is a telling part of one."""
    text, secret = text.casefold(), secret.casefold()
    return secret in text or (len(text) >= _TELLING and text in secret)


def refusal(
    family: Family, status: int, error: FamilyError, location: str, secrets: tuple[str, ...], wait_s: float | None
) -> Failure:
    """What an answer outside 2xx means, in words and with a hint."""
    if 300 <= status <= 399:
        words = f"redirected to {_host(location, secrets)}"
        hint = f"Redirects are never followed: the key would go along. Is sources.{family}.base_url the right address?"
    elif status == 401:
        words = "authentication failed"
        hint = ACCESS_HINTS.get(error.code, "") if family == "public_v1" else ""
        hint = hint or f"Look at sources.{family}.api_key: the right key, whole, of the environment of this host?"
    elif status == 403:
        words = "this key may not do this"
        scope = "Give the key the scope that the operation asks for, or use another key."
        legacy = "Look at sources.legacy.api_key: this family may also answer so when a key is wrong."
        hint = scope if family == "public_v1" else legacy
    elif status == 429:
        words, hint = "too many requests", "Try later, or with fewer at a time."
    elif status >= 500 or status == 408:
        words, hint = (
            "the platform failed",
            "Try later; if it stays so, tell the platform's makers the requestId or time.",
        )
    else:
        words, hint = "refused", f"Is sources.{family}.base_url right, its path too?" if status == 404 else ""
    return Failure(status, words, hint, status, error.code, error.request_id, wait_s)


def error_of(
    family: Family, verb: Verb, path: str, failure: Failure, attempts: int = 1, wait_max_s: float = 0.0
) -> HttpError:
    """The error that a caller gets of a failure. To be raised outside of any except block: so it has no context."""
    kind: type[HttpError] = Unreachable
    words, hint = failure.words, failure.hint
    if failure.what == "contract":
        kind = ContractBroken
    elif failure.what in (401, 403):
        kind = AccessError
    elif isinstance(failure.what, int) and not should_retry("GET", failure.what):
        kind = HttpRejected
    elif verb == "GET" and (failure.retry_after_s or 0.0) > wait_max_s:
        hint = f"The platform asks to try again in {failure.retry_after_s:.0f} s: do so then."
    if attempts > 1:
        words = f"{words}, after {attempts} attempts"
    return kind(
        words,
        hint,
        family=family,
        verb=verb,
        path=path,
        status=failure.status,
        code=failure.code,
        request_id=failure.request_id,
    )


def _host(location: str, secrets: tuple[str, ...]) -> str:
    """The host alone: path and query of a redirect may hold a key."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        return "an unreadable address"
    if not host:
        return "the same host"
    if not _HOST.fullmatch(host) or any(secret.casefold() in host for secret in secrets):
        return "an unreadable address"
    return host
