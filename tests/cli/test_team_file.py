"""The team file: every error names file, line and field, Works come after what they need, and the JSON Schema says the
same as the reader.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.team_file import TABLES, TeamFile, Wrong, read
from client.team_file_schema import schema

GOOD = """\
[team]
name = "core"
host = "me"

[[member]]
name = "bob"

[[work]]
key = "a"
title = "the parser"
criteria = ["it reads"]

[[work]]
key = "b"
title = "the printer"
criteria = ["it prints"]
needs = ["a"]
assign = "bob"
"""
_CID = """\
[[member]]
name = "cid"
[[work]]
key = "c"
title = "c"
criteria = ["c"]
verifier = "bob"
"""
#: What is put in the place of what, the line that is named, its field, and what is said.
ERRORS = {
    "not TOML": ('name = "core"', 'name = "core', 2, "", "not TOML"),
    "not TOML, at the end": ('assign = "bob"\n', "assign = ", 18, "", "not TOML"),
    "no such table": ("[[member]]", "[[members]]", 5, "members", "no such table; use team, member, work"),
    "no team": ("[team]\n", "", 1, "", ""),
    "one bracket": ("[[member]]", "[member]", 5, "member", "write [[member]], with two brackets"),
    "two brackets": ("[team]", "[[team]]", 1, "team", "write a table [team]"),
    "unknown field": ('name = "bob"', 'name = "bob"\nrank = 7', 7, "member.rank", "no such field; use name, profile"),
    "required": ('host = "me"\n', "", 1, "team.host", "is missing: the member that accepts"),
    "required in the second": ('key = "b"\n', "", 13, "work.key", "is missing"),
    "empty": ('name = "core"', 'name = " "', 2, "team.name", "is empty"),
    "empty list": ('["it reads"]', "[]", 11, "work.criteria", "is empty"),
    "a number": ('name = "bob"', "name = 7", 6, "member.name", "write a text in quotes"),
    "a text for a list": ('["it prints"]', '"it prints"', 16, "work.criteria", "write a list of texts"),
    "a list of numbers": ('["it prints"]', "[1]", 16, "work.criteria", "write a list of texts"),
    "a list of nothing": ('["it prints"]', '[" "]', 16, "work.criteria", "write a list of texts"),
    "two lines": ('["it prints"]', '["one\\ntwo"]', 16, "work.criteria", "each in one line"),
    "choice": ('assign = "bob"', 'priority = "asap"', 18, "work.priority", "use low, normal, high, urgent"),
    "a member twice": ("[[work]]", '[[member]]\nname = "bob"\n[[work]]', 9, "member.name", "'bob' stands twice"),
    "a key twice": ('key = "b"', 'key = "a"', 14, "work.key", "'a' stands twice"),
    "a title twice": ('"the printer"', '"the parser"', 15, "work.title", "'the parser' stands twice"),
    "a title twice but for spaces": ('"the printer"', '" the  parser"', 15, "work.title", "stands twice"),
    "a title twice but for its case": ('"the printer"', '"The Parser"', 15, "work.title", "stands twice"),
    "no such host": ('host = "me"', 'host = "eve"', 3, "team.host", "use me, bob"),
    "no such member": ('assign = "bob"', 'assign = "eve"', 18, "work.assign", "no member 'eve'; use bob"),
    "no such work": ('needs = ["a"]', 'needs = ["c"]', 17, "work.needs", "no other work with the key 'c'"),
    "no such verifier": ('assign = "bob"', 'verifier = "eve"', 18, "work.verifier", "no member 'eve'; use bob"),
    "no such claimant": ('assign = "bob"', 'claim = ["bob", "eve"]', 18, "work.claim", "no member 'eve'; use bob"),
    "nobody may claim": ('assign = "bob"', "claim = []", 18, "work.claim", "is empty: the members that may claim it"),
    "a text for who may claim": ('assign = "bob"', 'claim = "bob"', 18, "work.claim", "write a list of texts"),
    "given and to be claimed": (
        'assign = "bob"',
        'assign = "bob"\nclaim = ["bob"]',
        19,
        "work.claim",
        "stands beside assign; take one of them away",
    ),
    "a check without a name": (
        'assign = "bob"',
        'check = ["make test"]',
        18,
        "work.check",
        "'make test' is not right; it is what has to pass on what is submitted, each as NAME=COMMAND",
    ),
    "a check without a program": ('assign = "bob"', "check = ['a=\"\"']", 18, "work.check", "a: it names no program"),
    "a check of one name twice": (
        'assign = "bob"',
        'check = ["a=b", "a=c"]',
        18,
        "work.check",
        "'a' names two of them",
    ),
    "a check with no limit": ('assign = "bob"', 'check = ["a=limit=x b"]', 18, "work.check", "a: limit=x is no number"),
    "a line that is two for the node": ('["it reads"]', '["one\\u2028two"]', 11, "work.criteria", "each in one line"),
    "a member called as the person": ('name = "bob"', 'name = "me"', 6, "member.name", "name it otherwise"),
    "a verifier that may do it": (
        'assign = "bob"\n',
        'claim = ["bob"]\nverifier = "bob"\n',
        19,
        "work.verifier",
        "'bob' may do it, and somebody else verifies; add a member for it",
    ),
    "a verifier that does it": (
        'assign = "bob"',
        'assign = "bob"\nverifier = "bob"',
        19,
        "work.verifier",
        "'bob' does it, and somebody else verifies; add a member for it",
    ),
    "a verifier that accepts": (
        'host = "me"\n\n[[member]]\nname = "bob"\n',
        f'host = "bob"\n\n[[member]]\nname = "bob"\n{_CID}',
        13,
        "work.verifier",
        "'bob' accepts, and somebody else verifies; use cid",
    ),
    "what nobody shows to hold": (
        'host = "me"',
        'host = "bob"',
        8,
        "work.check",
        "is missing: 'bob' accepts only what a check or a verifier has shown to hold",
    ),
    "two in one folder": (
        'name = "bob"\n',
        'name = "bob"\nworkspace = "shared"\n[[member]]\nname = "cid"\nworkspace = "shared"\n',
        10,
        "member.workspace",
        "'bob' and 'cid' would write into one folder; give all but one of them workspace = \"worktree\"",
    ),
    "needs itself": ('needs = ["a"]', 'needs = ["b"]', 17, "work.needs", "no other work with the key 'b'"),
    "no cycle": ('host = "me"', 'host = "me"\ncycles = 0', 4, "team.cycles", "write a number from 1 to 1000"),
    "too many cycles": ('host = "me"', 'host = "me"\ncycles = 1001', 4, "team.cycles", "write a number from 1 to 1000"),
    "cycles in quotes": ('host = "me"', 'host = "me"\ncycles = "4"', 4, "team.cycles", "without quotes"),
    "cycles that are true": ('host = "me"', 'host = "me"\ncycles = true', 4, "team.cycles", "write a number"),
    "a circle": ('criteria = ["it reads"]', 'criteria = ["x"]\nneeds = ["b"]', 12, "work.needs", "a → b → a"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_names_file_line_and_field(name: str) -> None:
    old, new, line, field, said = ERRORS[name]
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    with pytest.raises(Wrong) as wrong:
        read("my/team.toml", text)
    if name != "no team":  # its fields stand at the root then
        where = f"my/team.toml:{line}: {field}: " if field else f"my/team.toml:{line}: "
        assert str(wrong.value).startswith(where)
    assert said in str(wrong.value)


def test_a_file_says_how_many_cycles_go_on_at_once() -> None:
    assert read("t", GOOD).cycles == 4
    assert read("t", GOOD.replace('host = "me"', 'host = "me"\ncycles = 9')).cycles == 9


def test_what_is_not_said_has_its_default() -> None:
    file = read("t", GOOD)
    assert (file.project, file.objective, file.members[0].profile) == (".", "", "command")
    assert [(work.key, work.needs, work.assign, work.priority) for work in file.works] == [
        ("a", [], "", "normal"),
        ("b", ["a"], "bob", "normal"),
    ]


def test_only_who_may_write_there_shares_a_folder_with_nobody() -> None:
    """A ceiling keeps nobody from it. Our own program as a Host looks, unless a Work is assigned to it."""
    two = GOOD.replace('name = "bob"\n', 'name = "bob"\nworkspace = "shared"\n[[member]]\nname = "cid"\n{}', 1)
    alone = read("t", two.format(""))
    assert [member.name for member in alone.writers] == ["bob", "cid"]
    shared = 'workspace = "shared"\nceiling = "read_only"\n'
    with pytest.raises(Wrong, match="neither ceilings nor lanes"):
        read("t", two.format(shared))
    looks = two.format(shared).replace('host = "me"', 'host = "cid"').replace("criteria", 'check = ["a=b"]\ncriteria')
    assert [member.name for member in read("t", looks).writers] == ["bob"]
    for works in (looks.replace('assign = "bob"', 'assign = "cid"'), looks.replace(shared, shared + 'profile = "x"\n')):
        with pytest.raises(Wrong, match="'bob' and 'cid' would write into one folder"):
            read("t", works)


def test_who_may_claim_a_work_stands_in_the_file() -> None:
    (_, work) = read("t", GOOD.replace('assign = "bob"', 'claim = ["bob"]')).works
    assert (work.assign, work.claim) == ("", ["bob"])


def test_a_title_and_criteria_are_as_the_node_stores_them() -> None:
    """Otherwise the same file would find its own Works changed."""
    (first, _) = read("t", GOOD.replace("the parser", "  the   parser ").replace("it reads", " it reads  ")).works
    assert (first.title, first.criteria) == ("the parser", ["it reads"])


def chain(needs: dict[str, list[str]]) -> str:
    rows = [
        f'[[work]]\nkey = "{k}"\ntitle = "{k}"\ncriteria = ["x"]\nneeds = {json.dumps(n)}\n' for k, n in needs.items()
    ]
    return '[team]\nname = "t"\nhost = "me"\n' + "\n".join(rows)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Works in any order that need others, never in a circle."""
    keys = [f"k{n}" for n in range(draw(st.integers(0, 7)))]
    needs = {key: [k for k in keys[:n] if draw(st.booleans())] for n, key in enumerate(keys)}
    return {key: needs[key] for key in draw(st.permutations(keys))}


