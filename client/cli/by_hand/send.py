"""``firm send MEMBER TEXT``: mail to a member by its name, in the run in which it takes part."""

from __future__ import annotations

from typing import Any

from client.cli import arguments, say
from client.cli.arguments import JSON, TEXT, Field
from client.cli.crew import IN_RUN, Node, guarded

FIELDS: tuple[Field, ...] = (
    ("member", "--member", "str", True, None, None, False, "", "who gets it, by its name"),
    ("text", "--body", TEXT, True, None, None, False, "", "what to say, as Markdown; - reads standard input"),
    (
        "response_required",
        "--response-required",
        "switch",
        False,
        None,
        None,
        False,
        "",
        "an answer or an action is needed",
    ),
    ("work_id", "--work-id", "str", False, "", None, False, "", "the Work it is about"),
    IN_RUN,
    JSON,
)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.pop("_json", False))
    body = arguments.body(FIELDS, given)
    return guarded(lambda: _send(body, as_json=as_json), as_json=as_json)


def _send(given: dict[str, object], *, as_json: bool) -> int:
    node = Node()
    run_, place = node.place(str(given["member"]), str(given.get("team_run_id", "")))
    about: dict[str, Any] = {"work_id": given["work_id"]} if given.get("work_id") else {}
    sent = node.ask(
        "message.send",
        team_run_id=run_["id"],
        body=given["text"],
        recipients=[place["member_run"]["membership_id"]],
        response_required=bool(given.get("response_required")),
        **about,
    )
    if as_json:
        say.out(say.dumps(sent))
    else:
        from client.cli.eyes import text

        say.out(f"To {place['name']}: {text('message.send', sent)}")
    return 0
