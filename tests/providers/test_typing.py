"""How programs differ in what they want of a keyboard, and what a profile says of each: on every provider."""

from __future__ import annotations

from pathlib import Path

import attrs
import trio

from providers.keys import KEYS
from providers.port import Delivered, Dialog, Handle, Provider, Taken, Typing
from providers.tmux.provider import Tmux
from tests.support.terminals import QUICK, python, shown, started, until

SUBMITTED = Delivered(taken=Taken.SUBMITTED)
#: Sends a line at the so-many-th Enter, and says so for each before; an Enter without a line breaks it.
COUNTS = """
import os, sys, tty
tty.setraw(0)
wanted, line, seen = int(sys.argv[1]), b"", 0
os.write(1, b"ready\\r\\n")
while True:
    for byte in os.read(0, 4096):
        if byte != 13:
            line += bytes([byte]); os.write(1, bytes([byte])); continue
        seen += 1
        if not line: os.write(1, b"\\r\\nbroken\\r\\n")
        elif seen < wanted: os.write(1, b" once more")
        else: os.write(1, b"\\r\\ntook <" + line + b">\\r\\n")
        if seen >= wanted: line, seen = b"", 0
"""
#: In its insert mode Enter begins a line. Escape leaves that mode; what comes within 0.3 s of it is one key with it.
MODES = """
import os, sys, time, tty
tty.setraw(0)
swallow, line, insert, left, escapes = int(sys.argv[1]), b"", True, 0.0, 0
os.write(1, b"ready\\r\\n")
while True:
    for byte in os.read(0, 4096):
        if byte == 27:
            insert, left, escapes = False, time.monotonic(), escapes + 1
            os.write(1, b" [normal]")
        elif byte == 13 and (insert or time.monotonic() - left < 0.3):
            line += b"/"; os.write(1, b"/")
        elif byte == 13:
            if swallow: swallow -= 1; continue
            os.write(1, b"\\r\\ntook <%s> after %d\\r\\n" % (line, escapes)); line, insert, escapes = b"", True, 0
        else:
            line += bytes([byte]); os.write(1, bytes([byte]))
"""
#: Counts in its first line how often something came, and takes nothing.
COUNTER = """
import os, tty
tty.setraw(0)
os.write(1, b"\\x1b[2J\\x1b[3;1H> ")
for count in range(10**6):
    os.write(1, os.read(0, 4096).replace(b"\\r", b"") + b"\\x1b7\\x1b[1;1H%d\\x1b8" % count)
"""
#: Says what it reads, in hexadecimal.
READS = """
import os, tty
tty.setraw(0)
os.write(1, b"ready\\r\\n")
while True:
    os.write(1, os.read(0, 4096).hex().encode())
"""
#: Shows each text in turn, and waits there for its key, all in lines of a file; what is read goes to the file ``read``
#: beside it. Where there is none left it is a composer.
ASKS = """
import os, sys, tty
tty.setraw(0)
folder = sys.argv[1]
def show(text): os.write(1, text.replace("|", "\\r\\n").encode())
def read():
    data = os.read(0, 1)
    with open(folder + "/read", "ab") as log: log.write(data)
    return data
def ask():
    for row in open(folder + "/asks").read().splitlines():
        text, key = row.rsplit(" -> ", 1)
        show("\\r\\n" * 2 + ".|" * 20 + text + "|")
        while read() != key.encode(): pass
    os.remove(folder + "/asks")
def composer():
    if os.path.exists(folder + "/asks"):
        ask()
        show("\\r\\n" + ".|" * 20)
    show("> ")
composer()
line = b""
while True:
    byte = read()
    if byte != b"\\r":
        line += byte; os.write(1, byte); continue
    show("||took <" + line.decode() + ">|"); line = b""
    composer()
"""
TRUST = "Do you trust this folder?|# 1. Yes|  2. No"
UPDATE = "Update available!|# 1. Update now|  2. Skip"
PICKER = "# 1. Resume from summary|  2. Resume full session"
TRUSTS = Dialog(lines=[r"^Do you trust", r"^# 1\. Yes"], keys=["1"])
UPDATES = Dialog(lines=[r"^Update available"])
PICKS = Dialog(lines=[r"Resume from summary", r"Resume full session"], keys=["Down", "2"])
ASKED = attrs.evolve(QUICK, composer=r">\s*", dialogs=[TRUSTS, UPDATES, PICKS], after_keys=0.1)


async def begun(provider: Provider, folder: Path, program: str, *words: str) -> Handle:
    handle = await started(provider, python(folder, program, *words))
    await shown(provider, handle, "ready")
    return handle


async def test_a_program_that_wants_enter_twice_gets_it_twice(provider: Provider, tmp_path: Path) -> None:
    handle = await begun(provider, tmp_path, COUNTS, "2")
    for text in ("one", "two"):
        assert await provider.deliver(handle, text, attrs.evolve(QUICK, enters=2), text) == SUBMITTED
        assert f"{text} once more\ntook <{text}>" in await shown(provider, handle, f"took <{text}>")
    assert "broken" not in await shown(provider, handle, "two")