@given(graphs())
def test_every_work_comes_after_what_it_needs_and_none_is_lost(needs: dict[str, list[str]]) -> None:
    file = read("t", chain(needs))
    keys = [work.key for work in file.works]
    assert sorted(keys) == sorted(needs)
    for work in file.works:
        assert {*work.needs} <= {*keys[: keys.index(work.key)]}


def test_a_circle_is_named_without_what_only_waits_for_it() -> None:
    text = chain({"late": ["a"], "a": ["b"], "b": ["c"], "c": ["a"], "free": []})
    with pytest.raises(Wrong, match=r"they wait for each other: a → b → c → a$"):
        read("t", text)


def admits(shape: dict[str, Any], value: object) -> bool:
    """What of JSON Schema the schema of the team file uses."""
    if (
        known := set(shape)
        - {"$schema", "title", "description", "type", "required", "additionalProperties"}
        - {"properties", "items", "minItems", "pattern", "enum", "not", "minimum", "maximum"}
    ):
        raise NotImplementedError(known)
    if shape["type"] == "object":
        return (
            isinstance(value, dict)
            and set(shape.get("required", ())) <= set(value) <= set(shape["properties"])
            and all(admits(shape["properties"][key], each) for key, each in value.items())
            and not ("not" in shape and set(shape["not"]["required"]) <= set(value))
        )
    if shape["type"] == "array":
        return (
            isinstance(value, list)
            and len(value) >= shape.get("minItems", 0)
            and all(admits(shape["items"], each) for each in value)
        )
    if shape["type"] == "integer":
        return type(value) is int and shape["minimum"] <= value <= shape["maximum"]
    return (
        isinstance(value, str)
        and bool(re.search(shape.get("pattern", ""), value))
        and value in shape.get("enum", [value])
    )


