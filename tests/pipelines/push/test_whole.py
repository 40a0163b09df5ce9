"""From a file of the ERP's to the platform, with plans as `orderbridge plan` makes them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pipelines.bridge import command
from tests.pipelines.push.plans import Place, outcomes, place

CUSTOMERS = """Código;Nombre;Correo;Clave
00038;Ñandú;nandu@example.test;planted-pass-1
00039;Ana;ana@example.test;planted-pass-2
00040;Eva;;planted-pass-3
00041;Luz;luz@example.test;planted;"pass" 4
"""
CUSTOMERS = CUSTOMERS.replace('planted;"pass" 4', '"planted;""pass"" 4"')
MAPPING = """kind = "customers"
[columns]
"Código" = "erpCode"
"Nombre" = "firstName"
"Correo" = "email"
"Clave" = "password"
"""
VARIANTS = "productId;variantId;sku;price;stock\n17;1003;A-1;19.367,25;5\n17;1004;B-2;7,50;6\n"


def planned(made: Place, *arguments: str) -> tuple[Path, str]:
    done = command("plan", *arguments, env=made.environment(), cwd=made.folder)
    assert done.code in (0, 5), done.said
    return next(path for path in made.folder.glob("plan-*") if path.is_dir()), done.said


def test_passwords_of_a_column_reach_the_platform_and_nothing_else(tmp_path: Path) -> None:
    with place(tmp_path) as made:
        env = made.environment()
        (tmp_path / "clientes.csv").write_text(CUSTOMERS, "utf-8")
        (tmp_path / "clientes.toml").write_text(MAPPING, "utf-8")
        assert command("pull", "customers", env=env, cwd=tmp_path).code == 0
        plan, said = planned(made, "customers", "clientes.csv", "--mapping", "clientes.toml")
        pushed = command("push", str(plan), "--yes", env=env, cwd=tmp_path)
        assert pushed.code == 5, pushed.said
        sent = [(body["erpCode"], body["firstName"], body["password"]) for body in made.platform.state.customer_inputs]
        assert sent == [
            ("00038", "Ñandú", "planted-pass-1"),
            ("00039", "Ana", "planted-pass-2"),
            ("00041", "Luz", 'planted;"pass" 4'),
        ]
        assert outcomes(plan) == {
            "2": "confirmed.confirmed",
            "3": "confirmed.confirmed",
            "4": "rejected.rejected",
            "5": "confirmed.confirmed",
        }
        assert command("pull", "customers", env=env, cwd=tmp_path).code == 0
        verified = command("verify", str(plan), env=env, cwd=tmp_path)
        assert (verified.code, "3  on the platform as sent" in verified.out) == (0, True), verified.said
        holding = [p.name for p in tmp_path.rglob("*") if p.is_file() and b"planted" in p.read_bytes()]
        assert holding == ["clientes.csv"]
        assert "planted" not in said + pushed.said + verified.said


def test_prices_arrive_exactly_and_a_second_plan_has_nothing_to_send(tmp_path: Path) -> None:
    with place(tmp_path) as made:
        env = made.environment()
        (tmp_path / "articulos.csv").write_text(VARIANTS, "utf-8")
        plan, _ = planned(made, "variants", "articulos.csv", "--out", "plan-1")
        pushed = command("push", str(plan), "--yes", env=env, cwd=tmp_path)
        assert pushed.code == 0, pushed.said
        fields = {ids: kept.fields for ids, kept in made.platform.state.variants.items()}
        assert fields == {
            (17, 1003): {"sku": "A-1", "price": 19367.25, "stock": 5},
            (17, 1004): {"sku": "B-2", "price": 7.5, "stock": 6},
        }
        requests = made.platform.state.requests
        done = command("plan", "variants", "articulos.csv", "--out", "plan-2", env=env, cwd=tmp_path)
        assert done.code == 0, done.said
        pushed = command("push", "plan-2", "--yes", env=env, cwd=tmp_path)
        assert pushed.code == 0, pushed.said
        assert re.search(r"2\s+left out: as last confirmed", pushed.out)
        assert made.platform.state.requests == requests


def test_a_price_that_is_changed_back_or_was_rejected_is_sent_again(tmp_path: Path) -> None:
    with place(tmp_path) as made:
        env = made.environment(SOURCES__LEGACY__PRICE_SEMANTICS="set")
        for number, (price, code, kept) in enumerate((("5,00", 0, 5), ("6,00", 0, 6), ("5,00", 5, 6), ("5,00", 0, 5))):
            file = tmp_path / f"precio-{price[0]}.csv"
            file.write_text(f"productId;variantId;price\n17;1003;{price}\n", "utf-8")
            done = command("plan", "variants", file.name, "--out", f"plan-{number}", env=env, cwd=tmp_path)
            assert done.code == 0, done.said
            made.platform.set_faults({"echoed_key": float(code == 5)})
            pushed = command("push", f"plan-{number}", "--yes", env=env, cwd=tmp_path)
            assert pushed.code == code, pushed.said
            assert made.platform.state.variants[17, 1003].fields == {"price": kept}
