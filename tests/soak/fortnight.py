"""A fortnight of nightly imports on a simulated platform and clock: exports overwritten every night, plans deleted.

Each night the ERP has new customers and stocks, and orders have changed the platform's. A job imports both files
(`orderbridge import`) under faults and crashes; they differ in dialect, encoding and order of columns from night to
night, and have columns that come and go. Then files are overwritten, plans deleted, doubts settled. In the morning the
job runs twice without faults. Then the platform equals the ERP: nothing is missing, nothing is there twice, and nothing
is open but what is held.

The platform of a seed may be odd: it spells codes in its own way, somebody deletes its customers and variants, it
answers then with a body of its own, and another project with a ledger of its own imports the same customers.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal
from unittest import mock

import pyarrow as pa

from orderbridge.pipelines.cli.process import prepare_environment
from orderbridge.pipelines.import_file import run as importing
from orderbridge.pipelines.import_file.asking import FileQuestion
from orderbridge.pipelines.import_file.run import ImportOptions, ImportSteps, import_file
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan import current_state
from orderbridge.pipelines.plan.current_state import CurrentCustomers, KnownPriceLists
from orderbridge.pipelines.plan.model import MANIFEST_FILE, Plan, ReadState
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.push.model import PushOptions
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.run import push
from orderbridge.pipelines.push.settle import settle
from orderbridge.pipelines.push.verify import VerifyResult
from orderbridge.pipelines.reporting.status import can_resume
from orderbridge.sandbox.config import SandboxConfig
from orderbridge.sandbox.state import State
from orderbridge.sources.errors import BridgeError, HttpRejected, Unreachable, UsageError
from orderbridge.sources.http.exchange import WriteOutcome
from orderbridge.sources.kinds import KindName, LoginMode
from orderbridge.transforms.frames import TEXT, frame
from orderbridge.transforms.upserts.decisions import CUSTOMER_KEYS, KNOWN, KNOWN_DOCUMENTS
from tests.pipelines.push.simulation import (
    FAULTS,
    FOREIGN_4XX,
    HOST,
    SETTLE_S,
    Crash,
    World,
    crashing,
)
from tests.soak.walks import Outcome, folder_in_memory

DAYS: Final = 14
VARIANTS: Final = 6
OTHER_HOST: Final = "http://localhost:9"
"""The same platform under another name."""
ELSEWHERE: Final = "elsewhere"
"""The folder of another project."""
KINDS: Final[tuple[KindName, ...]] = ("customers", "variants")
SETTINGS: Final = {
    "SOURCES__LEGACY__BASE_URL": HOST,
    "SOURCES__LEGACY__API_KEY": "none-is-needed",
    "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
    "SOURCES__LEGACY__STOCK_SEMANTICS": "set",
}


SPELLINGS: Final[dict[str, Callable[[str], str]]] = {
    "as sent": str,
    "in capitals": str.upper,
    "without zeros": lambda code: code.lstrip("0"),
}
"""How a platform may write the codes of customers."""


class Oddities:
    """What the platform of a seed does that none has to, and others do to it."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(f"{seed}:oddities")
        self.spelling = draw.choice(("as sent", "as sent", *SPELLINGS))
        self.login_mode: LoginMode = draw.choice(("email", "code"))
        self.deletes = draw.choice((0.0, 0.0, 0.4))
        self.status = draw.choice((404, 410, 422))
        self.has_second_project = draw.random() < 0.4
        self.answers_ids = draw.random() < 0.5
        self.renamed_on = draw.choice((0, 0, 2, 3))
        self.draw = draw

    def code(self, number: int) -> str:
        """The ERP's code of its n-th customer: with zeros at its beginning, which are letters' cases elsewhere."""
        return f"{number + 1:05}" if self.spelling == "without zeros" else f"c{number:03}"

    def spelt(self, code: str) -> str:
        """A code as the platform writes it."""
        return SPELLINGS[self.spelling](code)


