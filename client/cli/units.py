"""The systemd units as text: templates filled in, paths escaped as unit files want it. Writes nothing."""

from __future__ import annotations

import re
from pathlib import Path

#: Where the templates lie: beside ``client``, in a checkout as in an installation.
TEMPLATES = Path(__file__).resolve().parents[2] / "systemd"


_PLACEHOLDER = re.compile(r"@([A-Z]+)@")
#: Line ends and other control characters, and what stands for bytes that are not UTF-8.
_NOT_CARRIED = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_NOT_EXECUTED = re.compile(r"""["'\\]""")


def unit_escape(path: str) -> str:
    """``path`` as it must stand between double quotes in ``ExecStart=:"…"`` or ``Environment="…"``.

    The colon turns off ``$``, so only the quoting itself and the specifiers (``%h``) are left.
    Raises ``ValueError`` for a path that no unit file can carry.
    """
    return specifier_escape(path).replace("\\", "\\\\").replace('"', '\\"')


def specifier_escape(path: str) -> str:
    """``path`` as it must stand in ``ListenStream=``, which knows neither quotes nor backslashes.

    Raises ``ValueError`` for a path that no unit file can carry.
    """
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not an absolute path")
    if _NOT_CARRIED.search(path):
        raise ValueError(f"{path!r} has a character that a systemd unit cannot carry")
    if ".." in path.split("/"):
        raise ValueError(f"{path!r} goes through '..', which systemd refuses")
    return path.replace("%", "%%")


def executable_escape(path: str) -> str:
    """``path`` as the first word of a command: ``unit_escape``, less what systemd refuses there."""
    if _NOT_EXECUTED.search(path):
        raise ValueError(f"{path!r} has a quote or a backslash, which systemd refuses in the path of a program")
    return unit_escape(path)


def render(template: str, home: str, python: str, flock: str, run: str = "") -> str:
    """The unit that ``template`` describes.

    ``home`` is FIRM_HOME, ``python`` our environment's interpreter, ``flock`` that of util-linux; ``run`` is
    the folder of the sockets where it is not ``home/run`` (too long for a socket). All are absolute.
    Raises ``ValueError`` for a path that no unit file can carry, ``KeyError`` for an unknown placeholder.
    """
    values = {
        "HOME": unit_escape(home),
        "PYTHON": executable_escape(python),
        "FLOCK": executable_escape(flock),
        "RUN": specifier_escape(run or home.rstrip("/") + "/run"),
    }
    # In one pass: a folder may be called @PYTHON@.
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
