"""Which program runs a member, by profile. Data: what a profile can say stands in its record."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from providers.port import Typing


@attrs.frozen(kw_only=True)
class Profile:
    """``{python}`` in ``argv`` is the interpreter of this build."""

    name: str
    argv: tuple[str, ...]
    typing: Typing | None = None  # how it is typed to; a program that takes no text has none
    steers: bool = False  # it takes a text also while it works


#: ``command`` is our own worker: it runs a program for each Work and submits its evidence.
PROFILES: Mapping[str, Profile] = {
    profile.name: profile for profile in (Profile(name="command", argv=("{python}", "-I", "-m", "client.worker")),)
}
