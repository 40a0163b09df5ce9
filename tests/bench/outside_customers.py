"""Two lists of the same customers, an ordering platform's and an ERP's, with the truth about who is who.

Written by somebody who does not know the rules of the match. What is in it is what such lists have in real life: most
pairs differ in nothing or in one or two ways, a code of the ERP is known for about half of them, three customers in ten
are in one list only, and the worst cases are rare. `make(seed, size)` gives both lists and their truth, `FIRST` being
the population to work with. `HELD_OUT` has other countries, other shares and kinds that `FIRST` lacks: it is for one
measurement at the end, and worth nothing once somebody has looked at it.

Who is the same customer:

- one legal person with one tax number is one customer, whatever name, address, mail or phone it has now;
- another tax number is another customer: a second firm of the owner, a successor, a firm that a sole trader became;
- a branch is a customer of its own, with its own code and name, although it has the tax number of its firm;
- a code says nothing by itself: one that is used again, or was mistyped, belongs to somebody else;
- who is recorded twice in a list is the partner of both records; test and collective records are nobody's.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import count, product
from typing import Any, Literal

Json = dict[str, Any]
Pair = tuple[str, str]
"""Id on the platform and code in the ERP's file."""
Rng = random.Random
Side = Literal["platform", "erp"]


@dataclass(frozen=True)
class Truth:
    """What is so.

    Attributes:
        pairs: who is the same customer, with the kinds of dirt of both records.
        non_pairs: who looks like one customer and is not, with why.
        platform_kinds, erp_kinds: kinds of dirt of each record, by id and by code.
    """

    pairs: Mapping[Pair, frozenset[str]]
    non_pairs: Mapping[Pair, frozenset[str]]
    platform_kinds: Mapping[str, frozenset[str]]
    erp_kinds: Mapping[str, frozenset[str]]


# Tax numbers, with their check digits.


def _digits(rng: Rng, length: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(length))


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def _luhn(digits: str) -> str:
    """With the digit that makes the sum a multiple of ten."""
    doubled = [
        sum(divmod(int(digit) * (2 if n % 2 == 0 else 1), 10))
        for n, digit in enumerate(reversed(digits))
    ]
    return digits + str(-sum(doubled) % 10)


def _iso_7064(digits: str) -> str:
    """Modulus 11, 10."""
    carried = 10
    for digit in digits:
        carried = ((int(digit) + carried) % 10 or 10) * 2 % 11
    return digits + str((11 - carried) % 10)


_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"


def _es_person(rng: Rng, born: date, _given: str, _surname: str) -> str:
    if rng.random() < 0.1:  # a foreigner
        first, digits = rng.choice("XY"), _digits(rng, 7)
        return f"{first}{digits}{_DNI[int(str('XY'.index(first)) + digits) % 23]}"
    number = rng.randrange(1_000_000, 79_999_999) if rng.random() < 0.9 else rng.randrange(999_999)
    return f"{number:08}{_DNI[number % 23]}"


def _es_firm(rng: Rng) -> str:
    digits = f"{rng.randrange(1, 53):02}{_digits(rng, 5)}"
    doubled = sum(sum(divmod(int(digit) * 2, 10)) for digit in digits[::2])
    return f"{rng.choice('BBBBA')}{digits}{-(doubled + sum(map(int, digits[1::2]))) % 10}"


def _pt(rng: Rng, first: str) -> str:
    digits = rng.choice(first) + _digits(rng, 7)
    check = 11 - _weighted(digits, range(9, 1, -1)) % 11
    return digits + str(check if check < 10 else 0)


def _fr_firm(rng: Rng) -> str:
    return _luhn(rng.choice("34589") + _digits(rng, 7))


def _fr_person(rng: Rng, born: date, _given: str, _surname: str) -> str:
    digits = rng.choice("0123") + _digits(rng, 9)
    return f"{digits}{int(digits) % 511:03}"


def _de_firm(rng: Rng) -> str:
    return _iso_7064(rng.choice("123") + _digits(rng, 7))


def _de_person(rng: Rng, born: date, _given: str, _surname: str) -> str:
    """One digit is there twice, and one is not."""
    digits = rng.sample("123456789", 9)
    digits[rng.randrange(3, 9)] = "0"
    return _iso_7064("".join([*digits, digits[0]]))


_CF_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (ord(letter) - ord("a") for letter in "bafhjnprtvbafhjnprtvcesuldgimoqkwzyx"),
        strict=True,
    )
)


def _cf_letters(name: str, is_given: bool) -> str:
    letters = [letter for letter in plain(name).upper() if letter.isalpha()]
    consonants = [letter for letter in letters if letter not in "AEIOU"]
    if is_given and len(consonants) > 3:
        consonants = [consonants[0], *consonants[2:]]
    vowels = [letter for letter in letters if letter in "AEIOU"]
    return "".join([*consonants, *vowels, "XXX"])[:3]


def _it_person(rng: Rng, born: date, given: str, surname: str) -> str:
    day = born.day + (40 if given.endswith("a") else 0)
    place = rng.choice(("F205", "H501", "L219", "F839", "A944", "D612", "G273"))
    text = f"{_cf_letters(surname, False)}{_cf_letters(given, True)}{born:%y}"
    text += f"{'ABCDEHLMPRST'[born.month - 1]}{day:02}{place}"
    even = sum(int(sign) if sign.isdigit() else ord(sign) - 65 for sign in text[1::2])
    return text + chr(65 + (sum(_CF_ODD[sign] for sign in text[::2]) + even) % 26)


def _it_firm(rng: Rng) -> str:
    return _luhn(f"0{_digits(rng, 6)}{rng.randrange(1, 101):03}")


def _pl_firm(rng: Rng) -> str:
    while True:
        digits = f"{rng.randrange(101, 999)}{_digits(rng, 6)}"
        if (check := _weighted(digits, (6, 5, 7, 2, 3, 4, 5, 6, 7)) % 11) < 10:
            return digits + str(check)


def _pl_person(rng: Rng, born: date, _given: str, _surname: str) -> str:
    digits = (
        f"{born:%y}{born.month + (20 if born.year >= 2000 else 0):02}{born:%d}{_digits(rng, 4)}"
    )
    return digits + str(-_weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10)


def _gr(rng: Rng, first: str) -> str:
    digits = rng.choice(first) + _digits(rng, 7)
    return digits + str(_weighted(digits, [2**n for n in range(8, 0, -1)]) % 11 % 10)


def _bg_firm(rng: Rng) -> str:
    digits = rng.choice("12") + _digits(rng, 7)
    check = _weighted(digits, range(1, 9)) % 11
    if check == 10:
        check = _weighted(digits, range(3, 11)) % 11 % 10
    return digits + str(check)


def _bg_person(rng: Rng, born: date, _given: str, _surname: str) -> str:
    digits = (
        f"{born:%y}{born.month + (40 if born.year >= 2000 else 0):02}{born:%d}{_digits(rng, 3)}"
    )
    return digits + str(_weighted(digits, (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10)


def _br_person(rng: Rng, born: date, _given: str, _surname: str) -> str:
    digits = _digits(rng, 9)
    for top in (10, 11):
        digits += str(_weighted(digits, range(top, 1, -1)) * 10 % 11 % 10)
    return digits


def _br_firm(rng: Rng) -> str:
    digits = f"{_digits(rng, 8)}0001"
    weights = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    for top in (1, 0):
        rest = _weighted(digits, weights[top:]) % 11
        digits += str(0 if rest < 2 else 11 - rest)
    return digits


def _gb_firm(rng: Rng) -> str:
    digits = rng.choice("123789") + _digits(rng, 6)
    return f"{digits}{97 - _weighted(digits, range(8, 1, -1)) % 97:02}"


# Alphabets.

_GREEK_PAIRS = {"ου": "ou", "αυ": "av", "ευ": "ef", "γγ": "ng", "γκ": "gk", "μπ": "mp", "ντ": "nt"}
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρστυφχψως",
        ["a", "v", "g", "d", "e", "z", "i", "th", *"iklmnxoprstyf", "ch", "ps", "o", "s"],
        strict=True,
    )
)
_CYRILLIC = dict(
    zip(
        "абвгдежзийклмнопрстуфхцчшщъьюя",
        [*"abvgde", "zh", *"ziyklmnoprstufh", "ts", "ch", "sh", "sht", "a", "y", "yu", "ya"],
        strict=True,
    )
)
_GREEK_HABITS = {"η": "h", "χ": "h", "υ": "u", "φ": "ph", "ξ": "ks", "β": "b", "ω": "w"}
_CYRILLIC_HABITS = {"ю": "iu", "я": "ia", "ъ": "u", "х": "kh", "ж": "j", "ц": "c", "й": "i"}
_WESTERN = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ł": "l", "ø": "oe"}


def plain(text: str) -> str:
    """Without accents, in the Latin alphabet."""
    return without_accents(latin(text))


def without_accents(text: str) -> str:
    """The letters of the same alphabet without marks."""
    text = text.translate(str.maketrans("łŁß", "lLs"))
    if any(letter.lower() in _CYRILLIC for letter in text):
        return text
    marks = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize(
        "NFC", "".join(one for one in marks if not unicodedata.combining(one))
    )


def latin(text: str, habits: Rng | None = None) -> str:
    """Greek and Cyrillic in Latin letters: as in passports, or in somebody's own way."""
    if not any(ord(letter) > 0x36F and letter.isalpha() for letter in text):
        return text
    bare = without_accents(text)
    is_upper = bare.isupper()
    letters = _GREEK | _CYRILLIC
    if habits:
        own = _GREEK_HABITS | _CYRILLIC_HABITS
        letters |= {one: own[one] for one in habits.sample(sorted(own), 4)}
    lower, written, at = bare.lower(), "", 0
    while at < len(lower):
        two = _GREEK_PAIRS.get(lower[at : at + 2])
        new = two or letters.get(lower[at], lower[at])
        written += new.capitalize() if bare[at].isupper() else new
        at += 2 if two else 1
    return written.upper() if is_upper else written


def in_ascii(text: str) -> str:
    """As Germans and others write their letters where there are no accents: Müller, Mueller."""
    for letter, written in _WESTERN.items():
        upper = written.upper() if text.isupper() else written.capitalize()
        text = text.replace(letter.upper(), upper).replace(letter, written)
    return without_accents(text)


# Countries.


@dataclass(frozen=True)
class Country:
    """How customers of a country are called, taxed, phoned and housed.

    `prefix` comes before its tax numbers abroad, `words` are names of the number; `forms` has the spellings of each
    legal form. `mobile` and `landline` begin a number, `trunk` before it at home. Names come the most common first;
    `one/other` is the form for men and the one for women. `{}` in `streets` is a name.
    """

    code: str
    dial: str
    trunk: str
    mobile: str
    landline: str
    rest: int
    prefix: str
    words: str
    tld: str
    firm_tax: Callable[[Rng], str]
    person_tax: Callable[[Rng, date, str, str], str] | None
    person_has_tax: float
    surnames: str
    men: str
    women: str
    nicknames: str
    sectors: str
    marks: str
    forms: Mapping[str, tuple[str, ...]]
    streets: str
    cities: str
    providers: str
    titles: str
    has_two_surnames: bool = False
    takes_husbands_name: float = 0.0


