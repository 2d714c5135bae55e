"""``docs/proofs.md`` and ``docs/tmux-failures.md`` name a test that is there for everything that must hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/proofs.md"
#: Everything that has to stand in the table.
INVARIANTS = range(1, 51)
REPORTS = [*range(1, 30)]
GATES = ["A06", "A11", "A13", "A14", "A24"]


def rows() -> dict[str, list[str]]:
    """The tests of each id."""
    found: dict[str, list[str]] = {}
    for line in PAGE.read_text().splitlines():
        if match := re.fullmatch(r"\| ((?:I|G|R|RF-A)\d+) \| [^|]+\. \| (.+) \|", line):
            assert match[1] not in found, match[1]
            found[match[1]] = re.findall(r"`([^`]+)`", match[2])
    return found


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    if not (ROOT / path).is_file():
        return False
    defined = ast.walk(ast.parse((ROOT / path).read_text()))
    return any(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name for each in defined)


def test_everything_that_must_hold_has_a_row() -> None:
    wanted = [*(f"I{n}" for n in INVARIANTS), "G1", "G2", "G3", *(f"R{n}" for n in REPORTS)]
    assert list(rows()) == wanted + [f"RF-{gate}" for gate in GATES]


def test_every_test_that_is_named_is_there() -> None:
    named = rows()
    assert all(named.values())
    assert [test for tests in named.values() for test in tests if not exists(test)] == []
    assert not exists("tests/layout/test_proofs.py::test_of_another_name")


#: How the last column begins where no test is named.
WHY = ("does not apply: ", "not yet: ")


def failures() -> dict[int, str]:
    """What shows each of them."""
    found: dict[int, str] = {}
    for line in (ROOT / "docs/tmux-failures.md").read_text().splitlines():
        if match := re.fullmatch(r"\| (\d+) \| [^|]+\. \| [^|]+\. \| (.+) \|", line):
            found[int(match[1])] = match[2]
    return found


def test_every_tmux_failure_has_its_tests_or_says_why_not() -> None:
    shown = failures()
    assert list(shown) == list(range(1, 42))
    wrong: list[str] = []
    for said in shown.values():
        named = re.findall(r"`([^`]+)`", said)
        tests = [test for test in named if "::" in test]
        if said.startswith(WHY):
            wrong += [f"{said}: names a test"] if tests else []
        else:
            wrong += [said] if " ".join(f"`{test}`" for test in tests) != said else []
            wrong += [test for test in tests if not exists(test)]
    assert wrong == []
