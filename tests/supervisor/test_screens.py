"""Last screens: private, masked, no longer than a screen, and gone after seven days."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import cast

import attrs
import pytest
import trio

from client.protocol.ids import SessionGen, SessionId, UnixMs
from client.protocol.session import AgentSession
from daemon.health import now
from supervisor import screens
from supervisor.screens import KEPT, MASK, MOST, Last, Screens, masked, values

DAY = 86_400_000
#: As the disk says it of what is written now.
NOW = now()
TOKEN = "0123456789abcdef" * 4


@attrs.define
class Clock:
    now: UnixMs = NOW

    def __call__(self) -> UnixMs:
        return self.now


@attrs.frozen
class Session:
    """What names a screen."""

    id: SessionId
    session_gen: SessionGen


def session(name: str) -> AgentSession:
    return cast("AgentSession", Session(SessionId(name), SessionGen(3)))


def aged(path: Path, at: int) -> None:
    os.utime(path, ns=(at * 1_000_000, at * 1_000_000))


ONE, TWO = session("one"), session("two")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(tmp_path: Path, clock: Clock) -> Screens:
    return Screens(tmp_path / "data" / "screens", clock, ("the-key-of-the-operator",))


async def test_it_is_a_private_file_of_its_session_and_generation(kept: Screens) -> None:
    former = os.umask(0)
    try:
        await kept.keep(ONE, "\x1b[31mlast\x07 words\r\n  more\u2028  \n\n", [])
    finally:
        os.umask(former)
    (path,) = kept.base.iterdir()
    assert (path.name, path.read_text()) == ("one.3", "[31mlast words\n  more")
    assert [each.stat().st_mode & 0o777 for each in (kept.base, path)] == [0o700, 0o600]


async def test_the_last_fifty_lines_are_kept(kept: Screens) -> None:
    await kept.keep(ONE, "\n".join(str(number) for number in range(120)), [])
    assert kept.of(ONE).read_text().splitlines() == [str(number) for number in range(70, 120)]


async def test_secrets_are_masked_those_of_the_node_and_those_that_were_given(kept: Screens) -> None:
    await kept.keep(ONE, f"key=the-key-of-the-operator; token={TOKEN}!\nquiet", [TOKEN, "", "abc"])
    assert kept.of(ONE).read_text() == f"key={MASK}; token={MASK}!\nquiet"


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        (f"a {TOKEN[:20]}\n{TOKEN[20:]} b", f"a {MASK}\n{MASK} b"),
        (f"| {TOKEN[:30]} |\n| {TOKEN[30:]} |", f"| {MASK} |\n| {MASK} |"),
        (f"{TOKEN[40:]} above it was scrolled away", f"{MASK} above it was scrolled away"),
        (f"cut off: {TOKEN[:15]}", f"cut off: {MASK}"),
        (f"{TOKEN}\x1b[0m{TOKEN}", f"{MASK}[0m{MASK}"),
        (f"{TOKEN[:6]}\x07{TOKEN[6:]}", MASK),
        ("0123 of something else", "0123 of something else"),
    ],
    ids=["wrapped", "in a box", "scrolled", "cut off", "twice", "with a control character", "none"],
)
def test_a_secret_is_masked_also_where_it_is_broken_or_only_a_part_of_it_is_shown(shown: str, left: str) -> None:
    assert masked(shown, [TOKEN]) == left


def test_a_secret_of_several_lines_or_words_is_masked() -> None:
    assert masked("say correct horse\nbattery now", ["correct horse battery"]) == f"say {MASK} {MASK}\n{MASK} now"
    assert masked("-BEGIN-\nAAAABBBB\n-END-", ["-BEGIN-\nAAAABBBB\n-END-\n"]) == f"{MASK}\n{MASK}\n{MASK}"
    assert masked("pass: hunter2, hun\nter2", ["hunter2"]) == f"pass: {MASK}, {MASK}\n{MASK}"


def test_what_is_too_short_to_be_told_from_any_text_is_left() -> None:
    assert masked("1 of 1 done", ["1", "done"]) == "1 of 1 done"


@pytest.mark.parametrize(
    "name",
    [
        "API_KEY",
        "APIKEY",
        "GH_TOKEN",
        "DB_PASSWORD",
        "db_passwd",
        "CLIENT_SECRET",
        "FIRM_CAPABILITY",
        "X_AUTH",
        "KEY",
        "DB_PASS",
        "DB_PWD",
        "AUTHORIZATION",
        "HTTP_AUTHORIZATION",
        "AWS_CREDS",
    ],
)
def test_a_name_says_that_its_value_is_secret(name: str) -> None:
    assert values({name: "v"}) == ["v"]


@pytest.mark.parametrize(
    "name", ["HOME", "GIT_AUTHOR_NAME", "KEYBOARD", "MONKEY", "COMPASS", "PATH", "BYPASSED", "PWD"]
)
def test_other_names_do_not(name: str) -> None:
    assert values({name: "v"}) == []


async def test_it_is_kept_for_seven_days_and_no_longer(kept: Screens, clock: Clock) -> None:
    await kept.keep(ONE, "words", [])
    aged(kept.of(ONE), NOW)
    clock.now = UnixMs(NOW + KEPT)
    assert await kept.last(ONE) == Last("words", NOW)
    clock.now = UnixMs(NOW + KEPT + 1)
    assert await kept.last(ONE) is None
    assert kept.of(ONE).exists(), "nobody has looked through them yet"
    aged(kept.base, NOW)
    await kept.keep(TWO, "words", [])
    assert [each.name for each in kept.base.iterdir()] == ["two.3"]


async def test_when_a_daemon_begins_those_go_that_are_too_old_or_of_a_session_that_does_not_stay(
    kept: Screens,
) -> None:
    asked: list[Collection[SessionId]] = []

    def stays(ids: Collection[SessionId]) -> Collection[SessionId]:
        asked.append(ids)
        return {ONE.id}

    await kept.sweep(stays)
    for each, at in ((ONE, NOW), (TWO, NOW), (session("old"), NOW - 8 * DAY)):
        await kept.keep(each, "words", [])
        aged(kept.of(each), at)
    (kept.base / ".being-written").write_text("")
    aged(kept.base / ".being-written", NOW)
    (kept.base / ".left").write_text("")
    aged(kept.base / ".left", NOW - 8 * DAY)
    await kept.sweep(stays)
    assert sorted(each.name for each in kept.base.iterdir()) == [".being-written", "one.3"]
    assert [set(each) for each in asked] == [set(), {"one", "two"}]


async def test_at_most_so_many_are_kept_the_newest(kept: Screens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screens, "MOST", 2)
    assert MOST > 100
    for number, name in enumerate(("first", "second", "third")):
        await kept.keep(session(name), "words", [])
        aged(kept.of(session(name)), NOW + number)
    await kept.sweep(lambda ids: ids)
    assert sorted(each.name for each in kept.base.iterdir()) == ["second.3", "third.3"]


async def test_a_blank_screen_is_none_and_takes_the_place_of_no_other(kept: Screens) -> None:
    await kept.keep(ONE, "words", [])
    await kept.keep(ONE, " \n\x07\n", [])
    assert kept.of(ONE).read_text() == "words"
    await kept.keep(ONE, "others", [])
    assert kept.of(ONE).read_text() == "others"


async def test_a_disk_that_takes_nothing_is_said_and_keeps_nobody(
    kept: Screens, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(screens, "write", full)
    with caplog.at_level(logging.WARNING):
        await kept.keep(ONE, f"words {TOKEN}", [TOKEN])
    assert "the last screen of session=one cannot be kept: [Errno 28] No space left on device" in caplog.text
    assert (await kept.last(ONE), "words" in caplog.text) == (None, False)


async def test_a_disk_that_hangs_is_not_waited_for(
    kept: Screens, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hangs = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def write(*_: object) -> None:
        trio.from_thread.run(hangs.wait, trio_token=token)

    monkeypatch.setattr(screens, "write", write)
    monkeypatch.setattr(screens, "_WRITE_SECONDS", 0.05)
    with caplog.at_level(logging.WARNING):
        await kept.keep(ONE, "words", [])
    hangs.set()
    assert "the last screen of session=one is not written within 0.05 s" in caplog.text


async def test_what_cannot_be_read_or_removed_is_said(kept: Screens, caplog: pytest.LogCaptureFixture) -> None:
    kept.of(ONE).mkdir(parents=True)
    aged(kept.of(ONE), NOW)
    with caplog.at_level(logging.WARNING):
        assert await kept.last(ONE) is None
        await kept.sweep(lambda _: set())
    assert "cannot be read" in caplog.text
    assert "cannot be removed" in caplog.text