COUNTRIES = {
    country.code: country
    for country in (
        Country(
            "ES", "34", "", "6 6 6 6 71 72", "911 913 915 932 934 963 954 952 944 976 985 986",
            9, "ES", "NIF CIF N.I.F.", "es",
            _es_firm, _es_person, 0.85,
            "García Rodríguez González Fernández López Martínez Sánchez Pérez Gómez Martín Jiménez "
            "Hernández Ruiz Díaz Moreno Muñoz Álvarez Romero Gutiérrez Alonso Navarro Torres Ramos "
            "Domínguez Vázquez Gil Serrano Ramírez Blanco Molina Morales Suárez Ortega Delgado Castro "
            "Ortiz Rubio Marín Sanz Núñez Iglesias Medina Garrido Cortés Castillo Lozano Guerrero Cano "
            "Prieto Méndez Calvo Cruz Gallego Vidal Herrera Peña Cabrera Campos Vega Fuentes Carrasco "
            "Reyes Caballero Nieto Aguilar Pascual Santana Herrero Lorenzo Montero Ibáñez Puig Ferrer "
            "Etxebarria Goikoetxea Castells Bosch Quiroga Otero Zabala Urrutia",
            "Antonio José Manuel Francisco Juan David Javier Daniel Jesús Carlos Miguel Rafael Pedro "
            "Ángel Pablo Sergio Fernando Luis Jorge Alberto Álvaro Ignacio Enrique Ramón Vicente Jordi",
            "María Carmen Ana Isabel Laura Dolores Cristina Marta Lucía Pilar Mercedes Rosario Elena "
            "Concepción Raquel Montserrat Beatriz Nuria Silvia Rocío Teresa Inmaculada Begoña Sofía",
            "Francisco=Paco José=Pepe Manuel=Manolo Antonio=Toni Ignacio=Nacho Enrique=Quique "
            "Rafael=Rafa Javier=Javi Jesús=Chus Dolores=Lola Concepción=Concha Rosario=Charo "
            "Mercedes=Merche Montserrat=Montse Isabel=Isa Cristina=Cris Inmaculada=Inma",
            "Construcciones Panadería Talleres Distribuciones Farmacia Restaurante Bar Ferretería "
            "Transportes Librería Frutas Carnicería Hostelería Muebles Floristería Electricidad",
            "del_Sur Mediterráneo La_Plaza El_Molino Levante Norte La_Esquina Costa_Verde Sol_y_Mar "
            "Alameda El_Puente San_Roque Las_Torres Nuevo_Siglo Ibérica",
            {
                "S.L.": ("S.L.", "SL", "S. L.", "Sociedad Limitada", "S.L.U."),
                "S.A.": ("S.A.", "SA", "Sociedad Anónima"),
                "C.B.": ("C.B.", "CB", "Comunidad de Bienes"),
            },
            "Calle {} |C/ {};Avenida {} |Avda. {};Plaza {} |Pza. {};Paseo {} |Pº {}",
            "Madrid:280 Barcelona:080 Valencia:460 Sevilla:410 Zaragoza:500 Málaga:290 Bilbao:480 "
            "Córdoba:140 Gijón:332 Vigo:362",
            "gmail.com gmail.com gmail.com hotmail.com hotmail.es yahoo.es telefonica.net outlook.es",
            "D. Dña. Sr. Sra.", has_two_surnames=True,
        ),
        Country(
            "PT", "351", "", "91 92 93 96", "21 22 239 253", 9, "PT", "NIF Contribuinte NIPC", "pt",
            lambda rng: _pt(rng, "5"), lambda rng, *_: _pt(rng, "12"), 0.75,
            "Silva Santos Ferreira Pereira Oliveira Costa Rodrigues Martins Jesus Sousa Fernandes "
            "Gonçalves Gomes Lopes Marques Alves Almeida Ribeiro Pinto Carvalho Teixeira Moreira Correia "
            "Mendes Nunes Soares Vieira Monteiro Cardoso Rocha Neves Coelho Cunha Simões Magalhães",
            "José João António Manuel Carlos Pedro Paulo Luís Rui Nuno Tiago Miguel Francisco Ricardo "
            "Jorge Fernando Joaquim Duarte Gonçalo",
            "Maria Ana Isabel Teresa Catarina Joana Inês Sofia Margarida Mariana Fernanda Conceição "
            "Cristina Sandra Patrícia Beatriz",
            "José=Zé António=Tó Francisco=Chico Joaquim=Quim Fernanda=Nanda Margarida=Guida "
            "Conceição=São Teresa=Teté",
            "Padaria Construções Transportes Restaurante Farmácia Talho Oficina Distribuição Café "
            "Mercearia Móveis Livraria",
            "do_Norte Atlântico Central Nova_Era Boa_Vista do_Rossio São_Bento Lusitana da_Praia "
            "Ribeirinha do_Minho",
            {
                "Lda.": ("Lda.", "Lda", "LDA", "Limitada", "Unipessoal Lda."),
                "S.A.": ("S.A.", "SA", "Sociedade Anónima"),
            },
            "Rua {} |R. {};Avenida {} |Av. {};Largo {} |Lg. {}",
            "Lisboa:1200 Porto:4000 Braga:4700 Coimbra:3000 Faro:8000 Setúbal:2900",
            "gmail.com gmail.com sapo.pt hotmail.com iol.pt", "Sr. Sra. Dr. Eng.",
            has_two_surnames=True,
        ),
        Country(
            "FR", "33", "0", "61 62 63 66 68 76 77 78", "14 15 23 24 38 44 47 55 56", 9, "FR", "SIREN SIRET TVA", "fr",
            _fr_firm, _fr_person, 0.1,
            "Martin Bernard Dubois Thomas Robert Richard Petit Durand Leroy Moreau Simon Laurent Lefèvre "
            "Michel Garcia David Bertrand Roux Vincent Fournier Morel Girard André Mercier Dupont Lambert "
            "Bonnet François Martínez Legrand Garnier Faure Rousseau Blanc Guérin Boyer Chevalier Hébert",
            "Jean Michel Philippe Nicolas Pierre Alain Christophe Patrick Frédéric Laurent Stéphane "
            "Thomas Julien Éric Jean-Pierre François Sébastien Hervé Gérard Benoît",
            "Marie Nathalie Isabelle Sylvie Catherine Françoise Valérie Sandrine Céline Hélène Sophie "
            "Émilie Chloé Aurélie Jacqueline Monique Anne-Marie Élodie",
            "Frédéric=Fred Stéphane=Steph Christophe=Chris Benoît=Ben Isabelle=Isa Nathalie=Nath "
            "Jacqueline=Jacotte Philippe=Phil Sébastien=Seb",
            "Boulangerie Menuiserie Garage Pharmacie Transports Librairie Restaurant Boucherie Plomberie "
            "Électricité Maçonnerie Fleuriste",
            "du_Centre de_la_Gare Saint-Michel des_Halles Bellevue de_l'Étoile du_Château Provence "
            "du_Marché Océane",
            {
                "SARL": ("SARL", "S.A.R.L.", "Sarl", "Société à responsabilité limitée"),
                "SAS": ("SAS", "S.A.S.", "SASU"),
                "EURL": ("EURL", "E.U.R.L."),
            },
            "{n} rue {} |{n} r. {};{n} avenue {} |{n} av. {};{n} boulevard {} |{n} bd {}",
            "Paris:750 Lyon:690 Marseille:130 Toulouse:310 Bordeaux:330 Lille:590 Nantes:440",
            "gmail.com orange.fr wanadoo.fr free.fr laposte.net hotmail.fr", "M. Mme",
            takes_husbands_name=0.15,
        ),
        Country(
            "DE", "49", "0", "1511 1522 1573 1590 176", "30 40 89 221 711 351", 11, "DE",
            "USt-IdNr. UStID", "de", _de_firm, _de_person, 0.06,
            "Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer Koch Bauer "
            "Richter Klein Wolf Schröder Neumann Schwarz Zimmermann Braun Krüger Hofmann Hartmann Lange "
            "Schmitt Werner Krause Meier Lehmann Köhler Herrmann König Walter Mayer Huber Kaiser Fuchs "
            "Peters Möller Weiß Jung Hahn Vogel Friedrich Günther Yılmaz Öztürk",
            "Peter Michael Thomas Andreas Wolfgang Klaus Jürgen Stefan Christian Uwe Frank Markus Jörg "
            "Günter Björn Sebastian Hans Alexander Matthias",
            "Maria Ursula Monika Petra Elisabeth Sabine Renate Helga Karin Brigitte Susanne Käthe "
            "Ute Katharina Bärbel Anja Stefanie Claudia",
            "Alexander=Alex Matthias=Matze Elisabeth=Elli Katharina=Kathi Susanne=Susi Sebastian=Basti "
            "Stefanie=Steffi Wolfgang=Wolfi Hans=Hansi",
            "Bäckerei Tischlerei Autohaus Apotheke Elektro Gasthaus Metzgerei Spedition Buchhandlung "
            "Gärtnerei Malerbetrieb Getränke",
            "am_Markt Süd Nord Hanse Zur_Post Rheinland am_Dom Löwen Grün Weser Alpenblick",
            {
                "GmbH": ("GmbH", "G.m.b.H.", "Gesellschaft mbH", "GMBH"),
                "GmbH & Co. KG": ("GmbH & Co. KG", "GmbH & Co KG", "GmbH und Co. KG", "GmbH&Co.KG"),
                "e.K.": ("e.K.", "eK", "e. Kfm."),
                "UG": ("UG", "UG (haftungsbeschränkt)"),
            },
            "{}straße |{}str.;{}weg |{}weg;{}platz |{}pl.;Am {} |Am {}",
            "Berlin:10 Hamburg:20 München:80 Köln:50 Stuttgart:70 Dresden:01 Nürnberg:90",
            "gmx.de web.de t-online.de gmail.com gmail.com freenet.de", "Herr Frau Dr.",
            takes_husbands_name=0.25,
        ),
        Country(
            "IT", "39", "", "320 328 333 338 347 349", "02 06 011 081 051", 10, "IT",
            "P.IVA PIVA C.F.", "it", _it_firm, _it_person, 0.7,
            "Rossi Russo Ferrari Esposito Bianchi Romano Colombo Ricci Marino Greco Bruno Gallo Conti "
            "D'Angelo Mancini Costa Giordano Rizzo Lombardi Moretti Barbieri Fontana Santoro Mariani "
            "Rinaldi Caruso Ferrara Galli Martini Leone Longo Gentile Martinelli Vitale De_Luca Dell'Acqua "
            "Di_Stefano Nicolò Forlì",
            "Giuseppe Antonio Giovanni Mario Luigi Francesco Vincenzo Salvatore Roberto Marco Paolo "
            "Alessandro Andrea Stefano Niccolò Domenico Gianluca Michele",
            "Maria Anna Giuseppina Rosa Angela Giovanna Teresa Lucia Francesca Giulia Chiara Federica "
            "Alessandra Antonella Valentina Paola",
            "Giuseppe=Beppe Francesco=Franco Salvatore=Totò Domenico=Mimmo Alessandro=Sandro Vincenzo=Enzo "
            "Giuseppina=Pina Giovanni=Gianni Francesca=Franca",
            "Panificio Autofficina Trattoria Farmacia Edilizia Trasporti Ferramenta Macelleria Libreria "
            "Pasticceria Arredamenti Vivaio",
            "del_Corso Bella_Vista La_Torre San_Marco Adriatica del_Borgo Il_Mulino Nuova_Padana Due_Mari "
            "del_Golfo",
            {
                "S.r.l.": ("S.r.l.", "SRL", "Srl", "S.R.L.", "Società a responsabilità limitata"),
                "S.n.c.": ("S.n.c.", "SNC", "snc"),
                "S.p.A.": ("S.p.A.", "SPA", "Spa"),
            },
            "Via {} |V. {};Viale {} |V.le {};Piazza {} |P.zza {};Corso {} |C.so {}",
            "Milano:201 Roma:001 Torino:101 Napoli:801 Bologna:401 Firenze:501 Palermo:901",
            "gmail.com libero.it libero.it virgilio.it alice.it tiscali.it hotmail.it", "Sig. Sig.ra Dott.",
        ),
        Country(
            "PL", "48", "", "50 51 60 66 69 79", "22 12 61 71 58", 9, "PL", "NIP", "pl",
            _pl_firm, _pl_person, 0.2,
            "Nowak Kowalski/Kowalska Wiśniewski/Wiśniewska Wójcik Kowalczyk Kamiński/Kamińska "
            "Lewandowski/Lewandowska Zieliński/Zielińska Szymański/Szymańska Woźniak Dąbrowski/Dąbrowska "
            "Kozłowski/Kozłowska Mazur Jankowski/Jankowska Kwiatkowski/Kwiatkowska Krawczyk Piotrowski/Piotrowska "
            "Grabowski/Grabowska Pawłowski/Pawłowska Michalski/Michalska Król Wieczorek Jabłoński/Jabłońska "
            "Wróbel Stępień Górski/Górska Sikora Bąk Żak",
            "Piotr Krzysztof Andrzej Tomasz Jan Paweł Michał Marcin Stanisław Jakub Adam Łukasz Grzegorz "
            "Wojciech Zbigniew Sławomir Mateusz",
            "Anna Maria Katarzyna Małgorzata Agnieszka Barbara Ewa Krystyna Elżbieta Magdalena Joanna "
            "Aleksandra Zofia Grażyna Bożena Paulina",
            "Katarzyna=Kasia Małgorzata=Gosia Agnieszka=Aga Magdalena=Magda Aleksandra=Ola Elżbieta=Ela "
            "Krzysztof=Krzysiek Tomasz=Tomek Jakub=Kuba Michał=Misiek Joanna=Asia Grzegorz=Grzesiek",
            "Piekarnia Warsztat Hurtownia Apteka Budownictwo Transport Księgarnia Sklep Restauracja "
            "Stolarnia Kwiaciarnia Zakład",
            "pod_Lipą Centrum Bałtyk Wisła Nowa Zdrowie Mazowsze Złota Tatry Promień",
            {
                "Sp. z o.o.": (
                    "Sp. z o.o.", "sp.z o.o.", "SP. Z O. O.", "Spółka z o.o.",
                    "Spółka z ograniczoną odpowiedzialnością",
                ),
                "s.c.": ("s.c.", "S.C.", "spółka cywilna"),
                "S.A.": ("S.A.", "SA"),
            },
            "ul. {} |{};al. {} |Aleja {};pl. {} |Plac {}",
            "Warszawa:00 Kraków:30 Łódź:90 Wrocław:50 Poznań:60 Gdańsk:80",
            "wp.pl onet.pl o2.pl interia.pl gmail.com gmail.com", "Pan Pani", takes_husbands_name=0.25,
        ),
        Country(
            "GR", "30", "", "690 693 694 697 698", "210 2310 2610 2810", 10, "EL", "ΑΦΜ Α.Φ.Μ. AFM",
            "gr", lambda rng: _gr(rng, "089"), lambda rng, *_: _gr(rng, "01"), 0.7,
            "Παπαδόπουλος/Παπαδοπούλου Παππάς/Παππά Καραγιάννης/Καραγιάννη Βλάχος/Βλάχου "
            "Ιωάννου Οικονόμου Παπαγεωργίου Μακρής/Μακρή Κωνσταντινίδης/Κωνσταντινίδου Δημητρίου "
            "Αντωνίου Γεωργίου Νικολάου Χατζής/Χατζή Αθανασίου Αλεξίου Παπανικολάου Σωτηρίου "
            "Τσακίρης/Τσακίρη Θεοδώρου Μιχαηλίδης/Μιχαηλίδου Ψαρράς/Ψαρρά Ξενάκης/Ξενάκη",
            "Γιώργος Δημήτρης Κώστας Γιάννης Νίκος Παναγιώτης Χρήστος Βασίλης Μιχάλης Θανάσης Στέλιος "
            "Ευάγγελος Σπύρος",
            "Μαρία Ελένη Κατερίνα Βασιλική Σοφία Αγγελική Γεωργία Δήμητρα Ευαγγελία Ιωάννα Χριστίνα Φωτεινή",
            "Γιώργος=Γεώργιος Δημήτρης=Δημήτριος Κώστας=Κωνσταντίνος Γιάννης=Ιωάννης Νίκος=Νικόλαος "
            "Βασίλης=Βασίλειος Μιχάλης=Μιχαήλ Ευάγγελος=Βαγγέλης Κατερίνα=Αικατερίνη Παναγιώτης=Πάνος "
            "Βασιλική=Βάσω Δήμητρα=Δημητρούλα Ευαγγελία=Εύα",
            "Αρτοποιείο Φαρμακείο Ταβέρνα Συνεργείο Μεταφορές Βιβλιοπωλείο Κρεοπωλείο Έπιπλα Τεχνική "
            "Ξενοδοχείο Εμπορική",
            "Αιγαίο Ακρόπολη Ήλιος Ολυμπία Το_Λιμάνι Βορράς Ατλαντίς Αθηνά Κρήτη Νέα_Εποχή",
            {
                "Α.Ε.": ("Α.Ε.", "ΑΕ", "Ανώνυμη Εταιρεία", "A.E."),
                "Ε.Π.Ε.": ("Ε.Π.Ε.", "ΕΠΕ", "E.P.E."),
                "Ι.Κ.Ε.": ("Ι.Κ.Ε.", "ΙΚΕ", "IKE"),
                "Ο.Ε.": ("Ο.Ε.", "ΟΕ", "OE"),
            },
            "{} |{};Οδός {} |Οδ. {};Λεωφόρος {} |Λεωφ. {}",
            "Αθήνα:105 Θεσσαλονίκη:546 Πάτρα:262 Ηράκλειο:712 Λάρισα:412",
            "gmail.com yahoo.gr otenet.gr hotmail.com", "Κος Κα",
        ),
        Country(
            "BG", "359", "0", "87 88 89", "2 32 52", 9, "BG", "ЕИК ЕГН Булстат EIK", "bg",
            _bg_firm, _bg_person, 0.35,
            "Иванов/Иванова Георгиев/Георгиева Димитров/Димитрова Петров/Петрова Николов/Николова "
            "Христов/Христова Стоянов/Стоянова Тодоров/Тодорова Ангелов/Ангелова Янков/Янкова "
            "Василев/Василева Атанасов/Атанасова Йорданов/Йорданова Колев/Колева Желев/Желева "
            "Ганчев/Ганчева Цветков/Цветкова Щерев/Щерева",
            "Георги Иван Димитър Николай Петър Христо Александър Стефан Йордан Васил Тодор Юлиан Красимир",
            "Мария Иванка Елена Юлия Пенка Маргарита Виолетка Радка Цветелина Десислава Йорданка Галя "
            "Надежда",
            "Димитър=Митко Александър=Сашо Георги=Жоро Иван=Ваньо Николай=Ники Маргарита=Маги "
            "Цветелина=Цвети Десислава=Деси Йорданка=Данка Христо=Ицо Мария=Мими",
            "Пекарна Аптека Ресторант Строител Транспорт Книжарница Сервиз Мебели Хотел Търговия",
            "Балкан Витоша Изгрев Тракия Черно_море Родопи Явор Дунав Орхидея Надежда",
            {
                "ЕООД": ("ЕООД", "EOOD", "Еоод"),
                "ООД": ("ООД", "OOD", "О.О.Д."),
                "АД": ("АД", "AD"),
            },
            "ул. {} |{};бул. {} |бул.{}",
            "София:1000 Пловдив:4000 Варна:9000 Бургас:8000",
            "abv.bg abv.bg gmail.com mail.bg", "г-н г-жа", takes_husbands_name=0.2,
        ),
        Country(
            "BR", "55", "", "11 9 21 9 31 9 41 9", "11 3 21 2 31 3", 11, "", "CNPJ CPF", "com.br",
            _br_firm, _br_person, 0.9,
            "Silva Santos Oliveira Souza Rodrigues Ferreira Alves Pereira Lima Gomes Costa Ribeiro Martins "
            "Carvalho Almeida Lopes Soares Fernandes Vieira Barbosa Rocha Dias Nascimento Andrade Moreira "
            "Nunes Marques Machado Mendes Freitas Cardoso Ramos Gonçalves Teixeira Araújo Conceição",
            "José João Antônio Francisco Carlos Paulo Pedro Lucas Luiz Marcos Gabriel Rafael Daniel Marcelo "
            "Bruno Eduardo Felipe Rodrigo",
            "Maria Ana Francisca Antônia Adriana Juliana Márcia Fernanda Patrícia Aline Sandra Camila "
            "Amanda Bruna Jéssica Letícia Júlia Luciana Vanessa",
            "José=Zé Francisco=Chico Eduardo=Edu Rafael=Rafa Fernanda=Nanda Juliana=Ju Luciana=Lu "
            "Patrícia=Paty Antônio=Toninho",
            "Padaria Mercadinho Auto_Peças Farmácia Lanchonete Construtora Papelaria Açougue Transportadora "
            "Móveis Confecções",
            "Boa_Esperança do_Povo São_José Central Brasil Ipiranga Nova_Aliança Bom_Jesus Sol_Nascente",
            {
                "Ltda.": ("Ltda.", "LTDA", "Ltda", "Limitada", "Ltda - ME"),
                "ME": ("ME", "M.E.", "Microempresa"),
                "S.A.": ("S.A.", "S/A", "SA"),
            },
            "Rua {} |R. {};Avenida {} |Av. {};Travessa {} |Tv. {}",
            "São_Paulo:01310 Rio_de_Janeiro:20040 Belo_Horizonte:30130 Curitiba:80020",
            "gmail.com gmail.com hotmail.com uol.com.br bol.com.br terra.com.br", "Sr. Sra. Dr.",
            has_two_surnames=True, takes_husbands_name=0.1,
        ),
        Country(
            "GB", "44", "0", "7400 7711 7722 7833 7855", "207 161 121 131", 10, "GB", "VAT VRN", "co.uk",
            _gb_firm, None, 0.0,
            "Smith Jones Taylor Brown Williams Wilson Johnson Davies Patel Robinson Wright Thompson Evans "
            "Walker White Roberts Green Hall Wood Jackson Clarke Khan O'Brien MacDonald Hughes Edwards "
            "Singh Lewis Begum Murphy Kelly Shaw Fraser O'Neill",
            "David John Michael James Robert Paul Andrew William Richard Christopher Stephen Anthony Thomas "
            "Matthew Mohammed Alexander",
            "Susan Margaret Sarah Elizabeth Jennifer Patricia Victoria Katherine Rebecca Christine Deborah "
            "Samantha Zoë Siân",
            "Robert=Bob William=Bill Michael=Mike Richard=Rick Andrew=Andy Christopher=Chris Stephen=Steve "
            "Anthony=Tony Elizabeth=Liz Margaret=Maggie Jennifer=Jenny Patricia=Pat Victoria=Vicky "
            "Katherine=Kate Rebecca=Becky Deborah=Debbie James=Jim Matthew=Matt Thomas=Tom",
            "Bakery Garage Pharmacy Builders Plumbing Books Catering Butchers Flowers Joinery Logistics "
            "Electrical",
            "on_the_Green Riverside Northern Crown The_Corner Albion Highland Castle Harbour Victoria",
            {
                "Ltd": ("Ltd", "Ltd.", "Limited", "LTD"),
                "LLP": ("LLP", "L.L.P."),
                "plc": ("plc", "PLC", "P.L.C."),
            },
            "{n} {} Road |{n} {} Rd;{n} {} Street |{n} {} St;{n} {} Avenue |{n} {} Ave",
            "London:EC1A_ Manchester:M1_ Birmingham:B2_ Edinburgh:EH1_ Leeds:LS1_",
            "gmail.com gmail.com btinternet.com hotmail.co.uk outlook.com yahoo.co.uk", "Mr Mrs Ms Dr",
            takes_husbands_name=0.25,
        ),
    )
}  # fmt: skip


