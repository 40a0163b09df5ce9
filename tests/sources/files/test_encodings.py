"""Encodings: found, taken as given, or refused with the right reading among the candidates; never silently wrong."""

from __future__ import annotations

import random
import re
from pathlib import Path
from unittest import mock

import pytest

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions, encoding
from tests.sources.files.reading import cells, check, error_of, rows_of, table

LANGUAGES = dict(
    line.split(" ", 1)
    for line in """
Spanish García Muñoz Peñalver López Ibáñez Málaga Córdoba Núñez Martín Cigüeña Añón Jesús Sofía Calderón Logroño
French Françoise Hélène Crédit Forêt Noël Château Maïs Août Crème Besançon Mâcon Évreux Élève Théâtre Sœur Cœur
German Müller Schäfer Köln Straße Größe Jürgen Übung Öl Äpfel Weißbier Lösung Göttingen München Bär Fuß Prüfung
Icelandic Reykjavík Þórður Sigurðsson Guðmundur Hæð Ísafjörður Þingvellir Jökulsá Akureyri Eyþór Níels Bær Ágúst
Czech Dvořák Příbram Třebíč Čeněk Novotný Plzeň Žižkov Růžička Jiří Černý Děčín Škoda Křížek Kučera Hněvotín
Polish Łódź Wałęsa Gdańsk Kraków Żółć Śląsk Częstochowa Brzęczyszczykiewicz Świętokrzyskie Zając Dąbrowski Jabłoński
Turkish İstanbul Şahin Yıldız Çağlar Gökçe Doğan Işık Özgür Eskişehir Kadıköy Beşiktaş Ağrı Kırşehir Öztürk Muğla
Lithuanian Šiauliai Žemaitė Kęstutis Šarūnas Panevėžys Čiurlionis Jonavičius Žydrūnas Marijampolė Alytų Gražina
Russian Москва Иванов Сергей Пётр Хлеб Молоко Новосибирск Объезд Щука Юлия Яблоко Эхо Цена Жук Чай Рыба Подъезд
Greek Αθήνα Παπαδόπουλος Θεσσαλονίκη Γεώργιος Ιωάννης Ψωμί Γάλα Χανιά Ξάνθη Πάτρα Κώστας Ελένη Ωδείο Ζάχαρη Ήλιος
Hebrew ירושלים חיפה לחם חלב משה כהן שרה לוי תלאביב נתניה סוכר מים רחוב שוק דגים
""".strip().split("\n")
)
CODE_PAGES = (
    "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1257", "cp437", "cp737", "cp775", "cp850", "cp852", "cp857",
    "cp866", "iso8859-2", "iso8859-4", "iso8859-5", "iso8859-7", "iso8859-9", "iso8859-13", "iso8859-15", "koi8-r",
    "koi8-u", "mac-roman", "mac-latin2",
)  # fmt: skip
WESTERN = ("Spanish", "French", "German", "Icelandic")
BASIC = "Código;Nombre;PVP\r\n007;Peña;1,50\r\n1E5;NULL;2,75\r\n"


@pytest.mark.parametrize(
    ("written", "given", "found"),
    [
        ("utf-8", None, ("utf-8", False, False)), ("utf-8-sig", None, ("utf-8", True, False)),
        ("cp1252", None, ("cp1252", False, True)), ("utf-16", None, ("utf-16-le", True, False)),
        ("utf-32", None, ("utf-32-le", True, False)), ("utf-16", "utf_16", ("utf-16-le", True, False)),
        ("utf-16-le", "utf-16", ("utf-16-le", False, False)), ("utf-16-le", "utf-16-le", ("utf-16-le", False, False)),
        ("cp1252", "cp1252", ("cp1252", False, False)),
        ("cp850", "cp850", ("cp850", False, False)),
    ],
)  # fmt: skip
def test_the_encoding_is_found_or_taken_as_given(
    tmp_path: Path, written: str, given: str | None, found: tuple[str, bool, bool]
) -> None:
    opened = table(tmp_path, BASIC.encode(written), ReadOptions(encoding=given))
    assert (
        opened.format.encoding,
        opened.format.has_bom,
        opened.format.is_encoding_assumed,
    ) == found
    assert opened.columns == ("Código", "Nombre", "PVP")
    assert cells(opened) == [("007", "Peña", "1,50"), ("1E5", "NULL", "2,75")]


