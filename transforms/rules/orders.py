"""The rules about orders. The fields of an order are not shown, so several rules are about which column is which."""

from __future__ import annotations

from functools import partial
from typing import Final

from transforms.rules.rule import Rule, common_rules, date_rules

_rule = partial(Rule, "orders")

_COLUMNS: Final = (
    _rule(
        "field_not_found",
        "warning",
        "No column of the raw orders is proven to hold a field of the reconciled orders.",
        "The field is null for all orders, so counts and sums that need it are empty.",
        "The detail names the candidates and why none was chosen. Set the `reconcile.order_…` setting that it names.",
    ),
    _rule(
        "field_changed",
        "error",
        "The column that holds a field is not the one that earlier runs used, or another one fits better now.",
        "Orders may be assigned to other customers, dates or amounts than before.",
        "Compare both columns in `raw.orders`, then set the `reconcile.order_…` setting that the detail names.",
    ),
    _rule(
        "matched_share_fell",
        "error",
        "A smaller share of the orders belongs to a known customer than in the last run.",
        "The column may have changed its meaning, or customers are missing: revenue by customer is too low.",
        "Compare the column with `reconcile.order_customer_id`, and check that all customers were read.",
    ),
    _rule(
        "total_notation",
        "error",
        "The totals are texts such as `1.234`, which may mean thousands or a fraction; none of them is read.",
        "Read in the wrong notation, every amount would be wrong by a factor of 1,000.",
        "Find out how the platform writes amounts. A single total with a different number of decimals proves it.",
    ),
    _rule(
        "currencies_mixed",
        "warning",
        "The orders are in several currencies.",
        "A sum of `total` over all orders adds up different currencies.",
        "Group by `currency`, or use `revenue_by_currency` in `reconciled.customer_orders`.",
    ),
    _rule(
        "cancelled_with_total",
        "warning",
        "Cancelled orders have a total.",
        "A sum of `total` over all orders includes them.",
        "Filter by `order_status`, or use `reconciled.customer_orders`, whose revenue leaves them out.",
    ),
)

ORDER_RULES: Final = (
    *common_rules("orders", "an order"),
    *_COLUMNS,
    _rule(
        "customer_unknown",
        "warning",
        "The order refers to a customer that is not in the table.",
        "The order counts in totals but for no customer. The customer may have been removed from the platform.",
        "If there are many, check that all customers were read, and which column `reconcile.order_customer_id` names.",
    ),
    _rule(
        "customers_unproven",
        "warning",
        "Orders refer to customers that were not read and may be listed.",
        "The orders count in totals but for no customer, and it is unknown whether their customers still exist.",
        "The detail gives the reason: see `ops.quarantine` and `ops.coverage`, then pull both lists again. These "
        "orders have the `customer_status` `unknown`.",
    ),
    _rule(
        "customers_read_before",
        "info",
        "Customers were read in an earlier run than orders.",
        "A customer who was added between the two reads is reported as unknown.",
        "The detail gives both times. Pull both lists in one run where that matters.",
    ),
    _rule(
        "customer_ambiguous",
        "warning",
        "The order refers to an ERP code that several customers have.",
        "The order counts for none of the customers that share the code.",
        "Fix the finding erp_code_duplicate of these customers.",
    ),
    _rule(
        "customer_missing",
        "info",
        "The order refers to no customer.",
        "The order counts in totals but for no customer.",
        "Expected where guests may order; otherwise ask the platform.",
    ),
    *date_rules("orders", "ordered_at", "the order date", "the order is missing from counts over time"),
    _rule(
        "ordered_at_future",
        "warning",
        "The order date is in the future.",
        "Counts over time extend beyond today; often the date is that of a planned delivery.",
        "Check which column `reconcile.order_ordered_at` names.",
    ),
    _rule(
        "total_unreadable",
        "warning",
        "The total is not a decimal number with at most 9 decimals.",
        "The order counts without an amount.",
        "Check which column `reconcile.order_total` names, and its values in the raw table.",
    ),
    _rule(
        "total_negative",
        "info",
        "The total is negative.",
        "Sums are lower; the order may be a refund.",
        "Expected where the platform stores refunds as orders; otherwise ask the platform.",
    ),
    Rule(
        "order_lines",
        "order_missing",
        "error",
        "The order of the line is not in the table of orders.",
        "The line is left out of `reconciled.order_lines`, so its quantity and amount are not counted.",
        "Look for the order among the findings id_missing and id_duplicate; the cause is there.",
    ),
)
