"""Plans made by hand, as `orderbridge plan` writes them, and pushes of them against a sandbox."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from orderbridge.pipelines.cli.process import prepare_environment
from orderbridge.pipelines.ledger.clock import ClockReading
from orderbridge.pipelines.ledger.model import LedgerRow
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import (
    LINES_FILE,
    MANIFEST_FILE,
    OPERATIONS_FILE,
    RESULTS_FOLDER,
    Manifest,
    PasswordSource,
    PlanFile,
    PlannedOperation,
    sent_as,
)
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.push.listing import CustomerListing, Key, records_by_key
from orderbridge.pipelines.push.model import (
    PushDependencies,
    PushHooks,
    PushOptions,
    PushResult,
)
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.rules import SETTLE_S
from orderbridge.pipelines.push.run import push
from orderbridge.sandbox import Sandbox, SandboxConfig, serve
from orderbridge.sources.contract import CUSTOMER
from orderbridge.sources.errors import Unreachable
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.exchange import Response, WriteOutcome
from orderbridge.sources.http.retries import RetryPolicy
from orderbridge.sources.kinds import ADDED_FIELDS, KindName
from orderbridge.sources.settings import HttpSettings
from tests.pipelines.bridge import Done, command, reading
from tests.spreadsheet import spreadsheet_rows

QUICK = RetryPolicy(base_s=0.001, cap_s=0.002)
YES = PushOptions(agreed=True, settle_s=0.0)
WAITS = PushOptions(agreed=True, settle_s=SETTLE_S)
HOOKS = {one.name for one in fields(PushHooks)}

KIND_OF: dict[str, KindName] = {
    "products": "variants",
    "categories": "subcategories",
    "logistics": "warehouses",
}
"""The kind by the first part of its path; of others, customers."""

LOST = WriteOutcome("in_doubt", error=Unreachable("lost"))
Answer = Callable[[int, str, bytes], WriteOutcome | None]


def ids(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


def listed(
    records: Iterable[Mapping[str, Any]], keys: Container[Key], *, is_whole: bool = True
) -> CustomerListing:
    """What a walk finds for the keys in a list of these customers."""
    rows = [
        {**dict.fromkeys(field.name for field in CUSTOMER.fields), **record} for record in records
    ]
    return CustomerListing(
        is_whole, "complete" if is_whole else "unproven", records_by_key(rows, keys)
    )


def nobody(keys: object) -> CustomerListing:
    """A complete list without any of the customers."""
    return CustomerListing(True, "complete")


class Answering(Client):
    """A client that answers writes: `answer` gets the place of the request, its path and body; None is a success."""

    def __init__(
        self, answer: Answer, rows: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    ) -> None:  # it has nothing of a client
        self.answer, self.rows = answer, rows
        self.sent: list[tuple[str, bytes]] = []
        self._lock = threading.Lock()

    def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
        with self._lock:
            self.sent.append((path, json_body))
            place = len(self.sent) - 1
        return self.answer(place, path, json_body) or WriteOutcome(
            "answered", 204 if verb == "PATCH" else 201
        )

    def get(self, path: str, params: Any = None, *, check: Any, is_probe: bool = False) -> Any:
        """Each page has all customers."""
        return check(msgspec.json.encode({"data": [*self.rows()]})), Response(200)

    def close(self) -> None:
        """Nothing is open."""


def operation(
    number: int, path: str, body: dict[str, Any], *, method: Any = "POST", **more: Any
) -> PlannedOperation:
    """An operation on the line after its number: line 1 of the input is its header."""
    given = {"batch": 1, "lines": (number + 1,), "target": f"{path}/{number}", **more}
    return PlannedOperation(id=number, method=method, path=path, body=body, **given)


def customer(
    number: int, *, password: PasswordSource | None = "stored", **body: Any
) -> PlannedOperation:
    sent = {
        "erpCode": f"C{number:05d}",
        "firstName": "Ana",
        "email": f"ana{number}@example.test",
        **body,
    }
    keys = {name: sent[name] for name in ("erpCode", "email", "loginCode") if name in sent}
    sent["notification"] = dict.fromkeys(("send", "withCredentials"), password == "mailed")
    return operation(number, "/customers", sent, keys=keys, password=password)


def patch(
    number: int, variant: int, *, repeatable: bool = True, line: int | None = None, **body: Any
) -> PlannedOperation:
    """A variant update. Several may go on one line: it is reported where they do."""
    path, lines = (
        f"/products/1/variants/{variant}",
        () if line == 0 else (number + 1 if line is None else line,),
    )
    body = body or {"sku": f"S{number}"}
    return operation(
        number, path, body, method="PATCH", lines=lines, target=path, repeatable=repeatable
    )


def subcategory(number: int, **body: Any) -> PlannedOperation:
    return operation(number, "/categories/7/subcategories", {"name": f"Sub {number}", **body})


def warehouse(number: int) -> PlannedOperation:
    body = {"name": f"Almacén {number}", "isDefault": False, "location": {"line": "Calle 1"}}
    return operation(number, "/logistics/warehouses", body)


def write_plan(
    folder: Path,
    host: str,
    operations: Sequence[PlannedOperation],
    kind: KindName | None = None,
    *,
    lines: Sequence[tuple[int, str, int | None, str, str, str]] = (),
    environment: Literal["sandbox", "production"] = "sandbox",
    messages: int = 0,
    semantics: dict[str, Any] | None = None,
) -> Path:
    """Writes a plan, and its input next to it."""
    folder.mkdir(parents=True)
    kind = kind or KIND_OF.get(operations[0].path.split("/")[1], "customers")
    source = folder.with_name(f"{folder.name}.csv")
    source.write_text("Código\n" + "".join(f"{op.id}\n" for op in operations), encoding="utf-8")
    body = b"".join(msgspec.json.encode(operation) + b"\n" for operation in operations)
    (folder / OPERATIONS_FILE).write_bytes(body)
    with (folder / LINES_FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("line", "outcome", "same_as", "field", "code", "words"))
        writer.writerows([["" if value is None else value for value in line] for line in lines])
    sent = {line for operation in operations for line in operation.lines}
    outcomes = Counter({sent_as(kind): len(sent)}) + Counter(outcome for _, outcome, *_ in lines)
    reported = Manifest(
        plan_id=hashlib.sha256(body + host.encode() + folder.name.encode()).hexdigest()[:16],
        version="0",
        kind=kind,
        host=host,
        environment=environment,
        login_mode="email" if kind == "customers" else None,
        semantics=semantics_in(os.environ) if semantics is None else semantics,
        input=PlanFile(path=str(source), sha256=hashlib.sha256(source.read_bytes()).hexdigest()),
        mapping_toml=f'kind = "{kind}"\n',
        lines=len(sent) + len(lines),
        outcomes=dict(outcomes),
        operations=len(operations),
        operations_sha256=hashlib.sha256(body).hexdigest(),
        lines_sha256=hashlib.sha256((folder / LINES_FILE).read_bytes()).hexdigest(),
        messages=messages,
    )
    (folder / MANIFEST_FILE).write_bytes(msgspec.json.encode(reported))
    return folder


def altered(plan: Path, **members: Any) -> dict[str, Any]:
    """Alters the manifest of a plan; the manifest as it was."""
    manifest: dict[str, Any] = json.loads((plan / MANIFEST_FILE).read_bytes())
    (plan / MANIFEST_FILE).write_text(json.dumps(manifest | members), "utf-8")
    return manifest


def semantics_in(environment: Mapping[str, str]) -> dict[str, Any]:
    """What the settings of an environment say about additive fields."""
    return {
        name: environment.get(f"SOURCES__LEGACY__{name.upper()}_SEMANTICS", "unknown")
        for name in ADDED_FIELDS
    }


def results(folder: Path) -> dict[str, list[dict[str, str]]]:
    """What the files of results say, by file."""
    return {path.stem: spreadsheet_rows(path) for path in (folder / RESULTS_FOLDER).glob("*.csv")}


def outcomes(folder: Path) -> dict[str, str]:
    """Outcome by line, as `file.outcome`."""
    return {
        row["line"]: f"{name}.{row['outcome']}"
        for name, rows in results(folder).items()
        for row in rows
    }


@dataclass
class Place:
    """A sandbox, a ledger and room for plans."""

    platform: Sandbox
    folder: Path
    means: PushDependencies = field(default_factory=lambda: means())
    now: float = 1_000_000.0
    """The time, after `stop_clock`."""

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    def plan(
        self,
        operations: Sequence[PlannedOperation],
        kind: KindName | None = None,
        name: str = "",
        **more: Any,
    ) -> Path:
        number = len(list(self.folder.glob("plan-*.csv")))
        return write_plan(
            self.folder / (name or f"plan-{number}"), self.platform.url, operations, kind, **more
        )

    def push(self, plan: Path, options: PushOptions = YES, **more: Any) -> PushResult:
        """`more`: other options, or hooks."""
        hooks = {name: more.pop(name) for name in tuple(more) if name in HOOKS}
        return push(plan, replace(options, **more), PushHooks(**hooks), self.means)

    def code(self, plan: Path, *options: PushOptions, **more: Any) -> int:
        """The exit code of a push."""
        return self.push(plan, *options, **more).exit_code

    def stopped(self, *operations: PlannedOperation) -> Path:
        """A plan, recorded by a push that a person stopped before anything was sent."""
        plan, stop = self.plan(operations), threading.Event()
        stop.set()
        assert self.code(plan, stop=stop) == 130
        return plan

    def stop_clock(self) -> None:
        """From now on time is `now`."""
        self.means = means(read_clock=lambda: ClockReading(self.now, "boot", self.now))

    def answering(self, answer: Answer) -> Answering:
        """From now on writes are answered so, and the list has nobody."""
        client = Answering(answer)
        self.means = replace(
            self.means, client=lambda settings, stop: client, read_customers=nobody
        )
        return client

    def answered(
        self, plan: Path, *answers: WriteOutcome, asked: PushOptions = YES, **more: Any
    ) -> tuple[PushResult, Answering]:
        """A push whose writes get these answers in order, and then successes."""
        client = self.answering(lambda place, *_: answers[place] if place < len(answers) else None)
        return self.push(plan, asked, concurrency=1, **more), client

    def lose(
        self,
        plan: Path,
        fault: str = "lost_answer",
        *,
        arrives: bool = True,
        asked: PushOptions = YES,
    ) -> Path:
        """A push that ends in doubt under a fault; unless it `arrives`, its customers are not on the platform."""
        before = self.platform.state.ids("customers")
        self.platform.set_faults({fault: 1.0})
        assert self.code(plan, asked) == 6
        self.platform.set_faults({})
        for made in set() if arrives else {*self.platform.state.ids("customers")} - {*before}:
            self.platform.state.remove("customers", made)
        return plan

    def lost(self, *operations: PlannedOperation, fault: str = "lost_answer", **more: Any) -> Path:
        """A plan that is in doubt."""
        return self.lose(self.plan(operations, **more), fault)

    def rows(self, plan: Path) -> list[LedgerRow]:
        """What the ledger knows of a plan's operations."""
        manifest = json.loads((plan / MANIFEST_FILE).read_text())
        with Ledger.open(self.ledger, readonly=True) as ledger:
            return list(PlanLedger(ledger, manifest["plan_id"]).rows())

    def states(self, plan: Path) -> list[str]:
        return [row.state for row in self.rows(plan)]

    def variant(self, number: int) -> dict[str, Any]:
        """The fields of a variant on the platform."""
        return dict(self.platform.state.variants[1, number].fields)

    def codes(self) -> list[str]:
        """erpCodes of the customers that were created, in order."""
        return [body["erpCode"] for body in self.platform.state.customer_inputs]

    def pull(self, *resources: str) -> None:
        pull(PullOptions(resources))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, from the published warehouse."""
        with reading(self.folder / "warehouse.duckdb") as connection:
            return connection.execute(sql).fetchall()

    def command(self, *arguments: str) -> Done:
        return command(*arguments, env=self.environment(), cwd=self.folder)

    def environment(self) -> Mapping[str, str]:
        """For the command in a process of its own."""
        own = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        return settings(self.platform, self.folder, **own, PYTHONWARNINGS="error", PYTHONUTF8="1")


def means(**more: Any) -> PushDependencies:
    """Quick retries, short deadlines, nothing waited for after a stop."""

    def client(settings: Any, stop: Any) -> Client:
        key = settings.api_key.reveal()
        http = HttpSettings(read_timeout_s=1.0, timeout_s=1.5)
        return Client("legacy", settings.base_url, key, stop=stop, retry=QUICK, http=http)

    return PushDependencies(
        **{"client": client, "policy": QUICK, "deadline_s": 0.0, "grace_s": 2.0, **more}
    )


def settings(platform: Sandbox, folder: Path, **more: str) -> Mapping[str, str]:
    """The environment of a push."""
    return {
        "SOURCES__LEGACY__BASE_URL": platform.url,
        "SOURCES__LEGACY__API_KEY": platform.legacy_key,
        "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
        "SOURCES__LEGACY__LOGIN_MODE": "email",
        "WAREHOUSE__PATH": str(folder / "warehouse.duckdb"),
        **more,
    }


@contextmanager
def place(folder: Path, **config: Any) -> Iterator[Place]:
    """A small sandbox, this process's settings for it, and an empty folder."""
    with serve(
        SandboxConfig(**{"customers": 8, "orders": 0, "promotions": 0, "price_lists": 2, **config})
    ) as platform:
        os.environ.update(settings(platform, folder, DLT_PROJECT_DIR=str(folder)))
        prepare_environment()
        yield Place(platform, folder)
