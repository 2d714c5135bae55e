"""What a file says otherwise than the node, in words: short values whole, long ones from where they begin to differ."""

from __future__ import annotations

from itertools import zip_longest

from client.cli.eyes.sheet import clean, cut

#: Columns of one value.
_ROOM = 60


def lists(old: list[str], new: list[str]) -> str:
    gone = [f"without {_shown(each)}" for each in old if each not in new]
    come = [f"with {_shown(each)}" for each in new if each not in old]
    return ", ".join([*gone, *come]) or "in another order"


def texts(old: str, new: str) -> str:
    if "\n" not in old.strip() + new.strip():
        return f"{_shown(old)} → {_shown(new)}"
    pairs = list(zip_longest(old.splitlines(), new.splitlines(), fillvalue=""))
    differ = [number for number, (one, other) in enumerate(pairs, 1) if one != other]
    if not differ:
        return "ends in another way"
    one, other = pairs[differ[0] - 1]
    more = f", and {len(differ) - 1} more" if differ[1:] else ""
    return f"line {differ[0]}: {_shown(one)} → {_shown(other)}{more}"


def _shown(value: str) -> str:
    return cut(clean(value), _ROOM) if value.strip() else "nothing"
