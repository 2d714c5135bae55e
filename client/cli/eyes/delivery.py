"""How far a delivery is, after its recipient said something of it: one line."""

from __future__ import annotations

from typing import Any


def lay(delivery: dict[str, Any]) -> str:
    said = "" if delivery["response"] == "none" else f", {delivery['response']}"
    state = delivery["state"].replace("_", " ")
    return f"{delivery['id']}  {state}{said}, version {delivery['version']}, of message {delivery['message_id']}"
