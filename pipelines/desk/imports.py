"""Imports of the desk: a folder for each file that was dropped, and how far its import is.

In: the desk's folder. Out: `DeskImport`, and rows for the first page. What is known of an import is its file and
what the
command printed last: leaving at any step and coming back goes on there.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final, Literal, cast

import msgspec

from orderbridge.pipelines.desk.folder import desk_folder, run_job
from orderbridge.pipelines.desk.jobs import Job
from orderbridge.pipelines.desk.link import Link
from orderbridge.pipelines.desk.texts import Texts
from orderbridge.pipelines.import_file.asking import LOOKUP, PREFIX, BegunImport, begun_imports
from orderbridge.pipelines.ledger.lock import ledger_lock_file
from orderbridge.pipelines.plan.model import MANIFEST_FILE
from orderbridge.pipelines.questions.model import AskedQuestion
from orderbridge.pipelines.warehouse.lock import lock_holder
from orderbridge.sources.disk import create_private, disk_errors, private_folder, write_private
from orderbridge.sources.errors import ExitCode
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.kinds import KINDS, KindName
from orderbridge.sources.settings import find_root, ledger_path

State = Literal[
    "new",
    "running",
    "lost",
    "asking",
    "planned",
    "sent",
    "nothing",
    "unfinished",
    "stopped",
    "failed",
]
"""How far it is: nothing was started of a new one, a lost one was killed, and of one with nothing to send nothing was
sent; the others are those of its result."""
_NAME: Final = re.compile(r"[a-z]+-[0-9]{8}-[0-9]{6}(-[0-9]+)?(\.[0-9]+)?")
_DONE: Final = ("sent", "nothing")
_PASSING: Final = (ExitCode.PLATFORM, ExitCode.LOCKED)
"""Exit codes of a failure that may be over when the file is checked again."""
_AGREEMENT: Final = "--confirm"
"""The option of a command that may send."""
_OPTIONS: Final = "options.json"
_ORIGINALS: Final = "original-cells.json"
READ_AS: Final = ("sheet", "encoding", "delimiter")
"""What can be chosen of how a file is read: options of `import`."""
_NAME_MAX: Final = 120
_LINES_SHOWN: Final = 5
_CHUNK: Final = 1 << 20
_HINT: Final = "Free space or make the folder writable, then try again."


@dataclass(frozen=True, slots=True)
class DeskImport:
    """An import of the desk.

    Attributes:
        folder: where its file and the output of its command are.
    """

    folder: Path

    @property
    def name(self) -> str:
        """The kind, and when the file was dropped; a correction has `.2` at its end."""
        return self.folder.name

    @property
    def kind(self) -> KindName:
        """What its lines are."""
        return cast("KindName", self.name.partition("-")[0])

    @property
    def file(self) -> Path:
        """The file. Raises FileNotFoundError."""
        return next(_files(self.folder / "file"))

    @property
    def root(self) -> str:
        """The name of the import whose rejected lines it corrects; its own where it is none."""
        return self.name.partition(".")[0]

    @property
    def first(self) -> DeskImport:
        """The import whose rejected lines it corrects; itself where it is none."""
        return DeskImport(self.folder.with_name(self.root))

    @property
    def is_correction(self) -> bool:
        """Whether its file has the corrected lines of another one."""
        return self.root != self.name

    @property
    def title(self) -> str:
        """The name of the file that the person has: that of a correction is the first one's."""
        first = self.first
        return (first if first.folder.is_dir() else self).file.name

    @property
    def lookups_folder(self) -> Path:
        """Where further files are that were added to it, with ids that its file may lack; a correction has none."""
        return self.first.folder / "lookups"

    @property
    def lookups(self) -> list[Path]:
        """The files of that folder, else those of an earlier import that it was begun with."""
        return [*_files(self.lookups_folder)] or self.earlier_lookups

    @property
    def earlier_lookups(self) -> list[Path]:
        """The files of the earlier import; none where that is gone."""
        earlier = self.first._options.get("lookups_of", "")
        return [*_files(self.folder.with_name(str(earlier)) / "lookups")] if earlier else []

    def leave_out_lookup(self, name: str) -> None:
        """Takes a further file away again: one that was added to it, or those of an earlier import."""
        with disk_errors(self.lookups_folder, _HINT):
            for path in _files(self.lookups_folder):
                if path.name == name:
                    path.unlink()
        if name in [path.name for path in self.earlier_lookups]:
            self.first.choose(lookups_of="")

    @property
    def lookup_question(self) -> str:
        """The question whether ids are taken from such a file."""
        return f"{PREFIX}{self.result.get('import_id')}/{LOOKUP}"

    @property
    def read_options(self) -> ReadOptions:
        """What was chosen of how the file is read."""
        names = ("sheet", "encoding", "delimiter")
        return ReadOptions.given(**{name: self._options.get(name, "") for name in names})

    @property
    def mapping(self) -> str:
        """The mapping of the plan whose rejected lines it corrects; empty: it is found by the columns."""
        return str(self._options.get("mapping", ""))

    @property
    def corrects(self) -> str:
        """The name of the import whose lines it corrects; empty where it is no correction."""
        return str(self._options.get("of", ""))

    @property
    def corrected_lines(self) -> list[int]:
        """The lines of that import that it has; none where it is no correction."""
        return [*map(int, str(self._options.get("lines", "")).split())]

    @property
    def original_cells(self) -> dict[int, dict[str, str]]:
        """The cells of its lines as the person's file has them, by column.

        None where it is no correction, or one that was begun before these were kept.
        """
        try:
            return msgspec.json.decode(
                (self.folder / _ORIGINALS).read_bytes(), type=dict[int, dict[str, str]]
            )
        except (OSError, msgspec.DecodeError):
            return {}

    @property
    def left_out(self) -> frozenset[int] | None:
        """The rejected lines that a person does not send; None: nobody has marked any yet."""
        lines = self._options.get("left_out")
        return None if lines is None else frozenset(map(int, str(lines).split()))

    def leave_out_lines(self, lines: Iterable[int]) -> None:
        """Keeps which rejected lines are not sent. Raises UsageError."""
        self.choose(left_out=" ".join(map(str, sorted(lines))))

    @property
    def _options(self) -> dict[str, Any]:
        try:
            options = json.loads((self.folder / _OPTIONS).read_bytes())
        except (OSError, ValueError):
            return {}
        return options if isinstance(options, dict) else {}

    def choose(self, **options: str) -> None:
        """Keeps what was chosen for the file: how it is read, its mapping. Raises UsageError."""
        kept = {**self._options, **options}
        with disk_errors(self.folder, _HINT):
            write_private(self.folder / _OPTIONS, json.dumps(kept).encode())

    def send(self, seen: str, *options: str) -> None:
        """Starts the command with the agreement of a person, and keeps what the person has seen. Raises UsageError."""
        self.choose(seen=seen)
        self.start(*options)

    @property
    def seen(self) -> str:
        """What names the plan that a person has agreed to last; empty: none yet."""
        return str(self._options.get("seen", ""))

    @property
    def may_have_sent(self) -> bool:
        """Whether a request may have been sent: one that was interrupted leaves no result that says so."""
        may_now = self._is_agreed and not self.was_refused
        return may_now or bool(self._options.get("agreed")) or _has_requests(self.result)

    @property
    def _is_agreed(self) -> bool:
        """Whether the command that was started last may send."""
        return _AGREEMENT in self.job.words

    @property
    def is_sending(self) -> bool:
        """Whether a command is running that may send."""
        return self.job.is_running and self._is_agreed

    @property
    def was_refused(self) -> bool:
        """Whether the last command could not begin its work, because another one was sending, or reading the lists."""
        error = self.result.get("error") or {}
        return self.result.get("push") is None and error.get("exit_code") == ExitCode.LOCKED

    @property
    def may_succeed_now(self) -> bool:
        """Whether the last command failed because the platform was away, or because another one was running."""
        error = self.result.get("error") or {}
        return error.get("exit_code") in _PASSING

    @property
    def is_removable(self) -> bool:
        """Whether nothing was sent, so that the file can be forgotten."""
        return not self.job.is_running and not self.may_have_sent

    def remove(self) -> None:
        """Forgets the file, and what its import has asked. Raises UsageError."""
        for begun in begun_imports():
            if _is_in(self.folder, begun):
                begun.forget()
        with disk_errors(self.folder, _HINT):
            shutil.rmtree(self.folder)

    @property
    def job(self) -> Job:
        """The command."""
        return Job.of(self.folder, "import")

    @property
    def result(self) -> dict[str, Any]:
        """What the command printed, or why it could not begin; empty if it has printed nothing yet."""
        results = self.job.results()
        if results:
            return results[-1]
        errors = [one for one in self.job.events() if one.get("event") == "error"]
        if not errors or self.job.is_running:
            return {}
        return {"state": "failed", "error": {"message": errors[-1].get("message", "")}}

    @property
    def state(self) -> State:
        """How far it is."""
        if self.job.is_running:
            return "running"
        if not self.job.was_started:
            return "new"
        state = self.result.get("state", "lost")
        is_empty = state == "sent" and not self.may_have_sent
        return cast("State", "nothing" if is_empty else state)

    @property
    def added_at(self) -> datetime:
        """When the file was dropped."""
        return datetime.fromtimestamp(self.folder.stat().st_mtime, UTC)

    def words(self, *options: str) -> list[str]:
        """The command that imports the file. Without an agreement among the options it sends nothing."""
        given = [word for path in self.lookups for word in ("--lookup", str(path))]
        chosen = self.read_options
        given += [f"--{name}={value}" for name in READ_AS if (value := getattr(chosen, name))]
        if passwords := self._options.get("passwords"):
            given.append(f"--passwords={passwords}")
        if self.mapping:
            given.append(f"--mapping={self.mapping}")
        return ["import", self.kind, str(self.file), "--json", "--values", *given, *options]

    def start(self, *options: str) -> None:
        """Starts the command, unless it is running. Raises UsageError."""
        self.job.start(self.words(*options), before=self._note_what_was_sent)

    def _note_what_was_sent(self) -> None:
        """Keeps of the command before this one what its output says no more."""
        if self.may_have_sent:
            self.choose(agreed="yes")


