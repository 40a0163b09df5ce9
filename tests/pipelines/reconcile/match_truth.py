"""The match with the ERP, in plain Python: each line beside each customer, weighed as docs/matching.md says.

In: the nights up to one. Out: the rows of the tables of the match, and its findings. Values are such that little is
left to decide of them: codes, documents and addresses are equal, nearly so, or others.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from tests.pipelines.reconcile import table_truth
from tests.pipelines.reconcile.raw_world import ERP_FIELDS, REFUSED, Night, Row
from tests.pipelines.reconcile.table_truth import Nights, clean, grouped, picked

KEYS = ("erp_code", "login_code", "email", "document_number")
NAMES = ("person", "firm")
WEIGHTS = {
    "erp_code": {"equal": 10, "shared": 6, "near": 3, "different": -4},
    "login_code": {"equal": 10, "shared": 5, "near": 2, "different": -3},
    "email": {"equal": 6, "shared": 3, "different": -2},
    "document_number": {"equal": 9, "shared": 3, "near": 5, "different": -6},
    "person": {"equal": 5, "near": 4, "partly": -2, "different": -4},
    "firm": {"equal": 3, "near": 1, "partly": -4, "different": -4},
    "phone": {"equal": 3, "different": -1},
    "fiscal_address": {"equal": 4, "different": -3},
    "document_email": {"equal": 2, "different": -1},
}
CERTAIN, MARGIN, SUGGESTED = 6, 3, 3
OF_DOCUMENTS = {
    "document_number": "number", "fiscal_name": "fiscal_name", "fiscal_address": "fiscal_address",
    "document_email": "email",
}  # fmt: skip


# values


def key_of(name: str, value: str | None) -> str | None:
    """A key in the form in which it is compared."""
    text = clean(value)
    if text is None:
        return None
    if name == "email":
        return re.sub(r"^([^@+]+)\+[^@]*@", r"\1@", text.lower())
    if name == "document_number":
        return re.sub("[^a-z0-9]", "", text.lower()) or None
    return text


def loose_key(name: str, key: str | None) -> str | None:
    """A key without zeros in front of its numbers, punctuation and case."""
    if key is None or name == "email":
        return key
    return re.sub(r"(^|[^0-9])0+", r"\1", re.sub("[^a-z0-9]", "", key.lower()))


def identifies(name: str, key: str | None) -> bool:
    if key is None:
        return False
    if name == "email":
        return re.fullmatch("[^@]+@[^@]+", key) is not None and not key.startswith("noemail")
    return re.fullmatch(r"(?i)[-0]*|s/n", key) is None


def words(*names: str | None) -> frozenset[str]:
    plain = unicodedata.normalize("NFD", " ".join(name or "" for name in names).lower())
    return frozenset("".join(one for one in plain if not unicodedata.combining(one)).split())


def number_of(phone: str | None) -> str:
    return "".join(filter(str.isdecimal, phone or "")).lstrip("0")


def same(name: str, ours: str, theirs: str | None) -> bool:
    """Whether a value of the ERP means the same as one of the platform."""
    if ours == theirs:
        return True
    if name in ("erp_code", "login_code", "document_number"):
        return key_of(name, ours) == key_of(name, theirs)
    if name in ("email", "document_email"):
        return (clean(ours) or "").lower() == (clean(theirs) or "").lower()
    if name == "phone":
        return number_of(ours) == number_of(theirs) != ""
    if name == "price_list_id":
        one, other = (_list_number(value) for value in (ours, theirs))
        return one == other
    one, other = (" ".join((value or "").split()) for value in (ours, theirs))
    return one == other or (one.isupper() and one == other.upper())


def _list_number(value: str | None) -> str:
    return re.sub(r"^0*([0-9]+?)([.,]00?)?$", r"\1", clean(value) or "")


# pairs


@dataclass
class Pair:
    """A line and a customer that have a key in common, or that a person has accepted."""

    line: Row
    customer: Row
    document: Row
    agreeing: list[str]
    differences: dict[str, tuple[str, str | None]]
    marks: dict[str, str]
    is_accepted: bool = False
    was_matched: bool = False
    state: str = ""
    reason: str = ""

    @property
    def ids(self) -> tuple[int, str]:
        return self.line["line"], self.customer["customer_id"]

    @property
    def weight(self) -> int:
        return sum(WEIGHTS[name].get(mark, 0) for name, mark in self.marks.items())

    def has(self, names: Iterable[str], *marks: str) -> bool:
        return any(self.marks.get(name) in marks for name in names)

    @property
    def is_unlike(self) -> bool:
        return self.has(NAMES, "different") and not self.has(NAMES, "equal", "near")

    @property
    def is_contradicted(self) -> bool:
        is_other = self.has(["document_number"], "different")
        return is_other and (self.has(NAMES, "different") or not self.has(["erp_code"], "equal"))

    @property
    def may_match(self) -> bool:
        has_key = self.has(KEYS, "equal", "shared")
        return (has_key or self.has(KEYS, "near")) and not self.is_contradicted

    @property
    def matched_by(self) -> str:
        if self.is_accepted:
            return "reviewed"
        by = [
            key
            for marks in (("equal", "shared"), ("near",))
            for key in KEYS
            if self.has([key], *marks)
        ]
        return by[0]

    @property
    def differing(self) -> list[str]:
        """The fields that both sides have and that differ."""
        return [name for name, (_, theirs) in self.differences.items() if clean(theirs)]


def _pair(line: Row, customer: Row, documents: Sequence[Row]) -> Pair:
    """A line and a customer, compared with its document of the same number, else with the default one."""
    own = sorted(documents, key=lambda one: one["position"])
    default = next((one for one in own if one["is_default"]), None)
    default = own[0] if default is None and len(own) == 1 else default or {}
    wanted = key_of("document_number", line["document_number"])
    of_number = [
        one for one in own if wanted and key_of("document_number", one["number"]) == wanted
    ]
    document = default if default in of_number or not of_number else of_number[0]
    agreeing, differences = [], {}
    for name in ERP_FIELDS:
        ours = line[name]
        theirs = document.get(OF_DOCUMENTS[name]) if name in OF_DOCUMENTS else customer[name]
        if ours is None:
            continue
        if same(name, ours, theirs):
            agreeing.append(name)
        else:
            differences[name] = ours, theirs
    pair = Pair(line, customer, document, agreeing, differences, {})
    for name in (*KEYS, "phone", "fiscal_address", "document_email"):
        pair.marks[name] = _mark(pair, name)
    names = [(line[one], customer[one]) for one in ("first_name", "last_name")]
    pair.marks["person"] = _word_mark(*(words(*side) for side in zip(*names, strict=True)))
    firm = document.get("fiscal_name")
    pair.marks["firm"] = _word_mark(words(line["fiscal_name"]), words(firm))
    return pair


def _mark(pair: Pair, name: str) -> str:
    if name in pair.agreeing:
        mark = "equal"
    elif name in pair.differing:
        mark = "different"
    else:
        return ""
    if name == "phone" and len(number_of(pair.line["phone"])) < 6:
        return ""
    if name not in KEYS:
        return mark
    of_platform = pair.document.get("number") if name == "document_number" else pair.customer[name]
    ours, theirs = key_of(name, pair.line[name]), key_of(name, of_platform)
    if not identifies(name, ours):
        return ""
    if ours == theirs:
        return "equal"
    is_other_form = str(ours).isdecimal() != str(theirs).isdecimal()
    if (name == "erp_code" and is_other_form) or not identifies(name, theirs):
        return ""
    return "near" if loose_key(name, ours) == loose_key(name, theirs) else mark


def _word_mark(ours: frozenset[str], theirs: frozenset[str]) -> str:
    if not ours or not theirs:
        return ""
    if ours == theirs:
        return "equal"
    if ours <= theirs or theirs <= ours:
        return "near"
    return "partly" if ours & theirs else "different"


def _keys_of(customer: Row, documents: Sequence[Row], name: str) -> set[str | None]:
    values = [of["number"] for of in documents] if name == "document_number" else [customer[name]]
    return {loose_key(name, key_of(name, value)) for value in values} - {None}


# the match


@dataclass
class Match:
    """A match: its pairs, the lines that count, the customers that are listed, and the numbers of repeated lines."""

    pairs: list[Pair]
    lines: list[Row]
    customers: list[Row]
    repeated: list[int]
    suggested: list[Pair] = field(default_factory=list)
    parted: int = 0
    gone_codes: set[str | None] = field(default_factory=set)
    has_gap: bool = False

    @property
    def customer_of(self) -> dict[int, Pair]:
        return {one.line["line"]: one for one in self.pairs if one.state == "matched"}

    def open_of(self, side: int, key: object) -> list[Pair]:
        """The open pairs of a line (0), or of a customer (1) that is not matched."""
        taken = {one.customer["customer_id"] for one in self.customer_of.values()}
        found = [one for one in self.pairs if one.state == "possible" and one.ids[side] == key]
        return [one for one in found if side == 0 or one.customer["customer_id"] not in taken]

    @property
    def contradicting(self) -> set[int]:
        """The lines that share their code with others."""
        codes = [key_of("erp_code", one["erp_code"]) for one in self.lines]
        loose = [loose_key("erp_code", one) for one in codes]
        return {
            one["line"]
            for one, code in zip(self.lines, codes, strict=True)
            if identifies("erp_code", code) and codes.count(code) > 1 and code is not None and loose
        }


@cache
def match(nights: Nights) -> Match:
    """That of the last night that had a file."""
    night = nights[-1]
    if night.erp is None:
        return match(nights[:-1])
    lines: list[Row] = []
    repeated = []
    for one in night.erp:
        texts = picked(one, ERP_FIELDS)
        if texts in [picked(other, ERP_FIELDS) for other in lines]:
            repeated.append(one["line"])
        else:
            lines.append(one)
    everybody = table_truth.customers(nights)
    customers = sorted(
        (one for one in everybody if not one["is_missing"]), key=lambda one: one["customer_id"]
    )
    documents = grouped(night["customers__documents"], "customer_id")
    names = _first_lines(lines)
    reviews = _in_force(night.reviews, {*names.values()})
    last = _last_pairs(nights)
    pairs = []
    for line in lines:
        for customer in customers:
            own = documents[customer["customer_id"]]
            decided = reviews.get((names.get(line["line"], ""), customer["customer_id"]))
            if decided is False or not (decided or _have_key(line, customer, own)):
                continue
            pair = _pair(line, customer, own)
            pair.is_accepted = decided is True
            pair.was_matched = (names.get(line["line"], ""), customer["customer_id"]) in last
            pairs.append(pair)
    _share(pairs)
    _decide(pairs)
    made = Match(pairs, lines, customers, repeated)
    made.suggested = [*_suggested(made, documents, night)]
    states = {(names.get(one.line["line"], ""), one.customer["customer_id"]): one for one in pairs}
    made.parted = sum(key in states and states[key].state == "possible" for key in last)
    made.gone_codes = {
        key_of("erp_code", one["erp_code"]) for one in everybody if one["is_missing"]
    }
    made.has_gap = not table_truth.is_complete(night, "customers")
    return made


def _in_force(
    reviews: Mapping[tuple[str, str], bool], lines: set[str]
) -> dict[tuple[str, str], bool]:
    """Of several accepted pairs of a line, or of a customer, the last one counts."""
    accepted = [pair for pair, is_accepted in reviews.items() if is_accepted and pair[0] in lines]
    replaced = [
        pair
        for number, pair in enumerate(accepted)
        if any({*pair} & {*later} for later in accepted[number + 1 :])
    ]
    return {pair: decided for pair, decided in reviews.items() if pair not in replaced}


def decided(nights: Nights) -> dict[tuple[str, str], bool]:
    """What a person says of a match: of pairs that are possible, and of matched ones."""
    made = match(nights)
    names = _line_keys(made.lines)
    of_state: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in made.pairs:
        if names[one.line["line"]].startswith("code "):
            of_state[one.state].append((names[one.line["line"]], one.customer["customer_id"]))
    possible, matched = of_state["possible"], of_state["matched"]
    line, customer = possible[0]
    return {
        (line, customer): True,
        (possible[1][0], customer): True,
        possible[2]: True,
        possible[3]: False,
        matched[0]: False,
        matched[1]: False,
        matched[2]: True,
    }


def _have_key(line: Row, customer: Row, documents: Sequence[Row]) -> bool:
    for name in KEYS:
        key = key_of(name, line[name])
        if identifies(name, key) and loose_key(name, key) in _keys_of(customer, documents, name):
            return True
    return False


def _line_keys(lines: Sequence[Row]) -> dict[int, str]:
    """The code of each line, where no other line has it; else none of its own."""
    codes = [key_of("erp_code", one["erp_code"]) for one in lines]
    return {
        one["line"]: f"code {code}"
        if identifies("erp_code", code) and codes.count(code) == 1
        else f"keys {_keys(one)}"
        for one, code in zip(lines, codes, strict=True)
    }


def _first_lines(lines: Sequence[Row]) -> dict[int, str]:
    """What names a line in other files: of several lines of one name the first one has it."""
    names = _line_keys(lines)
    return {
        line: name
        for line, name in names.items()
        if [*names.values()].index(name) == [*names].index(line)
    }


def _keys(line: Row) -> tuple[str | None, ...]:
    return tuple(key_of(name, line[name]) for name in KEYS)


def _last_pairs(nights: Nights) -> set[tuple[str, str]]:
    """The pairs that the last match had, but for those that a person has decided."""
    if not any(night.erp for night in nights[:-1]):
        return set()
    last = match(nights[:-1])
    names = _line_keys(last.lines)
    return {
        (names[one.line["line"]], one.customer["customer_id"])
        for one in last.customer_of.values()
        if not one.is_accepted
    }


def _share(pairs: Sequence[Pair]) -> None:
    """A key that is equal in several pairs of a line or of a customer is shared."""
    for name in KEYS:
        equal = [one for one in pairs if one.has([name], "equal")]
        counts: dict[object, int] = defaultdict(int)
        for one in equal:
            for key in one.ids:
                counts[key] += 1
        for one in equal:
            if any(counts[key] > 1 for key in one.ids):
                one.marks[name] = "shared"


def _decide(pairs: Sequence[Pair]) -> None:
    def of_others(one: Pair, others: Sequence[Pair]) -> bool:
        return not any(one is not other and set(one.ids) & set(other.ids) for other in others)

    matched = [one for one in pairs if one.is_accepted]
    left = [one for one in pairs if not one.is_accepted and of_others(one, matched)]
    while left:
        best = [
            one
            for one in left
            if one.may_match
            and one.weight >= CERTAIN
            and all(
                one is other or one.weight - other.weight >= MARGIN
                for other in left
                if set(one.ids) & set(other.ids)
            )
        ]
        if not best:
            break
        matched += best
        left = [one for one in left if one not in best and of_others(one, best)]
    matched += [one for one in left if one.was_matched and one.may_match and one.weight > 0]
    lines = {one.line["line"] for one in matched}
    customers = {one.customer["customer_id"] for one in matched}
    for one in pairs:
        has_key = one.has(KEYS, "equal", "shared")
        is_near = one.has(KEYS, "near") and one.weight > 0
        is_taken = one.customer["customer_id"] in customers
        if one in matched:
            one.state = "matched"
        elif one.line["line"] in lines or (
            is_taken and not one.has(["erp_code"], "equal", "shared")
        ):
            continue
        elif has_key or is_near:
            one.state = "possible"
    for one in pairs:
        if one.state == "possible":
            one.reason = _reason(
                one, [other for other in pairs if other.state == "possible"], customers
            )


def _reason(one: Pair, still_open: Sequence[Pair], taken: set[str]) -> str:
    lines = sum(other.ids[1] == one.ids[1] for other in still_open) + (one.ids[1] in taken)
    customers = sum(other.ids[0] == one.ids[0] for other in still_open)
    keys = [key for key in KEYS if one.has([key], "different")]
    if one.is_unlike or (one.is_contradicted and one.has(NAMES, "different")):
        keys.append("names")
    if keys and (one.weight < CERTAIN or one.is_contradicted):
        return f"{', '.join(keys)} differ"
    if lines > 1 and customers > 1:
        return "several lines and customers"
    if lines > 1:
        return "several lines"
    return "several customers" if customers > 1 else "the keys are only nearly equal"


def _suggested(made: Match, documents: dict[str, list[Row]], night: Night) -> Iterator[Pair]:
    """Pairs that no key finds: the same end of the phone number, or the same words of a name."""
    shown = {
        one.ids[side] for one in made.pairs if one.state for side in (0, 1)
    } | made.contradicting
    lines = [one for one in made.lines if one["line"] not in shown]
    customers = [one for one in made.customers if one["customer_id"] not in shown]
    ours, theirs = ([_loose_names(one) for one in side] for side in (lines, customers))
    names = _line_keys(made.lines)
    pairs = []
    for line, own in zip(lines, ours, strict=True):
        for customer, other in zip(customers, theirs, strict=True):
            is_found = any(
                one is not None
                and one == of
                and sum(one == row[place] for row in ours) <= 3
                and sum(one == row[place] for row in theirs) <= 3
                for place, (one, of) in enumerate(zip(own, other, strict=True))
            )
            is_decided = (names[line["line"]], customer["customer_id"]) in night.reviews
            if is_found and not is_decided:
                pairs.append(_pair(line, customer, documents[customer["customer_id"]]))
    _share(pairs)
    for one in pairs:
        is_best = all(
            one.weight >= other.weight for other in pairs if set(one.ids) & set(other.ids)
        )
        if is_best and one.weight >= SUGGESTED and not one.is_contradicted:
            yield one


def _loose_names(row: Row) -> tuple[str | None, frozenset[str] | None]:
    digits = "".join(filter(str.isdecimal, row["phone"] or ""))
    name = words(row["first_name"], row["last_name"])
    return (digits[-8:] if len(digits) >= 8 else None), (name if len(name) > 1 else None)


# the tables


def erp_customers(nights: Nights) -> list[Row]:
    made = match(nights)
    matched = made.customer_of
    rows = []
    for line in made.lines:
        pair = matched.get(line["line"])
        rows.append(
            _outcome(made, 0, line["line"], pair)
            | {
                "line": line["line"],
                "erp_code": line["erp_code"] or "",
                "customer_id": pair.customer["customer_id"] if pair else None,
                "difference_count": len(pair.differences) if pair else None,
                "name": line["fiscal_name"] or _full_name(line),
            }
        )
    ids = {pair.customer["customer_id"] for pair in matched.values()}
    for customer in made.customers:
        if customer["customer_id"] not in ids:
            rows.append(
                _outcome(made, 1, customer["customer_id"], None)
                | {"line": None, "difference_count": None, "name": customer["full_name"]}
                | picked(customer, "erp_code customer_id")
            )
    return rows


def _full_name(line: Row) -> str | None:
    return " ".join(filter(None, map(clean, (line["first_name"], line["last_name"])))) or None


def _outcome(made: Match, side: int, key: object, pair: Pair | None) -> Row:
    row: Row = {"matched_by": None, "reason": None, "members": None, "member_lines": None}
    if pair is not None:
        return row | {"status": "matched", "matched_by": pair.matched_by}
    found = made.open_of(side, key)
    if found:
        best = max(found, key=lambda one: one.weight)
        members = ", ".join(str(one.ids[1 - side]) for one in found)
        named = "members" if side == 0 else "member_lines"
        row |= {"status": "ambiguous", "matched_by": best.matched_by, "reason": best.reason}
        return row | {named: members}
    if side == 0 and key in made.contradicting:
        return row | {"status": "ambiguous", "matched_by": "erp_code", "reason": "several lines"}
    return row | {"status": "only_in_erp" if side == 0 else "only_in_platform"}


def erp_pairs(nights: Nights) -> list[Row]:
    made = match(nights)
    names = _line_keys(made.lines)
    shown = [(one, one.state) for one in made.pairs if one.state]
    return [
        {
            "line": one.line["line"],
            "erp_code": one.line["erp_code"] or "",
            "customer_id": one.customer["customer_id"],
            "status": state,
            "matched_by": _what_is_same(one) if state == "suggested" else one.matched_by,
            "weight": one.weight,
            "agreeing": ", ".join(one.agreeing),
            "differing": ", ".join(one.differing),
            "differences": ", ".join(
                f"{name}: {one.differences[name][0]} / {one.differences[name][1]}"
                for name in one.differing
            )
            or None,
            "line_key": names[one.line["line"]],
        }
        for one, state in [*shown, *((one, "suggested") for one in made.suggested)]
    ]


def _what_is_same(one: Pair) -> str:
    holds = {
        "name": one.has(NAMES, "equal", "near") and not one.is_unlike,
        "phone": one.has(["phone"], "equal"),
        "fiscal_address": one.has(["fiscal_address"], "equal"),
    }
    return ", ".join(name for name, is_so in holds.items() if is_so) or "other"


def erp_differences(nights: Nights) -> list[Row]:
    return [
        {
            "entity": "customers",
            "erp_code": one.line["erp_code"] or "",
            "platform_id": one.customer["customer_id"],
            "field": name,
            "erp_value": ours,
            "platform_value": theirs,
        }
        for one in match(nights).customer_of.values()
        for name, (ours, theirs) in one.differences.items()
    ]


# findings and totals

Found = tuple[str, str, str]
"""Entity, rule, and the record; of the table as a whole a `*`."""


def match_findings(nights: Nights) -> list[Found]:
    made = match(nights)
    if nights[-1].erp is None:
        return match_findings(nights[:-1])
    found = [("erp_customers", rule, str(line)) for rule, line in _of_lines(made)]
    end = nights[-1].erp[-1]["line"]
    found += [("erp_customers", "line_refused", str(end + more)) for more in range(1, REFUSED + 1)]
    found += [
        ("customers", "erp_ambiguous", row["customer_id"])
        for row in erp_customers(nights)
        if row["line"] is None and row["status"] == "ambiguous"
    ]
    rules = {"pairs_parted": made.parted, "customers_unproven": made.has_gap}
    return [*found, *(("erp_customers", rule, "*") for rule, is_so in rules.items() if is_so)]


def _of_lines(made: Match) -> Iterator[tuple[str, int]]:
    matched = made.customer_of
    outcomes = {
        one["line"]: _outcome(made, 0, one["line"], matched.get(one["line"]))["status"]
        for one in made.lines
    }
    for name in KEYS:
        keys = {one["line"]: key_of(name, one[name]) for one in made.lines}
        usable = {line: key for line, key in keys.items() if identifies(name, key)}
        for line, key in usable.items():
            if [*usable.values()].count(key) > 1:
                yield f"{name}_duplicate", line
        for line, key in keys.items():
            if key is not None and line not in usable and line not in matched:
                yield "key_stand_in", line
    for one in made.lines:
        line = one["line"]
        code = key_of("erp_code", one["erp_code"])
        has_key = any(identifies(name, key_of(name, one[name])) for name in KEYS)
        is_left = outcomes[line] == "only_in_erp"
        pair = matched.get(line)
        holds = {
            "erp_code_missing": code is None,
            "key_missing": is_left and not has_key,
            "match_ambiguous": outcomes[line] == "ambiguous",
            "customer_missing": is_left and code is not None and code in made.gone_codes,
        }
        if pair is not None and not pair.is_accepted:
            marks = [*pair.marks.values()]
            agreeing = sum(mark in ("equal", "shared", "near") for mark in marks)
            is_alone = agreeing < 2 and marks.count("different") > 1
            holds["match_doubtful"] = pair.is_unlike or is_alone
            holds["erp_code_contradicts"] = pair.has(["erp_code"], "near", "different")
        yield from ((rule, line) for rule, is_so in holds.items() if is_so)
    yield from (("line_repeated", line) for line in made.repeated)


def match_totals(nights: Nights) -> dict[str, int]:
    made = match(nights)
    rows = erp_customers(nights)

    def count(status: str, side: str) -> int:
        return sum(row["status"] == status and row[side] is not None for row in rows)

    return {
        "erp_read": len(nights[-1].erp or ()),
        "erp_repeated": len(made.repeated),
        "matched": count("matched", "line"),
        "only_in_erp": count("only_in_erp", "line"),
        "ambiguous_in_erp": count("ambiguous", "line"),
        "only_in_platform": count("only_in_platform", "customer_id"),
        "ambiguous_in_platform": count("ambiguous", "customer_id"),
        "platform": len(made.customers),
        "refused": REFUSED,
        "skipped": 0,
    }


TRUTH: dict[str, Callable[[Nights], list[Row]]] = {
    f"reconciled.{one.__name__}": one for one in (erp_customers, erp_pairs, erp_differences)
}
"""What each table has to have."""