@pytest.mark.parametrize(
    ("encoding", "given"),
    [("utf-8", None), ("utf-8", "utf-8"), ("utf-16-le", None), ("utf-16-le", "utf-16")],
)
def test_doubled_byte_order_marks_are_no_part_of_the_header(
    tmp_path: Path, encoding: str, given: str | None
) -> None:
    quoted = '\ufeff\ufeff"Código";"Nombre"\n007;Peña\n8;Ana\n'.encode(encoding)
    opened = table(tmp_path, quoted, ReadOptions(encoding=given))
    assert opened.columns == ("Código", "Nombre")
    assert cells(opened) == [("007", "Peña"), ("8", "Ana")]


@pytest.mark.parametrize(
    ("data", "given", "words"),
    [
        (b"a;b\n\xe9;\x81\n", None, "in.csv: invalid cp1252 at byte 6"),
        *((BASIC.encode(), name, "unknown text encoding") for name in ("klingon", "base64", "rot13")),
        (b"code;name\n1;Jos\xc3\xa9\n2;Jos\xe9\n", "utf-8", "in.csv: invalid utf-8 at byte 23"),
        (b"code;name\n1;Jos\xc3\xa9 Mu\xc3\xb1oz\n2;\xc3", None, "line 2 is UTF-8 … line 3 is not"),  # cut off
        (b"code;name\n1;\xc9\xae\n2;\xf1\n", None, "line 2 is UTF-8 (byte 12), line 3 is not (byte 17)"),
        *((b"code;name\n" + "1;José Muñoz\n".encode() * utf8 + "2;José Muñoz\n".encode("cp1252") * other, None,
           f"line 2 is UTF-8 (byte 15), line {utf8 + 2} is not")
          for utf8, other in ((40, 60), (1, 1), (1, 500), (500, 1))),
        *(("code;name\n1;Peña\n".encode("cp1252") + "1;Peña\n".encode("cp1252") * 299 + f"2;{word}\n".encode(), None,
           "line 302 is UTF-8 … line 2 is not")
          for word in ("José", "JOSÉ", "à", "MALMÖ", "LÀ", "10 °C", "5 €", "it’s", "a\u00a0b", "ŻABA", "Ω", "😀")),
    ],
)  # fmt: skip
def test_bytes_that_are_wrong_in_their_encoding_are_named(
    tmp_path: Path, data: bytes, given: str | None, words: str
) -> None:
    check(tmp_path, data, ReadOptions(encoding=given), error=words)


@pytest.mark.parametrize(
    "text",
    ["«CAFÉ»", "NESCAFÉ®", "“CAFÉ”", "CAFÉ™", "CAFÉ…", "JOSÉ’S", "CAFÉ–BAR", "SÍ\u00a0", "3×½", "Ø½", "Fuß–", "HYVÄ”",
     "PÅ…", "«\u00a0café\u00a0»", "café…”", "canapé ®", "AÇÃO", "MAÇÃ ", "ÀÉÎÕÜ", "Ã", "naïve", "¿Qué?", "ÿ"],
)  # fmt: skip
def test_cp1252_that_looks_like_utf8_is_read(tmp_path: Path, text: str) -> None:
    opened = table(
        tmp_path, f"code;name\n1;Peña, Muñoz, Ibáñez, López\n2;{text}\n".encode("cp1252")
    )
    assert opened.format.encoding == "cp1252"
    assert cells(opened)[1] == ("2", text)


def test_a_file_of_two_encodings_is_read_in_the_one_that_is_given(tmp_path: Path) -> None:
    data = b"code;name\n1;Jos\xc3\xa9\n2;Jos\xe9\n"
    assert cells(table(tmp_path, data, ReadOptions(encoding="cp1252"))) == [
        ("1", "JosÃ©"),
        ("2", "José"),
    ]
    for size in range(1, 30):  # also where a part of the file ends within a letter
        with mock.patch.object(encoding, "CHUNK_BYTES", size):
            message = error_of(tmp_path, data)
            assert "line 2 is UTF-8 (byte 15), line 3 is not (byte 23)" in message
            assert "Jos" not in message


