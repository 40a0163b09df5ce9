"""The class of a status: words of eight languages propose, what says nothing is asked, and an answer decides."""

from __future__ import annotations

import pyarrow as pa
import pytest

from orderbridge.transforms.frames import column
from orderbridge.transforms.orders.cancelled import Cancellation
from orderbridge.transforms.orders.statuses import (
    STATUSES,
    StatusEvidence,
    class_of_word,
    classes_in_force,
    proposed_classes,
    region_or_status,
    status_columns,
    status_question,
)
from orderbridge.transforms.questions import ASSUMPTION, Answer, Question, question, table_of

CLASSES = {
    "sale": (
        "paid", "Delivered", "completed", "PROCESSING", "wc-completed", "sale", "done", "invoiced",
        "PARTIALLY_FULFILLED", "Unshipped", "Awaiting Fulfillment", "Entregado", "pendiente de envío", "pago",
        "ready-for-handling", "Concluído", "Pagamento aprovado", "Payée", "Expédié", "En cours", "bezahlt",
        "Versandbereit", "In Bearbeitung", "pagato",
        "In attesa di spedizione", "spedito", "betaald", "Invoice", "Boleta",
        "refunded_partially", "Verzonden", "lliurat", "En procés",
        "partially refunded", "window-to-cancel", "CANCELLATION_REJECTED", "teilweise erstattet",
        "On backorder accepted, payment received",
    ),
    "open": (
        "pending", "pending_payment", "draft", "checkout-draft", "auto-draft", "Quotation", "cart",
        "awaiting payment", "not paid", "UNCONFIRMED", "payment_required", "payment_in_process", "Incomplete",
        "Pendiente de pago",
        "presupuesto", "En espera de pago", "Rascunho", "Aguardando pagamento", "não pago",
        "En attente de paiement", "devis", "Warenkorb",
        "Zahlung ausstehend", "bozza", "In attesa di pagamento", "offerte", "Wachtend op betaling", "esborrany",
    ),
    "cancelled": (
        "CANCELLED", "canceled", "failed", "expired", "abandoned", "fraud", "trash", "Eliminado",
        "Payment error", "Pago rechazado", "anulado", "recusado", "annulée", "Échouée", "Storniert", "abgebrochen",
        "annullato", "scaduto",
        "geannuleerd", "mislukt", "cancel·lada", "voided", "declined", "Cancelled - refund pending",
    ),
    "refunded": (
        "refunded", "remboursée", "erstattet", "Rückerstattet", "rimborsato", "devolvido", "reembolsado", "reversed",
        "returned", "terugbetaald", "chargeback",
    ),
    "test": ("test", "Testbestellung", "prueba"),
    None: ("1", "7", "SP", "XYZ", "on-hold", "sent", "closed", "open", "new", "archived",
        "failed delivery", "Não entregue", "no entregado", "not delivered", "nicht geliefert", "non livré",
        "parcialmente pagado", "refund pending", "cancelRequested", "cancellation-requested",
        "esperando devolución", "En espera de reembolso", "En attente de remboursement", "Wartet auf Rückerstattung",
        "In attesa di rimborso", "aguardando estorno", "Wacht op terugbetaling"),
}  # fmt: skip


@pytest.mark.parametrize("expected", CLASSES)
def test_words_of_eight_languages_propose_a_class(expected: str | None) -> None:
    assert [word for word in CLASSES[expected] if class_of_word(word) != expected] == []


def test_words_under_a_name_of_regions_are_asked_but_for_codes_of_regions() -> None:
    for words, asked in (({"verde", "rojo"}, ["estado"]), ({"SP", "RJ"}, []), ({"paid"}, [])):
        assert region_or_status(["estado"], {"estado": words}) == asked


def test_the_region_of_an_address_is_no_status() -> None:
    regions = {"state": {"SP", "RJ", "MG"}, "estado": {"Lima", "Cusco"}}
    for name, words in regions.items():
        assert status_columns([name], {name: words}) == []
        assert status_columns(["status"], {"status": words}) == ["status"]
    for words in ({"SP", "paid"}, {"1", "3"}, {"open", "closed"}, {"P", "F"}):
        assert status_columns(["state"], {"state": words}) == ["state"]


def test_the_status_of_the_payment_is_that_of_the_order_where_it_has_no_other() -> None:
    words = {"status": {"paid"}, "payment_status": {"paid", "pending"}, "document_type": {"order"}}
    assert status_columns(["status", "payment_status"], words) == ["status"]
    assert status_columns(["payment_status", "document_type"], words) == ["payment_status"]


def asked(
    known: StatusEvidence, answer: str | None = None, assumed: str = ""
) -> tuple[Question, dict[str, str]]:
    given = None if answer is None else Answer(answer, "answers.toml")
    of_answer = {} if answer is None else table_of(answer)
    proposed = proposed_classes(known, table_of(assumed), of_answer)
    made = status_question(known, proposed, given, {})
    assert made is not None
    return made, classes_in_force(known, proposed, given)


