"""Keys that a profile may name: as tmux names them, with the bytes that a terminal sends for each."""

from __future__ import annotations

import string

NAMED = {
    "Enter": b"\r",
    "Escape": b"\x1b",
    "Tab": b"\t",
    "BTab": b"\x1b[Z",
    "Space": b" ",
    "BSpace": b"\x7f",
    "Up": b"\x1b[A",
    "Down": b"\x1b[B",
    "Right": b"\x1b[C",
    "Left": b"\x1b[D",
    "Home": b"\x1b[1~",
    "End": b"\x1b[4~",
    "PageUp": b"\x1b[5~",
    "PageDown": b"\x1b[6~",
}
#: Of punctuation ``;`` is left out: between the words of a tmux command it is no key.
_SIGNS = string.ascii_letters + string.digits + string.punctuation.replace(";", "")
#: What tmux does not know as a name it would type letter by letter, so that nothing else is a key here.
KEYS: dict[str, bytes] = {
    **NAMED,
    **{sign: sign.encode() for sign in _SIGNS},
    **{f"C-{letter}": bytes([ord(letter) - ord("a") + 1]) for letter in string.ascii_lowercase},
}
