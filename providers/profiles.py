"""Which program runs a member, by profile. Data: what a profile can say stands in its record."""

from __future__ import annotations

import json
import os
import re
import string
import sys
import tomllib
from collections.abc import Collection
from pathlib import Path

import attrs

from client.protocol import codec
from client.protocol.refusals import Refusal
from client.protocol.session import Heard
from providers import records
from providers.keys import KEYS, NAMED
from providers.port import Typing
from providers.records import Rule

#: What the kernel knows: with this a process runs when hardly anything else wants to.
_NICEST = 19


@attrs.frozen(kw_only=True)
class Native:
    """A conversation that a program keeps beyond its process, under an id that we choose. ``start`` are the words that
    begin one, ``resume`` those that go on with one; both stand behind ``argv`` and name ``{native_id}``. ``transcript``
    is the file without which there is nothing to go on from.
    """

    start: list[str]
    resume: list[str]
    transcript: str

    def words(self, native_id: str, *, resumes: bool) -> list[str]:
        return [word.format(native_id=native_id) for word in (self.resume if resumes else self.start)]

    def file(self, native_id: str, *, cwd: str, home: str) -> Path:
        """The transcript of a session that works in ``cwd``. ``{cwd}`` is where links lead to, as a process sees the
        folder that it is in; in ``{cwd_slug}`` everything but ASCII letters and digits is a dash.
        """
        folder = os.path.realpath(cwd)
        slug = re.sub(r"[^A-Za-z0-9]", "-", folder)
        return Path(self.transcript.format(home=home, cwd=folder, cwd_slug=slug, native_id=native_id))


@attrs.frozen(kw_only=True)
class Hooks:
    """The program's own names of what it runs a command for, by what they say of its turn. It runs ``firm member hook``
    for each of them.
    """

    begun: list[str]
    ended: list[str]
    waiting: list[str] = attrs.Factory(list)

    def meaning(self, event: str) -> Heard | None:
        said = {Heard.BEGUN: self.begun, Heard.ENDED: self.ended, Heard.WAITING: self.waiting}
        return next((what for what, names in said.items() if event in names), None)


@attrs.frozen(kw_only=True)
class Profile:
    """In ``argv`` and the values of ``env`` and ``files``, ``{python}`` is the interpreter of this build, ``{cwd}`` is
    where the member works, and ``{session}`` its session's own folder, in which the ``files`` are before it is started.
    """

    name: str
    argv: list[str]
    env: dict[str, str] = attrs.Factory(dict)
    files: dict[str, str] = attrs.Factory(dict)  # by path below {session}
    nice: int = 10  # of its process and all that it starts: what members do must not keep the daemon from answering
    typing: Typing | None = None  # how it is typed to; a program that takes no text has none
    steers: bool = False  # it takes a text also while it works
    native: Native | None = None  # how it is resumed; a program without it begins anew each time
    hooks: Hooks | None = None  # without it a turn is over when its terminal is quiet
    records: list[Rule] = attrs.Factory(list)  # what it records of a turn in its transcript


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


def keeps(name: str) -> bool:
    """Whether members of this profile keep a conversation beyond their process."""
    found = PROFILES.get(name)
    return found is not None and found.native is not None


def meaning(name: str, event: str) -> Heard | None:
    """What a hook of a program of this profile says of its turn."""
    found = PROFILES.get(name)
    return found.hooks.meaning(event) if found is not None and found.hooks is not None else None


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
    if not 0 <= found.nice <= _NICEST:
        raise Wrong(f"nice is 0 to {_NICEST}: 0 is as everybody else")
    _names_right(found)
    if found.typing is not None:
        _look_at(found.typing)
    if found.native is not None:
        _check(found.native, found.env)
    _check_hooks(found.hooks)
    _check_records(found)
    return found


def _names_right(found: Profile) -> None:
    """Raises ``Wrong``."""
    for variable in found.env:
        if not re.fullmatch(r"(?!FIRM_)[A-Za-z_][A-Za-z0-9_]*", variable):
            raise Wrong(f"{variable!r} is no variable that a profile sets; those of FIRM_ are set by each launch")
    for file in found.files:
        if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", file) or {".", "..", "told"} & set(file.split("/")):
            raise Wrong(f"{file!r} is no path below the session's own folder")


def _check_records(profile: Profile) -> None:
    """Raises ``Wrong``."""
    if profile.records and profile.native is None:
        raise Wrong("records are read from native.transcript, which is missing")
    for why in filter(None, map(records.wrong, profile.records)):
        raise Wrong(why)


def _check_hooks(hooks: Hooks | None) -> None:
    """Raises ``Wrong``. A turn whose end nothing tells of would never be over."""
    if hooks is None:
        return
    if not hooks.ended:
        raise Wrong("hooks.ended names nothing: no turn would ever be over")
    names = [*hooks.begun, *hooks.ended, *hooks.waiting]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Wrong(f"hooks: {', '.join(twice)} stands twice, and would mean two things")


def _check(native: Native, env: Collection[str]) -> None:
    """Raises ``Wrong``. Two sessions share no transcript, so the id stands in everything that says which one."""
    for what, words in (("start", native.start), ("resume", native.resume), ("transcript", [native.transcript])):
        known = {"home", "cwd", "cwd_slug", "native_id"} if what == "transcript" else {"native_id"}
        if "native_id" not in {name for word in words for name in _names(word, known)}:
            raise Wrong(f"native.{what} does not name {{native_id}}")
    if not native.transcript.startswith(("/", "{home}/", "{cwd}/")):
        raise Wrong("native.transcript is no absolute path: begin it with /, {home}/ or {cwd}/")
    if "HOME" in env and native.transcript.startswith("{home}/"):
        raise Wrong("the program gets another HOME than {home}: write native.transcript with the path itself")


def _names(word: str, known: Collection[str]) -> set[str]:
    """What stands in braces in a word; anything but the plain names that are known raises ``Wrong``."""
    try:
        parts = list(string.Formatter().parse(word))
    except ValueError as error:
        raise Wrong(f"{word!r}: {error}") from None
    found = {name for _, name, _, _ in parts if name is not None}
    if found - set(known) or any(spec or conversion for _, _, spec, conversion in parts):
        can_be = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise Wrong(f"{word!r}: in braces there can be {can_be}; a brace itself is written twice")
    return found


def _look_at(typing: Typing) -> None:
    """Raises ``Wrong``."""
    for dialog in typing.dialogs:
        if not dialog.lines:
            raise Wrong("a dialog without lines would stand on every screen")
    if typing.rests and not typing.composer:
        raise Wrong("typing.rests says nothing without typing.composer: where a person types nobody rests")
    for each in (typing.composer, *typing.rests, *(line for dialog in typing.dialogs for line in dialog.lines)):
        try:
            re.compile(each)
        except re.error as error:
            raise Wrong(f"{each!r} is no regular expression: {error}") from None
    for key in (*typing.keys_before_enter, *(key for dialog in typing.dialogs for key in dialog.keys)):
        if key not in KEYS:
            raise Wrong(f"{key!r} is no key: write one character, C-a to C-z, or one of {', '.join(NAMED)}")
