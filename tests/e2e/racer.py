"""One member of a race, as a process of its own: claims a Work, loses the answer, asks again under the same key.

Its standing is who it is: it shows no key and no capability. Lines come on stdin and go to stdout, as JSON.
"""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path

from tests.support.wire import PATIENCE, Client


def connected(path: Path) -> Client:
    client = Client(path)
    said = client.hello()
    assert "hello" in said, said
    return client


def say(**message: object) -> None:
    print(json.dumps(message), flush=True)  # noqa: T201 — what the test reads


def main(gate: int) -> None:
    told = json.loads(sys.stdin.readline())
    path, body, key = Path(told["socket"]), told["body"], told["key"]
    with connected(path) as client:
        say(ready=True)
        os.read(gate, 1)  # ends when the test closes the other end, for all racers at once
        client.begin("work.claim", body, key)
        assert select.select([client.sock], [], [], PATIENCE)[0], "no answer came"
    with connected(path) as client:
        say(again=client.ask("work.claim", body, key), once_more=client.ask("work.claim", body, key))
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
