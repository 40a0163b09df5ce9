"""Nights of a quiet shop, and of one whose new orders are in another form from some night on.

The quiet shop is as shops are: fields that few orders have, some that are filled days later and not at weekends,
guests, customers that are gone, shipping that often costs nothing. The judge: a quiet night has no alarm, in a whole
year; what new orders lack is an error from the first night on, every night, until they have been corrected or a person
accepts it.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from unittest import mock

from orderbridge.pipelines.warehouse import ops
from orderbridge.sources.extract.result import ListResult
from tests.soak.nights import NightlyPull, Row
from tests.soak.walks import Outcome, folder_in_memory, inline

YEAR: Final = 365
ENOUGH: Final = 10
ENOUGH_OF_FEW: Final = 30
"""New orders in another form from which an error is expected: in a night, and of fewer a night in all, as right ones
are judged together with the first of them."""
LISTED: Final = 1000
"""Orders that the platform lists; older ones leave the list."""
CUSTOMERS: Final = 40
ALARMS: Final = """
    SELECT rule, detail FROM reconciled.exceptions
    WHERE (severity = 'error' OR rule = 'values_jumped') AND NOT is_accepted ORDER BY ALL"""
Break = Callable[[Row], dict[str, Any]]


@dataclass(frozen=True)
class NewForm:
    """A form of new orders, and the alarms that it must raise: rule, and how the detail begins."""

    change: Break
    alarms: tuple[tuple[str, str], ...]


FORMS: Final[dict[str, NewForm]] = {
    "the total is an object": NewForm(
        lambda order: {"total": {"amount": order["total"]}},
        (("form_changed", "orders: total"), ("values_gone", "orders: total")),
    ),
    "the status is an object": NewForm(
        lambda order: {"status": {"code": order["status"]}}, (("form_changed", "orders: status"),)
    ),
    "the customer is an object": NewForm(
        lambda order: {"customerId": {"key": order["customerId"] or 0}},
        (("form_changed", "orders: customerId"), ("matched_share_fell", "customer_id")),
    ),
    "the lines are wrapped": NewForm(
        lambda order: {"lines": {"data": order["lines"]}},
        (("values_gone", "orders__lines: sku"), ("values_gone", "orders__lines: price")),
    ),
    "there is no total": NewForm(
        lambda order: {"total": None}, (("values_gone", "orders: total"),)
    ),
    "the total is 0": NewForm(lambda order: {"total": 0}, (("values_gone", "orders: total"),)),
    "there are no lines": NewForm(lambda order: {"lines": []}, (("values_gone", "orders: lines"),)),
    "the customers are others": NewForm(
        lambda order: {"customerId": 7_000_000 + order["id"]},
        (("matched_share_fell", "customer_id"),),
    ),
}


class NewRows(NightlyPull):
    """A shop with many new orders a night, or with few."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(folder, page=100)
        self.draw = random.Random(seed)
        self.per_night = self.draw.choice((4, 30, 30))
        self.count = 0
        self.orders: list[Row] = []
        self.counts: Counter[str] = Counter()
        self.form: NewForm | None = None
        self.right: dict[int, Row] = {}
        """The orders in a new form as they would be without it."""
        self._add(self.draw.choice((60, 900)))
        self.warehouse.execute(
            f"INSERT INTO raw.customers BY NAME SELECT n::VARCHAR AS id FROM range({CUSTOMERS}) t(n)"
        )

    def _add(self, count: int) -> None:
        """New orders; in the first night, they are of the weeks before."""
        for n in range(count):
            self.count += 1
            days = 0 if self.number else (count - n) / self.per_night
            order = self._order(self.at - timedelta(days=days, minutes=count - n))
            if days > 2:
                order["deliveredAt"] = order["createdAt"]
            if self.form is not None:
                self.right[order["id"]] = order
                order = {**order, **self.form.change(order)}
            self.orders.append(order)

    def _order(self, at: Any) -> Row:
        draw = self.draw
        lines: list[Row] = [
            {
                "sku": f"S{draw.randrange(99)}",
                "quantity": draw.randrange(1, 9),
                "price": draw.randrange(100, 9999) / 100,
                "discount": 5 if draw.random() < 0.2 else None,
            }
            for _ in range(draw.randrange(1, 5))
        ]
        is_guest, is_gone = draw.random() < 0.05, draw.random() < 0.03
        customer = 1000 + self.count if is_gone else draw.randrange(CUSTOMERS)
        return {
            "id": self.count,
            "number": 9000 + self.count,
            "createdAt": f"{at:%Y-%m-%dT%H:%M:%SZ}",
            "customerId": None if is_guest else customer,
            "total": sum(line["quantity"] * line["price"] for line in lines),
            "status": draw.choice(("paid", "open", "sent")),
            "shippingCost": draw.choice((0, 0, 4.9)),
            "isGift": draw.random() < 0.1,
            "note": "please ring" if draw.random() < 0.5 else None,
            "coupon": "SPRING" if draw.random() < 0.05 else None,
            "deliveredAt": None,
            "lines": lines,
        }

    def _pass_a_day(self) -> None:
        """Orders come, are delivered on weekdays, are changed, and leave the list."""
        self.number += 1
        if self.number > 1:
            self._add(self.draw.randrange(self.per_night // 2, self.per_night * 3 // 2 + 1))
        if self.at.weekday() < 5:
            for order in self.orders[: -self.per_night]:
                order["deliveredAt"] = order["createdAt"]
        for order in self.draw.sample(self.orders, self.draw.randrange(self.per_night + 1)):
            order["note"] = self.draw.choice(("please ring", "second floor", None))
        self.orders = self.orders[-LISTED:]
        self.shop.orders = self.orders

    def _night(self) -> list[tuple[str, str]]:
        self._pass_a_day()
        customers = ListResult("customers", "complete", started_at=self.at, ended_at=self.at)
        run_id = f"run {self.number:02}"
        ops.record_coverage(self.warehouse, run_id, customers, published=True)
        if error := self.pull():
            return [("pull", error)]
        return self.warehouse.execute(ALARMS).fetchall()

    def quiet(self, nights: int) -> Iterator[str]:
        """Nights in which nothing happens that anybody should know of."""
        for _ in range(nights):
            self.counts["quiet nights"] += 1
            yield from (
                f"night {self.number}: alarm without a reason: {rule} {detail}"
                for rule, detail in self._night()
            )

    def broken(self, name: str | None = None) -> Iterator[str]:
        """Quiet nights; then new orders in another form, which are accepted in the end, or corrected."""
        yield from self.quiet(self.draw.randrange(1, 4))
        name = name or self.draw.choice(sorted(FORMS))
        self.form = FORMS[name]
        self.counts[name] += 1
        least_a_night = self.per_night // 2
        enough = ENOUGH if least_a_night >= ENOUGH else ENOUGH_OF_FEW
        last = enough // least_a_night + 4
        for night in range(1, last + 1):
            if night == last - 1:
                self.form = None  # later orders are right, and these are not
            found = self._night()
            is_enough = night * least_a_night >= enough
            for wanted in FORMS[name].alarms if is_enough else ():
                if not _is_among(wanted, found):
                    yield f"night {self.number}: {name}, not announced: {wanted}"
        if self.draw.random() < 0.5:
            self.form = FORMS[name]
            yield from self._accept(name, self._night())
        self.form = None
        yield from self._correct(name)

    def _correct(self, name: str) -> Iterator[str]:
        """The platform corrects the orders, and those to come: the alarms are gone."""
        self.orders = [
            self._corrected(order) if order["id"] in self.right else order for order in self.orders
        ]
        for rule, detail in self._night():
            is_of_new_form = (
                detail.startswith("orders__lines: data") or "different values" in detail
            )
            if not is_of_new_form:  # what the new form brought is gone, and that is a loss too
                yield f"night {self.number}: {name}, corrected, and still: {rule} {detail}"

    def _corrected(self, order: Row) -> Row:
        """An order as it would be without the new form; what happened to it since stays."""
        since = {name: order[name] for name in ("note", "deliveredAt")}
        return {**self.right[order["id"]], **since}

    def _accept(self, name: str, found: list[tuple[str, str]]) -> Iterator[str]:
        """A person accepts all alarms, and new orders stay in that form: the alarms are gone."""
        for rule, detail in found:
            place = detail.partition("; to answer: ")[0].rpartition(": ")[0]
            self.accept(rule, place)
            self.counts["accepted"] += 1
        for _ in range(2):
            for rule, detail in self._night():
                is_of_all_rows = rule == "form_changed" and " new rows " not in detail
                if not is_of_all_rows:  # these came to a twentieth of them only since
                    yield f"night {self.number}: {name}, accepted, and still: {rule} {detail}"


def _is_among(wanted: tuple[str, str], found: list[tuple[str, str]]) -> bool:
    rule, place = wanted
    return any(one == rule and detail.startswith(place) for one, detail in found)


def new_rows_seed(seed: int, nights: int = 0, form: str | None = None) -> Outcome:
    """Nights with a form of new orders, a drawn one or this one; each twentieth seed is a quiet year.

    `nights`: so many quiet ones instead.
    """
    if seed % 20 == 0:
        nights = nights or YEAR
    with (
        folder_in_memory() as folder,
        mock.patch.dict(os.environ, DLT_PROJECT_DIR=str(folder)),
        inline(),
    ):
        (folder / ".dlt").mkdir(mode=0o700)
        run = NewRows(seed, folder)
        problems = list(run.quiet(nights) if nights else run.broken(form))
        run.warehouse.close()
    return Outcome(run.counts, problems)