# Customers as they are.


@dataclass(eq=False)
class Customer:
    """One customer as it is; of a firm, the names are those of whom one talks to. `phone` is without trunk and dial."""

    country: Country
    is_firm: bool
    given: str
    surnames: tuple[str, ...]
    is_woman: bool
    born: date
    trade: str
    form: str
    tax: str
    mobile: str
    landline: str
    email: str
    other_email: str
    street: tuple[str, str]
    city: str
    branch: str = ""
    traits: tuple[str, ...] = ()

    @property
    def person(self) -> str:
        return f"{self.given} {' '.join(self.surnames)}"

    @property
    def legal(self) -> str:
        return f"{self.trade} {self.form}" if self.is_firm else self.person


@dataclass(eq=False)
class Record:
    """What a list says of a customer; `mail` is that of its document, on the platform only."""

    side: Side
    of: Customer
    number: int
    first: str = ""
    last: str = ""
    fiscal: str = ""
    tax: str = ""
    second: tuple[str, str] | None = None
    email: str = ""
    mail: str = ""
    phone: str = ""
    address: str = ""
    code: str = ""
    login: str = ""
    kinds: set[str] = field(default_factory=set)

    NAMES = ("first", "last", "fiscal", "address")

    def rename(self, change: Callable[[str], str]) -> bool:
        """Changes all names; whether one is another now."""
        before = [getattr(self, name) for name in self.NAMES]
        for name in self.NAMES:
            setattr(self, name, change(getattr(self, name)))
        return before != [getattr(self, name) for name in self.NAMES]


