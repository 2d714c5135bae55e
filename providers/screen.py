"""What a terminal shows, as text that is safe to pass on, and typing into it until it shows that it was taken."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import Protocol

import attrs
import trio

from providers.dialogs import Asked, stand, standing
from providers.port import Delivered, Taken, Typing, Unreachable

LINES = 50

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LOOK_EVERY = 0.05
#: The cursor stands in an empty line.
_NOT_YET = "no composer: the program does not show yet where one types"
#: Dialogs that are answered before one text.
_MOST_ANSWERS = 5
#: Looks in a row at which one that was answered is not there, before it is gone and not only drawn anew.
_SURE = 2
#: How often Enter is pressed at most, and how many times the profile's time each of them gets.
_PATIENCE = (1.0, 1.5, 2.0)


def plain(text: str) -> str:
    """Without control characters, but for tabs and ends of lines. What is pasted could otherwise end the paste and
    press keys; what is shown could write to the terminal of whoever reads it.
    """
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def last_lines(text: str) -> str:
    lines = [line.rstrip() for line in plain(text).rstrip().splitlines()]
    return "\n".join(lines[-LINES:])


class Step(enum.StrEnum):
    """How far a delivery came, as it is kept with its terminal: noted with the step itself, or before it."""

    NOTHING = "nothing"
    PASTED = "pasted"
    READIED = "readied"
    ENTERED = "entered"
    SUBMITTED = "submitted"


@attrs.frozen
class Screen:
    """The lines that are shown, and which of them the cursor stands in."""

    lines: list[str]
    row: int

    @property
    def at_cursor(self) -> str:
        return self.lines[self.row] if self.row < len(self.lines) else ""


class Keyboard(Protocol):
    """One terminal, while one writer has it."""

    async def blocked(self) -> Delivered | Unreachable | None:
        """Why nothing may be typed now, whatever it shows."""
        ...

    async def paste(self, text: str) -> Delivered | Unreachable | None: ...

    async def steps(self, keys: Sequence[str], step: Step) -> Delivered | Unreachable | None:
        """Press keys at once, and note how far this delivery is with them."""
        ...

    async def press(self, *keys: str) -> Delivered | Unreachable | None: ...

    async def answer(self, mark: str, *keys: str) -> Delivered | Unreachable | None:
        """Note which dialog is answered, and press; with neither, that it was seen to be gone."""
        ...

    async def answered(self) -> str | Delivered | Unreachable:
        """The mark of the dialog that was answered and not seen to be gone; empty where there is none."""
        ...

    async def look(self) -> list[str] | Delivered | Unreachable:
        """What is shown, line by line, and where the cursor stands: to see whether anything changed."""
        ...

    async def screen(self) -> Screen | Delivered | Unreachable:
        """What is shown, as it is read."""
        ...

    async def step(self) -> Step | Delivered | Unreachable:
        """How far this delivery came before."""
        ...

    async def submitted(self) -> Delivered | Unreachable | None:
        """Note that it was taken."""
        ...


async def held(keyboard: Keyboard, typing: Typing) -> Delivered | Asked | Unreachable | None:
    """Why nothing may be typed now: somebody types, a shell is in front, or a person has to answer or to finish; or
    the dialog that is to be answered first.
    """
    if (blocked := await keyboard.blocked()) is not None:
        return blocked
    if not typing.dialogs and not typing.composer:
        return None
    shown = await keyboard.screen()
    if not isinstance(shown, Screen):
        return shown
    if (found := await _of_dialog(keyboard, _asked(shown, typing), typing)) is not None:
        return found
    if typing.composer and not _empty(shown, typing):
        reason = "draft: somebody has begun a line there and not sent it" if shown.at_cursor.strip() else _NOT_YET
        return Delivered(taken=Taken.HELD, reason=reason)
    return None


def still(found: Delivered | Asked | Unreachable | None, reason: str) -> bool:
    """Whether a text would be held, and for the kind of ``reason`` for which one was, where that is given: whatever
    else holds it now is for a person to see.
    """
    if not isinstance(found, Delivered) or found.taken is not Taken.HELD:
        return False
    return not reason or found.reason.partition(":")[0] == reason.partition(":")[0]


async def rests(keyboard: Keyboard, typing: Typing) -> bool:
    """Whether the program works on nothing, as far as its profile says how that looks: a text could be typed, and what
    it shows only then stands where one types or below. What stands above, somebody may have written.
    """
    if not typing.rests or await held(keyboard, typing) is not None:
        return False
    shown = await keyboard.screen()
    return isinstance(shown, Screen) and _empty(shown, typing) and stand(shown.lines[shown.row :], typing.rests)


def _empty(shown: Screen, typing: Typing) -> bool:
    """Whether the cursor is known to stand in the composer, with nothing in it."""
    return bool(typing.composer) and re.fullmatch(typing.composer, shown.at_cursor.rstrip()) is not None


def _asked(shown: Screen, typing: Typing) -> Asked | None:
    """The dialog that stands there. In an empty composer no keys are wanted: some text only looks like that dialog."""
    asked = standing(shown.lines, typing.dialogs)
    return None if asked is not None and asked.keys and _empty(shown, typing) else asked


async def _of_dialog(keyboard: Keyboard, asked: Asked | None, typing: Typing) -> Delivered | Asked | Unreachable | None:
    """What one that stands there means. It is answered once for each time that it appears."""
    before = await keyboard.answered() if any(each.keys for each in typing.dialogs) else ""
    if not isinstance(before, str):
        return before
    if before and not _is(asked, before):
        await trio.sleep(_LOOK_EVERY)  # it may just be drawn anew
        shown = await keyboard.screen()
        if not isinstance(shown, Screen):
            return shown
        asked = _asked(shown, typing)
        if not _is(asked, before) and (failed := await keyboard.answer("")) is not None:
            return failed
    if asked is None:
        return None
    if asked.mark == before:
        return _surfaced(asked, "; it was answered, and is still there")
    return asked if asked.keys else _surfaced(asked, "")


def _is(asked: Asked | None, mark: str) -> bool:
    return asked is not None and asked.mark == mark


def _surfaced(asked: Asked, more: str) -> Delivered:
    return Delivered(taken=Taken.HELD, reason=f"dialog: it waits for a person: {plain(asked.text)}{more}")


async def _free(keyboard: Keyboard, typing: Typing, said: list[str]) -> Delivered | Unreachable | None:
    """Answer what is to be answered until nothing is in the way; or what is. What was answered is added to ``said``."""
    while True:
        found = await held(keyboard, typing)
        if not isinstance(found, Asked):
            return found
        if len(said) >= _MOST_ANSWERS:
            return _surfaced(found, f"; {len(said)} others were answered before it")
        said.append(f"answered with {' '.join(found.keys)}: {plain(found.text)}")
        if (failed := await _answer(keyboard, found, typing)) is not None:
            return failed


async def _answer(keyboard: Keyboard, asked: Asked, typing: Typing) -> Delivered | Unreachable | None:
    """Press its keys, and wait until it is gone or should be; who looks next sees which."""
    first, *others = asked.keys
    failed = await keyboard.answer(asked.mark, first)
    for key in others:
        await trio.sleep(typing.after_keys)
        failed = failed or await keyboard.press(key)
    deadline, gone = trio.current_time() + max(typing.after_keys, typing.settle), 0
    while failed is None and gone < _SURE and trio.current_time() < deadline:
        await trio.sleep(_LOOK_EVERY)
        shown = await keyboard.screen()
        if not isinstance(shown, Screen):
            return shown
        gone = 0 if _is(_asked(shown, typing), asked.mark) else gone + 1
    return failed


async def type_into(keyboard: Keyboard, text: str, typing: Typing) -> Delivered | Unreachable:
    """Answer what the profile answers, paste, wait, press Enter, and see that it was taken; press again when not.

    What an earlier call of the same delivery has done is not done again: whoever made it may have died over it.
    """
    said: list[str] = []
    outcome = await _type(keyboard, text, typing, said)
    if said and isinstance(outcome, Delivered):
        return attrs.evolve(outcome, reason="; ".join(filter(None, [outcome.reason, *said])))
    return outcome


async def _type(keyboard: Keyboard, text: str, typing: Typing, said: list[str]) -> Delivered | Unreachable:
    step = await keyboard.step()
    if not isinstance(step, Step):
        return step
    if step is Step.SUBMITTED:
        return Delivered(taken=Taken.SUBMITTED, earlier=True)
    if step is Step.ENTERED:
        reason = "Enter was pressed, and nobody saw whether it was taken"
        return Delivered(taken=Taken.UNSUBMITTED, reason=reason, earlier=True)
    if step in {Step.PASTED, Step.READIED}:
        found = await keyboard.blocked()
        if isinstance(found, Delivered) and found.taken is Taken.HELD:
            return Delivered(taken=Taken.UNSUBMITTED, reason=f"it stands there without Enter: {found.reason}")
    else:
        found = await _free(keyboard, typing, said) or await keyboard.paste(plain(text).rstrip("\n"))
    if found is not None:
        return found
    outcome = await _sent(keyboard, typing, readied=step is Step.READIED)
    if isinstance(outcome, Delivered) and outcome.taken is Taken.SUBMITTED:
        await keyboard.submitted()  # a mark that could not be made says less than is known, nothing wrong
    return outcome


async def _sent(keyboard: Keyboard, typing: Typing, *, readied: bool) -> Delivered | Unreachable:
    await trio.sleep(typing.before_enter)
    if typing.keys_before_enter:
        if not readied and (found := await keyboard.steps(typing.keys_before_enter, Step.READIED)) is not None:
            return found
        await trio.sleep(typing.after_keys)  # also after those that somebody else pressed: it may be just now
    restless = await _restless(keyboard)
    if not isinstance(restless, set):
        return restless
    for patience in _PATIENCE:
        shown, before = await keyboard.screen(), await keyboard.look()
        if not isinstance(shown, Screen):
            return shown
        if not isinstance(before, list):
            return before
        for count in range(typing.enters):
            await trio.sleep(typing.before_enter if count else 0)
            if (found := await keyboard.steps(["Enter"], Step.ENTERED)) is not None:
                return found
        draft = shown.at_cursor if typing.composer and not _empty(shown, typing) else None
        changed = await _changed(keyboard, before, restless, draft, typing.settle * patience)
        if changed is not False:
            return Delivered(taken=Taken.SUBMITTED) if changed is True else changed
    return Delivered(
        taken=Taken.UNSUBMITTED, reason=f"nothing shows that it was taken, after {len(_PATIENCE)} attempts to send it"
    )


async def _restless(keyboard: Keyboard) -> set[int] | Delivered | Unreachable:
    first = await keyboard.look()
    await trio.sleep(_LOOK_EVERY)
    second = await keyboard.look()
    if not isinstance(first, list):
        return first
    if not isinstance(second, list):
        return second
    return _differing(first, second)


async def _changed(
    keyboard: Keyboard, before: list[str], restless: set[int], draft: str | None, seconds: float
) -> bool | Delivered | Unreachable:
    """Whether the screen changed. Lines that change while nothing is typed (a clock, a spinner) are no sign, and a
    ``draft`` that still stands in the composer was not taken, whatever else changed.
    """
    deadline = trio.current_time() + seconds
    while trio.current_time() < deadline:
        await trio.sleep(_LOOK_EVERY)
        now = await keyboard.look()
        if not isinstance(now, list):
            return now
        if _differing(before, now) - restless:
            shown = await keyboard.screen()
            if not isinstance(shown, Screen):
                return shown
            if draft is None or shown.at_cursor != draft:
                return True
    return False


def _differing(left: list[str], right: list[str]) -> set[int]:
    size = max(len(left), len(right))
    padded = (lines + [""] * (size - len(lines)) for lines in (left, right))
    return {index for index, (one, other) in enumerate(zip(*padded, strict=True)) if one != other}