@dataclass
class OddWorld(World):
    """A platform with oddities: what it creates has the codes that it writes, what is gone a status of its own."""

    oddities: Oddities = field(default_factory=lambda: Oddities(0))
    latest_id: int = 0
    requests: int = 0
    created: Counter[str] = field(default_factory=Counter)

    def apply(self, path: str, body: dict[str, Any]) -> None:
        """See World."""
        super().apply(path, body)
        if path == "/customers":
            self.created[body["erpCode"]] += 1
            record = self.state.records("customers")[-1]
            self.latest_id = int(record["id"])
            codes: dict[str, str] = {
                name: self.oddities.spelt(body[name])
                for name in ("erpCode", "loginCode")
                if name in record and name in body
            }
            self.state.change("customers", record["id"], codes)

    def answer(self, place: int, path: str, content: bytes) -> WriteOutcome | None:
        """See World."""
        self.requests += 1
        answer = super().answer(place, path, content)
        if answer is None and path == "/customers" and self.oddities.answers_ids:
            return WriteOutcome("answered", 201, b'{"id": %d}' % self.latest_id)
        if answer is FOREIGN_4XX and path in self.deleted:
            status = self.oddities.status
            return WriteOutcome("in_doubt", status, error=HttpRejected("simulated", status=status))
        return answer


