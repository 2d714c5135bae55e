"""Which program runs a member, by profile. Data: what a profile can say stands in its record."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import attrs

from client.protocol import codec
from client.protocol.refusals import Refusal
from providers.keys import KEYS, NAMED
from providers.port import Typing


@attrs.frozen(kw_only=True)
class Profile:
    """In ``argv`` and the values of ``env`` and ``files``, ``{python}`` is the interpreter of this build, ``{cwd}`` is
    where the member works, and ``{session}`` its session's own folder, in which the ``files`` are before it is started.
    """

    name: str
    argv: list[str]
    env: dict[str, str] = attrs.Factory(dict)
    files: dict[str, str] = attrs.Factory(dict)  # by path below {session}
    typing: Typing | None = None  # how it is typed to; a program that takes no text has none
    steers: bool = False  # it takes a text also while it works


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


@attrs.frozen
class Place:
    """Where a program is started."""

    cwd: str
    session: str

    def words(self, of: Profile) -> list[str]:
        return [self._filled(word) for word in of.argv]

    def env(self, of: Profile) -> dict[str, str]:
        return {name: self._filled(value) for name, value in of.env.items()}

    def files(self, of: Profile) -> dict[str, str]:
        """In JSON and TOML a place stands in a string, in which quotes and backslashes are written otherwise."""
        return {name: self._filled(text, quoted=name.endswith((".json", ".toml"))) for name, text in of.files.items()}

    def _filled(self, text: str, *, quoted: bool = False) -> str:
        """Other braces stand for themselves."""
        known = {"python": sys.executable, "cwd": self.cwd, "session": self.session}

        def put(found: re.Match[str]) -> str:
            value = known[found[1]]
            return json.dumps(value, ensure_ascii=False)[1:-1] if quoted else value

        return re.sub(r"\{(python|cwd|session)\}", put, text)


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
    for variable in found.env:
        if not re.fullmatch(r"(?!FIRM_)[A-Za-z_][A-Za-z0-9_]*", variable):
            raise Wrong(f"{variable!r} is no variable that a profile sets; those of FIRM_ are set by each launch")
    for file in found.files:
        if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", file) or {".", "..", "told"} & set(file.split("/")):
            raise Wrong(f"{file!r} is no path below the session's own folder")
    if found.typing is not None:
        _look_at(found.typing)
    return found


def _look_at(typing: Typing) -> None:
    """Raises ``Wrong``."""
    for dialog in typing.dialogs:
        if not dialog.lines:
            raise Wrong("a dialog without lines would stand on every screen")
    for each in (typing.composer, *(line for dialog in typing.dialogs for line in dialog.lines)):
        try:
            re.compile(each)
        except re.error as error:
            raise Wrong(f"{each!r} is no regular expression: {error}") from None
    for key in (*typing.keys_before_enter, *(key for dialog in typing.dialogs for key in dialog.keys)):
        if key not in KEYS:
            raise Wrong(f"{key!r} is no key: write one character, C-a to C-z, or one of {', '.join(NAMED)}")
