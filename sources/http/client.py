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
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final, Literal, Self, TypeVar

import httpx

from sources.contract import OPERATIONS, PUBLIC_V1_PREFIX, Family, Verb
from sources.errors import AccessError, ContractBroken, HttpError, HttpRejected, Stopped, Unreachable
from sources.http.exchange import Caps, Exchanger, KeyAuth, RawResponse, ReadResponse, Timeouts, WriteOutcome
from sources.http.failures import (
    NOT_SENT,
    BrokenBody,
    Failure,
    FamilyError,
    failure_of_status,
    platform_message,
    read_error,
)
from sources.http.retries import RetryPolicy, retry_after_s, retry_delay_s, should_retry
from sources.http.transport import Transport
from sources.settings import HttpSettings, LegacySettings, PublicV1Settings, http_settings, known_secrets
from sources.urls import checked_base_url, checked_key, checked_proxy, request_target

T = TypeVar("T")
log = logging.getLogger("orderbridge.client")

STOP_POLL_S: Final = 0.1
_PARTIAL: Final = 206
_UNSHOWN_ERRORS: Final = [op.path for op in OPERATIONS if op.input is not None and not op.error_code]
"""Writes whose outcome for invalid input is documented without its body: any JSON object with a message is one."""
_REPORTS_ERROR: Final = re.compile(rb'(?i)"[a-z_]*(?:error|fault|message|success)[a-z_]*"\s*:')
_DEFINITE: Final = (201, 204)
"""Statuses of a write that settle it, whatever happened to the body."""


