"""``daemon.instance`` by itself: what it takes for its own, and what it leaves alone."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from daemon import instance
from daemon.cannot_start import CannotStart, StartCode
from tests.support import squatters
from tests.support.squatters import End

NODE, MEMBER = "node.sock", "member.sock"
KEY = "7e" * 32


@pytest.fixture
def home() -> Generator[Path]:
    """A home with a short path (a socket's has 107 bytes) that was prepared."""
    with tempfile.TemporaryDirectory(prefix="firm-") as folder:
        instance.prepare_home(Path(folder, "home"))
        Path(folder, "home", "run").mkdir(mode=0o700)
        yield Path(folder, "home")


def names(folder: Path) -> dict[str, int]:
    return {path.name: path.lstat().st_ino for path in folder.iterdir()}


def left_by_a_killed_daemon(home: Path) -> None:
    """Sockets that nobody listens on any more, and what says that they were ours."""
    doors = instance.open_doors(home, {})
    instance.publish(home, doors, {})
    for door in doors.both:
        door.sock.close()


def taken(home: Path, path: Path) -> None:
    """The doors cannot be opened because of ``path``, and nothing in the folder changes."""
    before = names(path.parent)
    with pytest.raises(CannotStart, match=str(path)) as refused:
        instance.open_doors(home, {})
    assert refused.value.code is StartCode.SOCKET_PATH_TAKEN
    assert names(path.parent) == before


@pytest.mark.parametrize("name", [NODE, MEMBER])
@pytest.mark.parametrize("squatter", squatters.EVERY)
def test_what_was_there_first_is_left(home: Path, name: str, squatter: Callable[[Path], End]) -> None:
    end = squatter(home / "run" / name)
    taken(home, home / "run" / name)
    end()


@pytest.mark.parametrize("name", [NODE, MEMBER])
@pytest.mark.parametrize("squatter", squatters.EVERY)
def test_what_came_after_a_killed_daemon_is_left_though_it_may_have_the_number_of_ours(
    home: Path, name: str, squatter: Callable[[Path], End]
) -> None:
    left_by_a_killed_daemon(home)
    (home / "run" / name).unlink()
    end = squatter(home / "run" / name)
    taken(home, home / "run" / name)
    end()


def test_what_a_killed_daemon_left_is_replaced(home: Path) -> None:
    left_by_a_killed_daemon(home)
    before = names(home / "run")
    doors = instance.open_doors(home, {})
    assert names(home / "run").keys() == before.keys() == {NODE, MEMBER}
    instance.close_doors(doors)
    assert names(home / "run") == {}


def test_not_even_our_own_socket_is_replaced_while_somebody_answers_on_it(home: Path) -> None:
    doors = instance.open_doors(home, {})
    instance.publish(home, doors, {})
    taken(home, home / "run" / NODE)
    instance.close_doors(doors)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"sockets": 7}', '{"sockets": [[1]]}', '{"sockets": ["x"]}'])
def test_without_a_readable_record_nothing_is_ours(home: Path, content: str) -> None:
    left_by_a_killed_daemon(home)
    (home / "node.json").write_text(content)
    taken(home, home / "run" / NODE)


def test_the_record_names_the_doors_and_who_holds_them(home: Path) -> None:
    doors = instance.open_doors(home, {})
    instance.publish(home, doors, {"pid": 7})
    found = json.loads((home / "node.json").read_text())
    assert (found["socket"], found["member_socket"]) == (str(home / "run" / NODE), str(home / "run" / MEMBER))
    assert found["pid"] == 7
    instance.close_doors(doors)


def test_only_a_name_that_is_still_ours_is_removed(home: Path) -> None:
    doors = instance.open_doors(home, {})
    (home / "run" / NODE).unlink()
    end = squatters.alive(home / "run" / NODE)
    instance.close_doors(doors)
    assert names(home / "run").keys() == {NODE}
    end()


# --- secrets ----------------------------------------------------------------------------------------------------------


def private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def for_all(path: Path) -> None:
    private(path, KEY.encode())
    path.chmod(0o644)


def elsewhere(path: Path) -> None:
    private(path.with_name("other"), KEY.encode())
    path.symlink_to("other")


def anothers(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    private(path, KEY.encode())
    os.chown(path, 65534, 65534)


BAD: dict[str, Callable[[Path], object]] = {
    "readable by all": for_all,
    "a link": elsewhere,
    "another user's": anothers,
    "a folder": lambda path: path.mkdir(mode=0o700),
    "empty": lambda path: private(path, b""),
    "cut short": lambda path: private(path, KEY[:-1].encode()),
    "too long": lambda path: private(path, KEY.encode() + b"7e"),
    "no text": lambda path: private(path, b"\xff" * 64),
    "other letters": lambda path: private(path, b"x" * 64),
    "two lines": lambda path: private(path, KEY[:32].encode() + b"\n" + KEY[32:].encode()),
}


@pytest.mark.parametrize("found", BAD)
def test_a_secret_that_others_may_know_or_that_is_none_is_refused(home: Path, found: str) -> None:
    BAD[found](home / "operator.key")
    with pytest.raises(CannotStart, match=str(home / "operator.key")) as refused:
        instance.secret(home, "operator.key")
    assert refused.value.code is StartCode.HOME_UNSAFE


def test_a_secret_is_made_once_and_kept(home: Path) -> None:
    made = instance.secret(home, "operator.key")
    assert len(bytes.fromhex(made)) == 32
    assert oct((home / "operator.key").stat().st_mode & 0o777) == "0o600"
    assert instance.secret(home, "operator.key") == made
    assert instance.secret(home, "node.secret") != made


@pytest.mark.parametrize("around", [b"", b"\n", b" \r\n"])
def test_a_secret_may_have_been_written_by_hand(home: Path, around: bytes) -> None:
    private(home / "operator.key", KEY.encode() + around)
    assert instance.secret(home, "operator.key") == KEY
