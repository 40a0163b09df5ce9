"""The summary of a run or an import, posted to a webhook (the setting notify.url, `orderbridge run --notify URL`).

In: the results, or why it failed. Out: JSON with counts, verdicts and schema changes: no key, no value of a
record. `text` is the summary in words, which Slack and Teams show.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any

from orderbridge.pipelines.import_file.run import ImportResult
from orderbridge.pipelines.pull.model import PullResult
from orderbridge.pipelines.reconcile.reconcile import ReconcileResult
from orderbridge.pipelines.reporting.headline import (
    Headline,
    headline_of_error,
    headline_of_run,
)
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.failure import describe_error, was_published
from orderbridge.pipelines.warehouse.finding_history import in_words, new_findings
from orderbridge.pipelines.warehouse.ops import last_reads
from orderbridge.pipelines.warehouse.raw.schema_changes import schema_changes
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.sources.command_line import program
from orderbridge.sources.errors import ExitCode, Stopped, UsageError
from orderbridge.sources.http.webhook import post_json
from orderbridge.sources.settings import NotifySettings, Secret, find_root, http_settings
from orderbridge.sources.words import VERDICTS, number

log = logging.getLogger("orderbridge.notification")


@contextmanager
def notify_failure(
    url: Secret | None, command: str = "run", signal_code: Callable[[int], int] = int
) -> Iterator[None]:
    """Posts why the block failed, or that a signal stopped it; the error goes on. None: nothing is posted.

    `signal_code` gives the exit code with the number of the signal, for that of a stop.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        _post(url, partial(_failure, command, error, signal_code))
        raise


def notify_result(
    settings: NotifySettings, pulled: PullResult, reconciled: ReconcileResult | None
) -> None:
    """Posts what a run did, unless only problems are wanted and there is none."""
    if settings.on == "always" or _is_problem(pulled, reconciled):
        _post(settings.url, partial(run_summary, pulled, reconciled))


def _is_problem(pulled: PullResult, reconciled: ReconcileResult | None) -> bool:
    """Whether a person has something to do, or a figure has changed by a rule: that is reported once."""
    if pulled.exit_code != ExitCode.DONE:
        return True
    return reconciled is not None and bool(reconciled.new_questions or reconciled.left_revenue)


def notify_import(
    settings: NotifySettings,
    result: ImportResult,
    lines: Sequence[str],
    code: int,
    todo: str = "",
) -> None:
    """Posts what an import did, unless only problems are wanted and there is none.

    Args:
        settings: who gets it, and of what.
        result: of the import.
        lines: the result as text, without what is next.
        code: its exit code.
        todo: what is next, with its command; empty where nothing is.
    """
    if settings.on == "problems" and code == ExitCode.DONE:
        return
    kind = result.plan.kind
    error = result.push.error or result.error
    meaning = (ExitCode.STOPPED if code > 128 else ExitCode(code)).meaning
    headline = Headline(f"orderbridge import {kind}: {meaning} (exit code {int(code)})", todo)
    text = [*headline.lines, *map(str.strip, lines)]
    text += [str(error)] if error is not None else []
    counts = {
        f"{file}.{outcome}": count for (file, outcome), count in sorted(result.push.lines.items())
    }
    _post(
        settings.url,
        lambda: {"text": "\n".join(text), "exit_code": int(code), "kind": kind, "lines": counts},
    )


def _failure(
    command: str, error: Exception | KeyboardInterrupt, signal_code: Callable[[int], int]
) -> dict[str, Any]:
    ended = (
        Stopped("stopped by a signal", "The next run goes on where it was stopped.")
        if isinstance(error, KeyboardInterrupt)
        else error
    )
    code, message, hint = describe_error(ended)
    todo = headline_of_error(ended).todo
    exit_code = signal_code(code)
    if command == "import" and exit_code == ExitCode.USAGE:
        # columns that it names may be cells of a file without a header
        message = ExitCode.USAGE.meaning
        hint = "Its output says what to do."
        todo = hint
    published = was_published(error)
    failed = "the warehouse was published, but what follows failed" if published else "failed"
    happened = f"orderbridge {command}{':' * published} {failed} with exit code {int(exit_code)}"
    headline = Headline(f"{happened}: {message}", todo)
    before = hint.removesuffix(todo).rstrip()
    is_rest = not before or before.endswith(".")  # else the command ends its sentence
    further = [before if is_rest else hint]
    return {
        "text": "\n".join([*headline.lines, *filter(None, further)]),
        "exit_code": int(exit_code),
        "published": published,
        "message": message,
        "hint": hint,
    }


