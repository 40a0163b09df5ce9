"""A server on raw sockets, for responses that no library would send; and reads that wait without sleeping."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from unittest import mock

from orderbridge.sources.http.client import Client

Script = Callable[[socket.socket], None] | bytes


def asked(connection: socket.socket) -> bytes:
    """The next request, with its body unless that is large; empty if the connection ended."""
    request, length = b"", 0
    while (head := request.find(b"\r\n\r\n")) < 0 or len(request) < head + 4 + length:
        if not (part := connection.recv(65536)):
            return b""
        request += part
        if announced := re.search(rb"(?i)\r\ncontent-length: *([0-9]{1,4})\r\n", request):
            length = int(announced[1])
    return request


class RawServer:
    """Plays a script for each connection that sends a request, the last one from then on; `seen` has the requests."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None) -> None:
        self.scripts, self.seen, self.tls = scripts, list[bytes](), tls
        self.listener = socket.create_server(("127.0.0.1", 0))
        host = "https://localhost" if tls else "http://127.0.0.1"
        self.url = f"{host}:{self.listener.getsockname()[1]}"
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self.play, args=(connection,))
            self.threads.append(thread)
            thread.start()

    def play(self, plain: socket.socket) -> None:
        with (
            suppress(OSError),
            plain
            if self.tls is None
            else self.tls.wrap_socket(plain, server_side=True) as connection,
        ):
            if request := asked(connection):
                self.seen.append(request)
                script = self.scripts[min(len(self.seen), len(self.scripts)) - 1]
                if isinstance(script, bytes):
                    connection.sendall(script)
                else:
                    script(connection)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(5)


@contextmanager
def serving(*scripts: Script, tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    server = RawServer(*scripts, tls=tls)
    try:
        yield server
    finally:
        server.close()


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def sending(pieces: Iterable[bytes], pause_s: float = 0.0) -> Callable[[socket.socket], None]:
    def script(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause_s)

    return script


def drip(head: bytes, piece: bytes) -> Callable[[socket.socket], None]:
    return sending([head, *[piece] * 400], 0.02)


@contextmanager
def without_backoff() -> Iterator[None]:
    """Inside the block, no read waits, in every thread. What it would have waited is spent nevertheless."""
    with mock.patch.object(Client, "_sleep", lambda client, seconds: client._check_stop()):
        yield
