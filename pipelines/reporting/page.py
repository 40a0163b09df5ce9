"""The report as HTML: sections of words, tables and plots, with nothing that is loaded from elsewhere.

In: `Facts`. Out: the page as text. What stands on it is counts, ids, and names of promotions, price lists and fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, timedelta
from importlib import resources
from typing import Any, Final

import pandas as pd

from pipelines.reporting import plots
from pipelines.reporting.facts import SOON_DAYS, TABLES, Facts, Rows
from pipelines.reporting.markup import Tag, beside, classed, get, name_of, picture, prose, table, tag, text
from pipelines.reporting.rules_page import SEVERITIES, anchor
from transforms.advice import ADVICE
from transforms.rules import RULES

START: Final = "<!doctype html>\n<!-- orderbridge report -->\n"
"""What a report begins with, and is told by."""
_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_SAYS: Final = {(rule.entity, rule.name): rule.says for rule in RULES}
_CHAINS: Final = {
    "root": "has prices of its own",
    "linked": "derives from another",
    "orphan": "derives from one that is not listed",
    "unknown": "derives from one that was not read",
    "cycle": "derives in a circle",
}
_CUSTOMER_LISTS: Final = {
    "matched": "on a listed price list",
    "default": "on the default list (none of their own)",
    "not_listed": "on one that is not listed",
    "unknown": "on one that was not read",
}
_ORDER_CUSTOMERS: Final = {
    "matched": "by a known customer",
    "unknown": "by a customer who is not in the table",
    "none": "name no customer",
    "not looked for": "customers were not looked for",
}


def page(facts: Facts) -> str:
    """The whole page."""
    style = resources.files("pipelines.reporting").joinpath("style.css").read_text("utf-8")
    head = Tag(
        f'<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Report of the order bridge</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="color-scheme" content="light dark">\n<style>\n{style}</style>\n</head>\n'
    )
    sections = (_summary, _coverage, _findings, _match, _price_lists, _promotions, _orders, _rules)
    body = "\n".join(part for section in sections for part in section(facts))
    return f"{START}{head}<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"


def _age(of: timedelta) -> str:
    if of < 2 * _HOUR:
        return f"{max(of, timedelta()) // timedelta(minutes=1)} min"
    return f"{of // _HOUR} h" if of < 2 * _DAY else f"{of // _DAY} days"


def _summary(facts: Facts) -> Iterator[Tag]:
    run = facts.run
    yield tag("h1", "Report of the order bridge")
    yield tag(
        "p",
        f"As of {facts.as_of.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        f", from the platform's {facts.environment} environment" if facts.environment else "",
        f". Made from what run {run['run_id']} (orderbridge {run['command']}, version {run['version']}) published.",
        class_="faint",
    )
    if facts.later_pull is not None:
        yield prose(
            f"Lists were pulled again, until {text(facts.later_pull)} UTC, and not reconciled since: tables below are "
            "older than their lists. Run `orderbridge reconcile`, or `orderbridge run` for both.",
            class_="notice",
        )
    by_severity = dict.fromkeys(SEVERITIES, 0)
    for row in facts.findings:
        by_severity[row["severity"]] += row["findings"]
    yield tag(
        "ul",
        *(tag("li", tag("b", facts.counts[name][0]), name.replace("_", " ")) for name in TABLES),
        *(
            tag("li", tag("b", count, **classed(name if count else "")), f"{name}s")
            for name, count in by_severity.items()
        ),
        class_="tiles",
    )


def _coverage(facts: Facts) -> Iterator[Tag]:
    yield tag("h2", "Lists: how far and how fresh")
    yield tag(
        "p",
        "A list is complete where its end was reached and proven, unproven where it moved meanwhile, incomplete where "
        "its walk failed: then the older table stayed. Ages are those at the end of the run.",
    )

    def verdict(row: dict[str, Any]) -> Tag:
        if not row["was_taken"]:
            return tag("span", f"{row['verdict']}, not taken over", class_="error")
        return tag("span", row["verdict"], class_="good" if row["verdict"] == "complete" else "warning")

    yield table(
        facts.lists,
        {
            "list": lambda row: row["resource"].replace("_", " "),
            "verdict": verdict,
            "records": get("distinct"),
            "refused": get("refused"),
            "age": lambda row: None if row["taken_at"] is None else _age(facts.as_of - row["taken_at"]),
            "read until (UTC)": get("taken_at"),
            "ended by": get("ended_by"),
        },
    )
    if facts.doubts:
        yield tag("p", "What is not proven, since a list may hold more than was read:")
        yield tag("ul", *(tag("li", f"{row['entity'].replace('_', ' ')}: {row['detail']}") for row in facts.doubts))
    yield tag("h3", "Reconciled tables")
    exceptions = {name: 0 for name in (*TABLES, "erp_customers") if name in facts.counts}
    for row in facts.findings:
        exceptions[row["entity"]] = exceptions.get(row["entity"], 0) + row["findings"]
    yield table(
        [{"name": name, "rows": rows, "gone": gone} for name, (rows, gone) in facts.counts.items()],
        {
            "table": lambda row: row["name"].replace("_", " "),
            "rows": get("rows"),
            "no longer listed": get("gone"),
            "findings": lambda row: exceptions.get(row["name"]),
        },
    )


def _findings(facts: Facts) -> Iterator[Tag]:
    yield tag("h2", "What does not fit")
    if not facts.findings:
        yield tag("p", "Nothing: no rule found anything.")
        return
    yield tag("p", "; ".join(f"{name}: {meaning}" for name, meaning in SEVERITIES.items()) + ".")
    yield beside(
        picture(plots.findings(pd.DataFrame(facts.findings))),
        table(
            facts.findings,
            {
                "severity": lambda row: tag("span", row["severity"], class_=row["severity"]),
                "findings": get("findings"),
                "table": lambda row: row["entity"].replace("_", " "),
                "rule": lambda row: tag("a", row["rule"], href=f"#{anchor(row['entity'], row['rule'])}"),
            },
        ),
    )


def _match(facts: Facts) -> Iterator[Tag]:
    yield tag("h2", "Compared with the ERP")
    if facts.matches is None or facts.differences is None:
        yield prose(
            "No export of the ERP was compared. `orderbridge reconcile --erp-customers FILE` compares one.",
        )
    else:
        yield beside(
            picture(plots.funnel(frame := pd.DataFrame(facts.matches))),
            table(
                [{"step": step, "count": count} for step, count in plots.match_steps(frame).items()],
                {"outcome": get("step"), "customers": get("count")},
            ),
        )
        for row in facts.doubts:
            if row["entity"] == "erp_customers":
                yield tag("p", f"They may be on the platform all the same: {row['detail']}.")
        yield tag("h3", "Fields that differ between those that matched")
        if facts.differences:
            labels = {f"{row['entity']}: {row['field']}": row["differences"] for row in facts.differences[:15]}
            yield beside(
                picture(plots.bars(labels, "Differences by field", "records")),
                table(
                    facts.differences,
                    {"table": get("entity"), "field": lambda row: name_of(row["field"]), "records": get("differences")},
                ),
            )
        else:
            yield tag("p", "None: every field that was compared is the same on both sides.")
    if facts.variants is not None:
        yield tag("h3", "Variants against what was last sent")
        yield table(
            facts.variants, {"status": lambda row: row["status"].replace("_", " "), "variants": get("variants")}
        )


def _price_lists(facts: Facts) -> Iterator[Tag]:
    yield tag("h2", "Price lists and who buys at them")
    if facts.price_list_status:
        yield _statuses(facts.price_list_status, _CUSTOMER_LISTS, "customers")
    if not facts.price_lists:
        yield _none(facts, "price_lists")
        return
    labels = _distinct([(row["name"], row["price_list_id"], row["customer_count"]) for row in facts.price_lists[:15]])
    yield beside(
        picture(plots.bars(labels, "Customers by price list", "customers")),
        table(
            facts.price_lists,
            {
                "id": get("price_list_id"),
                "name": lambda row: name_of(row["name"]),
                "prices": lambda row: _CHAINS[row["chain_status"]],
                "customers": get("customer_count"),
            },
        ),
    )


def _promotions(facts: Facts) -> Iterator[Tag]:
    yield tag("h2", "Promotions")
    if not facts.promotion_status:
        yield _none(facts, "promotions")
        return
    counts = {row["status"]: row["promotions"] for row in facts.promotion_status}
    colours = [plots.STATUS_COLOURS.get(name, plots.GREY) for name in counts]
    expiring = facts.expiring
    soon = (
        table(
            expiring,
            {
                "id": get("promotion_id"),
                "name": lambda row: name_of(row["name"]),
                "status": get("status"),
                "expires (UTC)": get("expires_at"),
                "used": get("use_count"),
                "left": get("remaining_uses"),
            },
        )
        if expiring
        else tag("p", "None.")
    )
    yield beside(
        picture(plots.bars(counts, "Promotions by status", "promotions", colours)),
        Tag(tag("h3", f"Expire within {SOON_DAYS} days of the run: {len(expiring)}") + soon),
    )


def _orders(facts: Facts) -> Iterator[Tag]:
    yield tag("h2", "Orders")
    if not facts.order_status:
        yield _none(facts, "orders")
        return
    yield _statuses(facts.order_status, _ORDER_CUSTOMERS, "orders")
    undated = sum(row["orders"] - row["dated"] for row in facts.order_status)
    if facts.order_days:
        yield picture(plots.over_time(pd.DataFrame(facts.order_days), "Orders", "orders"))
    if undated:
        yield tag("p", f"{undated:,} orders have no date that could be read, and are not in a plot over time.")


def _rules(facts: Facts) -> Iterator[Tag]:
    if not facts.findings:
        return
    yield tag("h2", "What the rules mean, and what to do")
    parts: list[Tag] = []
    for row in facts.findings:
        key = (row["entity"], row["rule"])
        advice = ADVICE.get(key)  # a warehouse may be of another version, with other rules
        parts.append(
            tag(
                "dt",
                f"{row['entity'].replace('_', ' ')}: {row['rule']} ",
                tag("span", f"{row['severity']}, {row['findings']:,} found", class_=row["severity"]),
                id=anchor(*key),
            )
        )
        if advice is None:
            parts.append(tag("dd", "This version does not know the rule."))
            continue
        parts += [
            tag("dd", prose(f"{_SAYS[key]} {advice.matters}")),
            tag("dd", prose(f"What to do: {advice.do}")),
        ]
    yield tag("dl", *parts)
    yield prose("Ids and details of each finding are in the table `reconciled.exceptions`.", class_="faint")


def _none(facts: Facts, name: str) -> Tag:
    """That a table is empty: what that means depends on whether its list was read whole."""
    walks = [row for row in facts.lists if row["resource"] == name and row["was_taken"]]
    is_proven = any(row["verdict"] == "complete" and row["taken_at"] <= facts.as_of for row in walks)
    one = name.removesuffix("s").replace("_", " ")
    return tag("p", f"No {one} is listed." if is_proven else f"No {one} was read.")


def _statuses(rows: Rows, words: Mapping[str, str], unit: str) -> Tag:
    return tag("p", ", ".join(f"{row[unit]:,} {words.get(row['status'], row['status'])}" for row in rows) + ".")


def _distinct(named: Sequence[tuple[str | None, str, int]]) -> dict[str, int]:
    """Counts by name; by name and id where a name comes twice, or there is none."""
    names = [name for name, _, _ in named]
    return {
        name if name and names.count(name) == 1 else f"{name or 'no name'} ({key})": count for name, key, count in named
    }
