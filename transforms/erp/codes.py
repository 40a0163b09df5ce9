"""How the codes of the ERP's file and those of the platform are written, and what the two have in common.

In: the codes of both sides. Out: questions where another form would make more of them equal: whether a prefix
(`C-000006` and `000006`) or zeros in front (`000006` and `6`) can be ignored. It is never assumed: a shop may have both
codes, for two customers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from orderbridge.transforms.chance import Share
from orderbridge.transforms.erp.compare import Pairs
from orderbridge.transforms.erp.match_keys import AS_WRITTEN, MATCH_KEYS, CodeForm
from orderbridge.transforms.frames import Bools
from orderbridge.transforms.questions import Answer, Choice, Evidence, Question, question

CODE_PREFIX: Final = "reconcile.erp_code_prefix"
CODE_ZEROS: Final = "reconcile.erp_code_zeros"
_ZEROS_SHOWN: Final = "zeros in front"
_ASKED_FROM: Final = 3
"""So many codes make a question."""
_DECISIVE_MIN: Final = 0.9
_FORM: Final = r"^(?P<prefix>[^0-9]*)(?P<number>[0-9]+)$"


class OtherForms(NamedTuple):
    """Codes that are equal in another form.

    Attributes:
        lines: how many lines have one.
        example: one of the file and one of the platform.
        agreement: of the pairs whose line or customer has another key in common with someone, how many have it in
            common with each other.
    """

    lines: int
    example: str
    agreement: Share


def unlike_codes(ours: pd.Series[str], theirs: pd.Series[str]) -> pd.DataFrame:
    """Pairs of codes, by row numbers, that nobody of the other side has, and that are equal but for what is in front.

    `ours` are the normalized codes of lines, by row number; `theirs` those of customers.
    """
    of_lines = _split(ours[~ours.isin(theirs)])
    of_customers = _split(theirs[~theirs.isin(ours)])
    return of_lines.merge(of_customers, on="bare", suffixes=("", "_theirs"))


def other_forms(pairs: pd.DataFrame, others: Pairs, customers: int) -> dict[str, OtherForms]:
    """By prefix, and for zeros in front: the codes of lines and customers that are equal without it, and not with it.

    Args:
        pairs: see `unlike_codes`.
        others: the pairs that have another key in common.
        customers: how many there are.
    """
    has_one_prefix = (pairs["prefix"] == "") != (pairs["prefix_theirs"] == "")
    has_zeros = pairs["number"] != pairs["number_theirs"]
    is_same_prefix = pairs["prefix"] == pairs["prefix_theirs"]
    prefixes = (pairs["prefix"] + pairs["prefix_theirs"])[has_one_prefix]
    numbers = pairs["row"] * customers + pairs["row_theirs"]
    agrees = numbers.isin(others.line * customers + others.customer).to_numpy(np.bool_)
    is_known = pairs["row"].isin(others.line) | pairs["row_theirs"].isin(others.customer)
    known = is_known.to_numpy(np.bool_)
    found = {
        str(prefix): _other_form(pairs.loc[rows.index], agrees[rows.index], known[rows.index])
        for prefix, rows in prefixes.groupby(prefixes)
    }
    zeros = pairs.index[has_zeros & (is_same_prefix | has_one_prefix)]
    found[_ZEROS_SHOWN] = _other_form(pairs.loc[zeros], agrees[zeros], known[zeros])
    return found


def _split(codes: pd.Series[str]) -> pd.DataFrame:
    """`prefix` and `number` of codes that have this form, `bare` without zeros in front, `code` and `row`.

    Codes that identify nobody are left out.
    """
    codes = codes[MATCH_KEYS["erp_code"].identifies(codes)]
    parts = codes.str.extract(_FORM).assign(code=codes, row=codes.index.to_numpy(np.int64))
    parts = parts[parts["number"].notna()]
    return parts.assign(bare=parts["number"].str.lstrip("0"))


def _other_form(pairs: pd.DataFrame, agrees: Bools, known: Bools) -> OtherForms:
    first = next(iter(pairs.itertuples()), None)
    example = f"{first.code} and {first.code_theirs}" if first is not None else ""
    return OtherForms(pairs["row"].nunique(), example, Share(int(agrees.sum()), int(known.sum())))


def code_questions(
    forms: Mapping[str, OtherForms], form: CodeForm, answers: Mapping[str, Answer]
) -> list[Question]:
    """The questions which prefix, and whether zeros, can be ignored; none where too few codes would be equal.

    Args:
        forms: see `other_forms`, of codes as they are written.
        form: that is in force.
        answers: in force.
    """
    asked = {name: of for name, of in forms.items() if of.lines >= _ASKED_FROM}
    zeros = asked.pop(_ZEROS_SHOWN, None)
    made = []
    if asked or form.prefix is not None:
        made.append(_prefix_question(asked, answers))
    if zeros is not None or form.zeros is not None:
        made.append(_zeros_question(zeros, answers))
    return made


def _prefix_question(forms: Mapping[str, OtherForms], answers: Mapping[str, Answer]) -> Question:
    """Which prefix can be ignored, the one of most lines first."""
    prefixes = sorted(forms, key=lambda name: -forms[name].lines)
    choices = [Choice(name, _evidence(forms[name]), forms[name].agreement) for name in prefixes]
    choices.append(Choice(AS_WRITTEN, "the prefix is part of the code"))
    is_decisive = bool(prefixes) and _is_decisive(forms[prefixes[0]])
    return _question(CODE_PREFIX, choices, prefixes[0] if is_decisive else None, answers)


def _zeros_question(zeros: OtherForms | None, answers: Mapping[str, Answer]) -> Question:
    """Whether zeros in front can be ignored; `zeros` are the codes that would then be equal."""
    ignore = Choice("ignore", "")
    if zeros is not None:
        ignore = Choice("ignore", _evidence(zeros), zeros.agreement)
    count = Choice("count", "zeros in front make another code")
    is_decisive = zeros is not None and _is_decisive(zeros)
    return _question(CODE_ZEROS, [ignore, count], "ignore" if is_decisive else None, answers)


def _question(
    key: str, choices: list[Choice], proposal: str | None, answers: Mapping[str, Answer]
) -> Question:
    evidence = Evidence(
        key,
        tuple(choices),
        proposal,
        reason="a code is never taken for another one by itself",
        is_only_proposed=True,
    )
    return question(evidence, answers.get(key))


def _is_decisive(forms: OtherForms) -> bool:
    return forms.agreement.rows >= _ASKED_FROM and forms.agreement.part >= _DECISIVE_MIN


def _evidence(forms: OtherForms) -> str:
    hits, rows = forms.agreement
    return (
        f"{forms.lines} codes of the file are on the platform without it, such as {forms.example}; "
        f"of {rows} whose line or customer has another key in common with someone, {hits} have it with each other"
    )