def test_a_new_value_opens_that_value_alone() -> None:
    known = StatusEvidence("status", ("Paid", "Pending"))
    one, classes = asked(known)
    assert (one.state, one.value) == ("assumed", "Paid=sale,Pending=open")
    one, classes = asked(
        StatusEvidence("status", ("Paid", "Pending", "XYZ")), "paid=sale,PENDING=sale"
    )
    assert (one.state, one.reason) == ("open", "not known: XYZ")
    assert classes == {"paid": "sale", "pending": "sale"}
    one, classes = asked(StatusEvidence("status", ("Paid", "failed")), "paid=sale")
    assert (one.state, classes["failed"]) == ("assumed", "cancelled")
    one, classes = asked(StatusEvidence("status", ("Paid", "7")), "paid=sale,7=refunded")
    assert (one.state, classes["7"]) == ("answered", "refunded")


def test_what_was_assumed_stays_whatever_its_words_say() -> None:
    _, classes = asked(
        StatusEvidence("status", ("pending", "paid", "cancelled")), assumed="pending=sale"
    )
    assert classes == {"pending": "sale", "paid": "sale", "cancelled": "cancelled"}


def test_classes_decide_nothing_where_all_orders_would_be_open() -> None:
    only_open = StatusEvidence("status", ("pending", "cancelled"))
    one, classes = asked(only_open)
    assert (one.state, classes) == ("open", {"cancelled": "cancelled"})
    assert asked(only_open, "pending=open")[1] == {"cancelled": "cancelled", "pending": "open"}
    # as counted by a version that knew no classes
    counted = StatusEvidence("status", ("pending", "cancelled"), counted=frozenset({"pending"}))
    assert asked(counted)[1] == {"cancelled": "cancelled", "pending": "sale"}


def test_what_an_older_version_counted_stays_a_sale_unless_its_words_say_otherwise() -> None:
    values = ("7", "XYZ", "paid", "pending", "(none)")
    counted = StatusEvidence("status", values, counted=frozenset(values))
    _, classes = asked(counted)
    assert classes == {
        "7": "sale",
        "xyz": "sale",
        "paid": "sale",
        "(none)": "sale",
        "pending": "open",
    }


def test_what_an_older_version_took_for_cancelled_stays_unless_words_say_more() -> None:
    """It left out what is partly given back, or is yet to be: revenue does not grow without a word."""
    lost = ("Reembolso parcial", "awaiting refund", "cancelled", "returned")
    others = ("paid", "7")
    values = (*lost, *others)
    known = StatusEvidence("status", values, left_out=frozenset(values))
    assert asked(known)[1] == {
        "reembolso parcial": "cancelled",
        "awaiting refund": "cancelled",
        "cancelled": "cancelled",
        "returned": "refunded",
        # a column beside the status cancelled these
        "paid": "sale",
    }


def test_values_that_a_setting_names_as_cancelled_are_the_only_cancelled_ones() -> None:
    values = ("9", "Refunded", "7", "pending")
    known = StatusEvidence("status", values, cancelled=frozenset({"9"}))
    _, classes = asked(known)
    as_set = {"9": "cancelled", "refunded": "sale", "7": "sale", "pending": "open"}
    assert classes == as_set
    # what was assumed before counts again when the setting is gone
    assumed = "9=sale,Refunded=refunded"
    one, classes = asked(known, assumed=assumed)
    assert (classes, one.state) == (as_set, "assumed")
    assert table_of(one.evidence.assumed_rows or "") == {**table_of(assumed), "pending": "open"}


def test_a_table_of_the_evidence_is_asked_again_as_it_is_answered_since() -> None:
    known = StatusEvidence("status", ("Paid", "a, b=c", "XYZ"), flags=("test: true",))
    one, _ = asked(known)
    assert one.state == "open"
    answer = 'XYZ=open,"a, b=c=sale"'
    again = question(one.evidence, Answer(answer, "answers.toml"))
    assert (again.id, again.state) == (STATUSES, "assumed")
    assert table_of(again.value or "") == {
        "XYZ": "open",
        "a, b=c": "sale",
        "Paid": "sale",
        "test: true": "test",
    }
    assert again.is_confirmable
    confirmed = question(one.evidence, Answer(again.value or "", "answers.toml"))
    assert (confirmed.state, confirmed.is_confirmable) == ("answered", False)
    unconfirmed = question(one.evidence, Answer(again.value or "", ASSUMPTION, by="ana"))
    assert unconfirmed.state == "assumed"


def test_what_was_paid_back_is_refunded_where_a_person_says_so_of_a_second_column() -> None:
    classes = {
        "cancelled": "cancelled",
        "paid": "sale",
        "money: back": "refunded",
        "money: due": "open",
    }
    reading = Cancellation.of("status", {}).with_classes(classes, ["money"])
    statuses = column(pa.array(["cancelled", "cancelled", "paid", "paid"]))
    money = column(pa.array(["back", "due", "back", "due"]))
    found, _ = reading.read({"money": money}, statuses)
    assert [*found] == ["refunded", "cancelled", "refunded", "open"]
