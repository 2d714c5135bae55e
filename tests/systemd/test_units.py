"""Templates to units: what is filled in, how paths are escaped, and that systemd finds nothing wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from client.cli.service import UNITS
from client.cli.units import TEMPLATES, executable_escape, render, specifier_escape, unit_escape
from tests.systemd.node import ODD


def test_every_template_is_filled_in_and_no_other_lies_there() -> None:
    assert {path.name for path in TEMPLATES.glob("*.in")} == {f"{unit}.in" for unit in UNITS}
    for unit in UNITS:
        text = render((TEMPLATES / f"{unit}.in").read_text(), "/home/a/firm", "/opt/venv/bin/python", "/bin/flock")
        assert "@" not in text


def test_each_path_stands_where_it_belongs() -> None:
    template = "@HOME@|@PYTHON@|@FLOCK@|@RUN@"
    assert render(template, "/h", "/p", "/f") == "/h|/p|/f|/h/run"
    assert render(template, "/h", "/p", "/f", run="/t/firm-1000-x") == "/h|/p|/f|/t/firm-1000-x"


def test_a_folder_that_is_called_like_a_placeholder_stays_one() -> None:
    assert render("@HOME@", "/@PYTHON@", "/p", "/f") == "/@PYTHON@"


def test_a_template_with_an_unknown_placeholder_is_a_bug() -> None:
    with pytest.raises(KeyError, match="NAME"):
        render("@NAME@", "/h", "/p", "/f")


@pytest.mark.parametrize(
    ("path", "quoted", "listened"),
    [
        ("/a b", "/a b", "/a b"),
        ("/50%h", "/50%%h", "/50%%h"),
        ('/a"b', '/a\\"b', '/a"b'),
        ("/a\\b", "/a\\\\b", "/a\\b"),
        ("/$HOME/${x}", "/$HOME/${x}", "/$HOME/${x}"),
        ("/ümläut/日本", "/ümläut/日本", "/ümläut/日本"),
    ],
)
def test_a_path_is_escaped_for_the_line_it_stands_on(path: str, quoted: str, listened: str) -> None:
    assert unit_escape(path) == quoted
    assert specifier_escape(path) == listened


@pytest.mark.parametrize("path", ["", "a/b", "/a\nb", "/a\tb", "/a\x7fb", "/a\udcffb", "/a/../b"])
def test_a_path_that_no_unit_can_carry_is_refused(path: str) -> None:
    for escape in (unit_escape, specifier_escape, executable_escape):
        with pytest.raises(ValueError, match=r"absolute|cannot carry|goes through"):
            escape(path)


@pytest.mark.parametrize("path", ['/a"b', "/a'b", "/a\\b"])
def test_a_program_whose_path_systemd_would_refuse_is_refused_by_us(path: str) -> None:
    with pytest.raises(ValueError, match="path of a program"):
        executable_escape(path)


@pytest.mark.parametrize("name", ["firm", ODD])
def test_systemd_has_nothing_to_say_about_the_units(tmp_path: Path, name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    flock = shutil.which("flock")
    assert flock is not None
    for unit in UNITS:
        text = render((TEMPLATES / f"{unit}.in").read_text(), f"/srv/{name}", sys.executable, flock)
        (tmp_path / unit).write_text(text)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", *(tmp_path / unit for unit in UNITS)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
