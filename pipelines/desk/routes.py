"""The addresses of the desk: what each page shows, and which command each form starts.

In: requests that have passed the guard. Out: pages, and redirects after a form. Nothing is changed here but by
commands, and by keeping a file that was dropped.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, tzinfo
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Mount, Route

from orderbridge.pipelines.desk.folder import desk_folder, run_job
from orderbridge.pipelines.desk.forms import field
from orderbridge.pipelines.desk.home import home
from orderbridge.pipelines.desk.import_page import asks_writes_only, unknown_writes
from orderbridge.pipelines.desk.import_routes import ImportRoutes
from orderbridge.pipelines.desk.imports import asked_elsewhere, import_rows, imports
from orderbridge.pipelines.desk.jobs import run_short
from orderbridge.pipelines.desk.pages import Pages, zone
from orderbridge.pipelines.desk.progress import progress_of
from orderbridge.pipelines.desk.questions import (
    QuestionRow,
    asked_words,
    question_groups,
    question_page,
    question_rows,
    refused_words,
    table_answer,
)
from orderbridge.pipelines.questions.questions import asked_questions, find_question
from orderbridge.pipelines.questions.writes import is_write
from orderbridge.pipelines.warehouse.build import kept_open, open_warehouse
from orderbridge.pipelines.warehouse.failure import describe_error
from orderbridge.sources.errors import BridgeError, ExitCode, UsageError, bug_report
from orderbridge.sources.settings import warehouse_path

RUN: Final = ("run", "--log", "json")
_STATIC: Final = {"desk.css": "text/css", "desk.js": "text/javascript", "icon.svg": "image/svg+xml"}
_REPORT_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
_REPORT_FILE: Final = "report.html"
_QUESTION_COMMAND: Final = re.compile(
    r"<code>orderbridge (?:questions|answer|review)\b[^<]*</code>"
)
"""A command in the report for which the desk has a page."""
_RUN_COMMAND: Final = re.compile(r"<code>orderbridge reconcile</code>")
"""One for which it has a button."""
_VALUE: Final = "value:"
"""What the name of a field begins with that has the class of one value of a table."""


class Desk:
    """The pages of a project in one language.

    Pages that read the warehouse are made one after the other: DuckDB gives a second reader of a process the file
    that the first one has open, although a run has replaced it.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._texts = pages.texts
        self._lock = threading.Lock()

    def app(self) -> Starlette:
        """The application."""
        routes = [
            Route("/", self._reads()(self.home)),
            Route("/run", self.start_run, methods=["POST"]),
            Route("/run/progress", self.run_progress),
            Route("/questions", self._reads()(self.questions)),
            Route("/question", self.question),
            Route("/question", self.answer, methods=["POST"]),
            *ImportRoutes(self._pages, self._reads).routes(),
            Route("/report", self._reads()(self.report)),
            Route("/report/page", self._reads()(self.report_page)),
            Route("/report/file", self._reads()(self.report_file)),
            Route("/static/{name}", self.static),
        ]
        handlers = {
            HTTPException: self._http_error,
            BridgeError: self._bridge_error,
            Exception: self._internal_error,
        }
        base = cast("str", self._pages.globals["base"])
        return Starlette(
            routes=[Mount(base, routes=routes)],
            exception_handlers=handlers,  # type: ignore[arg-type] # starlette wants async and sync ones of Exception
        )

    @contextmanager
    def _reads(self) -> Iterator[None]:
        """While the block runs, nobody else reads the warehouse here."""
        with self._lock, kept_open():
            yield

    def home(self, request: Request) -> Response:
        """Lists, nights, what waits."""
        return self._pages.page("home", view=home(self._texts), tab="home")

    def start_run(self, request: Request) -> Response:
        """Starts `orderbridge run`."""
        desk_folder(makes_it=True)
        run_job().start(RUN)
        return self._pages.see("/#run")

    def run_progress(self, request: Request) -> Response:
        """How far the run is: a part of the first page, fetched each second."""
        return self._pages.page(
            "progress", progress=progress_of(run_job(), self._texts), url="/run/progress"
        )

    def questions(self, request: Request) -> Response:
        """What is asked, the most pressing first, then what was answered."""
        asked = asked_elsewhere(asked_questions(with_answered=True))
        rows = question_rows(asked, self._texts)
        return self._pages.page(
            "questions",
            groups=question_groups([row for row in rows if row.state != "answered"]),
            files=[row for row in import_rows(self._texts) if row.state == "asking"],
            answered=[row for row in rows if row.state == "answered"],
            done=self._text_of(rows, request.query_params.get("done", "")),
            is_withdrawn="withdrawn" in request.query_params,
            tab="questions",
        )

    def question(self, request: Request) -> Response:
        """One question with its evidence."""
        return self._question(request.query_params.get("id", ""))

    def answer(self, request: Request) -> Response:
        """Answers a question, or withdraws an answer."""
        form: FormData = request.state.form
        question = field(form, "id")
        if field(form, "withdraw"):
            done = run_short(["answer", "--withdraw", "--", question])
        else:
            value = _answer_of(form)
            if not value:
                return self._question(question, error=self._texts("question.no_value"))
            refused = refused_words(question, value, self._texts)
            if refused:
                return self._question(question, error=refused, typed=field(form, "other"))
            given = {"question": question, "answer": value, "why": field(form, "why")}
            done = run_short(["answer", "--from", "-"], json.dumps([given]))
        if done.code:
            return self._question(question, error=done.error, typed=field(form, "other"))
        for one in imports() if is_write(question) else ():
            asked_of_writes = one.state == "unfinished" and asks_writes_only(one.result)
            if asked_of_writes and not unknown_writes(one.result):
                one.start("--lang", self._texts.language)  # without an agreement it sends nothing
        what = "&withdrawn=yes" if field(form, "withdraw") else ""
        return self._pages.see(f"/questions?done={quote(question, safe='')}{what}")

    def _text_of(self, rows: Sequence[QuestionRow], question: str) -> str:
        """What a question asks, also where it is there no more; empty where there was none."""
        text = next((row.text for row in rows if row.id == question), "")
        return text or (asked_words(question, question, self._texts) if question else "")

    def _question(self, name: str, error: str = "", typed: str = "") -> Response:
        with self._reads():
            page = question_page(find_question(name), self._texts, typed)
        status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
        return self._pages.page(
            "question", status, page=page, error=error, typed=typed, tab="questions"
        )

    def report(self, request: Request) -> Response:
        """The report below the navigation."""
        return self._pages.page("report", tab="report", is_there=_has_report())

    def report_page(self, request: Request) -> Response:
        """The page that `orderbridge report` writes, made anew, with times as on the other pages.

        It has its styles inside, and no script.
        """
        return self._report(zone())

    def report_file(self, request: Request) -> Response:
        """That page as a file to keep or send."""
        return self._report(UTC, {"Content-Disposition": f'attachment; filename="{_REPORT_FILE}"'})

    def _report(
        self, clock: tzinfo | None, headers: Mapping[str, str] = MappingProxyType({})
    ) -> Response:
        from orderbridge.pipelines.reporting.report import page
        from orderbridge.pipelines.reporting.report_data import read_report_data

        with open_warehouse() as warehouse:
            text = page(read_report_data(warehouse), self._texts.language, clock)
        text = _QUESTION_COMMAND.sub(f"<b>{self._texts('nav.questions')}</b>", text)
        text = _RUN_COMMAND.sub(f"<b>{self._texts('home.run_now')}</b>", text)
        return HTMLResponse(text, headers={"Content-Security-Policy": _REPORT_POLICY, **headers})

    def static(self, request: Request) -> Response:
        """The style sheet, the script and the icon."""
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        path = Path(str(resources.files("orderbridge.pipelines.desk").joinpath("static", name)))
        return FileResponse(path, media_type=_STATIC[name])

    def _http_error(self, request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        return self._pages.page("error", status, code=f"error.{status.value}", message="", hint="")

    def _bridge_error(self, request: Request, error: BridgeError) -> Response:
        """What a command would print."""
        is_usage = isinstance(error, UsageError)
        status = HTTPStatus.UNPROCESSABLE_ENTITY if is_usage else HTTPStatus.INTERNAL_SERVER_ERROR
        return self._pages.page(
            "error", status, code="error.bridge", message=error.message, hint=error.hint
        )

    def _internal_error(self, request: Request, error: Exception) -> Response:
        """A disk that fails, or a bug: where it is, is written to the terminal of the desk."""
        code, message, hint = describe_error(error)
        if code == ExitCode.BUG:
            sys.stderr.write(f"{bug_report(error)}\n")
            hint = self._texts("error.where")
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        return self._pages.page("error", status, code="error.other", message=message, hint=hint)


def _has_report() -> bool:
    """Whether there is anything to report: not before the first run."""
    from orderbridge.pipelines.reporting.report_data import is_reconciled

    if not warehouse_path().exists():
        return False
    with open_warehouse() as warehouse:
        return is_reconciled(warehouse)


def _answer_of(form: FormData) -> str:
    """The answer that a form gives: a table, what was typed, or what was chosen."""
    rows = [
        (name.removeprefix(_VALUE), field(form, name)) for name in form if name.startswith(_VALUE)
    ]
    return table_answer(rows) if rows else field(form, "other") or field(form, "value")
