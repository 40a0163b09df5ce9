"""Requests that brought nothing usable, as values: what happened, whether anything was sent, what to do.

In: an exception of the transport, or a response outside 2xx with the error body of its family. Out: a `Failure`: a
value and not an exception, so that it carries no traceback, hence no secret; and the platform's own words, for private
files.
"""

from __future__ import annotations

import html
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

import httpx
import msgspec

from orderbridge.sources.contract import PUBLIC_V1_AUTH_CODES, Family
from orderbridge.sources.errors import ConnectionReason, causes
from orderbridge.sources.http.masking import MASK

FailureKind = Literal[
    "dns", "connect", "timeout", "protocol", "broken_body", "certificate", "contract"
]
"""A failure without a status. A `certificate` that does not verify and a broken `contract` are permanent."""

NOT_SENT: Final = ("dns", "connect", "certificate")
"""Kinds that prove that no byte of the request was sent."""
_CONNECT_ERRORS: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
_CONNECTION_REASONS: Final[tuple[tuple[type[BaseException], ConnectionReason], ...]] = (
    (ssl.SSLCertVerificationError, "certificate"),
    (httpx.ProxyError, "proxy"),
    (socket.gaierror, "dns"),
    (UnicodeError, "dns"),
    (ConnectionRefusedError, "refused"),
    (TimeoutError, "timeout"),
    (httpx.ConnectTimeout, "timeout"),
    (ssl.SSLError, "tls"),
)
"""What the exceptions behind an error show, the most telling first."""
_ADDRESS_HINT: Final = "Check the network. To change the host: orderbridge init {setting}"
_CONNECTION_WORDS: Final[dict[ConnectionReason, tuple[str, str]]] = {
    "dns": ("the host name does not resolve", _ADDRESS_HINT),
    "refused": (
        "connection refused",
        "If host and port are right, try again later. To change them: orderbridge init {setting}",
    ),
    "timeout": ("timed out", _ADDRESS_HINT),
    "certificate": (
        "its certificate does not verify",
        "If a proxy of your network opens TLS, or the host has a private authority, "
        "name its certificate (PEM) in sources.http.ca_file.",
    ),
    "tls": (
        "the TLS handshake failed",
        "Check that the host serves https on this port. To change it: orderbridge init {setting}",
    ),
    "proxy": (
        "the proxy did not let the request through",
        "Check sources.http.proxy, with user and password.",
    ),
    "network": ("network error", _ADDRESS_HINT),
}
_CODE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_HOST: Final = re.compile(r"[A-Za-z0-9.:-]{1,253}")
MESSAGE_MAX: Final = 1_000
"""Characters kept of the platform's words."""
MESSAGE_BYTES_MAX: Final = 100_000
_PASSWORDS: Final = re.compile(r'"password"\s*:\s*"((?:[^"\\]|\\.)*)"')
_OWN_SECRETS: Final = re.compile(
    r"""(?i)((?:pass\w*|pwd|contrase\w*|secret|token|api.?key)["']?\s*(?:=|:(?=\s*["']))\s*)"""
    r"""("[^"]*"|'[^']*'|[^\s"'&,;<]+)"""
)
"""A password or key that the platform writes beside its name: after `=`, or quoted after a colon."""
_PLACES: Final = ("field", "path", "property", "param", "pointer", "loc")
"""Members that name the field which an error is about."""
_NO_MESSAGES: Final = (
    "code",
    "status",
    "statuscode",
    "type",
    "requestid",
    "traceid",
    "timestamp",
    "id",
)
_MESSAGE: Final = re.compile(
    "(?i)mess?age|msg|error|detail|descri|reason|title|fault|fail|hint|problem|motiv"
)
_ACCESS_HINTS: Final = (
    "The header did not arrive: something between here and the platform removes it. Look for a proxy.",
    "The platform does not know this key: paste it again, whole, and check that it is of this environment: "
    "orderbridge init sources.public_v1.api_key",
    "The key has expired: create a new one, then: orderbridge init sources.public_v1.api_key",
)
ACCESS_HINTS: Final = dict(zip(PUBLIC_V1_AUTH_CODES, _ACCESS_HINTS, strict=True))