def lines(words: list[str], seed: int = 1) -> str:
    generator = random.Random(seed)
    rows = [f"{n:05};{' '.join(generator.sample(words, 2))};{n},50" for n in range(len(words))]
    return "\r\n".join(["Code;Name;Price", *rows, ""])


def names(folder: Path, data: bytes, given: str | None = None) -> list[str]:
    return [row[1] for row in cells(table(folder, data, ReadOptions(encoding=given)))]


def in_code_page(page: str, language: str) -> list[str]:
    """The words of a language that a code page has; none if it lacks the language."""
    words = [
        word
        for word in LANGUAGES[language].split()
        if word == word.encode(page, "replace").decode(page)
    ]
    return words if sum(not word.isascii() for word in words) >= 5 else []


def is_right_or_refused(folder: Path, text: str, page: str, shown: list[str]) -> None:
    """A file is read as it was written, or refused with one of these words among the candidates."""
    expected = [line.split(";")[1] for line in text.splitlines()[1:]]
    try:
        found, hint = names(folder, text.encode(page)), ""
    except UsageError as error:
        found, hint = [], error.hint
    assert found == expected or any(word in hint for word in shown), (page, hint)


@pytest.mark.parametrize("page", CODE_PAGES)
def test_a_code_page_is_right_or_refused_with_the_right_candidate(
    tmp_path: Path, page: str
) -> None:
    read = [language for language in LANGUAGES if in_code_page(page, language)]
    for language in read:
        words = in_code_page(page, language)
        text = lines(words)
        assert names(tmp_path, text.encode(page), page) == [
            line.split(";")[1] for line in text.splitlines()[1:]
        ]
        is_right_or_refused(tmp_path, text, page, [word for word in words if not word.isascii()])
    assert read


ASCII_ROWS = [
    f"{name} {kind}"
    for name in ("Perno", "Tuerca", "Clavo", "Llave")
    for kind in ("inox", "zinc", "M8")
]
ACCENTED_ROWS = [word for word in LANGUAGES["Spanish"].split() if not word.isascii()]
SIGNS = (
    "Nº 3|1ª|25 °C|«Cañón»|L’Oréal|Aujourd’hui|10 €|5×3|½ kg|Café – Bar|NESCAFÉ®|Mª José|D´Ávila"
)


@pytest.mark.parametrize("language", WESTERN)
def test_genuine_western_files_are_not_refused(tmp_path: Path, language: str) -> None:
    words = LANGUAGES[language].split()
    for seed in range(3):
        generator = random.Random(f"{language}{seed}")
        chosen = generator.sample(words, generator.randint(3, len(words)))
        chosen += [
            *generator.sample(SIGNS.split("|"), 2),
            *(word.upper() for word in generator.sample(words, 2)),
        ]
        opened = table(tmp_path, lines(chosen, seed).encode("cp1252"))
        assert (opened.format.is_encoding_assumed, len(cells(opened))) == (True, len(chosen))


MANY = [*ACCENTED_ROWS, *ASCII_ROWS] * 2
UNUSUAL = (
    "30L×20A×10H|rojo•verde|Guðrún Þórðardóttir|Light—yet|L’Hospitalet|5º piso|Tõnu|Dušan|Août"
)


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        # one unusual name does not refuse the other rows
        *(([*MANY, text], "") for text in UNUSUAL.split("|")),
        ([*ASCII_ROWS, "L×A×H"], ""),
        # one word, however often; Turkish names
        ([*["Brontë Books", *ACCENTED_ROWS] * 9, *["Brontë Books"] * 60], ""),
        (
            [*["Brontë & Co", "Brontë", *ACCENTED_ROWS] * 9, *["Brontë Ltd", "Brontë, Leeds"] * 30],
            "",
        ),
        ([*ASCII_ROWS, "Größe „zwei“", "„Bär“ GmbH", "Müller"] * 9, ""),
        ([*ASCII_ROWS, "H„rtel", "Br„uer"] * 9, "makes no sense in UTF-8 or cp1252"),
        (["Çelik SARL", "Çetin", "Évry", "Hélène", "Forêt"] * 9, ""),
        *(([*ASCII_ROWS, text], f"cp1252[^:]*: .*{text}") for text in ("Light—yet", "rojo•verde")),
        ([*ACCENTED_ROWS * 60, "Mu¤oz", "Pe¤a"], "makes no sense in UTF-8 or cp1252"),
        (
            [*ACCENTED_ROWS[:3], "Brãila", "Mãgurele", "Bãsescu"],
            "makes no sense in UTF-8 or cp1252",
        ),
    ],
)
def test_only_places_that_no_western_text_has_refuse_a_file(
    tmp_path: Path, rows: list[str], error: str
) -> None:
    data = "\r\n".join(["Code;Name", *(f"{n:05};{name}" for n, name in enumerate(rows))]).encode(
        "cp1252"
    )
    if error:
        assert re.search(error, error_of(tmp_path, data))
    else:
        assert names(tmp_path, data) == rows


