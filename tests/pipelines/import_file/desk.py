"""A person's desk: files of the ERP in a folder, imported with quick retries, and what was asked and shown."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from orderbridge.pipelines.import_file.asking import FileQuestion
from orderbridge.pipelines.import_file.run import (
    ImportOptions,
    ImportResult,
    ImportSteps,
    import_file,
)
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.push.model import PushHooks, PushOptions, PushResult
from orderbridge.pipelines.push.run import push
from orderbridge.sources.kinds import KindName
from tests.pipelines.push.plans import YES, Place

CUSTOMERS = "Código;Nombre;Correo\n" + "".join(
    f"{n:05d};Ana;ana{n}@example.test\n" for n in range(1, 7)
)
VARIANTS = "productId;variantId;price;sku\n1;1001;19,99;00038\n1;1002;7,50;00039\n"


@dataclass
class Desk:
    """Imports and what they did."""

    at: Place
    answer: bool | None = None
    asked: list[list[str]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    stop_after: int | None = None
    columns: dict[str, str | None] | None = None
    said: list[str] = field(default_factory=list)
    totals: Literal["skip", "keep"] | None = None
    asked_totals: list[list[int]] = field(default_factory=list)
    passwords: Literal["mail", "file"] | None = None
    yes: bool | None = None
    asked_yes: list[str] = field(default_factory=list)

    def write(self, text: str = CUSTOMERS, name: str = "clientes.csv") -> Path:
        file = self.at.folder / name
        file.write_bytes(text.encode("cp1252"))
        return file

    def run(
        self, file: Path, kind: KindName = "customers", push: PushOptions = YES, **options: Any
    ) -> ImportResult:
        """Imports a file, with generated passwords for customers."""
        passwords = "file" if kind == "customers" else None
        all_options = {"passwords": passwords, "push": push, **options}
        return import_file(ImportOptions(kind=kind, file=file, **all_options), self.steps())

    def steps(self) -> ImportSteps:
        return ImportSteps(
            pull=self._pull,
            push=self._push,
            agree=self._agree,
            on_plan=lambda made: self.done.append("plan"),
            on_step=lambda step, text: self.said.append(f"{step}: {text}"),
            ask=self.ask,
        )

    def ask(self, questions: Sequence[FileQuestion]) -> dict[str, str]:
        """The answers that were prepared for each topic."""
        answers: dict[str, str | None] = {}
        for one in questions:
            if one.topic == "column":
                known = self.columns is not None
                answers[one.key] = (
                    (self.columns or {}).get(one.about) or "ignore" if known else None
                )
            elif one.topic == "totals":
                self.asked_totals.append(list(map(int, one.values["lines"].split(", "))))
                answers[one.key] = self.totals
            elif one.topic == "passwords":
                answers[one.key] = self.passwords
            else:
                self.asked_yes.append(one.text)
                answers[one.key] = None if self.yes is None else "yes" if self.yes else "no"
        return {key: answer for key, answer in answers.items() if answer is not None}

    def _agree(self, plan: Plan, examples: Sequence[str]) -> bool:
        self.asked.append(list(examples))
        return bool(self.answer)

    def _pull(self, options: PullOptions) -> PullResult:
        self.done.append("pull")
        return pull(options)

    def _push(self, folder: Path, options: PushOptions) -> PushResult:
        self.done.append("push")
        stop = threading.Event()

        def on_operation(ended: int, total: int) -> None:
            if self.stop_after is not None and ended >= self.stop_after:
                stop.set()

        return push(folder, options, PushHooks(stop=stop, on_operation=on_operation), self.at.means)
