"""Secrets in texts of the platform: masked whole, in parts and in each encoding. Words that look like them are not."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderbridge.sources.http.masking import MASK, PART_MIN, Masker

KEY: Final = "brand_test_9fQ2-xLmP7+vT3/zRk8WcY5=="
SECRET: Final = KEY.removeprefix("brand_test_")
WORDS: Final = "my-production-key-4f8a0b6c2d91e7"

FORMS: Final[dict[str, Callable[[str], str]]] = {
    "plain": str,
    "capitals": str.upper,
    "reversed": lambda text: text[::-1],
    "percent": lambda text: quote(text, safe=""),
    "percent of each byte": lambda text: "".join(f"%{ord(char):02x}" for char in text),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps(text).replace("/", "\\/")),
    "unicode": lambda text: "".join(f"\\u{ord(char):04X}" for char in text),
    "unicode in JSON": lambda text: json.dumps("".join(f"\\u{ord(char):04x}" for char in text)),
    "hex escapes": lambda text: "".join(f"\\x{ord(char):02x}" for char in text),
    "entities": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of a header": lambda text: base64.b64encode(f"Bearer {text}".encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(f"k={text}".encode()).decode(),
    "base64, reversed text": lambda text: base64.b64encode(text[::-1].encode()).decode(),
    "hex": lambda text: text.encode().hex(),
}
PARTS: Final = {
    "whole": KEY,
    "without its beginning": KEY[14:],
    "its beginning": KEY[:-12],
    "its middle": SECRET[8 : 8 + PART_MIN],
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("form", FORMS)
def test_each_part_of_a_key_is_masked_in_each_form(form: str, part: str) -> None:
    shown = FORMS[form](PARTS[part])
    text = Masker([KEY]).mask(f"before {shown} after")
    assert (text.startswith("before "), text.endswith(" after"), MASK in text) == (True, True, True)
    encodes_bytes = form.startswith(("base64", "hex")) and form != "hex escapes"
    least = 2 * PART_MIN if encodes_bytes else PART_MIN
    left = {text[start : start + least] for start in range(len(text) - least)}
    assert not [one for one in left if one in shown and one in FORMS[form](SECRET)]


@pytest.mark.parametrize(
    "text",
    [
        "the environment is production, keys begin with brand_test_ or brand_live_",
        "brand_test_",
        "PRODUCTION orders of my-shop, key 4f8a",
        f"ends in {SECRET[-PART_MIN + 1 :]}",
        "authentication failed: INVALID_API_KEY (401)",
        "abc1234 was not found, nor was xabc12",
        "%C3%B1 \\u00f1 &amp; %zz \\x \\ud83d",
    ],
)
def test_harmless_words_stay(text: str) -> None:
    assert Masker([KEY, WORDS, "abc12"]).mask(text) == text


def test_a_key_of_words_is_masked_with_what_is_around_them() -> None:
    masker = Masker([WORDS, "planted-production"])
    assert WORDS[9:] not in masker.mask(f"key {WORDS}")
    assert masker.mask("of planted-production") == f"of {MASK}"
    assert masker.mask("production") == MASK  # of a key of words, each word is a part


@pytest.mark.parametrize("text", ["abc12", "(ABC12)", "key=abc12&x", "\\u0061bc12", "%61bc12"])
def test_a_short_secret_is_masked_as_a_word(text: str) -> None:
    assert "bc12" not in Masker(["abc12"]).mask(text).lower()


def test_letters_beyond_ascii_are_found_where_they_are_escaped() -> None:
    masker = Masker(["contraseña-Ñandú-🔑-4711"])
    for form in (
        "contraseña-Ñandú-🔑-4711",
        quote("contraseña-Ñandú-🔑-4711"),
        json.dumps("contraseña-Ñandú-🔑-4711"),
    ):
        assert masker.mask(f"İ <{form.strip(chr(34))}> ñ") == f"İ <{MASK}> ñ"


@given(
    st.text(string.ascii_letters + string.digits, min_size=PART_MIN, max_size=40),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_text_around_a_secret_stays(secret: str, before: str, after: str) -> None:
    masked = Masker([secret]).mask(f"{before} {secret} {after}")
    assert secret.lower() not in masked.lower()
    if MASK not in Masker([secret]).mask(f"{before} {after}"):
        assert masked == f"{before} {MASK} {after}"
