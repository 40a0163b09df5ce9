"""Connections to one host: a transport of httpx over httpcore's pool, each request limited as a whole.

In: httpx requests with the extensions `deadline`, an instant on the monotonic clock, and `target`, if that is not the
path of the URL. Out: httpx responses, whose bodies are read as they are iterated, or httpx errors: a ConnectError,
ConnectTimeout or ProxyError proves that no byte of the request was sent. Sockets, TLS, proxies and HTTP parsing are
httpcore's; httpx's own transport has no parameter for the network backend that limits a request.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpcore
import httpx

from sources.errors import UsageError
from sources.http.network import TAIL_BYTES, DeadlineBackend, DeadlineStream, Exchange

KEEPALIVE_S: Final = 2.0
"""Shorter than what servers commonly keep: a write on a connection that just closes at the other end is in doubt."""
_POOL_ERRORS: Final = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)

# At debug level, httpcore logs the headers of responses, which may echo a key.
logging.getLogger("httpcore").setLevel(logging.INFO)


class Transport(httpx.BaseTransport):
    """Connections to one host, kept for a moment and reused; safe to use from several threads.

    Args:
        base_url: of the host.
        ca_file: certificates to trust (PEM); None: the system's store. The environment is not consulted.
        proxy: `http://[user:password@]host:port`.

    Raises:
        UsageError: the CA file cannot be used.
    """

    def __init__(self, base_url: httpx.URL | str, *, ca_file: Path | None = None, proxy: str | None = None) -> None:
        url = httpx.URL(base_url)
        is_tls = url.scheme == "https"
        self._scheme, self._host, self._port = url.raw_scheme, url.raw_host, url.port
        self._backend = DeadlineBackend(is_tls=is_tls)
        via = httpx.Proxy(proxy) if proxy else None
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls_context(ca_file) if is_tls else None,
            proxy=httpcore.Proxy(str(via.url), via.raw_auth) if via else None,
            max_connections=None,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=self._backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See BaseTransport; the body of the response is to be read on the same thread."""
        target = request.extensions.get("target") or request.url.raw_path
        exchange = self._backend.exchange = Exchange(request.extensions["deadline"])
        exchange.has_body = request.headers.get("content-length", "0") != "0"
        try:
            core_request = httpcore.Request(
                request.method,
                httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=target),
                headers=request.headers.raw,
                content=request.stream if exchange.has_body else (),
                extensions={"timeout": request.extensions.get("timeout", {})},  # no target: CONNECT has its own
            )
            exchange.remaining_s(None, httpcore.ConnectTimeout)
            response = self._pool.handle_request(core_request)
            exchange.head_bytes = None
            stream = response.extensions["network_stream"]
            is_http_1 = response.extensions["http_version"].startswith(b"HTTP/1.") and response.status >= 200
            if not (is_http_1 and isinstance(stream, DeadlineStream) and stream.has_read):
                stream.close()
                response.close()  # a protocol that was not asked for, or a response that was there before its request
                raise httpcore.RemoteProtocolError("not a response to the request")
        except _POOL_ERRORS as error:
            raise _as_httpx(error, exchange) from error
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response, stream, exchange))

    def close(self) -> None:
        """Closes every connection and ends every wait on one."""
        self._backend.interrupt()
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body of a response. A connection that received more than the response is not used again."""

    def __init__(self, response: httpcore.Response, stream: DeadlineStream, exchange: Exchange) -> None:
        self._response, self._stream, self._exchange = response, stream, exchange

    def __iter__(self) -> Iterator[bytes]:
        tail = b"\r\n\r\n"
        try:
            for part in self._response.iter_stream():
                tail = (tail + part[-TAIL_BYTES:])[-TAIL_BYTES:]
                yield part
        except _POOL_ERRORS as error:
            raise _as_httpx(error, self._exchange) from error
        if any(name.lower() == b"transfer-encoding" for name, _ in self._response.headers):
            tail = b"\r\n0\r\n\r\n"
        if not self._stream.tail.endswith(tail):
            self._stream.spoil()

    def close(self) -> None:
        """Gives the connection back, or closes it if the body was not read to its end."""
        self._response.close()


def _as_httpx(error: Exception, exchange: Exchange) -> httpx.TransportError:
    """The error of httpx with the same name as httpcore's; a failed connect if nothing was sent."""
    name = type(error).__name__
    if not exchange.is_sent and not isinstance(error, httpcore.ProxyError | httpcore.LocalProtocolError):
        name = "ConnectTimeout" if isinstance(error, httpcore.TimeoutException) else "ConnectError"
    kind: type[httpx.TransportError] = getattr(httpx, name)
    return kind(str(error))


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
