"""Rules are pure: what they import is counted, and nothing in them reaches outside."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "daemon" / "kernel").glob("*.py"))

ALLOWED = {
    "__future__",
    "attrs",
    "base64",
    "binascii",
    "client",
    "collections",
    "daemon",
    "difflib",
    "enum",
    "hashlib",
    "re",
    "typing",
}
FORBIDDEN_CALLS = {"breakpoint", "eval", "exec", "globals", "input", "open", "print", "setattr", "vars", "__import__"}


def imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.stem))
def test_a_rule_imports_nothing_that_changes(path: Path) -> None:
    for name in imports(ast.parse(path.read_text())):
        assert name.partition(".")[0] in ALLOWED
        if name.startswith(("client", "daemon")):
            assert name.startswith(("client.protocol", "daemon.kernel"))
        assert name != "client.protocol.codec", "bytes are no matter of a rule"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.stem))
def test_a_rule_is_a_plain_function_that_reaches_nowhere(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.Global | ast.Nonlocal)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_CALLS


def test_the_rules_run_where_nothing_else_of_the_daemon_is() -> None:
    names = [f"daemon.kernel.{path.stem}" for path in MODULES if path.stem != "__init__"]
    asked = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfor name in {names!r}: __import__(name)\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert [name for name in loaded if name.partition(".")[0] in {"apsw", "cattrs", "msgpack", "store", "trio"}] == []
    assert [name for name in loaded if name.startswith("daemon.")] == sorted(
        {"daemon.kernel", *names}, key=loaded.index
    )
