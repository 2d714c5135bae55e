"""Lifecycles as tables: states, causes, and the states they lead to."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Generic, TypeVar

import attrs

from client.protocol.refusals import Code, Refusal

S = TypeVar("S", bound=enum.StrEnum)
C = TypeVar("C", bound=enum.StrEnum)


@attrs.frozen
class Lifecycle(Generic[S, C]):
    """A closed table: ``moves[state][cause]`` is the next state; absent means illegal."""

    name: str
    start: S
    moves: Mapping[S, Mapping[C, S]]

    def after(self, state: S, cause: C, about: str) -> S | Refusal:
        """The next state, or the refusal that says which states the cause is good in."""
        to = self.moves[state].get(cause)
        if to is not None:
            return to
        good = [s.value for s, out in self.moves.items() if cause in out]
        return Refusal(
            code=Code.INVALID_STATE_TRANSITION,
            about=about,
            lifted_by=f"it is {state.value}; this is possible while it is {' or '.join(good)}",
        )

    @property
    def final(self) -> frozenset[S]:
        return frozenset(s for s, out in self.moves.items() if not out)

    def mermaid(self) -> str:
        """A state diagram for the documentation."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.start.value}"]
        for state, out in self.moves.items():
            lines += [f"    {state.value} --> {to.value}: {cause.value}" for cause, to in out.items()]
            if not out:
                lines.append(f"    {state.value} --> [*]")
        return "\n".join(lines)
