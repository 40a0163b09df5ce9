"""Answers are the last place of a setting, belong to a source, and survive edits by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import (
    ANSWERS,
    DataSource,
    StoredAnswer,
    configured_source,
    known_secrets,
    legacy_settings,
    read_answers,
    reconcile_settings,
    set_values,
    write_answers,
)

AT = datetime(2026, 11, 29, 18, tzinfo=UTC)
KEY = "brand_test_PLANTED-SECRET-77"
LEGACY = (
    f'[sources.legacy]\nbase_url = "https://A.example/"\napi_key = "{KEY}"\n'
    'environment = "sandbox"\n'
)
HERE = DataSource("a.example", None, "sandbox")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".dlt").mkdir()
    (tmp_path / ".dlt" / "secrets.toml").write_text(LEGACY, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(value: object, why: str = "") -> StoredAnswer:
    return StoredAnswer(value, "maria", AT, why)


def written(root: Path) -> str:
    return (root / ".dlt" / "answers.toml").read_text("utf-8")


def test_an_answer_comes_after_every_place_of_settings(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_answers({"reconcile.order_total": answer("answered")}, configured_source())
    assert reconcile_settings().orders.total == "answered"
    assert list(set_values())[-1] == f"reconcile.order_total = answered ({ANSWERS})"
    config = root / ".dlt" / "config.toml"
    config.write_text('[reconcile]\norder_total = "configured"\n', "utf-8")
    assert reconcile_settings().orders.total == "configured"
    monkeypatch.setenv("RECONCILE__ORDER_TOTAL", "of the environment")
    assert reconcile_settings().orders.total == "of the environment"


def test_an_answer_has_the_check_of_its_setting(root: Path) -> None:
    write_answers({"sources.legacy.login_mode": answer("mail")}, HERE)
    with pytest.raises(UsageError, match=r"login_mode .* is not one of email, code"):
        legacy_settings()


def test_answers_about_another_source_do_not_count_until_they_are_confirmed(root: Path) -> None:
    given = {
        "sources.legacy.login_mode": answer("code"),
        "reconcile.timezone": answer("Europe/Madrid", "head office"),
    }
    write_answers(given, configured_source())
    assert legacy_settings().login_mode == "code"
    secrets = root / ".dlt" / "secrets.toml"
    secrets.write_text(LEGACY.replace("A.example", "b.example"), "utf-8")
    assert legacy_settings().login_mode is None
    assert reconcile_settings().timezone is None
    there = configured_source()
    seen = read_answers().seen_from(there)
    assert [one.is_confirmed for one in seen.values()] == [False, False]

    write_answers({"sources.legacy.login_mode": answer("email")}, there)
    assert legacy_settings().login_mode == "email"
    assert reconcile_settings().timezone is None
    assert read_answers().about.legacy_host == "b.example"
    kept = read_answers().answers["reconcile.timezone"]
    assert (kept.value, kept.why, kept.is_confirmed) == ("Europe/Madrid", "head office", False)


def test_what_a_source_does_not_know_parts_no_answers(root: Path) -> None:
    write_answers({"reconcile.timezone": answer("Europe/Madrid")}, HERE)
    write_answers({}, DataSource(None, "v1.example", None, "org-1"))
    assert reconcile_settings().timezone == "Europe/Madrid"
    assert read_answers().about == DataSource("a.example", "v1.example", "sandbox", "org-1")


def test_comments_and_other_answers_stay_where_one_is_withdrawn(root: Path) -> None:
    given = {"reconcile.timezone": answer("Europe/Madrid"), "reconcile.country": answer("ES")}
    write_answers(given, HERE)
    path = root / ".dlt" / "answers.toml"
    path.write_text(written(root).replace('value = "ES"', 'value = "ES"  # ours'))
    write_answers({"reconcile.timezone": None}, HERE)
    assert 'value = "ES"  # ours' in written(root)
    assert list(read_answers().answers) == ["reconcile.country"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[reconcile.order_totl]\nvalue = "x"', "Did you mean `reconcile.order_total`"),
        ('[warehouse.path]\nvalue = "x"', "`warehouse` is not a question"),
        ('reconcile = "x"', "`reconcile` is not a question"),
        ('[reconcile.order_total]\nvalue = "x"', "orderbridge answer reconcile.order_total --with"),
        ('[reconcile.order_total]\nvalue = "x"\nby = " "\nat = 2026-01-01', "order_total"),
        ("[about]\nlegacy_host = 1", "[about]"),
        ("x = ", "not valid TOML"),
    ],
)
def test_a_wrong_entry_is_named_and_hides_no_secret(root: Path, text: str, words: str) -> None:
    (root / ".dlt" / "answers.toml").write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        reconcile_settings()
    assert words in str(caught.value)
    assert known_secrets() == (KEY,)


def test_an_entry_that_is_wrong_can_be_replaced_and_withdrawn(root: Path) -> None:
    path = root / ".dlt" / "answers.toml"
    for change in (answer("ES"), None):
        path.write_text('[reconcile.country]\nvalue = "ES"\nby = ""\nat = 2026-01-01', "utf-8")
        write_answers({"reconcile.country": change}, HERE)
        assert reconcile_settings().country == (None if change is None else "ES")
