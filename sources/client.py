"""The platform over HTTP: auth by family, deadlines, retry by verb, caps, no redirects.

In: a family, its host and key; verbs, paths, parameters. Out: checked bodies of reads (`get`), honest outcomes of
writes (`send`), or an error without a secret. Nothing else in the project imports httpx. Requests go to httpx's
transport itself: what its client adds (cookies, redirects, proxies of the environment, a log line with the whole
address) is what must not happen here, and costs time.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType
from typing import Final, Generic, Literal, NoReturn, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from sources.contract import PUBLIC_V1_PREFIX, Family, Verb
from sources.errors import AccessError, ContractBroken, HttpError, Refused, Stopped, Unreachable, UsageError
from sources.refusals import FamilyError, read_error, refusal
from sources.retries import BrokenBody, Failure, Kind, RetryPolicy, retry_after_s, retrying
from sources.wire import BodyRefused, Caps, Timeouts, Watch, WatchedBackend, decode, read_wire

__all__ = ["Answer", "BrokenBody", "Caps", "Client", "Outcome", "RetryPolicy", "Timeouts"]

T = TypeVar("T")
log = logging.getLogger("orderbridge.client")

CONNECTIONS_MAX: Final = 32
STOP_POLL_S: Final = 0.1
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~%@:+-]+)+")
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back of a read, 2xx. `body` is decoded and whole; `elapsed_s` is that of the last request alone."""

    status: int
    body: bytes = field(repr=False)
    elapsed_s: float
    attempts: int
    throttled: bool


@dataclass(frozen=True, slots=True)
class Outcome:
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
class _Reply:
    """Any answer: the body is what came whole, and `broken` says what was wrong with it otherwise."""

    status: int
    body: bytes
    location: str
    retry_after: str | None
    broken: Failure | None = None


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


