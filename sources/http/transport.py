"""Connections to one host: httpcore's pool, each request limited as a whole.

In: httpcore requests with the extension `deadline`, an instant on the monotonic clock. Out: httpcore responses, whose
bodies are read as they are iterated, or httpcore exceptions: a ConnectError, ConnectTimeout or ProxyError proves that
no byte of the request was sent. Sockets, TLS, proxies and HTTP parsing are the library's. The pool is that of httpx's
transport, used directly: httpx has no parameter for its network backend, and its requests double the time of one.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import httpcore

from sources.errors import UsageError
from sources.http.failures import TRANSPORT_ERRORS
from sources.http.limits import Timeouts
from sources.http.network import TAIL_BYTES, DeadlineBackend, DeadlineStream, Exchange

KEEPALIVE_S: Final = 2.0
"""Shorter than what servers commonly keep: a write on a connection that just closes at the other end is in doubt."""

# At debug level, httpcore logs the headers of responses, which may echo a key.
logging.getLogger("httpcore").setLevel(logging.INFO)


class Transport:
    """Connections to one host, kept for a moment and reused; safe to use from several threads.

    Args:
        is_tls: the host is addressed by https.
        timeouts: of single operations; the deadline of the whole request comes with it.
        ca_file: certificates to trust (PEM); None: the system's store. The environment is not consulted.
        proxy: `http://[user:password@]host:port`.

    Raises:
        UsageError: the CA file cannot be used.
    """

    def __init__(
        self, *, is_tls: bool, timeouts: Timeouts, ca_file: Path | None = None, proxy: str | None = None
    ) -> None:
        self._backend = DeadlineBackend(is_tls=is_tls)
        self._timeouts = {
            "connect": timeouts.connect_s,
            "read": timeouts.read_s,
            "write": timeouts.read_s,
            "pool": timeouts.total_s,
        }
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls_context(ca_file) if is_tls else None,
            proxy=_proxy(proxy) if proxy else None,
            max_connections=None,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=self._backend,
        )

    def handle_request(self, request: httpcore.Request) -> httpcore.Response:
        """See httpcore's pool; the body of the response is to be read on the same thread."""
        exchange = self._backend.exchange = Exchange(request.extensions["deadline"])
        request.extensions["timeout"] = self._timeouts
        try:
            exchange.remaining_s(None, httpcore.ConnectTimeout)
            response = self._pool.handle_request(request)
        except (httpcore.ProxyError, httpcore.LocalProtocolError):
            raise
        except TRANSPORT_ERRORS as error:
            if exchange.is_sent:
                raise
            is_timeout = isinstance(error, httpcore.TimeoutException)
            raise (httpcore.ConnectTimeout if is_timeout else httpcore.ConnectError)("nothing was sent") from error
        exchange.head_bytes = None
        stream = response.extensions["network_stream"]
        if response.status < 200 or not (isinstance(stream, DeadlineStream) and stream.has_read):
            response.close()  # a protocol that was not asked for, or a response that was there before its request
            raise httpcore.RemoteProtocolError("not a response to the request")
        return httpcore.Response(response.status, headers=response.headers, content=_Body(response, stream))

    def close(self) -> None:
        """Closes every connection and ends every wait on one."""
        self._backend.interrupt()
        self._pool.close()


class _Body:
    """The body of a response. A connection that received more than the response is not used again."""

    def __init__(self, response: httpcore.Response, stream: DeadlineStream) -> None:
        self._response, self._stream = response, stream

    def __iter__(self) -> Iterator[bytes]:
        tail = b"\r\n\r\n"
        for part in self._response.iter_stream():
            tail = (tail + part[-TAIL_BYTES:])[-TAIL_BYTES:]
            yield part
        if any(name.lower() == b"transfer-encoding" for name, _ in self._response.headers):
            tail = b"\r\n0\r\n\r\n"
        if not self._stream.tail.endswith(tail):
            self._stream.spoil()

    def close(self) -> None:
        """Gives the connection back, or closes it if the body was not read to its end."""
        self._response.close()


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Verifies certificates against a file, or else against the system's store, whatever SSL_CERT_FILE names."""
    if ca_file is None:
        paths = ssl.get_default_verify_paths()
        file, folder = Path(paths.openssl_cafile), Path(paths.openssl_capath)
        return ssl.create_default_context(
            cafile=str(file) if file.is_file() else None, capath=str(folder) if folder.is_dir() else None
        )
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ValueError) as error:
        reason = "it contains no certificate in PEM format" if isinstance(error, ssl.SSLError) else "it cannot be read"
        raise UsageError(
            f"sources.http.ca_file: {ca_file} cannot be used: {reason}", "Name a PEM file of the certificates to trust."
        ) from None


def _proxy(url: str) -> httpcore.Proxy:
    parts = urlsplit(url)
    auth = None
    if parts.username is not None:
        auth = unquote(parts.username).encode(), unquote(parts.password or "").encode()
    host = (parts.hostname or "").encode()
    return httpcore.Proxy(httpcore.URL(scheme=b"http", host=host, port=parts.port, target=b"/"), auth)
