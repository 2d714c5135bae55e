"""Where a person stands, and what is in their environment, changes nothing about which code runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from client import paths
from tests.cli.shell import FIRM, PATIENCE, Shell

ROOT = Path(__file__).parents[2]
#: Names of ours, of the standard library's and of our dependencies': each would end whoever imports it.
TRAPS = (
    "client/__init__.py",
    "client/cli/main.py",
    "daemon/__init__.py",
    "daemon/__main__.py",
    "store/__init__.py",
    "firm_entry.py",
    "json.py",
    "msgpack.py",
    "sitecustomize.py",
    "usercustomize.py",
    "types.py",
    "trio/__init__.py",
)
#: What pip would write where an interpreter's path fits no #! line; it heeds PYTHONPATH.
PIP_LAUNCHER = "import sys\nfrom firm_entry import cli\nsys.exit(cli())\n"


@pytest.fixture
def hostile(shell: Shell) -> Shell:
    """A person in a repository that has folders and modules called like ours, with ``PYTHONPATH=.``."""
    for name in TRAPS:
        path = shell.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('the wrong code ran')\n")
    return shell.having(PYTHONPATH=f".{os.pathsep}{shell.cwd}", PYTHONSTARTUP="json.py", PYTHONWARNINGS="error")


def test_a_repository_with_folders_called_like_ours_changes_nothing(hostile: Shell) -> None:
    assert "started" in hostile.firm("node", "start")
    hostile.firm("agent", "create", "ann")
    assert hostile.answer("agent", "list")["items"][0]["name"] == "ann"
    hostile.firm("node", "backup", "copy.db")
    assert "pid" in hostile.firm("node", "status")
    assert "has ended" in hostile.firm("node", "stop")
    assert "restored" in hostile.firm("node", "restore", "copy.db")
    assert "firm" in hostile.firm("--version")


def launched(shell: Shell, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the launcher of an ordinary installation does: our code first found, then the path cleaned."""
    launcher = shell.home.parent / "bin" / "firm"
    launcher.parent.mkdir(exist_ok=True)
    launcher.write_text(PIP_LAUNCHER)
    return subprocess.run(
        [sys.executable, launcher, *words],
        env={**shell.env(), **environment},
        cwd=shell.cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_an_ordinary_launcher_finds_our_code_and_no_other(shell: Shell) -> None:
    for name in ("client/__init__.py", "client/cli/main.py", "msgpack.py"):
        (shell.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (shell.cwd / name).write_text("raise SystemExit('the wrong code ran')\n")
    done = launched(shell, "team", "list", PYTHONPATH=f".{os.pathsep}{shell.cwd}")
    assert (done.returncode, "NODE_DAEMON_UNAVAILABLE" in done.stderr) == (4, True), done.stderr


def test_a_pythonpath_that_names_our_own_environment_loses_nothing(shell: Shell) -> None:
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    for named in (packages, str(ROOT), f"{packages}{os.pathsep}{ROOT}", ""):
        assert shell.having(PYTHONPATH=named).tries("team", "list").status == 4
        assert launched(shell, "team", "list", PYTHONPATH=named).returncode == 4


def test_in_the_checkout_itself_it_works_too(shell: Shell) -> None:
    assert shell.at(ROOT).tries("team", "list").status == 4
    assert launched(shell.at(ROOT), "team", "list", PYTHONPATH=".").returncode == 4


def test_a_current_folder_that_was_removed_changes_nothing(served: Shell) -> None:
    for path in (".", "", "/nosuch"):
        gone = served.having(PYTHONPATH=path)
        done = gone.bash("mkdir gone && cd gone && rmdir ../gone && firm agent list --json && firm node status --json")
        assert done.status == 0, done.err
        assert len(done.out.splitlines()) == 2


def test_an_ordinary_launcher_does_not_mind_a_removed_folder_either(shell: Shell) -> None:
    assert launched(shell, "--version").returncode == 0  # writes the launcher
    launcher = shell.home.parent / "bin" / "firm"
    for path in ("", "/nosuch"):  # with "." the interpreter itself gives up
        done = shell.having(PYTHONPATH=path).bash(
            f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} {launcher} --help"
        )
        assert (done.status, done.err) == (0, "")


def test_what_needs_the_current_folder_says_that_it_is_gone(served: Shell) -> None:
    done = served.bash("mkdir gone && cd gone && rmdir ../gone && firm project add")
    assert done.status == 2
    assert "The current folder has been removed. [USAGE]" in done.err
    relative = served.having(FIRM_HOME="home").bash("mkdir gone && cd gone && rmdir ../gone && firm team list")
    assert relative.status == 2
    assert "FIRM_HOME is relative" in relative.err


def test_a_relative_firm_home_leads_on_from_where_one_stands(shell: Shell) -> None:
    relative = shell.having(FIRM_HOME="here")
    relative.firm("node", "start")
    try:
        assert (shell.cwd / "here" / "node.db").exists()
        assert relative.firm("agent", "list") == "None.\n"
    finally:
        relative.firm("node", "stop")


def test_firm_home_defaults_to_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIRM_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert paths.home() == "/home/ann/.local/state/firm"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert paths.home() == "/state/firm"
    monkeypatch.setenv("XDG_STATE_HOME", "state")  # relative: to be ignored, says the specification
    assert paths.home() == "/home/ann/.local/state/firm"


def test_paths_are_taken_from_where_one_stands_and_from_home(served: Shell) -> None:
    (served.cwd / "sub").mkdir()
    assert served.at(served.cwd / "sub").answer("project", "add")["root"] == str(served.cwd / "sub")
    assert served.answer("project", "add", "sub/..")["root"] == str(served.cwd)
    at_home = served.having(HOME=str(served.cwd))
    assert at_home.answer("project", "add", "~/sub")["root"] == str(served.cwd / "sub")


def test_a_folder_whose_name_is_not_utf8_is_named_and_not_sent(served: Shell) -> None:
    folder = os.fsencode(served.cwd) + b"/\xff"
    os.mkdir(folder)  # noqa: PTH102 — a Path cannot say it
    done = served.at(Path(os.fsdecode(folder))).tries("project", "add")
    assert done.status == 2
    assert "not UTF-8" in done.err


def test_the_script_runs_isolated() -> None:
    assert Path(FIRM).read_text().startswith(f"#!{Path(FIRM).parent}/python -I\n")
