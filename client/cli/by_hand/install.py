"""``firm node install`` and ``uninstall``: the systemd user units of this very build and FIRM_HOME."""

from __future__ import annotations

import os
import shutil
import sys

from client import paths
from client.cli import ask as door
from client.cli import say, service
from client.cli.arguments import JSON, Field
from client.cli.index import DIGEST
from client.cli.service import UNITS
from client.cli.units import TEMPLATES, render

FIELDS: tuple[Field, ...] = (JSON,)


def run(verb: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    return _install(as_json=as_json) if verb == "install" else _uninstall(as_json=as_json)


def _install(*, as_json: bool) -> int:
    home = paths.home()
    flock = shutil.which("flock")
    if not service.reachable():
        return _refuse(
            "no systemd user manager answers",
            "log in where one runs, or use firm node start without units",
            as_json=as_json,
        )
    if flock is None:
        return _refuse("flock is not installed", "install util-linux", as_json=as_json)
    if other := _of_another(home):
        return _refuse(*other, as_json=as_json)
    if _running(home) and not service.installed(home):
        return _refuse("a daemon runs without the units", "firm node stop, then install again", as_json=as_json)
    try:
        texts = {unit: _text(unit, home, flock) for unit in UNITS}
    except ValueError as error:
        return _refuse(str(error), "choose a FIRM_HOME and an installation path that a unit can carry", as_json=as_json)
    os.makedirs(home, mode=0o700, exist_ok=True)
    os.makedirs(service.folder(), exist_ok=True)
    for unit, text in texts.items():
        path = os.path.join(service.folder(), unit)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)
    for command in (("daemon-reload",), ("enable", "firm.socket")):
        if why := _fails(*command):
            return _refuse(why, "mend that and install again", as_json=as_json)
    text = (
        f"Installed {' and '.join(UNITS)} in {service.folder()}.\n"
        "They outlive the login where lingering is on: loginctl enable-linger\n"
        "Start the daemon: firm node start"
    )
    say.out(say.dumps({"installed": True, "folder": service.folder(), "units": UNITS}) if as_json else text)
    return 0


def _text(unit: str, home: str, flock: str) -> str:
    template = (TEMPLATES / f"{unit}.in").read_text("utf-8")
    return f"{service.home_line(home)}\n" + render(template, home, sys.executable, flock, paths.run_folder(home))


def _uninstall(*, as_json: bool) -> int:
    if not service.reachable():
        return _refuse("no systemd user manager answers", "log in where one runs", as_json=as_json)
    if other := _of_another(paths.home()):
        return _refuse(*other, as_json=as_json)
    if service.systemctl("is-active", "firm.service").returncode == 0:
        return _refuse("the daemon runs under the units", "firm node stop, then uninstall", as_json=as_json)
    there = os.path.exists(os.path.join(service.folder(), "firm.socket"))  # else an uninstall was cut off, or done
    if there and (why := _fails("disable", "--now", "firm.socket")):
        return _refuse(why, "mend that and uninstall again", as_json=as_json)
    for unit in UNITS:
        path = os.path.join(service.folder(), unit)
        if os.path.exists(path):
            os.remove(path)
    if why := _fails("daemon-reload"):
        meaning = f"The units are removed, and systemd was not told: {why}."
        return say.declined("UNITS_UNCHANGED", "", meaning, "systemctl --user daemon-reload", as_json=as_json)
    text = "Removed the units. Nothing in FIRM_HOME was touched."
    say.out(say.dumps({"installed": False, "folder": service.folder(), "units": UNITS}) if as_json else text)
    return 0


def _fails(*command: str) -> str:
    """What systemctl says of a command that fails."""
    done = service.systemctl(*command, within=service.CHANGES)
    return f"systemctl {' '.join(command)}: {done.stderr.strip()}" if done.returncode else ""


def _of_another(home: str) -> tuple[str, str] | None:
    """Why the units that are there are not this home's to write or remove, and what lifts it."""
    serve = service.served()
    if serve in {None, home}:
        return None
    if not serve:
        return f"{service.folder()}/{UNITS[1]} is not ours", "move it away"
    return f"they serve another FIRM_HOME, {serve}", f"FIRM_HOME={serve} firm node uninstall"


def _running(home: str) -> bool:
    try:
        door.Conversation(DIGEST, home=home).close()
    except door.Unavailable:
        return False
    return True


def _refuse(what: str, lifted_by: str, *, as_json: bool) -> int:
    return say.declined("UNITS_UNCHANGED", "", f"The units cannot be changed: {what}.", lifted_by, as_json=as_json)
