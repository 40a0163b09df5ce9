"""The platform over HTTP: auth by family, deadlines, retry by verb, caps, no redirects.

In: a family, its host and key; verbs, paths, parameters. Out: checked bodies of reads (`get`), honest outcomes of
writes (`send`), or an error without a secret. Only this module and `transport` import httpx. Requests go to a
transport itself: what httpx's client adds (cookies, redirects, proxies of the environment, a log line with the whole
address) is what must not happen here, and costs time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType
from typing import Final, Generic, Literal, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

import httpx

from sources.contract import PUBLIC_V1_PREFIX, Family, Verb
from sources.errors import HttpError, Stopped
from sources.http.body import BodyRefused, Caps, Timeouts, decode, read_wire, unverified
from sources.http.error_responses import FamilyError, error_of, read_error, refusal
from sources.http.responses import RawResponse, ReadResponse, WriteOutcome
from sources.http.retries import BrokenBody, Failure, Kind, RetryPolicy, retry_after_s, retrying
from sources.http.transport import Transport
from sources.urls import address, checked_base, checked_key

__all__ = ["BrokenBody", "Caps", "Client", "ReadResponse", "RetryPolicy", "Timeouts", "WriteOutcome"]

T = TypeVar("T")
log = logging.getLogger("orderbridge.client")

STOP_POLL_S: Final = 0.1
_NOTHING_LEFT: Final = ("connect", "certificate")
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)


@dataclass(slots=True)
class _Call(Generic[T]):
    """One `get` and its attempts."""

    url: str
    check: Callable[[bytes], T]
    budget_until: float
    attempts: int = 0
    throttled: bool = False
    elapsed_s: float = 0.0


class _KeyAuth(httpx.Auth):
    """Puts the key into its family's header, and shows it to nobody."""

    def __init__(self, family: Family, key: str) -> None:
        self._header = ("api-key", key) if family == "legacy" else ("Authorization", f"Bearer {key}")
        self.secrets = (key,)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        name, value = self._header
        request.headers[name] = value
        yield request

    def __repr__(self) -> str:
        return "_KeyAuth(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled")


