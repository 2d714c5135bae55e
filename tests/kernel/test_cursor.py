"""A cursor continues its own query on its own store, and is refused by name for everything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from client.protocol.ids import StoreId
from client.protocol.refusals import Code, Refusal
from client.protocol.team import TeamState
from daemon.kernel import cursor

HERE, ELSEWHERE = StoreId("here"), StoreId("elsewhere")
positions = st.integers(0, 2**63 - 1)
queries = st.lists(st.one_of(st.none(), st.text(max_size=20), st.sampled_from(TeamState)), max_size=3).map(tuple)


def refused(found: int | Refusal) -> bool:
    if isinstance(found, Refusal):
        assert (found.code, found.about) == (Code.CURSOR_INVALID, "cursor")
        assert found.lifted_by
        return True
    return False


@given(positions, queries)
def test_a_cursor_gives_back_its_position(position: int, query: tuple[object, ...]) -> None:
    written = cursor.write(position, HERE, *query)
    assert cursor.read(written, HERE, *query) == position
    assert written.isascii()
    assert len(written) <= 500


@given(positions, st.text(max_size=20))
def test_no_cursor_looks_like_an_option_to_a_command_line(position: int, store: str) -> None:
    assert cursor.write(position, StoreId(store), "any").isalnum()


@given(positions, queries, queries)
def test_a_cursor_fits_no_other_query_and_no_other_store(
    position: int, query: tuple[object, ...], other: tuple[object, ...]
) -> None:
    written = cursor.write(position, HERE, *query)
    assert refused(cursor.read(written, ELSEWHERE, *query))
    assert refused(cursor.read(written, HERE, *other)) == (repr(query) != repr(other))


@given(st.text(max_size=500), queries)
def test_no_text_makes_it_fail(text: str, query: tuple[object, ...]) -> None:
    found = cursor.read(text, HERE, *query)
    assert refused(found) or found == 0 or text == cursor.write(int(str(found)), HERE, *query)


@given(positions, queries, st.data())
def test_a_cursor_that_was_changed_is_refused_or_stays_a_position(
    position: int, query: tuple[object, ...], data: st.DataObject
) -> None:
    """It is no seal: whoever may read the list may read all of it. But it never becomes a number SQLite cannot hold."""
    written = cursor.write(position, HERE, *query)
    at = data.draw(st.integers(0, len(written) - 1))
    new = data.draw(st.characters())
    found = cursor.read(written[:at] + new + written[at + 1 :], HERE, *query)
    assert refused(found) or 0 <= int(str(found)) < 2**63


def test_a_position_that_no_database_can_hold_is_refused() -> None:
    for position in (2**63, 2**64 - 1):
        assert refused(cursor.read(cursor.write(position, HERE, "any"), HERE, "any"))


def test_an_empty_cursor_begins_at_the_beginning() -> None:
    assert cursor.read("", HERE, "any") == 0
