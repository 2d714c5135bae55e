"""What the line of a named check says, and when its results let a submission be accepted."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.attempt import CheckResult
from client.protocol.checks import MOST_SECONDS, SECONDS, NamedCheck, read
from client.protocol.ids import ReceiptId, UnixMs
from client.protocol.refusals import Code
from client.protocol.work import Phase
from daemon.kernel.attempt import bad_checks
from daemon.kernel.verdict import gate
from tests.support import records


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("unit=sh tests/run.sh", NamedCheck("unit", ("sh", "tests/run.sh"), SECONDS)),
        ("unit=limit=5 sh run", NamedCheck("unit", ("sh", "run"), 5)),
        (f"unit=limit={MOST_SECONDS} x", NamedCheck("unit", ("x",), MOST_SECONDS)),
        ("unit= limit=5   make 'a b' c\\ d", NamedCheck("unit", ("make", "a b", "c d"), 5)),
        ("unit=env limit=5 x", NamedCheck("unit", ("env", "limit=5", "x"), SECONDS)),
        ("unit=a; rm -r $HOME | b", NamedCheck("unit", ("a;", "rm", "-r", "$HOME", "|", "b"), SECONDS)),
    ],
)
def test_a_line_is_split_into_words_and_its_limit_is_not_one_of_them(line: str, check: NamedCheck) -> None:
    assert read(line) == check


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("unit=limit= x", "limit= is no number"),
        ("unit=limit=0 x", "limit=0 is no number"),
        ("unit=limit=-1 x", "limit=-1 is no number"),
        ("unit=limit=1.5 x", "limit=1.5 is no number"),
        (f"unit=limit={MOST_SECONDS + 1} x", "is no number of seconds from 1 to"),
        ("unit=limit=5", "names no program"),
        ("unit=limit=5 ", "names no program"),
        ("unit=''", "names no program"),
        ("unit=sh 'a", "cannot be split"),
    ],
)
def test_a_line_that_cannot_be_run_is_refused_with_its_name(line: str, why: str) -> None:
    assert why in str(read(line))
    refusal = bad_checks([line])
    assert refusal is not None
    assert refusal.code is Code.MALFORMED
    assert f"unit: {read(line)}" in refusal.lifted_by


WORK = attrs.evolve(records.WORK, phase=Phase.REVIEW, checks=["unit=a", "lint=b"], receipt_id=ReceiptId("rr1"))


def result(name: str, *, passed: bool = True, snapshot: str = "tree", line: str = "") -> CheckResult:
    lines = dict(each.split("=") for each in WORK.checks)
    return CheckResult(
        receipt_id=ReceiptId("rr1"),
        name=name,
        passed=passed,
        snapshot=snapshot,
        log_digest="d",
        at=UnixMs(1),
        line=line or f"{name}={lines.get(name, '')}",
    )


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([result("unit"), result("lint")], None),
        ([], "check unit has no result yet"),
        ([result("unit")], "check lint has no result yet"),
        ([result("unit"), result("lint", passed=False)], "check lint failed"),
        ([result("unit", line="unit=c"), result("lint")], "check unit has no result yet"),
        ([result("unit"), result("lint", snapshot="other")], "check lint passed on another snapshot"),
        ([result("unit", snapshot=""), result("lint", snapshot="")], "check unit passed on no snapshot"),
        ([result("unit", snapshot="tree"), result("lint"), result("gone", passed=False)], None),
    ],
)
def test_the_gate_opens_once_every_check_passed_on_one_snapshot(results: list[CheckResult], said: str | None) -> None:
    refusal = gate(WORK, {each.name: each for each in results}, None)
    assert (refusal is None) == (said is None)
    if refusal is not None and said is not None:
        assert refusal.code is Code.GATE_NOT_PASSED
        assert refusal.lifted_by.startswith(f"{said};")


def test_a_work_without_a_named_check_has_no_gate() -> None:
    assert gate(attrs.evolve(WORK, checks=[]), {}, None) is None
