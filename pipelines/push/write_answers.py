"""Answers of a person about writes whose outcome is unknown: they arrived, did not, or are given up.

In: answers by plan, of a person who has looked on the platform. Out: changes of state in the ledger, all or none, and
results that are written again. Nothing is requested from the platform.
"""

from __future__ import annotations

from collections.abc import Mapping

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.push.eligibility import PushRules
from orderbridge.pipelines.push.lookups import intact_plan
from orderbridge.pipelines.push.model import SETTLE_S
from orderbridge.pipelines.push.resolutions import Answers, answer_changes
from orderbridge.pipelines.push.results import ResultsWriter
from orderbridge.pipelines.push.run import ledger_lock, recover
from orderbridge.pipelines.push.settle import SettleResult, named_plan
from orderbridge.sources.kinds import additive_fields
from orderbridge.sources.settings import (
    http_settings,
    ledger_path,
    legacy_settings,
    reconcile_settings,
)


def answer_writes(answers: Mapping[str, Answers], *, is_check: bool = False) -> SettleResult:
    """Answers writes of plans; `is_check`: only looks whether that is possible.

    Args:
        answers: by folder of the plan, or beginning of its id.
        is_check: nothing is changed.

    Raises:
        UsageError: an unknown plan, or an answer about what is not in doubt or may still arrive. Nothing is changed.
    """
    legacy, path, result = legacy_settings(), ledger_path(), SettleResult()
    with ledger_lock(path), Ledger.open(path) as ledger:
        rules = PushRules(
            settle_s=SETTLE_S,
            resend=False,
            additive=additive_fields(legacy.semantics),
            wall_time=ledger.clock.wall_time,
            country=reconcile_settings().country,
        )
        recover(ledger, legacy.base_url, http_settings().timeout_s)
        changes = []
        for name, of_plan in answers.items():
            plan = named_plan(ledger, legacy.base_url, name)
            intact = intact_plan(plan.plan_id, plan.folder)
            changes.append((plan, intact, answer_changes(intact, plan, rules, of_plan)))
        if is_check:
            return result
        for plan, intact, of_plan_changes in changes:
            result.commit(plan, of_plan_changes)
            if intact is not None:
                ResultsWriter(intact, plan, {}, rules).write()
                result.plans.append(intact)
    return result
