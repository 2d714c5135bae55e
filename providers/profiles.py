"""Which program runs a member, by profile. Data: what a profile can say stands in its record."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs

from client.protocol import codec
from client.protocol.refusals import Refusal
from providers.port import Typing


@attrs.frozen(kw_only=True)
class Profile:
    """``{python}`` in ``argv`` is the interpreter of this build."""

    name: str
    argv: list[str]
    typing: Typing | None = None  # how it is typed to; a program that takes no text has none
    steers: bool = False  # it takes a text also while it works

    def words(self, python: str) -> list[str]:
        """With what it is started."""
        return [word.replace("{python}", python) for word in self.argv]


#: ``command`` is our own worker: it runs a program for each Work and submits its evidence. A daemon adds those of its
#: person when it begins.
PROFILES: dict[str, Profile] = {
    profile.name: profile for profile in (Profile(name="command", argv=["{python}", "-I", "-m", "client.worker"]),)
}


def takes_text(name: str) -> bool:
    """Whether members of this profile are told things at their terminal."""
    found = PROFILES.get(name)
    return found is not None and found.typing is not None


def steers(name: str) -> bool:
    """Whether members of this profile take a text while they work."""
    found = PROFILES.get(name)
    return found is not None and found.typing is not None and found.steers


class Wrong(Exception):
    """A file that says no profile."""


def add(folder: Path) -> list[str]:
    """Add the profiles of a person, one a file; what is wrong with those that could not be read."""
    wrong: list[str] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            PROFILES[path.stem] = read(path.stem, path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, Wrong) as error:
            wrong.append(f"{path}: {error}")
    return wrong


def read(name: str, text: str) -> Profile:
    """A profile as a file says it. Raises ``Wrong``."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Wrong(f"not TOML: {error}") from None
    if "name" in said:
        raise Wrong("its name is that of its file")
    found = codec.exact({**said, "name": name}, Profile, name)
    if isinstance(found, Refusal):
        raise Wrong(found.lifted_by)
    if not found.argv:
        raise Wrong("argv names no program")
    if found.typing is not None:
        for each in (found.typing.composer, *found.typing.dialogs):
            try:
                re.compile(each)
            except re.error as error:
                raise Wrong(f"{each!r} is no regular expression: {error}") from None
    return found
