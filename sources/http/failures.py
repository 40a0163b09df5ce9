"""Requests that brought nothing usable, as values: what happened, whether anything was sent, what to do.

In: an exception of the transport, or a response outside 2xx. Out: a `Failure`: a value and not an exception, so that it
carries no traceback, hence no secret.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import Final, Literal

import httpx

from sources.errors import ConnectionReason, causes

FailureKind = Literal["dns", "connect", "timeout", "protocol", "broken_body", "certificate", "contract"]
"""A failure without a status. A `certificate` that does not verify and a broken `contract` are permanent."""

NOT_SENT: Final = ("dns", "connect", "certificate")
"""Kinds that prove that no byte of the request was sent."""
_CONNECT_ERRORS: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)


class BrokenBody(Exception):
    """A body that is cut off or is not what its headers announce; another request may bring a whole one."""


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
        reason: why no connection was made.
    """

    what: int | FailureKind
    words: str
    hint: str = ""
    status: int | None = None
    code: str = ""
    request_id: str = ""
    retry_after_s: float | None = None
    reason: ConnectionReason | None = None


def connection_failure(error: httpx.TransportError, host: str, seconds: float, read_s: float) -> Failure:
    """Classifies a transport error, its causes attached, in words of our own: the library's may quote headers.

    `seconds` is the limit of the request as a whole, `read_s` that of a single read.
    """
    if not isinstance(error, _CONNECT_ERRORS):
        if isinstance(error, httpx.TimeoutException):
            words = f"no complete response within {round(seconds, 1):g} s, or no data for {read_s:g} s"
            return Failure("timeout", words, "Try again later; sources.http.timeout_s sets the limit.")
        return Failure("protocol", "the connection broke off, or what arrived is not HTTP", "Try again later.")
    return unconnected(error, host)


def unconnected(error: BaseException, host: str) -> Failure:
    """Why no connection to a host was made, from what the socket or the transport raised, its causes attached."""
    reason = _connection_reason(error)
    words, hint = _CONNECTION_WORDS[reason]
    no_answer = any(isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN for cause in causes(error))
    kind: FailureKind = "connect" if no_answer or reason not in {"dns", "certificate"} else reason
    detail = _system_words(error) if reason == "network" else ""
    return Failure(kind, f"cannot connect to {host}: {words}{detail}", hint, reason=reason)


_ADDRESS_HINT: Final = "Check the host in base_url, and the network."
_CONNECTION_WORDS: Final[dict[ConnectionReason, tuple[str, str]]] = {
    "dns": ("the host name does not resolve", _ADDRESS_HINT),
    "refused": ("connection refused", "Check host and port in base_url; if they are right, try again later."),
    "timeout": ("timed out", _ADDRESS_HINT),
    "certificate": (
        "its certificate does not verify",
        "If a proxy of your network opens TLS, or the host has a private authority, "
        "name its certificate (PEM) in sources.http.ca_file.",
    ),
    "tls": ("the TLS handshake failed", "Check that the host serves https on this port."),
    "proxy": ("the proxy did not let the request through", "Check sources.http.proxy, with user and password."),
    "network": ("network error", _ADDRESS_HINT),
}


def _connection_reason(error: BaseException) -> ConnectionReason:
    """Why no connection was made, from the exceptions behind an error."""
    reasons: tuple[tuple[type[BaseException], ConnectionReason], ...] = (
        (ssl.SSLCertVerificationError, "certificate"),
        (httpx.ProxyError, "proxy"),
        (socket.gaierror, "dns"),
        (UnicodeError, "dns"),
        (ConnectionRefusedError, "refused"),
        (TimeoutError, "timeout"),
        (httpx.ConnectTimeout, "timeout"),
        (ssl.SSLError, "tls"),
    )
    chain = causes(error)
    return next((reason for kind, reason in reasons if any(isinstance(cause, kind) for cause in chain)), "network")


def _system_words(error: BaseException) -> str:
    """The operating system's words for an error number: they hold nothing of a request."""
    words = next((cause.strerror for cause in causes(error) if isinstance(cause, OSError) and cause.strerror), "")
    return f" ({words})" if words else ""