class Fortnight:
    """One seed: the ERP, the platform, and the folder in which the job runs."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw, self.folder = random.Random(seed), folder
        self.oddities = Oddities(seed)
        config = SandboxConfig(
            customers=0,
            orders=0,
            promotions=0,
            price_lists=1,
            readings={"stock_semantics": "set"},
            login_mode=self.oddities.login_mode,
        )
        self.rates = dict.fromkeys(self.draw.sample(FAULTS, 5), self.draw.choice((0.05, 0.15, 0.3)))
        self.world = OddWorld(self.draw, {}, State(config), oddities=self.oddities)
        self.customers = list[str]()
        self.lost = set[str]()
        """Codes of customers that were deleted on the platform after an import had created them."""
        self.left: Counter[tuple[str, str]] = Counter()
        """What became of the lines of the last import of each kind."""
        self.stocks = dict.fromkeys(range(1, VARIANTS + 1), 0)
        self.platform = _current(self.world)
        self.asked: Counter[KindName] = Counter()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.dependencies = self.world.dependencies()

    def live(self) -> None:
        self.delete()
        for _ in range(self.draw.randint(0, 3)):
            self.customers.append(self.oddities.code(len(self.customers)))
        for number in self.stocks:
            if self.draw.random() < 0.4:
                self.stocks[number] = self.draw.randint(1, 99)
        for variant in self.world.state.variants.values():
            if self.draw.random() < 0.5:
                variant.fields["stock"] = 0  # orders

    def export(self, note: str) -> None:
        """The ERP overwrites its files, each time in another form."""
        tables: dict[KindName, tuple[list[str], list[list[str]]]] = {
            "customers": (
                ["erpCode", "firstName", self.login],
                [[code, "Ana", self.login_of(code)] for code in self.customers],
            ),
            "variants": (
                ["productId", "variantId", "stock", "sku"],
                [["1", str(variant), str(stock), note] for variant, stock in self.stocks.items()],
            ),
        }
        for kind, (header, rows) in tables.items():
            added = [name for name in ("Zona", "Riesgo") if self.draw.random() < 0.3]
            columns = self.draw.sample([*header, *added], len(header) + len(added))
            delimiter, encoding = (
                self.draw.choice(";,"),
                self.draw.choice(("utf-8", "utf-8-sig", "cp1252")),
            )
            lines = [
                dict(zip(header, row, strict=True)) | dict.fromkeys(added, "á") for row in rows
            ]
            texts = [columns, *([line[name] for name in columns] for line in lines)]
            text = "".join(f"{delimiter.join(cells)}\r\n" for cells in texts)
            (self.folder / f"{kind}.csv").write_text(text, encoding, newline="")

    @property
    def login(self) -> str:
        """What customers log in with."""
        return "email" if self.oddities.login_mode == "email" else "loginCode"

    def login_of(self, code: str) -> str:
        """The login of a customer; with a code, there is no e-mail address to recognise it by."""
        return f"{code}@example.test" if self.login == "email" else code

    def delete(self) -> None:
        """Somebody deletes a customer and a variant on the platform."""
        draw = self.oddities.draw
        if draw.random() >= self.oddities.deletes:
            return
        records = self.world.state.records("customers")
        if records:
            gone = draw.choice(records)
            self.world.state.remove("customers", gone["id"])
            self.lost |= {
                code for code in self.customers if self.oddities.spelt(code) == gone["erpCode"]
            }
        self.world.deleted.add(f"/products/1/variants/{draw.choice(list(self.stocks))}")
        self.counts["deleted"] += 1

    def rename(self) -> None:
        """The platform has another name from now on: nothing is sent before a person says that it is the same."""
        os.environ["SOURCES__LEGACY__BASE_URL"] = OTHER_HOST
        requests = self.world.requests
        for folder in (self.folder, self.folder / ELSEWHERE):
            with Ledger.open(folder / "ledger.sqlite", readonly=True) as ledger:
                sql = "SELECT count(*) FROM operations WHERE state NOT IN ('planned', 'rejected', 'abandoned')"
                (writes,) = ledger.connection.execute(sql).fetchone()
            if not writes:
                continue
            if folder == self.folder:
                try:
                    self.take("variants", self.folder / "variants.csv")
                except UsageError:
                    self.counts["asked whether it is the same platform"] += 1
                else:
                    self.problems.append("nobody was asked whether it is the same platform")
            with Ledger.open(folder / "ledger.sqlite") as ledger:
                ledger.keep_host(OTHER_HOST, HOST, is_same=True)
        if self.world.requests != requests:
            self.problems.append("something was sent to a platform with another name")

    def import_elsewhere(self) -> None:
        """Another project, with a ledger of its own, imports the same customers once all has landed."""
        folder = self.folder / ELSEWHERE
        folder.mkdir(exist_ok=True)
        own = {"DLT_PROJECT_DIR": str(folder), "WAREHOUSE__PATH": str(folder / "w.duckdb")}
        with chdir(folder), mock.patch.dict(os.environ, own):
            prepare_environment()
            asked, self.asked = self.asked, Counter()  # it has mappings of its own
            self.platform = _current(self.world)
            self.take("customers", self.folder / "customers.csv")
            self.asked = asked
        prepare_environment()
        self.counts["imports elsewhere"] += 1

    def job(self, name: str) -> None:
        self.left.clear()
        for kind in KINDS:
            if kind == "customers" and not self.customers:
                continue
            try:
                with crashing(self.world):
                    self.take(kind, self.folder / f"{kind}.csv")
            except Crash:
                self.counts["crashes"] += 1
                return
            except Unreachable:
                self.counts["exit 4"] += 1
            except BridgeError as error:
                self.problems.append(f"{name}, {kind}: {error}")

    def take(self, kind: KindName, file: Path) -> None:
        passwords: Literal["mail"] | None = "mail" if kind == "customers" else None
        push_options = PushOptions(agreed=True, settle_s=SETTLE_S)
        steps = ImportSteps(
            pull=self.pull,
            push=lambda plan, options: push(plan, options, dependencies=self.dependencies),
            agree=lambda plan, lines: True,
            on_step=lambda step, text: self.step(step),
            ask=partial(self.ask, kind),
        )
        result = import_file(
            ImportOptions(kind=kind, file=file, passwords=passwords, push=push_options), steps
        )
        self.counts[f"exit {result.exit_code:d}"] += 1
        self.left.update(result.push.lines)

    def step(self, name: str) -> None:
        self.counts["continued"] += name == "resume"
        if self.world.hits("crash_before"):
            raise Crash

    def ask(self, kind: KindName, questions: Sequence[FileQuestion]) -> dict[str, str]:
        answers = {one.key: "ignore" for one in questions if one.topic == "column"}
        self.asked[kind] += bool(answers)
        return answers

    def pull(self, options: PullOptions) -> PullResult:
        self.world.pass_time(self.draw.uniform(0.1, 20.0))
        if self.world.hits("no_connection"):
            raise Unreachable("simulated")
        self.platform = _current(self.world)
        return PullResult("r", self.folder)

    def night(self, day: int) -> None:
        self.live()
        self.export(f"n{day}")
        self.world.rates = {**self.rates, "crash_commit": 0.02, "unproven": 0.1}
        self.job(f"night-{day}")
        if self.draw.random() < 0.4:  # the same night once more
            self.world.pass_time(self.draw.uniform(1.0, 2000.0))
            self.job(f"again-{day}")
        self.world.rates = {}
        if day == self.oddities.renamed_on:
            self.rename()
        if self.draw.random() < 0.5:
            self.export(f"m{day}")
        plans = [path.parent for path in sorted(self.folder.glob(f"*/{MANIFEST_FILE}"))]
        for kind in KINDS:
            for plan in plans if self.draw.random() < 0.5 else ():
                if kind in plan.name:
                    shutil.rmtree(plan)
                    self.counts["plans deleted"] += 1
        self.world.pass_time(SETTLE_S + 3600.0)
        if (
            self.customers
            and self.oddities.has_second_project
            and self.oddities.draw.random() < 0.5
        ):
            self.import_elsewhere()
        if self.draw.random() < 0.5:
            settle(None, Answers(), SETTLE_S, dependencies=self.dependencies)
        for _ in range(2):  # what was refused in the night is rejected, and sent by the next one
            self.job(f"morning-{day}")
        self.judge(day)

    def judge(self, day: int) -> None:
        """Holds the platform against the ERP; and each kind asks once at most for its columns."""
        if max(self.asked.values(), default=0) > 1:
            self.problems.append(f"day {day}: asked {self.asked}")
        self.problems += [f"day {day}: {problem}" for problem in (*self.wrong(), *self.open())]

    def wrong(self) -> Iterator[str]:
        """What the platform has that the ERP has not, has twice, or lacks."""
        state = self.world.state
        codes = Counter(record["erpCode"] for record in state.records("customers"))
        wanted = Counter(map(self.oddities.spelt, self.customers))
        lost = Counter(map(self.oddities.spelt, self.lost))
        # what was deleted there is held by the project that created it; the other one may create it
        if not wanted - lost <= codes <= wanted:
            yield f"customers are {sorted(codes.elements())}, the ERP has {sorted(wanted)}"
        for code, times in self.world.created.items():
            # what was deleted is known to the project that created it, and not to the other one
            if times > 1 + (code in self.lost and self.oddities.has_second_project):
                yield f"{code} was created {times} times"
        there = {
            path: record.fields["stock"]
            for (_, variant), record in sorted(state.variants.items())
            if (path := f"/products/1/variants/{variant}") not in self.world.deleted
        }
        stocks = {f"/products/1/variants/{number}": stock for number, stock in self.stocks.items()}
        wanted_stocks = {
            path: stock for path, stock in stocks.items() if path not in self.world.deleted
        }
        if there != wanted_stocks:
            yield f"stocks are {there}, the ERP has {wanted_stocks}"

    def open(self) -> Iterator[str]:
        """What is open after two repetitions, but for what is held, or refused since it is gone."""
        allowed = {"held": len(self.lost), "rejected": len(self.world.deleted)}
        if self.oddities.spelling != "as sent":
            # without an id in its answer, a customer is not known by another code, which settles first; with its
            # address it is known, and its code is other there
            outcomes = ("exists_differs",) if self.login == "email" else ("held", "exists_now")
            allowed |= dict.fromkeys(outcomes, len(self.customers))
        for (file, outcome), count in sorted(self.left.items()):
            if file != "confirmed" and count > allowed.get(outcome, 0):
                yield f"{count} lines are {outcome} after two repetitions"
        with Ledger.open(self.folder / "ledger.sqlite", readonly=True) as ledger:
            left = [one for one in ledger.open_plans() if can_resume(one)]
        for plan in left:
            yield f"the plan {Path(plan.folder).name} is not finished: {dict(plan.states)}"


def _current(world: World) -> CurrentCustomers:
    columns = {"id": "id", "firstName": "first_name", **CUSTOMER_KEYS}
    rows = [
        {columns[k]: str(v) for k, v in one.items() if k in columns}
        for one in world.state.records("customers")
    ]
    read = ReadState(run_id="r", at="2026-01-01T00:00:00+00:00", verdict="complete", rows=len(rows))
    missing = frame(dict.fromkeys(CUSTOMER_KEYS.values(), TEXT), [])
    price_lists = KnownPriceLists(pa.array([], TEXT), "not read")
    return CurrentCustomers(
        frame(KNOWN, rows), missing, frame(KNOWN_DOCUMENTS, []), read, price_lists
    )


def fortnight_seed(seed: int, days: int = DAYS) -> Outcome:
    with folder_in_memory() as folder, ExitStack() as stack:
        run = Fortnight(seed, folder)
        own = {"DLT_PROJECT_DIR": str(folder), "WAREHOUSE__PATH": str(folder / "w.duckdb")}
        stack.enter_context(chdir(folder))
        mode = {"SOURCES__LEGACY__LOGIN_MODE": run.oddities.login_mode}
        stack.enter_context(mock.patch.dict(os.environ, SETTINGS | own | mode))
        stack.enter_context(
            mock.patch.object(
                current_state, "current_customers", side_effect=lambda *_: run.platform
            )
        )
        stack.enter_context(
            mock.patch.object(importing, "verify", lambda plan: VerifyResult(Plan(plan).kind))
        )
        prepare_environment()
        for day in range(1, days + 1):
            run.night(day)
    run.counts[f"codes {run.oddities.spelling}"] += 1
    run.counts |= Counter(days=days, customers=len(run.customers), faults=run.world.faults.total())
    return Outcome(run.counts, run.problems)
