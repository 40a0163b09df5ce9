"""The interface as data: every field, type and limit, written once.

The dlt sources take their columns from here, the sandbox its validation, the push its input models. Records are tuples
of fields, operations name their records; there is no behaviour. What the interface does not show is in `sources.gaps`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

Family = Literal["legacy", "public_v1"]
Verb = Literal["GET", "POST", "PATCH"]
INT64_MAX: Final = 2**63 - 1
FieldType = Literal["identifier", "text", "integer", "number", "boolean", "date", "decimal_text", "object", "array"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record or an input.

    Attributes:
        name: the JSON name.
        type: `identifier` is a number or string that identifies something (kept as text); `decimal_text` is a decimal
            in a string; `date` is YYYY-MM-DD; the others are JSON types.
        json: the JSON type in the interface, where `type` is more specific (an identifier, a date).
        required: None if it is conditional or not shown.
        fields: of an object, or of the objects in an array.
        items: the type of an array's items, if they are not objects.
        min_length: of a text. min_items, max_items: of an array. minimum, max_decimals: of a number.
        int64: whether the interface declares an integer as int64.
        meaning: the description in the interface.
    """

    name: str
    type: FieldType
    json: Literal["", "string", "number", "integer"] = ""
    required: bool | None = False
    fields: tuple[Field, ...] = ()
    items: FieldType | None = None
    min_length: int = 0
    min_items: int = 0
    max_items: int | None = None
    minimum: int | None = None
    max_decimals: int | None = None
    int64: bool = False
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A named set of fields.

    Attributes:
        fields: none where the interface does not show them: names and types then come from the walk.
        key: the field that identifies a record.
        key_setting: the setting of the family that names another one.
        refers_to: the list whose records it names.
    """

    name: str
    fields: tuple[Field, ...]
    key: str = ""
    key_setting: str = ""
    refers_to: str = ""

    def field(self, name: str) -> Field:
        """The field with this JSON name. Raises KeyError if there is none."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the interface: verb, path under the family's base, parameters, query, input and outcome.

    Attributes:
        paging: of a list. What proves it complete follows from that (docs/completeness.md).
        records: what a list holds.
        rows_field: the member of a response of a list that has its rows.
        error_code: JSON type of `code` in the legacy family's `errors` array; empty if the shape is not shown.
        created_status: the status of a create, where it is shown.
    """

    name: str
    family: Family
    verb: Verb
    path: str
    query: tuple[str, ...] = ()
    params: tuple[Field, ...] = ()
    input: Record | None = None
    paging: Literal["none", "pages", "cursor"] = "none"
    records: Record | None = None
    rows_field: str = "data"
    scope: str = ""
    outcome: Literal["ok", "created", "no_content"] = "ok"
    error_code: Literal["", "integer", "string"] = ""
    created_status: int | None = None


@cache
def path_pattern(path: str) -> re.Pattern[str]:
    """What fits the path of an operation with ids in the place of its parameters."""
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", path))


CUSTOMER_DOCUMENT: Final = Record(
    "customer_document",
    (
        Field("number", "text"),
        Field("fiscalName", "text"),
        Field("fiscalAddress", "text"),
        Field("email", "text"),
        Field("isDefault", "boolean"),
        Field("forTaxes", "boolean"),
    ),
)

CUSTOMER: Final = Record(
    "customers",
    (
        Field("id", "identifier", "integer", required=True),
        Field("firstName", "text"),
        Field("lastName", "text"),
        Field("phone", "text"),
        Field("email", "text"),
        Field("loginCode", "text"),
        Field("createdAt", "text", meaning="format: not shown"),
        Field("priceListId", "identifier", "number"),
        Field("erpCode", "text", meaning="code used by the integrator's ERP"),
        Field("birthdate", "date", "string", meaning="YYYY-MM-DD"),
        Field("documents", "array", fields=CUSTOMER_DOCUMENT.fields),
    ),
    key="id",
    refers_to="price_lists",
)

PROMOTION: Final = Record(
    "promotions",
    (
        Field("id", "identifier", "number", required=True),
        Field("name", "text", required=True),
        Field("useCount", "integer", required=True),
        Field("usageLimit", "integer"),
        Field("isActive", "boolean", required=True),
        Field("startDate", "text", required=True, meaning="format: not shown"),
        Field("expirationDate", "text", required=True, meaning="format: not shown"),
    ),
    key="id",
)

PRICE_LIST: Final = Record(
    "price_lists",
    (
        Field("id", "identifier", "string", required=True),
        Field("name", "text"),
        Field("sourcePriceListId", "identifier", "string"),
        Field("adjustmentType", "text", meaning="enumerated; NONE is the only value shown"),
        Field("adjustmentValue", "decimal_text", "string", meaning="decimal written as text"),
    ),
    key="id",
)

ORDER: Final = Record("orders", (), key="id", key_setting="order_key", refers_to="customers")
"""Fields of an order: not shown. All types come from the walk."""

CUSTOMER_CREATE: Final = Record(
    "customer_create",
    (
        Field("password", "text", required=True, min_length=1),
        Field("erpCode", "text"),
        Field("firstName", "text", min_length=1),
        Field("lastName", "text", min_length=1),
        Field("email", "text", required=None, min_length=1, meaning="required when customers log in by e-mail"),
        Field("loginCode", "text", required=None, min_length=1, meaning="required when customers log in by code"),
        Field("phone", "text", min_length=1),
        Field("notification", "object", fields=(Field("send", "boolean"), Field("withCredentials", "boolean"))),
        Field("priceListId", "number", meaning="when absent, the default price list is assigned"),
        Field("documents", "array", fields=CUSTOMER_DOCUMENT.fields, min_items=1),
    ),
)

VARIANT_UPDATE: Final = Record(
    "variant_update",
    (
        Field("sku", "text", meaning="stock keeping unit"),
        Field("erpCode", "text"),
        Field("price", "number", meaning="price added to the default price list"),
        Field("priceIsTaxExempt", "boolean"),
        Field("stock", "integer", meaning="stock added to the default warehouse"),
        Field("salesUnitFactor", "number", max_decimals=2, meaning="default 1; quantities sold are a multiple of it"),
        Field("jumpFactor", "integer", minimum=1, int64=True, meaning="default 1; step of the quantity counter"),
        Field("images", "array", fields=(Field("url", "text"), Field("order", "number")), max_items=5),
        Field("order", "integer", int64=True, meaning="position among the product's variants"),
        Field("attributes", "array", fields=(Field("name", "text"), Field("value", "text"))),
        *(Field(name, "number", meaning="unit: not shown") for name in ("weight", "length", "width", "height")),
    ),
)

SUBCATEGORY_CREATE: Final = Record(
    "subcategory_create",
    (
        Field("name", "text", required=None),
        Field("description", "text", required=None),
        Field("seo", "object", required=None, fields=(Field("description", "text"),)),
        Field("order", "integer", required=None, meaning="position in the parent category; 1 is shown first"),
    ),
)

WAREHOUSE_CREATE: Final = Record(
    "warehouse_create",
    (
        Field("name", "text", required=True, min_length=1),
        Field("isDefault", "boolean", required=True),
        Field(
            "location",
            "object",
            required=True,
            fields=(
                Field("line", "text", required=None),
                Field("coordinates", "array", required=None, items="number"),
                *(
                    Field(name, "text", required=None)
                    for name in ("reference", "erpCode", "zipCode", "contactName", "contactPhone", "contactEmail")
                ),
                Field(
                    "divisions",
                    "object",
                    required=None,
                    fields=tuple(Field(f"level{n}", "text", required=None) for n in (1, 2, 3, 4)),
                ),
            ),
        ),
        Field("code", "text", min_length=1),
    ),
)

PUBLIC_V1_PREFIX: Final = "/public/v1"
PUBLIC_V1_LIMIT_MIN: Final = 1
PUBLIC_V1_LIMIT_MAX: Final = 100
PUBLIC_V1_LIMIT_DEFAULT: Final = 20
PUBLIC_V1_PREFIXES: Final = {"_live_": "production", "_test_": "sandbox"}
PUBLIC_V1_AUTH_CODES: Final = ("UNAUTHENTICATED", "INVALID_API_KEY", "KEY_EXPIRED")

LIST_CUSTOMERS: Final = Operation(
    "list_customers", "legacy", "GET", "/customers", ("page", "limit"), paging="pages", records=CUSTOMER
)
LIST_PROMOTIONS: Final = Operation(
    "list_promotions", "legacy", "GET", "/promotions", ("page", "limit", "term"), paging="pages", records=PROMOTION
)
CREATE_CUSTOMER: Final = Operation(
    "create_customer", "legacy", "POST", "/customers", input=CUSTOMER_CREATE, outcome="created", error_code="string"
)
CREATE_SUBCATEGORY: Final = Operation(
    "create_subcategory",
    "legacy",
    "POST",
    "/categories/{categoryId}/subcategories",
    params=(Field("categoryId", "identifier", required=True, meaning="the parent category; type: not shown"),),
    input=SUBCATEGORY_CREATE,
    outcome="created",
    error_code="integer",
)
UPDATE_VARIANT: Final = Operation(
    "update_variant",
    "legacy",
    "PATCH",
    "/products/{productId}/variants/{variantId}",
    params=(
        Field("productId", "identifier", "integer", required=True),
        Field("variantId", "identifier", "integer", required=True),
    ),
    input=VARIANT_UPDATE,
    outcome="no_content",
    error_code="integer",
)
CREATE_WAREHOUSE: Final = Operation(
    "create_warehouse",
    "legacy",
    "POST",
    "/logistics/warehouses",
    input=WAREHOUSE_CREATE,
    outcome="created",
    created_status=201,
)
WHOAMI: Final = Operation("whoami", "public_v1", "GET", "/whoami")
LIST_PRICE_LISTS: Final = Operation(
    "list_price_lists",
    "public_v1",
    "GET",
    "/prices/lists",
    records=PRICE_LIST,
    rows_field="priceLists",
    scope="prices:read",
)
LIST_ORDERS: Final = Operation(
    "list_orders", "public_v1", "GET", "/orders", ("limit", "startingAfter"), paging="cursor", records=ORDER
)

OPERATIONS: Final = (
    LIST_CUSTOMERS,
    LIST_PROMOTIONS,
    CREATE_CUSTOMER,
    CREATE_SUBCATEGORY,
    UPDATE_VARIANT,
    CREATE_WAREHOUSE,
    WHOAMI,
    LIST_PRICE_LISTS,
    LIST_ORDERS,
)
RECORDS: Final = {record.name: record for record in (CUSTOMER, PROMOTION, PRICE_LIST, ORDER)}
"""The records of the lists that a pull walks, by resource name, in display order."""
UNDOCUMENTED: Final = tuple(name for name, record in RECORDS.items() if not record.fields)
"""The lists of records whose fields are not shown."""
LISTS: Final = {name: next(op for op in OPERATIONS if op.records is record) for name, record in RECORDS.items()}
"""The operations that list them."""


def records_of(family: Family) -> list[Record]:
    """The records of a family's lists."""
    return [record for name, record in RECORDS.items() if LISTS[name].family == family]
