"""`reconciled.erp_variants` is compared row by row and column by column with plain Python over file and ledger.

Nights with a file, without one, with another one, and without any: each host, plan and field is there at least twice.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reconcile.erp.variants import compare_variants, read_erp_variants
from orderbridge.pipelines.warehouse import ops
from orderbridge.sandbox.config import LEGACY_KEY

Row = dict[str, Any]
OURS, OTHER = "http://127.0.0.1:9", "http://127.0.0.1:10"
AT = 1_780_000_000.25
FIELDS = ("sku", "erpCode", "price", "stock", "jumpFactor", "weight")
"""In the sequence of the interface; the file has another one."""
TEXTS = ("erpCode", "sku")
VALUES = {
    "erpCode": ("00038", "38", "", 'E "7"'), "sku": ("S-1", "S-2", "", "ñ"), "price": ("1.5", "1.50", "2", "", "20"),
    "stock": ("0", "7", "", "700"), "weight": ("2", "2.0", "0.5", ""), "jumpFactor": ("1", "3", "", "5"),
}  # fmt: skip
"""As the file has them; empty: nothing is said."""
REFUSED = ({"weight": "heavy"}, {"variantId": ""}, {"jumpFactor": "0"})
"""What makes a line one that is rejected."""


@dataclass(frozen=True)
class Night:
    """The lines of the file, None without one; fields whose numbers are added; whether the last table is forgotten."""

    lines: list[Row] | None
    added: tuple[str, ...] = ()
    forget: bool = False


def _lines(draw: random.Random, count: int) -> list[Row]:
    """Some variants are there twice, and some lines are rejected."""
    lines: list[Row] = []
    for number in range(count):
        ids = {"productId": str(draw.randrange(1, 4)), "variantId": str(draw.randrange(1, 13))}
        line = ids | {name: draw.choice(("", "", *VALUES[name])) for name in FIELDS}
        lines.append(line | (REFUSED[number // 4 % 3] if number % 4 == 3 else {}))
    return lines


def _path(draw: random.Random) -> str:
    path = f"/products/{draw.randrange(1, 4)}/variants/{draw.randrange(1, 13)}"
    return draw.choice(
        (path, path, path, path, f"{path}/images", f"/v1{path}", "/products/1/variants/")
    )


def _json(name: str, text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if name in TEXTS else text


DRAW = random.Random(5)
NIGHTS = (
    Night(_lines(DRAW, 60)),
    Night(None),
    Night(_lines(DRAW, 24), ("stock",)),
    Night(_lines(DRAW, 24), ("price", "stock")),
    Night(None, forget=True),
)
PLANS = [
    {
        "plan": number, "plan_id": f"plan-{number}", "kind": "variants", "host": OTHER if number % 3 == 0 else OURS,
        "environment": "sandbox", "folder": f"folder{number}", "operations_sha256": "", "opened_at": AT,
    }
    for number in range(1, 7)
]  # fmt: skip
OPERATIONS: list[Row] = [
    {
        "plan": 1 + number % len(PLANS), "id": number, "method": "PATCH", "path": _path(DRAW),
        "fields": ",".join(DRAW.sample(FIELDS, DRAW.choice((1, 2)))), "state": state,
        "doubt_at": AT if state == "in_doubt" else DRAW.choice((None, None, None, AT)), "updated_at": AT,
    }
    for number, state in enumerate(("in_flight", "in_doubt", "confirmed", "planned", "rejected") * 6)
]  # fmt: skip
CONFIRMED = [
    {
        "host": host, "path": path, "field": name, "value": DRAW.choice(("", *[_json(name, text)] * 9)),
        "confirmed_at": AT + DRAW.randrange(10**6), "plan_id": DRAW.choice(PLANS)["plan_id"],
    }
    for host in (OURS, OTHER)
    for path in sorted({_path(DRAW) for _ in range(150)})
    for name in FIELDS
    for text in [DRAW.choice(VALUES[name][:2])]
    if text and DRAW.random() < 0.75
]  # fmt: skip


# the truth


def _sent(line: Row, name: str) -> Row | None:
    """What was last sent of a field: with its time where it was confirmed, without one where nobody knows."""
    path = f"/products/{line['productId']}/variants/{line['variantId']}"
    host_of = {one["plan"]: one["host"] for one in PLANS}
    own = [
        one for one in OPERATIONS
        if (host_of[one["plan"]], one["path"]) == (OURS, path) and name in one["fields"].split(",")
    ]  # fmt: skip
    confirmed = [
        one for one in CONFIRMED if (one["host"], one["path"], one["field"]) == (OURS, path, name)
    ]
    known = [one for one in confirmed if one["value"]]
    if known and not any(one["state"] == "in_flight" for one in own):
        return known[0]
    has_doubt = any(one["state"] == "in_flight" or one["doubt_at"] for one in own)
    return {"confirmed_at": None} if has_doubt or len(known) < len(confirmed) else None


def _is_same(name: str, text: str, value: str) -> bool:
    return json.loads(value) == text if name in TEXTS else Decimal(value) == Decimal(text)


def _row(number: int, line: Row, added: tuple[str, ...]) -> Row:
    other, in_doubt, never, confirmed = [], [], [], []
    for name in FIELDS:
        if name in added or not line[name]:
            continue
        sent = _sent(line, name)
        if sent is None:
            never.append(name)
        elif sent["confirmed_at"] is None:
            in_doubt.append(name)
        else:
            confirmed.append(sent)
            if not _is_same(name, line[name], sent["value"]):
                other.append(name)
    status = "differs" if other or in_doubt or never else "same"
    evidence = [
        f"{words}: {', '.join(names)}"
        for words, names in (("other", other), ("in doubt", in_doubt), ("never sent", never))
        if names
    ]
    if confirmed:
        last = max(confirmed, key=lambda one: one["confirmed_at"])
        at = datetime.fromtimestamp(last["confirmed_at"], UTC)
        evidence.insert(0, f"last confirmed {at:%Y-%m-%dT%H:%M:%S}Z in plan {last['plan_id']}")
    return {
        "line": number, "product_id": line["productId"], "variant_id": line["variantId"],
        "erp_code": line["erpCode"] or None, "sku": line["sku"] or None,
        "status": status if confirmed or in_doubt else "never_sent", "evidence": "; ".join(evidence),
    }  # fmt: skip


def _is_refused(line: Row) -> bool:
    try:
        Decimal(line["weight"] or 0)
    except InvalidOperation:
        return True
    return not line["variantId"] or line["jumpFactor"] == "0"


def table(nights: tuple[Night, ...]) -> list[Row]:
    night = nights[-1]
    if night.lines is None:
        return [] if night.forget or len(nights) == 1 else table(nights[:-1])
    return [
        _row(number, line, night.added)
        for number, line in enumerate(night.lines, 2)
        if not _is_refused(line) and any(line[name] for name in FIELDS)
    ]


def totals(nights: tuple[Night, ...]) -> set[tuple[str, str, int]]:
    found: set[tuple[str, str, int]] = set()
    for number, night in enumerate(nights, 1):
        if night.lines is None:
            continue
        rows = table(nights[:number])
        counts = {one["status"]: 0 for one in rows}
        for one in rows:
            counts[one["status"]] += 1
        counts |= {"erp_read": len(rows), "refused": sum(map(_is_refused, night.lines))}
        found |= {(f"run{number}", name, count) for name, count in counts.items()}
    return found


# the program


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ledger.sqlite"
    settings = {"BASE_URL": OURS, "API_KEY": LEGACY_KEY, "ENVIRONMENT": "sandbox"}
    for name, value in settings.items():
        monkeypatch.setenv(f"SOURCES__LEGACY__{name}", value)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    monkeypatch.setenv("LEDGER__PATH", str(path))
    with Ledger.open(path) as made, made.transaction() as connection:
        for name, rows in (("plans", PLANS), ("operations", OPERATIONS), ("confirmed", CONFIRMED)):
            marks = ", ".join(f":{column}" for column in rows[0])
            sql = f"INSERT INTO {name} ({', '.join(rows[0])}) VALUES ({marks})"
            connection.executemany(sql, rows)
    return path


def made_nights(folder: Path) -> Iterator[tuple[list[Row], set[tuple[str, str, int]]]]:
    """The table, and the totals, as the run of each night leaves them."""
    with pytest.MonkeyPatch.context() as patch, duckdb.connect() as build:
        build.execute("CREATE SCHEMA reconciled")
        ops.create_missing(build)
        for number, night in enumerate(NIGHTS, 1):
            for name in ("price", "stock"):
                value = "increment" if name in night.added else "set"
                patch.setenv(f"SOURCES__LEGACY__{name.upper()}_SEMANTICS", value)
            mapping = _mapping(folder, night)
            files = ErpFiles(variants=_file(folder, night), variants_mapping=mapping)
            erp = read_erp_variants(files)
            compare_variants(build, f"run{number}", erp, forget=night.forget)
            found = build.sql("FROM reconciled.erp_variants")
            rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
            sql = "SELECT run_id, measure, value FROM ops.control_totals WHERE entity = 'reconciled.erp_variants'"
            yield rows, {*build.execute(sql).fetchall()}


def _file(folder: Path, night: Night) -> Path | None:
    if night.lines is None:
        return None
    path = folder / "variants.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["productId", "variantId", *sorted(FIELDS)])
        writer.writeheader()
        writer.writerows(night.lines)
    return path


def _mapping(folder: Path, night: Night) -> Path | None:
    """The mapping that says which numbers are changes."""
    if not night.added:
        return None
    path = folder / "variants.toml"
    columns = {name: f'"{name}"' for name in ("productId", "variantId", *FIELDS)}
    columns |= {name: f'{{ field = "{name}", change = true }}' for name in night.added}
    lines = [f"{name} = {value}" for name, value in columns.items()]
    path.write_text("\n".join(['kind = "variants"', "[columns]", *lines, ""]), "utf-8")
    return path


def test_a_comparison_with_the_ledger_is_what_plain_python_finds(ledger: Path) -> None:
    for number, (rows, counts) in enumerate(made_nights(ledger.parent), 1):
        assert rows == table(NIGHTS[:number]), number
        assert counts == totals(NIGHTS[:number])


def test_no_column_of_the_comparison_is_constant() -> None:
    rows = table(NIGHTS[:1]) + table(NIGHTS[:3])
    assert {one["status"] for one in rows} == {"same", "differs", "never_sent"}
    assert all(len({one[name] for one in rows}) > 1 for name in rows[0])
