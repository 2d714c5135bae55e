"""What is typed wrong costs nothing: exit 2, one sentence, and what to type instead; nobody is asked."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.cli.arguments import LIMIT, Field, Usage, parse, take
from client.cli.index import NOUNS
from client.cli.main import verbs_of
from client.protocol.frames import MAX_REQUEST
from tests.cli.shell import Done, Shell

#: What was typed, what is said of it, and what is advised.
WRONG = [
    ("taem list", "There is no command 'taem'.", "did you mean firm team?"),
    ("nod start", "There is no command 'nod'.", "did you mean firm node?"),
    ("qqqq", "There is no command 'qqqq'.", "firm --help"),
    ("list", "There is no command 'list'.", "firm agent list"),
    ("start", "There is no command 'start'.", "firm node start"),
    ("team lst", "firm team has no verb 'lst'.", "did you mean firm team list?"),
    ("team qqqq", "firm team has no verb 'qqqq'.", "firm team --help"),
    ("node strat", "firm node has no verb 'strat'.", "did you mean firm node start?"),
    ("team", "firm team needs a verb.", "create"),
    ("team --state active", "firm team needs a verb.", "firm team --help"),
    ("--json team list", "'--json' stands before the command.", "firm NOUN VERB --json"),
    ("team show", "TEAM_ID (the team, by id or unique name) is missing.", "firm team show TEAM_ID"),
    ("team create", "NAME (what people call it) and --host-agent-id", "firm team create NAME --host-agent-id ID"),
    ("team create x", "--host-agent-id (its Host, by id or unique name) is missing.", "--host-agent-id ID"),
    ("team update core", "--expected-version (version last read) is missing.", "--expected-version N"),
    ("team create a b --host-agent-id c", "'b' is one word too many: --name is 'a' already.", "quote"),
    ("team create a --name b --host-agent-id c", "--name is given twice.", "give --name once"),
    ("team create a --host-agent-id b --host-agent-id c", "--host-agent-id is given twice.", "once"),
    ("team list --limit 3 --limit 4", "--limit is given twice.", "give --limit once"),
    ("team list extra", "'extra' is one word too many.", "takes flags only"),
    ("team list --jsn", "firm team list has no flag '--jsn'.", "did you mean --json?"),
    ("team list --lim 3", "firm team list has no flag '--lim'.", "did you mean --limit?"),
    ("team list -f", "firm team list has no flag '--follow'.", "firm team list --help"),
    ("agent create -x", "firm agent create has no flag '-x'.", "behind --"),
    ("team list --state bogus", "--state cannot be 'bogus'.", "give active, inactive or trashed"),
    ("team list --state actve", "--state cannot be 'actve'.", "did you mean active?"),
    ("team list --state", "--state has no value.", "--state=VALUE"),
    ("agent create --name --json", "--name has no value.", "--name=VALUE"),
    ("agent create x --description --role y", "--description has no value.", "--description VALUE"),
    ("team list --json=yes", "--json takes no value.", "write --json alone"),
    ("team list --limit x", "--limit cannot be 'x'.", "a whole number: --limit N"),
    ("team list --limit 1.5", "--limit cannot be '1.5'.", "a whole number"),
    ("team list --limit ²", "--limit cannot be '²'.", "a whole number"),
    ("team list --limit 99999999999999999999", "--limit cannot be '99999999999999999999'.", "a whole number"),
    ("completion tcsh", "--shell cannot be 'tcsh'.", "give bash, zsh or fish"),
    ("node logs --lines many", "--lines cannot be 'many'.", "a whole number"),
    ("node restore", "FILE (a file that firm node backup made) is missing.", "firm node restore FILE"),
    ("node stop now", "'now' is one word too many.", "firm node stop --help"),
]


def two_lines(done: Done) -> tuple[str, str]:
    """The sentence and the advice of a refusal for eyes."""
    sentence, advice = done.err.splitlines()
    assert sentence.startswith("firm: ")
    assert advice.startswith("  To lift it: ")
    assert done.out == ""
    return sentence, advice


@pytest.mark.parametrize(("line", "said", "advised"), WRONG, ids=[line for line, _, _ in WRONG])
def test_what_is_wrong_is_named_with_what_to_type(shell: Shell, line: str, said: str, advised: str) -> None:
    done = shell.tries(*line.split())
    assert done.status == 2
    if "--json" in line.split():
        refusal = done.refusal
        sentence, advice = f"firm: {refusal['meaning']} [{refusal['code']}]", refusal["lifted_by"]
    else:
        sentence, advice = two_lines(done)
    assert sentence.startswith(f"firm: {said}")
    assert sentence.endswith(" [USAGE]")
    assert advised in advice
    assert not shell.home.exists()


def test_a_wrong_word_is_said_short_and_without_its_control_characters(shell: Shell) -> None:
    done = shell.tries("x\x1b[31m" * 100)
    sentence, _ = two_lines(done)
    assert len(sentence) < 120
    assert "\x1b" not in done.err


def test_text_that_is_not_utf8_is_refused(shell: Shell) -> None:
    done = shell.tries("agent", "create", b"\xff\xfe")
    assert done.status == 2
    assert "not UTF-8" in two_lines(done)[0]


def test_two_texts_cannot_both_come_from_standard_input(shell: Shell) -> None:
    done = shell.tries("agent", "create", "-", "--description", "-", stdin=b"x")
    assert done.status == 2
    assert "--name and --description are both -" in two_lines(done)[0]


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"\xff", "not UTF-8"), (b"x" * (LIMIT + 1), "larger than a request may be")],
    ids=["not UTF-8", "too large"],
)
def test_standard_input_that_cannot_be_sent_is_refused_before_it_is(shell: Shell, data: bytes, said: str) -> None:
    done = shell.tries("agent", "create", "x", "--description", "-", stdin=data)
    assert done.status == 2
    assert said in two_lines(done)[0]


def test_a_closed_standard_input_is_named(shell: Shell) -> None:
    done = shell.bash("firm agent create x --description - <&-")
    assert done.status == 2
    assert "standard input is closed" in two_lines(done)[0]


def test_every_refusal_of_the_command_line_has_the_keys_of_one_of_the_daemon(shell: Shell) -> None:
    refusal = shell.tries("team", "lst", "--json").refusal
    assert list(refusal) == [
        "code",
        "about",
        "lifted_by",
        "current_version",
        "meaning",
        "retry",
        "idempotency_key",
    ]
    assert (refusal["code"], refusal["retry"], refusal["idempotency_key"]) == ("USAGE", "never", None)


def test_the_limit_of_a_text_is_that_of_a_request() -> None:
    assert LIMIT == MAX_REQUEST


FIELDS: tuple[Field, ...] = (
    ("name", "--name", "str", True, None, None, False, "", "a name"),
    ("skills", "--skill", "str", False, (), None, True, "", "skills"),
    ("limit", "--limit", "int", False, 5, None, False, "", "how many"),
    ("share", "--share", "float", False, 0.5, None, False, "", "how much"),
    ("kept", "--kept", "bool", False, True, None, False, "", "whether"),
    ("json", "--json", "switch", False, None, None, False, "", "json"),
    ("state", "--state", "str", False, None, ("on", "off"), False, "", "which"),
)
SOME = st.sampled_from(
    ["--", "-", "-n", "on", "off", "7", "-7", "0.5", "--no-kept", "--name=", "é", "--json"]
) | st.text(max_size=6)
#: Flags with a value behind them more often than chance would have it, so that some lines are whole.
WORDS = st.lists(st.tuples(st.sampled_from([f[1] for f in FIELDS]), SOME) | st.tuples(SOME), max_size=4).map(
    lambda parts: [word for part in parts for word in part]
)


@given(WORDS)
def test_any_words_are_either_read_as_declared_or_refused(words: list[str]) -> None:
    kinds = {"name": str, "skills": list, "limit": int, "share": float, "kept": bool, "json": bool, "state": str}
    with contextlib.suppress(Usage):
        found = take("firm thing do", FIELDS, words)
        assert all(type(value) is kinds[name] for name, value in found.items())


@given(st.text(max_size=20), st.lists(st.text(max_size=5), max_size=3), st.sampled_from(["--kept", "--no-kept"]))
def test_what_is_written_with_equal_signs_or_behind_two_dashes_is_taken_as_it_is(
    name: str, skills: list[str], flag: str
) -> None:
    words = [f"--skill={skill}" for skill in skills] + [flag, "--", name]
    expected = {"name": name, "kept": flag == "--kept", **({"skills": skills} if skills else {})}
    assert take("firm thing do", FIELDS, words) == expected


def test_no_field_of_an_operation_is_named_like_an_option_of_every_command() -> None:
    for noun in NOUNS:
        for verb, (_, _, _, fields) in verbs_of(noun).items():
            assert {"--json", "--idempotency-key", "--help"}.isdisjoint(field[1] for field in fields), (noun, verb)


def test_what_is_not_given_is_not_sent() -> None:
    body, options = parse("team", "list", verbs_of("team")["list"], [])
    assert (body, options) == ({}, {"key": None, "json": False})


def test_the_refusals_of_the_command_line_are_one_line_of_json(shell: Shell) -> None:
    for words in (["team", "--json"], ["node", "restore", "--json"], ["x", "--json"]):
        (line,) = shell.tries(*words).err.splitlines()
        assert set(json.loads(line)) == {"refusal"}
