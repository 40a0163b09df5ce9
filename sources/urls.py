"""Addresses and keys as a request may carry them: the last check before the first byte.

`sources.settings` checks the same with more words; here it holds for whoever makes a client, settings or not.
"""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from sources.contract import Family
from sources.errors import UsageError

PORTS: Final = {"http": 80, "https": 443}
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~%@:+-]+)+")


def checked_base(family: Family, base_url: str) -> str:
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


def checked_key(family: Family, key: str) -> str:
    """The key. Raises UsageError for one that could end its header or start another."""
    if not key or not all("!" <= letter <= "~" for letter in key):
        raise UsageError(f"sources.{family}.api_key is empty or holds a letter that no header can carry")
    return key


def address(base: str, path: str, params: Mapping[str, str | int] | None) -> str:
    """The whole address. Raises ValueError for a path that would lead elsewhere."""
    if not _PATH.fullmatch(path) or any(part in (".", "..") for part in path.split("/")):
        raise ValueError("a path has letters, digits and slashes; a query goes into params")
    return f"{base}{path}?{urlencode(params, quote_via=quote)}" if params else base + path


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy of the environment; `headers` hold its password."""

    host: str
    port: int
    headers: list[tuple[bytes, bytes]] = field(repr=False)

    @classmethod
    def of_environment(cls, scheme: str, host: str) -> Proxy | None:
        """The proxy for a host, or None. Raises UsageError where it is of a kind that is not spoken."""
        found = None if proxy_bypass(host) else getproxies().get(scheme)
        if not found:
            return None
        told = urlsplit(found if "://" in found else f"http://{found}")
        try:
            port = told.port or PORTS["http"]
        except ValueError:
            port = 0
        if told.scheme != "http" or not told.hostname or not port:
            raise UsageError(
                f"the environment names a proxy for {scheme} that cannot be used",
                "A proxy is given as http://host:port; other kinds are not spoken.",
            )
        headers = []
        if told.username is not None:
            pair = f"{unquote(told.username)}:{unquote(told.password or '')}".encode()
            headers.append((b"Proxy-Authorization", b"Basic " + b64encode(pair)))
        return cls(told.hostname, port, headers)
