"""A run as the design tells it, in memory: what may be asked now, and what follows. No database, no code of ours."""

from __future__ import annotations

import attrs

#: Custody of an attempt that stands in the way of the next one.
LIVE = ("claimed", "orphaned_unverified")
UNCLOSED = ("open", "active", "review")
#: The Host; the others are members.
HOST = "ann"


@attrs.define
class Attempt:
    """The last attempt at a Work. ``session`` counts the sessions of its member."""

    fence: int
    who: str
    session: int
    custody: str = "claimed"
    delivered: bool = False

    @property
    def live(self) -> bool:
        return self.custody in LIVE


@attrs.define
class Item:
    """A Work."""

    needs: list[str]
    version: int = 1
    phase: str = "open"
    condition: str = "normal"
    held: str | None = None
    resolution: str | None = None
    owner: str | None = None
    last: Attempt | None = None
    receipts: int = 0
    verifier: str | None = None
    #: Who ever made an attempt at it; what whom said of its last submission.
    built: set[str] = attrs.Factory(set)
    said: dict[str, str] = attrs.Factory(dict)

    @property
    def verified(self) -> bool:
        """Nothing is missing for an acceptance but the acceptance."""
        return self.verifier is None or self.said.get(self.verifier) == "passed"

    @property
    def live(self) -> Attempt | None:
        return self.last if self.last and self.last.live else None

    @property
    def goes(self) -> bool:
        """Its owner does it right now."""
        return self.phase == "active" and self.condition == "normal"

    def at(self, phase: str, condition: str = "normal") -> bool:
        return (self.phase, self.condition) == (phase, condition)


@attrs.define
class Person:
    """A member with the state of its one session, and how many it has had. Nobody speaks for one that has ``ended``."""

    state: str = "idle"
    session: int = 1
    paused: bool = False
    ended: bool = False


@attrs.define
class Model:
    people: dict[str, Person]
    works: dict[str, Item] = attrs.Factory(dict)
    state: str = "running"

    def ready(self, item: Item) -> bool:
        return all(self.works[need].resolution == "accepted" for need in item.needs)

    def own(self, item: Item, who: str) -> bool:
        """The live attempt is of that member's session of now."""
        live = item.live
        return live is not None and (live.who, live.session) == (who, self.people[who].session)

    def occupied(self, who: str) -> bool:
        """It has been given something that it has neither finished nor blocked."""
        mine = [each for each in self.works.values() if each.live and each.live.who == who]
        return any(each.phase == "open" or each.goes for each in mine)

    def undelivered(self, item: Item) -> bool:
        """No process can have it yet."""
        return item.live is None or (item.live.custody == "claimed" and not item.live.delivered)

    def may_create(self, verifier: str | None) -> bool:
        return self.state == "running" and verifier != HOST

    def may_name(self, item: Item, who: str | None) -> bool:
        apart = who is None or (who not in {HOST, item.owner} and who not in item.built)
        return item.phase in UNCLOSED and apart

    def may_verify(self, item: Item, who: str) -> bool:
        return item.at("review") and item.verifier == who and who not in item.said

    def may_assign(self, item: Item, who: str) -> bool:
        free = item.phase == "open" and who not in {item.owner, item.verifier}
        return self.state == "running" and free and self.undelivered(item)

    def may_claim(self, item: Item, who: str) -> bool:
        free = item.at("open") and item.owner is None and item.verifier != who and self.ready(item)
        return self.state == "running" and free and not self.people[who].paused

    def may_release(self, item: Item, who: str) -> bool:
        return item.phase == "open" and item.owner == who and self.undelivered(item)

    def may_admit(self, item: Item, who: str) -> bool:
        free = item.at("open") and item.owner == who and item.live is None and self.ready(item)
        able = self.people[who].state in {"idle", "active"} and not self.occupied(who)
        return self.state == "running" and free and able

    def may_start(self, item: Item, who: str) -> bool:
        mine = item.at("open") and item.owner == who and self.own(item, who) and self.ready(item)
        busy = any(each.goes and each.owner == who for each in self.works.values())
        return self.state == "running" and mine and not busy and not self.people[who].paused

    def may_go_on(self, item: Item, who: str) -> bool:
        """Block or submit: what its own session does right now."""
        return item.owner == who and item.goes and self.own(item, who)

    def may_accept(self, item: Item, who: str) -> bool:
        return item.at("review") and (who != HOST if item.owner == HOST else who == HOST)

    def may_recover(self, item: Item) -> bool:
        lost = item.live is not None and item.live.custody == "orphaned_unverified"
        return lost and item.phase in {"open", "active"} and item.condition != "on_hold"

    def end(self, item: Item, custody: str = "released") -> None:
        if item.live is not None:
            item.live.custody = custody

    def orphan(self, who: str) -> None:
        """Its session ended: nobody knows what its process did."""
        for item in self.works.values():
            if item.live and item.live.who == who:
                item.live.custody = "orphaned_unverified"

    def close(self, item: Item, resolution: str) -> None:
        item.phase, item.condition, item.held, item.resolution = "closed", "normal", None, resolution
        self.end(item)

    def move(self, item: Item, phase: str, condition: str = "normal") -> None:
        item.phase, item.condition = phase, condition
