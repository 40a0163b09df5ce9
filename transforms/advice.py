"""What a person does about a finding: for each rule of the catalogue why it matters, and what to do.

In: nothing. Out: `ADVICE`, words by entity and rule. The page docs/rules.md and the report are both made of these and
of the catalogue (`transforms.rules`), so that neither says something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Advice:
    """What the catalogue does not say of a rule, in whole sentences.

    Attributes:
        matters: what goes wrong where nobody looks.
        do: the next step, and where it is taken.
    """

    matters: str
    do: str


def _of_every(entity: str, what: str) -> dict[tuple[str, str], Advice]:
    return {
        (entity, "id_missing"): Advice(
            f"Nothing can refer to {what} without an id, and no later run can tell whether it changed.",
            "Report it to the platform: the interface gives each an id. The row stays in the raw table.",
        ),
        (entity, "id_duplicate"): Advice(
            "The platform gave one id to two records, or one record in two versions; only one of them counts here.",
            "Compare both rows in the raw table. If they are two records, report it to the platform.",
        ),
        (entity, "unproven"): Advice(
            "Counts are of what was read. A record that was not seen again stays as an earlier walk saw it, and is not "
            "said to be missing; its `_last_seen_at` is older than that of the others.",
            "Rows that were refused: `ops.quarantine` says why. Else look at `ops.coverage`, and pull again at a "
            "quieter time.",
        ),
    }


def _of_date(entity: str, name: str, what: str, one: str, lost: str) -> dict[tuple[str, str], Advice]:
    return {
        (entity, f"{name}_form"): Advice(
            f"Day and month cannot be told apart, or texts contradict each other, so every {one} {lost}.",
            f"Look at the texts of {what} in the raw table; the detail names the forms that are possible. More rows may"
            " prove one of them; else ask the platform which form it writes, and say it in `reconcile.date_order`.",
        ),
        (entity, f"{name}_unreadable"): Advice(
            f"The date is null in the reconciled table: the {one} {lost}.",
            "Correct the date on the platform. The text as it came is kept beside it.",
        ),
    }


ADVICE: Final[dict[tuple[str, str], Advice]] = {
    **_of_every("customers", "a customer"),
    ("customers", "erp_code_duplicate"): Advice(
        "Whatever the ERP sends or receives under this code may reach the wrong customer, so such codes match nobody.",
        "Find out which of them the ERP means, and take the code from the others or merge them on the platform.",
    ),
    ("customers", "login_code_duplicate"): Advice(
        "It is not known who logs in by this code.",
        "Give each customer a code of their own on the platform.",
    ),
    ("customers", "email_duplicate"): Advice(
        "Mail to one of them is read by the other, and where customers log in by e-mail one of them cannot.",
        "Ask whether these are one customer entered twice, or a shared mailbox; merge them or note the exception.",
    ),
    ("customers", "erp_code_padded"): Advice(
        "Programs that compare the code as it stands do not find it. Here the blanks are left out of comparisons.",
        "Save the code without blanks on the platform.",
    ),
    ("customers", "erp_code_missing"): Advice(
        "The customer can be matched with the ERP only by login code, e-mail or document.",
        "Enter the ERP's code on the platform, if the ERP knows the customer.",
    ),
    ("customers", "login_missing"): Advice(
        "Nobody can log in as this customer.",
        "Enter an e-mail address or a login code, whichever this platform uses.",
    ),
    ("customers", "email_malformed"): Advice(
        "No mail arrives, and messages about orders and passwords are lost.",
        "Correct the address on the platform.",
    ),
    ("customers", "phone_without_digits"): Advice(
        "Nobody can be called: the field holds a remark.",
        "Move the remark elsewhere and enter the number, or empty the field.",
    ),
    ("customers", "name_missing"): Advice(
        "Lists and labels show a blank.",
        "Enter a name on the platform; the fiscal name of the default document may serve.",
    ),
    ("customers", "birthdate_future"): Advice(
        "Ages come out negative; often two fields were mixed up.",
        "Correct the date on the platform, or empty it.",
    ),
    ("customers", "birthdate_absurd"): Advice(
        "Ages come out wrong; such a date is often a stand-in for an unknown one, as 1900-01-01.",
        "Correct the date on the platform, or empty it.",
    ),
    **_of_date("customers", "created_at", "createdAt", "customer", "has no date of creation"),
    ("customers", "created_at_future"): Advice(
        "Counts of new customers per month are wrong; a clock or a form of dates may be wrong too.",
        "Compare with the platform. If many are affected, look how the dates were read: ops.observations, date_format.",
    ),
    ("customers", "price_list_not_listed"): Advice(
        "Only active price lists are listed, so this customer buys at prices that nobody can look up, or at none.",
        "Give the customer an active price list, or make this one active again.",
    ),
    ("customers", "price_lists_unproven"): Advice(
        "Which of these customers are on no active price list cannot be told.",
        "The detail says why: look at `ops.quarantine` and `ops.coverage`, then pull both lists again. These customers "
        "have the `price_list_status` `unknown`.",
    ),
    ("customers", "price_list_id_impossible"): Advice(
        "The number is negative or has a fraction, so it can be the id of no price list.",
        "Give the customer a price list on the platform; find out who wrote the number.",
    ),
    ("customers", "document_missing"): Advice(
        "No invoice can be made out to the customer.",
        "Enter a document before the first invoice; for those who never order it does not matter.",
    ),
    ("customers", "document_default_missing"): Advice(
        "It is not known which document an invoice goes to, so none is taken here.",
        "Mark one of them as the default on the platform.",
    ),
    ("customers", "document_default_several"): Advice(
        "Which one an invoice goes to depends on who reads it.",
        "Leave one marked as the default on the platform.",
    ),
    ("customers", "document_tax_missing"): Advice(
        "Where invoices for taxes need a document of their own, none is there.",
        "Mark the document that serves for taxes, if this customer needs such invoices.",
    ),
    ("customers", "document_tax_several"): Advice(
        "Which one an invoice for taxes goes to depends on who reads it.",
        "Leave one marked for taxes on the platform.",
    ),
    ("customers", "document_number_missing"): Advice(
        "The document identifies nobody and matches nothing in the ERP.",
        "Enter the number, or remove the document.",
    ),
    ("customers", "document_number_shared"): Advice(
        "These may be one customer entered twice, or branches of one company. Such a number matches nobody in the ERP.",
        "Merge them if they are one; branches may stay as they are.",
    ),
    ("customers", "document_orphan"): Advice(
        "The document belongs to a row that has no place in the table, so it counts for nobody.",
        "Look for the customer among the findings id_missing and id_duplicate; the cause is there.",
    ),
    ("customers", "erp_ambiguous"): Advice(
        "The customer is compared with no line of the ERP, since it is not known which one is theirs.",
        "Look at `member_lines` in `reconciled.erp_customers`; mend the key that several share, in the ERP or here.",
    ),
    **_of_every("promotions", "a promotion"),
    ("promotions", "name_missing"): Advice(
        "Nobody can tell it from another in a list.",
        "Name it on the platform.",
    ),
    **_of_date("promotions", "dates", "startDate and expirationDate", "promotion", "is of unknown status"),
    ("promotions", "ends_before_start"): Advice(
        "It never runs.",
        "Correct the dates on the platform; day and month may have been mixed up.",
    ),
    ("promotions", "used_beyond_limit"): Advice(
        "More discounts were given than was meant.",
        "Ask how the platform counts uses (cancelled orders?), and raise the limit or end the promotion.",
    ),
    ("promotions", "use_count_negative"): Advice(
        "The count cannot be relied on, nor can the uses that are left.",
        "Report it to the platform.",
    ),
    ("promotions", "usage_limit_not_positive"): Advice(
        "It may mean that nobody can use the promotion, or that everybody can: the interface does not say.",
        "Try it on the sandbox, then write a limit that means one thing, or none.",
    ),
    ("promotions", "active_but_expired"): Advice(
        "It does nothing and fills the lists; should its end be moved by mistake, it runs at once.",
        "Deactivate it on the platform.",
    ),
    ("promotions", "active_but_exhausted"): Advice(
        "Customers may still see it and cannot use it.",
        "Raise the limit, or deactivate it.",
    ),
    **_of_every("price_lists", "a price list"),
    ("price_lists", "id_ambiguous"): Advice(
        "Customers name price lists by number, so it is not known which of the two is meant; the first is taken.",
        "Report it to the platform: ids must differ in more than their notation.",
    ),
    ("price_lists", "name_missing"): Advice(
        "Nobody can tell it from another in a list.",
        "Name it on the platform.",
    ),
    ("price_lists", "name_duplicate"): Advice(
        "A price may be set in the wrong one, and reports by name add both up.",
        "Rename one of them on the platform.",
    ),
    ("price_lists", "source_not_listed"): Advice(
        "Its prices derive from a list that is not active: they may be frozen, or none at all.",
        "Make the source active again, or name another.",
    ),
    ("price_lists", "chain_orphaned"): Advice(
        "Its source is there, but that one's source, or one further up, is not: the same doubt, a step away.",
        "Mend the list that has the finding source_not_listed; this one goes with it.",
    ),
    ("price_lists", "sources_unproven"): Advice(
        "Whether prices derive from a list that is no longer active cannot be told.",
        "The detail says why: look at `ops.quarantine` and `ops.coverage`, then pull the price lists again. These "
        "lists have the `chain_status` `unknown`.",
    ),
    ("price_lists", "chain_cycle"): Advice(
        "Each list derives its prices from the next and none has its own, so none of them can be computed.",
        "Give one of the lists no source, or a source outside the circle.",
    ),
    ("price_lists", "adjustment_contradicts"): Advice(
        "The value says that prices are changed, the type that they are not.",
        "Ask which is meant, and set the value to zero or the type to what it is.",
    ),
    **_of_every("orders", "an order"),
    ("orders", "customer_unknown"): Advice(
        "The order counts in totals and for no customer. The customer may have been removed from the platform.",
        "If there are many, look whether all customers were read, and which field `reconcile.order_customer_id` names.",
    ),
    ("orders", "customers_unproven"): Advice(
        "The orders count in totals and for no customer, and whether theirs still exist cannot be told.",
        "The detail says why: look at `ops.quarantine` and `ops.coverage`, then pull both lists again. These orders "
        "have the `customer_status` `unknown`.",
    ),
    ("orders", "customer_ambiguous"): Advice(
        "The order counts for none of the customers that share the code.",
        "Mend the finding erp_code_duplicate of these customers.",
    ),
    ("orders", "customer_missing"): Advice(
        "The order counts in totals and for no customer.",
        "Expected where guests may order; else ask the platform.",
    ),
    **_of_date("orders", "ordered_at", "the order's date", "order", "is missing from counts over time"),
    ("orders", "ordered_at_future"): Advice(
        "Counts over time reach beyond today; often it is a planned delivery and not the order.",
        "Look which field `reconcile.order_ordered_at` names.",
    ),
    ("orders", "total_unreadable"): Advice(
        "The order counts with no amount.",
        "Look which field `reconcile.order_total` names, and at its texts in the raw table.",
    ),
    ("orders", "total_negative"): Advice(
        "Sums come out lower; it may be a refund.",
        "Expected where the platform keeps refunds as orders; else ask the platform.",
    ),
    ("erp_customers", "line_refused"): Advice(
        "What the line says is compared with nothing, and its customer may show as missing in the ERP.",
        "Look why with `orderbridge preview FILE`; mend the line in the file, or the export that wrote it.",
    ),
    ("erp_customers", "customers_unproven"): Advice(
        "Who creates these customers on the platform may create some that are there.",
        "The detail says why: look at `ops.quarantine` and `ops.coverage`, pull the customers again and compare.",
    ),
    ("erp_customers", "line_repeated"): Advice(
        "Nothing is lost: the line adds nothing to the first one.",
        "If there are many, look whether the export joins customers with something that they have several of.",
    ),
    ("erp_customers", "key_missing"): Advice(
        "The line can match nobody, so it counts as only in the ERP.",
        "Enter a code, an e-mail address or a document number in the ERP; or map the column that holds it.",
    ),
    ("erp_customers", "erp_code_missing"): Advice(
        "The line can be matched only by what is less certain: login code, e-mail address, document number.",
        "Export the code too; if the ERP has none for this customer, ask why.",
    ),
    ("erp_customers", "erp_code_duplicate"): Advice(
        "The file contradicts itself, so neither line is compared with the customer of that code.",
        "Find out which line is right. An export with a line for each address or branch needs one line a customer.",
    ),
    ("erp_customers", "login_code_duplicate"): Advice(
        "Lines that no code of the ERP matches cannot be told apart by this one.",
        "Give each customer of the ERP a login code of their own.",
    ),
    ("erp_customers", "email_duplicate"): Advice(
        "Lines that no code matches cannot be told apart by this address.",
        "Ask whether these are one customer entered twice, or a shared mailbox; match them by the ERP's code.",
    ),
    ("erp_customers", "document_number_duplicate"): Advice(
        "Lines that nothing else matches cannot be told apart by their document.",
        "Ask whether these are one customer entered twice, or branches of one company; match them by the ERP's code.",
    ),
    ("erp_customers", "match_ambiguous"): Advice(
        "The line is compared with nobody: any of several customers may be meant.",
        "Look at `members` in `reconciled.erp_customers`, and enter the ERP's code at the right customer.",
    ),
    ("erp_customers", "erp_code_contradicts"): Advice(
        "Either two customers share an address or a document, or one of the codes is wrong: orders may go astray.",
        "Compare both codes in `reconciled.erp_differences`, and correct the one that is wrong.",
    ),
    ("erp_customers", "customer_missing"): Advice(
        "The ERP still has a customer that the platform no longer lists.",
        "Ask whether the customer was removed on purpose; if so, retire them in the ERP.",
    ),
    ("erp_customers", "erp_code_nearly"): Advice(
        "It is likely the same customer, and it is not matched: codes are compared as they stand.",
        "Look whether a spreadsheet has taken the zeros off, and export the codes as text.",
    ),
}
