"""The logs of checks: found by their digest, and only what has that digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from client import check_logs


def test_a_log_is_kept_under_its_digest_and_its_end_is_shown(tmp_path: Path) -> None:
    written, logs = tmp_path / "part", tmp_path / "deep" / "logs"
    written.write_bytes(b"begin" + b"x" * 5000 + b"end")
    digest = check_logs.keep(written, logs)
    assert digest == hashlib.sha256(b"begin" + b"x" * 5000 + b"end").hexdigest()
    assert not written.exists()
    end = check_logs.end(logs, digest)
    assert end is not None
    assert end == b"x" * 1997 + b"end"


def test_what_is_not_here_or_is_another_is_not_shown(tmp_path: Path) -> None:
    written = tmp_path / "part"
    written.write_bytes(b"one")
    digest = check_logs.keep(written, tmp_path)
    for other in ("", "0" * 64, "../part", "a\0b"):
        assert check_logs.end(tmp_path, other) is None
    (tmp_path / f"{digest}.log").write_bytes(b"two")
    assert check_logs.end(tmp_path, digest) is None


def test_a_log_is_found_whichever_node_keeps_it(tmp_path: Path) -> None:
    """One that is spoilt is passed over; so is what cannot be read."""
    digest = hashlib.sha256(b"one").hexdigest()
    for name, content in (("a", b"two"), ("c", b"one")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{digest}.log").write_bytes(content)
    (tmp_path / "b" / f"{digest}.log").mkdir(parents=True)
    assert check_logs.end(tmp_path, digest) == b"one"
    assert check_logs.kept(tmp_path / "c") == {digest}
    check_logs.remove(tmp_path / "c", {digest, "0" * 64})
    assert (check_logs.kept(tmp_path / "c"), check_logs.end(tmp_path, digest)) == (set(), None)
    assert check_logs.kept(tmp_path / "nowhere") == set()


def test_they_lie_in_the_data_folder_of_the_user(tmp_path: Path) -> None:
    assert check_logs.folder({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "firm" / "logs" / "checks"
    assert check_logs.folder({"XDG_DATA_HOME": "relative"}).is_relative_to(Path.home())


def test_a_log_can_be_had_whole_while_what_is_shown_is_its_end(tmp_path: Path) -> None:
    written = tmp_path / "written"
    written.write_bytes(b"begin " + b"x" * 5000)
    digest = check_logs.keep(written, tmp_path / "own")
    assert check_logs.whole(tmp_path, digest) == b"begin " + b"x" * 5000
    assert check_logs.end(tmp_path, digest) == b"x" * 2000
    assert check_logs.whole(tmp_path, "0" * 64) is None
