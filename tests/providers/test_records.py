"""What a program records, read by rules over exact keys: on real files, torn, damaged, replaced and endless."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from client.protocol.session import Capacity, Failure
from providers import records
from providers.profiles import Wrong, read
from providers.records import Reading, Rule, at_end, further

QUOTA = {"type": "error", "error": {"kind": "quota"}}
RULES = [
    Rule(match={"type": "error", "error.kind": "quota"}, ending="quota_exhausted", capacity=Capacity.EXHAUSTED),
    Rule(match={"type": "error", "error.status": 401}, ending="unauthorized", capacity=Capacity.UNAUTHORIZED),
    Rule(match={"type": "error"}, ending="turn_failed"),
    Rule(match={"type": "interrupted", "by_user": True}, ending="interrupted_by_provider"),
    Rule(match={"type": "done"}, ending="completed", capacity=Capacity.AVAILABLE),
]


def write(path: Path, *found: object, end: str = "\n") -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("".join((each if isinstance(each, str) else json.dumps(each)) + end for each in found))


def said(path: Path, *found: object) -> Reading:
    write(path, *found)
    return further(Reading(path=path, offset=0), RULES)


@pytest.mark.parametrize(
    ("found", "ending", "capacity"),
    [
        ([QUOTA], "quota_exhausted", Capacity.EXHAUSTED),
        ([{"type": "error", "error": {"status": 401}}], "unauthorized", Capacity.UNAUTHORIZED),
        ([{"type": "error"}], "turn_failed", None),
        ([{"type": "interrupted", "by_user": True}], "interrupted_by_provider", None),
        # The last word counts, of each.
        ([QUOTA, {"type": "done"}], "completed", Capacity.AVAILABLE),
        ([{"type": "done"}, QUOTA], "quota_exhausted", Capacity.EXHAUSTED),
        ([QUOTA, {"type": "error"}], "turn_failed", Capacity.EXHAUSTED),
        # Exactly these values, of exactly these types, at exactly these places.
        ([{"type": "interrupted", "by_user": 1}], "", None),
        ([{"type": "interrupted", "by_user": "true"}], "", None),
        ([{"type": "Error"}, {"type": "error "}, {"type": ["error"]}, {"type": None}], "", None),
        ([{"kind": "error"}, {"message": {"type": "error"}}, [QUOTA], "null", "7", '"error"'], "", None),
    ],
)
def test_a_rule_names_keys_and_their_values(
    tmp_path: Path, found: list[object], ending: str, capacity: Capacity | None
) -> None:
    reading = said(tmp_path / "t.jsonl", *found)
    assert (reading.ending, reading.capacity) == (ending, capacity)
    assert reading.failure == (Failure(ending) if ending in set(Failure) else None)


def texts() -> list[dict[str, Any]]:
    """Records in which a model, or what it was told, says word for word what a record of its provider would."""
    quota = json.dumps(QUOTA)
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": quota}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": quota}]}},
        {"type": "assistant", "message": {"content": [QUOTA]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "say", "input": QUOTA}]}},
        {"type": "assistant", "text": f"x\\n{quota}\\n"},
        {"type": "assistant", "text": f"x\n{quota}\n"},
        {"type": f"error {quota}"},
        {quota: "error"},
    ]


@pytest.mark.parametrize("record", texts(), ids=range(len(texts())))
def test_what_a_model_wrote_says_nothing_of_its_provider(tmp_path: Path, record: dict[str, Any]) -> None:
    """I37."""
    reading = said(tmp_path / "t.jsonl", record)
    assert (reading.ending, reading.capacity, reading.source, reading.unparsed) == ("", None, "", 0)


def test_no_key_leads_into_a_list(tmp_path: Path) -> None:
    """There stands what a model wrote."""
    path = tmp_path / "t.jsonl"
    write(path, {"message": {"content": [{"type": "error"}], "stop": {"type": "error"}}})
    inside = Rule(match={"message.content.type": "error"}, ending="refusal")
    beside = Rule(match={"message.stop.type": "error"}, ending="turn_failed")
    assert further(Reading(path=path, offset=0), [inside]).ending == ""
    assert further(Reading(path=path, offset=0), [inside, beside]).ending == "turn_failed"


def test_it_is_read_from_where_a_cycle_began(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, QUOTA)
    begun = at_end(path)
    assert further(begun, RULES) == begun
    write(path, {"type": "done"})
    assert further(begun, RULES).capacity is Capacity.AVAILABLE


def test_a_last_line_that_is_torn_is_read_again(tmp_path: Path) -> None:
    path, line = tmp_path / "t.jsonl", json.dumps(QUOTA)
    write(path, {"type": "user"})
    write(path, line[:20], end="")
    begun = at_end(path)
    assert begun.offset == len(json.dumps({"type": "user"})) + 1
    reading = further(begun, RULES)
    assert (reading.offset, reading.ending, reading.unparsed) == (begun.offset, "", 0)
    write(path, line[20:])
    reading = further(reading, RULES)
    assert (reading.ending, reading.offset, reading.unparsed) == ("quota_exhausted", path.stat().st_size, 0)


def test_what_is_no_record_is_counted_and_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'\xff\xfe\n{"type": \n\n   \n[1, 2]\n' + b"[" * 100_000 + b"\n")
    reading = said(path, QUOTA)
    assert (reading.unparsed, reading.ending) == (4, "quota_exhausted")


def test_a_line_without_end_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LONGEST", 64)
    path = tmp_path / "t.jsonl"
    reading = said(path, {"type": "error", "text": "x" * 500}, {"type": "y"}, QUOTA)
    assert (reading.unparsed, reading.ending, reading.offset) == (1, "quota_exhausted", path.stat().st_size)
    write(path, "x" * 500, end="")
    assert further(reading, RULES) == reading


def test_of_very_much_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    write(path, QUOTA, *[{"type": "user", "n": n} for n in range(100)], {"type": "done"})
    monkeypatch.setattr(records, "MOST", 500)
    reading = further(Reading(path=path, offset=0), RULES)
    assert (reading.ending, reading.unparsed, reading.offset) == ("completed", 0, path.stat().st_size)


def test_another_file_in_its_place_says_nothing_of_this_cycle(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, *[{"type": "user"}] * 9)
    begun = at_end(path)
    path.unlink()
    write(path, QUOTA)
    reading = further(begun, RULES)
    assert (reading.ending, reading.offset) == ("", path.stat().st_size)


def test_a_file_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    begun = at_end(path)
    assert begun == Reading(path=path, offset=0)
    assert further(begun, RULES) == begun
    write(path, QUOTA)
    assert further(begun, RULES).ending == "quota_exhausted"


def test_a_pipe_is_no_file_and_keeps_nobody(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    os.mkfifo(path)
    with pytest.raises(OSError, match="is no file"):
        at_end(path)


def test_a_reading_names_its_rule(tmp_path: Path) -> None:
    assert said(tmp_path / "t.jsonl", QUOTA).source == 'record type="error", error.kind="quota"'


PROFILE = """
argv = ["/bin/true"]
[native]
start = ["{native_id}"]
resume = ["{native_id}"]
transcript = "/t/{native_id}"
"""


def test_a_profile_says_rules_as_data() -> None:
    text = '[[records]]\nmatch = {type = "error", "error.kind" = "quota"}\nending = "quota_exhausted"\n'
    found = read("agent", f'{PROFILE}{text}capacity = "exhausted"\n')
    assert found.records == [RULES[0]]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ('match = {}\nending = "refusal"', "names keys"),
        ('match = {type = ["error"]}\nending = "refusal"', "names keys"),
        ("match = {n = 1.5}\nending = 'refusal'", "names keys"),
        ('match = {type = "error"}\nending = "bored"', "records.ending can be completed, interrupted_by_provider"),
        ('match = {type = "error"}\nending = "closed"', "records.ending can be"),
        ('match = {type = "error"}', "an ending, a capacity or both"),
        ('match = {type = "error"}\ncapacity = "plenty"', "capacity"),
        ('ending = "refusal"', "match"),
    ],
)
def test_a_rule_that_is_wrong_is_told(rule: str, said: str) -> None:
    with pytest.raises(Wrong) as wrong:
        read("agent", f"{PROFILE}[[records]]\n{rule}\n")
    assert said in str(wrong.value)


def test_rules_need_a_transcript() -> None:
    with pytest.raises(Wrong, match=r"native\.transcript, which is missing"):
        read("agent", 'argv = ["/bin/true"]\n[[records]]\nmatch = {type = "x"}\nending = "refusal"\n')


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ('begun = ["Begin"]\nended = []', "no turn would ever be over"),
        ('begun = ["Begin"]', "ended"),
        ('begun = ["Begin"]\nended = ["Begin"]', "Begin stands twice"),
        ('begun = ["Begin"]\nended = ["Stop"]\nwaiting = ["Stop"]', "Stop stands twice"),
    ],
)
def test_hooks_that_are_wrong_are_told(hooks: str, said: str) -> None:
    with pytest.raises(Wrong) as wrong:
        read("agent", f'argv = ["/bin/true"]\n[hooks]\n{hooks}\n')
    assert said in str(wrong.value)


def test_every_ending_that_a_record_can_say() -> None:
    assert {*map(str, Failure), "interrupted_by_provider", "completed"} == records.ENDINGS
    for failure in Failure:
        assert Reading(path=Path("x"), offset=0, ending=failure.value).failure is failure
    assert attrs.evolve(Reading(path=Path("x"), offset=0), ending="completed").failure is None
