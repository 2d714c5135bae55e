"""The budgets script is red when something grows, and when an exception is larger than what it excuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "budgets.py"


def lines(count: int) -> str:
    return "x = 1\n" * count


def function(count: int) -> str:
    return "def grown():\n" + "    x = 1\n" * (count - 1)


def methods(count: int) -> str:
    return "class Wide:\n" + "".join(f"    def m{n}(self): ...\n" for n in range(count))


def report(root: Path, *exceptions: tuple[str, int]) -> list[str]:
    """What the script says about a tree: nothing, if it ended well."""
    extra = [word for name, size in exceptions for word in ("--exception", name, str(size))]
    done = subprocess.run(
        [sys.executable, "-I", str(SCRIPT), *extra, str(root)], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    assert bool(done.stdout) == bool(done.returncode)
    return done.stdout.splitlines()


def tree(root: Path, text: str, name: str = "daemon/thing.py") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("fits", "grew", "says"),
    [
        (lines(400), lines(401), "daemon/thing.py has 401 lines; its budget is 400"),
        (function(60), function(61), "daemon/thing.py:1 grown has 61 lines; its budget is 60"),
        (methods(15), methods(16), "daemon/thing.py:1 Wide has 16 methods; its budget is 15"),
    ],
    ids=["file", "function", "class"],
)
def test_what_grows_past_its_budget_is_named(tmp_path: Path, fits: str, grew: str, says: str) -> None:
    assert report(tree(tmp_path, fits)) == []
    assert report(tree(tmp_path, grew)) == [says]


def test_a_function_inside_a_class_or_a_function_has_the_same_budget(tmp_path: Path) -> None:
    inner = "".join(f"    {line}\n" for line in function(61).splitlines())
    assert report(tree(tmp_path, "class Wide:\n" + inner)) == [
        "daemon/thing.py:2 Wide.grown has 61 lines; its budget is 60"
    ]
    assert report(tree(tmp_path, "def outer():\n" + inner)) == [
        "daemon/thing.py:1 outer has 62 lines; its budget is 60",
        "daemon/thing.py:2 outer.grown has 61 lines; its budget is 60",
    ]


def test_a_class_of_tests_may_have_many_methods_but_not_a_long_one(tmp_path: Path) -> None:
    assert report(tree(tmp_path, methods(30), "tests/test_thing.py")) == []
    assert len(report(tree(tmp_path, function(61), "tests/test_thing.py"))) == 1


def test_an_exception_excuses_exactly_the_size_it_names(tmp_path: Path) -> None:
    tree(tmp_path, function(70))
    name = "daemon/thing.py::grown"
    assert report(tmp_path, (name, 70)) == []
    assert report(tmp_path, (name, 69)) == ["daemon/thing.py:1 grown has 70 lines; its budget is 69"]
    assert report(tmp_path, (name, 71)) == ["daemon/thing.py:1 grown shrank to 70 lines: lower its exception from 71"]


def test_an_exception_for_what_fits_or_is_gone_must_be_removed(tmp_path: Path) -> None:
    tree(tmp_path, function(60))
    for name in ("daemon/thing.py::grown", "daemon/gone.py"):
        assert report(tmp_path, (name, 500)) == [f"{name}: its exception is no longer needed"]