def _common(rng: Rng, words: str) -> str:
    """One of these, the first ones far more often."""
    options = words.split()
    at = int(len(options) * rng.random() ** 1.9)
    return options[at].replace("_", " ")


def _word(rng: Rng, words: str) -> str:
    return rng.choice(words.split()).replace("_", " ")


def _phone(rng: Rng, country: Country, begins: str) -> str:
    first = rng.choice(begins.split())
    if country.code == "BR":
        pieces = begins.split()
        at = rng.randrange(0, len(pieces), 2)
        first = pieces[at] + pieces[at + 1]
        return first + _digits(rng, (11 if pieces[at + 1] == "9" else 10) - len(first))
    shorter = country.code in ("BG", "DE") and begins == country.landline
    return first + _digits(rng, country.rest - shorter - len(first))


def _surname(rng: Rng, country: Country, is_woman: bool) -> str:
    return _common(rng, country.surnames).split("/")[-1 if is_woman else 0]


def slug(text: str) -> str:
    return "".join(
        sign for sign in in_ascii(latin(text)).lower() if sign.isascii() and sign.isalnum()
    )


def _private_mail(rng: Rng, country: Country, given: str, surname: str, born: date) -> str:
    first, last = slug(given), slug(surname)
    local = rng.choice(
        (
            f"{first}.{last}", f"{first}{last}", f"{first[0]}{last}", f"{last}.{first}",
            f"{first}{last}{born:%y}", f"{first}{rng.randrange(1, 999)}", f"{last}{born:%Y}",
            f"{first}_{last}", f"{first[0]}.{last}{rng.randrange(1, 99)}",
        )
    )  # fmt: skip
    if rng.random() < 0.55:
        local += str(rng.randrange(2, 9999))
    return f"{local}@{_word(rng, country.providers)}"


_DESKS = "info info info admin contacto office compras pedidos administracion hello"


def _firm_mail(rng: Rng, customer: Customer) -> str:
    country = customer.country
    if rng.random() < 0.3:
        return f"{slug(customer.trade)[:18]}{rng.choice(['', rng.randrange(1, 99)])}@{_word(rng, country.providers)}"
    domain = f"{slug(customer.trade)[:24]}.{country.tld if rng.random() < 0.7 else 'com'}"
    who = slug(customer.given) if rng.random() < 0.4 else _word(rng, _DESKS)
    return f"{who}@{domain}"


def _street(rng: Rng, country: Country) -> tuple[str, str]:
    """Long and short."""
    name = _common(rng, country.surnames).split("/")[0]
    number = str(rng.randrange(1, 180))
    long, short = rng.choice(country.streets.split(";")).split("|")
    if "{n}" in long:
        return long.replace("{n}", number).replace("{}", name).strip(), short.replace(
            "{n}", number
        ).replace("{}", name)
    joined = ", " if country.code in ("ES", "PT", "BR", "IT") else " "
    return (
        f"{long.replace('{}', name).strip()}{joined}{number}",
        f"{short.replace('{}', name)} {number}",
    )


def _city(rng: Rng, country: Country) -> str:
    city, _, zipped = _common(rng, country.cities).replace(" ", "_").rpartition(":")
    zipped = zipped.replace("_", " ")
    if country.code == "GB":
        return (
            f"{city}, {zipped}{rng.randrange(1, 9)}{rng.choice('ABDEFGHJ')}{rng.choice('LNPQRST')}"
        )
    length = {"PT": 4, "BG": 4}.get(country.code, 5)
    return f"{(zipped + _digits(rng, 5))[:length]} {city.replace('_', ' ')}"


def _trade(rng: Rng, country: Country, surname: str) -> str:
    sector = _word(rng, country.sectors)
    chance = rng.random()
    if chance < 0.45:
        return f"{sector} {surname}"
    mark = _word(rng, country.marks)
    if chance < 0.8:
        return f"{sector} {mark}"
    invented = rng.choice(
        ("Nova", "Tecno", "Euro", "Multi", "Agro", "Inter", "Gastro", "Eco", "Medi", "Logi")
    )
    return invented + rng.choice(
        ("mar", "sol", "tec", "lux", "plan", "grup", "net", "dis", "pan", "fix", "ven")
    )


def _form_of(rng: Rng, country: Country) -> str:
    return _common(rng, " ".join(form.replace(" ", "_") for form in country.forms))


def _firm_tax(rng: Rng, country: Country, form: str) -> str:
    """In Spain its letter says the form."""
    tax = country.firm_tax(rng)
    return {"S.L.": "B", "S.A.": "A", "C.B.": "E"}[form] + tax[1:] if country.code == "ES" else tax


def _person_tax(rng: Rng, country: Country, born: date, given: str, surname: str) -> str:
    if country.person_tax is None or rng.random() >= country.person_has_tax:
        return ""
    return country.person_tax(rng, born, given, surname)


def customer(rng: Rng, country: Country, is_firm: bool) -> Customer:
    is_woman = rng.random() < (0.3 if is_firm else 0.5)
    given = _common(rng, country.women if is_woman else country.men)
    if rng.random() < 0.15 and "-" not in given:
        second = _common(rng, country.women if is_woman else country.men)
        given = given if second == given or "-" in second else f"{given} {second}"
    surnames = tuple(_surname(rng, country, is_woman) for _ in range(1 + country.has_two_surnames))
    born = date(1945, 1, 1) + timedelta(days=rng.randrange(0, 22_000))
    form = _form_of(rng, country) if is_firm else ""
    made = Customer(
        country, is_firm, given, surnames, is_woman, born,
        _trade(rng, country, surnames[0]) if is_firm else "",
        form, _firm_tax(rng, country, form) if is_firm else _person_tax(rng, country, born, given, surnames[0]),
        _phone(rng, country, country.mobile), _phone(rng, country, country.landline),
        _private_mail(rng, country, given, surnames[0], born), _private_mail(rng, country, given, surnames[-1], born),
        _street(rng, country), _city(rng, country),
    )  # fmt: skip
    if is_firm:
        made.email = _firm_mail(rng, made)
    if made.tax and rng.random() < 0.015:
        made.tax = _other_digit(rng, made.tax)
        made.traits += ("document: invalid, in both lists",)
    return made


def _other_digit(rng: Rng, text: str) -> str:
    at = rng.choice([n for n, sign in enumerate(text) if sign.isdigit()] or [0])
    return text[:at] + rng.choice("0123456789".replace(text[at], "")) + text[at + 1 :]


# Who is alike and another one: each makes customers, and says why they are not the same.

Related = tuple[list[Customer], str]


def _two_firms(rng: Rng, first: Customer) -> Related:
    """Person, mail and phone agree; tax number and name do not."""
    country = first.country
    form = _form_of(rng, country)
    second = replace(
        first,
        trade=_trade(rng, country, first.surnames[-1]),
        form=form,
        tax=_firm_tax(rng, country, form),
        traits=(),
    )
    if rng.random() < 0.5:
        second.street, second.city = _street(rng, country), _city(rng, country)
    return [first, second], "not the same: two firms of one owner"


def _owner(rng: Rng, firm: Customer) -> Related:
    """The owner buys for the firm, and for home."""
    country = firm.country
    tax = _person_tax(rng, country, firm.born, firm.given, firm.surnames[0])
    home = replace(firm, is_firm=False, trade="", form="", tax=tax, traits=())
    if rng.random() < 0.6:
        home.street = _street(rng, country)
    if rng.random() < 0.4:
        home.email = _private_mail(rng, country, firm.given, firm.surnames[0], firm.born)
    return [firm, home], "not the same: a firm and its owner"


def _successor(rng: Rng, old: Customer) -> Related:
    form = old.form if rng.random() < 0.5 else _form_of(rng, old.country)
    new = replace(old, form=form, tax=_firm_tax(rng, old.country, form), traits=())
    if rng.random() < 0.3:
        new.given = _common(rng, old.country.men)
        new.email = _firm_mail(rng, new)
    return [old, new], "not the same: successor firm"


def _relative(rng: Rng, parent: Customer, is_child: bool) -> Customer:
    country = parent.country
    is_woman = rng.random() < 0.4 if is_child else not parent.is_woman
    given = _common(rng, country.women if is_woman else country.men)
    if is_child and is_woman == parent.is_woman and rng.random() < 0.45:
        given = parent.given
    shares_name = is_child or rng.random() < (0.75 if country.takes_husbands_name else 0.05)
    own = parent.surnames[0] if shares_name else _surname(rng, country, is_woman)
    for name in country.surnames.split():
        if own in name.split("/"):
            own = name.split("/")[-1 if is_woman else 0]
    surnames = (own, *(_surname(rng, country, is_woman) for _ in parent.surnames[1:]))
    born = parent.born + timedelta(
        days=rng.randrange(7_500, 13_000) if is_child else rng.randrange(-2_000, 2_000)
    )
    return replace(
        parent, given=given, surnames=surnames, is_woman=is_woman, born=born, traits=(),
        tax=_person_tax(rng, country, born, given, own), mobile=_phone(rng, country, country.mobile),
        email=_private_mail(rng, country, given, own, born), other_email=_private_mail(rng, country, given, own, born),
    )  # fmt: skip


