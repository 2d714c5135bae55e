"""``firm node install`` and ``uninstall``: the systemd user units of this very build and FIRM_HOME."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from client import paths
from client.cli import ask as door
from client.cli import service
from client.cli.index import DIGEST
from client.cli.units import TEMPLATES, UNITS, render


def run(verb: str, arguments: list[str]) -> int:
    return _install(arguments) if verb == "install" else _uninstall(arguments)


def _install(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "firm node install",
        description="Install systemd user units, so that the daemon starts with the first client and outlives the "
        "login (where lingering is on: loginctl enable-linger).",
    )
    parser.parse_args(arguments)
    home = paths.home()
    flock = shutil.which("flock")
    if not service.reachable():
        return _refuse("no systemd user manager answers", "log in where one runs, or use firm node start without units")
    if flock is None:
        return _refuse("flock is not installed", "install util-linux")
    if _running(home) and not service.installed(home):
        return _refuse("a daemon runs without the units", "firm node stop, then install again")
    try:
        texts = {unit: _text(unit, home, flock) for unit in UNITS}
    except ValueError as error:
        return _refuse(str(error), "choose a FIRM_HOME and an installation path that a unit can carry")
    os.makedirs(home, mode=0o700, exist_ok=True)
    os.makedirs(service.folder(), exist_ok=True)
    for unit, text in texts.items():
        path = os.path.join(service.folder(), unit)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)
    for command in (("daemon-reload",), ("enable", "firm.socket")):
        done = service.systemctl(*command)
        if done.returncode:
            return _refuse(f"systemctl {' '.join(command)}: {done.stderr.strip()}", "mend that and install again")
    print(f"Installed {' and '.join(UNITS)} in {service.folder()}. Start the daemon: firm node start")
    return 0


def _text(unit: str, home: str, flock: str) -> str:
    template = (TEMPLATES / f"{unit}.in").read_text("utf-8")
    return f"{service.home_line(home)}\n" + render(template, home, sys.executable, flock, paths.run_folder(home))


def _uninstall(arguments: list[str]) -> int:
    argparse.ArgumentParser("firm node uninstall", description="Remove the systemd user units.").parse_args(arguments)
    if service.systemctl("is-active", "firm.service").returncode == 0:
        return _refuse("the daemon runs under the units", "firm node stop, then uninstall")
    service.systemctl("disable", "--now", "firm.socket")
    for unit in UNITS:
        path = os.path.join(service.folder(), unit)
        if os.path.exists(path):
            os.remove(path)
    service.systemctl("daemon-reload")
    print("Removed the units. Nothing in FIRM_HOME was touched.")
    return 0


def _running(home: str) -> bool:
    try:
        door.Conversation(home, DIGEST).close()
    except door.Unavailable:
        return False
    return True


def _refuse(what: str, lifted_by: str) -> int:
    print(f"firm: The units cannot be changed: {what}.", file=sys.stderr)
    print(f"  To lift it: {lifted_by}.", file=sys.stderr)
    return 1
