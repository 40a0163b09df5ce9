"""Whether a host can be reached at all, within seconds: the first thing that a check of the settings finds out.

In: the address of a family. Out: the address, or `Unreachable` with the host and the reason. A request would try
several times, and the system's resolver alone can take half a minute for a name that it does not know.
"""

from __future__ import annotations

import socket
import threading
from typing import Final
from urllib.parse import urlsplit

from sources.contract import Family
from sources.errors import Unreachable
from sources.http.failures import unconnected

REACH_S: Final = 4.0
_PORTS: Final = {"https": 443, "http": 80}


def check_reachable(family: Family, base_url: str, seconds: float = REACH_S) -> str:
    """Connects to the host of a family within `seconds`, lookup of the name included, and returns its address.

    Raises:
        Unreachable: its name does not resolve, or nothing accepts the connection in time.
    """
    url = urlsplit(base_url)
    host = url.hostname or ""
    errors: list[BaseException] = [TimeoutError()]

    def connect() -> None:
        try:
            socket.create_connection((host, url.port or _PORTS[url.scheme]), seconds).close()
            errors.clear()
        except (OSError, UnicodeError) as error:
            errors[:] = [error]

    thread = threading.Thread(target=connect, daemon=True)  # the resolver cannot be interrupted
    thread.start()
    thread.join(seconds)
    for error in errors:
        failure = unconnected(error, url.netloc)
        raise Unreachable(failure.words, failure.hint, family=family, host=host, reason=failure.reason)
    return base_url
