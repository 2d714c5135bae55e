"""The systemd user units, as the ``firm node`` commands see them."""

from __future__ import annotations

import os
import shutil
import subprocess

#: Both are started and stopped together; the same names as ``units.UNITS``, which costs more to import.
UNITS = ("firm.socket", "firm.service")


def folder() -> str:
    """Where a person's own units live."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(config, "systemd", "user")


def installed(home: str) -> bool:
    """Whether the units are installed for this very FIRM_HOME and a user manager could start them."""
    try:
        with open(os.path.join(folder(), "firm.service"), encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return False
    return home_line(home) in text.splitlines() and reachable()


def home_line(home: str) -> str:
    """The first line of our units: which FIRM_HOME they serve."""
    return f"# FIRM_HOME: {home}"


def reachable() -> bool:
    """Whether a user manager answers."""
    if shutil.which("systemctl") is None or "XDG_RUNTIME_DIR" not in os.environ:
        return False
    return systemctl("show", "--property=Version").returncode == 0


def systemctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemctl", "--user", *arguments],  # noqa: S607 — found like every tool
        capture_output=True,
        text=True,
        check=False,
    )
