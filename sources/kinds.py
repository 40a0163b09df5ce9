"""The kinds of input that can be written to the platform, and what each one needs.

In: the write operations of the interface (`sources.contract`). Out: one `InputKind` per kind, read by mapping, plan,
push and the command line wherever they treat kinds differently; and the variant fields that a repeated update may add
to, according to the settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from orderbridge.sources.contract import Operation, Record, operation_named
from orderbridge.sources.gaps import GAPS

KindName = Literal["customers", "variants", "subcategories", "warehouses"]
LoginMode = Literal["email", "code"]
Semantics = Literal["unknown", "set", "increment"]

PASSWORD: Final = "password"  # noqa: S105 # the name of the field
PASSWORD_NAME: Final = re.compile("pass|pwd|contrase|clave( de acceso)?$|senha|kennwort", re.I)
"""In the name of a column whose cells are shown to nobody."""
NOTIFICATION: Final = "notification"
"""The field that says whether a new customer gets a message: a plan decides and counts it."""
LOGIN_FIELDS: Final[Mapping[LoginMode, str]] = {"email": "email", "code": "loginCode"}


@dataclass(frozen=True, slots=True)
class InputKind:
    """A kind of input.

    Attributes:
        name: plural, as in `orderbridge plan KIND`.
        singular: for messages.
        operation: of the interface; one input is one request, or two for a variant with additive fields.
        list_keys: fields by which a record is found in a list of the platform; empty where it has no such list.
        unique_fields: without such a list, what identifies a record: the first one given; if empty, the path.
        required_by_policy: fields required here although the interface does not show whether they are.
    """

    name: KindName
    singular: str
    operation: Operation
    list_keys: tuple[str, ...] = ()
    unique_fields: tuple[str, ...] = ()
    required_by_policy: frozenset[str] = frozenset()

    @property
    def record(self) -> Record:
        """The fields of the request body."""
        if self.operation.input is None:
            raise TypeError(f"{self.operation.name} has no body")
        return self.operation.input

    @property
    def is_update(self) -> bool:
        """Whether the operation changes a record that exists; the others create one."""
        return self.operation.verb == "PATCH"

    @property
    def is_listed(self) -> bool:
        """Whether the platform has a list in which a created record can be found again."""
        return bool(self.list_keys)

    @property
    def has_login(self) -> bool:
        """Whether a record logs in: it needs a password and a login mode."""
        return any(field.name == PASSWORD for field in self.record.fields)


KINDS: Final[Mapping[str, InputKind]] = {
    kind.name: kind
    for kind in (
        InputKind(
            "customers",
            "customer",
            operation_named("create_customer"),
            list_keys=("erpCode", "email", "loginCode"),
        ),
        InputKind("variants", "variant", operation_named("update_variant")),
        InputKind(
            "subcategories",
            "subcategory",
            operation_named("create_subcategory"),
            unique_fields=("name",),
            required_by_policy=frozenset({"name"}),  # gap `subcategory_required`
        ),
        InputKind(
            "warehouses",
            "warehouse",
            operation_named("create_warehouse"),
            unique_fields=("code", "name"),
        ),
    )
}

ADDED_FIELDS: Final = tuple(
    gap.name.removesuffix("_semantics") for gap in GAPS if gap.name.endswith("_semantics")
)
"""Fields of a variant that the interface calls "added"; a setting for each decides whether it is set or incremented."""
ADDITIVE_FIELDS: Final = (
    *ADDED_FIELDS,
    *(
        f.name
        for kind in KINDS.values()
        if kind.is_update
        for f in kind.record.fields
        if f.type == "array"
    ),
)
"""Fields that a repeated update may add to, by name. For lists (images, attributes) it is not shown."""


def additive_fields(semantics: Mapping[str, Semantics]) -> frozenset[str]:
    """Fields that a repeated update would or may add to: all additive ones except those known to be set.

    Args:
        semantics: of `ADDED_FIELDS`, from the settings.
    """
    return frozenset(name for name in ADDITIVE_FIELDS if semantics.get(name) != "set")


def increment_fields(semantics: Mapping[str, Semantics]) -> frozenset[str]:
    """Fields whose values are increments: the value afterwards is unknown."""
    return frozenset(name for name in ADDED_FIELDS if semantics.get(name) == "increment")
