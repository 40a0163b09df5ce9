"""How dates are written: regular expressions (RE2, as Arrow has them) with a group for each part of a date.

Groups: `year`, `month`, `day` (with a suffix for another place), `first` and `second_number` where the order
is open, `month_name`, `hour`, `minute`, `second`, `fraction`, `half` (of the day: A or P), `time` (all of it), `zone`
(all of it), `sign`, `off_hour`, `off_minute`. The functions read a group of all texts that match.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.frames import Bools, Ints

_CLOCK: Final = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
)
_HALF: Final = r"(?: ?(?P<half>[AaPp])\.? ?[Mm]\.?)?"
_ZONE: Final = (
    r"(?P<zone> ?(?:[Zz]|(?:UTC|GMT)?(?P<sign>[+-])(?P<off_hour>\d\d)(?::?(?P<off_minute>\d\d))?|UTC|GMT)"
    r"(?: ?\([^()]*\))?)?"
)
_TIME: Final = rf"(?P<time>(?:,? +|T|,? ?-? (?:at|a las) +){_CLOCK}{_HALF}{_ZONE})?"
YEAR_FIRST: Final = (
    r"^(?P<year>\d{4})(?:-(?P<month>\d\d)-(?P<day>\d\d)|(?P<month_b>\d\d)(?P<day_b>\d\d)"
    r"|[/.](?P<month_c>\d{1,2})[/.](?P<day_c>\d{1,2}))"
    r"(?P<time>[Tt ](?P<hour>\d\d):?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    rf"{_ZONE})?$"
)
NUMERIC: Final = (
    r"^(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second_number>\d{1,2})(?P<mark_b>[/.-])(?P<year>\d{4})"
    + _TIME
    + "$"
)
PLAIN_OFFSET: Final = r"(?:Z|[+-](?:0\d|1[0-5])(?::?\d\d)?)$"
PLAIN_ISO: Final = rf"^\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{{1,6}})?)?(?:$|{PLAIN_OFFSET})"
"""What most APIs write, without groups: no form of `YEAR_FIRST` takes less time."""
_MONTHS: Final = (
    ("jan", "january", "ene", "enero"),
    ("feb", "february", "febrero"),
    ("mar", "march", "marzo"),
    ("apr", "april", "abr", "abril"),
    ("may", "mayo"),
    ("jun", "june", "junio"),
    ("jul", "july", "julio"),
    ("aug", "august", "ago", "agosto"),
    ("sep", "sept", "september", "septiembre", "set", "setiembre"),
    ("oct", "october", "octubre"),
    ("nov", "november", "noviembre"),
    ("dec", "december", "dic", "diciembre"),
)
MONTH_NAMES: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_MONTH: Final = rf"(?P<month_name>{'|'.join(sorted(MONTH_NAMES, key=len, reverse=True))})\.?"
# Latin ranges: Arrow compiles a pattern at each call, and Unicode's class of letters, ten times over, takes it 10 ms.
_WEEKDAY: Final = r"^(?:[A-Za-zÀ-ÖØ-öø-ɏ]{2,10}\.?,? +)?"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th|º)?"
DAY_MONTH_YEAR: Final = (
    rf"(?i){_WEEKDAY}{_DAY}(?:[ /-]| de ){_MONTH}(?:,? |[/-]| del? )(?P<year>\d{{4}}){_TIME}$"
)
MONTH_DAY_YEAR: Final = rf"(?i){_WEEKDAY}{_MONTH}[ -]{_DAY}(?:,? |-)(?P<year>\d{{4}}){_TIME}$"
DIGITS: Final = r"^(?P<whole>\d{10,19})(?:\.(?P<fraction>\d{1,9}))?$"
STAMP: Final = (
    r"^(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)$"
)
_DAY_HOUR: Final = r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])"
SHORT_STAMP: Final = rf"^(?:\d\d{_DAY_HOUR}[0-5]\d|(?:19|2[01])\d\d{_DAY_HOUR})$"
"""`YYMMDDhhmm` or `YYYYMMDDhh`: 0.6 % of the seconds since 1970 look like that by chance."""


def has_part(fields: pa.StructArray, name: str) -> bool:
    """Whether the form has this part."""
    return bool(fields.type.get_field_index(name) >= 0)


def part_numbers(fields: pa.StructArray, name: str) -> Ints:
    """A part as a number; 0 where it is not written, or is no part of the form."""
    if not has_part(fields, name):
        return np.zeros(len(fields), np.int64)
    return _numbers(fields.field(name))


def _numbers(digits: pa.Array) -> Ints:
    written = pc.if_else(pc.equal(pc.binary_length(digits), 0), "0", digits)
    numbers: Ints = pc.cast(pc.fill_null(written, "0"), pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def microseconds(fraction: pa.Array) -> Ints:
    """The digits after the point of seconds as microseconds."""
    return _numbers(pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(fraction, ""), 6, "0"), 0, 6))


def is_written(fields: pa.StructArray, name: str, value: str | None = None) -> Bools:
    """Whether a part is written; with a value, whether it is that."""
    part = fields.field(name)
    flags = pc.greater(pc.binary_length(part), 0) if value is None else pc.equal(part, value)
    result: Bools = pc.fill_null(flags, False).to_numpy(zero_copy_only=False)
    return result