def reads(text: str) -> TeamFile | None:
    try:
        return read("t", text)
    except Wrong:
        return None


#: Not about the shape of one table: JSON Schema cannot say them.
_OF_NAMES = (
    *("twice", "no such host", "no such member", "no such work", "no such verifier"),
    *("needs itself", "a circle", "a verifier that", "two in one folder", "no such claimant", "called as the person"),
    "what nobody shows to hold",
    *("a check without a program", "a check of one name twice", "a check with no limit"),
)


@pytest.mark.parametrize("name", [name for name in ERRORS if "not TOML" not in name])
def test_the_schema_refuses_what_the_reader_refuses(name: str) -> None:
    old, new, *_ = ERRORS[name]
    found = tomllib.loads(GOOD.replace(old, new, 1))
    assert admits(json.loads(schema()), found) == any(each in name for each in _OF_NAMES)


_TEXTS = st.sampled_from(["", " ", "a", "b", "a=b", "me", "low", "urgent", "worktree", "full_access", "x\ny", "é"])
_VALUES = st.one_of(_TEXTS, st.lists(_TEXTS, max_size=2), st.integers(0, 1), st.booleans())


@given(st.sampled_from(sorted(TABLES)), st.data())
def test_schema_and_reader_agree_on_every_field(table: str, data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(TABLES[table][1]))
    value = data.draw(_VALUES)
    found = tomllib.loads(GOOD.replace('needs = ["a"]\nassign = "bob"\n', ""))
    row = found[table] if table == "team" else found[table][0]
    row[field.name] = value
    if (table, field.name) in {
        ("team", "host"),
        ("work", "key"),
        ("work", "title"),
        ("work", "assign"),
        ("work", "claim"),
        ("work", "verifier"),
        ("work", "needs"),
    } or (table, value) == ("member", "me"):
        return  # of names, above
    text = "\n".join(
        f"{head}\n" + "\n".join(f"{key} = {json.dumps(each)}" for key, each in each_row.items())
        for name in found
        for head, each_row in (
            [("[team]", found[name])] if name == "team" else [(f"[[{name}]]", r) for r in found[name]]
        )
    )
    assert tomllib.loads(text) == found
    assert (reads(text) is not None) == admits(json.loads(schema()), found)
