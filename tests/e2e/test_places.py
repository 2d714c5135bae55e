"""Where a daemon may live, and what it leaves alone: folders, keys, sockets. It refuses before it changes anything."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from client import paths
from daemon.cannot_start import StartCode
from tests.support import squatters
from tests.support.daemon import Home, new_home
from tests.support.squatters import End

NOBODY = 65534
NODE, MEMBER = "node.sock", "member.sock"


def tree(folder: Path) -> Mapping[str, object]:
    """Everything below a folder: its kind, mode, owner and content."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path.relative_to(folder))] = (stat.st_mode, stat.st_uid, stat.st_ino, content)
    return found


def is_refused(home: Home, code: StartCode) -> str:
    """The one sentence with which a daemon ends that finds the home as it is, and leaves it so."""
    before = tree(home.folder.parent)
    said = home.refuses()
    assert said.startswith(f"{code}: ")
    assert "To lift it: " in said
    assert tree(home.folder.parent) == before
    return said


def a_home(home: Home) -> None:
    home.folder.mkdir(mode=0o700, parents=True)


# --- the folder -------------------------------------------------------------------------------------------------------


def others_may_look(home: Home) -> None:
    home.folder.mkdir()
    home.folder.chmod(0o755)


def a_file(home: Home) -> None:
    home.folder.write_text("mine")


def a_link(home: Home) -> None:
    (home.folder.parent / "elsewhere").mkdir(mode=0o700)
    home.folder.symlink_to("elsewhere")


def a_link_to_nothing(home: Home) -> None:
    home.folder.symlink_to("nowhere")


def anothers(home: Home) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    a_home(home)
    os.chown(home.folder, NOBODY, NOBODY)


@pytest.mark.parametrize("found", [others_may_look, a_file, a_link, a_link_to_nothing, anothers])
def test_a_home_that_is_not_ours_alone_is_refused(home: Home, found: Callable[[Home], None]) -> None:
    found(home)
    said = is_refused(home, StartCode.HOME_UNSAFE)
    assert str(home.folder) in said


def test_a_home_is_made_for_its_owner_alone(home: Home) -> None:
    home.start()
    assert [oct(path.stat().st_mode & 0o777) for path in (home.folder, home.run)] == ["0o700", "0o700"]
    open_to_others = [path.name for path in home.folder.rglob("*") if path.lstat().st_mode & 0o077]
    assert open_to_others == []


# --- the operator key -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("content", "mode"), [("7e" * 32, 0o644), ("7e" * 31, 0o600)])
def test_an_operator_key_that_others_may_know_or_that_is_damaged_is_refused(
    home: Home, content: str, mode: int
) -> None:
    a_home(home)
    key = home.folder / "operator.key"
    key.write_text(content)
    key.chmod(mode)
    assert str(key) in is_refused(home, StartCode.HOME_UNSAFE)


def test_a_key_that_is_there_is_kept(home: Home) -> None:
    a_home(home)
    (home.folder / "operator.key").touch(mode=0o600)
    (home.folder / "operator.key").write_text("7e" * 32)
    with home.start().client() as client:
        assert "answer" in client.ask("team.list")
    assert (home.folder / "operator.key").read_text() == "7e" * 32


# --- the sockets ------------------------------------------------------------------------------------------------------


def test_the_sockets_of_a_killed_daemon_are_replaced(home: Home) -> None:
    first = home.start()
    before = [(home.run / name).lstat().st_ino for name in (NODE, MEMBER)]
    first.kill()
    assert all((home.run / name).exists() for name in (NODE, MEMBER))
    with home.start().client() as client:
        assert client.ask("node.status")["answer"]["daemon_gen"] == 2
    assert before != [(home.run / name).lstat().st_ino for name in (NODE, MEMBER)]


def test_a_daemon_that_ends_well_leaves_no_socket(home: Home) -> None:
    assert home.start().stop() == 0
    assert list(home.run.iterdir()) == []


