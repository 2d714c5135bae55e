"""The command line's index, rendered from the operation table: one module a noun, plain tuples, no import.

attrs alone costs four interpreter starts, so the ``firm`` command never imports the table. It reads these modules
instead; they are committed, and a check compares them with the table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any

from client.protocol.operation import Operation
from client.protocol.refusals import ROWS
from client.protocol.shape import Shape, shapes
from client.protocol.table import DIGEST

_HEAD = '"""Generated from the operation table by ``.ci/generate``; do not edit."""\n\n'


def modules(operations: Iterable[Operation], nouns: dict[str, str]) -> dict[str, str]:
    """File name to text, for the folder ``client/cli/index``. ``nouns`` gives each noun's one-line help."""
    rows = list(operations)
    if unknown := {op.noun for op in rows} - nouns.keys():
        raise ValueError(f"no help for {sorted(unknown)}: add a line to NOUNS in .ci/generate")
    files = {f"{noun.replace('-', '_')}.py": _noun([op for op in rows if op.noun == noun]) for noun in nouns}
    codes = "".join(f"    {code.value!r}: {(r.exit, r.retry.value, r.meaning)!r},\n" for code, r in ROWS.items())
    listed = "".join(f"    {noun!r}: {help_line!r},\n" for noun, help_line in nouns.items())
    files["__init__.py"] = (
        f"{_HEAD}DIGEST = {DIGEST!r}\n\n# noun: help\nNOUNS = {{\n{listed}}}\n\n"
        f"# code: (exit status, retry, meaning)\nCODES = {{\n{codes}}}\n"
    )
    return files


def _noun(operations: list[Operation]) -> str:
    lines = [_HEAD, "# verb: (operation, effect, help, fields)\n"]
    lines.append("# field: (name, flag, kind, required, default, choices, many, path, help)\nVERBS = {\n")
    for op in operations:
        lines.append(
            f"    {op.verb!r}: (\n        {op.name!r},\n        {op.effect.value!r},\n        {op.summary!r},\n"
        )
        lines.append("        (\n")
        lines.extend(f"            {field!r},\n" for field in _fields(op))
        lines.append("        ),\n    ),\n")
    lines.append("}\n")
    return "".join(lines)


def _fields(op: Operation) -> Iterator[tuple[Any, ...]]:
    for s in shapes(op.request):
        kind = "str" if issubclass(s.kind, str) else s.kind.__name__
        default = s.default.value if isinstance(s.default, enum.Enum) else s.default
        default = tuple(default) if s.many else default
        choices = tuple(s.choices) if s.choices else None
        yield (s.name, flag(s), kind, s.required, default, choices, s.many, s.path, s.help)


#: Plurals that end otherwise.
_ONE = {"criteria": "criterion"}


def flag(shape: Shape) -> str:
    """``--skill`` for ``skills``: a list is given one item at a time."""
    name = shape.name.replace("_", "-")
    if shape.many:
        name = _ONE.get(name) or (name[:-3] + "y" if name.endswith("ies") else name.removesuffix("s"))
    return "--" + name
