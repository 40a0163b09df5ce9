"""Promotions as an object by id, with rows that a fault made unreadable: the sandbox still answers."""

from __future__ import annotations

import pytest

from tests.sandbox.talk import talking


@pytest.mark.parametrize("fault", ["deep_row", "control_character", "not_a_number", "half_surrogate"])
def test_rows_that_cannot_be_read_are_served_by_their_id(fault: str) -> None:
    with talking(promotions=3, readings={"promotions_data": "object_by_id"}, faults={fault: 1.0}) as (sandbox, client):
        answer = client.get("/promotions")
        assert answer.status_code == 200
        for key in sandbox.state.ids("promotions"):
            assert f'"{key}":{{' in answer.text
