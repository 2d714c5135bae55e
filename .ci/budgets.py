"""Caps the tail: no file over 400 lines, no function over 60, no class of the product with over 15 methods.

Code that is hard to read is rarely bad in the middle; it has a few things that grew. One that must stay large
stands in EXCEPTIONS with its size today and a reason. That number may only fall: an exception for something
that shrank, or is gone, is an error too.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

FILE_LINES = 400
FUNCTION_LINES = 60
CLASS_METHODS = 15

#: "path", "path::Class" or "path::Class.function" → its size today, and why it is so.
EXCEPTIONS: dict[str, tuple[int, str]] = {}

#: Not ours, or not written by hand. Generated files answer to what generates them.
SKIPPED = {".git", ".venv", "__pycache__", ".hypothesis", "dist"}
GENERATED = ("client/cli/index/",)


class Size(NamedTuple):
    """One thing, how large it is, and what it may be."""

    name: str
    line: int
    size: int
    budget: int
    unit: str


def sizes(root: Path) -> Iterator[Size]:
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if SKIPPED.intersection(path.relative_to(root).parts) or name.startswith(GENERATED):
            continue
        text = path.read_text()
        yield Size(name, 1, len(text.splitlines()), FILE_LINES, "lines")
        yield from _within(ast.parse(text, name), f"{name}::", product=not name.startswith("tests/"))


def _within(node: ast.AST, prefix: str, *, product: bool) -> Iterator[Size]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            methods = sum(isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) for item in child.body)
            if product:
                yield Size(prefix + child.name, child.lineno, methods, CLASS_METHODS, "methods")
            yield from _within(child, f"{prefix}{child.name}.", product=product)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (child.end_lineno or child.lineno) - child.lineno + 1
            yield Size(prefix + child.name, child.lineno, lines, FUNCTION_LINES, "lines")
            yield from _within(child, f"{prefix}{child.name}.", product=product)
        else:
            yield from _within(child, prefix, product=product)


def faults(found: Iterator[Size], exceptions: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    """What breaks a budget, and which exceptions are larger than they need to be."""
    needed: set[str] = set()
    for name, line, size, budget, unit in found:
        allowed = exceptions[name][0] if name in exceptions else budget
        where = name.replace("::", f":{line} ", 1)
        if size > allowed:
            yield f"{where} has {size} {unit}; its budget is {allowed}"
        if name in exceptions and size > budget:
            needed.add(name)
            if size < allowed:
                yield f"{where} shrank to {size} {unit}: lower its exception from {allowed}"
    yield from (f"{name}: its exception is no longer needed" for name in exceptions if name not in needed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, help="another tree, without our exceptions")
    parser.add_argument("--exception", nargs=2, action="append", default=[], metavar=("NAME", "SIZE"))
    asked = parser.parse_args()
    given = {name: (int(size), "given by the caller") for name, size in asked.exception}
    root = asked.root or Path(__file__).resolve().parent.parent
    found = list(faults(sizes(root), given if asked.root else EXCEPTIONS))
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
