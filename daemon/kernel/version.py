"""Compare-and-set: a change names the version it saw."""

from __future__ import annotations

from client.protocol.refusals import Code, Refusal


def moved(about: str, *, current: int, expected: int) -> Refusal | None:
    """Why a change that saw ``expected`` comes too late, or None."""
    if current == expected:
        return None
    return Refusal(
        code=Code.VERSION_CONFLICT,
        about=about,
        lifted_by=f"it is at version {current}; read it again and decide again",
        current_version=current,
    )
