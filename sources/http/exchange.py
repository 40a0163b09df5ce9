"""One request and its response, read to the end: the header with the key, the deadline, the size limits.

In: verb, path and query, body, seconds. Out: a `RawResponse`, or a `Failure` if nothing usable arrived. A failure is
returned, not raised: an exception would carry the request along, key included.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import monotonic
from typing import NoReturn

import httpx

from sources.contract import Family, Verb
from sources.http.body import decode, read_wire
from sources.http.failures import BrokenBody, Failure, UnacceptableBody, connection_failure
from sources.http.limits import Caps, Timeouts
from sources.http.responses import RawResponse

# At info level, httpx logs each request with its query, which may hold a customer's data.
logging.getLogger("httpx").setLevel(logging.WARNING)


class KeyAuth(httpx.Auth):
    """The header with the key: masked when printed, not pickled.

    Attributes:
        secrets: texts that no error may contain: the key, and other keys that a platform could echo.
    """

    def __init__(self, family: Family, key: str, secrets: tuple[str, ...] = ()) -> None:
        self._name, self._value = ("api-key", key) if family == "legacy" else ("Authorization", f"Bearer {key}")
        self.secrets = tuple({key, *secrets})

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """See httpx.Auth."""
        request.headers[self._name] = self._value
        yield request

    def __repr__(self) -> str:
        return "KeyAuth(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled")


class Exchanger:
    """Makes requests to one host over a transport; safe to use from several threads.

    Args:
        family: of the host.
        base_url: https or http, without trailing slash; its path precedes the path of each request.
        auth: the header with the key.
        transport: takes requests with the extension `deadline`.
        timeouts, caps: limits.
    """

    def __init__(
        self,
        family: Family,
        base_url: str,
        auth: KeyAuth,
        transport: httpx.BaseTransport,
        timeouts: Timeouts,
        caps: Caps,
    ) -> None:
        self.family, self.host = family, httpx.URL(base_url).netloc.decode()
        self._base_url, self._timeouts, self._caps = base_url, timeouts, caps
        self._http = httpx.Client(
            auth=auth,
            headers={"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "orderbridge"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=httpx.Timeout(timeouts.read_s, connect=timeouts.connect_s, pool=timeouts.total_s),
            event_hooks={"response": [_ignore_redirect]},
            transport=transport,
            trust_env=False,
        )
        self._closed = threading.Event()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed.is_set()

    def close(self) -> None:
        """Closes every connection; exchanges under way fail."""
        self._closed.set()
        self._http.close()

    def exchange(self, verb: Verb, target: str, body: bytes, seconds: float) -> RawResponse | Failure:
        """One request and its response within `seconds`; `target` is a path, with the query."""
        try:
            return self._exchange(verb, target, body, seconds)
        except httpx.TransportError as error:
            return connection_failure(error, self.host, seconds, self._timeouts.read_s)
        except Exception:
            # closing a connection from another thread makes it fail in ways that no library documents
            if not self.is_closed:
                raise
        return Failure("protocol", "the client was closed")

    def _exchange(self, verb: Verb, target: str, body: bytes, seconds: float) -> RawResponse:
        extensions = {"deadline": monotonic() + seconds}
        headers = {"Content-Type": "application/json"} if body else None
        url = self._base_url + target
        with self._http.stream(verb, url, content=body or None, headers=headers, extensions=extensions) as response:
            fields = response.headers
            content_type = fields.get("content-type", "").partition(";")[0].strip().lower()
            reply = RawResponse(
                response.status_code, b"", response.extensions["location"], fields.get("retry-after"), content_type
            )
            try:
                wire = read_wire(response.iter_raw(), self._caps.wire_bytes)
                reply.body = decode(wire, fields.get("content-encoding"), self._caps.plain_bytes)
            except BrokenBody as error:
                reply.broken = self.broken_body(str(error), reply)
            except UnacceptableBody as error:
                hint = "Report this to the platform, or to whoever runs a proxy in between."
                reply.broken = Failure("contract", str(error), hint, reply.status)
            except httpx.TransportError as error:
                # the status is known, although the body was cut off
                failure = connection_failure(error, self.host, seconds, self._timeouts.read_s)
                reply.broken = Failure(failure.what, failure.words, failure.hint, reply.status)
        return reply

    def broken_body(self, words: str, reply: RawResponse) -> Failure:
        """The failure of a 2xx whose body is not what it should be."""
        hint = "Try again later; if it persists, report the path and the time to the platform."
        if reply.content_type == "text/html" or reply.body.lstrip()[:1] == b"<":
            words = f"{words}; the response is a web page (HTML)"
            hint = f"Check sources.{self.family}.base_url: it may name a website, or a proxy answers with a login page."
        return Failure("broken_body", words, hint, reply.status)


def _ignore_redirect(response: httpx.Response) -> None:
    """Takes the location away: httpx would build the next request of it, and fail if it is not an address."""
    response.extensions["location"] = response.headers.pop("location", "")
