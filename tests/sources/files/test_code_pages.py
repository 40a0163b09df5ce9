"""Files in other code pages are refused with the right reading among the candidates; Western ones are read."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from sources.errors import UsageError
from sources.files import ReadOptions, RejectedRow, Row, open_table

LANGUAGES = {
    "Spanish": "García Muñoz Peñalver López Ibáñez Málaga Córdoba "
    "Núñez Martín Cigüeña Añón Jesús Sofía Calderón Logroño",
    "Portuguese": "São João Conceição Gonçalves Magalhães Guimarães Coração "
    "Açúcar Irmãos Ações Ângela Três Avó Câmara",
    "French": "Françoise Hélène Crédit Forêt Noël Château Maïs Août "
    "Crème Besançon Mâcon Évreux Élève Théâtre Sœur Cœur",
    "German": "Müller Schäfer Köln Straße Größe Jürgen Übung Öl "
    "Äpfel Weißbier Lösung Göttingen München Bär Fuß Prüfung",
    "Italian": "Città Università Perché Però Niccolò Caffè Così "
    "Più Bontà Lunedì Virtù Qualità Società Tribù Libertà",
    "Danish": "Søren Århus København Bjørn Ærø Smørrebrød Færøerne "
    "Åbenrå Jørgensen Grød Kål Bådsmand Øst Hæder Tømrer",
    "Finnish": "Hämäläinen Jyväskylä Mäkinen Pöytä Äiti Yötyö Päivä "
    "Hyvää Järvenpää Töölö Väinö Mäntylä Kesäyö Työpöytä",
    "Icelandic": "Reykjavík Þórður Sigurðsson Guðmundur Hæð Ísafjörður Þingvellir "
    "Jökulsá Akureyri Eyþór Níels Bær Ágúst Önnudóttir",
    "Czech": "Dvořák Příbram Třebíč Čeněk Novotný Plzeň Žižkov "
    "Růžička Jiří Černý Děčín Škoda Křížek Kučera Hněvotín",
    "Polish": "Łódź Wałęsa Gdańsk Kraków Żółć Śląsk "
    "Częstochowa Brzęczyszczykiewicz Świętokrzyskie Zając Dąbrowski Jabłoński",
    "Hungarian": "Győr Székesfehérvár Kőszeg Szűcs Erdős Fűtés Nagykőrös "
    "Őrség Hűtő Gergő Kötőné Időszak Szőlő Petőfi Dió",
    "Romanian": "Brăila Mureş Făgăraş Ţepeş Constanţa Bistriţa "
    "Măgurele Iaşi Gheorghiţă Şerban Cîmpulung Sânnicolau Bârlad",
    "Croatian": "Đorđević Kovačić Šibenik Čakovec Marković Žužić Ćosić "
    "Jurčić Hadžić Matešić Babić Đakovo Petrović Vukčević",
    "Turkish": "İstanbul Şahin Yıldız Çağlar Gökçe Doğan Işık "
    "Özgür Eskişehir Kadıköy Beşiktaş Ağrı Kırşehir Öztürk Muğla",
    "Lithuanian": "Šiauliai Žemaitė Kęstutis Šarūnas Panevėžys Čiurlionis "
    "Jonavičius Žydrūnas Marijampolė Alytų Gražina Kėdainių",
    "Latvian": "Rīga Jūrmala Liepāja Jānis Bērziņš Kārlis Ķekava "
    "Ģirts Ogrēnieši Ļaudona Šķēle Žagars Čakste Valmiermuiža Ziemeļu",
    "Russian": "Москва Иванов Сергей Пётр Хлеб Молоко Новосибирск Объезд "
    "Щука Юлия Яблоко Эхо Цена Жук Чай Рыба Подъезд",
    "Ukrainian": "Київ Шевченко Львів Дніпро Юрій Олексій Чернігів Сумська "
    "Заєць Мова Вулиця Молоко Хліб Чай Яблуко Цукор",
    "Greek": "Αθήνα Παπαδόπουλος Θεσσαλονίκη Γεώργιος Ιωάννης Ψωμί Γάλα "
    "Χανιά Ξάνθη Πάτρα Κώστας Ελένη Ωδείο Ζάχαρη Ήλιος",
    "Hebrew": "ירושלים חיפה לחם חלב משה כהן שרה "
    "לוי תלאביב נתניה סוכר מים רחוב שוק דגים",
}  # fmt: skip
CODE_PAGES = (
    "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1257", "cp437", "cp737", "cp775", "cp850", "cp852", "cp857",
    "cp866", "iso8859-2", "iso8859-4", "iso8859-5", "iso8859-7", "iso8859-9", "iso8859-13", "iso8859-15", "koi8-r",
    "koi8-u", "mac-roman", "mac-latin2",
)  # fmt: skip
WESTERN = ("Spanish", "Portuguese", "French", "German", "Italian", "Danish", "Finnish", "Icelandic")


def lines(words: list[str], seed: int) -> str:
    generator = random.Random(seed)
    rows = [f"{n:05};{' '.join(generator.sample(words, 2))};{n},50" for n in range(len(words))]
    return "\r\n".join(["Code;Name;Price", *rows, ""])


def encoded(code_page: str, language: str) -> tuple[list[str], bytes] | None:
    """The words of a language that a code page has, and a file of them; None if it lacks the language."""
    words = [
        word for word in LANGUAGES[language].split() if word == word.encode(code_page, "replace").decode(code_page)
    ]
    foreign = [word for word in words if not word.isascii()]
    if len(foreign) < 5:
        return None
    return words, lines(words, 1).encode(code_page)


CASES = [(page, language) for page in CODE_PAGES for language in LANGUAGES if encoded(page, language)]


def names(path: Path, encoding: str | None = None) -> list[str]:
    table = open_table(path, ReadOptions(encoding=encoding))
    return [row.cells[1] for row in table.rows() if isinstance(row, Row)]


def test_the_table_covers_five_languages_for_each_code_page_on_average() -> None:
    assert len(CODE_PAGES) == 24
    assert len(CASES) >= 120


@pytest.mark.parametrize(("page", "language"), CASES)
def test_11_a_code_page_is_right_or_refused_with_the_right_candidate(tmp_path: Path, page: str, language: str) -> None:
    case = encoded(page, language)
    assert case is not None
    words, content = case
    path = tmp_path / "in.csv"
    path.write_bytes(content)
    expected = [line.split(";")[1] for line in lines(words, 1).splitlines()[1:]]
    assert names(path, page) == expected
    refusal = None
    try:
        assert names(path) == expected, "silently wrong"
    except UsageError as error:
        refusal = error
    assert refusal is None or any(word in refusal.hint for word in words if not word.isascii()), refusal


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("language", WESTERN)
def test_11_genuine_western_files_are_not_refused(tmp_path: Path, language: str, seed: int) -> None:
    generator = random.Random(f"{language}{seed}")
    words = LANGUAGES[language].split()
    extra = [word for other in WESTERN if other != "Icelandic" for word in LANGUAGES[other].split()]
    signs = [
        "Nº 3",
        "1ª",
        "25 °C",
        "«Cañón»",
        "L’Oréal",
        "Aujourd’hui",
        "10 €",
        "5×3",
        "½ kg",
        "Café – Bar",
        "NESCAFÉ®",
        "Mª José",
        "D´Ávila",
    ]
    chosen = generator.sample(words, generator.randint(3, len(words)))
    if language != "Icelandic":
        chosen += generator.sample(extra, 3)
    chosen += generator.sample(signs, 2)
    chosen += [word.upper() for word in generator.sample(words, 2)]
    path = tmp_path / "in.csv"
    path.write_bytes(lines(chosen, seed).encode("cp1252"))
    opened = open_table(path)
    assert opened.format.encoding == "cp1252"
    assert opened.format.is_encoding_assumed
    assert len(names(path)) == len(chosen)


def test_11_the_message_has_words_and_no_numbers_or_passwords(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes("Name;password\r\nDvořák;s3crét1\r\nPříbram;gehéim7\r\nČeněk Růžička;x9ř\r\n".encode("cp1250"))
    with pytest.raises(UsageError) as error:
        open_table(path)
    assert "cp1250" in str(error.value)
    assert "Dvořák, Příbram" in str(error.value)
    assert not any(secret in str(error.value) for secret in ("s3cr", "im7", "x9"))


def test_11_plausible_text_is_assumed_and_utf8_is_not(tmp_path: Path) -> None:
    for encoding, assumed in (("cp1252", True), ("utf-8", False), ("utf-16", False)):
        path = tmp_path / "in.csv"
        path.write_bytes("Code;Name\r\n1;Muñoz\r\n2;García\r\n".encode(encoding))
        assert open_table(path).format.is_encoding_assumed is assumed


ASCII_ROWS = [f"{name} {kind}" for name in ("Perno", "Tuerca", "Clavo", "Llave") for kind in ("inox", "zinc", "M8")]
ACCENTED_ROWS = [word for word in LANGUAGES["Spanish"].split() if not word.isascii()]
SHORT = {
    "Hungarian": ("cp1250", ("Hungarian",)),
    "Mac Roman": ("mac-roman", ("Spanish", "French", "Italian", "Danish")),
    "Latin-9": ("iso8859-15", ("Spanish", "French", "Finnish")),
}


@pytest.mark.parametrize("case", SHORT)
def test_a_short_file_in_another_code_page_is_refused_with_the_right_candidate(tmp_path: Path, case: str) -> None:
    page, languages = SHORT[case]
    price_of = {"Spanish": "10 €", "French": "€ 10", "Finnish": "€"}
    path = tmp_path / "in.csv"
    for language in languages:
        for word in LANGUAGES[language].split():
            price = [price_of[language]] if case == "Latin-9" else []
            content = lines([*ASCII_ROWS, word, *price], 1)
            path.write_bytes(content.encode(page, "replace"))
            if "?" in content.encode(page, "replace").decode("latin-1") or (word.isascii() and not price):
                continue
            refusal = None
            try:
                assert names(path) == [line.split(";")[1] for line in content.splitlines()[1:]], "silently wrong"
            except UsageError as error:
                refusal = error
            assert refusal is None or ("€" if price else word) in refusal.hint, word


@pytest.mark.parametrize(
    "text",
    [
        "30L×20A×10H",
        "rojo•verde",
        "Guðrún Þórðardóttir",
        "Light—yet",
        "L’Hospitalet",
        "5º piso",
        "Tõnu",
        "Dušan",
        "Août",
    ],
)
def test_one_unusual_name_does_not_refuse_the_other_rows(tmp_path: Path, text: str) -> None:
    path = tmp_path / "in.csv"
    rows = [*ACCENTED_ROWS, *ASCII_ROWS]
    path.write_bytes(lines([*rows, *rows, text], 1).encode("cp1252"))
    assert len(names(path)) == 2 * len(rows) + 1


@pytest.mark.parametrize("text", ["Light—yet", "rojo•verde"])
def test_cp1252_is_among_the_candidates(tmp_path: Path, text: str) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(lines([*ASCII_ROWS, text], 1).encode("cp1252"))
    with pytest.raises(UsageError) as error:
        open_table(path)
    assert re.search(f"cp1252[^:]*: .*{text}", error.value.hint)


def test_a_dimension_in_letters_is_read(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(lines([*ASCII_ROWS, "L×A×H"], 1).encode("cp1252"))
    assert "L×A×H" in " ".join(names(path))


def test_a_control_character_of_a_wrong_conversion_rejects_its_row(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    for char, encoding in (("\x93", "utf-8"), ("\x80", "utf-8"), ("\x9f", "latin-1")):
        path.write_bytes(f"code;name\r\n1;Muñoz\r\n2;a {char}b\r\n3;x\x85\r\n".encode(encoding))
        opened = open_table(path, ReadOptions(encoding=encoding))
        rows = list(opened.rows())
        assert [row.line for row in rows if isinstance(row, RejectedRow)] == [3]
        rejected: list[RejectedRow] = []
        assert sum(batch.num_rows for batch in opened.batches(on_reject=rejected.append)) == 2
        assert [row.code for row in rejected] == ["control"]
