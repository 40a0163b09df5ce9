"""The platform over HTTP: authentication by family, deadlines, retries by verb, size limits, no redirects.

In: a family, its host and key; verbs, paths, parameters. Out: checked bodies of reads (`get`), outcomes of writes
(`send`), or an error without a secret. Requests are made by httpx over a transport of ours, which limits each as a
whole.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import Final, Literal, Self, TypeVar, cast
from urllib.parse import quote

import httpx

from orderbridge.sources.command_line import run_again
from orderbridge.sources.contract import OPERATIONS, PUBLIC_V1_PREFIX, Family, Verb, path_pattern
from orderbridge.sources.errors import (
    AccessError,
    ContractBroken,
    HttpError,
    HttpRejected,
    RateLimited,
    Stopped,
    Unreachable,
)
from orderbridge.sources.http.exchange import Caps, Response, WriteOutcome, decompress, read_wire
from orderbridge.sources.http.failures import (
    NOT_SENT,
    BrokenBody,
    Failure,
    FamilyError,
    UnacceptableBody,
    connection_failure,
    failure_of_status,
    platform_message,
    read_error,
    sent_passwords,
)
from orderbridge.sources.http.masking import MASK, Masker
from orderbridge.sources.http.retries import (
    ACCESS_STATUSES,
    TOO_MANY_REQUESTS,
    RetryPolicy,
    retry_after_s,
    retry_delay_s,
    should_retry,
    time_budget_s,
)
from orderbridge.sources.http.transport import Transport
from orderbridge.sources.http.waiting import ReadPace, WaitNotices
from orderbridge.sources.settings import (
    HttpSettings,
    LegacySettings,
    PublicV1Settings,
    Secret,
    http_settings,
    known_secrets,
)
from orderbridge.sources.urls import checked_base_url, checked_key, request_target
from orderbridge.sources.words import duration

T = TypeVar("T")
log = logging.getLogger("orderbridge.client")

CONNECT_S: Final = 10.0
"""Seconds to connect, with TLS. Resolving the host's name is not limited: the system offers no way to."""
STOP_POLL_S: Final = 0.1
MASKED_BYTES_MAX: Final = 1_000_000
"""Bytes that are read of an error body."""
_KEY_MIN: Final = 12
"""Characters from which a key is searched for in pages: a shorter one may be a word of the data."""
_HEADERS: Final = (
    (b"Accept", b"application/json"),
    (b"Accept-Encoding", b"gzip"),
    (b"User-Agent", b"orderbridge"),
)
_PARTIAL: Final = 206
_REPORT: Final = "Report this to the platform, or to whoever runs a proxy in between."
_UNSHOWN_ERRORS: Final = [
    op.path for op in OPERATIONS if op.input is not None and not op.error_code
]
"""Writes whose outcome for invalid input is documented without its body: any JSON object with a message is one."""
_REPORTS_ERROR: Final = re.compile(rb'(?i)"[a-z_]*(?:error|fault|message|success)[a-z_]*"\s*:')
_PROGRAM_WARNING: Final = re.compile(
    rb"(?i)\b(?:warning|notice|deprecated|fatal error|parse error)(?:</b>)?: .{1,2000}? on line ",
    re.DOTALL,
)
_PROGRAM_WARNING_BYTES: Final = 4_000
"""Where a warning of PHP is looked for: the beginning of a body."""
_DEFINITE: Final = (201, 204)
"""Statuses of a write that settle it, whatever happened to the body."""