def test_a_daemon_removes_only_a_socket_of_its_own(home: Home) -> None:
    """Somebody took our name away and put something else there."""
    daemon = home.start()
    daemon.socket.rename(home.run / "former")
    with squatters.listening(daemon.socket):
        assert daemon.stop() == 0
        assert {path.name for path in home.run.iterdir()} == {NODE, "former"}


@pytest.mark.parametrize("squatter", [squatters.alive, squatters.dead])
def test_what_is_not_ours_is_left_where_a_socket_belongs(home: Home, squatter: Callable[[Path], End]) -> None:
    home.start().kill()
    (home.run / NODE).unlink()
    end = squatter(home.run / NODE)
    before = {path.name: path.lstat().st_ino for path in home.run.iterdir()}
    said = home.refuses()
    assert said.startswith(f"{StartCode.SOCKET_PATH_TAKEN}: {home.run / NODE}")
    assert {path.name: path.lstat().st_ino for path in home.run.iterdir()} == before
    end()


# --- paths that are too long ------------------------------------------------------------------------------------------


def fallback(home: Home) -> Path:
    """Where the sockets of a home with a long path are."""
    (found,) = home.temporary.glob("firm-*")
    return found


@pytest.mark.parametrize("length", [98, 99, 100, 101, 107, 108, 200])
def test_a_path_of_any_length_works(length: int) -> None:
    """``length`` counts the bytes of the longest path in it, ``…/run/member.sock``."""
    with new_home() as short:
        missing = length - len(os.fsencode(short.run / MEMBER)) - 1
        home = Home(short.folder.parent / ("n" * missing) / "home", short.temporary)
        try:
            daemon = home.start()
            near = length <= paths.SOCKET_PATH
            assert list(home.temporary.glob("firm-*")) == ([] if near else [fallback(home)])
            where = home.run if near else fallback(home)
            assert paths.node_file(str(home.folder))["socket"] == str(where / NODE)
            assert oct(where.stat().st_mode & 0o777) == "0o700"
            assert {path.name for path in where.iterdir()} == {NODE, MEMBER}
            assert daemon.stop() == 0
        finally:
            home.close()


LONG = "n" * 100


def fallback_of(home: Home) -> Path:
    """The same before it exists: the way its name is made is ``client.paths``'s."""
    digest = hashlib.blake2b(os.fsencode(home.folder), digest_size=6).hexdigest()
    return home.temporary / f"firm-{os.geteuid()}-{digest}"


def open_folder(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)


def linked_folder(path: Path) -> None:
    (path.parent / "real").mkdir(mode=0o700)
    path.symlink_to("real")


def no_folder(path: Path) -> None:
    path.write_text("mine")


def given_folder(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    path.mkdir(mode=0o700)
    os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize("found", [open_folder, linked_folder, no_folder, given_folder])
def test_a_folder_in_the_common_place_is_used_only_when_it_is_ours_alone(found: Callable[[Path], None]) -> None:
    with new_home(LONG) as home:
        where = fallback_of(home)
        found(where)
        before = tree(home.temporary)
        said = home.refuses()
        assert said.startswith(f"{StartCode.SOCKET_PATH_TAKEN}: {where}")
        assert tree(home.temporary) == before


def test_a_folder_of_ours_in_the_common_place_is_used_again() -> None:
    with new_home(LONG) as home:
        home.start().kill()
        assert fallback(home) == fallback_of(home)
        daemon = home.start()
        assert daemon.stop() == 0
        assert list(fallback(home).iterdir()) == []


def test_where_no_socket_fits_anywhere_says_so() -> None:
    with new_home(LONG) as home:
        home.temporary = home.temporary / ("t" * 100)
        home.temporary.mkdir()
        said = home.refuses()
        assert "To lift it: " in said
        assert "None" not in said
        shutil.rmtree(home.temporary)
