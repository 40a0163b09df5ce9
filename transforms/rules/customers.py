"""The rules about customers and their documents."""

from __future__ import annotations

from functools import partial
from typing import Final

from transforms.rules.rule import Rule, common_rules, date_rules

_rule = partial(Rule, "customers")

_KEYS: Final = (
    _rule(
        "erp_code_duplicate",
        "error",
        "Several customers have the same ERP code.",
        "Data that the ERP sends or receives under this code may reach the wrong customer, so the code matches nobody.",
        "Find out which customer the ERP means, then remove the code from the others or merge them on the platform.",
    ),
    _rule(
        "login_code_duplicate",
        "error",
        "Several customers have the same login code.",
        "It is unclear which of them logs in with this code.",
        "Give each customer a unique login code on the platform.",
    ),
    _rule(
        "email_duplicate",
        "warning",
        "Several customers have the same e-mail address.",
        "One reads the mail of the other, and if customers log in by e-mail, one of them cannot.",
        "Find out whether these are duplicates of one customer or a shared mailbox; merge them or note the exception.",
    ),
    _rule(
        "erp_code_padded",
        "info",
        "The ERP code has spaces around it.",
        "Programs that compare the exact code do not find it. Comparisons here ignore the spaces.",
        "Save the code without spaces on the platform.",
    ),
    _rule(
        "erp_code_missing",
        "info",
        "The customer has no ERP code.",
        "The customer can be matched with the ERP only by login code, e-mail address or document.",
        "Enter the ERP code on the platform, if the ERP has this customer.",
    ),
    _rule(
        "login_missing",
        "warning",
        "The customer has neither an e-mail address nor a login code.",
        "Nobody can log in as this customer.",
        "Enter an e-mail address or a login code, whichever this platform uses.",
    ),
    _rule(
        "erp_ambiguous",
        "warning",
        "A key of the customer matches several lines of the ERP's file, or several customers.",
        "The customer is not compared with the ERP, because it is unclear which line is theirs.",
        "See `member_lines` in `reconciled.erp_customers`; correct the shared key in the ERP or on the platform.",
    ),
)
_FIELDS: Final = (
    _rule(
        "email_malformed",
        "warning",
        "The e-mail address does not have the form name@host.",
        "Messages about orders and passwords do not arrive.",
        "Correct the address on the platform.",
    ),
    _rule(
        "phone_without_digits",
        "info",
        "The phone number has no digits.",
        "The customer cannot be called: the field contains a remark.",
        "Move the remark to another field and enter the number, or clear the field.",
    ),
    _rule(
        "name_missing",
        "info",
        "The customer has neither a first nor a last name.",
        "Lists and labels show an empty name.",
        "Enter a name on the platform, for example the fiscal name of the default document.",
    ),
    _rule(
        "birthdate_future",
        "warning",
        "The birthdate is in the future.",
        "Ages are negative; often two fields were swapped.",
        "Correct or clear the date on the platform.",
    ),
    _rule(
        "birthdate_absurd",
        "warning",
        "The birthdate is more than 120 years ago.",
        "Ages are wrong; such a date is often a placeholder for an unknown one, such as 1900-01-01.",
        "Correct or clear the date on the platform.",
    ),
    *date_rules("customers", "created_at", "createdAt", "the customer has no creation date"),
    _rule(
        "created_at_future",
        "warning",
        "The creation date is in the future.",
        "Counts of new customers per month are wrong; a clock or the detected date format may be wrong too.",
        "Compare with the platform. If many are affected, see the detected format: `date_format` in "
        "`ops.observations`.",
    ),
    _rule(
        "price_list_not_listed",
        "warning",
        "The customer's price list is not listed.",
        "Only active price lists are listed, so nobody can look up the prices of this customer, or there are none.",
        "Assign an active price list to the customer, or reactivate this one.",
    ),
    _rule(
        "price_lists_unproven",
        "warning",
        "Customers have price lists that were not read and may be listed.",
        "It is unknown which of these customers have no active price list.",
        "The detail gives the reason: see `ops.quarantine` and `ops.coverage`, then pull both lists again. These "
        "customers have the `price_list_status` `unknown`.",
    ),
    _rule(
        "price_lists_read_before",
        "info",
        "Price lists were read in an earlier run than customers.",
        "A price list that was added between the two reads is reported as not listed.",
        "The detail gives both times. Pull both lists in one run where that matters.",
    ),
    _rule(
        "price_list_id_impossible",
        "warning",
        "The price list is a number that cannot be an id.",
        "The number is negative or has a fraction, so it cannot be the id of any price list.",
        "Assign a price list to the customer on the platform, and find out what wrote the number.",
    ),
)
_DOCUMENTS: Final = (
    _rule(
        "document_missing",
        "info",
        "The customer has no document.",
        "No invoice can be made out to the customer.",
        "Enter a document before the first invoice; it does not matter for customers who never order.",
    ),
    _rule(
        "document_default_missing",
        "warning",
        "The customer has several documents and none is the default.",
        "It is unclear which document an invoice uses, so none is chosen here.",
        "Mark one of them as the default on the platform.",
    ),
    _rule(
        "document_default_several",
        "warning",
        "Several documents are marked as default; the first one is used.",
        "Other programs may choose another document for an invoice.",
        "Leave one document marked as default on the platform.",
    ),
    _rule(
        "document_tax_missing",
        "info",
        "None of the documents is marked for taxes (`documents[].forTaxes`).",
        "If tax invoices need a document of their own, the customer has none.",
        "Set `forTaxes` of the document that is used for taxes, if this customer needs such invoices.",
    ),
    _rule(
        "document_tax_several",
        "info",
        "Several documents are marked for taxes (`documents[].forTaxes`); the first one is used.",
        "Other programs may choose another document for a tax invoice.",
        "Leave `forTaxes` set on one document.",
    ),
    _rule(
        "document_number_missing",
        "warning",
        "A document has no number.",
        "The document identifies nobody and matches nothing in the ERP.",
        "Enter the number, or remove the document.",
    ),
    _rule(
        "document_number_shared",
        "warning",
        "Another customer has a document with the same number.",
        "These may be duplicates of one customer, or branches of one company. Such a number matches nobody in the ERP.",
        "Merge them if they are duplicates; branches may stay as they are.",
    ),
    _rule(
        "document_orphan",
        "error",
        "A document refers to a customer that is not in the table.",
        "The customer's own row was left out of the table, so the document is not counted.",
        "Look for the customer among the findings id_missing and id_duplicate; the cause is there.",
    ),
)

CUSTOMER_RULES: Final = (*common_rules("customers", "a customer"), *_KEYS, *_FIELDS, *_DOCUMENTS)