class BrokenBody(Exception):
    """A body that is cut off or is not what its headers announce; another request may bring a whole one.

    Attributes:
        hint: what to do about it, where that is known.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UnacceptableBody(Exception):
    """A body that another request would not improve: too large, or in an encoding that was not asked for."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that brought nothing usable.

    Attributes:
        what: the status, or the kind where there was none or it does not matter.
        words: what happened, for a person.
        hint: what to do about it.
        status, code, request_id: of the response, where there was one.
        retry_after_s: seconds that the platform asked to wait.
        is_foreign: a 401 or 403 that is not in the form of the API: perhaps of somebody in between.
        reason: why no connection was made.
    """

    what: int | FailureKind
    words: str
    hint: str = ""
    status: int | None = None
    code: str = ""
    request_id: str = ""
    retry_after_s: float | None = None
    is_foreign: bool = False
    reason: ConnectionReason | None = None


def connection_failure(
    error: httpx.TransportError, host: str, seconds: float, read_s: float, setting: str
) -> Failure:
    """Classifies a transport error, its causes attached, in words of our own: the library's may quote headers.

    `seconds` is the limit of the request as a whole, `read_s` that of a single read; `setting` has the address.
    """
    if not isinstance(error, _CONNECT_ERRORS):
        if isinstance(error, httpx.TimeoutException):
            words = (
                f"no complete response within {round(seconds, 1):g} s, or no data for {read_s:g} s"
            )
            return Failure(
                "timeout", words, "Try again later; sources.http.timeout_s sets the limit."
            )
        return Failure(
            "protocol", "the connection broke off, or what arrived is not HTTP", "Try again later."
        )
    reason = _connection_reason(error)
    words, hint = _CONNECTION_WORDS[reason]
    hint = hint.format(setting=setting)
    no_answer = any(
        isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN
        for cause in causes(error)
    )
    kind: FailureKind = "connect" if no_answer or reason not in {"dns", "certificate"} else reason
    detail = _system_words(error) if reason == "network" else ""
    return Failure(kind, f"cannot connect to {host}: {words}{detail}", hint, reason=reason)


def _connection_reason(error: BaseException) -> ConnectionReason:
    """Why no connection was made, from the exceptions behind an error."""
    chain = causes(error)
    for kind, reason in _CONNECTION_REASONS:
        if any(isinstance(cause, kind) for cause in chain):
            return reason
    return "network"


def _system_words(error: BaseException) -> str:
    """The operating system's words for an error number: they hold nothing of a request."""
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return f" ({cause.strerror})"
    return ""


@dataclass(frozen=True, slots=True)
class FamilyError:
    """The content of an error body. `shaped` is True if it has the family's form, whatever its code."""

    code: str = ""
    request_id: str = ""
    shaped: bool = False


def read_error(family: Family, body: bytes, sent: bytes = b"") -> FamilyError:
    """Reads code and requestId from an error body in a family's shape (interface, Error body shapes).

    A code with something masked in it is none. One that is equal to a text of the request's body (`sent`) is an echo,
    perhaps of a password.

    Args:
        family: whose shape it has.
        body: with its secrets masked.
        sent: body of the request.
    """
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return FamilyError()
    error: object = None
    if isinstance(document, dict):
        errors = document.get("errors")
        legacy = errors[0] if isinstance(errors, list) and errors else None
        error = document.get("error") if family == "public_v1" else legacy
    if not isinstance(error, dict):
        return FamilyError()

    def code(name: str) -> str:
        value = error.get(name)
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        is_echo = f'"{text}"'.encode() in sent
        return text if _CODE.fullmatch(text) and not is_echo else ""

    shaped = isinstance(error.get("message"), str) or bool(code("code"))
    return FamilyError(code("code"), code("requestId"), shaped)