def _has_requests(result: Mapping[str, Any]) -> bool:
    """Whether an import has come to send, and has requests: its lines may all be there already, or rejected."""
    push = result.get("push") or {}
    return bool(push.get("operations"))


@dataclass(frozen=True, slots=True)
class ImportRow:
    """An import on the first page.

    Attributes:
        lines: the first numbers of the lines that a correction has; empty: it is none.
        waits: for a person.
    """

    name: str
    file: str
    kind: str
    lines: str
    state: str
    state_words: str
    at: datetime
    href: str
    is_done: bool
    waits: bool


def imports() -> list[DeskImport]:
    """The imports, the newest first."""
    folder = desk_folder()
    folders = filter(_is_import, folder.glob("*-*"))
    return sorted(map(DeskImport, folders), key=lambda one: one.added_at, reverse=True)


def busy_now(texts: Texts) -> Link | None:
    """What is being done, so that no file can be sent, with its page where it is an import; None: nothing is.

    Two commands do not send at once: the second one would end without having sent anything.
    """
    running = next((one for one in imports() if one.job.is_running), None)
    if running is not None:
        row = import_row(running, texts)
        code = "busy.import" if running.is_sending else "busy.checking"
        return Link(texts(code, file=row.file), href=row.href)
    if run_job().is_running:
        return Link(texts("busy.reading"), href="/#run")
    is_locked = lock_holder(ledger_lock_file(ledger_path()))[1]
    return Link(texts("busy.other")) if is_locked else None