def _without_headers(record: logging.LogRecord) -> bool:
    """Drops what httpcore logs of an answer's headers: a cookie or the target of a redirect may hold a key."""
    told = str(record.msg)
    return "return_value=" not in told and "exception=" not in told


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
        self._base = _checked_base(family, base_url) + (PUBLIC_V1_PREFIX if family == "public_v1" else "")
        if not api_key or not all("!" <= letter <= "~" for letter in api_key):
            raise UsageError(f"sources.{family}.api_key is empty or holds a letter that no header can carry")
        self._auth = _KeyAuth(family, api_key)
        self._timeouts, self._caps, self._retry = timeouts or Timeouts(), caps or Caps(), retry or RetryPolicy()
        self._stop = stop or threading.Event()
        self._closed = threading.Event()
        self._watch = Watch()
        self._backend = WatchedBackend(self._watch)
        self._watched = transport is None
        self._transport = transport or self._network(trust_env)
        self._headers = [("Accept", "application/json"), ("Accept-Encoding", "gzip"), ("User-Agent", "orderbridge")]
        limit = {"connect": self._timeouts.connect_s, "pool": self._timeouts.total_s}
        self._extensions = {"timeout": {**limit, "read": self._timeouts.read_s, "write": self._timeouts.read_s}}
        self._retrying = retrying("GET", self._retry, self._sleep)

    def _network(self, trust_env: bool) -> httpx.BaseTransport:
        url = urlsplit(self._base)
        proxied = trust_env and not proxy_bypass(url.hostname or "")
        transport = httpx.HTTPTransport(
            trust_env=trust_env,
            proxy=getproxies().get(url.scheme) if proxied else None,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
        )
        # httpx offers no other way to a total deadline that also holds while headers drip in: it builds the pool
        # itself. Both names have been there since httpx 0.18; a test fails should a release rename them.
        transport._pool._network_backend = self._backend
        logging.getLogger("httpcore.http11").addFilter(_without_headers)
        return transport

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
        self._backend.abort()
        self._transport.close()

    def get(
        self, path: str, params: Mapping[str, str | int] | None = None, *, check: Callable[[bytes], T]
    ) -> tuple[T, Answer]:
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
        url = self._url(path, params)
        call = _Call(url, check, monotonic() + self._retry.budget_s)
        result: tuple[T, Answer] | Failure = self._retrying(self._attempt, call, path)
        if isinstance(result, Failure):
            self._check_stop()
            raise self._error("GET", path, result, call.attempts)
        return result

    def send(self, verb: Literal["POST", "PATCH"], path: str, json_body: bytes) -> Outcome:
        """Writes, with one attempt: whether another may follow is the ledger's to know. See Outcome.

        Raises:
            Stopped: told to stop, or closed, before anything was sent.
        """
        url = self._url(path, None)
        self._check_stop()
        began = monotonic()
        reply = self._exchange(verb, url, json_body, self._timeouts.total_s)
        elapsed_s = monotonic() - began
        if isinstance(reply, Failure):
            unsent = reply.what in ("connect", "certificate") or (self._watched and not self._watch.sent)
            error = self._error(verb, path, reply, 1)
            return Outcome("not_sent" if unsent else "in_doubt", error=error, elapsed_s=elapsed_s)
        if 200 <= reply.status <= 299:
            return Outcome("answered", reply.status, reply.body, elapsed_s=elapsed_s)
        told, failure = self._refusal(reply, json_body)
        settled = reply.status in (401, 403, 429) or (
            400 <= reply.status <= 499 and reply.status != 408 and told.shaped
        )
        return Outcome(
            "answered" if settled else "in_doubt",
            reply.status,
            error=self._error(verb, path, failure, 1),
            retry_after_s=failure.retry_after_s,
            elapsed_s=elapsed_s,
        )

    def _url(self, path: str, params: Mapping[str, str | int] | None) -> str:
        if not _PATH.fullmatch(path) or any(part in (".", "..") for part in path.split("/")):
            raise ValueError("a path has letters, digits and slashes; a query goes into params")
        return f"{self._base}{path}?{urlencode(params, quote_via=quote)}" if params else self._base + path

    def _attempt(self, call: _Call[T], path: str) -> tuple[T, Answer] | Failure:
        """One request of a read. Failures are values: an exception would carry the request along, key and all."""
        self._check_stop()
        call.attempts += 1
        began = monotonic()
        reply = self._exchange("GET", call.url, b"", min(self._timeouts.total_s, call.budget_until - began))
        call.elapsed_s = monotonic() - began
        if isinstance(reply, _Reply):
            if 200 <= reply.status <= 299 and reply.broken is None:
                broken = ""
                try:
                    opened = call.check(reply.body)
                except BrokenBody as error:
                    broken = f"the body is broken: {error}"
                if not broken:
                    answer = Answer(reply.status, reply.body, call.elapsed_s, call.attempts, call.throttled)
                    return opened, answer
                failure = Failure("broken_body", broken, status=reply.status)
            elif 200 <= reply.status <= 299 and reply.broken is not None:
                failure = reply.broken
            else:
                failure = self._refusal(reply)[1]
                call.throttled |= reply.status == 429
        else:
            failure = reply
        log.info("%s GET %s, attempt %d: %s", self.family, path, call.attempts, failure.words)
        return failure

    def _refusal(self, reply: _Reply, sent: bytes = b"") -> tuple[FamilyError, Failure]:
        told = read_error(self.family, reply.body, self._auth.secrets, sent)
        wait = retry_after_s(reply.retry_after, datetime.now(UTC))
        return told, refusal(self.family, reply.status, told, reply.location, self._auth.secrets, wait)

    def _exchange(self, verb: Verb, url: str, body: bytes, seconds: float) -> _Reply | Failure:
        """One request and its answer, read to the end, within `seconds`."""
        try:
            with self._watch.over(seconds):
                return self._request(verb, url, body)
        except httpx.TransportError as error:
            failure = self._failed(error, seconds)
        except Exception:
            # a connection closed from another thread fails in ways that nobody promised
            if not self._closed.is_set():
                raise
            failure = Failure("protocol", "the client was closed")
        return failure

    def _request(self, verb: Verb, url: str, body: bytes) -> _Reply | Failure:
        request = httpx.Request(verb, url, headers=self._headers, extensions=self._extensions, content=body or None)
        if body:
            request.headers["Content-Type"] = "application/json"
        response = self._transport.handle_request(next(self._auth.sync_auth_flow(request)))
        try:
            headers = response.headers
            reply = _Reply(response.status_code, b"", headers.get("location", ""), headers.get("retry-after"))
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
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                hint = "Where a proxy of your own opens the traffic, its authority is to be trusted by this machine."
                return Failure("certificate", "the certificate of the host does not verify", hint)
            cause = cause.__cause__ or cause.__context__
        kind: Kind
        if isinstance(error, _NOT_SENT):
            kind, words = "connect", "no connection"
        elif isinstance(error, httpx.TimeoutException):
            kind, words = (
                "timeout",
                f"no whole answer within {seconds:g} s, or none of it for {self._timeouts.read_s:g} s",
            )
        else:
            kind, words = "protocol", "the connection broke off"
        return Failure(kind, words, "Is the address right, and the network up? If so, try later.")

    def _error(self, verb: Verb, path: str, failure: Failure, attempts: int) -> HttpError:
        """The error of a failure. It is made outside of any except block, so that it has no context."""
        kind: type[HttpError] = Unreachable
        words, hint = failure.words, failure.hint
        if failure.what == "contract":
            kind = ContractBroken
        elif failure.what in (401, 403):
            kind = AccessError
        elif isinstance(failure.what, int) and failure.what < 500 and failure.what not in (408, 429):
            kind = Refused
        elif verb == "GET" and (failure.retry_after_s or 0) > self._retry.retry_after_max_s:
            hint = f"The platform asks to try again in {failure.retry_after_s:.0f} s: do so then."
        if attempts > 1:
            words = f"{words}, after {attempts} attempts"
        return kind(
            words,
            hint,
            family=self.family,
            verb=verb,
            path=path,
            status=failure.status,
            code=failure.code,
            request_id=failure.request_id,
        )

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


def _checked_base(family: Family, base_url: str) -> str:
    """The base without trailing slashes. Its text is never told: it may hold a password."""
    name = f"sources.{family}.base_url"
    try:
        url = urlsplit(base_url)
        host, _port = url.hostname or "", url.port
    except ValueError:
        raise UsageError(f"{name} is no address") from None
    if url.scheme not in ("http", "https") or not host or url.query or url.fragment or "@" in url.netloc:
        raise UsageError(f"{name} is no address of the form https://host or https://host/path")
    if url.scheme == "http" and not _is_loopback(host):
        raise UsageError(f"{name} is http: the key would travel in the clear", "Write https://.")
    return base_url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
