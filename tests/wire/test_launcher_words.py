"""Which file a launch runs: the launcher as it was compiled, while that is what its source says."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest

from client.protocol.boundary import no_crash
from daemon.processes import means, quickest
from providers import launcher


@pytest.fixture
def source(tmp_path: Path) -> Path:
    found = tmp_path / "source.py"
    found.write_text("print('one')\n", "utf-8")
    return found


@pytest.fixture
def compiled(source: Path) -> Path:
    return Path(py_compile.compile(str(source), doraise=True, invalidation_mode=PycInvalidationMode.TIMESTAMP) or "")


def test_the_compiled_one_of_this_very_source(source: Path, compiled: Path) -> None:
    assert quickest(source, compiled) == compiled


def test_the_source_that_was_replaced_even_by_an_older_one(source: Path, compiled: Path) -> None:
    os.utime(source, (1, 1))
    assert quickest(source, compiled) == source


def test_the_source_whose_length_changed_in_the_same_second(source: Path, compiled: Path) -> None:
    born = source.stat().st_mtime
    source.write_text("print('other')\n", "utf-8")
    os.utime(source, (born, born))
    assert quickest(source, compiled) == source


def test_the_source_where_nothing_was_compiled(source: Path, tmp_path: Path) -> None:
    assert quickest(source, tmp_path / "compiled") == source


def test_what_a_launch_runs_is_the_launcher(tmp_path: Path) -> None:
    """Whichever file it is, it is a program of that name."""
    words = means(tmp_path, {}, socket=tmp_path / "door", crash=no_crash).launcher("abc")
    assert words[:3] == (sys.executable, "-I", "-S")
    assert words[-2:] == (str(tmp_path / "door"), "abc")
    assert Path(words[3]) in {Path(launcher.__file__).resolve(), Path(cache_from_source(launcher.__file__)).resolve()}
    prints = "import runpy, sys; print(runpy.run_path(sys.argv[1])['COMM'])"
    done = subprocess.run([*words[:3], "-c", prints, words[3]], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == launcher.COMM