def find_import(name: str) -> DeskImport | None:
    """The import of a name; None if there is none."""
    if not _NAME.fullmatch(name):
        return None
    folder = desk_folder() / name
    return DeskImport(folder) if _is_import(folder) else None


class _PlannedFile(msgspec.Struct):
    path: str


class _PlannedInput(msgspec.Struct):
    """What is needed of `plan.json`."""

    input: _PlannedFile


def import_of_plan(folder: Path) -> DeskImport | None:
    """The import that a plan was made of; None: it was begun outside the desk, or is gone."""
    try:
        planned = msgspec.json.decode((folder / MANIFEST_FILE).read_bytes(), type=_PlannedInput)
    except (OSError, msgspec.DecodeError):
        return None
    file = find_root() / planned.input.path
    one = find_import(file.parent.parent.name)  # the root has itself as its parent
    return one if one is not None and one.file.absolute() == file.absolute() else None


def import_rows(texts: Texts) -> list[ImportRow]:
    """The imports for a page."""
    return [import_row(one, texts) for one in imports()]


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunRow:
    """An import that was begun outside the desk and has asked something.

    Attributes:
        id: in the ids of its questions.
        file: its path.
        is_there: whether the file can be read still.
        command: that goes on with it in a terminal.
    """

    id: str
    file: str
    kind: str
    questions: int
    is_there: bool
    command: str