def _parent(rng: Rng, parent: Customer) -> Related:
    child = _relative(rng, parent, True)
    if rng.random() < 0.25:
        child.email = parent.email
    return [parent, child], "not the same: parent and child"


def _couple(rng: Rng, one: Customer) -> Related:
    other = _relative(rng, one, False)
    if rng.random() < 0.35:
        other.email = one.email
    if rng.random() < 0.3:
        other.mobile = one.mobile
    return [one, other], "not the same: a couple"


def _namesake(rng: Rng, one: Customer) -> Related:
    other = customer(rng, one.country, False)
    other.given, other.surnames, other.is_woman = one.given, one.surnames, one.is_woman
    other.tax = _person_tax(rng, one.country, other.born, one.given, one.surnames[0])
    other.email = _private_mail(rng, one.country, one.given, one.surnames[0], other.born)
    other.traits = ()
    if rng.random() < 0.4:
        other.city = one.city
    return [one, other], "not the same: namesakes"


def _group(rng: Rng, one: Customer) -> Related:
    """Firms of one group: one house, one switchboard, one domain."""
    country = one.country
    firms = [one]
    for _ in range(rng.choice((1, 1, 2, 3))):
        trade = f"{one.trade} {_word(rng, country.sectors)}"
        given, surname = (
            _common(rng, country.women + " " + country.men),
            _surname(rng, country, False),
        )
        mail = one.email if rng.random() < 0.4 else f"{slug(given)}@{one.email.partition('@')[2]}"
        firms.append(
            replace(
                one, trade=trade, tax=_firm_tax(rng, country, one.form), given=given, surnames=(surname,), email=mail,
                mobile=_phone(rng, country, country.mobile), traits=(),
            )
        )  # fmt: skip
    return firms, "not the same: firms of one group"


def _franchise(rng: Rng, one: Customer) -> Related:
    firms = [one]
    for _ in range(rng.choice((1, 2, 3))):
        other = customer(rng, one.country, True)
        other.trade = one.trade
        other.email = f"{slug(other.city.split()[-1])}@{one.email.partition('@')[2]}"
        firms.append(other)
    return firms, "not the same: franchise of one name"


def _branches(rng: Rng, head: Customer) -> Related:
    """Shops of one firm: one tax number, often one mail; a code, a name and an address each."""
    shops = [head]
    taken: set[str] = set()
    for _ in range(min(2 + int(rng.expovariate(0.35)), 12)):
        place = _word(rng, head.country.marks)
        place = place if place not in taken else f"{place} {len(taken) + 1}"
        taken.add(place)
        shop = replace(
            head,
            branch=place,
            street=_street(rng, head.country),
            city=_city(rng, head.country),
            traits=("branch",),
        )
        if rng.random() < 0.7:
            shop.landline = _phone(rng, head.country, head.country.landline)
        if rng.random() < 0.6:
            shop.mobile = _phone(rng, head.country, head.country.mobile)
            is_woman = rng.random() < 0.5
            shop.given = _common(rng, head.country.women if is_woman else head.country.men)
            shop.surnames = tuple(_surname(rng, head.country, is_woman) for _ in head.surnames)
        if rng.random() < 0.35:
            shop.email = f"{slug(place)}@{head.email.partition('@')[2]}"
        shops.append(shop)
    return shops, "not the same: another branch of the firm"


def _became_firm(rng: Rng, person: Customer) -> Related:
    """A sole trader founded a company for the same trade."""
    country = person.country
    form = next(iter(country.forms))
    person.tax = person.tax or country.firm_tax(rng)
    firm = replace(
        person, is_firm=True, trade=f"{_word(rng, country.sectors)} {person.surnames[0]}", traits=(),
        form=form, tax=_firm_tax(rng, country, form),
    )  # fmt: skip
    return [person, firm], "not the same: a sole trader became a company"


def _abroad(rng: Rng, firm: Customer) -> Related:
    """A subsidiary of the same name in another country."""
    country = rng.choice([one for one in COUNTRIES.values() if one is not firm.country])
    other = customer(rng, country, True)
    other.trade = firm.trade
    other.email = (
        firm.email if rng.random() < 0.4 else f"{_word(rng, _DESKS)}@{firm.email.partition('@')[2]}"
    )
    return [firm, other], "not the same: subsidiary abroad"


RELATIONS: dict[str, tuple[bool, Callable[[Rng, Customer], Related]]] = {
    "two firms": (True, _two_firms),
    "owner": (True, _owner),
    "successor": (True, _successor),
    "parent": (False, _parent),
    "couple": (False, _couple),
    "namesake": (False, _namesake),
    "group": (True, _group),
    "franchise": (True, _franchise),
    "branches": (True, _branches),
    "became firm": (False, _became_firm),
    "abroad": (True, _abroad),
}
"""Whether it begins with a firm, and how the others are made."""


# Phones and names as they are written.


