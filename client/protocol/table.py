"""The operation table: everything the daemon can be asked to do, in one tuple."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from client.protocol import (
    agent,
    attempt,
    board,
    delegation,
    effect,
    event,
    membership,
    message,
    node,
    project,
    session,
    team,
    team_run,
    verdict,
    work_asks,
    workspace,
)
from client.protocol.operation import Operation, Request
from client.protocol.shape import shapes


def _name(op: Operation) -> str:
    return op.name


_NOUNS = (
    agent,
    attempt,
    board,
    delegation,
    effect,
    event,
    membership,
    message,
    node,
    project,
    session,
    team,
    team_run,
    verdict,
    work_asks,
    workspace,
)

OPERATIONS: tuple[Operation, ...] = tuple(sorted((op for noun in _NOUNS for op in noun.OPERATIONS), key=_name))
BY_NAME: dict[str, Operation] = {op.name: op for op in OPERATIONS}
BY_REQUEST: dict[type[Request[Any]], Operation] = {op.request: op for op in OPERATIONS}


def digest() -> str:
    """A short digest of everything a client must agree on to ask: names, fields, defaults, planes, codes.

    Who says hello has it from ``digest.py``, where ``.ci/generate`` writes it: it is a tenth of a worker's start.
    """
    rows = [
        (
            op.name,
            op.effect,
            sorted(op.planes),
            sorted(op.codes),
            [
                (s.name, s.kind.__name__, s.required, s.many, s.optional, repr(s.default), s.choices)
                for s in shapes(op.request)
            ],
        )
        for op in OPERATIONS
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
