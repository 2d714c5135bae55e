"""What a row of the operation table says."""

from __future__ import annotations

import enum
import sys
import typing
from typing import Any, Generic, Protocol, TypeVar

import attrs

from client.protocol.refusals import COMMON, WRITING, Code, Refusal

R = TypeVar("R")


class Request(Generic[R]):
    """A question to the daemon whose answer is an ``R``."""

    __slots__ = ()


class Node(Protocol):
    """Anything that answers requests: a connection, or the daemon itself."""

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal: ...


class Plane(enum.StrEnum):
    """Who may ask. A peer holds one plane for the life of its connection."""

    HOST = "host"
    MEMBER = "member"
    OBSERVER = "observer"
    OPERATOR = "operator"
    SUPERVISOR = "supervisor"


class Effect(enum.StrEnum):
    """What answering takes, and therefore where it runs and how a lost answer may be repeated."""

    READ = "read"  # one record or one page, on the event loop; repeat freely
    SCAN = "scan"  # a longer read, in the reader pool; repeat freely
    WRITE = "write"  # a unit of the group commit; the same key returns the first answer
    LIVE = "live"  # answered by the running daemon, may wait; repeat freely
    STREAM = "stream"  # many answers until cancelled


@attrs.frozen
class Operation:
    """One thing the daemon can be asked to do."""

    name: str  # "<noun>.<verb>": also the command, the MCP tool and the HTTP path
    request: type[Request[Any]]
    planes: frozenset[Plane]
    effect: Effect
    refuses: tuple[Code, ...] = ()

    @property
    def noun(self) -> str:
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        return self.name.partition(".")[2]

    @property
    def summary(self) -> str:
        return (self.request.__doc__ or "").strip().partition("\n")[0]

    @property
    def response(self) -> type[Any]:
        """The ``R`` in ``class ShowTeam(Request[R])``."""
        for base in getattr(self.request, "__orig_bases__", ()):
            if typing.get_origin(base) is Request:
                (response,) = typing.get_args(base)
                return typing.cast("type[Any]", response)
        raise TypeError(f"{self.request.__name__} does not say what answers it")

    @property
    def codes(self) -> frozenset[Code]:
        """Every code this operation may refuse with."""
        writing = WRITING if self.effect is Effect.WRITE else ()
        return frozenset((*COMMON, *writing, *self.refuses))


def row(request: type[Request[Any]]) -> Operation:
    """The row of a request. It stands in the module of its noun: a client loads the nouns that it asks about, not the
    whole table.
    """
    rows: tuple[Operation, ...] = sys.modules[request.__module__].OPERATIONS
    return next(op for op in rows if op.request is request)


#: Everybody who may look.
READERS = frozenset({Plane.HOST, Plane.MEMBER, Plane.OBSERVER, Plane.OPERATOR, Plane.SUPERVISOR})
OPERATOR = frozenset({Plane.OPERATOR})
HOST_OR_OPERATOR = frozenset({Plane.HOST, Plane.OPERATOR})
MEMBER_OR_ABOVE = frozenset({Plane.HOST, Plane.MEMBER, Plane.OPERATOR})
#: Those who can answer for a Work. A Host is a member of its own team.
MEMBERS = frozenset({Plane.HOST, Plane.MEMBER})
SUPERVISOR = frozenset({Plane.SUPERVISOR})