class Client(AbstractContextManager["Client"]):
    """One family's platform; safe to use from several threads; a context manager.

    Closing it ends what its threads wait for: their calls raise Stopped.

    Args:
        family: decides the header of the key and the prefix of the paths.
        base_url: https, or http on loopback; without `/public/v1`.
        api_key: never printed, logged or part of an error.
        http: limits, CA file and proxy.
        retry, caps: further limits.
        secrets: other keys that no error may contain: a platform may echo any.
        stop: once set, waits end and calls raise Stopped.
        transport: used instead of the network; an in-process platform, for example.

    Raises:
        UsageError: an address, key or CA file that cannot be used.
    """

    def __init__(
        self,
        family: Family,
        base_url: str,
        api_key: str,
        *,
        http: HttpSettings | None = None,
        retry: RetryPolicy | None = None,
        caps: Caps | None = None,
        secrets: tuple[str, ...] = (),
        stop: threading.Event | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.family: Family = family
        address = checked_base_url(f"sources.{family}.base_url", base_url)
        self._url = httpx.URL(address + (PUBLIC_V1_PREFIX if family == "public_v1" else ""))
        self._path = self._url.raw_path.rstrip(b"/")
        self._host = self._url.netloc.decode()
        self._key = Secret(checked_key(f"sources.{family}.api_key", api_key))
        self._secrets = tuple({self._key, *map(Secret, secrets)})
        self._masker = Masker(secret.reveal() for secret in self._secrets)
        self._http = http or HttpSettings()
        self._retry = retry or RetryPolicy()
        self._caps = caps or Caps()
        self._pace = ReadPace()
        self._notices = WaitNotices(family)
        self._has_answered = False
        self._paths_read: set[str] = set()
        self._waits = httpx.Timeout(
            self._http.read_timeout_s,
            connect=min(CONNECT_S, self._http.timeout_s),
            pool=self._http.timeout_s,
        ).as_dict()
        self._stop = stop or threading.Event()
        self._closed = threading.Event()
        self._key_repeated = threading.Event()
        proxy = self._http.proxy.reveal() if self._http.proxy else None
        self._transport = transport or Transport(self._url, ca_file=self._http.ca_file, proxy=proxy)

    @classmethod
    def from_settings(
        cls,
        settings: LegacySettings | PublicV1Settings,
        stop: threading.Event | None = None,
        retry: RetryPolicy | None = None,
    ) -> Self:
        """The client of a family's settings, with those of HTTP."""
        family: Family = "legacy" if isinstance(settings, LegacySettings) else "public_v1"
        key = settings.api_key.reveal()
        http = http_settings()
        secrets = known_secrets()
        return cls(
            family, settings.base_url, key, http=http, retry=retry, secrets=secrets, stop=stop
        )

    def __repr__(self) -> str:
        return f"Client({self.family!r}, {self._host!r}, api_key=***)"

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes every connection; calls under way raise Stopped."""
        self._closed.set()
        self._transport.close()

    def get(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        *,
        check: Callable[[bytes], T],
        is_probe: bool = False,
    ) -> tuple[T, Response]:
        """Reads, repeatedly where that may help, until the time for it is over (`RetryPolicy`).

        Args:
            path: below the family's base, without query.
            params: the query; it is in no error and no log.
            check: parses the body. It raises BrokenBody if another request may bring a better one; any other
                exception passes through.
            is_probe: for a page that may not exist; a platform may fail at it.

        Returns:
            The result of `check`, and the response.

        Raises:
            AccessError: 401 or 403.
            HttpRejected: another response that no retry would change, or a redirect.
            Unreachable: no usable response in time. RateLimited: because of a limit of the platform.
            ContractBroken: a body that is too large, or in an encoding that was not asked for.
            Stopped: interrupted, or closed.
        """
        target = request_target(path, params)
        is_wait_shown = False
        attempts = 0
        spent_s = 0.0
        limit_s = min(self._http.timeout_s, self._retry.attempt_s)
        seconds = limit_s
        while True:
            self._sleep(self._pace.turn_s())
            started_at = monotonic()
            result = self._attempt(target, path, check, seconds)
            spent_s += monotonic() - started_at
            attempts += 1
            if not isinstance(result, Failure):
                break
            log.info("%s GET %s, attempt %d: %s", self.family, path, attempts, result.words)
            failure = result
            self._has_answered |= isinstance(failure.what, int)
            budget_s = time_budget_s(
                failure, self._retry, has_answered=self._has_answered, is_probe=is_probe
            )
            wait_s = retry_delay_s(
                failure,
                attempts,
                budget_s - spent_s,
                self._retry,
                is_key_proven=bool(self._paths_read),
            )
            if wait_s is None:
                self._check_stop()
                raise self._error("GET", path, failure, attempts, (params or {}).get("limit"))
            if failure.what == TOO_MANY_REQUESTS:
                self._pace.refused(wait_s)
            is_wait_shown |= self._notices.waits(failure, wait_s, spent_s, budget_s)
            self._sleep(wait_s)
            spent_s += wait_s
            seconds = min(limit_s, budget_s - spent_s)
        self._has_answered = True
        self._paths_read.add(path)
        self._pace.answered(started_at)
        if is_wait_shown:
            self._notices.answered(spent_s)
        result[1].attempts = attempts
        return result

    @property
    def is_throttled(self) -> bool:
        """Whether the platform has answered 429."""
        return self._pace.is_limited

    def send(self, verb: Literal["POST", "PATCH"], path: str, json_body: bytes) -> WriteOutcome:
        """Writes, in one attempt: the ledger decides whether another one follows. See WriteOutcome.

        Raises:
            Stopped: interrupted, or closed, before anything was sent.
        """
        target = request_target(path, None)
        self._check_stop()
        reply = self._exchange(verb, target, json_body, self._http.timeout_s)
        if isinstance(reply, Failure):
            state: Literal["not_sent", "in_doubt"] = (
                "not_sent" if reply.what in NOT_SENT else "in_doubt"
            )
            return WriteOutcome(state, error=self._error(verb, path, reply))
        if reply.is_success:
            return self._accepted(verb, path, reply, json_body)
        return self._rejected(verb, path, reply, json_body)

    def _accepted(self, verb: Verb, path: str, reply: Response, sent: bytes) -> WriteOutcome:
        """The outcome of a write with a 2xx: in doubt where its body is broken and its status settles nothing."""
        state: Literal["answered", "in_doubt"] = "answered"
        error = None
        if reply.broken is not None and reply.status not in _DEFINITE:
            state = "in_doubt"
            error = self._error(verb, path, reply.broken)
        reports_error = _REPORTS_ERROR.search(reply.body)
        return WriteOutcome(
            state,
            reply.status,
            reply.body,
            reply.content_type,
            is_broken=reply.broken is not None,
            error=error,
            message=self._message(reply, sent) if reports_error else "",
        )

    def _rejected(self, verb: Verb, path: str, reply: Response, sent: bytes) -> WriteOutcome:
        """The outcome of a write with another status: in doubt where somebody else may have answered."""
        error, failure = self._status_failure(reply, sent)
        message = self._message(reply, sent)
        is_settled = _is_own_error(reply, error) or _is_unshown_error(path, reply, message)
        return WriteOutcome(
            "answered" if is_settled else "in_doubt",
            reply.status,
            error=self._error(verb, path, failure),
            message=message,
            retry_after_s=failure.retry_after_s,
        )

    def settles_at_once(self) -> bool:
        """Whether the platform says that no write takes effect after its response; asked on loopback only."""
        if self._url.scheme != "http":  # only a host on loopback can be reached by it
            return False
        reply = self._exchange(
            "GET", request_target("/customers", {"limit": 1}), b"", self._http.timeout_s
        )
        return not isinstance(reply, Failure) and reply.settles_at_once

    def _attempt(
        self, target: str, path: str, check: Callable[[bytes], T], seconds: float
    ) -> tuple[T, Response] | Failure:
        """One request of a read."""
        self._check_stop()
        reply = self._exchange("GET", target, b"", seconds)
        if isinstance(reply, Failure):
            return reply
        if not reply.is_success:
            error, failure = self._status_failure(reply)
            return self._foreign(failure) if self._is_foreign(reply, error, path) else failure
        if reply.broken is not None:
            return reply.broken
        if reply.status == _PARTIAL:
            return Failure(
                "contract",
                "status 206: only a part of the response, which was not asked for",
                _REPORT,
                206,
            )
        reply.body = self._without_key(reply.body)  # it is kept too: pages are read from disk again
        try:
            return check(reply.body), reply
        except BrokenBody as error:
            found = read_error(self.family, self.mask(reply.body))
            failure = self._broken_body(f"the body is broken: {error}", reply)
            hint = error.hint or failure.hint
            return replace(failure, hint=hint, code=found.code, request_id=found.request_id)

    def _exchange(self, verb: Verb, target: str, body: bytes, seconds: float) -> Response | Failure:
        """One request and its response within `seconds`; `target` is a path, with the query.

        A failure is returned, not raised: an exception would carry the request along, key included.
        """
        try:
            return self._request(verb, target, body, seconds)
        except httpx.TransportError as error:
            return self._connection_failure(error, seconds)
        except Exception:
            # closing a connection from another thread makes it fail in ways that no library documents
            if not self._closed.is_set():
                raise
        return Failure("protocol", "the client was closed")

    def _request(self, verb: Verb, target: str, body: bytes, seconds: float) -> Response:
        request = self._httpx_request(verb, target, body, seconds)
        began = monotonic()
        response = self._transport.handle_request(request)
        headers = response.headers
        # not `iter_raw`, which copies and counts
        with closing(cast(httpx.SyncByteStream, response.stream)) as chunks:
            content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            reply = Response(response.status_code, content_type=content_type)
            reply.settles_at_once = headers.get("x-orderbridge-settles") == "at-once"
            if not reply.is_success:
                reply.location = headers.get("location", "")
                reply.retry_after = headers.get("retry-after")
            try:
                wire = read_wire(chunks, self._caps.wire_bytes)
                encoding = headers.get("content-encoding")
                reply.body = decompress(wire, encoding, self._caps.plain_bytes)
            except BrokenBody as error:
                reply.broken = self._broken_body(str(error), reply)
            except UnacceptableBody as error:
                reply.broken = Failure("contract", str(error), _REPORT, reply.status)
            except httpx.TransportError as error:
                # The status is known, although the body was cut off.
                failure = self._connection_failure(error, seconds)
                reply.broken = replace(failure, status=reply.status)
        reply.elapsed_s = monotonic() - began
        return reply

    def _httpx_request(self, verb: Verb, target: str, body: bytes, seconds: float) -> httpx.Request:
        key = self._key.reveal().encode()
        headers = [(b"Host", self._url.netloc), *_HEADERS]
        if self.family == "legacy":
            headers.append((b"api-key", key))
        else:
            headers.append((b"Authorization", b"Bearer " + key))
        if body:
            headers.append((b"Content-Type", b"application/json"))
            headers.append((b"Content-Length", b"%d" % len(body)))
        return httpx.Request(
            verb,
            self._url,
            headers=httpx.Headers(headers),
            stream=httpx.ByteStream(body),
            extensions={
                "deadline": monotonic() + seconds,
                # to parse a URL would cost a tenth of the request
                "target": self._path + target.encode(),
                "timeout": self._waits,
            },
        )

    def _broken_body(self, words: str, reply: Response) -> Failure:
        """The failure of a 2xx whose body is not what it should be."""
        hint = "Try again later; if it persists, report the path and the time to the platform."
        if _PROGRAM_WARNING.search(reply.body, 0, _PROGRAM_WARNING_BYTES):
            words = f"{words}; the response begins with a warning or an error of a program (PHP)"
            hint = f"The address is right. {_REPORT} Its display of errors has to be off."
        elif reply.is_web_page:
            words = f"{words}; the response is a web page (HTML)"
            setting = f"sources.{self.family}.base_url"
            hint = (
                f"Check {setting}: it may name a website, or a proxy answers with a login page. "
                f"To change it: orderbridge init {setting}"
            )
        return Failure("broken_body", words, hint, reply.status)

    def mask(self, body: bytes, sent: bytes = b"") -> bytes:
        """A body that is not a page of a list, without the known secrets and the passwords of the request (`sent`).

        What is longer than any such body is cut off.
        """
        passwords = tuple(sent_passwords(sent))
        masker = self._masker
        if passwords:
            masker = Masker([*(secret.reveal() for secret in self._secrets), *passwords])
        return masker.mask_bytes(body[:MASKED_BYTES_MAX])

    def _without_key(self, body: bytes) -> bytes:
        """The body of a page without the key that requested it. Parts and encodings would take too long to look for."""
        key = self._key.reveal()
        if len(key) < _KEY_MIN:
            return body
        for form in {key, quote(key, safe="")}:
            if form.encode() in body:
                if not self._key_repeated.is_set():
                    log.warning("%s: responses contain the API key; it is masked", self.family)
                self._key_repeated.set()
                body = body.replace(form.encode(), MASK.encode())
        return body

    def _status_failure(self, reply: Response, sent: bytes = b"") -> tuple[FamilyError, Failure]:
        error = read_error(self.family, self.mask(reply.body, sent), sent)
        wait_s = retry_after_s(reply.retry_after, datetime.now(UTC))
        location = self._masker.mask(reply.location)
        return error, failure_of_status(self.family, reply.status, error, location, wait_s)

    def _is_foreign(self, reply: Response, error: FamilyError, path: str) -> bool:
        """Whether a 401 or 403 of a read may come from somebody in between, such as a bot protection.

        It is not in the form of the API, although the key was good for a read. One that is no web page may be the
        API's for a list that this key is not permitted to read, unless it was read before.
        """
        if reply.status not in ACCESS_STATUSES or error.shaped or not self._paths_read:
            return False
        return reply.is_web_page or path in self._paths_read

    def _foreign(self, failure: Failure) -> Failure:
        """The failure in other words: the key is not at fault."""
        hint = (
            f"sources.{self.family}.api_key was good for other requests of this run: a proxy or a bot protection may "
            f"refuse some. If it persists, ask the platform to exempt this machine. Later, {run_again()}"
        )
        words = "refused, and not in the form of the platform's errors"
        return replace(failure, words=words, hint=hint, is_foreign=True)

    def _connection_failure(self, error: httpx.TransportError, seconds: float) -> Failure:
        setting = f"sources.{self.family}.base_url"
        return connection_failure(error, self._host, seconds, self._http.read_timeout_s, setting)

    def _message(self, reply: Response, sent: bytes) -> str:
        return platform_message(self.mask(reply.body, sent))

    def _error(
        self,
        verb: Verb,
        path: str,
        failure: Failure,
        attempts: int = 1,
        page_limit: str | int | None = None,
    ) -> HttpError:
        """The error for a caller. To be raised outside of any `except` block, so that it has no context."""
        words = failure.words if attempts <= 1 else f"{failure.words}, after {attempts} attempts"
        hint = failure.hint
        is_server_error = isinstance(failure.what, int) and failure.what >= 500
        if verb == "GET" and failure.retry_after_s:
            wait = duration(failure.retry_after_s)
            hint = f"The platform asks to wait {wait}. After that, {run_again()}"
        elif page_limit is not None and is_server_error:
            hint = f"{hint} {self._smaller_pages(int(page_limit))}"
        kind = self._error_class(failure, is_read=verb == "GET")
        return kind(
            words,
            hint,
            family=self.family,
            verb=verb,
            host=self._host,
            path=path,
            status=failure.status,
            code=failure.code,
            request_id=failure.request_id,
            reason=failure.reason,
        )

    def _error_class(self, failure: Failure, *, is_read: bool) -> type[HttpError]:
        """The class of an error, by what the caller can do about it."""
        is_asked_to_wait = failure.what == TOO_MANY_REQUESTS or bool(failure.retry_after_s)
        is_key_proven = is_read and bool(self._paths_read)
        if failure.what == "contract":
            return ContractBroken
        if is_read and is_asked_to_wait:
            return RateLimited
        if should_retry(failure, is_key_proven=is_key_proven):
            return Unreachable
        if failure.what in ACCESS_STATUSES:
            return AccessError
        return HttpRejected if isinstance(failure.what, int) else Unreachable

    def _smaller_pages(self, page_limit: int) -> str:
        """What to do where a platform fails at pages of this size."""
        if page_limit <= 1:
            return ""
        setting = f"sources.{self.family}.page_limit={page_limit // 2}"
        return f"If it fails at {page_limit} rows a page only, run: orderbridge init {setting}"

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


def _is_own_error(reply: Response, error: FamilyError) -> bool:
    """Whether a status outside 2xx shows that the platform itself rejected a write, and took nothing of it."""
    if reply.status in (401, 403, 429):
        return True
    return 400 <= reply.status <= 499 and reply.status != 408 and error.shaped


def _is_unshown_error(path: str, reply: Response, message: str) -> bool:
    """Whether it is the rejection of an input whose body the interface does not show: an object with a message."""
    is_rejection = reply.status in (400, 422) and bool(message)
    is_object = reply.body.lstrip().startswith(b"{")
    is_unshown = any(path_pattern(one).fullmatch(path) for one in _UNSHOWN_ERRORS)
    return is_rejection and is_object and is_unshown
