"""The floors of the house hold: one wrong import turns each contract red.

Rules of the same kind that import-linter cannot state are asked of the interpreter and of the source.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("client", "daemon", "store", "supervisor", "providers")

#: Contract, a module that must not exist like this, its one line, and how the report names it.
WRONG = [
    ("the house has floors", "store/wrong_floor.py", "import supervisor", "store.wrong_floor -> supervisor"),
    ("the daemon has floors", "daemon/on_no_floor.py", "", "daemon.on_no_floor"),
    (
        "a client knows only the protocol",
        "client/wrong_store.py",
        "import store",
        "client.wrong_store -> store",
    ),
    ("rules are pure", "daemon/kernel/wrong_clock.py", "import time", "daemon.kernel.wrong_clock -> time"),
    ("SQLite is spoken in store", "store/wrong_sql.py", "import apsw", "store.wrong_sql -> apsw"),
    (
        "a supervisor is a client with a fence",
        "supervisor/wrong_store.py",
        "import store",
        "supervisor.wrong_store -> store",
    ),
    (
        "the light door is light",
        "client/cli/index/wrong_weight.py",
        "import attrs",
        "client.cli.index.wrong_weight -> attrs",
    ),
]


def report(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the product, to be spoiled."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_is_broken_by_one_wrong_import(house: Path) -> None:
    for _, path, line, _ in WRONG:
        (house / path).write_text(line + "\n")
    spoiled = report(house)

    assert spoiled.returncode == 1
    for contract, _, _, named in WRONG:
        assert f"{contract} BROKEN" in spoiled.stdout
        assert named in spoiled.stdout


def test_a_new_contract_must_be_shown_red_here() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert {contract["name"] for contract in config["contracts"]} == {name for name, *_ in WRONG}


def test_the_light_door_loads_nothing_heavy() -> None:
    """Asked of all that stands between a call and its answer, and of every noun's index."""
    index = [f"client.cli.index.{path.stem}" for path in (ROOT / "client/cli/index").glob("[!_]*.py")]
    door = ["firm_entry", "client.paths", "client.cli.main", "client.cli.ask", *index]
    asked = f"import sys\nfor name in {door!r}: __import__(name)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heavy = {
        "apsw",
        "attr",
        "attrs",
        "cattrs",
        "client.protocol",
        "dataclasses",
        "inspect",
        "rich",
        "trio",
        "typing",
    }
    assert heavy.intersection(done.stdout.split()) == set()


def sleeps(path: Path) -> list[int]:
    """The lines that call something named sleep, other than with a literal 0 (a bare checkpoint)."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) == "sleep"
        and not (len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0)
    ]


#: The one that may, once.
SLEEP = {"vfs.py": "is the slow disk itself"}


def test_a_worker_loads_only_the_nouns_that_it_asks_about() -> None:
    """Ten members that start at once share the cores with each other and with the daemon that starts them."""
    loads = "import sys, client.worker.command; print(*(m for m in sys.modules if m.startswith('client.protocol.')))"
    done = subprocess.run([sys.executable, "-I", "-c", loads], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("client.protocol.") for name in done.stdout.split()}
    assert "work_asks" in loaded
    assert not loaded & {"agent", "board", "delegation", "effect", "membership", "message", "project", "table", "team"}


def test_no_test_sleeps(tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("trio.sleep(0)\ntrio.sleep(0.1)\nsleep(n)\nprint(1)\n")
    assert sleeps(sleeper) == [2, 3]
    found = {path.name: len(sleeps(path)) for path in (ROOT / "tests").rglob("*.py") if sleeps(path)}
    assert found == dict.fromkeys(SLEEP, 1)
