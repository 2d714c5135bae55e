"""What a program shows while it waits for a person: recognised by what a profile says of it, answered only if it says
how.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import attrs

from providers.port import Dialog

#: What waits for a person stands in the last lines; above them it was answered.
_ASKED = 15
#: Characters of a dialog that are shown to a person.
_MOST = 500
_FRAME = re.compile(r"[\u2500-\u259f]+")


@attrs.frozen(kw_only=True)
class Asked:
    """A dialog that stands on a screen. ``mark`` tells it from others, and ``keys`` is empty where a person answers."""

    text: str
    mark: str
    keys: tuple[str, ...]


def stand(lines: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether each of them fits a line."""
    return all(any(re.search(want, line) for line in lines) for want in wanted)


def standing(shown: Sequence[str], dialogs: Sequence[Dialog]) -> Asked | None:
    """The dialog that stands there. Where several fit, one without an answer decides, and so do two answers that
    differ: then a person is asked.
    """
    lines = [line for line in shown if line.strip()][-_ASKED:]
    fits = [each for each in dialogs if stand(lines, each.lines)]
    if not fits:
        return None
    answers = {tuple(each.keys) for each in fits}
    keys = answers.pop() if len(answers) == 1 else ()
    wanted = [want for each in fits for want in each.lines]
    at = [index for index, line in enumerate(lines) if any(re.search(want, line) for want in wanted)]
    told = " / ".join(" ".join(_FRAME.sub(" ", line).split()) for line in lines[at[0] :])
    found = "\n".join(lines[index].strip() for index in at)
    mark = hashlib.blake2b(found.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return Asked(text=told[:_MOST], mark=mark, keys=keys)