def _groups(national: str) -> list[str]:
    """As in 612 345 678; nobody leaves one digit alone."""
    ends = [*range(3, len(national) - 1, 3), len(national)]
    return [national[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def phone_text(rng: Rng, country: Country, national: str, habit: str) -> str:
    home = country.trunk + national
    threes = _groups(home)
    match habit:
        case "e164":
            return f"+{country.dial}{national}"
        case "international":
            return f"+{country.dial} {' '.join(_groups(national))}"
        case "national":
            return home
        case "spaced":
            return " ".join(threes)
        case "twos":
            return " ".join([home[:3], *(home[at : at + 2] for at in range(3, len(home), 2))])
        case "dashes":
            return "-".join(threes)
        case "dots":
            return ".".join(threes)
        case "area":
            return f"({home[:3]}) {home[3:]}"
        case "slash":
            return f"{home[:4]}/{home[4:]}"
        case "zeros":
            return f"00{country.dial}{national}"
        case "zeros spaced":
            return f"00 {country.dial} {' '.join(_groups(national))}"
        case "no plus":
            return f"{country.dial}{national}"
        case "trunk in brackets":
            return (
                f"+{country.dial} ({country.trunk or '0'}){national}"
                if country.trunk
                else f"(+{country.dial}) {national}"
            )
        case "word":
            return rng.choice(("Tel. ", "Tel: ", "tlf ", "Móvil ", "M: ")) + home
        case "lost trunk":
            return national
        case _:  # float
            return f"{national}.0"


PHONE_HABITS = (
    "e164", "international", "national", "spaced", "twos", "dashes", "dots", "area", "slash", "zeros", "zeros spaced",
    "no plus", "trunk in brackets", "word", "lost trunk", "float",
)  # fmt: skip
_ERP_HABITS = (10, 5, 50, 14, 5, 2, 2, 1, 1, 3, 1, 1, 1, 1, 3, 1)
_PLATFORM_HABITS = (46, 10, 22, 8, 2, 1, 1, 0.5, 0.5, 3, 0.5, 3, 1, 0.3, 2, 0)


def _is_number(text: str) -> bool:
    """Not a word in its place, and not nothing."""
    return sum(map(str.isdigit, text)) > 5


def _full_tax(country: Country, tax: str) -> str:
    """As abroad: with the country's prefix."""
    if country.code == "FR" and len(tax) == 9 and tax.isdigit():
        return f"FR{(12 + 3 * (int(tax) % 97)) % 97:02}{tax}"
    return country.prefix + tax


# Kinds of dirt: each changes a record, and says whether it did.

Change = Callable[["World", Record], bool]


@dataclass(frozen=True)
class Dirt:
    """How often, where it is more likely, and what it does."""

    weight: float
    erp: float
    change: Change


DIRT: dict[str, Dirt] = {}


def dirt(kind: str, weight: float, erp: float = 0.5) -> Callable[[Change], Change]:
    """Registers a kind; `erp` is how likely it is that the ERP has it."""

    def registered(change: Change) -> Change:
        DIRT[kind] = Dirt(weight, erp, change)
        return change

    return registered


@dirt("document: country prefix", 5)
def _prefix(world: World, record: Record) -> bool:
    full = _full_tax(record.of.country, record.tax)
    if not record.of.is_firm or record.tax != record.of.tax or full == record.tax:
        return False
    record.tax = full if world.rng.random() < 0.8 else f"{full[:2]} {full[2:]}"
    return True


@dirt("document: dots and spaces", 5)
def _punctuated(world: World, record: Record) -> bool:
    tax, rng = record.tax, world.rng
    if len(tax) < 8:
        return False
    if record.of.country.code == "BR" and len(tax) in (11, 14):
        record.tax = (
            f"{tax[:3]}.{tax[3:6]}.{tax[6:9]}-{tax[9:]}"
            if len(tax) == 11
            else f"{tax[:2]}.{tax[2:5]}.{tax[5:8]}/{tax[8:12]}-{tax[12:]}"
        )
    elif not tax[0].isdigit():
        record.tax = f"{tax[0]}{rng.choice('- ')}{tax[1:]}"
    elif not tax[-1].isdigit():
        record.tax = rng.choice(
            (f"{tax[:-1]}-{tax[-1]}", f"{tax[:2]}.{tax[2:5]}.{tax[5:-1]}-{tax[-1]}")
        )
    else:
        record.tax = rng.choice(" .-").join(_groups(tax))
    return True


@dirt("document: wrong digit", 2)
def _wrong_digit(world: World, record: Record) -> bool:
    if not _is_number(record.tax):
        return False
    record.tax = _other_digit(world.rng, record.tax)
    return True


@dirt("document: swapped digits", 1.5)
def _swapped(world: World, record: Record) -> bool:
    tax = record.tax
    places = [n for n in range(len(tax) - 1) if tax[n] != tax[n + 1] and tax[n : n + 2].isdigit()]
    if not places:
        return False
    at = world.rng.choice(places)
    record.tax = tax[:at] + tax[at + 1] + tax[at] + tax[at + 2 :]
    return True


@dirt("document: missing", 4, erp=0.3)
def _no_tax(world: World, record: Record) -> bool:
    changed, record.tax = bool(record.tax), ""
    return changed


@dirt("document: word before it", 2)
def _word_before(world: World, record: Record) -> bool:
    if not record.tax:
        return False
    record.tax = f"{_word(world.rng, record.of.country.words)}{world.rng.choice((' ', ': ', ':'))}{record.tax}"
    return True


@dirt("document: lower case", 1, erp=0.2)
def _lower_tax(world: World, record: Record) -> bool:
    changed = record.tax != record.tax.lower()
    record.tax = record.tax.lower()
    return changed


@dirt("document: zeros lost", 1.5, erp=0.7)
def _zeros_lost(world: World, record: Record) -> bool:
    changed = record.tax.startswith("0")
    record.tax = record.tax.lstrip("0")
    return changed


@dirt("document: placeholder", 2.5)
def _tax_placeholder(world: World, record: Record) -> bool:
    places = {
        "ES": ("00000000T", "B00000000"),
        "BR": ("000.000.000-00",),
        "PT": ("999999990",),
        "IT": ("00000000000",),
    }
    common = (
        "123456789",
        "999999999",
        "no tiene",
        "0",
        "-",
        "N/A",
        "000000000",
        "X",
        "pendiente",
        "1",
    )
    record.tax = world.rng.choice((*places.get(record.of.country.code, ()), *common))
    return True


@dirt("document: of the establishment", 1)
def _siret(world: World, record: Record) -> bool:
    if record.of.country.code != "FR" or len(record.tax) != 9:
        return False
    record.tax = _luhn(f"{record.tax}{world.rng.randrange(1, 40):04}")
    return True


@dirt("name: legal form spelled otherwise", 8)
def _form(world: World, record: Record) -> bool:
    customer = record.of
    if not customer.is_firm or customer.form not in record.fiscal:
        return False
    spelled = world.rng.choice(
        [one for one in customer.country.forms[customer.form] if one != customer.form]
    )
    record.fiscal = record.fiscal.replace(customer.form, spelled)
    record.first = record.first.replace(customer.form, spelled)
    return True


@dirt("name: legal form missing", 3)
def _no_form(world: World, record: Record) -> bool:
    customer = record.of
    if not customer.is_firm or customer.form not in record.fiscal:
        return False
    record.fiscal = record.fiscal.replace(customer.form, "").strip(" ,")
    return True


@dirt("name: accents lost", 6, erp=0.6)
def _no_accents(world: World, record: Record) -> bool:
    return record.rename(without_accents)


@dirt("name: written in ASCII", 4)
def _in_ascii(world: World, record: Record) -> bool:
    return record.rename(lambda text: in_ascii(latin(text, world.rng)))


def _doubled(text: str) -> str:
    try:
        return text.encode("utf-8").decode("cp1252")
    except UnicodeDecodeError:
        return text


@dirt("name: doubled UTF-8", 2)
def _mojibake(world: World, record: Record) -> bool:
    return record.rename(_doubled)


@dirt("name: upper case", 5, erp=0.75)
def _upper(world: World, record: Record) -> bool:
    return record.rename(str.upper)


@dirt("name: lower case", 1, erp=0.1)
def _lower(world: World, record: Record) -> bool:
    return record.rename(str.lower)


@dirt("name: surname first", 4, erp=0.7)
def _surname_first(world: World, record: Record) -> bool:
    customer = record.of
    if customer.is_firm:
        changed = bool(record.last) and customer.given in record.first
        if changed:
            record.first, record.last = record.last, record.first
        return changed
    if world.rng.random() < 0.5:
        record.first, record.last = record.last, record.first
    joined = world.rng.choice((", ", " "))
    record.fiscal = record.fiscal.replace(
        customer.person, f"{' '.join(customer.surnames)}{joined}{customer.given}"
    )
    return True


@dirt("name: one surname of two", 6, erp=0.3)
def _one_surname(world: World, record: Record) -> bool:
    second = " ".join(record.of.surnames[1:])
    if not second or not record.last.endswith(f" {second}"):
        return False
    record.last = record.last.removesuffix(f" {second}")
    if not record.of.is_firm and world.rng.random() < 0.5:
        record.fiscal = record.fiscal.replace(f" {second}", "")
    return True


def _regiven(record: Record, given: str) -> bool:
    """Another given name; of a firm, whom one talks to."""
    own = record.of.given
    if own not in record.first:
        return False
    record.first = record.first.replace(own, given)
    if not record.of.is_firm:
        record.fiscal = record.fiscal.replace(own, given)
    return True


@dirt("name: initial", 2)
def _initial(world: World, record: Record) -> bool:
    return _regiven(record, f"{record.of.given[0]}.")


@dirt("name: nickname", 4, erp=0.2)
def _nickname(world: World, record: Record) -> bool:
    nicknames = dict(pair.split("=") for pair in record.of.country.nicknames.split())
    given = record.of.given.split(" ")
    return given[0] in nicknames and _regiven(record, nicknames[given[0]])


@dirt("name: second given name missing", 3, erp=0.4)
def _no_second_given(world: World, record: Record) -> bool:
    first, _, second = record.of.given.partition(" ")
    return bool(second) and _regiven(record, first if world.rng.random() < 0.7 else second)


@dirt("name: married name", 2)
def _married(world: World, record: Record) -> bool:
    customer = record.of
    if not customer.is_woman or customer.is_firm or not record.last:
        return False
    if world.rng.random() >= customer.country.takes_husbands_name * 4:
        return False
    other = _surname(world.rng, customer.country, True)
    new = other if world.rng.random() < 0.6 else f"{customer.surnames[0]}-{other}"
    record.last = record.last.replace(customer.surnames[0], new)
    record.fiscal = record.fiscal.replace(customer.surnames[0], new)
    return True


@dirt("name: trade name for the legal one", 5)
def _trade_name(world: World, record: Record) -> bool:
    customer = record.of
    if not customer.is_firm or not record.fiscal:
        return False
    rng = world.rng
    mark = _word(rng, customer.country.marks)
    record.fiscal = rng.choice(
        (f"{mark}", f"{_word(rng, customer.country.sectors)} {mark}", customer.person)
    )
    return True


@dirt("name: typing error", 4)
def _name_typo(world: World, record: Record) -> bool:
    name = world.rng.choice(
        [name for name in ("first", "last", "fiscal") if len(getattr(record, name)) > 4] or [""]
    )
    if not name:
        return False
    setattr(record, name, _typo(world.rng, getattr(record, name)))
    return True


def _typo(rng: Rng, text: str) -> str:
    at = rng.randrange(1, len(text) - 1)
    return rng.choice(
        (
            text[:at] + text[at + 1 :],
            text[:at] + text[at] + text[at:],
            text[:at] + text[at + 1] + text[at] + text[at + 2 :],
            text[:at] + rng.choice("aeiorstln") + text[at + 1 :],
        )
    )


@dirt("name: all in one field", 3)
def _one_field(world: World, record: Record) -> bool:
    changed = bool(record.last)
    record.first, record.last = f"{record.first} {record.last}".strip(), ""
    return changed


@dirt("name: abbreviated", 3, erp=0.75)
def _abbreviated(world: World, record: Record) -> bool:
    def short(text: str) -> str:
        words = text.split(" ")
        long = [n for n, word in enumerate(words) if len(word) > 7 and word.isalpha()]
        if long:
            words[long[0]] = f"{words[long[0]][:5]}."
        return " ".join(words)

    before = record.fiscal, record.first
    record.fiscal = short(record.fiscal)
    if record.of.is_firm:
        record.first = short(record.first)
    return before != (record.fiscal, record.first)


@dirt("name: cut off", 1, erp=0.9)
def _cut(world: World, record: Record) -> bool:
    changed = len(record.fiscal) > 24
    record.fiscal = record.fiscal[:24]
    return changed


@dirt("name: a remark in it", 1.5, erp=0.9)
def _remark(world: World, record: Record) -> bool:
    remark = world.rng.choice(
        (" (NO USAR)", " - MOROSO", " (antes 2019)", " *", " - pago contado", " (web)", " BAJA")
    )
    if record.fiscal:
        record.fiscal += remark
    else:
        record.first += remark
    return True


@dirt("the firm was renamed", 1)
def _renamed(world: World, record: Record) -> bool:
    customer = record.of
    if not customer.is_firm or customer.trade not in record.fiscal:
        return False
    new = _trade(world.rng, customer.country, _surname(world.rng, customer.country, False))
    record.fiscal = record.fiscal.replace(customer.trade, new)
    record.first = record.first.replace(customer.trade, new)
    return True


@dirt("address: moved", 5)
def _moved(world: World, record: Record) -> bool:
    if not record.address:
        return False
    record.address = (
        f"{_street(world.rng, record.of.country)[0]}, {_city(world.rng, record.of.country)}"
    )
    return True


@dirt("address: abbreviated", 5)
def _short_address(world: World, record: Record) -> bool:
    long, short = record.of.street
    changed = long != short and long in record.address
    record.address = record.address.replace(long, short)
    return changed


@dirt("phone: an old one", 5)
def _old_phone(world: World, record: Record) -> bool:
    if not _is_number(record.phone):
        return False
    record.phone = world.phone(
        record, _phone(world.rng, record.of.country, record.of.country.mobile)
    )
    return True


@dirt("phone: landline for mobile", 6, erp=0.8)
def _other_phone(world: World, record: Record) -> bool:
    if not _is_number(record.phone):
        return False
    record.phone = world.phone(record, record.of.landline)
    return True


@dirt("phone: wrong digit", 2)
def _phone_digit(world: World, record: Record) -> bool:
    if not _is_number(record.phone):
        return False
    at = world.rng.choice([n for n, sign in enumerate(record.phone) if sign.isdigit()][-6:])
    record.phone = record.phone[:at] + world.rng.choice("0123456789") + record.phone[at + 1 :]
    return True


@dirt("phone: placeholder", 2)
def _phone_placeholder(world: World, record: Record) -> bool:
    record.phone = world.rng.choice(
        ("999999999", "000000000", "123456789", "600000000", "111111111", "0", "no tiene", "x")
    )
    return True


@dirt("phone: two in one field", 1.5, erp=0.9)
def _two_phones(world: World, record: Record) -> bool:
    if not _is_number(record.phone):
        return False
    numbers = [record.phone, world.phone(record, record.of.landline)]
    world.rng.shuffle(numbers)
    record.phone = world.rng.choice((" / ", "; ", " - ", " y ")).join(numbers)
    return True


@dirt("phone: extension or name beside it", 1.2, erp=0.8)
def _extension(world: World, record: Record) -> bool:
    if not _is_number(record.phone):
        return False
    record.phone += world.rng.choice(
        (" ext. 12", " x205", f" ({record.of.given})", " (tardes)", " int. 3")
    )
    return True


@dirt("phone: shared with others", 1.5)
def _shared_phone(world: World, record: Record) -> bool:
    """That of a family, a house or a market hall."""
    record.phone = world.phone(record, world.rng.choice(world.shared_phones))
    return True


@dirt("mail: another one of the customer", 7, erp=0.6)
def _other_mail(world: World, record: Record) -> bool:
    customer = record.of
    other = customer.other_email
    if (
        customer.is_firm
        and world.rng.random() < 0.6
        and slug(customer.trade)[:10] in customer.email
    ):
        other = f"{_word(world.rng, _DESKS)}@{customer.email.partition('@')[2]}"
    if record.email in ("", other):
        return False
    record.email = other
    return True


@dirt("mail: typing error", 4)
def _mail_typo(world: World, record: Record) -> bool:
    if "@" not in record.email:
        return False
    local, _, domain = record.email.partition("@")
    slips = {
        "gmail.com": ("gmial.com", "gmail.con", "gmai.com", "gmail.es"),
        "hotmail.com": ("hotmial.com", "hotmail.con"),
    }
    if domain in slips and world.rng.random() < 0.5:
        domain = world.rng.choice(slips[domain])
    elif len(local) > 3:
        local = _typo(world.rng, local)
    record.email = f"{local}@{domain}"
    return True


@dirt("mail: that of the accountant", 2.5, erp=0.95)
def _accountant(world: World, record: Record) -> bool:
    mail, phone = world.rng.choice(world.accountants)
    record.email = mail
    if world.rng.random() < 0.3:
        record.phone = world.phone(record, phone)
        record.kinds.add("phone: that of the accountant")
    return True


@dirt("mail: upper case", 3, erp=0.8)
def _mail_upper(world: World, record: Record) -> bool:
    changed = record.email != record.email.upper()
    record.email = record.email.upper() if world.rng.random() < 0.6 else record.email.capitalize()
    return changed


@dirt("mail: plus-addressing", 1, erp=0.05)
def _plus(world: World, record: Record) -> bool:
    if "@" not in record.email:
        return False
    record.email = record.email.replace(
        "@", world.rng.choice(("+shop@", "+pedidos@", "+1@", "+web@"))
    )
    return True


@dirt("mail: placeholder", 2)
def _mail_placeholder(world: World, record: Record) -> bool:
    options = (
        "x@x.com",
        "no@tiene.com",
        "sinemail@sinemail.com",
        "a@a.es",
        "noreply@example.com",
        "correo@correo.com",
    )
    record.email = world.rng.choice(options)
    return True


@dirt("mail: two in one field", 1, erp=1)
def _two_mails(world: World, record: Record) -> bool:
    if "@" not in record.email:
        return False
    mails = [record.email, record.of.other_email]
    world.rng.shuffle(mails)
    record.email = world.rng.choice((";", "; ", ", ", " ")).join(mails)
    return True


@dirt("mail: dots in it", 0.7)
def _dots(world: World, record: Record) -> bool:
    local, _, domain = record.email.partition("@")
    if domain != "gmail.com" or len(local) < 5:
        return False
    record.email = (
        f"{local.replace('.', '') if '.' in local else f'{local[:3]}.{local[3:]}'}@{domain}"
    )
    return True


@dirt("blanks around and within", 1.5, erp=0.8)
def _blanks(world: World, record: Record) -> bool:
    record.email, record.fiscal = (
        f"{record.email} " if record.email else "",
        record.fiscal.replace(" ", "  ", 1),
    )
    record.tax = f" {record.tax}" if record.tax else ""
    return record.rename(lambda text: f"{text}\u00a0" if text else "")


# Kinds that only the held-out population has: their weight is 0 in the other one.


@dirt("held out: title before the name", 0, erp=0.7)
def _title(world: World, record: Record) -> bool:
    if record.of.is_firm or not record.first:
        return False
    title = _word(world.rng, record.of.country.titles)
    record.first, record.fiscal = (
        f"{title} {record.first}",
        f"{title} {record.fiscal}" if record.fiscal else "",
    )
    return True


@dirt("held out: document of the owner for that of the firm", 0)
def _owners_tax(world: World, record: Record) -> bool:
    customer = record.of
    if not customer.is_firm or not customer.country.person_tax:
        return False
    record.tax = customer.country.person_tax(
        world.rng, customer.born, customer.given, customer.surnames[0]
    )
    return True


@dirt("held out: number as a float or in exponents", 0, erp=0.95)
def _float(world: World, record: Record) -> bool:
    if not record.tax.isdigit():
        return False
    record.tax = f"{int(record.tax)}.0" if world.rng.random() < 0.7 else f"{float(record.tax):.5E}"
    return True


_LOOKALIKES = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕКМНОРСТХаеорсух", "ABEZHIKMNOPTYXABEKMHOPCTXaeopcyx")


@dirt("held out: letters that only look alike", 0)
def _lookalike(world: World, record: Record) -> bool:
    return record.rename(lambda text: text.translate(_LOOKALIKES))


@dirt("held out: the domain of its mail changed", 0)
def _new_domain(world: World, record: Record) -> bool:
    local, _, domain = record.email.partition("@")
    if not record.of.is_firm or slug(record.of.trade)[:6] not in domain:
        return False
    record.email = (
        f"{local}@{slug(record.of.trade)[:10]}-{world.rng.choice(('group', 'online', 'shop'))}.com"
    )
    return True


@dirt("held out: c/o another one", 0)
def _care_of(world: World, record: Record) -> bool:
    if not record.fiscal:
        return False
    record.fiscal = (
        f"{record.fiscal} c/o {_trade(world.rng, record.of.country, record.of.surnames[0])}"
    )
    return True


@dirt("held out: fields one column off", 0, erp=1)
def _shifted(world: World, record: Record) -> bool:
    record.phone, record.email = record.email, record.phone
    return bool(record.phone or record.email)


@dirt("held out: initials of the firm", 0)
def _initials(world: World, record: Record) -> bool:
    customer = record.of
    words = customer.trade.split()
    if not customer.is_firm or len(words) < 2 or customer.trade not in record.fiscal:
        return False
    record.fiscal = record.fiscal.replace(
        customer.trade, "".join(word[0].upper() for word in words)
    )
    return True


# Populations.


@dataclass(frozen=True)
class Style:
    """Habits of a whole source: how both sides write codes, and what the ERP does to every line."""

    kind: str
    erp_code: str
    platform_code: str
    is_upper: bool = False
    has_prefixes: bool = False


@dataclass(frozen=True)
class Population:
    """What customers there are, and what happens to them.

    Attributes:
        home: country of the company that has both lists.
        countries: weight of each.
        firms: share of firms.
        relations: how many such clusters for a thousand customers.
        dirt: weights of kinds that are not those of `DIRT`.
        counts: weights of no, one, two … kinds of dirt for a customer.
        code_known: share of pairs whose customer on the platform has the code of the ERP.
        one_sided: share of each list that is not in the other one.
        styles: of sources; the seed chooses one.
        has_logins: whether customers log in by a code, which the ERP knows of half of them.
    """

    name: str
    home: str
    countries: Mapping[str, float]
    firms: float
    relations: Mapping[str, float]
    dirt: Mapping[str, float]
    counts: tuple[float, ...]
    code_known: float
    one_sided: float
    styles: tuple[Style, ...]
    has_logins: bool = False


FIRST = Population(
    "first", "ES",
    {"ES": 40, "PT": 9, "FR": 10, "DE": 11, "IT": 10, "PL": 7, "GR": 7, "BG": 6},
    firms=0.55,
    relations={
        "two firms": 9, "owner": 7, "successor": 4, "parent": 7, "couple": 8, "namesake": 5, "group": 4, "franchise": 2,
        "branches": 6,
    },
    dirt={},
    counts=(34, 34, 20, 8, 3, 1),
    code_known=0.5,
    one_sided=0.3,
    styles=(
        Style("source: codes alike", "430{:05}", "430{:05}"),
        Style("source: codes with a prefix in the ERP, upper case", "C-{:06}", "{}", is_upper=True),
        Style("source: codes lost their zeros in the ERP, prefixed documents", "{}", "{:06}", has_prefixes=True),
    ),
)  # fmt: skip
"""The population to work with."""

HELD_OUT = Population(
    "held out", "IT",
    {"IT": 27, "GB": 18, "BR": 15, "PL": 12, "DE": 9, "ES": 6, "GR": 5, "BG": 4, "FR": 3, "PT": 1},
    firms=0.4,
    relations={
        "two firms": 6, "owner": 9, "successor": 3, "parent": 9, "couple": 10, "namesake": 8, "group": 3,
        "franchise": 3, "branches": 8, "became firm": 6, "abroad": 4,
    },
    dirt={
        "held out: title before the name": 3,
        "held out: document of the owner for that of the firm": 2,
        "held out: number as a float or in exponents": 2,
        "held out: letters that only look alike": 2,
        "held out: the domain of its mail changed": 2,
        "held out: c/o another one": 1,
        "held out: fields one column off": 0.7,
        "held out: initials of the firm": 1,
        "document: country prefix": 3,
        "mail: another one of the customer": 10,
        "name: nickname": 7,
        "name: married name": 4,
        "phone: an old one": 8,
        "name: upper case": 2,
    },
    counts=(28, 35, 22, 10, 4, 1),
    code_known=0.35,
    one_sided=0.35,
    styles=(
        Style("source: codes with a suffix in the ERP", "{:05}/IT", "{:05}"),
        Style("source: no codes on the platform", "CL{:05}", ""),
        Style("source: codes with dots in the ERP", "04.01.{:05}", "0401{:05}", has_prefixes=True),
    ),
    has_logins=True,
)  # fmt: skip
"""For one measurement at the end."""

SEEDS = range(1, 1000)
HELD_OUT_SEEDS = range(9001, 9004)


# The lists.


class World:
    """Both lists as they come to be."""

    def __init__(self, seed: int, size: int, population: Population) -> None:
        self.rng = random.Random(f"{population.name} {seed}")
        self.population = population
        self.style = population.styles[seed % len(population.styles)]
        self.size = size
        self.customers: list[tuple[Customer, frozenset[Side]]] = []
        self.alike: list[tuple[list[Customer], str]] = []
        self.records: list[Record] = []
        self.wrong_codes: list[tuple[Record, Record, str]] = []
        self.numbers = count(1)
        home = COUNTRIES[population.home]
        self.accountants = [
            (
                f"{slug(_surname(self.rng, home, False))}@{name}.{home.tld}",
                _phone(self.rng, home, home.landline),
            )
            for name in ("gestoria", "asesores", "consulting", "fiscal", "studio", "taxes")
            for _ in range(max(1, size // 1500))
        ]
        self.shared_phones = [
            _phone(self.rng, home, home.landline) for _ in range(max(2, size // 400))
        ]
        self.weights = {kind: one.weight for kind, one in DIRT.items()} | dict(population.dirt)

    # Customers.

    def fill(self) -> None:
        names = list(self.population.relations)
        rates = [self.population.relations[name] for name in names]
        while len(self.customers) < self.size:
            country = COUNTRIES[
                self.rng.choices(
                    list(self.population.countries), list(self.population.countries.values())
                )[0]
            ]
            # of the clusters that are planned for a thousand customers, about the third part of those are in them
            if self.rng.random() * 1000 >= sum(rates) * 1.15:
                self.add(customer(self.rng, country, self.rng.random() < self.population.firms))
                continue
            is_firm, related = RELATIONS[self.rng.choices(names, rates)[0]]
            found, why = related(self.rng, customer(self.rng, country, is_firm))
            self.alike.append((found, why))
            if len(found) == 2 and self.rng.random() < 0.5:
                self.set_apart(found)
            else:
                for one in found:
                    self.add(one)

    def add(self, one: Customer, where: frozenset[Side] | None = None) -> None:
        self.customers.append((one, where or self.place()))

    def place(self) -> frozenset[Side]:
        """So that of each list the share `one_sided` is not in the other."""
        alone = self.population.one_sided / (1 + self.population.one_sided)
        chance = self.rng.random()
        if chance < alone:
            return frozenset({"platform"})
        return frozenset({"erp"}) if chance < 2 * alone else frozenset({"platform", "erp"})

    def set_apart(self, found: list[Customer]) -> None:
        """As they are hardest to tell: each in one list only, or one of them in both."""
        sides: tuple[tuple[Side, ...], tuple[Side, ...]] = self.rng.choice(
            (
                (("erp",), ("platform",)),
                (("erp",), ("platform", "erp")),
                (("platform", "erp"), ("platform",)),
            )
        )
        for one, where in zip(found, sides, strict=True):
            self.add(one, frozenset(where))

    # Records.

    def phone(self, record: Record, national: str) -> str:
        weights = _ERP_HABITS if record.side == "erp" else _PLATFORM_HABITS
        habit = self.rng.choices(PHONE_HABITS, weights)[0]
        if habit not in ("e164", "international", "national", "spaced"):
            record.kinds.add("phone: a rare form")
        country = record.of.country
        is_foreign = country.code != self.population.home
        if is_foreign and habit in ("national", "spaced") and self.rng.random() < 0.6:
            habit = "e164"  # who sells abroad writes foreign numbers in full
        return phone_text(self.rng, country, national, habit)

    def recorded(self, of: Customer, side: Side) -> Record:
        """As it is entered at its best: what a list leaves out is left out."""
        rng = self.rng
        record = Record(side, of, next(self.numbers), email=of.email, fiscal=of.legal, tax=of.tax)
        record.kinds.update(of.traits)
        is_erp = side == "erp"
        surname = " ".join(of.surnames)
        name = of.trade
        if of.branch:
            name += rng.choice((" - {}", " ({})", " {}")).format(of.branch)
        if not of.is_firm:
            record.first, record.last = of.given, surname
            if is_erp and rng.random() < 0.3:
                record.first, record.last = of.person, ""
        elif rng.random() < (0.35 if is_erp else 0.75) and not of.branch:
            record.first, record.last = of.given, surname
        else:
            record.first = name if is_erp or of.branch or rng.random() < 0.5 else of.legal
        record.address = f"{of.street[0]}, {of.city}"
        if not is_erp and rng.random() < 0.4:
            record.address = ""
        has_tax = {(True, True): 0.97, (True, False): 0.8, (False, True): 0.87, (False, False): 0.5}
        if rng.random() >= has_tax[is_erp, of.is_firm]:
            record.tax = ""
            if rng.random() < 0.5:
                record.fiscal = ""
        if not is_erp and of.is_firm and record.tax and rng.random() < 0.04:
            self.second_document(record)
        if is_erp and rng.random() < 0.2:
            record.email = ""
        if rng.random() < 0.9:
            is_landline = (
                rng.random() < (0.4 if is_erp else 0.2) if of.is_firm else rng.random() < 0.05
            )
            record.phone = self.phone(record, of.landline if is_landline else of.mobile)
        if not is_erp and record.tax and rng.random() < 0.3:
            record.mail = of.email
        if plain(of.legal) != without_accents(of.legal) and rng.random() < 0.45:
            record.rename(latin)
            record.kinds.add("name: in Latin letters")
        return record

    def second_document(self, record: Record) -> None:
        """The owner's, beside that of the firm."""
        of = record.of
        tax = _person_tax(self.rng, of.country, of.born, of.given, of.surnames[0])
        if tax:
            record.second = (tax, of.person)
            record.kinds.add("two documents")

    def write(self) -> None:
        for one, where in self.customers:
            found: list[Record] = []
            for side in sorted(where):
                found.append(self.recorded(one, side))
                if self.rng.random() < (0.03 if side == "erp" else 0.04):
                    found.append(self.again(found[-1]))
            for _ in range(
                self.rng.choices(range(len(self.population.counts)), self.population.counts)[0]
            ):
                self.soil(found)
            self.records += found

    def again(self, record: Record) -> Record:
        """The same customer, recorded a second time."""
        second = self.recorded(record.of, record.side)
        for one in (record, second):
            one.kinds.add(f"twice {'in the ERP' if one.side == 'erp' else 'on the platform'}")
        if record.side == "platform":
            second.email = record.of.other_email
        return second

    def soil(self, records: list[Record]) -> None:
        """One kind of dirt in one of the records of a customer."""
        kinds = list(self.weights)
        for _ in range(8):
            kind = self.rng.choices(kinds, list(self.weights.values()))[0]
            erp = DIRT[kind].erp
            record = self.rng.choices(
                records, [erp + 0.001 if one.side == "erp" else 1.001 - erp for one in records]
            )[0]
            if kind not in record.kinds and DIRT[kind].change(self, record):
                record.kinds.add(kind)
                return

    def add_tests(self) -> None:
        """Test customers, and the collective ones of a counter."""
        country = COUNTRIES[self.population.home]
        lines: list[tuple[Side, str, str, str, str, str]] = [
            ("platform", "Test", "Test", "test@test.com", "123456789", "00000000T"),
            ("platform", "Prueba", "Pedido", "prueba@example.com", "600000000", "00000000T"),
            ("platform", "test", "", "soporte@plataforma.example", "999999999", ""),
            ("erp", "CLIENTE DE PRUEBA", "", "test@test.com", "123456789", "00000000T"),
            ("erp", "CLIENTES VARIOS", "", "", "", "00000000T"),
            ("erp", "VENTAS CONTADO", "", "x@x.com", "999999999", "123456789"),
            ("erp", "Test", "Web", "prueba@example.com", "", "0"),
        ]
        for side, first, last, email, phone, tax in lines:
            of = customer(self.rng, country, False)
            record = Record(
                side, of, next(self.numbers), first, last, first, tax, email=email, phone=phone
            )
            record.kinds.add("test or collective customer")
            self.records.append(record)

    def finish(self) -> None:
        """Order, codes, and what whole sources do."""
        rng = self.rng
        rng.shuffle(self.records)
        for number, record in enumerate(self.on("erp"), 6):
            record.number = number
            record.code = self.style.erp_code.format(number)
            if self.style.is_upper:
                record.rename(str.upper)
            if self.style.has_prefixes:
                _prefix(self, record)
        for number, record in enumerate(self.on("platform"), 1001):
            record.number = number
        self.hand_out_codes()
        if self.population.has_logins:
            self.hand_out_logins()
        self.keep_logins_apart()

    def on(self, side: Side) -> list[Record]:
        return [record for record in self.records if record.side == side]

    def hand_out_codes(self) -> None:
        """Known for a share of the pairs; a few are used again or mistyped."""
        lines, rng = self.on("erp"), self.rng
        by_customer: dict[int, list[Record]] = {}
        for line in lines:
            by_customer.setdefault(id(line.of), []).append(line)
        for record in self.on("platform"):
            own = by_customer.get(id(record.of))
            chance = rng.random()
            of = rng.choice(own) if own and chance < self.population.code_known else None
            if not self.style.platform_code:
                continue
            if own and chance < 0.003:
                self.wrong_codes.append((record, of := rng.choice(lines), "code: mistyped"))
            elif not own and chance < 0.015:
                self.wrong_codes.append(
                    (record, of := rng.choice(lines), "code: used again for another customer")
                )
            if of:
                record.code = self.style.platform_code.format(of.number)

    def hand_out_logins(self) -> None:
        """Everybody has one on the platform; the ERP has noted those of half of its customers."""
        logins: dict[int, str] = {}
        for record in self.on("platform"):
            record.login = logins[id(record.of)] = f"{slug(record.of.given)[:8]}{record.number}"
        for line in self.on("erp"):
            if self.rng.random() < 0.5:
                line.login = logins.get(id(line.of), "")

    def keep_logins_apart(self) -> None:
        """Customers log in by mail: who comes second with one has another, and the shared one on the document."""
        taken: set[str] = set()
        for record in self.on("platform"):
            mail = record.email.strip().lower()
            if mail in taken and "test or collective customer" not in record.kinds:
                record.mail = record.mail or record.email
                record.email = f"{slug(record.of.branch or record.of.given)}{record.number}@{mail.partition('@')[2]}"
                record.kinds.add("mail: an own one to log in with")
            taken.add(record.email.strip().lower())

    # Results.

    def truth(self) -> Truth:
        by_customer: dict[int, tuple[list[Record], list[Record]]] = {}
        for record in self.records:
            by_customer.setdefault(id(record.of), ([], []))[record.side == "erp"].append(record)
        pairs = {
            key(one, line): frozenset(one.kinds | line.kinds | self.between(one, line))
            for platform, erp in by_customer.values()
            for one, line in product(platform, erp)
        }
        others: dict[Pair, set[str]] = {}
        for found, why in self.alike:
            for first, second in product(found, found):
                if first is not second:
                    for one, line in product(by_customer[id(first)][0], by_customer[id(second)][1]):
                        others.setdefault(key(one, line), set()).add(why)
        for one, line, why in self.wrong_codes:
            others.setdefault(key(one, line), set()).add(why)
        tests = [
            [one for one in self.on(side) if "test or collective customer" in one.kinds]
            for side in _SIDES
        ]
        for one, line in product(*tests):
            others.setdefault(key(one, line), set()).add("test or collective customer")
        return Truth(
            pairs,
            {pair: frozenset(why) for pair, why in others.items() if pair not in pairs},
            {str(one.number): frozenset(one.kinds) for one in self.on("platform")},
            {line.code: frozenset(line.kinds) for line in self.on("erp")},
        )

    def between(self, one: Record, line: Record) -> set[str]:
        """What a pair lacks to be told by."""
        codes = {
            "": "code: not on the platform",
            self.style.platform_code.format(line.number): "code: known",
        }
        kinds = {self.style.kind, codes.get(one.code, "code: that of another line")}
        if one.login and one.login == line.login:
            kinds.add("login: known")
        kinds.update(
            f"{what}: not in both lists"
            for what, name in (("document", "tax"), ("mail", "email"), ("phone", "phone"))
            if not (getattr(one, name) and getattr(line, name))
        )
        if ("name: in Latin letters" in one.kinds) != ("name: in Latin letters" in line.kinds):
            kinds.add("name: two alphabets")
        return kinds

    def platform_row(self, record: Record) -> Json:
        """As GET /customers lists it."""
        has_birthdate = not record.of.is_firm and record.number % 3 == 0
        documents = [(record.tax, record.fiscal)] if record.tax or record.fiscal else []
        if record.second:
            documents.insert(record.number % 2, record.second)
        return {
            "id": record.number,
            "firstName": record.first or None,
            "lastName": record.last or None,
            "phone": record.phone or None,
            "email": record.email or None,
            "loginCode": record.login or None,
            "createdAt": f"2024-{record.number % 12 + 1:02}-{record.number % 28 + 1:02}T10:00:00Z",
            "priceListId": record.number % 4 + 1,
            "erpCode": record.code or None,
            "birthdate": str(record.of.born) if has_birthdate else None,
            "documents": [
                {
                    "number": number or None,
                    "fiscalName": name or None,
                    "fiscalAddress": record.address or None,
                    "email": record.mail or None,
                    "isDefault": at == 0,
                    "forTaxes": number == record.tax,
                }
                for at, (number, name) in enumerate(documents)
            ],
        }

    def erp_row(self, record: Record) -> Json:
        """A line of the export, with the columns of `orderbridge template customers`."""
        login = {"loginCode": record.login} if self.population.has_logins else {}
        return login | {
            "erpCode": record.code,
            "firstName": record.first,
            "lastName": record.last,
            "email": record.email,
            "phone": record.phone,
            "documents[0].number": record.tax,
            "documents[0].fiscalName": record.fiscal,
            "documents[0].fiscalAddress": record.address,
        }


_SIDES: tuple[Side, Side] = ("platform", "erp")


def key(one: Record, line: Record) -> Pair:
    return str(one.number), line.code


def make(
    seed: int, size: int, population: Population = FIRST
) -> tuple[list[Json], list[Json], Truth]:
    """The platform's customers, the ERP's lines, and the truth, the same for the same seed.

    `size` customers are in one list or in both: about eight in ten of them in each.
    """
    world = World(seed, size, population)
    world.fill()
    world.write()
    world.add_tests()
    world.finish()
    platform = [world.platform_row(record) for record in world.on("platform")]
    return platform, [world.erp_row(record) for record in world.on("erp")], world.truth()
