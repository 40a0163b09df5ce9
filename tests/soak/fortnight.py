"""A fortnight of nightly imports on a simulated platform and clock: exports overwritten every night, plans deleted.

Each night the ERP has new customers and stocks, and orders have changed the platform's. A job imports both files
(`orderbridge import`) under faults and crashes; they differ in dialect, encoding and order of columns from night to
night, and have columns that come and go. Then files are overwritten, plans deleted, doubts settled. In the morning the
job runs without faults. Then the platform equals the ERP: nothing is missing, nothing is there twice, and no line waits
for longer.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from contextlib import ExitStack, chdir
from functools import partial
from pathlib import Path
from typing import Final, Literal
from unittest import mock

import pyarrow as pa

from orderbridge.pipelines.cli.process import prepare_environment
from orderbridge.pipelines.import_file import run as importing
from orderbridge.pipelines.import_file.run import ImportOptions, ImportSteps, import_file
from orderbridge.pipelines.mapping import Mapping
from orderbridge.pipelines.plan import current_state
from orderbridge.pipelines.plan.current_state import CurrentCustomers, KnownPriceLists
from orderbridge.pipelines.plan.model import MANIFEST_FILE, Plan, ReadState
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.push.model import PushOptions
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.run import push
from orderbridge.pipelines.push.settle import settle
from orderbridge.pipelines.push.verify import VerifyResult
from orderbridge.sandbox.config import SandboxConfig
from orderbridge.sandbox.state import State
from orderbridge.sources.errors import BridgeError, Unreachable
from orderbridge.sources.kinds import KindName
from orderbridge.transforms.frames import TEXT, frame
from orderbridge.transforms.upserts.decisions import CUSTOMER_KEYS, KNOWN, KNOWN_DOCUMENTS
from tests.pipelines.push.simulation import FAULTS, HOST, SETTLE_S, Crash, World, crashing
from tests.soak.walks import Outcome, folder_in_memory

DAYS: Final = 14
VARIANTS: Final = 6
KINDS: Final[tuple[KindName, ...]] = ("customers", "variants")
SETTINGS: Final = {
    "SOURCES__LEGACY__BASE_URL": HOST,
    "SOURCES__LEGACY__API_KEY": "none-is-needed",
    "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
    "SOURCES__LEGACY__LOGIN_MODE": "email",
    "SOURCES__LEGACY__STOCK_SEMANTICS": "set",
}


class Fortnight:
    """One seed: the ERP, the platform, and the folder in which the job runs."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw, self.folder = random.Random(seed), folder
        config = SandboxConfig(
            customers=0, orders=0, promotions=0, price_lists=1, readings={"stock_semantics": "set"}
        )
        self.rates = dict.fromkeys(self.draw.sample(FAULTS, 5), self.draw.choice((0.05, 0.15, 0.3)))
        self.world = World(self.draw, {}, State(config))
        self.customers = list[str]()
        self.stocks = dict.fromkeys(range(1, VARIANTS + 1), 0)
        self.platform = _current(self.world)
        self.asked: Counter[KindName] = Counter()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.dependencies = self.world.dependencies()

    def live(self) -> None:
        for _ in range(self.draw.randint(0, 3)):
            self.customers.append(f"c{len(self.customers):03}")
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
                ["erpCode", "firstName", "email"],
                [[code, "Ana", f"{code}@example.test"] for code in self.customers],
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

    def job(self, name: str) -> None:
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
            ask_columns=partial(self.ask, kind),
        )
        result = import_file(
            ImportOptions(kind=kind, file=file, passwords=passwords, push=push_options), steps
        )
        self.counts[f"exit {result.exit_code:d}"] += 1

    def step(self, name: str) -> None:
        self.counts["continued"] += name == "resume"
        if self.world.hits("crash_before"):
            raise Crash

    def ask(self, kind: KindName, proposed: Mapping, samples: object) -> dict[str, str | None]:
        self.asked[kind] += 1
        return dict.fromkeys(proposed.unknown)

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
        if self.draw.random() < 0.5:
            self.export(f"m{day}")
        plans = [path.parent for path in sorted(self.folder.glob(f"*/{MANIFEST_FILE}"))]
        for kind in KINDS:
            for plan in plans if self.draw.random() < 0.5 else ():
                if kind in plan.name:
                    shutil.rmtree(plan)
                    self.counts["plans deleted"] += 1
        self.world.pass_time(SETTLE_S + 3600.0)
        if self.draw.random() < 0.5:
            settle(None, Answers(), SETTLE_S, dependencies=self.dependencies)
        for _ in range(2):  # what was refused in the night is rejected, and sent by the next one
            self.job(f"morning-{day}")
        self.judge(day)

    def judge(self, day: int) -> None:
        """Holds the platform against the ERP; and each kind asks once at most for its columns."""
        if max(self.asked.values(), default=0) > 1:
            self.problems.append(f"day {day}: asked {self.asked}")
        state = self.world.state
        codes = sorted(record["erpCode"] for record in state.records("customers"))
        stocks = {
            variant: record.fields["stock"]
            for (_, variant), record in sorted(state.variants.items())
        }
        for what, there, wanted in (
            ("customers", codes, sorted(self.customers)),
            ("stocks", stocks, self.stocks),
        ):
            if there != wanted:
                self.problems.append(f"day {day}: {what} are {there}, the ERP has {wanted}")


def _current(world: World) -> CurrentCustomers:
    columns = {"id": "id", "erpCode": "erp_code", "firstName": "first_name", "email": "email"}
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
        stack.enter_context(mock.patch.dict(os.environ, SETTINGS | own))
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
    run.counts |= Counter(days=days, customers=len(run.customers), faults=run.world.faults.total())
    return Outcome(run.counts, run.problems)