def _is_in(folder: Path, begun: BegunImport) -> bool:
    """Whether the file of an import that has asked something is in a folder."""
    return folder.absolute() in Path(begun.file).parents


def begun_elsewhere() -> list[BegunImport]:
    """The imports that were begun in a terminal or by a script, and have asked something."""
    own = desk_folder()
    return [one for one in begun_imports() if not _is_in(own, one) and not one.has_ended]


def asked_elsewhere(asked: Iterable[AskedQuestion]) -> list[AskedQuestion]:
    """The questions but those about files of the desk, which the pages of their imports ask."""
    own = desk_folder()
    begun = [one for one in begun_imports() if _is_in(own, one)]
    of_files = tuple(one.question("") for one in begun)
    return [one for one in asked if not one.id.startswith(of_files)]


def begun_rows(texts: Texts) -> list[BegunRow]:
    """Imports that were begun outside the desk, for the first page."""
    return [
        BegunRow(
            id=one.id,
            file=one.file,
            kind=texts(f"kind.{one.kind}"),
            questions=len(one.questions),
            is_there=Path(one.file).is_file(),
            command=shlex.join(_words(one)),
        )
        for one in begun_elsewhere()
    ]


def _words(begun: BegunImport) -> list[str]:
    """The command of an import that was begun."""
    lookups = [word for path in begun.lookups for word in ("--lookup", path)]
    chosen = [f"--{name}={value}" for name in READ_AS if (value := getattr(begun, name))]
    return ["orderbridge", "import", begun.kind, begun.file, *lookups, *chosen]


def add_begun(begun: BegunImport) -> DeskImport:
    """Goes on in the desk with an import that was begun outside of it. Raises UsageError."""
    path = Path(begun.file)
    with disk_errors(path, _HINT), path.open("rb") as file:
        one = add_import(begun.kind, path.name, file)
    for lookup in map(Path, begun.lookups):
        with disk_errors(lookup, _HINT), lookup.open("rb") as file:
            keep_file(one.lookups_folder, lookup.name, file)
    one.choose(**{name: getattr(begun, name) for name in READ_AS})
    return one


def import_row(one: DeskImport, texts: Texts) -> ImportRow:
    """An import for a page."""
    state = one.state
    kind = texts(f"kind.{one.kind}")
    has_ended = state in _DONE or (state == "failed" and not one.may_succeed_now)
    return ImportRow(
        name=one.name,
        file=one.title,
        kind=f"{kind}, {texts('correct.note')}" if one.is_correction else kind,
        lines=_first_lines(one.corrected_lines),
        state=state,
        state_words=texts(f"import.state.{state}"),
        at=one.added_at,
        href=f"/import/{one.name}",
        is_done=state in _DONE,
        waits=state != "running" and not has_ended,
    )


def _first_lines(lines: Sequence[int]) -> str:
    more = " …" if len(lines) > _LINES_SHOWN else ""
    return f"{', '.join(map(str, lines[:_LINES_SHOWN]))}{more}"


def add_import(kind: KindName, file_name: str, content: IO[bytes]) -> DeskImport:
    """Keeps a file that was dropped on the page, readable by this user alone. Raises UsageError."""
    stamp = f"{kind}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    root = desk_folder(makes_it=True)
    with disk_errors(root, _HINT):
        folder = next(root / name for name in _names(stamp) if _makes(root / name))
    one = DeskImport(folder)
    keep_file(one.folder / "file", file_name, content)
    if earlier := _last_with_lookups(kind):
        one.choose(lookups_of=earlier)
    return one


def _last_with_lookups(kind: KindName) -> str:
    """The name of the last import of a kind to which files with ids were added that it could use; else empty."""
    having = (one for one in imports() if one.kind == kind and [*_files(one.lookups_folder)])
    return next((one.root for one in having if one.result.get("folder")), "")