def sent_passwords(sent: bytes) -> Iterator[str]:
    """The passwords in the body of a request, which its answer may repeat."""
    for password in _PASSWORDS.findall(sent.decode("utf-8", "replace")):
        yield msgspec.json.decode(f'"{password}"')


def platform_message(body: bytes) -> str:
    """The platform's own words in a response of any shape: every message, with the field that it names; one line.

    For private files alone: they may contain a customer's data.

    Args:
        body: with its secrets masked.
    """
    text = body[:MESSAGE_BYTES_MAX].decode("utf-8", "replace")
    try:
        text = "; ".join(dict.fromkeys(_messages(msgspec.json.decode(body))))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = re.sub(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>", " ", text)
    text = _OWN_SECRETS.sub(rf"\1{MASK}", html.unescape(text))
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= MESSAGE_MAX else f"{text[: MESSAGE_MAX - 1]}…"


def _messages(value: object, name: str = "", is_error: bool = False) -> Iterator[str]:
    """The texts that describe an error, in the order of the body: those of telling names, and all within an error."""
    if isinstance(value, dict):
        yield from _messages_of_object(value, is_error)
    elif isinstance(value, list):
        for item in value:
            yield from _messages(item, name, is_error)
    elif isinstance(value, str) and value.strip() and is_error:
        yield value if _MESSAGE.search(name) else f"{name}: {value}"


def _messages_of_object(value: dict[str, object], is_error: bool) -> Iterator[str]:
    places = [value[key] for key in _PLACES if isinstance(value.get(key), str) and value[key]]
    for key, inner in value.items():
        if key in _PLACES or key.casefold() in _NO_MESSAGES:
            continue
        is_about_error = is_error or bool(_MESSAGE.search(key))
        for text in _messages(inner, key, is_about_error):
            has_place = bool(places) and isinstance(inner, str)
            yield f"{places[0]}: {text}" if has_place else text


def failure_of_status(
    family: Family,
    status: int,
    error: FamilyError,
    location: str,
    wait_s: float | None,
) -> Failure:
    """What a response outside 2xx means, with a hint. `location` has its secrets masked."""
    section = f"sources.{family}"
    new_address = f"To change it: orderbridge init {section}.base_url"
    new_key = f"To change it: orderbridge init {section}.api_key"
    if 300 <= status <= 399:
        words = f"redirected to {_host(location)}"
        hint = f"Redirects are not followed: they would pass the key on. Check {section}.base_url. {new_address}"
    elif status == 401:
        words = "authentication failed"
        hint = ACCESS_HINTS.get(error.code, "") if family == "public_v1" else ""
        if not hint:
            check = (
                f"Check {section}.api_key: the right key, whole, of the environment of this host."
            )
            hint = f"{check} {new_key}"
    elif status == 403:
        words = "this key is not permitted to do this"
        hint = "Give the key the scope that the operation requires, or use another key."
        if family == "legacy":
            check = "Check sources.legacy.api_key: the legacy API may also answer so when a key is wrong."
            hint = f"{check} {new_key}"
    elif status == 429:
        words = "too many requests"
        hint = "Try again later, or with fewer requests at a time."
    elif status >= 500 or status == 408:
        words = "the platform failed"
        hint = "Try again later; if it persists, report the requestId or the time to the platform."
    elif status == 404:
        words = "not found"
        hint = f"Check {section}.base_url, its path included. {new_address}"
    else:
        words = "request rejected"
        hint = f"Check {section}.base_url and {section}.page_limit; "
        hint += "if they are right, report the code or the requestId to the platform."
    return Failure(status, words, hint, status, error.code, error.request_id, wait_s)


def _host(location: str) -> str:
    """The host alone: path and query of a redirect may contain a key."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        return "an unreadable address"
    if not host:
        return "the same host"
    return host if _HOST.fullmatch(host) else "an unreadable address"
