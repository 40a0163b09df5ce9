"""Whose platform answers: before the first write under a key, customers that are known are looked for.

In: the key, the ledger, the published warehouse, the first pages of the platform's customers. Out: the digest of the
key in the ledger; or a UsageError before anything is sent. A key that was used before is known and costs no request: it
cannot belong to another organization. A new one of another organization on the same host would create customers there.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from orderbridge.pipelines.ledger.keys import key_hashes, salted
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.sources.contract import CUSTOMER, LISTS
from orderbridge.sources.decode.json_numbers import Number, canonical
from orderbridge.sources.decode.rows import InvalidRow, Page, parse, split
from orderbridge.sources.errors import ContractBroken, HttpRejected, Unreachable, UsageError
from orderbridge.sources.extract.walk import paginator_for
from orderbridge.sources.http.client import Client
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.settings import LegacySettings, warehouse_path

log = logging.getLogger("orderbridge.push")
PAGES_MAX: Final = 10
"""Pages of the list that are looked at: a list may begin with the newest customers, which nobody knows yet."""
_KEYS: Final = KINDS["customers"].list_keys
_NOTHING_SENT: Final = "Nothing was sent."
_KNOWN: Final = """
    SELECT id, erp_code, email, login_code FROM raw.customers
    WHERE id IN (SELECT unnest(?)) AND _first_seen_at <= ?"""
_LEDGER_ROWS: Final = """
    SELECT o.remote_id, c.key FROM operations o JOIN plans p USING (plan) JOIN claims c USING (plan, id)
    WHERE p.host = ? AND c.host = p.host AND p.kind = 'customers' AND o.state = 'confirmed'
    AND o.remote_id IS NOT NULL"""

Row = Mapping[str, Any]
"""A customer of the list, with the interface's field names."""


def check_platform(client: Client, legacy: LegacySettings, ledger: Ledger) -> None:
    """Checks that the key belongs to the organization that this project knows; if it is shown, its digest is kept.

    Where nothing is known yet, the caller keeps it once a write was answered: a key with a typing error is none.

    Raises:
        UsageError: no known customer is there, or nothing shows whose a new key is.
        AccessError, PlatformError, Stopped: the customers could not be read.
    """
    host = legacy.base_url
    digest = key_digest(legacy, ledger)
    if ledger.is_known_key(host, digest):
        return
    from orderbridge.pipelines.warehouse.build import kept_open

    others = ledger.other_keys_used_at(host, digest)
    with kept_open():
        known = _Known.read(ledger, host, max(others, default=None))
        if known.is_empty:
            if others:
                raise _unknown_key(host)
            return
        if not any(map(known.has_any, _first_pages(client, legacy.page_limit))):
            raise _other_organization(host)
    ledger.keep_key(host, digest)


def key_digest(legacy: LegacySettings, ledger: Ledger) -> bytes:
    """What stands for a key of a platform; the ledger salts it."""
    host = ledger.host_name(legacy.base_url)
    return hashlib.sha256(f"{host}\0{legacy.api_key.reveal()}".encode()).digest()


def needs_confirmation(legacy: LegacySettings, ledger: Ledger) -> bool:
    """Whether a key is new, and nothing shows whose it is."""
    digest = key_digest(legacy, ledger)
    others = ledger.other_keys_used_at(legacy.base_url, digest)
    if not others or ledger.is_known_key(legacy.base_url, digest):
        return False
    return _Known.read(ledger, legacy.base_url, max(others)).is_empty


def _unknown_key(host: str) -> UsageError:
    command = f"orderbridge answer key:{urlsplit(host).netloc} same"
    return UsageError(
        f"sources.legacy.api_key was changed, and no known customer of {host} shows whose it is",
        f"{_NOTHING_SENT} If it is a key of the same organization: {command}",
    )


