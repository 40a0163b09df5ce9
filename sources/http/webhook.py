"""A webhook: one POST of JSON to an address that a person set, such as Slack's or Teams'.

In: the address and a payload. Out: whether it arrived. The address is a secret, since it may contain a token: what is
returned names its host only. The HTTP settings (limits, CA file, proxy) apply here too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import monotonic
from typing import Final

import httpx

from orderbridge.sources.http.failures import connection_failure
from orderbridge.sources.http.transport import Transport
from orderbridge.sources.settings import HttpSettings, Secret

TIMEOUT_S: Final = 15.0


def post_json(url: Secret, payload: Mapping[str, object], settings: HttpSettings) -> str:
    """Sends the payload once; redirects are not followed.

    Returns:
        Why it was not accepted, without the address; empty if it was.
    """
    address = httpx.URL(url.reveal())
    host = address.netloc.decode()
    seconds = min(TIMEOUT_S, settings.timeout_s)
    proxy = settings.proxy.reveal() if settings.proxy else None
    transport = Transport(address, ca_file=settings.ca_file, proxy=proxy)
    headers = {"Content-Type": "application/json", "User-Agent": "orderbridge"}
    request = httpx.Request("POST", address, headers=headers, content=json.dumps(payload).encode())
    request.extensions = {
        "deadline": monotonic() + seconds,
        "timeout": httpx.Timeout(seconds, read=settings.read_timeout_s).as_dict(),
    }
    try:
        with transport:
            response = transport.handle_request(request)
            response.close()
    except httpx.TransportError as error:
        return connection_failure(error, host, seconds, settings.read_timeout_s, "notify.url").words
    return "" if response.is_success else f"{host} answered with status {response.status_code}"