def run_summary(pulled: PullResult, reconciled: ReconcileResult | None) -> dict[str, Any]:
    """What a run did, as JSON."""
    with open_warehouse(pulled.path) as warehouse:
        news = [change.text for change in schema_changes(warehouse, datetime.now(UTC))]
        new = new_findings(warehouse) if reconciled else []
        reads = last_reads(warehouse)
        organization = read_source(warehouse).organization
    summary: dict[str, Any] = {
        "organization": organization,
        "run_id": pulled.run_id,
        "exit_code": int(pulled.exit_code),
        "published": pulled.published,
        "lists": [
            {
                **pulled.counts(walk),
                "published_rows": reads[walk.resource].rows if walk.resource in reads else 0,
            }
            for walk in pulled.lists
        ],
        "new_findings": [asdict(one) for one in new],
        "new_rules": [asdict(one) for one in reconciled.new_rules] if reconciled else [],
        "new_questions": reconciled.new_questions if reconciled else [],
        "left_revenue": reconciled.left_revenue if reconciled else [],
        "left_out": list(pulled.left_out),
        "ledger_problem": pulled.ledger_problem,
        "findings": dict(reconciled.severities) if reconciled else {},
        "schema_changes": news,
    }
    listed = reconciled.named + [one.text for one in reconciled.new_rules] if reconciled else []
    return {
        "text": _text(headline_of_run(pulled, reconciled), summary, in_words(new), listed),
        **summary,
    }


def _text(headline: Headline, summary: dict[str, Any], new: list[str], findings: list[str]) -> str:
    happened = f"the run ended with {summary['exit_code']}: {headline.happened}"
    lines = [*headline._replace(happened=happened).lines, f"run {summary['run_id']}", *new]
    for row in summary["lists"]:
        counts = [
            f"{row[name]} {name}"
            for name in ("new", "changed", "missing", "quarantined")
            if row[name]
        ]
        shown = ", ".join([f"{row['rows']} {VERDICTS[row['verdict']]}", *counts])
        if row["problem"]:
            state = "held back" if row["rows"] else "not read"
            shown = f"{state}; {number(row['published_rows'], 'row')} kept from before: {row['problem']}"
        lines.append(f"{row['resource'].replace('_', ' ')}: {shown}")
    if summary["findings"]:
        lines.append(
            "findings: "
            + ", ".join(f"{count} {name}" for name, count in summary["findings"].items())
        )
        lines += [f"  {one}" for one in findings]
    lines += summary["left_revenue"]
    lines += [
        f"new question: {program()} questions {question}" for question in summary["new_questions"]
    ]
    if summary["left_out"]:
        lines.append(f"not read, as their API has no settings: {', '.join(summary['left_out'])}")
    if summary["ledger_problem"]:
        lines.append(summary["ledger_problem"])
    return "\n".join(lines + summary["schema_changes"])


def post_test(url: Secret | None) -> str:
    """Posts a message that says that it is a test. Returns what was done, in words.

    Raises:
        UsageError: there is no address, or it does not take the message.
    """
    change = f"{program()} init notify.url"
    if url is None:
        raise UsageError("notify.url is not set", f"Set it: {change}")
    text = "this is a test message"
    failure = _failure_of_post(url, lambda: {"text": text, "exit_code": 0, "published": False})
    if failure:
        raise UsageError(f"not delivered: {failure}", f"If the address is wrong: {change}")
    return "delivered: look whether it is shown"


def _post(url: Secret | None, make_payload: Callable[[], dict[str, Any]]) -> None:
    """Posts once. A webhook that fails does not change how the run ends: it is only reported."""
    if url is not None and (failure := _failure_of_post(url, make_payload)):
        log.warning("the notification was not delivered: %s", failure)


def _failure_of_post(url: Secret, make_payload: Callable[[], dict[str, Any]]) -> str:
    """Posts once. Returns why it was not accepted; empty if it was."""
    try:
        payload = {"project": find_root().name, **make_payload()}
        whose = f" ({payload['organization']})" if payload.get("organization") else ""
        # Slack takes <!channel> as a call to all
        payload["text"] = f"{payload['project']}{whose}: {payload['text']}".translate(
            {ord("<"): "(", ord(">"): ")"}
        )
        return post_json(url, payload, http_settings())
    except Exception as error:  # whatever it is: the run is done
        return type(error).__name__
