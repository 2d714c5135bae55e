"""What stands under *Gates* of a Work: what came of each named check, not what its owner says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from client.cli.eyes import work
from daemon.health import now

LINE = "there=test -e hello.txt"
NOW = now()


def shown(*results: dict[str, Any], said: str = "unanswered") -> dict[str, Any]:
    body = json.dumps({"criteria": [], "checks": [{"check": "there", "answer": said}]})
    named = {"criteria": [], "checks": [LINE], "verifier_id": None}
    return {"work": named, "receipts": [{"id": "first", "body": body}, {"id": "last", "body": body}], "checks": results}


def result(**changed: object) -> dict[str, Any]:
    return {"receipt_id": "last", "line": LINE, "passed": True, "snapshot": "aaa96ced2d9a1c8e", "at": NOW, **changed}


@pytest.mark.parametrize(
    ("results", "wanted"),
    [
        ([result()], "passed on aaa96ced2d9a, "),
        ([result(passed=False)], "failed on aaa96ced2d9a, "),
        ([result(passed=False, snapshot="")], "failed, "),
        ([], "not run yet"),
        ([result(receipt_id="first")], "not run yet"),
        ([result(line="there=true")], "not run yet"),
    ],
)
def test_a_check_shows_what_came_of_this_very_line_on_the_last_submission(
    results: list[dict[str, Any]], wanted: str
) -> None:
    assert next(work._gates(shown(*results))).startswith(f"  check there: {wanted}")


def test_what_its_owner_says_of_it_is_told_apart() -> None:
    assert next(work._gates(shown(said="met"))) == "  check there: not run yet; its owner says: met"