async def test_a_program_that_a_second_enter_breaks_gets_one(provider: Provider, tmp_path: Path) -> None:
    handle = await begun(provider, tmp_path, COUNTS, "1")
    for text in ("one", "two"):
        assert await provider.deliver(handle, text, QUICK, text) == SUBMITTED
    assert "broken" not in await shown(provider, handle, "took <two>")
    await provider.deliver(handle, "three", attrs.evolve(QUICK, enters=2), "three")
    await shown(provider, handle, "broken")  # it is one that would show it


async def test_what_still_stands_in_the_composer_was_not_taken_whatever_else_changes(
    tmux: Tmux, tmp_path: Path
) -> None:
    handle = await started(tmux, python(tmp_path, COUNTER))
    await shown(tmux, handle, ">")
    found = await tmux.deliver(handle, "words", attrs.evolve(QUICK, composer=r">\s*"), "1")
    assert isinstance(found, Delivered)
    assert found.taken is Taken.UNSUBMITTED


async def test_keys_of_the_profile_come_before_enter_and_are_given_their_time(
    provider: Provider, tmp_path: Path
) -> None:
    """An Enter that was lost is pressed again, the keys are not: what they show is no sign that it was taken."""
    handle = await begun(provider, tmp_path, MODES, "1")
    modal = attrs.evolve(QUICK, keys_before_enter=["Escape"], after_keys=0.6)
    for text in ("one", "two"):
        assert await provider.deliver(handle, text, modal, text) == SUBMITTED
        await shown(provider, handle, f"took <{text}> after 1")


async def test_no_key_but_enter_is_pressed_unless_a_profile_says_so(provider: Provider, tmp_path: Path) -> None:
    """Escape cancels the turn of other programs."""
    handle = await begun(provider, tmp_path, MODES, "0")
    await provider.deliver(handle, "one", QUICK, "1")
    assert "[normal]" not in await shown(provider, handle, "one/")


async def test_keys_that_were_pressed_are_not_pressed_again(provider: Provider, tmp_path: Path) -> None:
    """Whoever pressed them ended before Enter; twice they may mean something else."""
    handle = await begun(provider, tmp_path, MODES, "0")
    modal = attrs.evolve(QUICK, keys_before_enter=["Escape"], after_keys=30)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(provider.deliver, handle, "one", modal, "1")
        await shown(provider, handle, "[normal]")
        nursery.cancel_scope.cancel()
    assert await provider.deliver(handle, "one", attrs.evolve(modal, after_keys=0.6), "1") == SUBMITTED
    await shown(provider, handle, "took <one> after 1")


async def test_every_key_is_what_a_terminal_sends_for_it(provider: Provider, tmp_path: Path) -> None:
    handle = await begun(provider, tmp_path, READS)
    keys = attrs.evolve(QUICK, keys_before_enter=list(KEYS), after_keys=0.1)
    assert await provider.deliver(handle, "x", keys, "1") == SUBMITTED
    wanted = b"x" + b"".join(KEYS.values()) + b"\r"
    screen = await shown(provider, handle, wanted.hex()[-8:])
    assert "".join(screen.split()) == "ready" + wanted.hex()


async def asking(provider: Provider, folder: Path, *rows: str) -> Handle:
    (folder / "asks").write_text("\n".join(rows))
    handle = await started(provider, python(folder, ASKS, str(folder)))
    await shown(provider, handle, rows[0].split("|")[0] if rows else ">")
    return handle


def pressed(folder: Path) -> bytes:
    return (folder / "read").read_bytes() if (folder / "read").exists() else b""


async def deliver(provider: Provider, handle: Handle, text: str, typing: Typing = ASKED) -> Delivered:
    found = await provider.deliver(handle, text, typing, text)
    assert isinstance(found, Delivered)
    return found


async def test_a_dialog_is_answered_with_its_keys_and_then_the_text_is_typed(
    provider: Provider, tmp_path: Path
) -> None:
    """One after the other, when there are several; what was pressed at which is said."""
    handle = await asking(provider, tmp_path, f"{TRUST} -> 1", f"{PICKER} -> 2")
    found = await deliver(provider, handle, "words")
    trust = "answered with 1: Do you trust this folder? / # 1. Yes / 2. No"
    picker = "answered with Down 2: # 1. Resume from summary / 2. Resume full session"
    assert found == Delivered(taken=Taken.SUBMITTED, reason=f"{trust}; {picker}")
    assert pressed(tmp_path) == b"1" + KEYS["Down"] + b"2" + b"words\r"


