"""The columns that the match of the ERP's customers takes and gives, with their types."""

from __future__ import annotations

from typing import Final

from transforms.erp.compare import COMPARISONS
from transforms.frames import BIGINT, BOOLEAN, TEXT, TIMESTAMP

ERP_FIELDS: Final = tuple(COMPARISONS)
"""Of the ERP's customer: columns of text, any of which may be absent. `_line` (bigint) is the line's number."""
PLATFORM_CUSTOMERS: Final = {
    "customer_id": TEXT,
    "erp_code": TEXT,
    "login_code": TEXT,
    "email": TEXT,
    "first_name": TEXT,
    "last_name": TEXT,
    "full_name": TEXT,
    "phone": TEXT,
    "price_list_id": TEXT,
    "_missing_since": TIMESTAMP,
}
"""The columns of the reconciled customers that are used."""
PLATFORM_DOCUMENTS: Final = {
    "customer_id": TEXT,
    "position": BIGINT,
    "number": TEXT,
    "fiscal_name": TEXT,
    "fiscal_address": TEXT,
    "email": TEXT,
    "is_default": BOOLEAN,
}
"""The columns of the raw documents that are used."""
ERP_CUSTOMERS: Final = {
    "erp_code": TEXT,
    "customer_id": TEXT,
    "status": TEXT,
    "matched_by": TEXT,
    "difference_count": BIGINT,
    "line": BIGINT,
    "name": TEXT,
    "members": TEXT,
    "member_lines": TEXT,
    "reason": TEXT,
}
"""`erp_code` is the ERP's, and the platform's in a row without a line. `matched_by` of an ambiguous row is the key that
made it so, and `reason` is how. `members` are the ids of the customers that an ambiguous line may be, `member_lines`
the lines that an ambiguous customer may be. `name` is the ERP's where there is a line."""
ERP_DIFFERENCES: Final = {
    "entity": TEXT,
    "erp_code": TEXT,
    "platform_id": TEXT,
    "field": TEXT,
    "erp_value": TEXT,
    "platform_value": TEXT,
}
