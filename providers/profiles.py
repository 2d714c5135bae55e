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
    typing: Typing = attrs.Factory(Typing)


#: ``command`` is our own worker: it runs a program for each Work and submits its evidence.
PROFILES: Mapping[str, Profile] = {
    profile.name: profile for profile in (Profile(name="command", argv=("{python}", "-I", "-m", "client.worker")),)
}
