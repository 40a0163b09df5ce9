"""Two encodings in one file are refused; cp1252 with signs that UTF-8 might have is read."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from sources.errors import UsageError
from sources.files import ReadOptions, encoding, open_table

HEAD = b"code;name\n"


def file_of(folder: Path, *lines: bytes) -> Path:
    path = folder / "in.csv"
    path.write_bytes(HEAD + b"".join(line + b"\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("utf8", "other"), [(40, 60), (60, 40), (1, 1), (1, 500), (500, 1)], ids=lambda count: str(count)
)
def test_lines_in_two_encodings_are_refused_with_the_first_of_each(tmp_path: Path, utf8: int, other: int) -> None:
    path = file_of(tmp_path, *(["1;José Muñoz".encode()] * utf8), *(["2;José Muñoz".encode("cp1252")] * other))
    with pytest.raises(UsageError) as error:
        open_table(path)
    assert f"line 2 is UTF-8 (byte 15), line {utf8 + 2} is not" in str(error.value)
    assert "Jos" not in str(error.value)


@pytest.mark.parametrize(
    "word",
    ["José", "JOSÉ", "Ñu", "à", "MALMÖ", "LÀ", "10 °C", "5 €", "it’s", "a\u00a0b", "Łódź", "Walęsa", "ŻABA", "ŠKODA",
     "Ірина", "Ω", "東京", "😀"],
)  # fmt: skip
def test_one_word_of_utf8_among_many_lines_of_cp1252_is_found(tmp_path: Path, word: str) -> None:
    lines = ["1;Peña".encode("cp1252")] * 300
    with pytest.raises(UsageError, match=r"line 302 is UTF-8 \(byte \d+\), line 2 is not"):
        open_table(file_of(tmp_path, *lines, f"2;{word}".encode()))


@pytest.mark.parametrize(
    "text",
    ["«CAFÉ»", "NESCAFÉ®", "“CAFÉ”", "CAFÉ™", "CAFÉ…", "JOSÉ’S", "CAFÉ–BAR", "SÍ\u00a0", "3×½", "Ø½", "Fuß–", "HYVÄ”",
     "PÅ…", "«\u00a0café\u00a0»", "café…”", "canapé ®", "AÇÃO", "MAÇÃ ", "ÀÉÎÕÜ", "Ã", "naïve", "¿Qué?", "ÿ"],
)  # fmt: skip
def test_real_cp1252_is_read(tmp_path: Path, text: str) -> None:
    lines = ["1;Peña, Muñoz, Ibáñez, López".encode("cp1252"), f"2;{text}".encode("cp1252")]
    opened = open_table(file_of(tmp_path, *lines))
    assert opened.format.encoding == "cp1252"
    assert [cell for part in opened.batches() for cell in part["name"].to_pylist()][1] == text


def test_more_traces_than_other_bytes_are_no_traces(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 2 is UTF-8 \(byte 12\), line 3 is not \(byte 17\)"):
        open_table(file_of(tmp_path, b"1;\xc9\xae", b"2;\xf1"))


def test_a_given_encoding_is_used(tmp_path: Path) -> None:
    path = file_of(tmp_path, "1;José".encode(), "2;José".encode("cp1252"))
    rows = [
        cell for part in open_table(path, ReadOptions(encoding="cp1252")).batches() for cell in part["name"].to_pylist()
    ]
    assert rows == ["JosÃ©", "José"]
    with pytest.raises(UsageError, match=r"in\.csv: invalid utf-8 at byte 23"):
        open_table(path, ReadOptions(encoding="utf-8"))


def test_utf8_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(HEAD + "1;José Muñoz\n2;ñ".encode()[:-1])
    with pytest.raises(UsageError, match=r"line 2 is UTF-8 .* line 3 is not"):
        open_table(path)


def test_sequences_of_utf8_are_those_that_python_decodes() -> None:
    some = b"\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0"
    for lead in range(128, 256):
        for rest in product(some, repeat=3):
            text = bytes((lead, *rest))
            good = next((size for size in (2, 3, 4) if is_utf8(text[:size])), None)
            found = encoding.UTF8_SEQUENCE.match(text)
            assert (found and found.end()) == good, text


def is_utf8(text: bytes) -> bool:
    try:
        return len(text.decode()) == 1
    except UnicodeDecodeError:
        return False
