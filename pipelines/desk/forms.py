"""The fields of a form, as texts and files."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from starlette.datastructures import FormData, UploadFile

_NO_TABLES: Final = {
    ".pdf", ".doc", ".docx", ".odt", ".jpg", ".jpeg", ".png", ".heic", ".zip", ".rar", ".eml", ".msg",
}  # fmt: skip


def field(form: FormData, name: str) -> str:
    """The text of a field; empty where there is none."""
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def named(form: FormData, begin: str) -> dict[str, str]:
    """The texts of the fields whose names begin so."""
    return {
        name: value
        for name, value in form.items()
        if name.startswith(begin) and isinstance(value, str)
    }


def dropped_file(form: FormData) -> UploadFile | None:
    """The file of a form; None where none was chosen."""
    file = form.get("file")
    return file if isinstance(file, UploadFile) and file.filename else None


def is_no_table(file: UploadFile) -> bool:
    """Whether the name of a file says that it is a document, a picture or an archive: nobody exports a table so."""
    return PurePath(file.filename or "").suffix.casefold() in _NO_TABLES
