"""What can be waited for: read exactly as written, refused with what would be right, never a failure."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from client.protocol.refusals import Code, Refusal
from daemon.kernel.predicate import FIELDS, FieldIs, RunSeqAbove, SeqAbove, VersionAbove, parse

#: Pieces of predicates, so that what is put together at random is often nearly right.
PIECES = ["seq", ">", "=", ":", ".", "agent", "team", "membership", "state", "status", "version", "active", "41", "x"]
nearly = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
numbers = st.integers(0, 10**18 - 1)
ids = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"), min_size=1, max_size=10)


@given(st.one_of(st.text(max_size=200), nearly))
@example("seq>" + "9" * 18)
@example("seq>" + "9" * 19)
@example("seq>٣")
@example("agent:x.version>²")
@example("team:x.state=active\n")
def test_no_text_makes_it_fail(text: str) -> None:
    found = parse(text)
    if isinstance(found, Refusal):
        assert (found.code, found.about) == (Code.MALFORMED, "predicate")
        assert found.lifted_by
    elif isinstance(found, (SeqAbove, RunSeqAbove)):
        assert 0 <= found.seq < 2**63
    elif isinstance(found, VersionAbove):
        assert 0 <= found.version < 2**63


@given(numbers)
def test_everything_behind_a_number(number: int) -> None:
    assert parse(f"seq>{number}") == SeqAbove(number)


@given(st.sampled_from(sorted(FIELDS)), ids, numbers)
def test_a_record_newer_than_a_version(noun: str, record_id: str, number: int) -> None:
    assert parse(f"{noun}:{record_id}.version>{number}") == VersionAbove(noun, record_id, number)


@pytest.mark.parametrize("noun", FIELDS)
def test_every_value_of_every_field(noun: str) -> None:
    for field, kind in FIELDS[noun].items():
        for member in kind:
            assert parse(f"{noun}:abc.{field}={member}") == FieldIs(noun, "abc", field, member.value)


def test_a_value_of_another_field_is_refused_with_those_of_this_one() -> None:
    everything = [(noun, field, kind) for noun, fields in FIELDS.items() for field, kind in fields.items()]
    for (noun, field, kind), (_, _, other) in itertools.product(everything, everything):
        for member in other:
            found = parse(f"{noun}:abc.{field}={member}")
            if member.value in [each.value for each in kind]:
                assert isinstance(found, FieldIs)
            else:
                assert isinstance(found, Refusal)
                assert all(each.value in found.lifted_by for each in kind)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " seq>1",
        "seq>1 ",
        "seq>=1",
        "seq>-1",
        "seq=1",
        "agent:.status=active",
        "agent:a b.status=active",
        "agent:a.status=active or seq>1",
        "agent:a.status",
        "agent:a.version>x",
        "agent.status=active",
    ],
)
def test_what_is_nearly_right_is_wrong(text: str) -> None:
    assert isinstance(parse(text), Refusal)
