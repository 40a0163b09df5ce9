"""A key of another organization on the same host sends nothing, and a key of the same one asks nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.settle import settle
from orderbridge.pipelines.questions.keys import Keys
from orderbridge.sandbox import Sandbox, SandboxConfig, serve
from orderbridge.sources.errors import UsageError
from orderbridge.sources.http.client import Client
from tests.pipelines.bridge import command
from tests.pipelines.push.plans import QUICK, Answering, Place, customer, patch


@pytest.fixture
def elsewhere() -> Iterator[Sandbox]:
    """Another organization."""
    config = SandboxConfig(customers=9, orders=0, promotions=0, price_lists=1, seed=77)
    with serve(config) as platform:
        for number in platform.state.ids("customers"):  # ids and codes count from 1 there too
            others = {"email": f"c{number}@elsewhere.test", "erpCode": str(number)}
            platform.state.change("customers", number, others)
        yield platform


def use(at: Place, platform: Sandbox, key: str) -> None:
    """From now on the host answers for the organization of a platform, and the key of the settings is another one."""
    os.environ["SOURCES__LEGACY__API_KEY"] = key

    def client(settings: object, stop: threading.Event) -> Client:
        return Client("legacy", platform.url, platform.legacy_key, stop=stop, retry=QUICK)

    at.means = replace(at.means, client=client)


def begun(at: Place) -> Path:
    """A plan of which three of eight customers were created."""
    plan, stop = at.plan([customer(n) for n in range(1, 9)]), threading.Event()

    def on_operation(ended: int, total: int) -> None:
        if ended >= 3:
            stop.set()

    at.push(plan, stop=stop, on_operation=on_operation)
    assert 3 <= len(at.codes()) < 8
    return plan


@pytest.mark.parametrize("is_pulled", [True, False])
def test_a_resumed_push_under_a_key_of_another_organization_creates_nobody_there(
    at: Place, elsewhere: Sandbox, *, is_pulled: bool
) -> None:
    if is_pulled:
        at.pull("customers")
    plan = begun(at)
    use(at, elsewhere, "a-key-of-somebody-else")
    pushed = at.push(plan)
    assert (pushed.exit_code, elsewhere.state.customer_inputs) == (2, [])
    assert "may be a key of another organization" in str(pushed.error)
    use(at, at.platform, "the-next-key-of-the-same")
    assert (at.code(plan), len(at.codes())) == (0, 8)
    before = at.platform.state.requests
    assert at.code(at.plan([patch(1, 1)])) == 0
    assert at.platform.state.requests == before + 1, "a key that is known costs no request"


def test_doubts_are_not_looked_up_at_another_organization(at: Place, elsewhere: Sandbox) -> None:
    at.push(at.plan([customer(1)]))
    at.lost(customer(2))
    use(at, elsewhere, "a-key-of-somebody-else")
    with pytest.raises(UsageError, match="may be a key of another organization"):
        settle(None, Answers(), 0.0, dependencies=at.means)


def test_customers_pulled_after_the_last_key_do_not_show_whose_a_new_one_is(
    at: Place,
) -> None:
    at.push(at.plan([patch(1, 1)]))
    at.pull("customers")
    use(at, at.platform, "perhaps-a-key-of-somebody-else")
    assert at.code(at.plan([patch(1, 2)])) == 2


def test_a_new_key_with_nothing_to_compare_is_asked_about_and_goes_on_once_answered(
    at: Place,
) -> None:
    assert at.code(at.plan([patch(1, 1)])) == 0
    assert not Keys().asked()
    use(at, at.platform, "the-next-key")
    pushed = at.push(plan := at.plan([patch(1, 2)]))
    assert (pushed.exit_code, at.states(plan)) == (2, ["planned"])
    (asked,) = Keys().asked()
    assert pushed.error is not None
    assert pushed.error.hint.endswith(f"orderbridge answer {asked.id} same")
    environment = {**at.environment(), "SOURCES__LEGACY__API_KEY": "the-next-key"}
    answered = command("answer", asked.id, "same", env=environment, cwd=at.folder)
    assert answered.code == 0, answered.err
    assert (at.code(plan), Keys().asked()) == (0, [])


def test_a_project_without_a_digest_gets_one_silently(at: Place) -> None:
    at.pull("customers")
    assert at.code(at.plan([patch(1, 1)])) == 0
    with Ledger.open(at.ledger) as ledger:
        ((host, digest),) = ledger.connection.execute("SELECT host, digest FROM keys").fetchall()
    assert host == at.platform.url
    assert at.platform.legacy_key.encode() not in digest
    before = at.platform.state.requests
    use(at, at.platform, "the-next-key")
    assert at.code(at.plan([patch(1, 2)])) == 0, "a known customer is on the first page"
    assert at.platform.state.requests == before + 2


def test_a_known_customer_is_seen_in_any_form_of_its_id_and_of_rows_beside_it(
    at: Place,
) -> None:
    assert at.code(at.plan([customer(1)])) == 0
    with Ledger.open(at.ledger) as ledger:
        ledger.connection.execute("UPDATE operations SET remote_id = '9'")
    deep = '{"id": 8, "data": ' + "[" * 150 + "]" * 150 + "}"
    body = f'{{"data": [{deep}, {{"id": 9.0, "erpCode": "C00001"}}]}}'.encode()

    class Odd(Answering):
        def get(self, path: str, params: object = None, *, check: Any, **more: object) -> Any:
            return check(body), None

    client = Odd(lambda *_: None)
    at.means = replace(at.means, client=lambda settings, stop: client)
    os.environ["SOURCES__LEGACY__API_KEY"] = "the-next-key"
    assert at.code(at.plan([patch(1, 1)])) == 0
