"""What a terminal shows, as text that is safe to pass on, and typing into it until it shows that it was taken."""

from __future__ import annotations

import enum
import re
from typing import Protocol

import trio

from providers.port import Delivered, Taken, Typing, Unreachable

LINES = 50

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_LOOK_EVERY = 0.05
#: What waits for a person stands in the last lines; above them it was answered.
_ASKED = 15
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
    ENTERED = "entered"
    SUBMITTED = "submitted"


class Keyboard(Protocol):
    """One terminal, while one writer has it."""

    async def blocked(self) -> Delivered | Unreachable | None:
        """Why nothing may be typed now, whatever it shows."""
        ...

    async def paste(self, text: str) -> Delivered | Unreachable | None: ...

    async def enter(self) -> Delivered | Unreachable | None: ...

    async def look(self) -> list[str] | Delivered | Unreachable:
        """What is shown, line by line, and where the cursor stands."""
        ...

    async def line(self) -> str | Delivered | Unreachable:
        """The line in which the cursor stands."""
        ...

    async def step(self) -> Step | Delivered | Unreachable:
        """How far this delivery came before."""
        ...

    async def submitted(self) -> Delivered | Unreachable | None:
        """Note that it was taken."""
        ...


async def held(keyboard: Keyboard, typing: Typing) -> Delivered | Unreachable | None:
    """Why nothing may be typed now: somebody types, a shell is in front, or a person has to answer or to finish."""
    if (found := await keyboard.blocked()) is not None:
        return found
    if typing.dialogs:
        shown = await keyboard.look()
        if not isinstance(shown, list):
            return shown
        for line in [each for each in shown if each.strip()][-_ASKED:]:
            if any(re.search(each, line) for each in typing.dialogs):
                return Delivered(taken=Taken.HELD, reason=f"dialog: it waits for a person: {plain(line).strip()[:120]}")
    if typing.composer:
        at_cursor = await keyboard.line()
        if not isinstance(at_cursor, str):
            return at_cursor
        if not re.fullmatch(typing.composer, at_cursor.rstrip()):
            return Delivered(taken=Taken.HELD, reason="draft: somebody has begun a line there and not sent it")
    return None


async def type_into(keyboard: Keyboard, text: str, typing: Typing) -> Delivered | Unreachable:
    """Paste, wait, press Enter, and see that the screen changed; press again when it did not.

    Lines that change while nothing is typed (a clock, a spinner) are no sign. What an earlier call of the same delivery
    has done is not done again: whoever made it may have died over it.
    """
    step = await keyboard.step()
    if not isinstance(step, Step):
        return step
    if step is Step.SUBMITTED:
        return Delivered(taken=Taken.SUBMITTED)
    if step is Step.ENTERED:
        return Delivered(taken=Taken.UNSUBMITTED, reason="Enter was pressed, and nobody saw whether it was taken")
    if step is Step.PASTED:
        found = await keyboard.blocked()
        if isinstance(found, Delivered) and found.taken is Taken.HELD:
            return Delivered(taken=Taken.UNSUBMITTED, reason=f"it stands there without Enter: {found.reason}")
    else:
        found = await held(keyboard, typing) or await keyboard.paste(plain(text).rstrip("\n"))
    if found is not None:
        return found
    outcome = await _sent(keyboard, typing)
    if isinstance(outcome, Delivered) and outcome.taken is Taken.SUBMITTED:
        await keyboard.submitted()  # a mark that could not be made says less than is known, nothing wrong
    return outcome


async def _sent(keyboard: Keyboard, typing: Typing) -> Delivered | Unreachable:
    await trio.sleep(typing.before_enter)
    restless = await _restless(keyboard)
    if not isinstance(restless, set):
        return restless
    for patience in _PATIENCE:
        before = await keyboard.look()
        if not isinstance(before, list):
            return before
        for _ in range(typing.enters):
            if (found := await keyboard.enter()) is not None:
                return found
        changed = await _changed(keyboard, before, restless, typing.settle * patience)
        if changed is not False:
            return Delivered(taken=Taken.SUBMITTED) if changed is True else changed
    return Delivered(
        taken=Taken.UNSUBMITTED, reason=f"nothing on the screen changed after Enter was pressed {len(_PATIENCE)} times"
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
    keyboard: Keyboard, before: list[str], restless: set[int], seconds: float
) -> bool | Delivered | Unreachable:
    deadline = trio.current_time() + seconds
    while trio.current_time() < deadline:
        await trio.sleep(_LOOK_EVERY)
        now = await keyboard.look()
        if not isinstance(now, list):
            return now
        if _differing(before, now) - restless:
            return True
    return False


def _differing(left: list[str], right: list[str]) -> set[int]:
    size = max(len(left), len(right))
    padded = (lines + [""] * (size - len(lines)) for lines in (left, right))
    return {index for index, (one, other) in enumerate(zip(*padded, strict=True)) if one != other}
