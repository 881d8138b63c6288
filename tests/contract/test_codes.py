"""The closed set of codes against the table that was agreed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from changeover.contract import CODES, CONTRACT_VERSION, Category, NextAction

AGREED = """
validation_error     | no  | ask_user | validation | 400, 422           | INVALID_ARGUMENT, OUT_OF_RANGE
unsupported_input    | no  | ask_user | validation | 406, 415           | -
payload_too_large    | no  | ask_user | validation | 413, 414, 431      | -
not_found            | no  | ask_user | validation | 404, 410           | NOT_FOUND
unauthenticated      | no  | ask_user | permission | 401, 407           | UNAUTHENTICATED
permission_denied    | no  | ask_user | permission | 403, 451           | PERMISSION_DENIED
business_rule        | no  | ask_user | business   | -                  | FAILED_PRECONDITION
conflict             | no  | ask_user | business   | 409, 412, 423, 428 | ALREADY_EXISTS, ABORTED
quota_exceeded       | no  | stop     | business   | 402, 507           | RESOURCE_EXHAUSTED
rate_limited         | yes | retry    | transient  | 429                | RESOURCE_EXHAUSTED
upstream_timeout     | yes | retry    | transient  | 408, 504           | DEADLINE_EXCEEDED
upstream_unavailable | yes | retry    | transient  | 425, 502, 503, 529 | UNAVAILABLE
upstream_error       | no  | stop     | other      | 500, 505, 508, 511 | INTERNAL, UNKNOWN, DATA_LOSS
outcome_unknown      | no  | ask_user | other      | -                  | -
cancelled            | no  | stop     | other      | 499                | CANCELLED
not_implemented      | no  | stop     | other      | 405, 501           | UNIMPLEMENTED
internal_error       | no  | stop     | other      | -                  | -
"""


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def _row(code: str) -> list[str]:
    spec = CODES[code]
    return [
        spec.code,
        "yes" if spec.retryable else "no",
        spec.next_action.value,
        spec.category.value,
        ", ".join(map(str, spec.http)) or "-",
        ", ".join(spec.grpc) or "-",
    ]


def test_codes_are_the_agreed_table_in_its_order():
    assert [_row(code) for code in CODES] == [_cells(line) for line in AGREED.strip().splitlines()]


def test_documentation_shows_the_same_table():
    page = Path(__file__).parents[2] / "docs" / "contract.md"
    rows = [_cells(line) for line in page.read_text("utf-8").splitlines() if line.startswith("| `")]
    documented = [row for row in rows if row[0] in CODES]

    assert documented == [[*_row(code), CODES[code].meaning] for code in CODES]


def test_codes_cannot_be_added_at_run_time():
    with pytest.raises(TypeError):
        CODES["mine"] = CODES["internal_error"]  # type: ignore[index]


def test_there_are_exactly_three_next_actions_and_five_categories():
    assert [action.value for action in NextAction] == ["retry", "ask_user", "stop"]
    assert [category.value for category in Category] == ["validation", "permission", "business", "transient", "other"]
    assert CONTRACT_VERSION == 1


@pytest.mark.parametrize("spec", CODES.values(), ids=CODES)
def test_retryable_says_what_next_action_says(spec):
    assert spec.retryable is (spec.next_action is NextAction.RETRY)
    assert spec.retryable is (spec.category is Category.TRANSIENT)


@pytest.mark.parametrize("spec", CODES.values(), ids=CODES)
def test_default_message_fits_the_contract(spec):
    assert 1 <= len(spec.default_message) <= 400
    assert spec.default_message.endswith(".")
    assert spec.default_message.count(". ") <= 1


def test_an_http_status_means_one_code():
    statuses = [status for spec in CODES.values() for status in spec.http]

    assert len(statuses) == len(set(statuses))