def _other_organization(host: str) -> UsageError:
    return UsageError(
        f"none of the customers that this project knows is on the first pages of {host}: "
        "sources.legacy.api_key may be a key of another organization",
        f"{_NOTHING_SENT} Set the right key: orderbridge init sources.legacy.api_key",
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """The customers that a project knows of a host.

    Attributes:
        warehouse: the published one, if its customers are of this host.
        until: those that were first seen later may be of the new key.
        salt, hashes: of the ledger: the hashed keys of the customers that it created, by id.
    """

    host: str
    warehouse: Path | None
    until: datetime
    salt: bytes
    hashes: Mapping[str, set[bytes]]

    @classmethod
    def read(cls, ledger: Ledger, host: str, until: float | None) -> _Known:
        hashes: dict[str, set[bytes]] = {}
        name = ledger.host_name(host)
        for remote_id, key in ledger.connection.execute(_LEDGER_ROWS, [name]):
            hashes.setdefault(remote_id, set()).add(key)
        last = datetime.now(UTC) if until is None else datetime.fromtimestamp(until, UTC)
        return cls(name, _warehouse_of(host, last), last, ledger.salt, hashes)

    @property
    def is_empty(self) -> bool:
        return self.warehouse is None and not self.hashes

    def has_any(self, rows: Sequence[Row]) -> bool:
        """Whether a customer of a page is known, by its id and a key: ids of two shops may be equal."""
        return any(map(self._is_created, rows)) or self._is_in_warehouse(rows)

    def _is_created(self, row: Row) -> bool:
        known = self.hashes.get(_text(row.get(CUSTOMER.key)), set())
        own = (
            salted(self.salt, one)
            for name in _KEYS
            for one in key_hashes(self.host, name, _text(row.get(name)))
        )
        return bool(known) and any(one in known for one in own)

    def _is_in_warehouse(self, rows: Sequence[Row]) -> bool:
        if self.warehouse is None:
            return False
        from orderbridge.pipelines.warehouse.build import open_warehouse

        by_id = {_text(row.get(CUSTOMER.key)): row for row in rows}
        with open_warehouse(self.warehouse) as warehouse:
            found = warehouse.execute(_KNOWN, [list(by_id), self.until]).fetchall()
        return any(_is_same(by_id[record_id], keys) for record_id, *keys in found)


def _is_same(row: Row, keys: Sequence[str | None]) -> bool:
    """Whether two records with one id are one customer: the keys that both have are equal, or neither has any.

    One equal key is not enough: two shops may both number their customers from 1.
    """
    here = [_text(row.get(name)).strip().casefold() for name in _KEYS]
    there = [(key or "").strip().casefold() for key in keys]
    both = [(one, other) for one, other in zip(here, there, strict=True) if one and other]
    has_keys = any(here) or any(there)
    return all(one == other for one, other in both) and (bool(both) or not has_keys)


def _warehouse_of(host: str, until: datetime) -> Path | None:
    """The published warehouse, if it has customers of this host that were seen until then."""
    from orderbridge.pipelines.warehouse.build import open_warehouse
    from orderbridge.pipelines.warehouse.ops import last_reads

    path = warehouse_path()
    if not path.exists():
        return None
    try:
        with open_warehouse(path) as warehouse:
            read = last_reads(warehouse).get(CUSTOMER.name)
            if read is None or read.legacy_host != urlsplit(host).netloc:
                return None
            sql = "SELECT 1 FROM raw.customers WHERE _first_seen_at <= ? LIMIT 1"
            has_rows = warehouse.execute(sql, [until]).fetchone() is not None
    except UsageError as error:
        log.warning("%s; its customers do not show whose platform this is", error.message)
        return None
    return path if has_rows else None


def _first_pages(client: Client, page_limit: int) -> Iterator[list[Row]]:
    """The first pages of the customers, as they come, without rows that cannot be read."""
    pages = paginator_for(LISTS[CUSTOMER.name], page_limit)
    for _ in range(PAGES_MAX):
        request = pages.next_request()
        if request is None:
            return
        try:
            page, _ = client.get(
                LISTS[CUSTOMER.name].path,
                request.params,
                check=pages.parse,
                is_probe=request.probe,
            )
        except (HttpRejected, ContractBroken, Unreachable) as error:
            if not (request.probe or isinstance(error, HttpRejected)):
                raise
            pages.reject(request, error)
            continue
        if pages.accept(request, page):
            yield list(_readable_rows(page.rows))
        if pages.ended_by:
            return


def _readable_rows(rows: bytes) -> Iterator[Row]:
    """The rows of an array; not one that cannot be read, such as one that is nested too deep."""
    for row in split(Page(1, rows)):
        with suppress(InvalidRow):
            yield parse(row)


def _text(value: object) -> str:
    """An id or a key as text; 7.0 is 7."""
    if isinstance(value, Number):
        return canonical(value) or ""
    return value if isinstance(value, str) else ""