def add_correction(
    of: DeskImport, mapping: Path, lines: Mapping[int, Mapping[str, str]], content: bytes
) -> DeskImport:
    """Keeps the corrected lines of an import as an import of their own. Raises UsageError.

    `lines`: with their cells as `of` rejects them; the person's file may be forgotten before the next one repeats them.
    """
    root = desk_folder(makes_it=True)
    names = (f"{of.root}.{number}" for number in range(2, 1000))
    with disk_errors(root, _HINT):
        folder = next(root / name for name in names if _makes(root / name))
    one = DeskImport(folder)
    keep_file(one.folder / "file", f"{of.file.stem[:_NAME_MAX]}.xlsx", io.BytesIO(content))
    one.choose(mapping=str(mapping), of=of.name, lines=" ".join(map(str, lines)))
    originals = {**lines, **of.original_cells}
    with disk_errors(one.folder, _HINT):
        kept = msgspec.json.encode({line: originals[line] for line in lines})
        write_private(one.folder / _ORIGINALS, kept)
    return one


def corrections_by_name() -> dict[str, list[DeskImport]]:
    """The imports of corrected lines, by the name of the import that the lines are of; the first one first."""
    found: dict[str, list[DeskImport]] = {}
    for one in reversed(imports()):
        if one.is_correction:
            found.setdefault(one.corrects, []).append(one)
    return found


def corrections(of: DeskImport) -> list[DeskImport]:
    """The imports of its corrected lines, the first one first."""
    return corrections_by_name().get(of.name, [])


def are_corrections_sent(of: DeskImport, made: Mapping[str, Sequence[DeskImport]]) -> bool:
    """Whether corrected lines of an import were sent, or such lines that were corrected once more.

    `made`: the imports of corrected lines, by the name of the import that the lines are of.
    """
    if not of.is_correction:  # one that is forgotten leaves what was corrected in it
        every = [one for made_of in made.values() for one in made_of]
        return any(one.may_have_sent for one in every if one.root == of.name)
    own = made.get(of.name, ())
    return any(one.may_have_sent or are_corrections_sent(one, made) for one in own)


def other_parts(of: DeskImport, made: Mapping[str, Sequence[DeskImport]]) -> list[DeskImport]:
    """The file whose lines a correction has, and the other corrections of it, the first one first; `made` as above."""
    first = find_import(of.root)
    every = [one for made_of in made.values() for one in made_of]
    others = [one for one in every if one.root == of.root and one.name != of.name]
    others.sort(key=lambda one: one.added_at)
    return others if first is None else [first, *others]


def lines_of(made: Iterable[DeskImport]) -> frozenset[int]:
    """The lines that corrections have."""
    return frozenset(line for one in made for line in one.corrected_lines)


def keep_file(folder: Path, file_name: str, content: IO[bytes]) -> Path:
    """Writes a file of mode 0600 into a folder of mode 0700, in pieces. Raises UsageError."""
    path = folder / safe_name(file_name)
    with disk_errors(path, _HINT):
        private_folder(folder)
        path.unlink(missing_ok=True)
        with create_private(path) as file:
            while chunk := content.read(_CHUNK):
                file.write(chunk)
    return path


def safe_name(name: str) -> str:
    """The name of a file that somebody else chose, as the name of a file here: no path, no control character."""
    base = re.split(r"[/\\]", name)[-1]
    kept = "".join(char for char in base if char.isprintable()).strip().lstrip(".-")
    stem, dot, suffix = kept.rpartition(".")
    short = stem.encode()[:_NAME_MAX].decode("utf-8", "ignore")
    return f"{short}{dot}{suffix[:8]}" if short else suffix[:_NAME_MAX] or "file"


def _names(stamp: str) -> Iterator[str]:
    yield stamp
    yield from (f"{stamp}-{number}" for number in range(2, 1000))


def _makes(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder, sorted; none where there is no folder."""
    if folder.is_dir():
        yield from sorted(path for path in folder.iterdir() if path.is_file())


def _is_import(folder: Path) -> bool:
    kind = folder.name.partition("-")[0]
    return kind in KINDS and any(_files(folder / "file"))


def kinds() -> Sequence[KindName]:
    """The kinds of files that can be imported."""
    return tuple(cast("KindName", name) for name in KINDS)
