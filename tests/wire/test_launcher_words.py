"""Which file a launch runs: the launcher as it was compiled, while that is what its source says."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from daemon.processes import means, quickest
from providers import launcher


def no_crash(_: str) -> None:
    """Nothing crashes here."""


@pytest.mark.parametrize(("age", "wanted"), [(-5, "source"), (0, "compiled"), (5, "compiled")])
def test_the_compiled_one_unless_it_is_older_than_its_source(tmp_path: Path, age: int, wanted: str) -> None:
    source, compiled = tmp_path / "source", tmp_path / "compiled"
    source.touch()
    compiled.touch()
    born = source.stat().st_mtime
    os.utime(compiled, (born + age, born + age))
    assert quickest(source, compiled).name == wanted


def test_the_source_where_nothing_was_compiled(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.touch()
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
