"""The addresses of imports: a file is dropped, read, asked about, checked, corrected, sent.

In: requests that have passed the guard. Out: pages, and redirects after a form. Answers are given and files imported by
commands. What is written here are files: those that were dropped, and corrected lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from orderbridge.pipelines.desk.columns import (
    DELIMITERS,
    ENCODINGS,
    changed_columns,
    column_answers,
    columns_of_one_field,
    without_rest,
)
from orderbridge.pipelines.desk.corrections import corrected_rows, workbook_of
from orderbridge.pipelines.desk.folder import has_settings
from orderbridge.pipelines.desk.forms import dropped_file, field, is_no_table, named
from orderbridge.pipelines.desk.import_page import (
    asks_columns,
    columns_view,
    import_view,
    shown_plan,
    unknown_writes,
)
from orderbridge.pipelines.desk.imports import (
    READ_AS,
    DeskImport,
    add_begun,
    add_correction,
    add_import,
    begun_elsewhere,
    busy_now,
    corrections,
    find_import,
    import_rows,
    keep_file,
    kinds,
    lines_of,
)
from orderbridge.pipelines.desk.jobs import run_short
from orderbridge.pipelines.desk.pages import Pages
from orderbridge.pipelines.desk.plans import corrections_of, rejected_cells
from orderbridge.pipelines.desk.progress import progress_of
from orderbridge.pipelines.desk.settled import settled_lines
from orderbridge.pipelines.import_file.asking import NO, PASSWORDS, PREFIX
from orderbridge.pipelines.import_file.reading import FileReading, read_columns
from orderbridge.pipelines.plan.model import MAPPING_FILE
from orderbridge.pipelines.questions.imports import answer_to, is_asked
from orderbridge.pipelines.questions.writes import is_write
from orderbridge.sources.disk import write_private
from orderbridge.sources.kinds import KindName

_XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_COLUMN: Final = "column:"
_LEAVE: Final = "leave:"
_ANSWER: Final = "answer:"
"""What the names of fields begin with that answer the question whose id follows."""
_SEPARATORS: Final = re.compile(r"[\s.,]")
"""What may be between the thousands of a number that a person types."""


class ImportRoutes:
    """The pages of imports. What reads the warehouse does it in a block of `reads`."""

    def __init__(self, pages: Pages, reads: Callable[[], AbstractContextManager[None]]) -> None:
        self._pages = pages
        self._texts = pages.texts
        self._reads = reads

    def routes(self) -> list[Route]:
        """The routes."""
        return [
            Route("/import", self.new_import),
            Route("/import", self.upload, methods=["POST"]),
            Route("/import/begun", self.go_on, methods=["POST"]),
            Route("/import/{name}", self.show_import),
            Route("/import/{name}/progress", self.import_progress),
            Route("/import/{name}/workbook", self.workbook),
            Route("/import/{name}/reading", self.read_again, methods=["POST"]),
            Route("/import/{name}/columns", self.answer_columns, methods=["POST"]),
            Route("/import/{name}/answers", self.answer_import, methods=["POST"]),
            Route("/import/{name}/lookup", self.add_lookup, methods=["POST"]),
            Route("/import/{name}/lookup/remove", self.leave_out_lookup, methods=["POST"]),
            Route("/import/{name}/check", self.check_import, methods=["POST"]),
            Route("/import/{name}/send", self.send_import, methods=["POST"]),
            Route("/import/{name}/correct", self.correct_import, methods=["POST"]),
            Route("/import/{name}/kind", self.change_kind, methods=["POST"]),
            Route("/import/{name}/remove", self.remove_import, methods=["POST"]),
        ]

    def new_import(self, request: Request) -> Response:
        """Where a file is dropped, and the imports so far."""
        return self._new_import()

    def upload(self, request: Request) -> Response:
        """Keeps a file that was dropped."""
        form: FormData = request.state.form
        file = dropped_file(form)
        kind = field(form, "kind")
        if file is None:
            return self._not_kept("upload.no_file")
        if not file.size:
            return self._not_kept("upload.empty")
        if is_no_table(file):
            return self._not_kept("upload.no_table", file=file.filename)
        if kind not in kinds():
            return self._not_kept("upload.no_kind")
        one = add_import(cast("KindName", kind), file.filename or "", file.file)
        self._start(one)  # without an agreement it sends nothing
        return self._pages.see(f"/import/{one.name}")

    def _not_kept(self, reason: str, **values: object) -> Response:
        """The page again, with the reason why a file was not kept."""
        return self._new_import(HTTPStatus.UNPROCESSABLE_ENTITY, self._texts(reason, **values))

    def _new_import(self, status: HTTPStatus = HTTPStatus.OK, error: str = "") -> Response:
        return self._pages.page(
            "imports",
            status,
            has_settings=has_settings(),
            rows=import_rows(self._texts),
            kinds=kinds(),
            error=error,
            tab="import",
        )

    def go_on(self, request: Request) -> Response:
        """Goes on with an import that was begun outside the desk."""
        wanted = field(request.state.form, "id")
        begun = next((one for one in begun_elsewhere() if one.id == wanted), None)
        if begun is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        one = add_begun(begun)
        self._start(one)
        return self._pages.see(f"/import/{one.name}")

    def show_import(self, request: Request) -> Response:
        """An import, at the step where it is; `?step=columns` goes back to the columns."""
        one = self._import(request)
        is_asked_for = request.query_params.get("step") == "columns"
        if one.state != "running" and (is_asked_for or asks_columns(one.result)):
            return self._columns(one)
        return self._import_page(one)

    def _import_page(self, one: DeskImport, error: str = "") -> Response:
        """The page of an import that was started."""
        status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
        return self._pages.page(
            "import",
            status,
            view=import_view(one, self._texts),
            error=error,
            url=f"/import/{one.name}/progress",
            tab="import",
        )

    def _columns(
        self,
        one: DeskImport,
        error: str = "",
        chosen: Mapping[str, str] = MappingProxyType({}),
        marked: Collection[str] = (),
    ) -> Response:
        """The columns of a file; with what was chosen, where that could not be kept, and why: `marked` are wrong."""
        status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
        with self._reads():
            view = columns_view(one, self._texts, chosen)
        return self._pages.page(
            "columns",
            status,
            view=view,
            error=error,
            marked=marked,
            encodings=ENCODINGS,
            delimiters=DELIMITERS,
            tab="import",
        )

    def import_progress(self, request: Request) -> Response:
        """How far an import is: a part of its page."""
        one = self._import(request)
        progress = progress_of(one.job, self._texts)
        return self._pages.page("progress", progress=progress, url=f"/import/{one.name}/progress")

    def workbook(self, request: Request) -> Response:
        """The workbook with the result of each line."""
        one = self._import(request)
        path = Path(str((one.result.get("files") or {}).get("workbook") or ""))
        if not path.is_file():
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return FileResponse(path, filename=f"{one.file.stem} {path.name}", media_type=_XLSX)

    def answer_columns(self, request: Request) -> Response:
        """Answers for the columns whose field was chosen, then looks at the file."""
        one = self._import(request)
        chosen = _chosen_fields(request)
        if field(request.state.form, "rest"):
            chosen = without_rest(chosen)
        reading = self._reading(one)
        refused = self._keep_columns(one, reading, chosen, column_answers(reading, chosen))
        if refused is not None:
            return refused
        self._start(one)
        return self._pages.see(f"/import/{one.name}")

    def _keep_changed_columns(self, one: DeskImport, request: Request) -> Response | None:
        """Keeps the fields that were changed on the page of columns before another button was pressed there."""
        chosen = _chosen_fields(request)
        if not chosen:  # the page of a file that cannot be read has no columns
            return None
        reading = self._reading(one)
        changed = changed_columns(reading, chosen)
        return self._keep_columns(one, reading, changed, changed)

    def _reading(self, one: DeskImport) -> FileReading:
        """How the file of an import is read."""
        with self._reads():
            return read_columns(one.kind, one.file, one.read_options, one.lookups)

    def _keep_columns(
        self,
        one: DeskImport,
        reading: FileReading,
        chosen: Mapping[str, str],
        answers: Mapping[str, str],
    ) -> Response | None:
        """Gives the answers for columns; the page again where what was chosen is not possible."""
        if twice := columns_of_one_field(reading, chosen):
            path, names = twice
            error = self._texts(
                "columns.twice", columns=", ".join(names), field=self._texts.field(path)
            )
            return self._columns(one, error, chosen, marked=names)
        error = self._give(one, answers)
        return self._columns(one, error, chosen) if error else None

    def read_again(self, request: Request) -> Response:
        """Reads the file as it was chosen: its sheet, its encoding, its delimiter."""
        one = self._import(request)
        refused = self._keep_changed_columns(one, request)
        if refused is not None:
            return refused
        one.choose(**{name: field(request.state.form, name) for name in READ_AS})
        self._start(one)
        return self._pages.see(f"/import/{one.name}?step=columns")

    def answer_import(self, request: Request) -> Response:
        """Answers the questions of an import, then looks at the file again."""
        one = self._import(request)
        given = named(request.state.form, _ANSWER)
        answers = {name.removeprefix(_ANSWER): value for name, value in given.items() if value}
        if not answers:
            return self._import_page(one, self._texts("question.no_value"))
        unknown = {each.id for each in unknown_writes(one.result)}
        if any(is_write(name) and name not in unknown for name in answers):
            return self._import_page(one, self._texts("import.answered"))
        refused = self._keep_changed_columns(one, request)  # the page of columns asks, too
        if refused is not None:
            return refused
        error = self._give(one, _still_asked(one, answers))
        if error:
            return self._import_page(one, error)
        self._start(one)
        return self._pages.see(f"/import/{one.name}")

    def _start(self, one: DeskImport) -> None:
        """Starts the command of an import, which sends nothing; its workbook is in the language of the pages."""
        one.start("--lang", self._texts.language)

    def _give(self, one: DeskImport, answers: Mapping[str, str]) -> str:
        """Gives answers by a command, all or none. Returns why they are not possible; empty where they are kept."""
        if not answers:
            return ""
        given = [{"question": name, "answer": value} for name, value in answers.items()]
        path = one.folder / "answers.json"
        write_private(path, json.dumps(given).encode())
        error = run_short(["answer", "--from", str(path), "--json"]).error
        return self._texts("answer.refused", error=error) if error else ""

    def add_lookup(self, request: Request) -> Response:
        """Keeps a second file, which may have ids that the first one lacks."""
        one = self._import(request)
        file = dropped_file(request.state.form)
        if file is None or not file.size:
            return self._columns(one, self._texts("upload.no_file"), _chosen_fields(request))
        if is_no_table(file):
            error = self._texts("upload.no_table", file=file.filename)
            return self._columns(one, error, _chosen_fields(request))
        refused = self._keep_changed_columns(one, request)
        if refused is not None:
            return refused
        keep_file(one.lookups_folder, file.filename or "", file.file)
        if answer_to(one.lookup_question) == NO:  # of another file
            run_short(["answer", "--withdraw", "--", one.lookup_question])
        self._start(one)
        return self._pages.see(f"/import/{one.name}")

    def leave_out_lookup(self, request: Request) -> Response:
        """Takes a second file away again, with what was answered about it."""
        one = self._import(request)
        refused = self._keep_changed_columns(one, request)
        if refused is not None:
            return refused
        if answer_to(one.lookup_question) is not None:
            run_short(["answer", "--withdraw", "--", one.lookup_question])
        one.leave_out_lookup(field(request.state.form, "file_name"))
        self._start(one)
        return self._pages.see(f"/import/{one.name}?step=columns")

    def check_import(self, request: Request) -> Response:
        """Looks at the file again, and sends nothing."""
        one = self._import(request)
        self._start(one)
        return self._pages.see(f"/import/{one.name}")

    def send_import(self, request: Request) -> Response:
        """Sends what the page has shown, after the person has agreed to it: by its number, where it is production."""
        one = self._import(request)
        if one.job.is_running:  # another tab has sent it
            return self._pages.see(f"/import/{one.name}")
        document = one.result
        agreement = document.get("agreement")
        seen = field(request.state.form, "shown")
        if not agreement or seen != shown_plan(document):
            return self._import_page(one, self._texts("send.changed"))
        typed = _SEPARATORS.sub("", field(request.state.form, "number"))
        if (busy := busy_now(self._texts)) is not None:
            words = (self._texts("busy.nothing"), busy.text, self._texts("busy.wait"))
            return self._import_page(one, " ".join(words))
        if agreement["environment"] == "production" and typed != str(agreement["operations"]):
            return self._import_page(one, self._texts("send.number"))
        one.send(seen, "--lang", self._texts.language, *agreement["arguments"])
        return self._pages.see(f"/import/{one.name}")

    def correct_import(self, request: Request) -> Response:
        """Keeps the corrected lines as an import of their own, and looks at it; and which lines are left out."""
        one = self._import(request)
        document = one.result
        done = lines_of(corrections(one))
        shown = corrections_of(document, self._texts, done, settled_lines(one))
        marked = named(request.state.form, _LEAVE)
        left_out = {row.line for row in shown.rows if f"{_LEAVE}{row.line}" in marked}
        rows = corrected_rows(shown, named(request.state.form, "cell:"), left_out)
        has_changed = left_out != {row.line for row in shown.rows if row.is_left_out}
        if has_changed:
            not_shown = (one.left_out or frozenset()) - {row.line for row in shown.rows}
            one.leave_out_lines(left_out | not_shown)
        if not rows or not document.get("folder"):
            if has_changed:
                return self._pages.see(f"/import/{one.name}")
            return self._import_page(one, self._texts("correct.nothing"))
        mapping = Path(document["folder"]) / MAPPING_FILE
        rejected = rejected_cells(document)
        lines = {line: rejected[line] for line in rows}
        fixed = add_correction(one, mapping, lines, workbook_of(shown.columns, rows))
        self._start(fixed)
        return self._pages.see(f"/import/{fixed.name}")

    def change_kind(self, request: Request) -> Response:
        """Imports a file of which nothing was sent as another kind, and forgets it as this one."""
        one = self._import(request)
        kind = field(request.state.form, "kind")
        if not one.is_removable or kind not in kinds():
            return self._import_page(one, self._texts("import.not_removable"))
        with one.file.open("rb") as content:
            other = add_import(cast("KindName", kind), one.file.name, content)
        one.remove()
        self._start(other)
        return self._pages.see(f"/import/{other.name}")

    def remove_import(self, request: Request) -> Response:
        """Forgets a file of which nothing was sent."""
        one = self._import(request)
        if not one.is_removable:
            return self._import_page(one, self._texts("import.not_removable"))
        one.remove()
        return self._pages.see("/import")

    def _import(self, request: Request) -> DeskImport:
        """The import of the address. Raises HTTPException."""
        one = find_import(request.path_params["name"])
        if one is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return one


def _still_asked(one: DeskImport, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers to questions that are still asked.

    A question ends with another file of the same columns, which has been sent. The file is then checked again and asks
    what is open. The passwords of this file are as they were answered.
    """
    asked = {
        name: value
        for name, value in answers.items()
        if not name.startswith(PREFIX) or is_asked(name)
    }
    for name, value in answers.items():
        if name.endswith(f"/{PASSWORDS}"):
            one.choose(passwords="" if name in asked else value)
    return asked


def _chosen_fields(request: Request) -> dict[str, str]:
    """The fields that a form has for columns, by the question of the column."""
    form: FormData = request.state.form
    return {name.removeprefix(_COLUMN): path for name, path in named(form, _COLUMN).items()}
