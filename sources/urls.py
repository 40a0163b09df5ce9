"""Addresses and keys: checked before the first request, for settings and for clients made without them.

In: what a person wrote, and the name of the setting. Out: the value in one form, or a UsageError that names the setting
and never the value, which may contain a password.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from orderbridge.sources.contract import PUBLIC_V1_PREFIX
from orderbridge.sources.errors import UsageError

PLACEHOLDER: Final = "replace-me"
"""How the keys of docs/schedules/orderbridge.env.example end."""
_OWN_PORTS: Final = {"https": ":443", "http": ":80"}
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~%@:+-]+)+")


def checked_base_url(name: str, value: object) -> str:
    """The address of a host: https, or http on loopback; in lower case, without the scheme's port and trailing slashes.

    Raises:
        UsageError: it is not such an address.
    """
    url = _http_url(name, value)
    if url.query or url.fragment or str(value).endswith(("?", "#")):
        raise _unusable(
            name, "contains a query or a fragment", "Remove everything from the ? or # on."
        )
    if url.path.rstrip("/").lower().endswith(PUBLIC_V1_PREFIX):
        raise _unusable(
            name,
            f"ends in {PUBLIC_V1_PREFIX}",
            f"Remove {PUBLIC_V1_PREFIX}: every request adds it.",
        )
    netloc = url.netloc.lower().removesuffix(_OWN_PORTS[url.scheme]).removesuffix(":")
    return f"{url.scheme}://{netloc}{url.path.rstrip('/')}"


def checked_webhook(name: str, value: object) -> str:
    """The address of a webhook: https, or http on loopback; path and query may contain a token. Raises UsageError."""
    _http_url(name, value)
    return str(value)


def checked_proxy(name: str, value: object) -> str:
    """The address of a proxy: `http://[user:password@]host:port`. Raises UsageError."""
    hint = "Use http://host:port or http://user:password@host:port; other kinds of proxies are not supported."
    url = _split(name, value)
    if (
        url.scheme != "http"
        or not url.hostname
        or not url.port
        or url.path.strip("/")
        or url.query
        or url.fragment
    ):
        raise _unusable(name, "is not the address of a usable proxy", hint)
    return str(value).rstrip("/")


def checked_key(name: str, value: object) -> str:
    """An API key. Raises UsageError for one that is empty, or that could end its header or start another."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is not a string", "Put it in quotes.")
    if not value.strip():
        raise UsageError(f"{name} is empty", "Paste the key as the platform issued it.")
    if not _is_printable_ascii(value):
        raise UsageError(
            f"{name} contains a space, a line end or a character that no key has",
            "Paste the key alone: no quotes within quotes, no `Bearer`, no line end.",
        )
    if set(value) & set("\"'"):
        raise UsageError(
            f"{name} contains a quotation mark",
            "Paste the key alone, without a second pair of quotes.",
        )
    if value.endswith(PLACEHOLDER):
        raise UsageError(
            f"{name} is the placeholder of the example", "Paste the key as the platform issued it."
        )
    return value


def request_target(path: str, params: Mapping[str, str | int] | None) -> str:
    """Path and query of a request. Raises ValueError for a path that leads outside of its base."""
    if not _PATH.fullmatch(path) or any(part in (".", "..") for part in path.split("/")):
        raise ValueError("a path consists of letters, digits and slashes; a query goes into params")
    return f"{path}?{urlencode(params, quote_via=quote)}" if params else path


def _split(name: str, value: object) -> SplitResult:
    if not isinstance(value, str) or not value:
        raise _unusable(name, "is not an address")
    if not _is_printable_ascii(value) or "\\" in value:
        raise _unusable(name, "contains a space, a line end or a character that no address has")
    try:
        url = urlsplit(value)
        _ = url.hostname, url.port
    except ValueError:
        raise _unusable(name, "is not an address") from None
    return url


def _http_url(name: str, value: object) -> SplitResult:
    """The parts of an address: https, or http on loopback, and no user. Raises UsageError."""
    url = _split(name, value)
    if url.scheme not in ("http", "https"):
        raise _unusable(name, "does not start with https:// (http:// only for this machine)")
    if not url.hostname:
        raise _unusable(name, "has no host")
    if "%" in url.netloc:
        raise _unusable(
            name, "has a zone or an escape in its host", "Use the plain host name or address."
        )
    if "@" in url.netloc:
        raise _unusable(
            name, "contains a user name or a password", "Remove everything before the @."
        )
    if url.scheme == "http" and not is_loopback(url.hostname):
        raise _unusable(
            name,
            "is http: what is sent would be unencrypted",
            "Use https://; http is for this machine.",
        )
    return url


def _unusable(
    name: str, why: str, hint: str = "An address looks like https://host or https://host/path."
) -> UsageError:
    return UsageError(f"{name} {why}", hint)


def _is_printable_ascii(text: str) -> bool:
    return all("!" <= letter <= "~" for letter in text)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