class Client:
    """One family's platform; safe to use from several threads; a context manager.

    Closing it ends what its threads wait for: their calls raise Stopped.

    Args:
        family: decides the header of the key and the prefix of the paths.
        base_url: https, or http on loopback; without `/public/v1`.
        api_key: never shown, logged or raised.
        timeouts, caps, retry: bounds.
        trust_env: take the environment's proxies and certificates.
        stop: once set, waits end and calls raise Stopped.
        transport: in place of the network (tests).

    Raises:
        UsageError: an address or a key that cannot be used.
    """

    def __init__(
        self,
        family: Family,
        base_url: str,
        api_key: str,
        *,
        timeouts: Timeouts | None = None,
        caps: Caps | None = None,
        retry: RetryPolicy | None = None,
        trust_env: bool = False,
        stop: threading.Event | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.family: Family = family
        self._base = checked_base(family, base_url) + (PUBLIC_V1_PREFIX if family == "public_v1" else "")
        self._auth = _KeyAuth(family, checked_key(family, api_key))
        self._timeouts, self._caps, self._retry = timeouts or Timeouts(), caps or Caps(), retry or RetryPolicy()
        self._stop = stop or threading.Event()
        self._closed = threading.Event()
        self._transport = transport or Transport(self._base, self._timeouts, trust_env=trust_env)
        self._headers = [("Accept", "application/json"), ("Accept-Encoding", "gzip"), ("User-Agent", "orderbridge")]
        self._retrying = retrying("GET", self._retry, self._sleep)

    def __repr__(self) -> str:
        return f"Client({self.family!r}, {urlsplit(self._base).hostname!r}, api_key=***)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes every connection; calls under way raise Stopped."""
        self._closed.set()
        self._transport.close()

    def get(
        self, path: str, params: Mapping[str, str | int] | None = None, *, check: Callable[[bytes], T]
    ) -> tuple[T, ReadResponse]:
        """Reads; again where that may help (design §7).

        Args:
            path: under the family's base, without query.
            params: the query; it appears in no error and no log.
            check: opens the body. It raises BrokenBody where another request may bring a better one; what else it
                raises passes through.

        Returns:
            What `check` made of the body, and the answer.

        Raises:
            AccessError: 401 or 403. Refused: another answer that no retry mends, or a redirect.
            Unreachable: nothing usable after every retry. ContractBroken: a body too large or oddly encoded.
            Stopped: told to stop, or closed.
        """
        url = address(self._base, path, params)
        call = _Call(url, check, monotonic() + self._retry.budget_s)
        result: tuple[T, ReadResponse] | Failure = self._retrying(self._attempt, call, path)
        if isinstance(result, Failure):
            self._check_stop()
            raise self._error("GET", path, result, call.attempts)
        return result

    def send(self, verb: Literal["POST", "PATCH"], path: str, json_body: bytes) -> WriteOutcome:
        """Writes, with one attempt: whether another may follow is the ledger's to know. See Outcome.

        Raises:
            Stopped: told to stop, or closed, before anything was sent.
        """
        url = address(self._base, path, None)
        self._check_stop()
        began = monotonic()
        reply = self._exchange(verb, url, json_body, self._timeouts.total_s)
        elapsed_s = monotonic() - began
        if isinstance(reply, Failure):
            error = self._error(verb, path, reply)
            return WriteOutcome(
                "not_sent" if reply.what in ("connect", "certificate") else "in_doubt", error=error, elapsed_s=elapsed_s
            )
        if reply.fine:
            return WriteOutcome("answered", reply.status, reply.body, elapsed_s=elapsed_s)
        told, failure = self._refusal(reply, json_body)
        settled = reply.status in (401, 403, 429) or (
            400 <= reply.status <= 499 and reply.status != 408 and told.shaped
        )
        return WriteOutcome(
            "answered" if settled else "in_doubt",
            reply.status,
            error=self._error(verb, path, failure),
            retry_after_s=failure.retry_after_s,
            elapsed_s=elapsed_s,
        )

    def _attempt(self, call: _Call[T], path: str) -> tuple[T, ReadResponse] | Failure:
        """One request of a read. Failures are values: an exception would carry the request along, key and all."""
        self._check_stop()
        call.attempts += 1
        began = monotonic()
        reply = self._exchange("GET", call.url, b"", min(self._timeouts.total_s, call.budget_until - began))
        call.elapsed_s = monotonic() - began
        if isinstance(reply, Failure):
            failure = reply
        elif not reply.fine:
            failure = self._refusal(reply)[1]
            call.throttled |= reply.status == 429
        elif reply.broken is not None:
            failure = reply.broken
        else:
            try:
                opened = call.check(reply.body)
            except BrokenBody as error:
                failure = Failure("broken_body", f"the body is broken: {error}", status=reply.status)
            else:
                return opened, ReadResponse(reply.status, reply.body, call.elapsed_s, call.attempts, call.throttled)
        log.info("%s GET %s, attempt %d: %s", self.family, path, call.attempts, failure.words)
        return failure

    def _refusal(self, reply: RawResponse, sent: bytes = b"") -> tuple[FamilyError, Failure]:
        told = read_error(self.family, reply.body, self._auth.secrets, sent)
        wait = retry_after_s(reply.retry_after, datetime.now(UTC))
        return told, refusal(self.family, reply.status, told, reply.location, self._auth.secrets, wait)

    def _exchange(self, verb: Verb, url: str, body: bytes, seconds: float) -> RawResponse | Failure:
        """One request and its answer, read to the end, within `seconds`."""
        try:
            return self._request(verb, url, body, monotonic() + seconds)
        except httpx.TransportError as error:
            failure = self._failed(error, seconds)
        except Exception:
            # a connection closed from another thread fails in ways that nobody promised
            if not self._closed.is_set():
                raise
            failure = Failure("protocol", "the client was closed")
        return failure

    def _request(self, verb: Verb, url: str, body: bytes, deadline: float) -> RawResponse | Failure:
        extensions = {"deadline": deadline}
        request = httpx.Request(verb, url, headers=self._headers, extensions=extensions, content=body or None)
        if body:
            request.headers["Content-Type"] = "application/json"
        response = self._transport.handle_request(next(self._auth.sync_auth_flow(request)))
        try:
            headers = dict(response.headers.items())  # httpx walks through all of them at each look-up
            reply = RawResponse(response.status_code, b"", headers.get("location", ""), headers.get("retry-after"))
            try:
                wire = read_wire(response.stream, self._caps.wire_bytes)  # type: ignore[arg-type] # sync, as we are
                reply.body = decode(wire, headers.get("content-encoding"), self._caps.plain_bytes)
            except BrokenBody as error:
                reply.broken = Failure("broken_body", str(error), status=reply.status)
            except BodyRefused as error:
                reply.broken = Failure("contract", str(error), status=reply.status)
            except httpx.TransportError as error:
                # the status stands: a write that was answered is answered, though its body was cut off
                reply.broken = self._failed(error, self._timeouts.total_s)
        finally:
            response.close()
        return reply

    def _failed(self, error: httpx.TransportError, seconds: float) -> Failure:
        """The kind of a transport error, in our own words: the library's may quote headers."""
        if unverified(error):
            hint = "Where a proxy of your own opens the traffic, its authority is to be trusted by this machine."
            return Failure("certificate", "the certificate of the host does not verify", hint)
        kind: Kind = "protocol"
        words = "the connection broke off"
        if isinstance(error, _NOT_SENT):
            kind, words = "connect", "no connection"
        elif isinstance(error, httpx.TimeoutException):
            kind = "timeout"
            words = f"no whole answer within {seconds:g} s, or nothing for {self._timeouts.read_s:g} s"
        return Failure(kind, words, "Is the address right, and the network up? If so, try later.")

    def _error(self, verb: Verb, path: str, failure: Failure, attempts: int = 1) -> HttpError:
        return error_of(self.family, verb, path, failure, attempts, self._retry.retry_after_max_s)

    def _check_stop(self) -> None:
        if self._stop.is_set() or self._closed.is_set():
            raise Stopped("stopped")

    def _sleep(self, seconds: float) -> None:
        """Waits in slices: either of two events ends it."""
        until = monotonic() + seconds
        self._check_stop()
        while (left := until - monotonic()) > 0:
            self._stop.wait(min(left, STOP_POLL_S))
            self._check_stop()