class Client:
    """One family's platform; safe to use from several threads; a context manager.

    Closing it ends what its threads wait for: their calls raise Stopped.

    Args:
        family: decides the header of the key and the prefix of the paths.
        base_url: https, or http on loopback; without `/public/v1`.
        api_key: never printed, logged or part of an error.
        timeouts, caps, retry: limits.
        ca_file, proxy: see `HttpSettings`.
        secrets: other keys that no error may contain: a platform may echo any.
        stop: once set, waits end and calls raise Stopped.
        transport: used instead of the network; an in-process platform, for example.

    Raises:
        UsageError: an address, key, CA file or proxy that cannot be used.
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
        ca_file: Path | None = None,
        proxy: str | None = None,
        secrets: tuple[str, ...] = (),
        stop: threading.Event | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.family: Family = family
        base_url = checked_base_url(f"sources.{family}.base_url", base_url)
        base_url += PUBLIC_V1_PREFIX if family == "public_v1" else ""
        self._auth = KeyAuth(family, checked_key(f"sources.{family}.api_key", api_key), secrets)
        self._timeouts, self._retry = timeouts or Timeouts(), retry or RetryPolicy()
        self._stop = stop or threading.Event()
        if proxy is not None:
            proxy = checked_proxy("sources.http.proxy", proxy)
        transport = transport or Transport(base_url, ca_file=ca_file, proxy=proxy)
        self._http = Exchanger(family, base_url, self._auth, transport, self._timeouts, caps or Caps())

    @classmethod
    def from_settings(
        cls,
        settings: LegacySettings | PublicV1Settings,
        stop: threading.Event | None = None,
        http: HttpSettings | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> Self:
        """The client of a family's settings; limits, CA file and proxy are read from the settings if not given."""
        family: Family = "legacy" if isinstance(settings, LegacySettings) else "public_v1"
        return cls.with_http_settings(family, settings.base_url, settings.api_key.reveal(), stop, http, transport)

    @classmethod
    def with_http_settings(
        cls,
        family: Family,
        base_url: str,
        api_key: str,
        stop: threading.Event | None = None,
        http: HttpSettings | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> Self:
        """A client with the limits, CA file and proxy of the settings, for a host and a key from elsewhere."""
        http = http or http_settings()
        timeouts = Timeouts(min(Timeouts().connect_s, http.timeout_s), http.read_timeout_s, http.timeout_s)
        return cls(
            family,
            base_url,
            api_key,
            timeouts=timeouts,
            ca_file=http.ca_file,
            proxy=http.proxy.reveal() if http.proxy else None,
            secrets=known_secrets(),
            stop=stop,
            transport=transport,
        )

    def __repr__(self) -> str:
        return f"Client({self.family!r}, {self._http.host!r}, api_key=***)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes every connection; calls under way raise Stopped."""
        self._http.close()

    def get(
        self, path: str, params: Mapping[str, str | int] | None = None, *, check: Callable[[bytes], T]
    ) -> tuple[T, ReadResponse]:
        """Reads, repeatedly where that may help.

        Args:
            path: below the family's base, without query.
            params: the query; it is in no error and no log.
            check: parses the body. It raises BrokenBody if another request may bring a better one; any other
                exception passes through.

        Returns:
            The result of `check`, and the response.

        Raises:
            AccessError: 401 or 403.
            HttpRejected: another response that no retry would change, or a redirect.
            Unreachable: no usable response after every retry.
            ContractBroken: a body that is too large, or in an encoding that was not asked for.
            Stopped: interrupted, or closed.
        """
        target, until = request_target(path, params), monotonic() + self._retry.budget_s
        is_throttled, attempts = False, 0
        while True:
            attempts += 1
            result = self._attempt(target, check, until)
            if not isinstance(result, Failure):
                parsed, reply, elapsed_s = result
                return parsed, ReadResponse(reply.status, reply.body, elapsed_s, attempts, is_throttled)
            log.info("%s GET %s, attempt %d: %s", self.family, path, attempts, result.words)
            is_throttled |= result.what == 429
            wait_s = retry_delay_s(result, attempts, until - monotonic(), self._retry)
            if wait_s is None:
                break
            if result.retry_after_s:
                words = "%s: the platform asks to wait %.0f s (status %s); waiting"
                log.warning(words, self.family, result.retry_after_s, result.status)
            self._sleep(wait_s)
        self._check_stop()
        raise self._error("GET", path, result, attempts)

    def send(self, verb: Literal["POST", "PATCH"], path: str, json_body: bytes) -> WriteOutcome:
        """Writes, in one attempt: the ledger decides whether another one follows. See WriteOutcome.

        Raises:
            Stopped: interrupted, or closed, before anything was sent.
        """
        target = request_target(path, None)
        self._check_stop()
        began = monotonic()
        reply = self._http.exchange(verb, target, json_body, self._timeouts.total_s)
        elapsed_s = monotonic() - began
        if isinstance(reply, Failure):
            state: Literal["not_sent", "in_doubt"] = "not_sent" if reply.what in NOT_SENT else "in_doubt"
            return WriteOutcome(state, error=self._error(verb, path, reply), elapsed_s=elapsed_s)
        if reply.is_success:
            is_doubtful = reply.broken is not None and reply.status not in _DEFINITE
            return WriteOutcome(
                "in_doubt" if is_doubtful else "answered",
                reply.status,
                reply.body,
                reply.content_type,
                reply.broken is not None,
                error=self._error(verb, path, reply.broken) if reply.broken and is_doubtful else None,
                message=self._message(reply, json_body) if _REPORTS_ERROR.search(reply.body) else "",
                elapsed_s=elapsed_s,
            )
        error, failure = self._status_failure(reply, json_body)
        is_settled = reply.status in (401, 403, 429) or (
            400 <= reply.status <= 499 and reply.status != 408 and error.shaped
        )
        message = self._message(reply, json_body)
        is_settled |= (
            path in _UNSHOWN_ERRORS
            and reply.status in (400, 422)
            and bool(message)
            and reply.body.lstrip().startswith(b"{")
        )
        return WriteOutcome(
            "answered" if is_settled else "in_doubt",
            reply.status,
            error=self._error(verb, path, failure),
            message=message,
            retry_after_s=failure.retry_after_s,
            elapsed_s=elapsed_s,
        )

    def settles_at_once(self) -> bool:
        """Whether the platform says that no write takes effect after its response; asked on loopback only."""
        if not self._http.is_plain:
            return False
        reply = self._http.exchange("GET", request_target("/customers", {"limit": 1}), b"", self._timeouts.total_s)
        return not isinstance(reply, Failure) and reply.settles_at_once

    def _attempt(
        self, target: str, check: Callable[[bytes], T], until: float
    ) -> tuple[T, RawResponse, float] | Failure:
        """One request of a read, with its seconds. A failure is a value: an exception would carry the key along."""
        self._check_stop()
        began = monotonic()
        reply = self._http.exchange("GET", target, b"", min(self._timeouts.total_s, until - began))
        elapsed_s = monotonic() - began
        if isinstance(reply, Failure):
            return reply
        if not reply.is_success:
            return self._status_failure(reply)[1]
        if reply.broken is not None:
            return reply.broken
        if reply.status == _PARTIAL:
            hint = "Report this to the platform, or to whoever runs a proxy in between."
            return Failure("contract", "status 206: only a part of the response, which was not asked for", hint, 206)
        try:
            return check(reply.body), reply, elapsed_s
        except BrokenBody as error:
            found = read_error(self.family, reply.body, self._auth.secrets)
            failure = self._http.broken_body(f"the body is broken: {error}", reply)
            return replace(failure, code=found.code, request_id=found.request_id)

    def _status_failure(self, reply: RawResponse, sent: bytes = b"") -> tuple[FamilyError, Failure]:
        error = read_error(self.family, reply.body, self._auth.secrets, sent)
        wait_s = retry_after_s(reply.retry_after, datetime.now(UTC))
        return error, failure_of_status(self.family, reply.status, error, reply.location, self._auth.secrets, wait_s)

    def _message(self, reply: RawResponse, sent: bytes) -> str:
        return platform_message(reply.body, self._auth.secrets, sent)

    def _error(self, verb: Verb, path: str, failure: Failure, attempts: int = 1) -> HttpError:
        """The error for a caller. To be raised outside of any `except` block, so that it has no context."""
        kind: type[HttpError] = Unreachable
        words, hint = failure.words, failure.hint
        if failure.what == "contract":
            kind = ContractBroken
        elif failure.what in (401, 403):
            kind = AccessError
        elif isinstance(failure.what, int) and not should_retry("GET", failure.what):
            kind = HttpRejected
        elif verb == "GET" and (failure.retry_after_s or 0.0) > self._retry.retry_after_max_s:
            hint = f"The platform asks to wait {failure.retry_after_s:.0f} s: run the command again after that."
        if attempts > 1:
            words = f"{words}, after {attempts} attempts"
        return kind(
            words,
            hint,
            family=self.family,
            verb=verb,
            host=self._http.host,
            path=path,
            status=failure.status,
            code=failure.code,
            request_id=failure.request_id,
            reason=failure.reason,
        )

    def _check_stop(self) -> None:
        if self._stop.is_set() or self._http.is_closed:
            raise Stopped("stopped")

    def _sleep(self, seconds: float) -> None:
        """Waits in slices: either of two events ends it."""
        until = monotonic() + seconds
        self._check_stop()
        while (left := until - monotonic()) > 0:
            self._stop.wait(min(left, STOP_POLL_S))
            self._check_stop()