def test_the_message_has_words_and_no_numbers_or_passwords(tmp_path: Path) -> None:
    text = "Name;password\r\nDvořák;s3crét1\r\nPříbram;gehéim7\r\nČeněk Růžička;x9ř\r\n"
    message = error_of(tmp_path, text.encode("cp1250"))
    assert re.search(
        "line 4 makes no sense in UTF-8 or cp1252(.|\n)*cp1250.*Dvořák, Příbram", message
    )
    assert not any(secret in message for secret in ("s3cr", "im7", "x9"))


ARTICLES = {
    "koi8-r": "болт гайка шестигранная шайба плоская сверло по бетону ключ гаечный молоток слесарный рулетка дюбель",
    "cp1254": "altıgen somun düz pul beton matkap ucu açık ağızlı anahtar çekiç şerit metre plastik dübel kar küreği",
    "cp1255": "בורג מגולוון אום משושה דיסקית שטוחה מקדח לבטון מפתח ברגים פטיש מסגרים סרט מדידה דיבל פלסטיק",
}


@pytest.mark.parametrize("page", ARTICLES)
def test_the_most_likely_encoding_is_the_first_candidate(tmp_path: Path, page: str) -> None:
    words = ARTICLES[page].split()
    message = error_of(tmp_path, lines(words).encode(page))
    _, first, *_ = message.splitlines()[1:]
    assert any(word in first for word in words if not word.isascii()), message


def test_signs_of_cp1252_that_are_control_characters_are_read_where_all_make_sense(
    tmp_path: Path,
) -> None:
    text = "code;name\r\n1;Cœur\r\n2;“Café” – bar\r\n3;it’s 5 €\r\n4;x\r\n"
    for name in ("utf-8", "latin-1"):
        data = text.encode("cp1252").decode("latin-1").encode(name)
        for size in (encoding.CHUNK_BYTES, 7):
            with mock.patch.object(encoding, "CHUNK_BYTES", size):
                opened = table(tmp_path, data, ReadOptions(encoding=name))
                assert opened.format.has_signs
                assert names(tmp_path, data, name) == ["Cœur", "“Café” – bar", "it’s 5 €", "x"]
    # those of other code pages are letters
    for other, page in (
        ("Peña|Müller|Café", "cp850"),
        ("Lösung|Köln", "cp437"),
        ("Świda|Kośla", "cp1250"),
    ):
        data = ("code;name\r\n" + "".join(f"1;{name}\r\n" for name in other.split("|"))).encode(
            page
        )
        opened = table(tmp_path, data, ReadOptions(encoding="latin-1"))
        assert {row.code for row in rows_of(opened)[1]} == {"control"}


def test_a_control_character_of_a_wrong_conversion_rejects_its_row(tmp_path: Path) -> None:
    for char, name in (("\x8d", "utf-8"), ("\x80", "utf-8"), ("\x90", "latin-1")):
        data = f"code;name\r\n1;Muñoz\r\n2;a {char}b\r\n3;x\x85\r\n".encode(name)
        rows, rejected = rows_of(table(tmp_path, data, ReadOptions(encoding=name)))
        assert [row.line for row in rows] == [2, 4]
        assert [(row.line, row.code) for row in rejected] == [(3, "control")]
