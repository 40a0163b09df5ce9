"""What the interface does not show: its possible readings, and the policy chosen for each.

The sandbox plays every reading, the pull and the push record the one they see in `ops.observations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the interface does not show: its readings, the sandbox's default first, and the policy."""

    name: str
    what: str
    readings: tuple[str, ...]
    policy: str


GAPS: Final = (
    Gap(
        "date_format",
        "form of createdAt, startDate, expirationDate",
        ("iso_offset", "iso_naive", "date_only", "epoch_s", "epoch_ms", "day_first", "month_first"),
        "kept as text in raw; read for a column as a whole when reconciled",
    ),
    Gap(
        "promotions_data",
        "whether `data` of GET /promotions is an array",
        ("array", "object_by_id", "object_wrapped", "object_single"),
        "an array; an object of objects is its values; an object with one array is that; one with `id` is a row",
    ),
    Gap(
        "customers_end",
        "how GET /customers ends, having no pagination object",
        ("empty_page", "pagination", "repeat_last", "status_404", "status_400"),
        "an empty or repeated page, or hasNextPage false, is the end; a 404/400 after page 1 is assumed to be",
    ),
    Gap(
        "legacy_limit",
        "default and upper bound of family A's `limit`",
        ("honoured", "capped", "ignored"),
        "the page size is the number of rows on page 1, not the requested limit",
    ),
    Gap(
        "legacy_first_page",
        "number of family A's first page",
        ("one", "zero"),
        "1; page 0 is requested too, and read first if it has other rows",
    ),
    Gap(
        "order_shape",
        "fields of an order",
        ("nested", "flat", "wide"),
        "typed from the whole walk: the narrowest type that holds every value; arrays of objects in child tables",
    ),
    Gap(
        "order_key",
        "the field that identifies an order",
        ("id", "uuid"),
        "`id`, or the field that the setting sources.public_v1.order_key names; an order without it is quarantined",
    ),
    Gap(
        "order_sequence",
        "the order of GET /orders",
        ("oldest_first", "newest_first", "unordered"),
        "no walk depends on it; `pull --tail` continues only a list that was seen to have its new orders last",
    ),
    Gap(
        "cursor_reuse",
        "what a cursor leads to once its list was read to the end",
        ("continues", "rejected", "restarts", "skips"),
        "a tail must repeat the end of the read before, else the list is read whole",
    ),
    Gap(
        "adjustment_types",
        "adjustmentType other than NONE",
        ("none_only", "percentage", "mixed"),
        "kept as text",
    ),
    Gap("created_status", "numeric status of the creates", ("201", "200"), "200 and 201 confirm; no other status does"),
    Gap(
        "no_content_status",
        "numeric status of the variant update",
        ("204", "200"),
        "200 and 204 confirm; no other status does",
    ),
    Gap(
        "created_body",
        "body of the answers to creates",
        ("record", "id_only", "wrapped", "empty"),
        "not needed; an id in it is recorded",
    ),
    Gap(
        "legacy_auth_failure",
        "family A's authentication failure",
        ("401_errors", "403_errors", "401_empty", "403_text"),
        "401 and 403 mean authentication, whatever the body",
    ),
    Gap(
        "legacy_error_status",
        "status of family A's input errors",
        ("400", "422"),
        "a 4xx with the family's error body is a reject",
    ),
    Gap(
        "missing_scope",
        "the error of a key that lacks a scope",
        ("403_error", "403_empty", "401_error"),
        "403 ends that resource alone; 401 stops the family",
    ),
    Gap(
        "whoami_names",
        "field names of whoami",
        ("camel", "nested", "terse"),
        "read by meaning (environment, scopes, organization), anywhere in the response; never guessed",
    ),
    Gap("rate_limit", "rate limits", ("none", "per_second"), "429 waits for Retry-After, or backs off"),
    Gap(
        "price_semantics",
        "what price `added` means",
        ("set", "increment"),
        "unknown unless set: such a field is sent in a PATCH of its own and never repeated",
    ),
    Gap("stock_semantics", "what stock `added` means", ("set", "increment"), "as for price"),
    Gap(
        "subcategory_required",
        "required fields of a subcategory",
        ("none", "name"),
        "`name` is required; the platform may require more",
    ),
)
