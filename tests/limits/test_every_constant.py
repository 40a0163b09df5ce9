"""No limit without a test of its border, or a reason why it has none that could be seen."""

from __future__ import annotations

import importlib

import pytest

from tests.limits import border

TESTS = ("files", "push", "warehouse", "pipelines", "sources", "transforms")
REASONS = {
    "speed: how much is kept, read or written at once, with the same outcome": """
        sources.decode.json_text._CACHE_MAX sources.decode.ndjson._BLOCK_MIN sources.extract.page_files.PENDING_MAX
        sources.files.arrow_blocks.MAX_NAMES sources.resources.RUNS_MAX
        pipelines.reconcile.reconcile.MEMORY_MB_MAX
        pipelines.reconcile.own_checks.MEMORY_MB_MAX pipelines.pull.order_tail._COUNTED_MAX
        pipelines.reconcile.erp.match.LEFT_ROWS_MAX pipelines.desk.settled._KEPT_MAX
        """,
    "how often something is looked at": """
        sources.http.client.STOP_POLL_S pipelines.desk.server._POLL_S pipelines.push.pace.WAIT_STEP_S
        pipelines.warehouse.destination.postgres._LOCK_POLL_S pipelines.warehouse.lock._PAUSE_S
        pipelines.warehouse.raw.merge.INTERRUPT_EVERY_S sandbox.wire._SETTLE_S
        pipelines.cli.console.LINE_EVERY_S pipelines.cli.console.JSON_EVERY_S pipelines.cli.console._JSON_SHARE
        """,
    "a time that the library or the system measures: what happens at its end is tested with a short one": """
        sources.http.client.CONNECT_S sources.http.transport.KEEPALIVE_S sources.http.webhook.TIMEOUT_S
        pipelines.pull.walking.WHOAMI_WAIT_S pipelines.pull.walking.END_WAIT_S pipelines.push.model.GRACE_S
        pipelines.reconcile.cluster.CONNECT_TIMEOUT_S pipelines.reconcile.own_checks.SECONDS_MAX
        pipelines.warehouse.destination.postgres._LOCK_WAIT_S pipelines.desk.server._START_S
        sandbox.server._START_S pipelines.warehouse.answers.lock._WAIT_S pipelines.reconcile.cluster.WORKERS_WAIT_S
        """,
    "a number that is given to the library that reads forms": "pipelines.desk.guard._FIELDS_MAX",
    "made of other limits": """
        sources.http.masking._BASE64_MIN sources.http.masking._HEX_MIN
        transforms.values.date_forms._STAMPS_FROM_US
        """,
    "counted by whole reads of a socket or a file, so that no byte is the border": """
        sources.http.transport.HEAD_MAX_BYTES sources.files.encoding.MAX_LINE
        sources.http.client.MASKED_BYTES_MAX sources.http.failures.MESSAGE_BYTES_MAX
        pipelines.desk.guard.UPLOAD_BYTES_MAX sources.files.sheet_xml.MAX_UNPACKED_BYTES
        sources.files.sheet_xml.MAX_PART_BYTES
        """,
    "a score, beside which no text can be made to lie": """
        sources.files.dialect_detection.MIN_SCORE transforms.erp.suggestions.SUGGESTED_FROM
        """,
    "what the machine has": "pipelines.cli.process.MEMORY_MIN",
    "the largest number of a type": "sources.contract.INT64_MAX",
    "the sandbox alone": """
        sandbox.legacy.LIMIT_MAX sandbox.legacy.INT_DIGITS_MAX sandbox.records._OPENING_H
        """,
    "how much of a list is shown; the rest is counted beside it": """
        pipelines.cli.preview.MAX_REPORTED pipelines.cli.preview.MAX_SHOWN pipelines.cli.questions._WIDTH_MAX
        pipelines.cli.reconcile.MAX_LINE_NUMBERS pipelines.desk.plans.ROWS_MAX
        pipelines.desk.plans.CORRECTIONS_MAX pipelines.desk.questions._CHOICES_MAX
        pipelines.plan.summary.MAX_JUMPS pipelines.reporting.charts.MAX_X_LABELS
        pipelines.reporting.headline._NAMED_MAX pipelines.reporting.status._FAILED_MAX
        pipelines.warehouse.versions._EXAMPLES_MAX pipelines.import_file.result._WIDTH_MIN
        pipelines.import_file.result._WIDTH_MAX pipelines.questions.pairs._CERTAIN_FROM
        """,
    "a column's values inferred from a sample, which another limit decides first": """
        pipelines.questions.order_key._ROWS_MAX
        """,
}
"""Why a limit has no border that a test could show, and the limits of which that is so."""


@pytest.fixture(scope="module")
def tested() -> dict[str, str]:
    for name in TESTS:
        importlib.import_module(f"tests.limits.test_{name}")
    return border.TESTED


def test_each_limit_has_a_test_of_its_border_or_a_reason_why_none_could_show_it(
    tested: dict[str, str],
) -> None:
    limits = [*border.constants()]
    reasoned = [name for names in REASONS.values() for name in names.split()]
    assert sorted(set(limits) - {*tested, *reasoned}) == [], "write a test with `@limit`"
    assert sorted(set(reasoned) - {*limits}) == [], "there is no such limit any more"
    assert sorted(set(reasoned) & {*tested}) == [], "it has a test: it needs no reason"
    assert len(limits) == len(set(limits))
    assert len(limits) > 200, "where were they looked for?"