async def test_a_dialog_without_an_answer_is_shown_to_a_person_and_no_key_is_pressed(
    provider: Provider, tmp_path: Path
) -> None:
    handle = await asking(provider, tmp_path, f"{UPDATE} -> z")
    found = await deliver(provider, handle, "words")
    text = "Update available! / # 1. Update now / 2. Skip"
    assert found == Delivered(taken=Taken.HELD, reason=f"dialog: it waits for a person: {text}")
    assert pressed(tmp_path) == b""


async def test_only_exactly_the_dialog_that_a_profile_names_is_answered(provider: Provider, tmp_path: Path) -> None:
    """One that has not all of its lines, as when another choice is marked, is somebody else's to answer."""
    handle = await asking(provider, tmp_path, "Do you trust this folder?|  1. Yes|# 2. No -> z")
    assert (await deliver(provider, handle, "words")).taken is Taken.HELD
    assert pressed(tmp_path) == b""


async def test_where_another_dialog_fits_too_a_person_decides(provider: Provider, tmp_path: Path) -> None:
    both = f"{TRUST}|Update available! -> z"
    handle = await asking(provider, tmp_path, both)
    found = await deliver(provider, handle, "words")
    assert found.reason.startswith("dialog: it waits for a person: Do you trust this folder?")
    other = Dialog(lines=[r"2\. No"], keys=["2"])
    found = await deliver(provider, handle, "words", attrs.evolve(ASKED, dialogs=[TRUSTS, other]))
    assert found.reason.startswith("dialog: it waits for a person: Do you trust this folder?")
    assert pressed(tmp_path) == b""


async def test_an_answer_that_changes_nothing_is_given_once_and_a_person_is_told(
    provider: Provider, tmp_path: Path
) -> None:
    """Until it is gone. When it is there another time it is answered another time."""
    handle = await asking(provider, tmp_path, f"{TRUST} -> \x03")
    for _ in range(3):
        found = await deliver(provider, handle, "words")
        assert (found.taken, "; it was answered, and is still there" in found.reason) == (Taken.HELD, True)
    with trio.move_on_after(0.5) as waited:
        await provider.clear(handle, ASKED)
    assert waited.cancelled_caught
    assert pressed(tmp_path) == b"1"
    assert await provider.interrupt(handle) is True  # what ends this one
    with trio.fail_after(5):
        await provider.clear(handle, ASKED)
    (tmp_path / "asks").write_text(f"{TRUST} -> 1")
    assert (await deliver(provider, handle, "first")).taken is Taken.SUBMITTED
    await shown(provider, handle, "took <first>")
    found = await deliver(provider, handle, "second")
    assert (found.taken, found.reason.startswith("answered with 1: ")) == (Taken.SUBMITTED, True)
    assert pressed(tmp_path) == b"1\x03" + b"first\r" + b"1" + b"second\r"


async def test_who_waits_for_one_thing_to_hold_a_text_no_more_hears_that_another_does(
    provider: Provider, tmp_path: Path
) -> None:
    handle = await asking(provider, tmp_path, f"{TRUST}|Update available! -> z")
    said = await deliver(provider, handle, "words")
    with trio.move_on_after(0.5) as waited:
        await provider.clear(handle, ASKED, said.reason)
    assert waited.cancelled_caught
    with trio.fail_after(5):
        await provider.clear(handle, ASKED, "no composer: it has shown nothing yet")


async def test_a_tmux_keeps_for_another_process_which_dialog_was_answered(tmux: Tmux, tmp_path: Path) -> None:
    """Whoever answered it may have died over it."""
    handle = await asking(tmux, tmp_path, f"{TRUST} -> z")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deliver, tmux, handle, "words", attrs.evolve(ASKED, settle=30))

        async def answered() -> bool:
            await trio.lowlevel.checkpoint()
            return pressed(tmp_path) == b"1"

        await until(answered)
        nursery.cancel_scope.cancel()
    successor = Tmux(tmux._places.folder)
    await successor.open()
    found = await deliver(successor, handle, "words")
    assert (found.taken, "; it was answered, and is still there" in found.reason) == (Taken.HELD, True)
    assert pressed(tmp_path) == b"1"


async def test_what_only_looks_like_a_dialog_above_an_empty_composer_presses_no_key(
    provider: Provider, tmp_path: Path
) -> None:
    """A message that quotes one stands there after it was taken."""
    (tmp_path / "asks").write_text("")
    handle = await started(provider, python(tmp_path, ASKS, str(tmp_path)))
    await shown(provider, handle, ">")
    assert (await deliver(provider, handle, "Do you trust it? 1. Yes")).taken is Taken.SUBMITTED
    quoted = attrs.evolve(ASKED, dialogs=[Dialog(lines=["Do you trust", r"1\. Yes"], keys=["1"])])
    assert (await deliver(provider, handle, "words", quoted)) == SUBMITTED
    assert pressed(tmp_path) == b"Do you trust it? 1. Yes\rwords\r"
