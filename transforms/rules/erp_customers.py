"""The rules about the ERP's customers: lines of its file, and their match with the platform."""

from __future__ import annotations

from functools import partial
from typing import Final

from transforms.rules.rule import Rule

_rule = partial(Rule, "erp_customers")

ERP_CUSTOMER_RULES: Final = (
    _rule(
        "line_refused",
        "error",
        "The line does not fit the header of the ERP's file, so it is left out.",
        "The line is not compared with anything, and its customer may appear as missing from the ERP.",
        "See the reason with `orderbridge preview FILE`; fix the line, or the export that wrote it.",
    ),
    _rule(
        "customers_unproven",
        "warning",
        "Lines may belong to customers that were not read, above all those found only in the ERP.",
        "Creating these customers on the platform may create some that already exist.",
        "The detail gives the reason: see `ops.quarantine` and `ops.coverage`, pull the customers again and compare.",
    ),
    _rule(
        "line_repeated",
        "info",
        "The line is identical to an earlier one; the two count once.",
        "Nothing is lost: the line adds no information.",
        "If there are many, check whether the export joins customers with a table that has several rows for each.",
    ),
    _rule(
        "key_missing",
        "warning",
        "The line has no code, e-mail address or document number to match by.",
        "The line cannot be matched, so it counts as found only in the ERP.",
        "Enter a code, an e-mail address or a document number in the ERP, or map the column that holds it.",
    ),
    _rule(
        "key_stand_in",
        "info",
        "A key of the line identifies nobody: a stand-in such as `0` or `noemail@…`, a malformed address, or a value "
        "that more than 50 rows have.",
        "The line is not matched by this key; the detail names it.",
        "Leave the field empty in the ERP where there is no value, and correct what is malformed.",
    ),
    _rule(
        "erp_code_missing",
        "warning",
        "The line has no ERP code.",
        "It can be matched only by less certain keys: login code, e-mail address, document number.",
        "Export the code as well; if the ERP has none for this customer, find out why.",
    ),
    _rule(
        "erp_code_duplicate",
        "error",
        "Different lines have the same code; none of them is matched.",
        "The file contradicts itself, so no line is compared with the customer of that code.",
        "Find out which line is right. An export with one line per address or branch needs one line per customer.",
    ),
    _rule(
        "login_code_duplicate",
        "warning",
        "Several lines have the same login code.",
        "Lines that are not matched by ERP code cannot be distinguished by this login code.",
        "Give each customer of the ERP its own login code.",
    ),
    _rule(
        "email_duplicate",
        "warning",
        "Several lines have the same e-mail address.",
        "Lines that are not matched by a code cannot be distinguished by this address.",
        "Find out whether these are duplicates of one customer or a shared mailbox; match them by ERP code.",
    ),
    _rule(
        "document_number_duplicate",
        "warning",
        "Several lines have the same document number.",
        "Lines that are not matched by another key cannot be distinguished by their document.",
        "Find out whether these are duplicates of one customer or branches of one company; match them by ERP code.",
    ),
    _rule(
        "match_ambiguous",
        "warning",
        "A key of the line matches several customers or several lines.",
        "The line is not compared: it may belong to any of several customers.",
        "See `members` in `reconciled.erp_customers`, and enter the ERP code for the right customer.",
    ),
    _rule(
        "erp_code_contradicts",
        "warning",
        "The line is matched by another key while the ERP codes differ.",
        "Either two customers share an address or a document, or one of the codes is wrong: orders may go to the wrong "
        "customer.",
        "Compare both codes in `reconciled.erp_differences`, and correct the wrong one.",
    ),
    _rule(
        "customer_missing",
        "info",
        "A customer with this code was listed earlier and is not listed any more.",
        "The ERP still has a customer that the platform no longer lists.",
        "Find out whether the customer was removed on purpose; if so, deactivate it in the ERP.",
    ),
    _rule(
        "erp_code_nearly",
        "info",
        "A customer's code differs only in leading zeros, punctuation or case.",
        "It is probably the same customer, but it is not matched: codes are compared exactly.",
        "Check whether a spreadsheet removed the zeros, and export the codes as text.",
    ),
)
